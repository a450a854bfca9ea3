package design

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// maxMoves bounds the moves to a neighbouring candidate before the search cannot decide.
const maxMoves = 3

// Candidates is the number of levels that may be confirmed: the first candidate and its successors.
const Candidates = 1 + 2*maxMoves

// Search looks for the load line: the highest level that holds, confirmed by whole steps from empty. A ramp
// by Step and a bracket of at most one Resolution propose a candidate.
type Search struct {
	From, Step, Max, Resolution float64
	Need, Of                    int // Need of Of confirming steps must pass; both are at least 1
}

// Next returns the next step or the outcome. It depends only on the steps made, also for other goals' lines.
func (s Search) Next(made []Made, stop string) Next {
	r := &search{Search: s, made: made, seen: make(map[int][]Made)}
	r.grain = s.grain()
	r.width = int(math.Round(s.Resolution / r.grain))
	for _, m := range made {
		k := r.index(m.Level)
		r.seen[k] = append(r.seen[k], m)
	}
	n := r.next()
	if !n.Done && stop != "" {
		return r.done(slo.Inconclusive, stop)
	}
	return n
}

type search struct {
	Search
	made []Made
	seen map[int][]Made // by level, in order
	// Levels count the grain above From, of which step and resolution (width grains) are multiples.
	grain     float64
	width     int
	lo, hi    int // lo and hi are the bracket: the highest level that held and the lowest that failed, or -1
	confirmed int // confirmations of the candidate lo
}

// grain returns the largest common divisor of the step and the resolution, to six digits after the point.
func (s Search) grain() float64 {
	const digits = 1e6
	a, b := math.Round(s.Step*digits), math.Round(s.Resolution*digits)
	if !(a >= 1 && b >= 1 && a < 1<<53 && b < 1<<53) {
		return s.Resolution
	}
	for x, y := int64(a), int64(b); ; x, y = y, x%y {
		if y == 0 {
			return float64(x) / digits
		}
	}
}

// index returns the number of whole grains from From to level. The small addend corrects binary fractions.
func (r *search) index(level float64) int {
	return int(math.Floor((level-r.From)/r.grain + 1e-6))
}

func (r *search) level(k int) float64 {
	// Round multiples of 0.1 and the like to what a person would write.
	return math.Round((r.From+float64(k)*r.grain)*1e9) / 1e9
}

func (r *search) next() Next {
	r.lo, r.hi = -1, -1
	if n := r.ramp(); n != nil {
		return *n
	}
	if r.hi == 0 {
		// Steps for another goal's line may show that a higher level held.
		if above := r.heldAbove(0); above >= 0 {
			return r.done(slo.Inconclusive, fmt.Sprintf("the first level, %s, failed where the higher %s held", r.name(0), r.name(above)))
		}
		return r.done(slo.Fail, fmt.Sprintf("the first level, %s, failed", r.name(0)))
	}
	if r.hi > 0 {
		if n := r.bracket(); n != nil {
			return *n
		}
	}
	return r.confirm()
}

// ramp raises until a level fails, and leaves the bracket in lo and hi.
func (r *search) ramp() *Next {
	stride := max(r.index(r.From+r.Step), 1)
	top := max(r.index(r.Max), 0)
	for k := 0; ; k = min(k+stride, top) {
		why := fmt.Sprintf("ramp: %s held, up by %s", r.name(r.lo), r.number(float64(stride)*r.grain))
		if k == 0 {
			why = "ramp: the first level, the baseline of all others"
		}
		verdict, n := r.verdictAt(k, record.PurposeRamp, why)
		if n != nil {
			return n
		}
		if verdict == slo.Fail {
			r.hi = k
			return nil
		}
		r.lo = k
		if k == top {
			return nil
		}
	}
}

// bracket narrows lo and hi until they are at most one resolution apart.
func (r *search) bracket() *Next {
	failing, _ := r.decided(r.hi)
	effective := r.index(failing.Effective)
	if r.hi-r.lo > r.width && r.lo < effective && effective < r.hi {
		why := fmt.Sprintf("bracket: of %s only %s were ready", r.name(r.hi), r.number(failing.Effective))
		if n := r.narrow(effective, why); n != nil {
			return n
		}
		if r.lo == effective && effective+r.width < r.hi {
			why := fmt.Sprintf("bracket: %s held, does one resolution more?", r.name(effective))
			if n := r.narrow(effective+r.width, why); n != nil {
				return n
			}
		}
	}
	for r.hi-r.lo > r.width {
		why := fmt.Sprintf("bracket: halfway between %s, which held, and %s, which failed", r.name(r.lo), r.name(r.hi))
		if n := r.narrow((r.lo+r.hi)/2, why); n != nil {
			return n
		}
	}
	return nil
}

