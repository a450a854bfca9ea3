package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Spec says which arms are compared with the baseline, by which metrics, and with what margin.
type Spec struct {
	Baseline string
	Arms     []string // the others
	Params   map[string]map[string]string
	Metric   string   // decides, such as "ContainersStarted p50"; it was declared before the runs
	Further  []string // declared with it; each of all is judged at Alpha by their number
	Margin   float64  // 0.05 is 5%
	Alpha    float64
	Paired   bool // runs with the same Block were made side by side
	Among    int  // comparisons of each metric that are made together; 0 is the product of levels and arms
	// Sequential judges a comparison without a fixed number of runs, else nil. End says how it ended.
	Sequential *stats.Sequential
	End        stats.End
}

// Run is one run of an arm at one level.
type Run struct {
	Arm     string
	Level   float64
	Block   int    // of runs that were made side by side; else the run's number
	Name    string // in messages
	LeftOut string // why the run does not count, or ""

	Asked, Missing int // requested objects, and those that were never ready
	Figures        []Figure
	Samples        []MilestoneSample
}

// Figure is one figure of a run.
type Figure struct {
	Metric, Title, Unit, Kind string // Title is for readers, "" for the metric's name
	LessIsWorse               bool
	Value                     *float64 // nil where it was never reached or is unknown
	Start                     *float64 // the resident memory at the start of the run, of figures of memory
	LeftOut                   string   // why the figure does not count although the run does, or ""
}

// MilestoneSample is the distribution of one milestone's latency in a run.
type MilestoneSample struct {
	Milestone, Component string
	stats.Sample
}

const maxMoreRuns = 200 // that are worth proposing

// Runs compares arms with the baseline at each level with runs of both.
func Runs(spec Spec, runs []Run) Comparison {
	spec.Alpha /= float64(len(spec.metrics()))
	c := Comparison{
		Baseline: spec.Baseline, Metric: spec.Metric, Further: spec.Further, Margin: spec.Margin, Alpha: spec.Alpha,
		Arms: spec.Params, Paired: spec.Paired, Levels: []LevelComparison{},
	}
	levels := make([]float64, len(runs))
	for i, r := range runs {
		levels[i] = r.Level
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	spec.Among = cmp.Or(spec.Among, len(levels)*len(spec.Arms))
	if spec.Sequential != nil {
		spec.Among = max(spec.Sequential.Among, 1)
	}
	c.Among = spec.Among
	for _, level := range levels {
		for _, arm := range spec.Arms {
			c.Levels = append(c.Levels, compareLevel(spec, runs, level, arm))
		}
	}
	return c
}

// metrics returns the declared metrics, the primary first.
func (s Spec) metrics() []string { return append([]string{s.Metric}, s.Further...) }

// sides holds the counting runs of two arms. Where they are paired, a[i] and b[i] are of one block.
type sides struct {
	spec Spec
	a, b []*Run
}

func selectRuns(spec Spec, runs []Run, level float64, arm string) (s sides, excluded []string) {
	s.spec = spec
	excluded = []string{}
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Level != level || r.Arm != arm && r.Arm != spec.Baseline:
		case r.LeftOut != "":
			excluded = append(excluded, r.Name+": "+r.LeftOut)
		case r.Arm == arm:
			s.b = append(s.b, r)
		default:
			s.a = append(s.a, r)
		}
	}
	if !spec.Paired {
		return s, excluded
	}
	byBlock := func(x, y *Run) int { return cmp.Compare(x.Block, y.Block) }
	slices.SortStableFunc(s.a, byBlock)
	slices.SortStableFunc(s.b, byBlock)
	var a, b []*Run
	for i, j := 0, 0; i < len(s.a) || j < len(s.b); {
		switch {
		case j == len(s.b) || i < len(s.a) && s.a[i].Block < s.b[j].Block:
			excluded = append(excluded, fmt.Sprintf("block %d lacks a valid run of one arm", s.a[i].Block))
			i++
		case i == len(s.a) || s.b[j].Block < s.a[i].Block:
			excluded = append(excluded, fmt.Sprintf("block %d lacks a valid run of one arm", s.b[j].Block))
			j++
		default:
			a, b = append(a, s.a[i]), append(b, s.b[j])
			i, j = i+1, j+1
		}
	}
	s.a, s.b = a, b
	return s, excluded
}

