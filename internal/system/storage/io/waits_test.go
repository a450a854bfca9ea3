package io

import (
	"math/rand/v2"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// Of waits that were planted those count that can lie in latencies, as spread over
// the IOs as they were.
func TestWaitsInLatencies(t *testing.T) {
	const seconds, ms = 20, 1e6
	type planted struct{ before, within float64 } // ns
	each := func(before, within float64) func(*rand.Rand) planted {
		return func(*rand.Rand) planted { return planted{before, within} }
	}
	some := func(share float64, p planted) func(*rand.Rand) planted {
		return func(rng *rand.Rand) planted {
			if rng.Float64() < share {
				return p
			}
			return planted{1e3, 1e3}
		}
	}
	for _, c := range []struct {
		why     string
		rate    int
		sleeps  bool
		latency float64 // mean; the longest is 50 times as long
		wait    func(*rand.Rand) planted
		lo, hi  float64 // of p99, ns
	}{
		{"as much before the submission as after it: half of it", 30, true, 2 * ms, each(0.1*ms, 0.1*ms), 0.09 * ms, 0.21 * ms},
		{"at a high rate", 5000, true, 0.1 * ms, each(0.02*ms, 0.02*ms), 0.018 * ms, 0.022 * ms},
		{"at a low rate", 2, true, 2 * ms, each(0.1*ms, 0.1*ms), 0.09 * ms, 0.21 * ms},
		{"before the submission alone: what cannot be told apart counts half", 30, true, 2 * ms, each(1*ms, 0), 0.4 * ms, 1.01 * ms},
		{"of two in a hundred, which the mean of 0.28 ms hides", 30, true, 2 * ms, some(0.02, planted{1e3, 14 * ms}), 6.9 * ms, 14.1 * ms},
		{"of one in a thousand: no matter to a p99", 300, true, 2 * ms, some(0.001, planted{1e3, 50 * ms}), 0, 0.2 * ms},
		{"longer than any latency: they lay before", 30, true, 0.1 * ms, each(15*ms, 0), 2 * ms, 5.01 * ms},
		{"as fast as it goes all of them count", 400, false, 2 * ms, each(0, 0.5*ms), 0.45 * ms, 0.55 * ms},
		{"small files count from when they were due", 30, false, 2 * ms, each(1*ms, 1*ms), 1.9 * ms, 2.1 * ms},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		var w waits
		n := c.rate * seconds
		next, ns, times := 0, 0.0, 0.0
		for at := record.Micros(0); at <= seconds*1e6; at += 20e3 {
			for ; next < n && record.Micros(next)*1e6/record.Micros(c.rate) < at; next++ {
				p := c.wait(rng)
				ns, times = ns+p.before+p.within, times+2
			}
			w.add(at, ns, times)
		}
		h := record.NewCounts()
		w.delays(h, float64(n), c.latency, 50*c.latency, c.sleeps)
		if p99 := 1e3 * float64(h.ValueAtPercentile(99)); p99 < c.lo || p99 > c.hi {
			t.Errorf("%s: p99 %.3f ms, want %.3f to %.3f", c.why, p99/ms, c.lo/ms, c.hi/ms)
		}
	}
}

// One thread waits for a tenth of the time, and all IOs under way wait with it.
func TestWaitsOfManyUnderWay(t *testing.T) {
	const depth, latency, seconds = 16, 8e6, 10
	var w waits
	for i := range seconds*50 + 1 {
		w.add(record.Micros(i)*20e3, float64(i)*2e6, float64(i)*10)
	}
	h := record.NewCounts()
	w.delays(h, depth*seconds*1e9/latency, latency, 10*latency, false)
	if own := float64(h.ValueAtPercentile(50)) * 1e3; own < 0.095*latency || own > 0.105*latency {
		t.Errorf("an IO of 8 ms waited %.3f ms, want a tenth", own/1e6)
	}
}
