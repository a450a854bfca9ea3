// Package linttest runs the tables of texts that test the rules of lint: what each rule
// finds, and what it spares. Only tests import it.
package linttest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"plimsoll.dev/plimsoll/docs"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// Row holds a text that a rule finds, and one close to it that it must spare, or several files as txtar.
type Row struct {
	Why   string // what the fault costs
	Fires string
	Want  string // the findings and notes in Fires, one per line, as lint prints them
	But   string // why Near is right
	Near  string // nothing is found in it
}

// Table holds rows of texts of one kind.
type Table struct {
	File string // name of the file that a text is
	Rows []Row
}

// Looks holds the functions by which a package looks at texts.
type Looks struct {
	At     func(*report.Report, *reading.Text) // looks at one text
	Across func(*report.Report)                // looks at all of them together
}

// Check runs each row of a table as a test.
func (l Looks) Check(t *testing.T, tab Table) {
	t.Helper()
	known := report.NewTables()
	for _, r := range tab.Rows {
		if (r.Fires == "") != (r.Want == "") || (r.Fires == "") != (r.Why == "") || r.Near == "" || r.But == "" {
			t.Errorf("%s %s: a row needs a text that fires with its findings, a text that must not, and both reasons", r.Why, r.But)
		}
		for _, c := range []struct{ reason, text, want string }{{r.Why, r.Fires, r.Want}, {"spared: " + r.But, r.Near, ""}} {
			if c.text == "" {
				continue
			}
			t.Run(c.reason, func(t *testing.T) {
				if got := strings.Join(l.found(tab, known, c.text, make(map[string]bool)), "\n"); got != strings.TrimSpace(c.want) {
					t.Errorf("found:\n%s\nwant:\n%s\nin:\n%s", got, c.want, c.text)
				}
			})
		}
	}
}

// found returns the findings and notes of a text, and adds the source lines that made them to places.
func (l Looks) found(tab Table, known *report.Tables, text string, places map[string]bool) (lines []string) {
	out := &report.Report{Tables: known, Look: func(*report.Report, *reading.Text) {}}
	archive := txtar.Parse([]byte(text))
	if len(archive.Files) == 0 {
		archive.Files = []txtar.File{{Name: tab.File, Data: []byte(text)}}
	}
	for _, f := range archive.Files {
		l.At(out, traced(f.Name, string(f.Data), places))
	}
	l.Across(out)
	severities := make(map[string]string)
	for _, rule := range docs.Rules() {
		severities[rule[0]] = rule[1]
	}
	for _, f := range out.Findings {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s: %s [%s]", f.File, f.Line, f.Column, cmp.Or(string(f.Severity), severities[f.Rule]), f.Found, f.Rule))
	}
	for _, n := range out.Notes {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: note: %s [%s]", n.File, n.Line, n.Column, n.Text, n.Rule))
	}
	for _, p := range out.Problems {
		lines = append(lines, fmt.Sprintf("%s:%d:%d: unreadable: %s", p.File, p.Line, p.Column, p.Text))
	}
	return lines
}

// traced returns a file that adds the rule's source line, from the stack, to places when asked for a place.
func traced(name, data string, places map[string]bool) *reading.Text {
	t := reading.NewText(reading.Input{Name: name, Data: []byte(data), Asked: true}).Part(0, len(data), name)
	t.Role = path.Dir(name) // settings of one directory meet on one machine
	t.Outer = func(line, column int) (int, int) {
		callers := make([]uintptr, 64)
		frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
		for reported, more := false, true; more; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if in := strings.Contains(frame.Function, "/lint/report."); in {
				reported = true
			} else if reported {
				places[fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(frame.File)), path.Base(frame.File), frame.Line)] = true
				break
			}
		}
		return line, column
	}
	return t
}

// EveryLineFires fails for each line of the package with a finding that no row of its tables reaches.
func (l Looks) EveryLineFires(t *testing.T, tables []Table) {
	t.Helper()
	fired, known := make(map[string]bool), report.NewTables()
	for _, tab := range tables {
		for _, r := range tab.Rows {
			if r.Fires != "" {
				l.found(tab, known, r.Fires, fired)
			}
		}
	}
	makes := regexp.MustCompile(`\.(Find|FindAs|Note)\(`)
	ofNoRule := regexp.MustCompile(`\.Note\("",`) // such as of a file that is not looked at
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]bool)
	for _, name := range sources {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if place := fmt.Sprintf("%s/%s:%d", filepath.Base(folder), name, i+1); !strings.HasSuffix(name, "_test.go") && makes.MatchString(line) && !ofNoRule.MatchString(line) {
				declared[place] = true
			}
		}
	}
	if len(declared) == 0 {
		t.Error("no line of this package makes a finding")
	}
	for _, place := range slices.Sorted(maps.Keys(declared)) {
		if !fired[place] {
			t.Errorf("no row fires the rule at %s: write one", place)
		}
	}
}