// change returns the relative change of a figure from one side to the other, at an error rate.
func (s sides) change(a, b []float64, alpha float64) (stats.Change, error) {
	if s.spec.Paired {
		return stats.CompareBlocks(a, b, 1-alpha)
	}
	return stats.CompareApart(a, b, 1-alpha)
}

// counting returns the runs in which a metric counts, in pairs if they are paired, and why others do not.
func (s sides) counting(metric string) (with sides, out []string) {
	with.spec = s.spec
	leaves := func(r *Run) bool {
		why := r.figure(metric).LeftOut
		if why != "" {
			out = append(out, r.Name+": "+metric+": "+why)
		}
		return why != ""
	}
	if s.spec.Paired {
		for i := range s.a {
			a, b := leaves(s.a[i]), leaves(s.b[i])
			if !a && !b {
				with.a, with.b = append(with.a, s.a[i]), append(with.b, s.b[i])
			}
		}
		return with, out
	}
	with.a = slices.DeleteFunc(slices.Clone(s.a), leaves)
	with.b = slices.DeleteFunc(slices.Clone(s.b), leaves)
	return with, out
}

// unequal says that the runs without a metric differ by arm, so the others may be the better ones, or "".
func (c *LevelComparison) unequal(runs []Run, spec Spec, metric string) string {
	var out, all [2]int
	for _, r := range runs {
		side := slices.Index([]string{spec.Baseline, c.Arm}, r.Arm)
		if r.Level != c.Level || side < 0 {
			continue
		}
		if all[side]++; r.LeftOut != "" || r.figure(metric).LeftOut != "" {
			out[side]++
		}
	}
	if !spec.Paired || stats.Fisher(out[0], all[0], out[1], all[1]) >= leftOutAlike {
		return ""
	}
	return fmt.Sprintf("%d of %d runs of %s do not count, and %d of %d of %s: the rest cannot be compared",
		out[1], all[1], c.Arm, out[0], all[0], spec.Baseline)
}

const leftOutAlike = 0.05 // probability below which it is not chance that more runs of one arm do not count

func compareLevel(spec Spec, runs []Run, level float64, arm string) LevelComparison {
	s, excluded := selectRuns(spec, runs, level, arm)
	c := LevelComparison{
		Level: level, Arm: arm, Excluded: excluded, Runs: [2]int{len(s.a), len(s.b)},
		Others: []Compared{}, Series: []SeriesComparison{}, Warnings: record.Warnings{},
	}
	decisions := c.figures(s)
	for i, metric := range spec.metrics() {
		if why := c.unequal(runs, spec, metric); why != "" {
			decisions[i].Verdict, decisions[i].Why = stats.Undecided, why+"; "+decisions[i].Why
		}
	}
	c.take(decisions)
	c.series(s)
	if x := c.SeriesOf(spec.Metric); x != nil {
		c.Distance, c.Superiority, c.PermutationP = x.Distance, x.Superiority, x.PermutationP
	}
	c.warn(spec)
	return c
}

// SeriesOf returns the distribution of a metric's milestone over all components, or nil.
func (c *LevelComparison) SeriesOf(metric string) *SeriesComparison {
	milestone, _, _ := strings.Cut(metric, " ")
	for i := range c.Series {
		if s := &c.Series[i]; s.Milestone == milestone && s.Component == "" {
			return s
		}
	}
	return nil
}

