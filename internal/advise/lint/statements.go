package lint

import (
	"cmp"
	"fmt"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/size"
	"regexp"
	"strconv"
	"strings"
)

// A text for people also says things, and is believed as its blocks are. What
// is looked for here are statements that have numbers in them, or that name a
// setting: they can be wrong beyond doubt.

// dataSetWords matches a sentence that makes up a data set and says its size:
// directories, files, the size of a file, the whole. No other sentence of so
// many numbers is meant, so little may stand between them.
var dataSetWords = regexp.MustCompile(`(?i)\b([0-9][0-9,]*) director(?:y|ies)\b[^.\n]{0,60}?\b([0-9][0-9,]*) files?\b[^.\n]{0,60}?\b([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B\b[^\n]{0,120}?\b([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B\b`)

// twiceWords matches what is true of the routing cache of old kernels and is
// copied to the settings of neighbour tables: that entries are refused at twice
// a threshold.
var twiceWords = regexp.MustCompile(`(?i)\bat (?:twice|double|two times) (?:this|that|the) (?:value|threshold|number|size)\b[^.\n]{0,40}\brefuse`)

// neighbourWords matches what names the settings of neighbour tables.
var neighbourWords = regexp.MustCompile(`\bgc_thresh[123]\b`)

// proseStatements looks at the sentences of a text for people.
func proseStatements(out *report.Report, t *reading.Text) {
	// Lines of one paragraph are one to a reader: an end of a line that is not
	// an empty one is a space, which keeps all offsets.
	flat := flatten(t.Data)
	for _, m := range dataSetWords.FindAllStringSubmatchIndex(flat, -1) {
		word := func(i int) string { return flat[m[2*i]:m[2*i+1]] }
		directories, err1 := strconv.ParseFloat(strings.ReplaceAll(word(1), ",", ""), 64)
		files, err2 := strconv.ParseFloat(strings.ReplaceAll(word(2), ",", ""), 64)
		one, err3 := size.Parse(word(3)+word(4)+"i", 1<<60)
		all, err4 := size.Parse(word(6)+word(7)+"i", 1<<60)
		each, said := float64(one), float64(all)
		if cmp.Or(err1, err2, err3, err4) != nil || directories*files*each <= 0 {
			continue
		}
		out.Recognised = true
		total := directories * files * each
		at := t.PlaceAt(m[12])
		// Sizes of 1000 and of 1024 are told apart by few: the two are within a
		// tenth of each other up to TiB.
		if said < total*0.9 || said > total*1.1 {
			out.Find("data-set-claim", at, "write "+humanBytes(total),
				fmt.Sprintf("the text says %s, and %g directories x %g files x %s are %s", flat[m[12]:m[17]]+"B", directories, files, humanBytes(each), humanBytes(total)))
		}
	}
	if !neighbourWords.MatchString(flat) {
		return
	}
	for _, m := range twiceWords.FindAllStringIndex(flat, -1) {
		out.Recognised = true
		out.Find("neighbour-thresholds", t.PlaceAt(m[0]),
			"write: no entry is collected below gc_thresh1, entries older than 5 s are above gc_thresh2, and gc_thresh3 is the most there are",
			"the text says that entries are refused at twice a threshold: they are at gc_thresh3")
	}
}

// flatten writes the ends of lines as spaces, but where a paragraph ends. It
// moves nothing.
func flatten(data string) string {
	b := []byte(data)
	for i := range b {
		if b[i] != '\n' && b[i] != '\r' || i+1 == len(b) {
			continue
		}
		rest := strings.TrimLeft(data[i+1:min(len(data), i+200)], " \t\r")
		if rest != "" && rest[0] != '\n' && (i == 0 || b[i-1] != '\n') {
			b[i] = ' '
		}
	}
	return string(b)
}

// proseFragments looks into what stands of a block in a text for people that is no
// valid YAML as a whole, as page breaks leave it: each key at the margin begins
// a piece, and those that can be read are held against the rest.
func proseFragments(out *report.Report, t *reading.Text) {
	start := -1
	look := func(end int) {
		if start < 0 {
			return
		}
		part := t.Part(start, end, "block.yaml")
		if root, _ := reading.Single(part); root.Node != nil {
			sourcesOf(out, root)
		}
	}
	for n := 1; n <= len(t.Lines); n++ {
		if marginKey.MatchString(t.Line(n)) {
			look(t.Lines[n-1])
			start = t.Lines[n-1]
		}
	}
	look(len(t.Data))
}

// marginKey matches a line that begins a piece.
var marginKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*:(\s|$)`)

// sourcesOf finds what a piece of an object clones.
func sourcesOf(out *report.Report, v reading.Value) {
	v.Walk(func(e reading.Entry) bool {
		name := e.Get("pvc", "name")
		if e.Key() != "source" || name.Text() == "" {
			return true
		}
		out.Recognised = true
		out.ClonedPieces = append(out.ClonedPieces, report.ClonedPiece{At: name.At(), Namespace: e.Get("pvc", "namespace").Text(), Name: name.Text(), By: "a piece of an object", Spec: reading.Value{}})
		return false
	})
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
