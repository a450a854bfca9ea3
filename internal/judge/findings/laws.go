package findings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	// kneeRate is the rate of false discoveries at which a knee is named, and
	// rankAlpha the p-value at which ranks go together.
	kneeRate  = 1 - result.Confidence
	rankAlpha = 1 - result.Confidence
	// lawSeed draws the lots of the tests: the same record must tell the same
	// each time it is read.
	lawSeed = 1
	// othersInLaws is the percentage of the CPUs that other programs may use in
	// a step that laws stand on.
	othersInLaws = 100.0 / 3
	// orderTold is how closely levels and the order of the steps may go together
	// and still be told apart.
	orderTold = 0.95
	// paceShare is how much of the pace a step must have offered to be bound by
	// it.
	paceShare = 0.9
	// leastCPU is how many seconds of CPU a process must have used in a step to
	// count: the system tells those of others in hundredths.
	leastCPU = 0.1
	// curvePoints is how many points a curve has to the highest level, and
	// from there to the limit.
	curvePoints = 24
)

// LawsOf finds the laws of the steps of a search or a sweep, in the order in
// which they were made; nil where there are fewer than two levels, or arms.
func LawsOf(spec result.Spec, made []result.Step) *result.Laws {
	if spec.Arms != nil {
		return nil // the arms are what is compared
	}
	l := &result.Laws{LeftOut: []result.LeftOut{}, List: []result.Law{}}
	var steps []lawStep
	var levels []float64
	for i := range made {
		s := lawStep{Step: &made[i]}
		switch {
		case s.Ending == record.EndGuard:
			s.out = "a guard stopped it"
		case !s.Verdict.Decided():
			s.out = fmt.Sprintf("it is %s: %s", s.Verdict, s.VerdictWhy)
		case slices.ContainsFunc(s.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachStandstill }):
			s.out = "all writes stood still"
		default:
			levels = append(levels, s.LevelReached)
		}
		if s.Bottleneck.By(result.Others) >= othersInLaws {
			s.busy = "other programs used a third of the CPUs"
		} else if n := s.Bottleneck; n != nil && n.CPUBusy != nil && max(*n.CPUBusy, n.CPUPeak) >= fold.CPUsBusy {
			s.busy = "the CPUs were busy"
		}
		if s.out != "" {
			l.LeftOut = append(l.LeftOut, result.LeftOut{Step: s.ID, Why: s.out})
		}
		steps = append(steps, s)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	if len(levels) < 2 {
		return nil
	}
	l.Levels, l.Lowest, l.Highest = len(levels), levels[0], levels[len(levels)-1]

	drafts := []*lawDraft{throughputLaw(spec, steps), latencyLaw(spec, steps, "p50"), latencyLaw(spec, steps, "p99")}
	used := make(map[string]result.Usage)
	for _, s := range steps {
		maps.Copy(used, s.Resources)
	}
	sources := slices.Sorted(maps.Keys(used))
	if !anyOpen(steps) { // else objects come and go
		drafts = append(drafts, timeLaw(spec, steps))
		for _, source := range sources {
			drafts = append(drafts, memoryLaw(spec, steps, source))
		}
	}
	for _, m := range spec.Kind.Metrics {
		if m.Per == nil && m.Of.Fold == record.FoldMost && !m.Everywhere() && !anyOpen(steps) {
			drafts = append(drafts, inPlaceLaw(spec, steps, m.Called(), result.LawCount, m.Unit, func(s lawStep) float64 { return s.Metrics[m.Name] }))
		}
	}
	for _, source := range sources {
		drafts = append(drafts, cpuLaw(spec, steps, source))
	}
	nameKnees(drafts)
	for _, d := range drafts {
		d.test()
		l.List = append(l.List, d.Law)
	}
	return l
}

type lawStep struct {
	*result.Step
	out  string // why no fit is based on it
	busy string // why only one of memory is
}

func anyOpen(steps []lawStep) bool {
	return slices.ContainsFunc(steps, func(s lawStep) bool { return s.Open })
}

// ownObjects is how many objects the step itself asked for.
func (s lawStep) ownObjects(arrived string) int {
	if a := s.Arrivals; s.Open && a != nil {
		return a.WarmUp + a.Judged - a.Dropped
	}
	return s.Latency[arrived].N
}