func (c *LevelComparison) take(list []Decision) {
	first := list[0]
	c.Verdict, c.Why, c.MoreRuns, c.Primary = first.Verdict, first.Why, first.MoreRuns, first.Figure
	c.StrictLo, c.StrictHi, c.Sequential = first.StrictLo, first.StrictHi, first.Sequential
	if len(list) == 1 {
		return
	}
	c.Metrics = list
	var why []string
	for _, d := range list {
		if c.Verdict != stats.Worse && (d.Verdict == stats.Worse || d.Verdict == stats.Undecided) {
			c.Verdict = d.Verdict
		}
		if c.MoreRuns >= 0 {
			c.MoreRuns = cmp.Or(min(d.MoreRuns, 0), max(c.MoreRuns, d.MoreRuns))
		}
		why = append(why, d.Says())
	}
	c.Why = strings.Join(why, "; ")
}

func (c *LevelComparison) figures(s sides) []Decision {
	declared := s.spec.metrics()
	list := make([]Decision, len(declared))
	for i, metric := range declared {
		why := "no run has the metric " + metric
		if len(s.a) == 0 || len(s.b) == 0 {
			why = "an arm has no valid run"
		}
		list[i] = Decision{
			Verdict: stats.Undecided, Why: why,
			Figure: Compared{Metric: metric, Unit: "s", Kind: KindLatency, Baseline: []*float64{}, Arm: []*float64{}},
		}
	}
	if len(s.a) == 0 || len(s.b) == 0 {
		return list
	}
	var ps []float64
	var twins []int // the first of those with the same values
	for _, f := range s.metrics() {
		at := slices.Index(declared, f.Metric)
		with, out := s.counting(f.Metric)
		if at >= 0 {
			c.Excluded = append(c.Excluded, out...)
		}
		if len(with.a) == 0 || len(with.b) == 0 {
			if at >= 0 {
				list[at].Why = cmp.Or(f.Title, f.Metric) + " counts in no run of an arm: " + out[0]
			}
			continue
		}
		compared, change, err := with.compared(f)
		if at >= 0 {
			list[at].Figure = compared
			list[at].decide(with, f.LessIsWorse, change, err)
			continue
		}
		p := math.NaN()
		if err == nil && compared.Change != nil {
			p = change.P()
		}
		// Milestones that were reached at once are one figure, and count once among the discoveries.
		twin := slices.IndexFunc(c.Others, func(x Compared) bool {
			return sameValues(x.Baseline, compared.Baseline) && sameValues(x.Arm, compared.Arm)
		})
		if twin < 0 {
			twin = len(c.Others)
		} else {
			p = math.NaN()
		}
		ps, twins = append(ps, p), append(twins, twin)
		c.Others = append(c.Others, compared)
	}
	q := stats.FalseDiscovery(ps)
	for i, twin := range twins {
		c.Others[i].FalseDiscovery = finite(q[twin])
	}
	return list
}

func sameValues(x, y []*float64) bool {
	return slices.EqualFunc(x, y, func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b })
}

func (s sides) metrics() []Figure {
	var list []Figure
	known := make(map[string]bool)
	for _, r := range slices.Concat(s.a, s.b) {
		for _, f := range r.Figures {
			if !known[f.Metric] {
				known[f.Metric] = true
				list = append(list, f)
			}
		}
	}
	return list
}

func (r *Run) figure(metric string) Figure {
	if i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Metric == metric }); i >= 0 {
		return r.Figures[i]
	}
	return Figure{}
}

func (s sides) compared(f Figure) (Compared, stats.Change, error) {
	c := Compared{Metric: f.Metric, Title: f.Title, Unit: f.Unit, Kind: f.Kind, LessIsWorse: f.LessIsWorse, Baseline: []*float64{}, Arm: []*float64{}}
	of := func(runs []*Run, shown *[]*float64) (values, starts []float64) {
		for _, r := range runs {
			g := r.figure(f.Metric)
			*shown = append(*shown, g.Value)
			values, starts = append(values, orNaN(g.Value)), append(starts, orNaN(g.Start))
		}
		return values, starts
	}
	a, startA := of(s.a, &c.Baseline)
	b, startB := of(s.b, &c.Arm)
	if f.Kind == KindMemory || f.Kind == KindGrowth {
		if c.Note = memoryMismatch(startA, startB); c.Note != "" {
			return c, stats.Change{}, errors.New(c.Note)
		}
	}
	change, err := s.change(a, b, s.spec.Alpha)
	if err != nil {
		c.Note = err.Error()
		if errors.Is(err, stats.ErrFewBlocks) {
			c.Change = finite(ratio(a, b) - 1)
		}
		return c, change, err
	}
	c.Change, c.Lo, c.Hi = finite(change.D), finite(change.Lo), finite(change.Hi)
	return c, change, err
}