func (r *search) narrow(k int, why string) *Next {
	verdict, n := r.verdictAt(k, record.PurposeBracket, why)
	switch {
	case n != nil:
		return n
	case verdict == slo.Pass:
		r.lo = k
	default:
		r.hi = k
	}
	return nil
}

// confirm makes whole steps at the candidate lo, and one at its upper neighbour.
func (r *search) confirm() Next {
	for down, up := 0, 0; ; {
		passed, failed, undecided := r.wholeSteps(r.lo)
		r.confirmed = passed
		switch {
		case failed > r.Of-r.Need:
			// The candidate does not hold repeatably.
			r.hi = r.lo
			if r.lo -= r.width; r.lo < 0 && r.hi > 0 {
				r.lo = 0
			}
			r.confirmed = 0
			if down++; down > maxMoves || r.lo < 0 {
				return r.done(slo.Inconclusive, fmt.Sprintf("%s and the levels above it failed to confirm", r.name(r.hi)))
			}
			continue
		case passed < r.Need:
			if undecided > r.Of {
				return r.done(slo.Inconclusive, fmt.Sprintf("the confirmations of %s do not decide", r.name(r.lo)))
			}
			return r.propose(r.lo, record.PurposeConfirm, true,
				fmt.Sprintf("confirm: %s, passed %d of %d needed, failed %d of %d tolerated", r.name(r.lo), passed, r.Need, failed, r.Of-r.Need))
		}
		if below, above := r.crossed(); above > below {
			r.hi, r.lo = below, -1 // the bracket below both
			for k := range r.seen {
				if m, ok := r.decided(k); ok && k < below && m.Verdict == slo.Pass {
					r.lo = max(r.lo, k)
				}
			}
			r.confirmed, _, _ = r.wholeSteps(r.lo)
			return r.done(slo.Inconclusive, fmt.Sprintf("%s failed where the higher %s passed", r.name(below), r.name(above)))
		}
		if r.hi < 0 {
			return r.done(slo.Pass, fmt.Sprintf("%s, the highest level that was allowed, held in %d of %d confirmations: nothing failed", r.name(r.lo), passed, passed+failed))
		}
		passedUpper, failedUpper, undecidedUpper := r.wholeSteps(r.hi)
		switch {
		case failedUpper > 0 && failedUpper > r.Of-r.Need || failedUpper > 0 && passedUpper == 0:
			return r.done(slo.Pass, fmt.Sprintf("%s held in %d of %d confirmations, %s failed from empty", r.name(r.lo), passed, passed+failed, r.name(r.hi)))
		case passedUpper == 0:
			if undecidedUpper > 1 {
				return r.done(slo.Inconclusive, fmt.Sprintf("the steps at %s do not decide", r.name(r.hi)))
			}
			return r.propose(r.hi, record.PurposeUpper, true, fmt.Sprintf("upper: %s is confirmed, does %s fail from empty as well?", r.name(r.lo), r.name(r.hi)))
		}
		// The upper bound holds from empty: it becomes the candidate.
		r.lo, r.confirmed = r.hi, passedUpper
		if r.hi = min(r.lo+r.width, r.index(r.Max)); r.hi <= r.lo {
			r.hi = -1
		}
		if up++; up > maxMoves {
			return r.done(slo.Inconclusive, fmt.Sprintf("levels up to %s failed in the ramp and passed from empty", r.name(r.lo)))
		}
	}
}

// verdictAt returns the verdict of the first step at level k that decided, or proposes a step.
func (r *search) verdictAt(k int, purpose record.Purpose, why string) (slo.Verdict, *Next) {
	if m, ok := r.decided(k); ok {
		return m.Verdict, nil
	}
	tried := r.seen[k]
	switch len(tried) {
	case 0:
		n := r.propose(k, purpose, false, why)
		return "", &n
	case 1:
		n := r.propose(k, purpose, true, fmt.Sprintf("%s again from empty: the first step there was %s", r.name(k), tried[0].Verdict))
		return "", &n
	default:
		n := r.done(tried[len(tried)-1].Verdict, fmt.Sprintf("the steps at %s do not decide", r.name(k)))
		return "", &n
	}
}

// decided returns the first step at level k with a verdict about the target.
func (r *search) decided(k int) (Made, bool) {
	for _, m := range r.seen[k] {
		if m.Verdict.Decided() {
			return m, true
		}
	}
	return Made{}, false
}

