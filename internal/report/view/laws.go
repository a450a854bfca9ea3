package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// lawSection shows the costs of an object. Only explain includes this program itself.
func lawSection(l *result.Laws, explain bool) (s Section) {
	if l == nil {
		return s
	}
	t := Table{Align: "ll"}
	hidden := 0
	var steady []string
	for _, x := range l.List {
		switch {
		case x.Line == nil:
		case !above(x.Line.Slope.Lo, 0):
			steady = append(steady, x.Name)
		case !explain && strings.HasPrefix(x.Name, usage.SourceSelf+" "):
			hidden++
		default:
			t.add(x.Name, costSentence(x))
		}
	}
	none := noLaws(l)
	if len(t.Rows) == 0 && len(steady) == 0 {
		if none != "" {
			s.Title = words.Capital(none) + "."
		}
		return s
	}
	s.Title = fmt.Sprintf("Cost per object, by %s:", lawsBasis(l))
	s.table(2, t)
	if hidden > 0 {
		s.linef("  and %d more with --explain", hidden)
	}
	if len(steady) > 0 {
		s.linef("  no significant growth: %s", strings.Join(steady, ", "))
	}
	if none != "" {
		s.linef("  %s", none)
	}
	if explain {
		s.lines("  not fitted: ", leftOut(l.LeftOut)...)
	}
	return s
}

// noLaws says how many figures have no cost and why in a few words, "" for none.
func noLaws(l *result.Laws) string {
	figures := 0
	var whys []string
	for _, x := range l.List {
		if x.Line != nil {
			continue
		}
		figures++
		if why := refusal(x); !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	if figures == 0 {
		return ""
	}
	return fmt.Sprintf("no cost per object found (%s tried): %s", words.Counted(figures, "figure"), strings.Join(whys, ", "))
}

// refusal says why there is no law in a few words. Left out steps explain too few levels.
func refusal(x result.Law) string {
	causes := [][2]string{
		{"the CPUs", "processors busy"}, {"it used less than", "too little CPU time to measure"}, {"it is unknown", "not measured"}, {"keep memory", "too few levels"}, {"a fit needs", "too few levels"}, {"no trend", "no trend"},
	}
	texts := []string{x.Refused}
	if strings.Contains(x.Refused, "a fit needs") {
		for _, o := range x.LeftOut {
			texts = append(texts, o.Why)
		}
	}
	for _, w := range causes {
		if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, w[0]) }) {
			return w[1]
		}
	}
	return x.Refused
}

func lawsBasis(l *result.Laws) string {
	return strings.TrimSpace(fmt.Sprintf("%d levels from %s to %s %s", l.Levels, words.Number(l.Lowest), words.Number(l.Highest), l.Unit))
}

func above(x *float64, bound float64) bool { return x != nil && *x > bound }

func lawSentence(x result.Law) string {
	switch {
	case x.Line != nil:
		return costSentence(x)
	case len(x.Points) == 0 && len(x.LeftOut) > 0:
		return "no fit: without " + strings.Join(leftOut(x.LeftOut), "; ")
	}
	return "no fit: " + x.Refused + figuresOf(x)
}

// figuresOf writes the figures at the lowest level and at the highest, "" for none.
func figuresOf(x result.Law) string {
	if len(x.Points) == 0 {
		return ""
	}
	at := func(a, b result.LawPoint) int { return cmp.Compare(a.X, b.X) }
	low, high := slices.MinFunc(x.Points, at), slices.MaxFunc(x.Points, at)
	text := "; " + words.Quantity(low.Y, x.YUnit) + " at " + words.Short(low.X)
	if high.X > low.X {
		text += ", " + words.Quantity(high.Y, x.YUnit) + " at " + words.Short(high.X)
	}
	return text + " " + x.XUnit
}

// oneOf returns one of an axis's unit, such as pod/s of pods/s.
func oneOf(unit string) string {
	what, per, _ := strings.Cut(unit, "/")
	if what = strings.TrimSuffix(what, "s"); per != "" {
		what += "/" + per
	}
	return cmp.Or(what, "level")
}

func costSentence(x result.Law) string {
	l := x.Line
	if l.Slope.Value == nil {
		return "no slope"
	}
	unit := x.YUnit
	if x.Of == result.LawCPU {
		unit = "s" // processors by objects per second
	}
	per := "object"
	if x.Of == result.LawMemory && x.XUnit != "objects" {
		per = oneOf(x.XUnit) // of a stream, whose level is in place
	}
	text := fmt.Sprintf("no significant growth: %s per %s", words.Interval(l.Slope, unit), per)
	if above(l.Slope.Lo, 0) {
		text = fmt.Sprintf("%s per %s %s, on %s", words.Quantity(*l.Slope.Value, unit), per, words.Interval(l.Slope, unit), words.WithInterval(l.Intercept, x.YUnit))
	}
	if l.Wrong != "" {
		text += "; " + l.Wrong
	}
	return text
}

func lawDetails(x result.Law) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if x.Levels > 0 {
		n := len(x.Points)
		add("based on %d %s of %d %s, from %s to %s %s", n, words.Noun(n, "measurement"), x.Levels, words.Noun(x.Levels, "level"), words.Short(x.Lowest), words.Short(x.Highest), x.XUnit)
	}
	if x.P != nil {
		add("ranks: p %s", number.P(*x.P))
	}
	if x.Misfit != nil {
		add("mean deviation from the line: %s", words.Quantity(*x.Misfit, x.YUnit))
	}
	for _, w := range x.Warnings {
		add("%s", w)
	}
	for _, o := range leftOut(x.LeftOut) {
		add("without %s", o)
	}
	return list
}