// ratio returns the ratio of the geometric means, or NaN.
func ratio(a, b []float64) float64 {
	mean := func(list []float64) float64 {
		sum := 0.0
		for _, v := range list {
			sum += math.Log(v)
		}
		return sum / float64(len(list))
	}
	return math.Exp(mean(b) - mean(a))
}

const sameStart = 0.05 // largest relative difference of starting points at which memory can be compared

// memoryMismatch says why memory cannot be compared: earlier memory of a process keeps it from growing.
func memoryMismatch(a, b []float64) string {
	all := slices.Concat(a, b)
	lo, hi := slices.Min(all), slices.Max(all)
	switch {
	case math.IsNaN(lo):
		return "the memory at the start of the runs is unknown"
	case lo <= 0:
		return ""
	case hi/lo-1 > sameStart:
		return fmt.Sprintf("memory at the start of the runs differs: %s to %s", mebibytes(lo), mebibytes(hi))
	}
	return ""
}

func mebibytes(x float64) string { return number.Text(x/(1<<20), 4) + " MiB" }

func (d *Decision) decide(s sides, lessIsWorse bool, change stats.Change, err error) {
	spec := s.spec
	missing := func(runs []*Run) (missing, asked int) {
		for _, r := range runs {
			missing, asked = missing+r.Missing, asked+r.Asked
		}
		return missing, asked
	}
	missingA, askedA := missing(s.a)
	missingB, askedB := missing(s.b)
	who := fmt.Sprintf("%d of %d objects were never ready (%s: %d of %d)", missingB, askedB, spec.Baseline, missingA, askedA)
	if err != nil {
		d.Verdict, d.Why = stats.Undecided, err.Error()
		always := !slices.Contains(d.Figure.Baseline, nil)
		never := !slices.ContainsFunc(d.Figure.Arm, func(v *float64) bool { return v != nil })
		if always && never && missingB > 0 {
			d.Verdict, d.Why = stats.Worse, fmt.Sprintf("%s was never reached: %s", d.Figure.Called(), who)
		}
		return
	}
	strict, rest := change, ""
	if spec.Sequential != nil {
		rest = d.sequential(s, lessIsWorse)
	} else {
		strict, rest = d.fixed(s, lessIsWorse, change)
	}
	part := func(n, all int) float64 { return float64(n) / float64(max(all, 1)) }
	if part(missingB, askedB) > part(missingA, askedA) && d.Verdict != stats.Worse && d.Verdict != stats.Undecided {
		d.Why = fmt.Sprintf("%s of those that were ready, but %s%s", d.Why, who, rest)
		d.Verdict = stats.Undecided
		return
	}
	d.Why += rest
	if d.Verdict != stats.Undecided || d.Sequential != nil {
		return
	}
	confidence := 1 - spec.Alpha/float64(spec.Among)
	d.MoreRuns = strict.MoreBlocks(spec.Margin, confidence, lessIsWorse, maxMoreRuns)
	if d.MoreRuns < 0 {
		d.Why += fmt.Sprintf("; even %d more runs of each arm would probably not decide: the change is about as large as the margin", maxMoreRuns)
	} else {
		d.Why += fmt.Sprintf("; about %d more runs of each arm would probably decide", d.MoreRuns)
	}
	d.Why += fmt.Sprintf("; with this spread, %d runs detect changes from about %s, four times out of five", change.Blocks, percent(stats.Detectable(change.SD, change.Blocks, spec.Margin, confidence)))
}

