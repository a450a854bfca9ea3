package judge

import "plimsoll.dev/plimsoll/internal/record"

// metricsOf are the figures of a step that its target declares, by name, but for
// those that every step has.
func metricsOf(spec *Spec, f *facts, s *judged) map[string]float64 {
	account := s.Account()
	own := map[string]*float64{
		record.ValueAsked: new(float64(account.Intended)), record.ValueDone: new(float64(account.Ready)),
		record.ValueRate: s.AchievedRate, record.ValueSeconds: new(f.hold.Seconds()),
	}
	list := make(map[string]float64)
	for _, m := range spec.Kind.Metrics {
		if m.Everywhere() {
			continue
		}
		if x := f.metric(m, own); x != nil {
			list[m.Name] = *x
		}
	}
	return list
}

// metric is one metric of a step, nil where it is not known. Own are the step's
// own values.
func (f *facts) metric(m record.Metric, own map[string]*float64) *float64 {
	of := f.fold(m.Of, m.Per != nil, own)
	switch {
	case of == nil || m.Per == nil && m.Of.Fold == record.FoldMost:
		return of
	case m.Per == nil:
		return significant(*of)
	}
	per := f.fold(*m.Per, true, own)
	if per == nil || *per == 0 {
		return nil
	}
	return significant(*of / *per)
}

// fold is a fold of one value in the step, nil where it is not known. A part of a
// ratio is of the hold where requests come all the time.
func (f *facts) fold(x record.Fold, part bool, own map[string]*float64) *float64 {
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
	sum := f.readings.sums[x.Source][x.Value]
	if sum == nil {
		return nil
	}
	switch x.Fold {
	case record.FoldMost:
		return new(sum.most)
	case record.FoldGrowth:
		return new(sum.most - sum.first)
	}
	from, to := f.start, f.end
	comes := f.stream != nil || f.head.Open
	if comes {
		from, to = f.held()
	}
	if to <= from || f.cut() {
		return nil
	}
	if x.Fold == record.FoldLast {
		return new(sum.last)
	}
	if x.Fold == record.FoldMean {
		return meanIn(f.readings.series(x), from, to)
	}
	risen, seconds := sum.risen, (sum.to - sum.from).Seconds()
	if comes && (part || x.Fold == record.FoldPerSecond) {
		var ok bool
		if risen, ok = usedBetween(f.readings.series(x), from, to); !ok || risen < 0 {
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

// series is what the samples of a fold's value were over the step.
func (c *readings) series(x record.Fold) []cpuPoint {
	if x.Value == record.ValueCPU {
		return c.cpu[x.Source]
	}
	var list []cpuPoint
	for _, p := range c.gauges[x.Source] {
		r := record.Reading{Values: p.values}
		value, ok := reading(&r, x.Value)
		if x.Value == record.ValueMemory {
			u := usedBy(&r)
			value, ok = u.rss, u.okRSS
		}
		if ok {
			list = append(list, cpuPoint{t: p.t, used: value})
		}
	}
	return list
}

// meanIn is the mean of the samples between two moments, nil where there are none.
func meanIn(points []cpuPoint, from, to record.Micros) *float64 {
	sum, n := 0.0, 0
	for _, p := range points {
		if p.t > from && p.t <= to {
			sum, n = sum+p.used, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}
