// Package design chooses the next step. Its functions are pure: the next step follows from those made before,
// in order, so that a search can be replayed, explained and resumed from a record.
package design

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Made holds what a design may know of a step.
type Made struct {
	record.StepPlan
	Reached   float64     // the level that was reached, by whole iterations; 0 is Level
	Verdict   slo.Verdict // by the goal whose line is searched
	Effective float64     // the level of the objects that were ready, at most Level
}

// Next is a design's answer: a further step, or the outcome.
type Next struct {
	Done            bool
	record.StepPlan               // of a further step
	Hold            time.Duration // of a further step, if it is neither the full nor the short hold; else 0
	Outcome         Outcome       // if Done
}

// Outcome is the result of a finished design.
type Outcome struct {
	// Verdict is pass (the line is confirmed), breach (not even the first level held), inconclusive or invalid.
	Verdict       slo.Verdict
	Line          *float64 // the highest level that held, nil without one; of an inconclusive search the lower bound
	LowestFailing *float64 // the lowest level that failed, nil without one
	// LineAsked and FailingAsked are the levels that the design had chosen for those.
	LineAsked, FailingAsked *float64
	Confirmations           int // confirming steps at Line that passed
	Why                     string
	// Mixed lists the levels where steps disagree, from the lowest that failed to the highest that passed.
	Mixed []Mixed
}

// Mixed counts the steps at a level that passed and failed, proposals included.
type Mixed struct {
	Level  float64 `json:"level"`
	Passed int     `json:"passed"`
	Failed int     `json:"failed"`
}

// Design chooses steps.
type Design interface {
	// Next follows from the steps so far. A stop says why no further step can be made, and ends the answer.
	Next(made []Made, stop string) Next
}

// Sweep makes given levels in the given order.
type Sweep struct {
	Levels []float64
	Repeat int  // times that all levels are made, 0 for once; the time is a step's replicate
	Fresh  bool // empty the target before every level, not only before one that is not above its predecessor
}

// Next returns the level after the last one made.
func (s Sweep) Next(made []Made, stop string) Next {
	if len(made) >= s.steps() || stop != "" {
		return Next{Done: true, Outcome: s.outcome(made, stop)}
	}
	level := s.Levels[len(made)%len(s.Levels)]
	next := Next{
		StepPlan: record.StepPlan{Level: level, Purpose: record.PurposeSweep, FromEmpty: s.Fresh || needsEmpty(made, level), FullHold: true, Why: fmt.Sprintf("level %d of %d that were asked for", len(made)%len(s.Levels)+1, len(s.Levels))},
	}
	if s.Repeat > 1 {
		next.Replicate = len(made)/len(s.Levels) + 1
		next.Why += fmt.Sprintf(", time %d of %d", next.Replicate, s.Repeat)
	}
	return next
}

func (s Sweep) steps() int { return len(s.Levels) * max(s.Repeat, 1) }

func (s Sweep) outcome(made []Made, stop string) Outcome {
	o := Outcome{Verdict: slo.Pass, Why: fmt.Sprintf("%d of %d levels were made", len(made), s.steps())}
	if s.Repeat > 1 {
		o.Why = fmt.Sprintf("%d of %d steps were made, at %d levels", len(made), s.steps(), len(s.Levels))
	}
	for _, m := range made {
		switch m.Verdict {
		case slo.Pass:
			if o.Line == nil || m.Level > *o.Line {
				o.Line = &m.Level
			}
		case slo.Fail:
			if o.LowestFailing == nil || m.Level < *o.LowestFailing {
				o.LowestFailing = &m.Level
			}
		}
		o.Verdict = worse(o.Verdict, m.Verdict)
	}
	if stop != "" && len(made) < s.steps() {
		o.Verdict = worse(o.Verdict, slo.Inconclusive)
		o.Why += ": " + stop
	}
	return o
}

// worse returns the verdict of two steps: any breach fails, and only two passes pass.
func worse(a, b slo.Verdict) slo.Verdict {
	for _, v := range []slo.Verdict{slo.Fail, slo.Invalid, slo.Inconclusive} {
		if a == v || b == v {
			return v
		}
	}
	return slo.Pass
}

// needsEmpty reports whether a level needs an empty start: raising only adds.
func needsEmpty(made []Made, level float64) bool {
	return len(made) == 0 || level <= made[len(made)-1].Level
}

const maxAhead = 500

// Ahead predicts the further steps of a design after those of each goal, to estimate the time. It takes three
// lines: as the ready objects suggest, the highest level that held, and just below the lowest that failed.
func Ahead(d Design, made [][]Made) [][]Next {
	told, held, below := make([]float64, len(made)), make([]float64, len(made)), make([]float64, len(made))
	for i, steps := range made {
		below[i] = math.Inf(1)
		for _, m := range steps {
			switch m.Verdict {
			case slo.Pass:
				held[i] = max(held[i], m.Level)
			case slo.Fail:
				if under := math.Nextafter(m.Level, 0); under < below[i] {
					below[i], told[i] = under, min(m.Effective, under)
				}
			}
		}
		told[i] = max(told[i], held[i])
	}
	return [][]Next{predict(d, made, told, true), predict(d, made, held, false), predict(d, made, below, false)}
}

// predict continues a design with guessed lines. With partly, a failing level has only its line's objects.
func predict(d Design, made [][]Made, lines []float64, partly bool) []Next {
	goals := make([][]Made, len(made))
	for i := range made {
		goals[i] = append([]Made{}, made[i]...)
	}
	var ahead []Next
	for len(ahead) < maxAhead {
		next := Next{Done: true}
		for i := 0; i < len(goals) && next.Done; i++ {
			next = d.Next(goals[i], "")
		}
		if next.Done {
			break
		}
		ahead = append(ahead, next)
		for i, line := range lines {
			m := Made{StepPlan: next.StepPlan, Verdict: slo.Pass, Effective: next.Level}
			if next.Level > line {
				m.Verdict = slo.Fail
				if partly {
					m.Effective = line
				}
			}
			goals[i] = append(goals[i], m)
		}
	}
	return ahead
}

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
