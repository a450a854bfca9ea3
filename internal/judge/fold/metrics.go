package fold

import (
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

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

// fold returns a fold of one value in the step, nil where it is unknown. A part of a ratio covers the
// hold where requests come all the time.
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
