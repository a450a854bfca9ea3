// Package design answers what to run next. Its functions are pure: from the
// steps that were made, in order, follows the next one, so that a search can
// be replayed, explained and resumed from what was recorded.
package design

import (
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Made is what a design may know of a step that was made.
type Made struct {
	record.StepPlan
	// Reached is the level that was made of it, by whole iterations; 0 is the
	// same.
	Reached float64
	Verdict slo.Verdict // by the goal whose line is searched
	// Effective is the level of the objects that were ready, at or below Level.
	Effective float64
}

// Next is a design's answer: a further step, or the outcome.
type Next struct {
	Done            bool
	record.StepPlan               // of a further step
	Hold            time.Duration // of that step, where it is neither the full hold nor a short one; else 0
	// Once done:
	Outcome Outcome
}

// Outcome is what a finished design came to.
type Outcome struct {
	// Verdict is pass (the line is confirmed), breach (not even the first
	// level held), inconclusive or invalid.
	Verdict slo.Verdict
	// Line is the highest level that held; nil when none did. With an
	// inconclusive verdict it is the lower end of the bracket.
	Line *float64
	// LowestFailing is the lowest level that failed; nil when none did.
	LowestFailing *float64
	// LineAsked and FailingAsked are the levels that were asked for to make
	// those.
	LineAsked, FailingAsked *float64
	// Confirmations counts the confirming steps at Line that passed.
	Confirmations int
	Why           string
	// Mixed are the levels of a search at which steps do not agree, from the
	// lowest that failed to the highest that passed; nil where each below the
	// line passed and each above it failed.
	Mixed []Mixed
}

// Mixed is how often a level passed and failed, be it in a step that only
// proposed it.
type Mixed struct {
	Level  float64 `json:"level"`
	Passed int     `json:"passed"`
	Failed int     `json:"failed"`
}

// Design chooses steps.
type Design interface {
	// Next follows from the steps made so far. A stop that is not empty says
	// why no further step can be made: the answer is then always done.
	Next(made []Made, stop string) Next
}

// Sweep makes given levels in the given order.
type Sweep struct {
	Levels []float64
	// Repeat is how often all of them are made, 0 for once. A step of several is
	// its number's replicate.
	Repeat int
	// Fresh empties the target before every level, and not just before one
	// that is not above its predecessor.
	Fresh bool
}

// Next is the level after the last one made.
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

// steps is how many are made in all.
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
		case slo.Breached:
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

// worse is the verdict of two steps together: a breach was seen whatever else
// was, and neither invalid nor unknown counts as a pass.
func worse(a, b slo.Verdict) slo.Verdict {
	for _, v := range []slo.Verdict{slo.Breached, slo.Invalid, slo.Inconclusive} {
		if a == v || b == v {
			return v
		}
	}
	return slo.Pass
}

// needsEmpty reports whether a level can only be reached from empty: raising
// adds the difference, and nothing else lowers.
func needsEmpty(made []Made, level float64) bool {
	return len(made) == 0 || level <= made[len(made)-1].Level
}
