package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// lawSection says what the steps along the axis tell together: a line for each law
// that was found, and one for all curves without any. Unless explain says so, what
// this program itself takes is left out.
func lawSection(l *result.Laws, explain bool) (s Section) {
	if l == nil {
		return s
	}
	t := Table{Align: "ll"}
	hidden := 0
	var steady []string
	for _, x := range l.List {
		switch {
		case x.Refused != "":
		case perObject(x) && x.Line != nil && !above(x.Line.Slope.Lo, 0):
			steady = append(steady, x.Name)
		case !explain && perObject(x) && strings.HasPrefix(x.Name, usage.SourceSelf+" "):
			hidden++
		default:
			t.add(x.Name, lawSentence(x))
			if details := lawDetails(x); explain && !perObject(x) && len(details) > 0 {
				t.add("", strings.Join(details, "; "))
			}
		}
	}
	none := noLaws(l)
	if len(t.Rows) == 0 && len(steady) == 0 {
		if none != "" {
			s.Title = words.Capital(none) + "."
		}
		return s
	}
	s.Title = fmt.Sprintf("Along the axis, %s:", lawsBasis(l))
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

// noLaws says of how many curves no law was found and why in a few words, "" for
// none.
func noLaws(l *result.Laws) string {
	curves := 0
	var whys []string
	for _, x := range l.List {
		if x.Refused == "" {
			continue
		}
		curves++
		if why := refusal(x); !slices.Contains(whys, why) {
			whys = append(whys, why)
		}
	}
	if curves == 0 {
		return ""
	}
	return fmt.Sprintf("no law of %s: %s", words.Counted(curves, "curve"), strings.Join(whys, ", "))
}

// refusal is why there is no law in a few words. That levels are too few has a
// cause where steps were left out.
func refusal(x result.Law) string {
	causes := [][2]string{
		{"the CPUs", "processors busy"}, {"it used less than", "too little CPU time to measure"}, {"ready", "objects that were never ready"},
		{"the pace", "the pace was the bottleneck"}, {"it is not known", "not measured"}, {"keep memory", "too few levels"}, {"a fit needs", "too few levels"}, {"no trend", "no trend"},
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

// lawsBasis says what the fit is based on, of which there must be one.
func lawsBasis(l *result.Laws) string {
	return strings.TrimSpace(fmt.Sprintf("%d levels from %s to %s %s", l.Levels, words.Number(l.Lowest), words.Number(l.Highest), l.List[0].XUnit))
}

// perObject reports whether a law is of what objects take.
func perObject(x result.Law) bool {
	return x.Of == result.LawMemory || x.Of == result.LawCPU || x.Of == result.LawCount
}

func above(x *float64, bound float64) bool { return x != nil && *x > bound }

func lawSentence(x result.Law) string {
	switch {
	case x.Refused != "" && len(x.Points) == 0 && len(x.LeftOut) > 0:
		return "no fit: without " + strings.Join(leftOut(x.LeftOut), "; ")
	case x.Refused != "":
		return "no fit: " + x.Refused + figuresOf(x)
	case x.USL != nil:
		return throughputSentence(x)
	case x.Line != nil && perObject(x):
		return costSentence(x)
	case x.Line != nil:
		return latencySentence(x)
	}
	return "no fit"
}

// figuresOf is what was measured at the lowest level and at the highest, "" where
// that is nothing.
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

// oneOf is one of an axis's unit, such as pod/s of pods/s.
func oneOf(unit string) string {
	what, per, _ := strings.Cut(unit, "/")
	if what = strings.TrimSuffix(what, "s"); per != "" {
		what += "/" + per
	}
	return cmp.Or(what, "level")
}

// throughputSentence says how throughput goes along the axis.
func throughputSentence(x result.Law) string {
	u := x.USL
	if u.Peak != nil {
		text := fmt.Sprintf("highest at %s %s %s: %s", words.Quantity(*u.Peak.Level.Value, ""), x.XUnit, words.Interval(u.Peak.Level, ""), words.WithInterval(u.Peak.Throughput, x.YUnit))
		return text + kneeClause(x)
	}
	first, last, ok := ends(x)
	if !ok {
		return "no curve"
	}
	// The two differ if their intervals do.
	way := "no significant trend"
	if first.Hi != nil && above(last.Lo, *first.Hi) {
		way = "rises"
	} else if last.Hi != nil && above(first.Lo, *last.Hi) {
		way = "falls"
	}
	return fmt.Sprintf("%s: %s at %s, %s at %s %s; no peak is shown%s", way,
		words.Quantity(first.Y, x.YUnit), words.Short(first.X), words.Quantity(last.Y, x.YUnit), words.Short(last.X), x.XUnit, kneeClause(x))
}

// ends are the law's heights at the lowest level and at the highest that was
// measured.
func ends(x result.Law) (first, last result.CurvePoint, ok bool) {
	for _, c := range x.Curve {
		if c.X < x.Lowest*(1-1e-6) {
			continue
		}
		if !ok {
			first, ok = c, true
		}
		if c.X <= x.Highest*(1+1e-6) {
			last = c
		}
	}
	return first, last, ok
}

// kneeClause tells of a knee, "" where there is none.
func kneeClause(x result.Law) string {
	k := x.Knee
	if k == nil || k.At.Value == nil {
		return ""
	}
	return fmt.Sprintf("; bends at %s", words.WithInterval(k.At, ""))
}

// latencySentence says how a latency, or a time, goes along the axis.
func latencySentence(x result.Law) string {
	slope := func(v float64) string {
		sign := ""
		if v >= 0 {
			sign = "+"
		}
		return sign + words.Quantity(v, x.YUnit)
	}
	if k := x.Knee; k != nil && k.At.Value != nil {
		text := fmt.Sprintf("bends at %s %s", words.WithInterval(k.At, ""), x.XUnit)
		if k.LogLog {
			text += fmt.Sprintf(": grows with the power %s of the level before, %s after", words.Short(k.Before), words.Short(k.After))
		} else {
			text += fmt.Sprintf(": %s per %s before, %s after", slope(k.Before), oneOf(x.XUnit), slope(k.After))
		}
		return text
	}
	l := x.Line
	if l.Slope.Value == nil {
		return "no slope"
	}
	first, last, _ := ends(x)
	from, to := words.Quantity(first.Y, x.YUnit)+" at "+words.Short(first.X), words.Quantity(last.Y, x.YUnit)+" at "+words.Short(last.X)+" "+x.XUnit
	var text string
	switch {
	case above(l.Slope.Lo, 0):
		text = fmt.Sprintf("rises %s per %s %s, from %s to %s", slope(*l.Slope.Value), oneOf(x.XUnit), words.Interval(l.Slope, x.YUnit), from, to)
	case l.Slope.Hi != nil && *l.Slope.Hi < 0:
		text = fmt.Sprintf("falls %s per %s %s, from %s to %s", slope(*l.Slope.Value), oneOf(x.XUnit), words.Interval(l.Slope, x.YUnit), from, to)
	default:
		text = fmt.Sprintf("no significant trend: %s, %s; %s per %s", from, to, words.Interval(l.Slope, x.YUnit), oneOf(x.XUnit))
	}
	if l.Wrong != "" {
		return text + "; " + l.Wrong
	}
	if x.NoKnee != "" {
		text += "; no knee found"
	}
	return text
}

// costSentence says what an object costs in memory or processors.
func costSentence(x result.Law) string {
	l := x.Line
	if l.Slope.Value == nil {
		return "no slope"
	}
	unit := x.YUnit
	if x.Of == result.LawCPU {
		unit = "s" // processors by objects a second
	}
	per := "object"
	if x.Of == result.LawMemory && x.XUnit != "objects" {
		per = oneOf(x.XUnit) // of a stream, whose level is what is in place
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

// lawDetails is what more there is to a law.
func lawDetails(x result.Law) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if x.Levels > 0 {
		n := len(x.Points)
		add("based on %d %s of %d %s, from %s to %s %s", n, words.Noun(n, "measurement"), x.Levels, words.Noun(x.Levels, "level"), words.Short(x.Lowest), words.Short(x.Highest), x.XUnit)
	}
	if u := x.USL; u != nil {
		add("X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)): lambda %s, sigma %s, kappa %s",
			words.WithInterval(u.Lambda, x.YUnit), words.WithInterval(u.Sigma, ""), words.WithInterval(u.Kappa, ""))
		if u.NoPeak != "" {
			add("%s", u.NoPeak)
		}
	}
	if x.P != nil {
		add("ranks: p = %.2g", *x.P)
	}
	switch {
	case x.Misfit == nil || x.Line != nil && x.Knee != nil:
	case perObject(x):
		add("mean deviation from the line: %s", words.Quantity(*x.Misfit, x.YUnit))
	default:
		add("mean deviation from the fit: %.1f %%", 100**x.Misfit)
	}
	if k := x.Knee; k != nil {
		add("knee: p = %.2g, %.2g corrected for the other curves", k.P, k.Q)
	} else if x.NoKnee != "" {
		add("knee: %s", x.NoKnee)
	}
	if n := len(x.Curve); n > 0 && x.Curve[n-1].X > x.Highest {
		c := x.Curve[n-1]
		add("extrapolated to %s %s, twice the highest: %s", words.Short(c.X), x.XUnit, words.WithInterval(result.Interval{Value: &c.Y, Lo: c.Lo, Hi: c.Hi}, x.YUnit))
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

// lawsPart is what the page says of the laws.
type lawsPart struct {
	Basis string
	// What the key must explain: curves, knees, peaks.
	HasCharts, HasCurve, HasKnee, HasPeak bool

	Groups  []lawGroup
	None    string // why there is no law of the others, "" where each curve has one
	LeftOut []string
}

// lawGroup are laws that are shown beside one another.
type lawGroup struct {
	Title, Hint string
	Folds, Open bool // it can be folded away, and is not yet
	Laws        []lawView
}

type lawView struct {
	result.Law
	Index int // among the laws of the result
	Notes []string
}

// lawSays is what a law says as the page shows it.
func lawSays(x result.Law) string { return unbroken(words.Sentence(lawSentence(x))) }

// lawTitle is a law's name as a title. Those of processes stay as they are.
func lawTitle(x result.Law) string {
	if x.Of == result.LawThroughput || x.Of == result.LawTime {
		return strings.TrimSuffix(words.Sentence(x.Name), ".")
	}
	return x.Name
}

// lawsOfPage is nil where there are no laws.
func lawsOfPage(r result.Result) *lawsPart {
	l := r.Laws
	if l == nil || len(l.List) == 0 {
		return nil
	}
	p := &lawsPart{Basis: lawsBasis(l), LeftOut: leftOut(l.LeftOut)}
	groups := []struct {
		of []string
		lawGroup
	}{
		{of: []string{result.LawThroughput, result.LawLatency, result.LawTime}, lawGroup: lawGroup{Title: "Rates and times"}},
		{of: []string{result.LawMemory}, lawGroup: lawGroup{Folds: true, Open: true, Title: "Memory of each process", Hint: "Peak resident memory of a step, against all objects in place."}},
		{of: []string{result.LawCount}, lawGroup: lawGroup{Folds: true, Title: "What objects take besides", Hint: "The most in a step, against all objects in place."}},
		{of: []string{result.LawCPU}, lawGroup: lawGroup{Folds: true, Title: "CPU of each process", Hint: "Processors kept busy over a step, against the objects that it asked for by the second."}},
	}
	if p.None = noLaws(l); p.None != "" {
		p.None = words.Sentence(p.None)
	}
	said := make(map[string]bool)
	for i, x := range l.List {
		p.HasCharts = p.HasCharts || x.Refused == ""
		p.HasCurve = p.HasCurve || len(x.Curve) > 0
		p.HasKnee = p.HasKnee || x.Knee != nil
		p.HasPeak = p.HasPeak || x.USL != nil && x.USL.Peak != nil
		if x.Refused != "" {
			continue
		}
		v := lawView{Law: x, Index: i}
		// What was said once need not be said under each chart.
		for _, w := range x.Warnings {
			if !said[w] {
				v.Notes = append(v.Notes, w)
			}
			said[w] = true
		}
		for k := range groups {
			if slices.Contains(groups[k].of, x.Of) {
				groups[k].Laws = append(groups[k].Laws, v)
			}
		}
	}
	for _, g := range groups {
		if len(g.Laws) > 0 {
			p.Groups = append(p.Groups, g.lawGroup)
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
