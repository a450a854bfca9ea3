package compare

import (
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/judge/stats"
)

const beyond = 5 // objects of a run beyond a quantile whose shift is shown

const curvePoints = 256 // at most

type key struct{ milestone, component string }

func (c *LevelComparison) series(s sides) {
	if len(s.a) == 0 || len(s.b) == 0 {
		return
	}
	a, order := collect(s.a)
	b, _ := collect(s.b)
	list := make([]*SeriesComparison, len(order))
	var each errgroup.Group
	each.SetLimit(runtime.GOMAXPROCS(0))
	for i, k := range order {
		if len(a[k]) != len(s.a) || len(b[k]) != len(s.b) {
			continue // some run has none
		}
		each.Go(func() error {
			list[i] = seriesOf(s, k, a[k], b[k])
			return nil
		})
	}
	_ = each.Wait() // none of them fails
	for _, one := range list {
		if one != nil {
			c.Series = append(c.Series, *one)
		}
	}
}

// seriesOf compares the distributions of one series; it returns nil where a side has no observations.
func seriesOf(s sides, k key, a, b []stats.Sample) *SeriesComparison {
	arms := stats.NewArms(a, b)
	x, y := arms.All()
	if x.N() == 0 || y.N() == 0 {
		return nil
	}
	one := &SeriesComparison{
		Milestone: k.milestone, Component: k.component, Baseline: formOf(x), Arm: formOf(y),
		Distance: finite(stats.Distance(x, y)), Superiority: finite(stats.Superiority(x, y)),
		Shifts: []Shift{},
	}
	if s.spec.Paired && len(s.a) > 1 {
		one.PermutationP = finite(arms.PermuteBlocks())
	} else if len(s.a) > 1 && len(s.b) > 1 {
		one.PermutationP = finite(arms.PermuteRuns())
	}
	one.shifts(s, a, b, x, y)
	return one
}

// collect gathers the samples of runs by milestone and component.
func collect(runs []*Run) (samples map[key][]stats.Sample, order []key) {
	samples = make(map[key][]stats.Sample)
	for _, r := range runs {
		for _, x := range r.Samples {
			k := key{x.Milestone, x.Component}
			if _, ok := samples[k]; !ok {
				order = append(order, k)
			}
			samples[k] = append(samples[k], x.Sample)
		}
	}
	return samples, order
}

// shifts fills in the changes of the quantiles of the runs' samples a and b, which together are x and y.
func (c *SeriesComparison) shifts(s sides, a, b []stats.Sample, x, y stats.Sample) {
	smallest := math.MaxInt
	for _, r := range slices.Concat(a, b) {
		smallest = min(smallest, r.N())
	}
	for _, q := range []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999} {
		if n := float64(smallest); n*(1-q) < beyond || n*q < beyond {
			continue
		}
		shift := Shift{Q: q, Baseline: finite(x.Quantile(q)), Arm: finite(y.Quantile(q))}
		of := func(runs []stats.Sample) []float64 {
			values := make([]float64, len(runs))
			for i, r := range runs {
				values[i] = r.Quantile(q)
			}
			return values
		}
		if change, err := s.change(of(a), of(b), s.spec.Alpha); err == nil {
			shift.Change, shift.Lo, shift.Hi = finite(change.D), finite(change.Lo), finite(change.Hi)
			shift.Baseline, shift.Arm = finite(stat.GeometricMean(of(a), nil)), finite(stat.GeometricMean(of(b), nil)) // the change is theirs
		}
		c.Shifts = append(c.Shifts, shift)
	}
}

func formOf(s stats.Sample) Form {
	f := Form{N: s.N(), Censored: s.Censored(), Forms: stats.Forms(s), Curve: [][2]float64{}}
	n := s.N()
	came := n - s.Censored()
	step := max(1, (n+curvePoints-1)/curvePoints)
	if step > 1 && came > 1 {
		f.Curve = append(f.Curve, [2]float64{s.Quantile(1 / float64(n)), 1 / float64(n)})
	}
	for k := min(step, came); k > 0; k = min(k+step, came) {
		f.Curve = append(f.Curve, [2]float64{s.Quantile(float64(k) / float64(n)), float64(k) / float64(n)})
		if k == came {
			break
		}
	}
	return f
}
