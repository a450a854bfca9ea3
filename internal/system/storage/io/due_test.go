package io

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// Latencies from the due time agree with those of a twin that does each IO by
// itself, through freezes of the volume. The twin reports as fio does: not while
// its IO hangs, and right after it.
func TestLatenciesFromTheDueTime(t *testing.T) {
	const seconds = 10
	for _, c := range []struct {
		why          string
		depth        int
		rate         float64
		service      float64 // seconds, mean
		from, length float64 // of the freeze
		syncs        bool
	}{
		{"nothing waits", 1, 200, 0.0003, 0, 0, false},
		{"a freeze of 3 s, done at once after it", 1, 200, 0.0003, 3.3, 3, false},
		{"with a sync after each", 1, 200, 0.0003, 3.3, 3, true},
		{"two are under way when it freezes", 2, 200, 0.0003, 3.3, 3, false},
		{"at a high rate", 8, 5000, 0.0003, 3.3, 3, false},
		{"a freeze shorter than the time between reports", 1, 200, 0.0003, 3.3, 0.3, false},
		{"a freeze that ends with the hold", 1, 200, 0.0003, 6.9, 3, false},
		{"it is done slowly after the freeze, and never caught up with", 1, 200, 0.0045, 3.3, 3, false},
		{"more is due than can be done", 1, 200, 0.006, 0, 0, false},
	} {
		rng := rand.New(rand.NewPCG(5, 6))
		type io struct {
			side           string
			over, took, of float64
		}
		var truth []io
		free := make([]float64, c.depth)
		do := func(side string, place int, due, begin float64) {
			over := begin + c.service*(0.5+rng.Float64())
			if c.length > 0 && over > c.from && begin < c.from+c.length {
				over += c.from + c.length - max(begin, c.from)
			}
			free[place] = over
			truth = append(truth, io{side, over, over - begin, over - due})
		}
		for n := 0; float64(n) < c.rate*seconds; n++ {
			place := slices.Index(free, slices.Min(free))
			due := float64(n) / c.rate
			do(fio.Write, place, due, max(due, free[place]))
			if c.syncs {
				do(fio.Sync, place, free[place], free[place])
			}
		}
		rates := map[string]float64{fio.Write: c.rate}
		q := newLine(rates, c.depth, fio.Report{}, 1)
		var want, got []float64
		windows, exact := make([]int, seconds), make([]int, seconds)
		last := 0.0
		reports := []float64{c.from + c.length + 0.01}
		for s := 1.0; s <= seconds; s++ {
			if s < c.from || s > c.from+c.length {
				reports = append(reports, s)
			}
		}
		slices.Sort(reports)
		for _, s := range reports {
			took := map[string]fio.Bins{fio.Write: {}, fio.Sync: {}}
			for _, x := range truth {
				if x.over > last && x.over <= s {
					took[x.side][int64(x.took*1e9)]++
					if x.side == fio.Write {
						want = append(want, x.of)
						exact[int(min(x.over, seconds-1e-9))]++
					}
				}
			}
			for _, x := range q.since(took, time.Duration(s*1e9)) {
				if x.side == fio.Write {
					got = append(got, x.latency()/1e9)
					windows[int(min(x.over/1e9, seconds-1e-9))]++
				}
			}
			last = s
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d IOs, want %d", c.why, len(got), len(want))
		}
		slices.Sort(want)
		slices.Sort(got)
		for _, p := range []float64{0.5, 0.9, 0.99, 1} {
			i := int(math.Ceil(p*float64(len(want)))) - 1
			if math.Abs(got[i]-want[i]) > max(0.02*want[i], 0.010) {
				t.Errorf("%s: p%g is %.4f s, want %.4f s", c.why, 100*p, got[i], want[i])
			}
		}
		for i := range windows {
			if math.Abs(float64(windows[i]-exact[i])) > max(0.02*c.rate, 2) {
				t.Errorf("%s: windows of %v, want %v", c.why, windows, exact)
				break
			}
		}
	}
}
