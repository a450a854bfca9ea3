package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/report/view"
)

// A table is as wide as the terminal at most, loses no word of up to four lines
// and no figure, and is what it always was where it fits.
func TestTablesFitTheTerminal(t *testing.T) {
	steps := [][]string{{"step", "purpose", "level", "asked", "ready", "never", "lost", "per second", "Ready p50", "p99", "verdict"}}
	for i := range 3 {
		steps = append(steps, []string{fmt.Sprint(i + 1), "bracket", "1234", "123456", "123456", "0", "0", "1234.5", "6.76 ms", "12.3 s", "inconclusive"})
	}
	long := strings.Repeat("the kubelet of the node says that it is under pressure of memory ", 2)
	endless := strings.Repeat("word ", 200)
	for _, c := range []struct {
		why   string
		align string
		rows  [][]string
		width int
		lost  bool // text is left out, with a sign
	}{
		{"steps on 80 columns", "rrrrrrrrrrr", steps, 80, false},
		{"steps on 200 columns", "rrrrrrrrrrr", steps, 200, false},
		{"differences with long values", "llll", [][]string{{"difference", "a", "b", ""}, {"runtime", long, long, "note"}, {"kernel", "6.1", "6.2", "note"}}, 100, false},
		{"a name without a space", "lll", [][]string{{"name", "value", ""}, {strings.Repeat("x", 150), "1", "note"}}, 80, false},
		{"text without an end", "ll", [][]string{{"name", "text"}, {"a", endless}}, 80, true},
		{"letters of two bytes", "ll", [][]string{{"name", "text"}, {"ü", strings.Repeat("äöü ", 40)}}, 60, false},
		{"no bound", "ll", [][]string{{"name", "text"}, {"a", endless}}, 0, false},
	} {
		var free, bound bytes.Buffer
		sections := []view.Section{{Parts: []view.Part{{Indent: 2, Table: view.Table{Align: c.align, Rows: c.rows}}}}}
		for _, w := range []io.Writer{&free, Terminal{&bound, c.width}} {
			if err := Write(w, sections); err != nil {
				t.Fatal(err)
			}
		}
		widest := func(text string) (n int) {
			for line := range strings.Lines(text) {
				n = max(n, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
			}
			return n
		}
		if c.width > 0 && widest(bound.String()) > c.width {
			t.Errorf("%s: %d columns wide, want at most %d:\n%s", c.why, widest(bound.String()), c.width, bound.String())
		}
		if (c.width == 0 || widest(free.String()) <= c.width) && free.String() != bound.String() {
			t.Errorf("%s: it fits, and is changed:\n%s", c.why, bound.String())
		}
		letters := func(text string) int { return utf8.RuneCountInString(strings.Join(strings.Fields(text), "")) }
		if lost := letters(bound.String()) < letters(free.String()); lost != c.lost || lost != strings.Contains(bound.String(), "…") {
			t.Errorf("%s: text was lost: %v, want %v:\n%s", c.why, lost, c.lost, bound.String())
		}
		for _, row := range c.rows[1:] {
			for i, cell := range row {
				if c.align[i] == 'r' && !strings.Contains(bound.String(), cell) {
					t.Errorf("%s: the figure %q is torn:\n%s", c.why, cell, bound.String())
				}
			}
		}
	}
}
