package verdict

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// The generator's own delay is planted upon latencies of which p50 is 240 µs and
// p99 0.96 ms. Where the step counts, the quantile that is judged is shifted by
// little more than a tenth.
func TestOwnDelayShiftsLittle(t *testing.T) {
	const p50 = 240e-6
	constant := func(d float64) func(rng *rand.Rand, latency float64) float64 {
		return func(*rand.Rand, float64) float64 { return d }
	}
	some := func(share, d float64) func(*rand.Rand, float64) float64 {
		return func(rng *rand.Rand, _ float64) float64 {
			if rng.Float64() < share {
				return d
			}
			return 0
		}
	}
	for _, c := range []struct {
		why, metric string // "" is a goal by p99
		delay       func(rng *rand.Rand, latency float64) float64
		want        string // of the verdict, "" where the step counts
	}{
		{"none", "Complete p50", constant(0), ""},
		{"a little of each", "Complete p50", constant(20e-6), ""},
		{"a third of p50, which a tenth of p99 allows", "Complete p50", constant(80e-6), "p50 of 20000 arrivals, was 80µs, more than 32µs, a tenth of Complete p50"},
		{"one in fifty: p99 of the delay is more than a tenth of p99", "Complete p50", some(0.02, 150e-6), ""},
		{"the same, where p99 is judged", "Complete p99", some(0.02, 150e-6), "p99 of 20000 arrivals, was 150µs"},
		{"the same, by a goal", "", some(0.02, 150e-6), "a tenth of Complete p99"},
		{"one in fifty for an age", "Complete p50", some(0.02, 9e-3), ""},
		{"one in twelve, of which a median shows little", "Complete p50", some(1.0/12, 9e-3), ""},
		{"one in three, which shifts the median", "Complete p50", some(0.33, 9e-3), "shifts Complete p50 by about"},
		{"one in ten, where p95 is judged", "Complete p95", some(0.1, 150e-6), "p95 of 20000 arrivals, was 150µs"},
		{"one in fifty for an age, which is in the mean", "Complete mean", some(0.02, 9e-3), "a tenth of Complete mean"},
		{"a figure that no delay changes", "achieved rate", some(0.5, 9e-3), ""},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		delays := record.NewCounts()
		var target, seen []float64
		for range 20_000 {
			latency := p50 * math.Exp(0.6*rng.NormFloat64())
			own := c.delay(rng, latency)
			target, seen = append(target, latency), append(seen, latency+own)
			record.Count(delays, record.Micros(1e6*own))
		}
		own, err := record.HistogramOf(delays)
		if err != nil {
			t.Fatal(err)
		}
		s := stream.New(1e6, nil)
		s.Add(&record.Window{To: 1e6, Intended: len(seen), OwnDelay: own})
		p99 := s.OwnDelays().Quantile(0.99)
		v := &verdicts{spec: &result.Spec{}, f: &fold.Facts{}, step: &Judged{}}
		v.f.CountStream(s)
		v.f.Samples = map[string]fold.Sample{"Complete": {Sample: stats.NewSample(seen, 0)}}
		v.step.Arrivals = &result.Arrivals{Judged: len(seen), OwnDelayP99: &p99}
		figure := slo.Figure{Milestone: "Complete", Q: 0.99}
		why := v.explains(slo.SLO{Form: slo.Quantile, Milestone: "Complete", Q: 0.99})
		if c.metric != "" {
			v.spec.Arms = &result.ArmsSpec{Metric: c.metric}
			v.leaveOut()
			why = v.allLeftOut()
			figure, _ = slo.ParseFigure(c.metric) // no quantile is looked at for the others
		}
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.why, why, c.want)
		}
		if figure.Q == 0 {
			continue
		}
		was := stats.NewSample(target, 0).Quantile(figure.Q)
		if shift := stats.NewSample(seen, 0).Quantile(figure.Q)/was - 1; why == "" && shift > 0.12 {
			t.Errorf("%s: the step counts, and %.0f%% of the quantile is the generator's", c.why, 100*shift)
		}
	}
}

// Arms are compared by a median and by CPU time on a machine on which the generator is
// late in one request of fifty, by as much as a hundred times the latency. Both figures
// count. With half of the requests late the median alone does not, and with a load that
// is not the one of the level nothing does.
func TestAFigureCountsThatNoDelayTouches(t *testing.T) {
	kind := requestKind()
	kind.Metrics = append(kind.Metrics, record.Metric{Name: "cpuPer1000", Unit: "s"})
	for _, c := range []struct {
		why     string
		plant   func(i int, w *plant)
		want    slo.Verdict
		leftOut []string
	}{
		{"one in fifty late", func(_ int, w *plant) { w.tardy, w.own = 2, 20e3 }, slo.Pass, []string{"Complete max", "Complete p99"}},
		{"half of them late", func(_ int, w *plant) { w.tardy, w.own = 60, 20e3 }, slo.Pass, []string{"Complete max", "Complete mean", "Complete p50", "Complete p90", "Complete p95", "Complete p99"}},
		{"the load was another", func(_ int, w *plant) { w.tardy, w.own, w.Failed = 80, 20e3, map[string]int{"reset": 20} }, slo.Invalid,
			[]string{"Complete max", "Complete mean", "Complete p50", "Complete p90", "Complete p95", "Complete p99", "cpuPer1000"}},
	} {
		s := newStory(t, kind, func(spec *result.Spec) {
			spec.Arms = &result.ArmsSpec{Names: []string{"a", "b"}, Metric: "cpuPer1000", Further: []string{"Complete p50"}}
		}, "g=Complete p99 <= 50ms")
		s.begin(open)
		s.at(1)
		s.windows(c.plant)
		step := s.at(20).end(record.EndHeld)
		if got := slices.Sorted(maps.Keys(step.LeftOut)); step.Verdict != c.want || !slices.Equal(got, c.leftOut) {
			t.Errorf("%s: %s (%s), without %q, want %s without %q", c.why, step.Verdict, step.VerdictWhy, got, c.want, c.leftOut)
		}
	}
}

// The generator's delay explains why the goal broke. The figures that arms are compared
// by are known all the same.
func TestADelayThatBreaksAGoalLeavesFiguresAlone(t *testing.T) {
	s := newStory(t, requestKind(), func(spec *result.Spec) {
		spec.Arms = &result.ArmsSpec{Names: []string{"a", "b"}, Metric: "Complete p50"}
	}, "g=Complete p99 <= 5ms")
	s.begin(open)
	s.at(1)
	s.windows(func(_ int, w *plant) { w.tardy, w.own = 2, 20e3 })
	step := s.at(20).end(record.EndHeld)
	if step.Verdict != slo.Inconclusive || !step.Compared || !strings.Contains(step.VerdictWhy, "plimsoll itself was late: its own delay, p99 of 2000 arrivals") {
		t.Errorf("%s (%s), compared: %v", step.Verdict, step.VerdictWhy, step.Compared)
	}
}