// fixed judges a fixed number of runs, and returns further remarks.
func (d *Decision) fixed(s sides, lessIsWorse bool, change stats.Change) (strict stats.Change, rest string) {
	spec := s.spec
	runs := record.Noun{One: "run", Many: "runs"}.Count(len(s.a)) + " each"
	if len(s.a) != len(s.b) {
		runs = fmt.Sprintf("%d and %d runs", len(s.a), len(s.b))
	}
	strict = change
	if spec.Among > 1 {
		strict, _ = s.change(valuesOf(d.Figure.Baseline), valuesOf(d.Figure.Arm), spec.Alpha/float64(spec.Among)) // change had no error
	}
	d.Verdict = stats.JudgeTogether(change, strict, spec.Margin, lessIsWorse)
	d.Why = fmt.Sprintf("%s changed by %s, %g%% interval %s to %s, margin %s, %s", d.Figure.Called(), percent(change.D),
		100*(1-spec.Alpha), percent(change.Lo), percent(change.Hi), share(spec.Margin), runs)
	return strict, d.together(spec, strict)
}

// together names the interval for better and worse where several comparisons are made.
func (d *Decision) together(spec Spec, strict stats.Change) string {
	if spec.Among < 2 {
		return ""
	}
	d.StrictLo, d.StrictHi = finite(strict.Lo), finite(strict.Hi)
	return fmt.Sprintf("; one of %d comparisons: better and worse by the %.4g%% interval, %s to %s",
		spec.Among, 100*(1-spec.Alpha/float64(spec.Among)), percent(strict.Lo), percent(strict.Hi))
}

// sequential judges runs that are made until they decide, and returns further remarks.
func (d *Decision) sequential(s sides, lessIsWorse bool) (rest string) {
	spec := s.spec
	g, err := spec.Sequential.Judge(valuesOf(d.Figure.Baseline), valuesOf(d.Figure.Arm), lessIsWorse, spec.End)
	if err != nil {
		d.Verdict, d.Why = stats.Undecided, err.Error()
		return ""
	}
	d.Sequential = &Sequential{Blocks: g.Blocks, Most: spec.Sequential.Most, Bound: finite(g.Bound), Unbiased: finite(g.Unbiased), SignFlip: finite(g.SignFlip), Predicted: finite(g.Predicted), Done: g.Done, Futile: g.Futile}
	d.Verdict = g.Verdict
	d.Figure.Change, d.Figure.Lo, d.Figure.Hi = finite(g.Change.D), finite(g.Change.Lo), finite(g.Change.Hi)
	d.Why = fmt.Sprintf("after %d of at most %d blocks %s changed by %s, repeated %g%% interval %s to %s (valid at every look), margin %s",
		g.Blocks, spec.Sequential.Most, d.Figure.Called(), percent(g.Change.D), 100*(1-spec.Alpha), percent(g.Change.Lo), percent(g.Change.Hi), share(spec.Margin))
	rest = d.together(spec, g.Strict)
	decided := d.Verdict == stats.Better || d.Verdict == stats.Worse
	if decided && math.Abs(g.Unbiased-g.Change.D) >= worthSaying {
		rest += fmt.Sprintf("; allowing for the early end, about %s", percent(g.Unbiased))
	}
	switch strict := g.Strict.Judge(spec.Margin, lessIsWorse); {
	case decided:
	case strict == stats.Better || strict == stats.Worse:
		rest += fmt.Sprintf("; by the signs of the blocks alone it may be chance (p %s)", number.P(g.SignFlip))
	case g.Futile:
		rest += fmt.Sprintf("; all %d blocks would decide with a probability of %.2g%% only", spec.Sequential.Most, 100*g.Predicted)
	}
	return rest
}

const worthSaying = 0.001 // least difference of an unbiased change that readers see

