package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
)

// The part of JUnit's format that CI systems read; see https://github.com/testmoapp/junitxml.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Seconds  string      `xml:"time,attr"`
		Started  string      `xml:"timestamp,attr,omitempty"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Failure *junitNote `xml:"failure"`
		Error   *junitNote `xml:"error"`
		Skipped *junitNote `xml:"skipped"`
		Out     string     `xml:"system-out,omitempty"`
	}
	junitNote struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit writes a result for CI systems: a test for each goal, or for the comparison. A goal that did not
// hold is a failure, an undecided or invalid one an error, and one that the exit code does not follow is
// skipped, so that the file fails where the exit code is not 0.
func JUnit(w io.Writer, r result.Result) error {
	s := junitSuite{Name: r.Experiment}
	s.time(r.Steps)
	class := "plimsoll." + r.Workload
	if r.Comparison != nil || len(r.Goals) == 0 {
		s.add(class, r.Kind, r.ExitCode, string(r.Verdict)+": "+r.Why, view.Sentence(r), true)
		return s.write(w)
	}
	required := cmp.Or(r.Require, r.Goals[0].Name)
	for _, g := range r.Goals {
		name := fmt.Sprintf("%s (%s)", g.Name, strings.Join(g.SLO, "; "))
		follows := required == plan.RequireAll || required == g.Name
		said := view.GoalSentence(g)
		if !follows {
			said = "the exit code does not follow this goal; " + said
		}
		s.add(class, name, slices.Index([]slo.Verdict{slo.Pass, slo.Fail}, g.Verdict), said, view.GoalSentence(g), follows)
	}
	return s.write(w)
}

// GridJUnit writes the result of a grid likewise: a test for each cell.
func GridJUnit(w io.Writer, g judge.Grid) error {
	s := junitSuite{Name: g.Experiment}
	var steps []result.Step
	for _, c := range g.Cells {
		steps = append(steps, c.Steps...)
		said, out := c.Failed, ""
		if said == "" {
			said, out = string(c.Verdict)+": "+c.Why, view.Sentence(c.Result)
		}
		s.add("plimsoll."+g.Workload, c.Name, c.ExitCode, said, out, true)
	}
	s.time(steps)
	return s.write(w)
}

func (s *junitSuite) time(steps []result.Step) {
	seconds := 0.0
	for _, step := range steps {
		seconds += step.Seconds
	}
	s.Seconds = fmt.Sprintf("%.3f", seconds)
	if len(steps) > 0 {
		if start, err := time.Parse(time.RFC3339Nano, steps[0].Start); err == nil {
			s.Started = start.Format("2006-01-02T15:04:05")
		}
	}
}

func (s *junitSuite) add(class, name string, code int, said, out string, required bool) {
	c := junitCase{Class: class, Name: name, Out: junitText(out)}
	note := &junitNote{junitText(said)}
	switch {
	case !required:
		c.Skipped, s.Skipped = note, s.Skipped+1
	case code == 1:
		c.Failure, s.Failures = note, s.Failures+1
	case code != 0:
		c.Error, s.Errors = note, s.Errors+1
	}
	s.Cases, s.Tests = append(s.Cases, c), s.Tests+1
}

func (s *junitSuite) write(w io.Writer) error {
	encoded, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, encoded)
	return err
}

// junitText replaces what XML cannot hold.
func junitText(said string) string { return text.Printable(strings.ToValidUTF8(said, "\uFFFD")) }
