package findings

import (
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// RunOf returns a step as a run of a comparison, with its figures in the order of the milestones.
func RunOf(s result.Step, kind record.ObjectKind, milestones []string, samples []compare.MilestoneSample) compare.Run {
	account := s.Account()
	r := compare.Run{
		Arm: s.Arm, Level: s.Level, Block: s.Replicate, Name: fmt.Sprintf("step %d (%s, block %d)", s.ID, s.Arm, s.Replicate),
		Asked: account.Intended, Missing: account.Intended - account.Ready, Samples: samples,
	}
	// With a short generator, the target's cost per request is still known.
	if !s.Verdict.Decided() && !s.Compared && !(s.AtLeast && s.Verdict == slo.Invalid) {
		r.LeftOut = fmt.Sprintf("is %s: %s", s.Verdict, s.VerdictWhy)
	}
	if s.AtLeast {
		r.Samples = nil
	}
	add := func(kind, metric, unit string, value *float64) {
		if s.AtLeast {
			value = nil // it shows the generator
		}
		r.Figures = append(r.Figures, compare.Figure{Metric: metric, Unit: unit, Kind: kind, Value: value, LeftOut: s.LeftOut[metric]})
	}
	for _, name := range milestones {
		l, ok := s.Latency[name]
		if !ok {
			continue
		}
		add(compare.KindLatency, name+" p50", "s", l.P50)
		add(compare.KindLatency, name+" p90", "s", l.P90)
		add(compare.KindLatency, name+" p95", "s", l.P95)
		add(compare.KindLatency, name+" p99", "s", l.P99)
		add(compare.KindLatency, name+" max", "s", l.Max)
		add(compare.KindLatency, name+" mean", "s", l.Mean)
	}
	if !s.Streams() {
		add(compare.KindRequest, "request p50", "s", s.APIRequests.P50)
		add(compare.KindRequest, "request p99", "s", s.APIRequests.P99)
	}
	add(compare.KindRate, "achieved rate", "/s", s.AchievedRate)
	r.Figures[len(r.Figures)-1].LessIsWorse = true
	for _, m := range kind.Metrics {
		if x, ok := s.Metrics[m.Name]; ok {
			r.Figures = append(r.Figures, compare.Figure{Metric: m.Name, Title: m.Title, Unit: m.Unit, Kind: compare.KindMetric, Value: &x, LessIsWorse: m.LessIsWorse, LeftOut: s.LeftOut[m.Name]})
		}
	}
	for _, source := range slices.Sorted(maps.Keys(s.Resources)) {
		u := s.Resources[source]
		cpu, peak, start := u.CPUSeconds, float64(u.PeakMemory()), float64(u.StartMemory())
		growth := peak - start
		use := []compare.Figure{{Kind: compare.KindCPU, Value: &cpu}, {Kind: compare.KindMemory, Value: &peak, Start: &start}, {Kind: compare.KindGrowth, Value: &growth, Start: &start}}
		for i, m := range record.UseOf(source, "") {
			use[i].Metric, use[i].Unit, use[i].LeftOut = m.Name, m.Unit, s.LeftOut[m.Name]
		}
		r.Figures = append(r.Figures, use...)
	}
	return r
}

func specOf(spec result.ArmsSpec, sequential *stats.Sequential, end stats.End) compare.Spec {
	return compare.Spec{
		Baseline: spec.Names[0], Arms: spec.Names[1:], Params: spec.Params,
		Metric: spec.Metric, Further: spec.Further, Margin: spec.Margin, Alpha: spec.Alpha, Paired: true, Sequential: sequential, End: end,
	}
}

// LeftOf returns the arms that need no further run, of a comparison that goes on until it is decided.
func LeftOf(spec result.ArmsSpec, sequential *stats.Sequential, kind record.ObjectKind, milestones []string, steps []*verdict.Judged) map[design.Pair]bool {
	runs := make([]compare.Run, len(steps))
	for i, s := range steps {
		runs[i] = RunOf(s.Step, kind, milestones, nil)
	}
	return compare.Left(specOf(spec, sequential, stats.Scheduled), runs)
}

// ComparisonOf compares the arms of a comparison; sequential is nil where their steps were fixed.
func ComparisonOf(spec result.ArmsSpec, sequential *stats.Sequential, end stats.End, kind record.ObjectKind, milestones []string, steps []*verdict.Judged) *compare.Comparison {
	var runs []compare.Run
	for _, s := range steps {
		var samples []compare.MilestoneSample
		for _, name := range milestones {
			for _, x := range s.Parts[name] {
				samples = append(samples, compare.MilestoneSample{Milestone: name, Component: x.Component, Sample: x.Sample})
			}
		}
		runs = append(runs, RunOf(s.Step, kind, milestones, samples))
	}
	c := compare.Runs(specOf(spec, sequential, end), runs)
	return &c
}
