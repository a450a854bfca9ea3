package design

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// AB makes each arm's run at each level, Repeat times. A block runs every arm at one level in an order that
// Seed draws, so that changes over time meet all arms; two of four blocks have reverse orders. Every run
// begins from empty.
type AB struct {
	Arms   []string // the first is the baseline
	Levels []float64
	Repeat int // blocks at each level, at most
	Seed   uint64
	Left   map[Pair]bool // holds the decided arms. The baseline needs no run at a level where no other arm does.
}

// Pair names an arm, compared with the baseline, and a level.
type Pair struct {
	Arm   string
	Level float64
}

func (d AB) left(arm string, level float64) bool {
	if arm != d.Arms[0] {
		return d.Left[Pair{arm, level}]
	}
	return len(d.Arms) > 1 && !slices.ContainsFunc(d.Arms[1:], func(other string) bool { return !d.Left[Pair{other, level}] })
}

// maxInvalid bounds the runs that say nothing about the target, per arm, level and replicate.
const maxInvalid = 2

// Next returns the first run that has not been made. An invalid run is repeated once before the next.
func (d AB) Next(made []Made, stop string) Next {
	type cell struct {
		arm       string
		level     float64
		replicate int
	}
	valid, invalid := make(map[cell]bool), make(map[cell]int)
	for _, m := range made {
		c := cell{m.Arm, m.Level, m.Replicate}
		if m.Verdict == slo.Invalid {
			invalid[c]++
		} else {
			valid[c] = true
		}
	}
	all, done := 0, 0
	var next *Next
	for replicate := 1; replicate <= d.Repeat; replicate++ {
		for i, level := range d.Levels {
			for _, arm := range d.order(replicate, i) {
				all++
				c := cell{arm, level, replicate}
				if valid[c] || invalid[c] >= maxInvalid {
					done++
					continue
				}
				if next != nil || d.left(arm, level) {
					continue
				}
				next = &Next{
					StepPlan: record.StepPlan{Level: level, Arm: arm, Replicate: replicate, Purpose: record.PurposeAB, FromEmpty: true, FullHold: true, Why: fmt.Sprintf("arm %s in block %d of %d", arm, replicate, d.Repeat)},
				}
				if invalid[c] > 0 {
					next.Why += ", again: the first run was invalid"
				}
			}
		}
	}
	if next != nil && stop == "" {
		return *next
	}
	most := ""
	if len(d.Left) > 0 {
		most = "at most "
	}
	o := Outcome{Verdict: slo.Pass, Why: fmt.Sprintf("%d of %s%d runs were made", done, most, all)}
	if next != nil {
		o.Verdict = slo.Inconclusive
		o.Why += ": " + stop
	}
	return Next{Done: true, Outcome: o}
}

func (d AB) order(replicate, level int) []string {
	const four = 4
	rng := rand.New(rand.NewPCG(d.Seed, uint64((replicate-1)/four)<<32|uint64(level)))
	var orders [four][]string
	for i := 0; i < four; i += 2 {
		for _, k := range rng.Perm(len(d.Arms)) {
			orders[i] = append(orders[i], d.Arms[k])
		}
		orders[i+1] = slices.Clone(orders[i])
		slices.Reverse(orders[i+1])
	}
	return orders[rng.Perm(four)[(replicate-1)%four]]
}
