package verdict

import (
	"math"
	"math/rand/v2"
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
		{"a third of p50, which a tenth of p99 allows", "Complete p50", constant(80e-6), "p95 of 20000 arrivals, was 80µs, more than 32µs, a tenth of Complete p50"},
		{"one in fifty: p99 of the delay is more than a tenth of p99", "Complete p50", some(0.02, 150e-6), ""},
		{"the same, where p99 is judged", "Complete p99", some(0.02, 150e-6), "p99 of 20000 arrivals, was 150µs"},
		{"the same, by a goal", "", some(0.02, 150e-6), "a tenth of Complete p99"},
		{"one in fifty for an age", "Complete p50", some(0.02, 9e-3), ""},
		{"one in ten", "Complete p50", some(0.1, 150e-6), "p95"},
		{"as long as the latency itself is", "Complete p50", func(_ *rand.Rand, latency float64) float64 { return latency / 12 }, "p95"},
		{"a figure that is no quantile: the goal is judged", "achieved rate", some(0.02, 150e-6), "a tenth of Complete p99"},
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
		p99 := s.OwnDelay(0.99)
		v := &verdicts{spec: &result.Spec{}, f: &fold.Facts{Stream: s}, step: &Judged{}}
		v.f.Samples = map[string]fold.Sample{"Complete": {Sample: stats.NewSample(seen, 0)}}
		v.step.Arrivals = &result.Arrivals{Judged: len(seen), OwnDelayP99: &p99}
		q := 0.99
		if c.metric != "" {
			v.spec.Arms = &result.ArmsSpec{Metric: c.metric}
		}
		if c.metric == "Complete p50" {
			q = 0.5
		}
		why := v.tooLate(slo.Goal{SLOs: []slo.SLO{{Form: slo.Quantile, Milestone: "Complete", Q: 0.99}}})
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.why, why, c.want)
		}
		was := stats.NewSample(target, 0).Quantile(q)
		if shift := stats.NewSample(seen, 0).Quantile(q)/was - 1; why == "" && shift > 0.12 {
			t.Errorf("%s: the step counts, and %.0f%% of the quantile is the generator's", c.why, 100*shift)
		}
	}
}