// leftOut says which steps were left out for which reasons.
func leftOut(list []result.LeftOut) []string {
	var order []string
	steps := make(map[string][]string)
	for _, o := range list {
		if steps[o.Why] == nil {
			order = append(order, o.Why)
		}
		steps[o.Why] = append(steps[o.Why], fmt.Sprint(o.Step))
	}
	var said []string
	for _, why := range order {
		said = append(said, words.Noun(len(steps[why]), "step")+" "+words.And(steps[why])+": "+why)
	}
	return said
}

type lawsPart struct {
	Basis   string
	Groups  []lawGroup
	None    string // why the other figures have no cost, "" where each has one
	LeftOut []string
}

type lawGroup struct {
	Title, Hint string
	Open        bool // it is not folded away
	Laws        []lawView
}

type lawView struct {
	result.Law
	Index int // among the laws of the result
	Notes []string
}

func lawSays(x result.Law) string { return unbroken(words.Sentence(lawSentence(x))) }

func lawsOfPage(r result.Result) *lawsPart {
	l := r.Laws
	if l == nil {
		return nil
	}
	p := &lawsPart{Basis: lawsBasis(l), LeftOut: leftOut(l.LeftOut)}
	if p.None = noLaws(l); p.None != "" {
		p.None = words.Sentence(p.None)
	}
	said := make(map[string]bool)
	for _, group := range []struct {
		of string
		lawGroup
	}{
		{result.LawMemory, lawGroup{Open: true, Title: "Memory of each process", Hint: "Peak resident memory of a step, against all objects in place."}},
		{result.LawCount, lawGroup{Title: "What objects take besides", Hint: "The most in a step, against all objects in place."}},
		{result.LawCPU, lawGroup{Title: "CPU of each process", Hint: "Processors kept busy over a step, against the objects that it asked for by the second."}},
	} {
		g := group.lawGroup
		for i, x := range l.List {
			if x.Of != group.of || x.Line == nil {
				continue
			}
			v := lawView{Law: x, Index: i}
			for _, w := range x.Warnings {
				if !said[w] { // once, and not under each chart
					v.Notes = append(v.Notes, w)
				}
				said[w] = true
			}
			g.Laws = append(g.Laws, v)
		}
		if len(g.Laws) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	return p
}

// unbroken keeps figures and their units on one line.
func unbroken(text string) string {
	for _, unit := range []string{"s", "ms", "µs", "B", "KiB", "MiB", "GiB", "%"} {
		for _, after := range []string{" ", ",", ".", ";", ":", "]", ")"} {
			text = strings.ReplaceAll(text, " "+unit+after, "\u00a0"+unit+after)
		}
	}
	return text
}

type overheadTable struct {
	Table
	Head  string
	Notes []string
}

// overheadOf returns nil where no real node was measured.
func overheadOf(o *result.Overhead, kind record.ObjectKind) *overheadTable {
	if o == nil {
		return nil
	}
	object := kind.Object
	t := &overheadTable{Head: fmt.Sprintf("Cost of one more %s, from %s in %s", object.One, words.Counted(o.Objects, "start"), words.Counted(o.Steps, "step")),
		Table: Table{"llll", [][]string{{"process", "memory", "CPU time to start", "thousandths of a CPU while it runs"}}}}
	var levels, known bool
	type gap struct{ what, why string }
	var gaps []gap
	of := make(map[gap][]string) // sources
	say := func(source string, s result.Slope, unit, what string) string {
		if s.Unknown != "" {
			g := gap{what, s.Unknown}
			if of[g] == nil {
				gaps = append(gaps, g)
			}
			of[g] = append(of[g], source)
			return "unknown"
		}
		if s.Value == nil {
			return "unknown"
		}
		known = true
		levels = levels || s.From == result.FromLevels && unit == "B"
		if unit == "" { // thousandths
			return words.WithInterval(result.Interval{Value: thousand(s.Value), Lo: thousand(s.Lo), Hi: thousand(s.Hi)}, unit)
		}
		return words.WithInterval(s.Interval, unit)
	}
	for _, c := range o.Costs {
		t.add(c.Source, say(c.Source, c.Memory, "B", "memory"), say(c.Source, c.Start, "s", "CPU time to start"), say(c.Source, c.Stand, "", "CPU while it runs"))
	}
	for _, g := range gaps {
		what := g.what
		if sources := of[g]; len(sources) < len(o.Costs) {
			what += " of " + strings.Join(sources, ", ")
		}
		t.Notes = append(t.Notes, what+" is unknown: "+g.why)
	}
	if !known {
		t.Head, t.Rows = fmt.Sprintf("The cost of one more %s on a real %s is unknown", object.One, kind.Place.One), nil
		return t
	}
	t.Notes = append(t.Notes, fmt.Sprintf("a %s is the average of those that the workload makes", object.One),
		"in brackets 95% intervals; one that includes 0 shows no cost")
	if levels {
		t.Notes = append(t.Notes, "memory is from the fit along the axis where there is one, else from what each step added; growth with time alone counts as the "+object.Many+"' too")
	}
	return t
}

func thousand(x *float64) *float64 {
	if x == nil {
		return nil
	}
	return new(1000**x + 0) // + 0 removes the sign of -0
}

func overheadSection(r result.Result) (s Section) {
	t := overheadOf(r.Overhead, r.ObjectKind)
	if t == nil {
		return s
	}
	s.Title = t.Head + ":"
	s.table(2, t.Table)
	s.lines("  ", t.Notes...)
	return s
}
