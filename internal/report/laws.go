package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/usage"
)

// laws writes what the steps along the axis tell together, a line for each
// law. Unless explain says so, a law that tells of nothing is left out.
func (p *printer) laws(l *judge.Laws, explain bool) {
	if l == nil {
		return
	}
	shown, hidden := shownLaws(l, explain)
	if len(shown) == 0 {
		return
	}
	p.line("")
	p.line("Along the axis, %s:", lawsBasis(l))
	var rows [][]string
	for _, x := range shown {
		rows = append(rows, []string{x.Name, lawSentence(x)})
		if !explain {
			continue
		}
		for _, more := range lawDetails(x) {
			rows = append(rows, []string{"", "  " + more})
		}
	}
	p.columns("  ", "ll", rows)
	if explain {
		for _, o := range leftOut(l.LeftOut) {
			p.line("  not fitted: %s", o)
		}
	} else if hidden > 0 {
		p.line("  and %d more with --explain", hidden)
	}
}

// lawsBasis says what the fit is based on, of which there must be one.
func lawsBasis(l *judge.Laws) string {
	return strings.TrimSpace(fmt.Sprintf("%d levels from %s to %s %s", l.Levels, Number(l.Lowest), Number(l.Highest), l.List[0].XUnit))
}

// shownLaws are the laws that say something without being asked: all but those
// that were refused for a reason that another has, those of this program, and
// those of processes of which nothing is known for sure. Hidden is how many
// others there are.
func shownLaws(l *judge.Laws, all bool) (shown []judge.Law, hidden int) {
	said := make(map[string]bool)
	for _, x := range l.List {
		process := perObject(x)
		own := process && strings.HasPrefix(x.Name, usage.SourceSelf+" ")
		again := x.Refused != "" && (said[x.Refused] || process)
		unsure := process && x.Line != nil && !above(x.Line.Slope.Lo, 0)
		if !all && (own || again || unsure) {
			hidden++
			continue
		}
		if x.Refused != "" {
			said[x.Refused] = true
		}
		shown = append(shown, x)
	}
	return shown, hidden
}

// perObject reports whether a law is of what objects take.
func perObject(x judge.Law) bool {
	return x.Of == judge.LawMemory || x.Of == judge.LawCPU || x.Of == judge.LawCount
}

func above(x *float64, bound float64) bool { return x != nil && *x > bound }

