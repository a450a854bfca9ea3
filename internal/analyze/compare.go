package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/stats"
)

// ArmsSpec is what must be known of a comparison, besides its history.
type ArmsSpec struct {
	Names  []string // the baseline first
	Params map[string]map[string]string
	// Metric is the one that decides, such as "ContainersStarted p50"; it was
	// declared before the runs.
	Metric string
	Margin float64 // 0.05 is 5 %
	Alpha  float64
}

// Comparison is how arms compare with the baseline.
type Comparison struct {
	Baseline string  `json:"baseline"`
	Metric   string  `json:"metric"` // that decides
	Margin   float64 `json:"margin"`
	Alpha    float64 `json:"alpha"`
	// Arms are each arm's parameters.
	Arms   map[string]map[string]string `json:"arms"`
	Levels []LevelComparison            `json:"levels"`
}

// LevelComparison compares one arm with the baseline at one level.
type LevelComparison struct {
	Level   float64       `json:"level"`
	Arm     string        `json:"arm"`
	Verdict stats.Verdict `json:"verdict"`
	Why     string        `json:"why"`
	// MoreRuns is how many further runs of each arm are likely to decide what
	// is inconclusive; -1 says that no sensible number would, 0 that it is
	// decided or that nothing can be said.
	MoreRuns int `json:"moreRuns"`
	// Excluded says which runs do not count, and why.
	Excluded []string   `json:"excluded"`
	Primary  Compared   `json:"primary"`
	Others   []Compared `json:"others"` // descriptive
	// Distance and Superiority are effect sizes over all objects of the
	// deciding metric's milestone: the Kolmogorov-Smirnov distance, and the
	// probability that an object of the arm is later than one of the baseline.
	// PermutationP is the share of all ways to swap runs within blocks with a
	// distance as large.
	Distance     *float64 `json:"distance"`
	Superiority  *float64 `json:"superiority"`
	PermutationP *float64 `json:"permutationP"`
}

