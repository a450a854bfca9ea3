package fold

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

func latenciesOf(spec *result.Spec, f *Facts) (result.Latencies, map[string]Sample) {
	values, lost, asked := make([][]float64, len(f.names)), make([]int, len(f.names)), make([]int, len(f.kinds))
	for i, u := range f.ownUnits() {
		asked[u.slot.kind]++
		for m := range f.names {
			switch l := u.latency(m); {
			case !f.reaches(u.slot, m):
			case l <= f.timeout:
				values[m] = append(values[m], l.Seconds())
			case l == unreached && f.outcomes[i] == unitLost:
				lost[m]++
			}
		}
	}
	list, samples := make(result.Latencies), make(map[string]Sample)
	for m, v := range values {
		name, n := f.names[m], asked[f.of[m]]
		if m == f.gone || len(v) == 0 && !slices.Contains(spec.Milestones, name) && m != f.there || n == 0 && len(f.kinds) > 1 {
			continue
		}
		s := Sample{stats.NewSample(v, n-len(v)), lost[m]}
		samples[name] = s
		list[name] = result.LatencyOf(s.Sample)
	}
	return list, samples
}

// requestsOf sums up the requests of a step, and counts the judged ones that were never sent.
func requestsOf(f *Facts) (r result.APIRequests, dropped int) {
	var service []float64
	for _, s := range f.own {
		switch {
		case s.outcome == record.SlotDropped:
			if f.judges(s) {
				dropped++
			}
			continue
		case !s.asked() || !f.judges(s):
			continue
		}
		r.N++
		if !f.head.Open {
			r.Sending = max(r.Sending, (s.sent - s.intended).Seconds())
		}
		service = append(service, (s.replied - s.sent).Seconds())
		if s.retries > 0 {
			r.Retried++
		}
		if s.failed() {
			r.Failed++
		}
	}
	s := stats.NewSample(service, 0)
	r.P50, r.P99, r.Max = result.Finite(s.Quantile(0.5)), result.Finite(s.Quantile(0.99)), result.Finite(s.Max())
	return r, dropped
}

// ratesOf returns a step's rates of requests and of ready objects, and their percentage; or nil.
func ratesOf(f *Facts, thereAt func(*unit) record.Micros) (offered, rateOf, achieved *float64) {
	asked, there, requests, last := 0, 0, 0, Never
	for _, s := range f.own {
		if !s.shared {
			requests++
		}
	}
	for _, u := range f.ownUnits() {
		asked++
		if u.reached(u.slot.arrival) != Never {
			there++
			last = max(last, thereAt(u))
		}
	}
	loading := f.loaded > f.Start && asked > 0
	if loading {
		offered = rate(requests, f.loaded-f.Start)
	}
	switch {
	case there > 0 && last > f.Start:
		rateOf = rate(there, last-f.Start)
		if loading {
			achieved = new(100 * float64(there) / float64(asked) * float64(f.loaded-f.Start) / float64(last-f.Start))
		}
	case there == 0 && asked > 0 && !f.Cut() && !f.Blind:
		rateOf, achieved = new(float64), new(float64)
	}
	return offered, rateOf, achieved
}

func rate(n int, t record.Micros) *float64 { return new(result.Round(float64(n)/t.Seconds(), 3)) }

func inFlight(slots []*slot) int {
	edges := make([]edge, 0, 2*len(slots))
	for _, s := range slots {
		if s.onRecord && !s.shared && s.outcome != record.SlotDropped {
			edges = append(edges, edge{s.sent, 1}, edge{s.replied, -1})
		}
	}
	return mostAtOnce(edges)
}

// edge is the begin (1) or the end (-1) of something.
type edge struct {
	t     record.Micros
	delta int
}

// mostAtOnce returns the largest number at once. One that ends as another begins does not overlap it.
func mostAtOnce(edges []edge) int {
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.delta, b.delta))
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}

// metricsOf returns the figures that the target declares, without those that every step has.
func metricsOf(spec *result.Spec, f *Facts, s *Measured) map[string]float64 {
	own := map[string]*float64{
		record.ValueAsked: new(float64(s.Account().Intended)), record.ValueDone: new(float64(f.Account.done(s))),
		record.ValueRate: s.AchievedRate, record.ValueSeconds: new(f.hold.Seconds()),
	}
	list := make(map[string]float64)
	for _, m := range spec.Kind.Metrics {
		if x := f.metric(m, own); x != nil && !m.Everywhere() {
			list[m.Name] = *x
		}
	}
	return list
}

// metric returns one metric of a step, nil where it is unknown. Own holds the step's own values.
func (f *Facts) metric(m record.Metric, own map[string]*float64) *float64 {
	of := f.fold(m.Of, m.Per != nil, own)
	switch {
	case of == nil || m.Per == nil && m.Of.Fold == record.FoldMost:
		return of
	case m.Per == nil:
		return result.Significant(*of)
	}
	per := f.fold(*m.Per, true, own)
	if per == nil || *per == 0 {
		return nil
	}
	return result.Significant(*of / *per)
}

// fold returns a fold of one value in the step, or nil. A part of a ratio may cover the hold alone.
func (f *Facts) fold(x record.Fold, part bool, own map[string]*float64) *float64 {
	if x.Source == record.SourceStep {
		value, seconds := own[x.Value], own[record.ValueSeconds]
		switch {
		case value == nil || x.Fold != record.FoldPerSecond:
			return value
		case *seconds == 0:
			return nil
		}
		return new(*value / *seconds)
	}
	sum := f.readings.Sums[x.Source][x.Value]
	if sum == nil {
		return nil
	}
	switch x.Fold {
	case record.FoldMost:
		return new(sum.Most)
	case record.FoldGrowth:
		return new(sum.Most - sum.First)
	}
	from, to := f.Start, f.End
	comes := f.Account.Streams() || f.head.Open
	if comes {
		from, to = f.held()
	}
	if to <= from || f.Cut() {
		return nil
	}
	switch x.Fold {
	case record.FoldLast:
		return new(sum.Last)
	case record.FoldMean:
		return usage.MeanIn(f.readings.Series(x), from, to)
	}
	risen, seconds := sum.Risen, (sum.To - sum.From).Seconds()
	if comes && (part || x.Fold == record.FoldPerSecond) {
		var ok bool
		if risen, ok = usage.UsedBetween(f.readings.Series(x), from, to); !ok || risen < 0 {
			return nil
		}
		seconds = (to - from).Seconds()
	}
	switch {
	case x.Fold == record.FoldDifference:
		return &risen
	case seconds <= 0:
		return nil
	}
	return new(risen / seconds)
}
