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
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
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

// JUnit writes a result for CI systems: a test for each goal, or for the comparison of arms, and those of
// the comparison with a baseline, nil for none. A goal that did not hold is a failure, an undecided or
// invalid one an error, and one that the exit code does not follow is skipped, so that the file fails
// where the exit code is not 0.
func JUnit(w io.Writer, r result.Result, a *recorded.Against) error {
	s := junitSuite{Name: r.Experiment}
	s.time(r.Steps)
	class := "plimsoll." + r.Workload
	s.against(class, a)
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
func GridJUnit(w io.Writer, g judge.Grid, a *recorded.Against) error {
	s := junitSuite{Name: g.Experiment}
	s.against("plimsoll."+g.Workload, a)
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

// ComparedJUnit writes a comparison of recorded experiments likewise.
func ComparedJUnit(w io.Writer, o recorded.Outcome) error {
	s := junitSuite{Name: "compare", Seconds: "0.000"}
	s.compared("plimsoll."+o.Experiments[0].Workload, o.Experiments[0].Name, o)
	return s.write(w)
}

// against adds the tests of the comparison with a baseline, and on a first night one that is skipped.
func (s *junitSuite) against(class string, a *recorded.Against) {
	if a == nil {
		return
	}
	for _, o := range a.Comparisons {
		s.compared(class, a.Baseline, o)
	}
	if len(a.Comparisons) == 0 {
		s.add(class, "against an earlier run", 0, a.Why, a.Why, false)
	}
}

// compared adds a test for each load line, or for each figure at each level, and one for what
// prevents a verdict.
func (s *junitSuite) compared(class, baseline string, o recorded.Outcome) {
	add := func(of string, code int, said string) {
		if len(o.Experiments) == 2 && o.Experiments[1].Arm != "" {
			of = o.Experiments[1].Arm + ": " + of
		}
		s.add(class, of+" against "+baseline, code, said, said, true)
	}
	c := o.Comparison
	switch {
	case c == nil || c.Refused != "" || len(c.Lines)+len(c.Levels) == 0 || o.ExitCode == 4:
		add("the run", o.ExitCode, string(o.Verdict)+": "+o.Why)
	case c.LinesDecide():
		for _, l := range c.Lines {
			add("load line by goal "+l.Goal, compare.ExitCode(l.Verdict), string(l.Verdict)+": "+l.Why)
		}
	default:
		for _, l := range c.Levels {
			for _, d := range l.Decisions() {
				add(fmt.Sprintf("%s at %.10g", d.Figure.Called(), l.Level), compare.ExitCode(d.Verdict), d.Says())
			}
		}
	}
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