// Left returns the arms that are decided, or have no chance to be, by the blocks so far.
func Left(spec Spec, runs []Run) map[design.Pair]bool {
	left, seen := make(map[design.Pair]bool), make(map[design.Pair]bool)
	for _, r := range runs {
		pair := design.Pair{Arm: r.Arm, Level: r.Level}
		if r.Arm == spec.Baseline || seen[pair] {
			continue
		}
		seen[pair] = true
		s, _ := selectRuns(spec, runs, r.Level, r.Arm)
		if !slices.ContainsFunc(spec.metrics(), func(metric string) bool { return !s.done(metric) }) {
			left[pair] = true
		}
	}
	return left
}

// done reports whether no further run decides a metric.
func (s sides) done(metric string) bool {
	var a, b []float64
	less := false
	s, _ = s.counting(metric)
	for i := range s.a {
		from, to := s.a[i].figure(metric), s.b[i].figure(metric)
		a, b, less = append(a, orNaN(from.Value)), append(b, orNaN(to.Value)), from.LessIsWorse
	}
	g, err := s.spec.Sequential.Judge(a, b, less, stats.Scheduled)
	return err == nil && g.Done
}

func valuesOf(list []*float64) []float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = orNaN(v)
	}
	return values
}

func (c *LevelComparison) misleads(series, format string, args ...any) {
	c.Warnings.Add(record.Warning{Kind: record.WarningShape, Text: fmt.Sprintf(format, args...), Places: []string{series}})
}

func (c *LevelComparison) warn(spec Spec) {
	for _, x := range c.Series {
		name := x.Milestone
		if x.Component != "" {
			name += " of " + x.Component
		}
		var with []string
		if x.Baseline.Forms > 1 {
			with = append(with, spec.Baseline)
		}
		if x.Arm.Forms > 1 {
			with = append(with, c.Arm)
		}
		if len(with) > 0 {
			c.misleads(name, "more than one peak in %s: one percentile does not describe it, see the distribution", strings.Join(with, " and "))
		}
		var more, less []string
		for _, s := range x.Shifts {
			switch {
			case s.Lo == nil || s.Hi == nil:
			case *s.Lo > 0:
				more = append(more, stats.QuantileName(s.Q))
			case *s.Hi < 0:
				less = append(less, stats.QuantileName(s.Q))
			}
		}
		if len(more) > 0 && len(less) > 0 {
			c.misleads(name, "slower at %s and faster at %s: one percentile does not describe the change", strings.Join(more, ", "), strings.Join(less, ", "))
		}
	}
}

// LinesDecide reports whether load lines decide, and not levels.
func (c Comparison) LinesDecide() bool { return len(c.Lines) > 0 && c.Decides != ByLevels }

// Verdict returns the most serious verdict of the levels or lines.
func (c Comparison) Verdict() (stats.Verdict, string) {
	if c.Refused != "" {
		return stats.Undecided, c.Refused
	}
	order := []stats.Verdict{stats.Worse, stats.Undecided, stats.NotWorse, stats.Equivalent, stats.Better}
	type opinion struct {
		verdict   stats.Verdict
		part, why string
	}
	var list []opinion
	if c.LinesDecide() {
		for _, l := range c.Lines {
			list = append(list, opinion{l.Verdict, "goal " + l.Goal, l.Why})
		}
	} else {
		for _, l := range c.Levels {
			list = append(list, opinion{l.Verdict, fmt.Sprintf("arm %s at %g", l.Arm, l.Level), l.Why})
		}
	}
	if len(list) == 0 {
		return stats.Undecided, "no run was made"
	}
	worst := slices.MinFunc(list, func(x, y opinion) int {
		return cmp.Compare(slices.Index(order, x.verdict), slices.Index(order, y.verdict))
	})
	if len(list) > 1 {
		worst.why = worst.part + ": " + worst.why
	}
	return worst.verdict, worst.why
}

func percent(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }

// share writes a percentage without a sign, such as a margin.
func share(x float64) string { return number.Text(100*x, 4) + "%" }

func orNaN(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// finite rounds x to nine digits after the point; it returns nil where x is not finite.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	if r := rounded(x); !math.IsInf(r, 0) {
		x = r
	}
	return &x
}
