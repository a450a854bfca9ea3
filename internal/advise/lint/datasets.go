package lint

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// dataSet is what a load generator writes.
type dataSet struct {
	bytes float64
	how   string // how it is made up, for messages
	at    place
}

// bytesOf reads a size as fio and vdbench write it: units of 1024.
func bytesOf(text string) (float64, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimSuffix(strings.TrimSuffix(text, "b"), "i")
	if text == "" {
		return 0, false
	}
	factor := 1.0
	if i := strings.IndexByte("kmgtp", text[len(text)-1]); i >= 0 {
		factor = math.Pow(1024, float64(i+1))
		text = text[:len(text)-1]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, false
	}
	return v * factor, true
}

// humanBytes writes a size.
func humanBytes(v float64) string {
	for _, u := range []struct {
		factor float64
		name   string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v >= u.factor {
			return strconv.FormatFloat(v/u.factor, 'f', 1, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " B"
}

// iniSection is a section of a file of the form [name], key=value.
type iniSection struct {
	name    string
	line    int
	entries []iniEntry
}

// iniEntry is one of its lines.
type iniEntry struct {
	key, value string
	line       int
	keyColumn  int
	column     int // of the value, or of the key when there is none
	hasValue   bool
}

// readINI reads a file of sections. Entries before the first belong to one
// without a name.
func readINI(t *text) []iniSection {
	sections := []iniSection{{}}
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		lead := len(line) - len(strings.TrimLeft(line, " \t"))
		if trimmed[0] == '[' {
			if end := strings.IndexByte(trimmed, ']'); end > 0 {
				sections = append(sections, iniSection{name: trimmed[1:end], line: n})
				continue
			}
		}
		key, value, ok := strings.Cut(trimmed, "=")
		e := iniEntry{key: strings.TrimSpace(key), value: strings.TrimSpace(value), line: n, keyColumn: lead + 1, column: lead + 1, hasValue: ok}
		if ok {
			e.column = lead + len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t")) + 1
		}
		last := &sections[len(sections)-1]
		last.entries = append(last.entries, e)
	}
	return sections
}

// number reads a number from least up; otherwise stands for all that is none.
func number(text string, least, otherwise float64) float64 {
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= least && v < 1e9 {
		return v
	}
	return otherwise
}

// fsdLine matches the definition of a file system of vdbench.
var fsdLine = regexp.MustCompile(`(?m)^\s*fsd=`)

// vdbench reads a parameter file of vdbench's.
func vdbench(t *text) (out report) {
	out.recognised = true
	var defaults map[string]string
	var total float64
	var parts []string
	var first place
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		if !fsdLine.MatchString(line) {
			continue
		}
		options := maps.Clone(defaults)
		if options == nil {
			options = make(map[string]string)
		}
		for _, p := range splitOptions(strings.TrimSpace(line)) {
			k, v, _ := strings.Cut(p, "=")
			options[k] = v
		}
		if options["fsd"] == "default" {
			defaults = options
		} else if size, how, ok := vdbenchSize(options); ok {
			if total == 0 {
				first = t.place(n, 1+len(line)-len(strings.TrimLeft(line, " \t")))
			}
			total += size
			parts = append(parts, options["fsd"]+": "+how)
		}
	}
	if total > 0 {
		out.dataSets = append(out.dataSets, dataSet{bytes: total, how: strings.Join(few(parts), "; "), at: first})
		out.add(checkClaims(t, total))
	}
	return out
}

// splitOptions splits at commas outside of brackets.
func splitOptions(line string) (options []string) {
	depth, start := 0, 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				options = append(options, line[start:i])
				start = i + 1
			}
		}
	}
	return append(options, line[start:])
}