// wholeSteps counts the verdicts of whole steps at level k, without the one that proposed it.
func (r *search) wholeSteps(k int) (passed, failed, undecided int) {
	for _, m := range r.seen[k] {
		if !m.FromEmpty || !m.FullHold || !m.Purpose.Confirms() {
			continue
		}
		switch m.Verdict {
		case slo.Pass:
			passed++
		case slo.Fail:
			failed++
		default:
			undecided++
		}
	}
	return passed, failed, undecided
}

// heldAbove returns the highest level above k at which every step that decided held, or -1.
func (r *search) heldAbove(k int) int {
	highest := -1
	for level, steps := range r.seen {
		held := slices.ContainsFunc(steps, func(m Made) bool { return m.Verdict == slo.Pass })
		failed := slices.ContainsFunc(steps, func(m Made) bool { return m.Verdict == slo.Fail })
		if held && !failed && level > k {
			highest = max(highest, level)
		}
	}
	return highest
}

// crossed returns the lowest level with more failed whole steps than tolerated, and the highest confirmed one
// that never failed: above it, the target is not monotone. At the upper bound one failed confirmation is
// enough.
func (r *search) crossed() (below, above int) {
	below, above = math.MaxInt, -1
	for k, steps := range r.seen {
		passed, failed, _ := r.wholeSteps(k)
		if passed > 0 && failed == 0 {
			above = max(above, k)
		}
		whole := 0
		for _, m := range steps {
			if m.FromEmpty && m.FullHold && m.Verdict == slo.Fail {
				whole++
			}
		}
		if whole > r.Of-r.Need || k == r.hi && failed > 0 {
			below = min(below, k)
		}
	}
	return below, above
}

func (r *search) mixed() []Mixed {
	lowest, highest := math.MaxInt, -1
	var list []Mixed
	levels := slices.Sorted(maps.Keys(r.seen))
	for _, k := range levels {
		m := Mixed{Level: r.level(k)}
		for _, x := range r.seen[k] {
			switch x.Verdict {
			case slo.Pass:
				m.Passed++
				highest = max(highest, k)
			case slo.Fail:
				m.Failed++
				lowest = min(lowest, k)
			}
		}
		list = append(list, m)
	}
	return slices.DeleteFunc(list, func(m Mixed) bool {
		k := r.index(m.Level)
		return k < lowest || k > highest || m.Passed+m.Failed == 0
	})
}

func (r *search) propose(k int, purpose record.Purpose, whole bool, why string) Next {
	level := r.level(k)
	return Next{
		StepPlan: record.StepPlan{Level: level, Purpose: purpose, FromEmpty: whole || needsEmpty(r.made, level), FullHold: whole, Why: why},
	}
}

func (r *search) done(verdict slo.Verdict, why string) Next {
	o := Outcome{Verdict: verdict, Confirmations: r.confirmed, Why: why, Mixed: r.mixed()}
	levels := slices.Sorted(maps.Keys(r.seen))
	if hi := r.tried(levels, slo.Fail, func(k int) bool { return r.hi >= 0 && k >= r.hi }); hi >= 0 {
		asked, made := r.level(hi), r.madeAt(hi)
		o.LowestFailing, o.FailingAsked = &made, &asked
	}
	slices.Reverse(levels)
	if lo := r.tried(levels, slo.Pass, func(k int) bool { return k <= r.lo }); lo >= 0 {
		asked, made := r.level(lo), r.madeAt(lo)
		o.Line, o.LineAsked = &made, &asked
	}
	return Next{Done: true, Outcome: o}
}

// tried returns the first of the levels within bounds at which a step had a verdict, or -1: the bounds of an
// estimate need not be levels that were made.
func (r *search) tried(levels []int, verdict slo.Verdict, within func(k int) bool) int {
	for _, k := range levels {
		if within(k) && slices.ContainsFunc(r.seen[k], func(m Made) bool { return m.Verdict == verdict }) {
			return k
		}
	}
	return -1
}

// madeAt returns the level that the last step for level k reached.
func (r *search) madeAt(k int) float64 {
	level := r.level(k)
	if steps := r.seen[k]; len(steps) > 0 && steps[len(steps)-1].Reached > 0 {
		level = steps[len(steps)-1].Reached
	}
	return level
}

func (r *search) name(k int) string { return r.number(r.madeAt(k)) }

func (r *search) number(x float64) string { return number.Text(x, 10) }