// lawDraft is a law that is being made.
type lawDraft struct {
	result.Law
	knee *stats.Knee
	x, y []float64
}

func newLawDraft(name, of, x, xUnit, yUnit string) *lawDraft {
	return &lawDraft{Law: result.Law{
		Name: name, Of: of, X: x, XUnit: xUnit, YUnit: yUnit,
		Points: []result.LawPoint{}, LeftOut: []result.LeftOut{}, Warnings: []string{}, Curve: []result.CurvePoint{},
	}}
}

func (d *lawDraft) leaveOut(step int, why string) {
	d.LeftOut = append(d.LeftOut, result.LeftOut{Step: step, Why: why})
}

// passes over a step that the law does not stand on.
func (d *lawDraft) passes(s lawStep) bool {
	if s.out == "" && s.busy != "" {
		d.leaveOut(s.ID, s.busy)
	}
	return s.out != "" || s.busy != ""
}

func (d *lawDraft) warn(texts ...string) { d.Warnings = append(d.Warnings, texts...) }

func (d *lawDraft) addPoint(step int, x, y float64) {
	d.x, d.y = append(d.x, x), append(d.y, y)
	d.Points = append(d.Points, result.LawPoint{Step: step, X: result.Round(x, 6), Y: result.Digits(y)})
}

// test takes back a fit that no test supports: the figures stay.
func (d *lawDraft) test() {
	if d.USL == nil && d.Line == nil {
		return
	}
	d.testPeak()
	if d.Knee != nil || d.USL != nil && d.USL.Peak != nil {
		d.warnOrder()
		return
	}
	p := stats.RankP(d.x, d.y, lawSeed)
	d.P = result.Significant(p)
	why := ""
	if p > rankAlpha {
		why = fmt.Sprintf("no trend is shown (by ranks, p = %.2g)", p)
	} else if order := orderOfSteps(len(d.x)); d.warnOrder() {
	} else if slope, _, err := stats.FitPlane(d.x, order, d.y, result.Confidence); err == nil && slope.Lo <= 0 && slope.Hi >= 0 {
		why = "it may hang on the order of the steps instead"
	}
	if why != "" {
		d.Refused, d.USL, d.Line, d.Misfit, d.Curve, d.NoKnee = why, nil, nil, nil, []result.CurvePoint{}, ""
	}
}

// warnOrder warns where the levels rose with the order of the steps, and reports
// whether they did.
func (d *lawDraft) warnOrder() bool {
	if math.Abs(stat.Correlation(d.x, orderOfSteps(len(d.x)), nil)) <= orderTold {
		return false
	}
	d.warn("the levels rose with the order of the steps: what changes with time alone is counted too")
	return true
}

// hangsOnOrder reports whether a bend at a level may be what changed with the order
// of the steps instead, where the two can be told apart.
func (d *lawDraft) hangsOnOrder(at float64) bool {
	order := orderOfSteps(len(d.x))
	return math.Abs(stat.Correlation(d.x, order, nil)) <= orderTold && !stats.BesideOrder(d.x, d.y, order, at, result.Confidence)
}

// testPeak takes back a peak that may be what changed with the order of the steps.
func (d *lawDraft) testPeak() {
	if d.USL == nil || d.USL.Peak == nil || !d.hangsOnOrder(*d.USL.Peak.Level.Value) {
		return
	}
	d.USL.Peak, d.USL.NoPeak = nil, "no peak is shown: it may hang on the order of the steps instead"
}

func orderOfSteps(n int) []float64 {
	order := make([]float64, n)
	for i := range order {
		order[i] = float64(i)
	}
	return order
}

// setBasis notes what the fit is based on.
func (d *lawDraft) setBasis() {
	levels := slices.Compact(slices.Sorted(slices.Values(d.x)))
	if d.Levels = len(levels); d.Levels > 0 {
		d.Lowest, d.Highest = result.Round(levels[0], 6), result.Round(levels[len(levels)-1], 6)
		d.Limit = result.Round(stats.Reach*d.Highest, 6)
	}
}

