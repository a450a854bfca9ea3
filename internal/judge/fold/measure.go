package fold

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

func latenciesOf(spec *result.Spec, f *Facts) (result.Latencies, map[string]Sample) {
	values, lost, asked := make([][]float64, len(f.names)), make([]int, len(f.names)), 0
	for i, u := range f.ownUnits() {
		asked++
		for m := range f.names {
			switch l := u.latency(m); {
			case l <= f.timeout:
				values[m] = append(values[m], l.Seconds())
			case l == unreached && f.outcomes[i] == unitLost:
				lost[m]++
			}
		}
	}
	list, samples := make(result.Latencies), make(map[string]Sample)
	for m, v := range values {
		name := f.names[m]
		if m == f.gone || len(v) == 0 && !slices.Contains(spec.Milestones, name) && m != f.there {
			continue
		}
		s := Sample{stats.NewSample(v, asked-len(v)), lost[m]}
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

// ratesOf returns the rates of a step on an axis of levels in place: of requests, of ready objects up to
// the last, and the second in percent of the first; nil is unknown.
func ratesOf(f *Facts, thereAt func(*unit) record.Micros) (offered, rateOf, achieved *float64) {
	asked, there, last := 0, 0, Never
	for _, u := range f.ownUnits() {
		asked++
		if u.reached(f.there) != Never {
			there++
			last = max(last, thereAt(u))
		}
	}
	loading := f.loaded > f.Start && asked > 0
	if loading {
		offered = rate(len(f.own), f.loaded-f.Start)
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
		if s.onRecord && s.outcome != record.SlotDropped {
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
