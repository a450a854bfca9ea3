package lint

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// sizes adds up what the parts of a data set hold.
type sizes struct {
	defaults map[string]string
	total    float64
	parts    []string
	at       place // of the first part
}

// add takes over a part, if its options say how large it is.
func (s *sizes) add(name string, options map[string]string, sizeOf func(option func(string) string) (float64, string, bool), at place) {
	size, how, ok := sizeOf(func(key string) string {
		if v, ok := options[key]; ok {
			return v
		}
		return s.defaults[key]
	})
	if !ok {
		return
	}
	if s.at.text == nil {
		s.at = at
	}
	s.total += size
	s.parts = append(s.parts, name+": "+how)
}

// report is the data set, and what comments say of it.
func (s *sizes) report(t *text) (out report) {
	out.recognised = true
	if s.total > 0 {
		out.dataSets = append(out.dataSets, dataSet{bytes: s.total, how: strings.Join(few(s.parts), "; "), at: s.at})
		out.add(checkClaims(t, s.total))
	}
	return out
}

// fioJob reads a file of fio's.
func fioJob(t *text) report {
	var all sizes
	for _, s := range readINI(t) {
		options := make(map[string]string)
		line := s.line
		for _, e := range s.entries {
			options[e.key] = e.value
			if e.key == "size" || e.key == "filesize" {
				line = e.line
			}
		}
		switch s.name {
		case "":
		case "global":
			if all.defaults == nil {
				all.defaults = make(map[string]string)
			}
			maps.Copy(all.defaults, options)
		default:
			all.add(s.name, options, fioSize, t.place(line, 1))
		}
	}
	return all.report(t)
}

// number reads a number from least up; otherwise stands for all that is none.
func number(text string, least, otherwise float64) float64 {
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= least && v < 1e9 {
		return v
	}
	return otherwise
}

// fioSize is how much a job writes or reads, over all its clones.
func fioSize(option func(string) string) (size float64, how string, ok bool) {
	filename := option("filename")
	if strings.HasPrefix(filename, "/dev/") {
		return 0, "", false // a whole device
	}
	if engine := option("ioengine"); engine == "null" || engine == "rbd" || engine == "net" {
		return 0, "", false
	}
	clones, files := number(option("numjobs"), 1, 1), number(option("nrfiles"), 1, 1)
	if each, isSize := bytesOf(option("size")); isSize && each > 0 {
		size, how = each, option("size")
	} else if each, isSize := bytesOf(option("filesize")); isSize && each > 0 {
		size, how = each*files, fmt.Sprintf("%g files of %s", files, option("filesize"))
	} else {
		return 0, "", false
	}
	// A file that is named is one for all clones.
	if filename == "" && clones > 1 {
		size *= clones
		how = fmt.Sprintf("%g clones of %s", clones, how)
	}
	return size, how, true
}

// fioCommand reads a command of fio's.
func fioCommand(c call) (out report) {
	_, flags := positional(c.args[1:])
	option := func(key string) string { return flags["--"+key].value }
	if size, how, ok := fioSize(option); ok {
		w := flags["--size"]
		if w.value == "" {
			w = flags["--filesize"]
		}
		out.dataSets = append(out.dataSets, dataSet{bytes: size, how: how, at: c.at(w)})
	}
	return out
}

// fsdLine matches the definition of a file system of vdbench.
var fsdLine = regexp.MustCompile(`(?m)^\s*fsd=`)

// vdbench reads a parameter file of vdbench's.
func vdbench(t *text) report {
	var all sizes
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		if !fsdLine.MatchString(line) {
			continue
		}
		options := make(map[string]string)
		for _, p := range splitOptions(strings.TrimSpace(line)) {
			k, v, _ := strings.Cut(p, "=")
			options[k] = v
		}
		if options["fsd"] == "default" {
			all.defaults = options
			continue
		}
		all.add(options["fsd"], options, vdbenchSize, t.place(n, 1+len(line)-len(strings.TrimLeft(line, " \t"))))
	}
	return all.report(t)
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
func vdbenchSize(option func(string) string) (size float64, how string, ok bool) {
	depth, width, files := number(option("depth"), 0, 1), number(option("width"), 0, 1), number(option("files"), 0, 0)
	each, isSize := bytesOf(option("size"))
	if !isSize {
		// A list of sizes and their shares: (20m,50,30m,50).
		var sum float64
		list := strings.Split(strings.Trim(option("sizes")+option("size"), "()"), ",")
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
	if option("distribution") == "all" {
		directories = 0
		for i := 1.0; i <= depth; i++ {
			directories += math.Pow(width, i)
		}
	}
	size = directories * files * each
	how = fmt.Sprintf("%g directories x %g files x %s", directories, files, humanBytes(each))
	if limit, ok := bytesOf(option("totalsize")); ok && limit > 0 && limit < size {
		size, how = limit, "totalsize "+option("totalsize")
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

// acrossDisks holds data sets against the disks that the files make.
func acrossDisks(f *facts) (out report) {
	disks := diskSizes(f)
	if f.disk > 0 {
		disks = []disk{{what: "the disk given with --disk", bytes: f.disk, text: humanBytes(float64(f.disk))}}
	}
	bySize := func(a, b disk) int { return cmp.Compare(a.bytes, b.bytes) }
	for _, s := range f.dataSets {
		machine := s.at.text.machine
		own := slices.DeleteFunc(slices.Clone(disks), func(d disk) bool { return d.of != machine })
		if len(disks) == 0 {
			out.note("data-set-size", s.at, "the data set has %s (%s): no disk is among the files, so whether it fits was not checked (--disk SIZE)", humanBytes(s.bytes), s.how)
			continue
		}
		big, small := slices.MaxFunc(disks, bySize), slices.MinFunc(disks, bySize)
		if machine != nil && len(own) > 0 && f.disk == 0 {
			big = slices.MaxFunc(own, bySize)
			small = big
		}
		with := func(d disk) string {
			if d.at.text != nil {
				d.what += " " + seen(s.at, d.at)
			}
			return fmt.Sprintf("the data set has %s (%s), and %s has %s", humanBytes(s.bytes), s.how, d.what, d.text)
		}
		switch {
		case s.bytes > float64(big.bytes):
			out.find("data-set-size", s.at, fmt.Sprintf("make the disk larger than %s and what its file system needs, or the data set smaller", humanBytes(s.bytes)), with(big))
		case s.bytes > float64(small.bytes):
			out.findAs(Warning, "data-set-size", s.at, "write it to the larger disk only, or make it smaller", with(small))
		}
	}
	return out
}