// vdbenchSize is how much a file system of vdbench's holds: width directories
// on each of depth levels, files in those of the last.
func vdbenchSize(option map[string]string) (size float64, how string, ok bool) {
	depth, width, files := number(option["depth"], 0, 1), number(option["width"], 0, 1), number(option["files"], 0, 0)
	each, isSize := bytesOf(option["size"])
	if !isSize {
		// A list of sizes and their shares: (20m,50,30m,50).
		var sum float64
		list := strings.Split(strings.Trim(option["sizes"]+option["size"], "()"), ",")
		for i := 0; i+1 < len(list); i += 2 {
			s, ok := bytesOf(list[i])
			share, err := strconv.ParseFloat(list[i+1], 64)
			if !ok || err != nil {
				return 0, "", false
			}
			sum += s * share / 100
		}
		each = sum
	}
	if files == 0 || each == 0 || depth > 64 {
		return 0, "", false
	}
	directories := math.Pow(width, depth)
	if option["distribution"] == "all" {
		directories = 0
		for i := 1.0; i <= depth; i++ {
			directories += math.Pow(width, i)
		}
	}
	size = directories * files * each
	how = fmt.Sprintf("%g directories x %g files x %s", directories, files, humanBytes(each))
	if limit, ok := bytesOf(option["totalsize"]); ok && limit > 0 && limit < size {
		size, how = limit, "totalsize "+option["totalsize"]
	}
	return size, how, !math.IsInf(size, 0) && !math.IsNaN(size)
}

// claim matches a size with its unit.
var claim = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B\b`)

// checkClaims holds what comments say of the data's size against what it is. A
// comment that gives one size only, and calls it the whole, is a claim.
func checkClaims(t *text, total float64) (out report) {
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		trimmed := strings.TrimLeft(line, " \t")
		lower := strings.ToLower(trimmed)
		if trimmed == "" || !strings.Contains("#*;", trimmed[:1]) ||
			!slices.ContainsFunc([]string{"data set", "dataset", "total", "in all"}, func(word string) bool { return strings.Contains(lower, word) }) {
			continue
		}
		found := claim.FindAllStringSubmatchIndex(line, -1)
		if len(found) == 0 {
			continue
		}
		// The last size of the line is the sum.
		m := found[len(found)-1]
		said, _ := bytesOf(line[m[2]:m[3]] + line[m[4]:m[5]])
		if said > 0 && (said < total*0.9 || said > total*1.1) {
			out.find("data-set-claim", t.place(n, m[0]+1), "write "+humanBytes(total), fmt.Sprintf("the comment says %s, and the data set has %s", line[m[0]:m[1]], humanBytes(total)))
		}
	}
	return out
}

// acrossDisks holds data sets against the disk that they are written to: the one
// that the user names, or the largest of the machine in whose user data they
// stand.
func acrossDisks(f *facts) (out report) {
	for _, s := range f.dataSets {
		big := disk{what: "the disk given with --disk", bytes: f.disk, text: humanBytes(float64(f.disk))}
		if f.disk == 0 {
			big = largestDisk(s.at.text.machine)
		}
		if big.bytes == 0 {
			out.note("data-set-size", s.at, "the data set has %s (%s): no file says which disk holds it, so whether it fits was not checked (--disk SIZE)", humanBytes(s.bytes), s.how)
			continue
		}
		if s.bytes > float64(big.bytes) {
			if big.at.text != nil {
				big.what += " " + seen(s.at, big.at)
			}
			out.find("data-set-size", s.at, fmt.Sprintf("make the disk larger than %s and what its file system needs, or the data set smaller", humanBytes(s.bytes)),
				fmt.Sprintf("the data set has %s (%s), and %s has %s", humanBytes(s.bytes), s.how, big.what, big.text))
		}
	}
	return out
}

// disk is a disk of a machine.
type disk struct {
	what  string
	bytes int64
	text  string // as written
	at    place
}

// largestDisk is that of a machine; the zero disk where none has a size.
func largestDisk(o *object) (largest disk) {
	if o == nil {
		return
	}
	add := func(request value, what string) {
		if q, err := resource.ParseQuantity(request.text()); err == nil && q.Value() > largest.bytes {
			largest = disk{what + o.String(), q.Value(), request.text(), request.at()}
		}
	}
	for _, t := range o.get("spec", "dataVolumeTemplates").items() {
		for _, kind := range []string{"pvc", "storage"} {
			add(t.deep("spec."+kind+".resources.requests.storage"), "the disk of ")
		}
	}
	for _, v := range o.get("spec", "template", "spec", "volumes").items() {
		add(v.deep("emptyDisk.capacity"), "the empty disk of ")
	}
	return largest
}