// drawCurve notes the law's curve: to the highest level that was measured, and as
// finely to the limit.
func (d *lawDraft) drawCurve(from, highest float64, at func(float64) (stats.Estimate, error)) {
	for i := range 2*curvePoints + 1 {
		x := from + (highest-from)*float64(i)/curvePoints
		if i > curvePoints {
			x = highest + (stats.Reach-1)*highest*float64(i-curvePoints)/curvePoints
		}
		e, err := at(x)
		if err != nil || i > curvePoints && e.Lo <= 0 {
			return // it is extrapolated no further than it is worth
		}
		d.Curve = append(d.Curve, result.CurvePoint{X: result.Digits(x), Y: result.Digits(e.Value), Lo: result.Significant(e.Lo), Hi: result.Significant(e.Hi)})
	}
}

func levelName(spec result.Spec) (name, unit string) { return cmp.Or(spec.Axis, "level"), spec.Unit }

// throughputLaw is that of the objects that became ready each second.
func throughputLaw(spec result.Spec, steps []lawStep) *lawDraft {
	name, unit := levelName(spec)
	if anyOpen(steps) {
		name = "offered rate"
	}
	d := newLawDraft("throughput", result.LawThroughput, name, unit, "/s")
	for _, s := range steps {
		x := s.LevelReached
		switch {
		case d.passes(s):
			continue
		case s.AchievedRate == nil:
			d.leaveOut(s.ID, "its rate is not known")
			continue
		case s.Open && s.OfferedRate == nil:
			d.leaveOut(s.ID, "the rate that was offered is not known")
			continue
		case *s.AchievedRate <= 0:
			d.leaveOut(s.ID, "no object was ready")
			continue
		case s.Open:
			x = *s.OfferedRate
		}
		d.addPoint(s.ID, x, *s.AchievedRate)
	}
	d.setBasis()
	if d.Refused = paced(steps); d.Refused != "" {
		return d
	}
	law, err := stats.FitUSL(d.x, d.y, stats.Relative, result.Confidence)
	if err != nil {
		d.Refused = err.Error()
		return d
	}
	d.warn(mixed(spec, steps)...)
	d.warn(law.Warnings...)
	d.USL = &result.USLLaw{Lambda: result.IntervalOf(law.Lambda), Sigma: result.IntervalOf(law.Sigma), Kappa: result.IntervalOf(law.Kappa), NoPeak: law.NoPeak}
	switch {
	case law.Peak == nil:
	case anyOpen(steps) && law.Peak.Throughput.Value > law.Peak.Level.Value:
		d.USL.NoPeak = "the peak would be above what was offered"
	default:
		d.USL.Peak = &result.PeakLaw{Level: result.IntervalOf(law.Peak.Level), Throughput: result.IntervalOf(law.Peak.Throughput)}
	}
	d.Misfit = result.Significant(law.RMS)
	d.drawCurve(law.Lowest, law.Highest, law.At)
	d.seekKnee()
	return d
}

// latencyLaw is that of a quantile of the latency of the arrival milestone.
func latencyLaw(spec result.Spec, steps []lawStep, quantile string) *lawDraft {
	name, unit := levelName(spec)
	d := newLawDraft(spec.Kind.There+" "+quantile, result.LawLatency, name, unit, "s")
	slowest := 0 // steps with too few objects for the quantile
	for _, s := range steps {
		if d.passes(s) {
			continue
		}
		l := s.Latency[spec.Kind.There]
		value, q := l.P50, 0.5
		if quantile == "p99" {
			value, q = l.P99, 0.99
		}
		switch {
		case value == nil:
			d.leaveOut(s.ID, "it falls on objects that were never ready")
			continue
		case *value <= 0:
			d.leaveOut(s.ID, "it is below the resolution")
			continue
		}
		if !stats.Resolves(q, l.N) {
			slowest++
		}
		d.addPoint(s.ID, s.LevelReached, *value)
	}
	d.setBasis()
	law, err := stats.FitLine(d.x, d.y, stats.Relative, result.Confidence)
	if err != nil {
		d.Refused = err.Error()
		return d
	}
	d.warn(mixed(spec, steps)...)
	if slowest > 0 {
		d.warn(fmt.Sprintf("in %d of %d steps it is the maximum: p99 needs 100 objects", slowest, len(d.Points)))
	}
	d.setLine(law, law.Lowest)
	d.seekKnee()
	return d
}

// setLine notes a line that is drawn from some level on.
func (d *lawDraft) setLine(law stats.Line, from float64) {
	d.Line = &result.LineLaw{Intercept: result.IntervalOf(law.Intercept), Slope: result.IntervalOf(law.Slope), Wrong: law.Wrong}
	d.Misfit = result.Significant(law.SD)
	d.warn(law.Warnings...)
	d.drawCurve(from, law.Highest, law.At)
}

