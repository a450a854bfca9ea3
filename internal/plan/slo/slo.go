// Package slo holds the grammar of service level objectives: what must hold at a level for it to count as held.
package slo

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/metrics"
)

// Form names the form of an objective.
type Form int

// The forms of the grammar.
const (
	Quantile Form = iota // FIGURE OP DURATION
	All                  // all MILESTONE [within DURATION]
	Errors               // errors OP N%
	Achieved             // achieved OP N%
	Retried              // retried OP N%
	Failed               // PLACES failed OP N
	Mean                 // MILESTONE mean OP DURATION
	Query                // query 'PROMQL' OP VALUE
)

// Op compares a measured value (on its left) with the bound.
type Op string

// The comparisons of the grammar.
const (
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// Holds reports whether value OP bound. NaN, an unknown value, never holds.
func (o Op) Holds(value, bound float64) bool {
	switch o {
	case Less:
		return value < bound
	case LessEqual:
		return value <= bound
	case Greater:
		return value > bound
	case GreaterEqual:
		return value >= bound
	}
	return false
}

// SLO is one objective.
type SLO struct {
	Form      Form
	Milestone string        // of Quantile, Mean and All
	Q         float64       // of Quantile: 0.99 for p99, 1 for the maximum
	Op        Op            // of every form but All
	Within    time.Duration // the bound of Quantile, Mean and All; 0 with All is the step timeout
	Percent   float64       // the bound of Errors, Achieved and Retried
	Places    string        // of Failed: the word for several of the target's places
	Count     int           // the bound of Failed
	Query     string        // of Query, in PromQL
	Value     float64       // the bound of Query
	text      string
}

// Latencies holds durations whose quantiles and mean objectives bound.
type Latencies interface {
	Quantile(q float64) float64
	Mean() float64
}

// Figure returns the figure of latencies that a Quantile or a Mean bounds.
func (s SLO) Figure(of Latencies) float64 {
	if s.Form == Mean {
		return of.Mean()
	}
	return of.Quantile(s.Q)
}

// String returns the objective as it was written.
func (s SLO) String() string { return s.text }

// Goal is a named set of objectives that must all hold, with a load line of its own.
type Goal struct {
	Name string
	SLOs []SLO
}

// Grammar describes what Parse accepts, for help and error texts.
const Grammar = `MILESTONE pNN|max|mean OP DURATION | all MILESTONE [within DURATION] | errors OP N% | achieved OP N% | retried OP N% | PLACES failed OP N | query 'PROMQL' OP VALUE   (OP is <, <=, > or >=)`

// figureGrammar matches a figure of a milestone's latencies, in objectives and in comparisons of arms.
const figureGrammar = `([A-Za-z][A-Za-z0-9]*)\s+([pP][0-9]+(?:\.[0-9]+)?|max)`

var (
	operator = `(<=|>=|<|>)`
	figure   = regexp.MustCompile(`^` + figureGrammar + `$`)
	quantile = regexp.MustCompile(`^` + figureGrammar + `\s*` + operator + `\s*(\S+)$`)
	mean     = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)\s+mean\s*` + operator + `\s*(\S+)$`)
	all      = regexp.MustCompile(`^all\s+([A-Za-z][A-Za-z0-9]*)(?:\s+within\s+(\S+))?$`)
	failed   = regexp.MustCompile(`^([a-z]+)\s+failed\s*(<=|<)\s*([0-9]{1,9})$`)
	query    = regexp.MustCompile(`(?s)^query\s+'(.*)'\s*` + operator + `\s*(\S+)$`)
	percent  = regexp.MustCompile(`^(errors|achieved|retried)\s*` + operator + `\s*([0-9]+(?:\.[0-9]+)?)\s*%$`)
)

// Figure names a figure of one milestone's latencies: a quantile, or the maximum.
type Figure struct {
	Milestone string
	Q         float64 // 0.99 for p99, 1 for the maximum
}

// String returns the figure as results name it.
func (f Figure) String() string {
	if f.Q == 1 {
		return f.Milestone + " max"
	}
	return fmt.Sprintf("%s p%g", f.Milestone, math.Round(f.Q*1e8)/1e6)
}

// ParseFigure reads MILESTONE pNN or MILESTONE max, like an objective.
func ParseFigure(text string) (Figure, error) {
	m := figure.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Figure{}, fmt.Errorf("%q is not understood: want MILESTONE pNN or MILESTONE max", text)
	}
	return figureOf(m[1], m[2])
}

func figureOf(milestone, word string) (Figure, error) {
	if word == "max" {
		return Figure{milestone, 1}, nil
	}
	p, _ := strconv.ParseFloat(word[1:], 64)
	if p <= 0 || p >= 100 {
		return Figure{}, fmt.Errorf("p%s is not a quantile: want more than p0 and less than p100, or max", word[1:])
	}
	return Figure{milestone, math.Round(p*1e6) / 1e8}, nil
}

// Parse reads one objective.
func Parse(text string) (SLO, error) {
	s := SLO{text: strings.Join(strings.Fields(text), " ")}
	t := strings.TrimSpace(text)
	if m := query.FindStringSubmatch(t); m != nil {
		return parseQuery(t, m[1], Op(m[2]), m[3], false)
	}
	var err error
	if m := quantile.FindStringSubmatch(t); m != nil {
		f, err := figureOf(m[1], m[2])
		if err != nil {
			return s, fmt.Errorf("objective %q: %w", t, err)
		}
		s.Form, s.Milestone, s.Q, s.Op = Quantile, f.Milestone, f.Q, Op(m[3])
		s.Within, err = duration(t, m[4])
		return s, err
	}
	if m := mean.FindStringSubmatch(t); m != nil {
		s.Form, s.Milestone, s.Op = Mean, m[1], Op(m[2])
		s.Within, err = duration(t, m[3])
		return s, err
	}
	if m := all.FindStringSubmatch(t); m != nil {
		s.Form, s.Milestone, s.Op = All, m[1], LessEqual
		if m[2] != "" {
			s.Within, err = duration(t, m[2])
		}
		return s, err
	}
	if m := percent.FindStringSubmatch(t); m != nil {
		s.Form = map[string]Form{"errors": Errors, "achieved": Achieved, "retried": Retried}[m[1]]
		s.Op = Op(m[2])
		s.Percent, _ = strconv.ParseFloat(m[3], 64)
		return s, checkPercent(t, s)
	}
	if m := failed.FindStringSubmatch(t); m != nil {
		s.Form, s.Places, s.Op = Failed, m[1], Op(m[2])
		if s.Count, _ = strconv.Atoi(m[3]); s.Count == 0 && s.Op == Less {
			return s, fmt.Errorf("objective %q: no count is < 0: write <=", t)
		}
		return s, nil
	}
	return s, fmt.Errorf("objective %q is not understood: want %s", t, Grammar)
}

// ParseGuard reads an objective on a query that ends a step when it does not hold.
func ParseGuard(text string) (SLO, error) {
	t := strings.TrimSpace(text)
	m := query.FindStringSubmatch(t)
	if m == nil {
		return SLO{}, fmt.Errorf("%q is not understood: want query 'PROMQL' OP VALUE, where OP is <, <=, > or >=", t)
	}
	return parseQuery(t, m[1], Op(m[2]), m[3], true)
}

// parseQuery reads an objective on a query. It keeps the text, because white space may be part of it.
func parseQuery(text, promQL string, op Op, bound string, guard bool) (SLO, error) {
	s := SLO{Form: Query, Query: promQL, Op: op, text: text}
	if err := metrics.CheckObjective(promQL, guard); err != nil {
		return s, fmt.Errorf("objective: %w", err)
	}
	var err error
	if s.Value, err = strconv.ParseFloat(bound, 64); err != nil || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return s, fmt.Errorf("objective %q: %q is not a number such as 0.5 or 1e6", text, bound)
	}
	return s, nil
}

// Least reports whether the bound is a lower bound: less is worse.
func (s SLO) Least() bool { return s.Op == Greater || s.Op == GreaterEqual }

// checkPercent refuses bounds of a share that always or never hold.
func checkPercent(text string, s SLO) error {
	switch {
	case s.Percent > 100:
		return fmt.Errorf("objective %q: %g%% is not a share: want 0%% to 100%%", text, s.Percent)
	case s.Percent == 0 && s.Op == Less, s.Percent == 100 && s.Op == Greater:
		return fmt.Errorf("objective %q: no share is %s %g%%: write %s=", text, s.Op, s.Percent, s.Op)
	case s.Percent == 0 && s.Op == GreaterEqual, s.Percent == 100 && s.Op == LessEqual:
		return fmt.Errorf("objective %q: every share is %s %g%%", text, s.Op, s.Percent)
	}
	return nil
}

func duration(text, word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil {
		return 0, fmt.Errorf("objective %q: %q is not a duration such as 500ms or 5s", text, word)
	}
	if d <= 0 {
		return 0, fmt.Errorf("objective %q: the bound %s is not above 0", text, word)
	}
	return d, nil
}

// ParseGoal reads a goal as written on the command line: NAME=SLO; SLO.
func ParseGoal(text string) (Goal, error) {
	name, rest, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	// An operator's own "=" must not pass for the one after the name.
	if !ok || !goalName.MatchString(name) {
		return Goal{}, fmt.Errorf("goal %q is not understood: want NAME=SLO; SLO, the name of letters, digits and dashes", text)
	}
	g := Goal{Name: name}
	parts := strings.Split(rest, ";")
	for i, part := range parts {
		if strings.TrimSpace(part) == "" {
			continue
		}
		if begins.MatchString(part) && !query.MatchString(strings.TrimSpace(part)) && i+1 < len(parts) {
			parts[i+1] = part + ";" + parts[i+1] // a semicolon within the query
			continue
		}
		s, err := Parse(part)
		if err != nil {
			return Goal{}, fmt.Errorf("goal %q: %w", name, err)
		}
		g.SLOs = append(g.SLOs, s)
	}
	if len(g.SLOs) == 0 {
		return Goal{}, fmt.Errorf("goal %q has no objective: want NAME=SLO; SLO", name)
	}
	return g, nil
}

// begins matches the beginning of an objective on a query.
var begins = regexp.MustCompile(`^\s*query\s+'`)

var goalName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// Texts returns the goal's objectives as they were written.
func (g Goal) Texts() []string {
	texts := make([]string, len(g.SLOs))
	for i, s := range g.SLOs {
		texts[i] = s.String()
	}
	return texts
}

// Verdict judges a step, a goal or a run. Unknown never counts as pass.
type Verdict string

// The verdicts of a step.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive" // the observations do not decide
	Invalid      Verdict = "invalid"      // the tool, or others on its machine, was the bottleneck
)

// Decided reports whether the verdict says anything about the target.
func (v Verdict) Decided() bool { return v == Pass || v == Fail }
