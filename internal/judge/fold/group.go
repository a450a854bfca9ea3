package fold

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// Bounds of what a result has of a label.
const (
	mostValues = 12 // of a label, in a result
	mostBins   = 24
)

// groupsOf returns the latencies of own objects by the values of labels that any object has.
func groupsOf(spec *result.Spec, f *Facts) (list []result.Group) {
	by := spec.Kind.GroupBy
	if by == nil {
		return nil
	}
	from, to := f.find(by.From), f.find(by.To)
	for at, label := range by.Labels {
		byValue := make(map[string][]int)
		for i, u := range f.ownUnits() {
			value := u.label(by, f, at)
			byValue[value] = append(byValue[value], i)
		}
		if len(byValue) == 0 || len(byValue) == 1 && byValue[""] != nil {
			continue
		}
		b := result.Group{Label: label, From: by.From, To: by.To}
		values := slices.SortedFunc(maps.Keys(byValue), func(x, y string) int {
			return cmp.Or(cmp.Compare(len(byValue[y]), len(byValue[x])), cmp.Compare(x, y))
		})
		if len(values) > mostValues {
			b.Cut = len(values) - mostValues
			values = values[:mostValues]
		}
		slices.Sort(values)
		took := make([][]float64, len(values))
		for n, value := range values {
			part := *f
			part.units, part.outcomes = nil, nil
			for _, i := range byValue[value] {
				u := f.units[i]
				part.units, part.outcomes = append(part.units, u), append(part.outcomes, f.outcomes[i])
				if t := u.between(from, to); t != unreached && u.latency(to) <= f.timeout {
					took[n] = append(took[n], t.Seconds())
				}
			}
			v := result.LabelValue{Value: value, Time: result.LatencyOf(stats.NewSample(slices.Clone(took[n]), len(part.units)-len(took[n])))}
			v.Latency, _ = latenciesOf(spec, &part)
			b.Values = append(b.Values, v)
		}
		countIn(&b, took)
		list = append(list, b)
	}
	return list
}

func (u *unit) label(by *record.GroupBy, f *Facts, at int) (value string) {
	if o := u.object; o != nil {
		if at < len(o.labels) {
			value = o.labels[at]
		}
		if o.where >= 0 && value == "" && by.Places[f.placeNames[o.where]] != nil {
			value = by.Places[f.placeNames[o.where]][at]
		}
	}
	return value
}

// between returns the time from one milestone to another, or unreached. A milestone below 0 is time zero.
func (u *unit) between(from, to int) record.Micros {
	switch {
	case from < 0:
		return u.latency(to)
	case u.latency(from) == unreached || u.latency(to) == unreached:
		return unreached
	}
	return max(u.latency(to)-u.latency(from), 0)
}

func countIn(b *result.Group, took [][]float64) {
	all := slices.Concat(took...)
	bins := 0
	if len(all) > 0 {
		low, high := slices.Min(all), slices.Max(all)
		bins = mostBins
		if high-low < 1e-6 {
			bins = 1
		}
		for i := range bins + 1 {
			b.Edges = append(b.Edges, result.Round(low+(high-low)*float64(i)/float64(bins), 6))
		}
	}
	for n := range b.Values {
		b.Values[n].Counts = make([]int, bins)
		for _, t := range took[n] {
			i, _ := slices.BinarySearch(b.Edges, t) // the first edge that is not below it
			b.Values[n].Counts[min(max(i-1, 0), bins-1)]++
		}
	}
}