// seekKnee looks for a knee. Whether it is named depends on the other laws.
func (d *lawDraft) seekKnee() {
	k, err := stats.FindKnee(d.x, d.y, stats.Relative, result.Confidence, lawSeed)
	if err != nil {
		d.NoKnee = err.Error()
		return
	}
	d.knee = &k
}

// nameKnees names the knees that hold beside the others that were sought: each
// further curve is a further chance to be fooled.
func nameKnees(drafts []*lawDraft) {
	p := make([]float64, len(drafts))
	for i, d := range drafts {
		if p[i] = math.NaN(); d.knee != nil {
			p[i] = d.knee.P
		}
	}
	for i, q := range stats.FalseDiscovery(p) {
		d := drafts[i]
		if d.knee == nil {
			continue
		}
		switch {
		case q > kneeRate:
			d.NoKnee = fmt.Sprintf("none found (p = %.2g, %.2g corrected for the other curves)", d.knee.P, q)
		case d.knee.Gradual:
			d.NoKnee = "none is named: one smooth curve fits as well"
		case !d.knee.Bounded():
			d.NoKnee = "none is named: the levels do not bound where it is"
		case d.hangsOnOrder(d.knee.At.Value):
			d.NoKnee = "none is named: the bend may hang on the order of the steps instead"
		}
		if d.NoKnee != "" {
			continue
		}
		k := &result.KneeLaw{
			At: result.IntervalOf(d.knee.At), Before: result.Digits(d.knee.Before), After: result.Digits(d.knee.After), LogLog: d.knee.LogLog,
			P: result.Digits(d.knee.P), Q: result.Digits(q), Line: []result.CurvePoint{},
		}
		for i := range curvePoints + 1 {
			x := d.knee.Lowest + (d.knee.Highest-d.knee.Lowest)*float64(i)/curvePoints
			if k.LogLog {
				x = d.knee.Lowest * math.Pow(d.knee.Highest/d.knee.Lowest, float64(i)/curvePoints)
			}
			k.Line = append(k.Line, result.CurvePoint{X: result.Digits(x), Y: result.Digits(d.knee.Value(x))})
		}
		d.Knee = k
		if d.Line != nil {
			d.Curve = []result.CurvePoint{} // what bends goes on nobody knows how
		}
	}
}

// timeLaw is that of the time until every object that a step asked for was
// there, by the object: it does not change where the time is linear.
func timeLaw(spec result.Spec, steps []lawStep) *lawDraft {
	d := newLawDraft("time per object", result.LawTime, "objects", "objects", "s")
	d.Refused = paced(steps)
	d.fitOwn(spec, steps, stats.Relative, func(s lawStep) (x, y float64, unknown string) {
		if s.ReachSeconds == nil || *s.ReachSeconds <= 0 {
			return 0, 0, "not every object was ready"
		}
		return float64(s.Account().Intended), *s.ReachSeconds / float64(s.ownObjects(spec.Kind.There)), ""
	})
	return d
}

// cpuLaw is that of the processors that a process kept busy, against the objects
// that were asked for by the second: what it uses without any is the line's
// height at 0, and its slope the CPU time of an object.
func cpuLaw(spec result.Spec, steps []lawStep, source string) *lawDraft {
	d := newLawDraft(source+" CPU", result.LawCPU, "objects a second", "objects/s", "CPUs")
	d.fitOwn(spec, steps, stats.Absolute, func(s lawStep) (x, y float64, unknown string) {
		u, ok := s.Resources[source]
		switch {
		case !ok || s.Seconds <= 0:
			return 0, 0, "it is not known"
		case u.CPUSeconds < leastCPU:
			return 0, 0, fmt.Sprintf("it used less than %g s, too little for a resolution of 0.01 s", leastCPU)
		}
		return float64(s.ownObjects(spec.Kind.There)) / s.Seconds, u.CPUSeconds / s.Seconds, ""
	})
	return d
}

