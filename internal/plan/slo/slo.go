// Package slo holds the grammar of service level objectives: what must hold at
// a level for it to count as held.
package slo

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Form is the shape of an objective.
type Form int

// The shapes that the grammar knows.
const (
	Quantile Form = iota // MILESTONE pNN OP DURATION
	All                  // all MILESTONE [within DURATION]
	Errors               // errors OP N%
	Achieved             // achieved OP N%
	Query                // query 'PROMQL' OP VALUE
)

// Op compares what was measured (on its left) with the bound.
type Op string

// The comparisons that the grammar knows.
const (
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// Holds reports whether value OP bound. NaN, a value that is not known, never
// holds.
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
	Milestone string        // of Quantile and All
	Q         float64       // of Quantile: 0.99 for p99
	Op        Op            // of every form but All
	Within    time.Duration // the bound of Quantile and All; 0 with All is the step timeout
	Percent   float64       // the bound of Errors and Achieved
	Expr      string        // of Query
	Value     float64       // the bound of Query
	text      string
}

// String is the objective as it was written.
func (s SLO) String() string { return s.text }

// Goal is a named set of objectives that must all hold: it has a load line of
// its own.
type Goal struct {
	Name string
	SLOs []SLO
}

// Grammar says what Parse accepts, for help and error texts.
const Grammar = `MILESTONE pNN OP DURATION | all MILESTONE [within DURATION] | errors OP N% | achieved OP N% | query 'PROMQL' OP VALUE   (OP is <, <=, > or >=)`

var (
	operator  = `(<=|>=|<|>)`
	quantile  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)\s+[pP]([0-9]+(?:\.[0-9]+)?)\s*` + operator + `\s*(\S+)$`)
	all       = regexp.MustCompile(`^all\s+([A-Za-z][A-Za-z0-9]*)(?:\s+within\s+(\S+))?$`)
	percent   = regexp.MustCompile(`^(errors|achieved)\s*` + operator + `\s*([0-9]+(?:\.[0-9]+)?)\s*%$`)
	promQuery = regexp.MustCompile(`^query\s+'([^']+)'\s*` + operator + `\s*(\S+)$`)
)

// Parse reads one objective.
func Parse(text string) (SLO, error) {
	s := SLO{text: strings.Join(strings.Fields(text), " ")}
	t := strings.TrimSpace(text)
	var err error
	if m := quantile.FindStringSubmatch(t); m != nil {
		s.Form, s.Milestone, s.Op = Quantile, m[1], Op(m[3])
		p, _ := strconv.ParseFloat(m[2], 64)
		if p <= 0 || p >= 100 {
			return s, fmt.Errorf("objective %q: p%s is not a quantile: want more than p0 and less than p100", t, m[2])
		}
		s.Q = math.Round(p*1e6) / 1e8
		s.Within, err = duration(t, m[4])
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
		s.Form = Errors
		if m[1] == "achieved" {
			s.Form = Achieved
		}
		s.Op = Op(m[2])
		s.Percent, _ = strconv.ParseFloat(m[3], 64)
		return s, nil
	}
	if m := promQuery.FindStringSubmatch(t); m != nil {
		s.Form, s.Expr, s.Op = Query, m[1], Op(m[2])
		if s.Value, err = strconv.ParseFloat(m[3], 64); err != nil || math.IsNaN(s.Value) {
			return s, fmt.Errorf("objective %q: %q is not a number", t, m[3])
		}
		return s, nil
	}
	return s, fmt.Errorf("objective %q is not understood: want %s", t, Grammar)
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
	for part := range strings.SplitSeq(rest, ";") {
		if strings.TrimSpace(part) == "" {
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

var goalName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// Texts are the goal's objectives as they were written.
func (g Goal) Texts() []string {
	texts := make([]string, len(g.SLOs))
	for i, s := range g.SLOs {
		texts[i] = s.String()
	}
	return texts
}