func lawSentence(x judge.Law) string {
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
func figuresOf(x judge.Law) string {
	if len(x.Points) == 0 {
		return ""
	}
	at := func(a, b judge.LawPoint) int { return cmp.Compare(a.X, b.X) }
	low, high := slices.MinFunc(x.Points, at), slices.MaxFunc(x.Points, at)
	text := "; " + quantity(low.Y, x.YUnit) + " at " + short(low.X)
	if high.X > low.X {
		text += ", " + quantity(high.Y, x.YUnit) + " at " + short(high.X)
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

// quantity is a figure of a law with its unit.
func quantity(x float64, unit string) string {
	switch unit {
	case "s":
		if x < -0.5e-6 {
			return "-" + Seconds(-x)
		}
		return Seconds(math.Abs(x))
	case "B":
		if x < 0 {
			return "-" + byteCount(int64(math.Round(-x)))
		}
		return byteCount(int64(math.Round(x)))
	case "/s":
		return short(x) + "/s"
	}
	return strings.TrimSpace(short(x) + " " + unit)
}

// short is a number to three digits.
func short(x float64) string {
	if a := math.Abs(x); a >= 100 && a < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func span95(i judge.Interval, unit string) string {
	end := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return quantity(*v, unit)
	}
	return "[" + end(i.Lo) + ", " + end(i.Hi) + "]"
}

func withSpan(i judge.Interval, unit string) string {
	if i.Value == nil {
		return "?"
	}
	return quantity(*i.Value, unit) + " " + span95(i, unit)
}

// throughputSentence says how throughput goes along the axis.
func throughputSentence(x judge.Law) string {
	u := x.USL
	if u.Peak != nil {
		text := fmt.Sprintf("highest at %s %s %s: %s", quantity(*u.Peak.Level.Value, ""), x.XUnit, span95(u.Peak.Level, ""), withSpan(u.Peak.Throughput, x.YUnit))
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
		quantity(first.Y, x.YUnit), short(first.X), quantity(last.Y, x.YUnit), short(last.X), x.XUnit, kneeClause(x))
}

// ends are the law's heights at the lowest level and at the highest that was
// measured.
func ends(x judge.Law) (first, last judge.CurvePoint, ok bool) {
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
func kneeClause(x judge.Law) string {
	k := x.Knee
	if k == nil || k.At.Value == nil {
		return ""
	}
	text := fmt.Sprintf("; bends at %s", withSpan(k.At, ""))
	if k.Gradual {
		text += ", perhaps gradually"
	}
	return text
}

// latencySentence says how a latency, or a time, goes along the axis.
func latencySentence(x judge.Law) string {
	slope := func(v float64) string {
		sign := ""
		if v >= 0 {
			sign = "+"
		}
		return sign + quantity(v, x.YUnit)
	}
	if k := x.Knee; k != nil && k.At.Value != nil {
		text := fmt.Sprintf("bends at %s %s", withSpan(k.At, ""), x.XUnit)
		if k.LogLog {
			text += fmt.Sprintf(": grows with the power %s of the level before, %s after", short(k.Before), short(k.After))
		} else {
			text += fmt.Sprintf(": %s per %s before, %s after", slope(k.Before), oneOf(x.XUnit), slope(k.After))
		}
		if k.Gradual {
			text += "; perhaps gradually"
		}
		return text
	}
	l := x.Line
	if l.Slope.Value == nil {
		return "no slope"
	}
	first, last, _ := ends(x)
	from, to := quantity(first.Y, x.YUnit)+" at "+short(first.X), quantity(last.Y, x.YUnit)+" at "+short(last.X)+" "+x.XUnit
	var text string
	switch {
	case above(l.Slope.Lo, 0):
		text = fmt.Sprintf("rises %s per %s %s, from %s to %s", slope(*l.Slope.Value), oneOf(x.XUnit), span95(l.Slope, x.YUnit), from, to)
	case l.Slope.Hi != nil && *l.Slope.Hi < 0:
		text = fmt.Sprintf("falls %s per %s %s, from %s to %s", slope(*l.Slope.Value), oneOf(x.XUnit), span95(l.Slope, x.YUnit), from, to)
	default:
		text = fmt.Sprintf("no significant trend: %s, %s; %s per %s", from, to, span95(l.Slope, x.YUnit), oneOf(x.XUnit))
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
func costSentence(x judge.Law) string {
	l := x.Line
	if l.Slope.Value == nil {
		return "no slope"
	}
	unit := x.YUnit
	if x.Of == judge.LawCPU {
		unit = "s" // processors by objects a second
	}
	per := "object"
	if x.Of == judge.LawMemory && x.XUnit != "objects" {
		per = oneOf(x.XUnit) // of a stream, whose level is what is in place
	}
	text := fmt.Sprintf("no significant growth: %s per %s", span95(l.Slope, unit), per)
	if above(l.Slope.Lo, 0) {
		text = fmt.Sprintf("%s per %s %s, on %s", quantity(*l.Slope.Value, unit), per, span95(l.Slope, unit), withSpan(l.Intercept, x.YUnit))
	}
	if l.Wrong != "" {
		text += "; " + l.Wrong
	}
	return text
}

// lawDetails is what more there is to a law.
func lawDetails(x judge.Law) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if x.Levels > 0 {
		n := len(x.Points)
		add("based on %d %s of %d %s, from %s to %s %s", n, noun(n, "measurement"), x.Levels, noun(x.Levels, "level"), short(x.Lowest), short(x.Highest), x.XUnit)
	}
	if u := x.USL; u != nil {
		add("X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)): lambda %s, sigma %s, kappa %s",
			withSpan(u.Lambda, x.YUnit), withSpan(u.Sigma, ""), withSpan(u.Kappa, ""))
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
		add("mean deviation from the line: %s", quantity(*x.Misfit, x.YUnit))
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
		add("extrapolated to %s %s, twice the highest: %s", short(c.X), x.XUnit, withSpan(judge.Interval{Value: &c.Y, Lo: c.Lo, Hi: c.Hi}, x.YUnit))
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
func leftOut(list []judge.LeftOut) []string {
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
		said = append(said, noun(len(steps[why]), "step")+" "+andList(steps[why])+": "+why)
	}
	return said
}

// lawsPart is what the page says of the laws.
type lawsPart struct {
	Basis string
	// What the key must explain: curves, knees, peaks.
	HasCharts, HasCurve, HasKnee, HasPeak bool

	Groups  []lawGroup
	Rows    []lawView
	LeftOut []string
}

// lawGroup are laws that are shown beside one another.
type lawGroup struct {
	Title, Hint string
	Folds, Open bool // it can be folded away, and is not yet
	Laws        []lawView
	Refused     []lawView
}

type lawView struct {
	judge.Law
	Index int // among the laws of the result
	Title string
	Says  string
	Notes []string
}

// lawTitle is a law's name as a title. Those of processes stay as they are.
func lawTitle(x judge.Law) string {
	if x.Of == judge.LawThroughput || x.Of == judge.LawTime {
		return strings.TrimSuffix(asSentence(x.Name), ".")
	}
	return x.Name
}

// lawsOfPage is nil where there are no laws.
func lawsOfPage(r judge.Result) *lawsPart {
	l := r.Laws
	if l == nil || len(l.List) == 0 {
		return nil
	}
	p := &lawsPart{Basis: lawsBasis(l), LeftOut: leftOut(l.LeftOut)}
	groups := map[string]*lawGroup{
		judge.LawThroughput: {Title: "Rates and times"},
		judge.LawMemory:     {Folds: true, Open: true, Title: "Memory of each process", Hint: "Peak resident memory of a step, against all objects in place."},
		judge.LawCount:      {Folds: true, Title: "What objects take besides", Hint: "The most in a step, against all objects in place."},
		judge.LawCPU:        {Folds: true, Title: "CPU of each process", Hint: "Processors kept busy over a step, against the objects that it asked for by the second."},
	}
	said := make(map[string]bool)
	for i, x := range l.List {
		v := lawView{Law: x, Index: i, Title: lawTitle(x), Says: unbroken(asSentence(lawSentence(x)))}
		p.HasCharts = p.HasCharts || x.Refused == ""
		p.HasCurve = p.HasCurve || len(x.Curve) > 0
		p.HasKnee = p.HasKnee || x.Knee != nil
		p.HasPeak = p.HasPeak || x.USL != nil && x.USL.Peak != nil
		p.Rows = append(p.Rows, v)
		g, ok := groups[x.Of]
		if !ok {
			g = groups[judge.LawThroughput]
		}
		if x.Refused != "" {
			if n := len(g.Refused); n > 0 && g.Refused[n-1].Says == v.Says {
				g.Refused[n-1].Title += ", " + v.Title
			} else {
				g.Refused = append(g.Refused, v)
			}
			continue
		}
		// What was said once need not be said under each chart.
		for _, w := range x.Warnings {
			if !said[w] {
				v.Notes = append(v.Notes, w)
			}
			said[w] = true
		}
		g.Laws = append(g.Laws, v)
	}
	for _, of := range []string{judge.LawThroughput, judge.LawMemory, judge.LawCount, judge.LawCPU} {
		if g := groups[of]; len(g.Laws)+len(g.Refused) > 0 {
			p.Groups = append(p.Groups, *g)
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
