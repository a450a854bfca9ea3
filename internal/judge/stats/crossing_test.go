package stats

import (
	"math"
	"testing"
)

func TestFindCrossing(t *testing.T) {
	pass := func(n int, level float64) []Trial { return trialsAt(n, level, true) }
	fail := func(n int, level float64) []Trial { return trialsAt(n, level, false) }
	for _, c := range []struct {
		why    string
		trials [][]Trial
		lo, hi float64 // within which the interval must lie
	}{
		{"many agree on both sides", [][]Trial{pass(50, 100), fail(50, 110)}, 99, 112},
		{"a confirmed line leaves its level almost out", [][]Trial{pass(1, 80), pass(4, 100), fail(2, 101), fail(1, 120)}, 88, 160},
		{"nothing failed: no end above", [][]Trial{pass(5, 100)}, 30, math.Inf(1)},
		{"nothing passed: no end below", [][]Trial{fail(5, 100)}, math.Inf(-1), 310},
		{"half of them at each level: anywhere", [][]Trial{pass(1, 50), fail(1, 50), pass(1, 100), fail(1, 100)}, 15, 310},
	} {
		var all []Trial
		for _, x := range c.trials {
			all = append(all, x...)
		}
		e, ok := FindCrossing(all, 0.95)
		if !ok || e.Lo < c.lo || e.Hi > c.hi || !(e.Lo <= e.Value && e.Value <= e.Hi) {
			t.Errorf("%s: %+v, want it within %g to %g", c.why, e, c.lo, c.hi)
		}
	}
	for _, trials := range [][]Trial{nil, {{Level: 0, Passed: true, Weight: 1}}, {{Level: math.NaN(), Weight: 1}}} {
		if e, ok := FindCrossing(trials, 0.95); ok {
			t.Errorf("%v: %+v", trials, e)
		}
	}
	whole, _ := FindCrossing(append(pass(4, 100), fail(4, 110)...), 0.95)
	part := append(pass(4, 100), fail(4, 110)...)
	for i := range part {
		part[i].Weight = 0.5
	}
	if x, _ := FindCrossing(part, 0.95); !(x.Hi-x.Lo > whole.Hi-whole.Lo) {
		t.Errorf("what tells less gives %+v, and what tells all %+v", x, whole)
	}
}

func trialsAt(n int, level float64, passed bool) []Trial {
	list := make([]Trial, n)
	for i := range list {
		list[i] = Trial{Level: level, Passed: passed, Weight: 1}
	}
	return list
}
