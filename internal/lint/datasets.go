package lint

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// dataSet is what a load generator writes.
type dataSet struct {
	bytes float64
	how   string // how it is made up, for messages
	at    place
	of    *object // the machine that it is written in, if that is known
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

// fioJob reads a file of fio's.
func (l *linter) fioJob(t *text) {
	l.recognised = true
	sections := readINI(t)
	global := map[string]string{}
	var total float64
	var parts []string
	var at place
	for _, s := range sections {
		if s.name == "" {
			continue
		}
		options := make(map[string]string)
		line := s.line
		for _, e := range s.entries {
			options[e.key] = e.value
			if e.key == "size" || e.key == "filesize" {
				line = e.line
			}
		}
		if s.name == "global" {
			for k, v := range options {
				global[k] = v
			}
			continue
		}
		size, how, ok := fioSize(func(key string) string {
			if v, ok := options[key]; ok {
				return v
			}
			return global[key]
		})
		if !ok {
			continue
		}
		if at.text == nil {
			at = place{text: t, line: line, column: 1}
		}
		total += size
		parts = append(parts, fmt.Sprintf("%s: %s", s.name, how))
	}
	if total > 0 {
		l.dataSet(dataSet{bytes: total, how: strings.Join(few(parts), "; "), at: at})
		l.claims(t, total)
	}
}

// fioSize is how much a job writes or reads, over all its clones.
func fioSize(option func(string) string) (size float64, how string, ok bool) {
	number := func(key string, otherwise float64) float64 {
		if v, err := strconv.ParseFloat(option(key), 64); err == nil && v >= 1 && v < 1e9 {
			return v
		}
		return otherwise
	}
	filename := option("filename")
	if strings.HasPrefix(filename, "/dev/") {
		return 0, "", false // a whole device
	}
	if engine := option("ioengine"); engine == "null" || engine == "rbd" || engine == "net" {
		return 0, "", false
	}
	clones, files := number("numjobs", 1), number("nrfiles", 1)
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
func (l *linter) fioCommand(c call) {
	_, flags := positional(c.args[1:])
	option := func(key string) string { return flags["--"+key].value }
	if size, how, ok := fioSize(option); ok {
		w := flags["--size"]
		if w.value == "" {
			w = flags["--filesize"]
		}
		l.dataSet(dataSet{bytes: size, how: how, at: c.at(w)})
	}
}

// fsdLine matches the definition of a file system of vdbench.
var fsdLine = regexp.MustCompile(`^\s*fsd=`)

// vdbench reads a parameter file of vdbench's.
func (l *linter) vdbench(t *text) {
	l.recognised = true
	defaults := map[string]string{}
	var total float64
	var parts []string
	var at place
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
			defaults = options
			continue
		}
		option := func(key string) string {
			if v, ok := options[key]; ok {
				return v
			}
			return defaults[key]
		}
		size, how, ok := vdbenchSize(option)
		if !ok {
			continue
		}
		if at.text == nil {
			at = place{text: t, line: n, column: 1 + len(line) - len(strings.TrimLeft(line, " \t"))}
		}
		total += size
		parts = append(parts, fmt.Sprintf("%s: %s", options["fsd"], how))
	}
	if total > 0 {
		l.dataSet(dataSet{bytes: total, how: strings.Join(few(parts), "; "), at: at})
		l.claims(t, total)
	}
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
	number := func(key string, otherwise float64) float64 {
		if v, err := strconv.ParseFloat(option(key), 64); err == nil && v >= 0 && v < 1e9 {
			return v
		}
		return otherwise
	}
	depth, width, files := number("depth", 1), number("width", 1), number("files", 0)
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

func (l *linter) dataSet(d dataSet) {
	d.of = l.machine
	l.dataSets = append(l.dataSets, d)
}

// claim matches a size with its unit.
var claim = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B\b`)

// claims holds what comments say of the data's size against what it is. A
// comment that gives one size only, and calls it the whole, is a claim.
func (l *linter) claims(t *text, total float64) {
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		trimmed := strings.TrimLeft(line, " \t")
		if !strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "*") && !strings.HasPrefix(trimmed, ";") {
			continue
		}
		lower := strings.ToLower(trimmed)
		if !strings.Contains(lower, "data set") && !strings.Contains(lower, "dataset") && !strings.Contains(lower, "total") && !strings.Contains(lower, "in all") {
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
			l.report("data-set-claim", place{text: t, line: n, column: m[0] + 1}, "write "+humanBytes(total), fmt.Sprintf("the comment says %s, and the data set has %s", line[m[0]:m[1]], humanBytes(total)))
		}
	}
}

// acrossDisks holds data sets against the disks that the files make.
func (l *linter) acrossDisks() {
	if len(l.dataSets) == 0 {
		return
	}
	disks := l.diskSizes()
	if l.options.Disk > 0 {
		disks = []disk{{what: "the disk given with --disk", bytes: l.options.Disk, text: humanBytes(float64(l.options.Disk))}}
	}
	byMachine := make(map[*object][]disk)
	var largest, smallest *disk
	for i := range disks {
		d := &disks[i]
		byMachine[d.of] = append(byMachine[d.of], *d)
		if largest == nil || d.bytes > largest.bytes {
			largest = d
		}
		if smallest == nil || d.bytes < smallest.bytes {
			smallest = d
		}
	}
	for _, s := range l.dataSets {
		big, small := largest, smallest
		if own := byMachine[s.of]; s.of != nil && len(own) > 0 && l.options.Disk == 0 {
			big = &own[0]
			for i := range own {
				if own[i].bytes > big.bytes {
					big = &own[i]
				}
			}
			small = big
		}
		if big == nil {
			l.note("data-set-size", s.at, "the data set has %s (%s): no disk is among the files, so whether it fits was not checked (--disk SIZE)", humanBytes(s.bytes), s.how)
			continue
		}
		where := func(d *disk) string {
			if d.at.text == nil {
				return fmt.Sprintf("%s has %s", d.what, d.text)
			}
			return fmt.Sprintf("%s %s has %s", d.what, seen(s.at, d.at), d.text)
		}
		switch {
		case s.bytes > float64(big.bytes):
			l.report("data-set-size", s.at, fmt.Sprintf("make the disk larger than %s and what its file system needs, or the data set smaller", humanBytes(s.bytes)),
				fmt.Sprintf("the data set has %s (%s), and %s", humanBytes(s.bytes), s.how, where(big)))
		case s.bytes > float64(small.bytes):
			l.reportAs(Warning, "data-set-size", s.at, "write it to the larger disk only, or make it smaller",
				fmt.Sprintf("the data set has %s (%s), and %s", humanBytes(s.bytes), s.how, where(small)))
		}
	}
}
