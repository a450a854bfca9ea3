package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
)

// FromPlan returns a plan as it was run, for the judge: without options of a load, or a kind of objects.
func FromPlan(p *plan.Plan) (Experiment, error) {
	goals, err := p.GoalsOf()
	if err != nil {
		return Experiment{}, err
	}
	fingerprint, err := p.Fingerprint()
	if err != nil {
		return Experiment{}, err
	}
	published, err := publishedOf(p)
	if err != nil {
		return Experiment{}, err
	}
	signatures, err := signature.Builtin()
	if err != nil {
		return Experiment{}, err
	}
	resolution := 0.0
	if s := p.Axis.Search; s != nil {
		resolution = s.Resolution
	}
	started, _ := time.Parse(time.RFC3339, p.AsRun.Started) // zero is unknown; the record may know better
	return Experiment{
		Plan: fingerprint,
		Spec: result.Spec{
			Start:      started,
			Experiment: p.Name, Workload: p.Workload, ExperimentKind: string(p.Kind), Command: p.AsRun.Command, Version: p.AsRun.Version,
			Axis: p.Axis.Name, Unit: p.AsRun.Unit, Goals: goals, Require: p.Require, Kind: record.ObjectKind{There: p.AsRun.Arrived}, Milestones: p.AsRun.Milestones,
			Resolution: resolution, HoldMax: record.MicrosOf(time.Duration(cmp.Or(p.HoldMax, holdsMost*p.Hold))),
			Arms: armsOf(p), Published: published, Signatures: signature.Merge(signatures, p.Signatures), FreshLab: p.Renews(),
		},
		Design: p.Design(),
	}, nil
}

// AddWorkload adds the workload's files to the plan's fingerprint: a resumed run makes the same objects.
func (x *Experiment) AddWorkload(w *workload.Workload, given map[string]string) error {
	params, err := w.Resolve(given)
	if err != nil {
		return err
	}
	files, err := w.Fingerprint(params)
	if err != nil {
		return fmt.Errorf("fingerprint the workload %s: %w", w.Name, err)
	}
	x.Plan += "-" + files
	return nil
}

const (
	holdsMost     = 5                // default of the longest hold of a step, in holds
	leastOpenHold = 20 * time.Second // least hold with a schedule: over a few seconds the rate is mostly chance
	// shortHold divides the whole hold into the hold of steps that only propose.
	shortHold = 5
)

// load fills in the options of the load, within the bounds of the target.
func (x *Experiment) load(p *plan.Plan, axis workload.Axis, declared workload.TargetAxis, b system.Bounds) {
	stream := declared.Streams()
	x.Options = engine.Options{MaxInFlight: b.MaxInFlight, Timeout: time.Duration(p.StepTimeout), Stall: b.Stall}
	o := &x.Options
	o.Warmup, o.Hold, o.ShortHold = Holds(p, axis, stream)
	for _, name := range slices.Sorted(maps.Keys(p.Guards)) {
		o.Guards = append(o.Guards, engine.Guard{Name: name, Bound: p.Guards[name].Value, Percent: p.Guards[name].Percent})
	}
	o.Whole = declared.Whole
	if o.Open = axis.Loop == workload.Open; o.Open || stream {
		o.MaxInFlight = b.MaxInFlightOpen
		o.Timeout = followFor(x.Spec.Goals, o.Timeout)
	}
	if !p.Pace.Max {
		o.Pace = p.Pace.PerSecond
	}
	x.Budget = time.Duration(p.Budget)
}

// Holds returns how long steps warm up and hold, to decide or to propose; stream is of the axis.
func Holds(p *plan.Plan, axis workload.Axis, stream bool) (warmUp, whole, short time.Duration) {
	whole = time.Duration(p.Hold)
	short = whole / shortHold
	open := axis.Loop == workload.Open
	if open || stream {
		short = max(short, min(whole, leastOpenHold))
	}
	switch {
	case stream:
		warmUp = axis.WarmUp
	case open:
		warmUp = time.Duration(p.Axis.Life)
	}
	return warmUp, whole, short
}

// followFor returns twice the longest objective, so that late objects have a figure.
func followFor(goals []slo.Goal, timeout time.Duration) time.Duration {
	const least = 10 * time.Second
	longest := least
	for _, g := range goals {
		for _, s := range g.SLOs {
			switch {
			case s.Form == slo.All && s.Within == 0:
				return timeout
			case s.Form == slo.All || s.Form == slo.Quantile || s.Form == slo.Mean:
				longest = max(longest, 2*s.Within)
			}
		}
	}
	return min(longest, timeout)
}

func publishedOf(p *plan.Plan) ([]result.PublishedSpec, error) {
	var list []result.PublishedSpec
	for _, f := range p.Published {
		value, err := f.Number()
		if err != nil {
			return nil, fmt.Errorf("published figure %q: %w", f.What, err)
		}
		list = append(list, result.PublishedSpec{What: f.What, Metric: f.Metric, Arm: f.Arm, Source: f.Source, Value: value, IsChange: f.Change != "", IsLine: f.Metric == plan.LineMetric})
	}
	return list, nil
}

func armsOf(p *plan.Plan) *result.ArmsSpec {
	if p.Kind != plan.AB || p.Primary == nil {
		return nil
	}
	margin, _ := p.Primary.Share() // the plan is valid
	a := &result.ArmsSpec{Params: make(map[string]map[string]string), Metric: p.Primary.Metric, Further: p.Primary.Further, Margin: margin, Alpha: p.Primary.Alpha}
	a.Until, a.NotWorse, a.Least, a.Most = !p.Repeat.Fixed(), p.Until == plan.UntilNotWorse, p.Repeat.Least, p.Repeat.Most
	a.Among = max(len(p.Arms)-1, 1) * max(len(p.Axis.Levels), 1)
	for _, arm := range p.Arms {
		a.Names = append(a.Names, arm.Name)
		a.Params[arm.Name] = make(map[string]string, len(arm.Params))
		maps.Copy(a.Params[arm.Name], arm.Params)
	}
	return a
}
