package fold

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// latenciesOf are the latencies of the step's own objects.
func latenciesOf(spec *result.Spec, f *Facts, outcomes []unitOutcome) (result.Latencies, map[string]Sample) {
	values, lost, asked := make([][]float64, len(f.names)), make([]int, len(f.names)), 0
	for i := range f.units {
		u := &f.units[i]
		if !u.own {
			continue
		}
		asked++
		for m := range f.names {
			switch l := u.latency(m); {
			case l <= f.timeout:
				values[m] = append(values[m], l.Seconds())
			case l == unreached && outcomes[i] == unitLost:
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

// requestsOf sums up the requests of a step, and counts those that it is judged
// by and that were never sent.
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

// lag is how late the news of a step came, nil where that was not measured.
func (c *canaries) lag() *result.WatchLag {
	n := len(c.lags) + c.unseen
	if n == 0 {
		return nil
	}
	lag := stats.NewSample(c.lags, c.unseen)
	return &result.WatchLag{N: n, Unseen: c.unseen, P50: result.Finite(lag.Quantile(0.5)), P99: result.Finite(lag.Quantile(0.99))}
}

// ratesOf are the rates of a step on an axis of levels in place: that at which
// its objects were asked for, that at which they were ready, up to the last of
// them, and the second in percent of the first; nil for one that is unknown.
// There is when an object was.
func ratesOf(f *Facts, thereAt func(*unit) record.Micros) (offered, rateOf, achieved *float64) {
	asked, there, last := 0, 0, Never
	for i := range f.units {
		u := &f.units[i]
		if !u.own {
			continue
		}
		asked++
		if u.object != nil && u.object.reached(f.there) != Never {
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

// rate is n a time, by the second.
func rate(n int, t record.Micros) *float64 { return new(result.Round(float64(n)/t.Seconds(), 3)) }

// inFlight is the largest number of requests that were under way at once.
func inFlight(slots []*slot) int {
	edges := make([]edge, 0, 2*len(slots))
	for _, s := range slots {
		if s.onRecord && s.outcome != record.SlotDropped {
			edges = append(edges, edge{s.sent, 1}, edge{s.replied, -1})
		}
	}
	return mostAtOnce(edges)
}

// edge is where something begins (1) or ends (-1).
type edge struct {
	t     record.Micros
	delta int
}

// mostAtOnce is the largest number of things that go on at once. One that ends
// as another begins does not go on with it.
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
