package design

import (
	"fmt"
	"math/rand/v2"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// AB makes each arm's run at each level, Repeat times over. A block is one run
// of every arm at one level, one after the other in an order that Seed draws:
// what changes with time then meets all arms alike. Every run begins from
// empty.
type AB struct {
	Arms   []string // the first is the baseline
	Levels []float64
	Repeat int // blocks at each level
	Seed   uint64
}

// maxInvalid is how often a run that says nothing of the target is made again.
const maxInvalid = 2

// Next is the first run that has not been made. One that was invalid is made
// once more, before the next.
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
				if next != nil {
					continue
				}
				next = &Next{
					Level: level, Arm: arm, Replicate: replicate, Purpose: record.PurposeAB, FromEmpty: true, Full: true,
					Why: fmt.Sprintf("arm %s in block %d of %d", arm, replicate, d.Repeat),
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
	o := Outcome{Verdict: slo.Pass, Why: fmt.Sprintf("%d of %d runs were made", done, all)}
	if next != nil {
		o.Verdict = slo.Inconclusive
		o.Why += ": " + stop
	}
	return Next{Done: true, Outcome: o}
}

// order is the order of the arms in a block.
func (d AB) order(replicate, level int) []string {
	rng := rand.New(rand.NewPCG(d.Seed, uint64(replicate)<<32|uint64(level)))
	order := make([]string, len(d.Arms))
	for i, k := range rng.Perm(len(d.Arms)) {
		order[i] = d.Arms[k]
	}
	return order
}