// fitOwn fits a line to what the objects that steps asked for themselves cost,
// unless the law is refused already. Cost is a measurement, or why there is none.
func (d *lawDraft) fitOwn(spec result.Spec, steps []lawStep, noise stats.Noise, cost func(lawStep) (x, y float64, unknown string)) {
	for _, s := range steps {
		if d.passes(s) {
			continue
		}
		if s.ownObjects(spec.Kind.There) == 0 {
			d.leaveOut(s.ID, "it asked for nothing")
		} else if x, y, unknown := cost(s); unknown != "" {
			d.leaveOut(s.ID, unknown)
		} else {
			d.addPoint(s.ID, x, y)
		}
	}
	d.setBasis()
	if d.Refused != "" {
		return
	}
	law, err := stats.FitLine(d.x, d.y, noise, result.Confidence)
	if err != nil {
		d.Refused = err.Error()
		if d.Of == result.LawCPU {
			d.Refused = strings.Replace(d.Refused, "levels", "different rates of objects", 1)
		}
		return
	}
	d.setLine(law, law.Lowest)
}

// memoryLaw is that of the most memory of a process.
func memoryLaw(spec result.Spec, steps []lawStep, source string) *lawDraft {
	return inPlaceLaw(spec, steps, source+" memory", result.LawMemory, "B", func(s lawStep) float64 { return float64(s.Resources[source].PeakMemory()) })
}

// inPlaceLaw is that of the most of something that objects take as long as they
// are in place; 0 is not known. What an earlier, larger load has left behind a
// process keeps for long, so a step with less in place than one before it does not
// show its own load, unless the lab was made anew for it.
func inPlaceLaw(spec result.Spec, steps []lawStep, name, of, unit string, value func(lawStep) float64) *lawDraft {
	d := newLawDraft(name, of, "objects", "objects", unit)
	most, removed, stained := 0, false, false
	for _, s := range steps {
		in := s.Account().Created
		if s.Requests != nil { // of a stream no object stays: the level is what is in place
			in = int(s.LevelReached)
			d.X, d.XUnit = levelName(spec)
		}
		if spec.Kind.FreshPerStep || s.FromEmpty && spec.FreshLab {
			most, removed = 0, false
		}
		removed = removed || s.FromEmpty && most > 0
		y := value(s)
		switch {
		case s.out != "":
		case y <= 0:
			d.leaveOut(s.ID, "it is not known")
		case in < most:
			d.leaveOut(s.ID, fmt.Sprintf("an earlier step had %s in place, and processes keep memory", result.ManyObjects(most)))
		default:
			stained = stained || removed
			d.addPoint(s.ID, float64(in), y)
		}
		most = max(most, in)
	}
	d.setBasis()
	if stained {
		d.warn("some steps began from empty after others: memory of the earlier ones may be left")
	}
	law, err := stats.FitLine(d.x, d.y, stats.Absolute, result.Confidence)
	if err != nil {
		d.Refused = err.Error()
		return d
	}
	d.setLine(law, 0)
	return d
}

// paced says that our own pace is what the rates and times of most steps show,
// "" if it is not.
func paced(steps []lawStep) string {
	bound, of, pace := 0, 0, 0.0
	for _, s := range steps {
		text, ok := strings.CutSuffix(s.Pace, "/s")
		if s.out != "" || s.Open {
			continue
		}
		of++
		p, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || s.OfferedRate == nil || *s.OfferedRate < paceShare*p {
			continue
		}
		bound, pace = bound+1, p
	}
	if 2*bound < of || bound == 0 {
		return ""
	}
	return fmt.Sprintf("in %d of %d steps the pace of %g requests/s was the bottleneck, not the target", bound, of, pace)
}

// mixed says where steps asked for such different numbers of objects that
// their rates and latencies do not compare without a thought.
func mixed(spec result.Spec, steps []lawStep) []string {
	least, most, empty, raised := math.MaxInt, 0, 0, 0
	for _, s := range steps {
		if s.out != "" || s.Open {
			continue
		}
		own := s.ownObjects(spec.Kind.There)
		if own == 0 {
			continue
		}
		least, most = min(least, own), max(most, own)
		if s.FromEmpty {
			empty++
		} else {
			raised++
		}
	}
	if most == 0 || most < 2*least {
		return nil
	}
	text := fmt.Sprintf("the steps asked for between %d and %d objects at once, which changes rates and latencies too", least, most)
	if empty > 1 && raised > 0 {
		text += fmt.Sprintf("; %d steps began from empty, %d added objects", empty, raised)
	}
	return []string{text}
}