// Compared is one metric in the runs of two arms, block by block. A null is a
// quantile that was never reached.
type Compared struct {
	Metric   string     `json:"metric"`
	Unit     string     `json:"unit"`
	Baseline []*float64 `json:"baseline"`
	Arm      []*float64 `json:"arm"`
	// Change is relative to the baseline, with its interval; + is more.
	Change *float64 `json:"change"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	// FalseDiscovery is the rate of false discoveries among the metrics that
	// differ at least as clearly as this one.
	FalseDiscovery *float64 `json:"falseDiscovery,omitempty"`
}

// maxMoreRuns is the most further runs that are worth proposing.
const maxMoreRuns = 200

// compare compares the arms of a comparison whose steps were made.
func (b *Builder) compare(spec ArmsSpec) *Comparison {
	c := &Comparison{Baseline: spec.Names[0], Metric: spec.Metric, Margin: spec.Margin, Alpha: spec.Alpha, Arms: spec.Params, Levels: []LevelComparison{}}
	var levels []float64
	for _, s := range b.steps {
		if s.done && !slices.Contains(levels, s.Level) {
			levels = append(levels, s.Level)
		}
	}
	slices.Sort(levels)
	for _, level := range levels {
		for _, arm := range spec.Names[1:] {
			c.Levels = append(c.Levels, b.compareAt(spec, level, arm))
		}
	}
	return c
}

// block is one run of the baseline and one of the arm.
type block struct{ a, b *building }

// blocksOf pairs the runs that count.
func (b *Builder) blocksOf(spec ArmsSpec, level float64, arm string) (blocks []block, excluded []string) {
	runs := make(map[int]*block)
	for _, s := range b.steps {
		if !s.done || s.Level != level || s.Arm != arm && s.Arm != spec.Names[0] {
			continue
		}
		if v := s.Verdict; !v.Decided() {
			excluded = append(excluded, fmt.Sprintf("step %d (%s, block %d) is %s: %s", s.ID, s.Arm, s.Replicate, v, s.VerdictWhy))
			continue
		}
		p := runs[s.Replicate]
		if p == nil {
			p = &block{}
			runs[s.Replicate] = p
		}
		if s.Arm == arm {
			p.b = s
		} else {
			p.a = s
		}
	}
	for _, replicate := range slices.Sorted(maps.Keys(runs)) {
		p := runs[replicate]
		if p.a == nil || p.b == nil {
			excluded = append(excluded, fmt.Sprintf("block %d has no run of both arms that counts", replicate))
			continue
		}
		blocks = append(blocks, *p)
	}
	return blocks, excluded
}

func (b *Builder) compareAt(spec ArmsSpec, level float64, arm string) LevelComparison {
	blocks, excluded := b.blocksOf(spec, level, arm)
	if excluded == nil {
		excluded = []string{}
	}
	c := LevelComparison{Level: level, Arm: arm, Excluded: excluded, Others: []Compared{}}
	confidence := 1 - spec.Alpha
	metrics := b.metricsOf(blocks)
	var ps []float64
	for _, m := range metrics {
		compared, change, err := m.compared(blocks, confidence)
		if m.name == spec.Metric {
			c.Primary = compared
			c.decide(spec, m, change, err, blocks)
			continue
		}
		p := math.NaN()
		if err == nil {
			p = change.P()
		}
		ps = append(ps, p)
		c.Others = append(c.Others, compared)
	}
	for i, q := range stats.FalseDiscovery(ps) {
		c.Others[i].FalseDiscovery = finite(q)
	}
	if c.Primary.Metric == "" {
		c.Primary = Compared{Metric: spec.Metric, Unit: "s", Baseline: []*float64{}, Arm: []*float64{}}
		c.Verdict, c.Why = stats.Undecided, "no two runs of both arms count"
	}
	c.effect(spec, blocks)
	return c
}

// decide is the verdict of the metric that decides.
func (c *LevelComparison) decide(spec ArmsSpec, m metric, change stats.Change, err error, blocks []block) {
	never := func(pick func(block) *building) (never, all int) {
		for _, p := range blocks {
			o := pick(p).Objects
			never, all = never+o.Intended-o.Ready, all+o.Intended
		}
		return never, all
	}
	neverA, allA := never(func(p block) *building { return p.a })
	neverB, allB := never(func(p block) *building { return p.b })
	missing := fmt.Sprintf("%d of %d objects never got there (%s: %d of %d)", neverB, allB, spec.Names[0], neverA, allA)
	if err != nil {
		c.Verdict, c.Why = stats.Undecided, err.Error()
		nilsOf := func(list []*float64) int {
			n := 0
			for _, v := range list {
				if v == nil {
					n++
				}
			}
			return n
		}
		if a, b := nilsOf(c.Primary.Baseline), nilsOf(c.Primary.Arm); len(blocks) > 0 && a == 0 && b == len(blocks) {
			c.Verdict, c.Why = stats.Worse, fmt.Sprintf("%s was never reached: %s", spec.Metric, missing)
		}
		return
	}
	c.Verdict = change.Judge(spec.Margin, m.lessIsWorse)
	c.Why = fmt.Sprintf("%s changed by %s, %g%% interval %s to %s, margin %s, %d runs each",
		spec.Metric, percent(change.D), 100*(1-spec.Alpha), percent(change.Lo), percent(change.Hi), percent(spec.Margin), change.Blocks)
	share := func(n, all int) float64 { return float64(n) / float64(max(all, 1)) }
	if share(neverB, allB) > share(neverA, allA) && c.Verdict != stats.Worse && c.Verdict != stats.Undecided {
		c.Why = fmt.Sprintf("%s of those that got there, but %s", c.Why, missing)
		c.Verdict = stats.Undecided
		return
	}
	c.MoreRuns = change.MoreBlocks(spec.Margin, 1-spec.Alpha, m.lessIsWorse, maxMoreRuns)
	switch {
	case c.MoreRuns > 0:
		c.Why += fmt.Sprintf("; some %d further runs of each arm are likely to decide", c.MoreRuns)
	case c.MoreRuns < 0:
		c.Why += fmt.Sprintf("; not even %d further runs are likely to decide: the change is about as large as the margin", maxMoreRuns)
	}
	if c.Verdict == stats.Undecided {
		c.Why += fmt.Sprintf("; with this spread %d runs tell changes from about %s on", change.Blocks, percent(stats.Detectable(change.SD, change.Blocks, spec.Margin, 1-spec.Alpha)))
	}
}

func percent(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }

// metric is one figure of a run.
type metric struct {
	name, unit  string
	lessIsWorse bool
	of          func(*building) *float64
}

// metricsOf are the figures that runs have. A maximum is one figure of a run
// like any other.
func (b *Builder) metricsOf(blocks []block) []metric {
	var list []metric
	for _, name := range b.names {
		if name == milestoneDeleted {
			continue
		}
		for _, q := range []struct {
			name string
			of   func(Latency) *float64
		}{
			{"p50", func(l Latency) *float64 { return l.P50 }},
			{"p90", func(l Latency) *float64 { return l.P90 }},
			{"p95", func(l Latency) *float64 { return l.P95 }},
			{"p99", func(l Latency) *float64 { return l.P99 }},
			{"max", func(l Latency) *float64 { return l.Max }},
			{"mean", func(l Latency) *float64 { return l.Mean }},
		} {
			list = append(list, metric{name: name + " " + q.name, unit: "s", of: func(s *building) *float64 {
				if l, ok := s.Latency[name]; ok {
					return q.of(l)
				}
				return nil
			}})
		}
	}
	list = append(list,
		metric{name: "request p50", unit: "s", of: func(s *building) *float64 { return s.Requests.P50 }},
		metric{name: "request p99", unit: "s", of: func(s *building) *float64 { return s.Requests.P99 }},
		metric{name: "achieved rate", unit: "/s", lessIsWorse: true, of: func(s *building) *float64 { return s.AchievedRate }},
	)
	sources := make(map[string]bool)
	for _, p := range blocks {
		for source := range p.a.Resources {
			sources[source] = true
		}
	}
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		usage := func(pick func(Usage) float64) func(*building) *float64 {
			return func(s *building) *float64 {
				u, ok := s.Resources[source]
				if !ok {
					return nil
				}
				return finite(pick(u))
			}
		}
		list = append(list,
			metric{name: source + " CPU", unit: "s", of: usage(func(u Usage) float64 { return u.CPUSeconds })},
			metric{name: source + " memory, most", unit: "B", of: usage(func(u Usage) float64 { return float64(u.PeakRSSBytes) })},
		)
	}
	return list
}

func (m metric) compared(blocks []block, confidence float64) (Compared, stats.Change, error) {
	c := Compared{Metric: m.name, Unit: m.unit, Baseline: []*float64{}, Arm: []*float64{}}
	value := func(p *float64) float64 {
		if p == nil {
			return math.NaN()
		}
		return *p
	}
	var x, y []float64
	for _, p := range blocks {
		a, b := m.of(p.a), m.of(p.b)
		c.Baseline, c.Arm = append(c.Baseline, a), append(c.Arm, b)
		x, y = append(x, value(a)), append(y, value(b))
	}
	change, err := stats.CompareBlocks(x, y, confidence)
	if err == nil {
		c.Change, c.Lo, c.Hi = finite(change.D), finite(change.Lo), finite(change.Hi)
	}
	return c, change, err
}

// effect fills in the effect sizes.
func (c *LevelComparison) effect(spec ArmsSpec, blocks []block) {
	milestone, _, _ := strings.Cut(spec.Metric, " ")
	if len(blocks) == 0 {
		return
	}
	pool := func(swapped []bool, arm bool) stats.Sample {
		var values []float64
		censored := 0
		for i, p := range blocks {
			s := p.a
			if arm != swapped[i] {
				s = p.b
			}
			sample := s.samples[milestone]
			values = append(values, sample.Values()...)
			censored += sample.Censored()
		}
		return stats.NewSample(values, censored)
	}
	none := make([]bool, len(blocks))
	a, b := pool(none, false), pool(none, true)
	if a.N() == 0 || b.N() == 0 {
		return
	}
	c.Distance, c.Superiority = finite(stats.Distance(a, b)), finite(stats.Superiority(a, b))
	if len(blocks) > 1 {
		c.PermutationP = finite(stats.PermuteRuns(len(blocks), func(swapped []bool) float64 {
			return stats.Distance(pool(swapped, false), pool(swapped, true))
		}))
	}
}

// verdict is what the levels come to: the most serious of them.
func (c *Comparison) verdict() (stats.Verdict, string) {
	order := []stats.Verdict{stats.Worse, stats.Undecided, stats.NotWorse, stats.Equivalent, stats.Better}
	if len(c.Levels) == 0 {
		return stats.Undecided, "no run was made"
	}
	worst := slices.MinFunc(c.Levels, func(x, y LevelComparison) int {
		return cmp.Compare(slices.Index(order, x.Verdict), slices.Index(order, y.Verdict))
	})
	why := worst.Why
	if len(c.Levels) > 1 {
		why = fmt.Sprintf("arm %s at %g: %s", worst.Arm, worst.Level, why)
	}
	return worst.Verdict, why
}

// exitCodeOfArms is the exit code of a comparison.
func exitCodeOfArms(v stats.Verdict) int {
	switch v {
	case stats.Better, stats.Equivalent, stats.NotWorse:
		return 0
	case stats.Worse:
		return 1
	}
	return 3
}

// finishComparison puts a comparison in the place of the goals' verdict.
func (b *Builder) finishComparison(r *Result, stop string) {
	c := b.compare(*b.spec.Arms)
	r.Comparison = c
	verdict, why := c.verdict()
	if stop != "" && verdict != stats.Worse {
		verdict, why = stats.Undecided, why+"; "+stop
	}
	r.Verdict, r.Why, r.ExitCode = slo.Verdict(verdict), why, exitCodeOfArms(verdict)
	invalid := 0
	for _, s := range b.steps {
		if s.Verdict == slo.Invalid {
			invalid++
		}
	}
	if verdict == stats.Undecided && invalid > 0 && 2*invalid >= len(b.steps) {
		r.Verdict, r.Why, r.ExitCode = slo.Invalid, fmt.Sprintf("%d of %d runs are invalid; %s", invalid, len(b.steps), why), exitCodeOf(slo.Invalid)
	}
}
