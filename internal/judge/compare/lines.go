package compare

import (
	"cmp"
	"fmt"
	"math"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Line compares the load line of an arm with that of the baseline by their intervals; more is better. An
// exact line lies from its confirmed level to below the lowest level that failed.
func Line(baseline, arm string, a, b Bracket, unit string, margin float64) LineComparison {
	c := LineComparison{Unit: unit, Baseline: a, Arm: b, Verdict: stats.Undecided}
	for _, side := range []struct {
		name string
		Bracket
	}{{baseline, a}, {arm, b}} {
		if side.Verdict != string(slo.Pass) && side.Verdict != string(slo.Fail) {
			c.Why = fmt.Sprintf("the load line of %s is %s: it was not confirmed", side.name, side.Verdict)
			return c
		}
	}
	loA, hiA, okA := a.bounds()
	loB, hiB, okB := b.bounds()
	if !okA || !okB {
		c.Why = "where one of the load lines lies is unknown"
		return c
	}
	if from, to := cmp.Or(a.Estimate, a.Level), cmp.Or(b.Estimate, b.Level); from != nil && to != nil && *from > 0 {
		c.Change = finite(*to / *from - 1)
	}
	lo, hi := rounded(loB/hiA-1), rounded(hiB/loA-1) // 21/20-1 is more than 0.05 by 4e-17
	c.Lo, c.Hi = finite(lo), finite(hi)
	c.Verdict = stats.Change{Lo: lo, Hi: hi}.Judge(margin, true)

	moved := fmt.Sprintf("the load line is %s, it was %s", b.String(unit), a.String(unit))
	if c.Change != nil {
		of := ", "
		if a.estimated() || b.estimated() {
			of = ", by the estimates " // a line in its bracket is estimated at its level
		}
		moved += of + percent(*c.Change)
	}
	upTo := "without an upper bound"
	if c.Hi != nil {
		upTo = "to " + percent(hi)
	}
	within := "by the intervals of both lines"
	if a.inBracket() && b.inBracket() {
		within = "within the brackets"
	}
	c.Why = fmt.Sprintf("%s; %s the change is %s %s, margin %s", moved, within, percent(lo), upTo, share(margin))
	switch {
	case c.Verdict != stats.Undecided:
	case a.inBracket() && b.inBracket() || a.LowestFailing == nil || b.LowestFailing == nil || a.Level == nil || b.Level == nil:
		c.Why += "; " + narrower(baseline, arm, a, b, margin)
	default:
		c.Why += "; where levels hold by chance, compare times at a level that both hold: 'plimsoll sweep --levels LEVEL --repeat 5' for each"
	}
	return c
}

// rounded takes back the excess of binary fractions; an infinite change stays infinite.
func rounded(x float64) float64 {
	if math.IsInf(x, 0) {
		return x
	}
	return math.Round(x*1e9) / 1e9
}

// Withdraw withdraws the verdict of lines that do not belong to one goal.
func (c *LineComparison) Withdraw(why string) { c.Verdict, c.Why = stats.Undecided, why+"; "+c.Why }

// bounds returns the interval of the line, from lo to below hi: 0 and +Inf where nothing bounds it.
func (b Bracket) bounds() (lo, hi float64, ok bool) {
	hi = math.Inf(1)
	if x := cmp.Or(b.High, b.LowestFailing); x != nil && b.LowestFailing != nil {
		hi = *x
	}
	if x := cmp.Or(b.Low, b.Level); x != nil && b.Level != nil {
		lo = *x
	}
	return lo, hi, b.Level != nil || b.LowestFailing != nil
}

// inBracket reports whether the bracket is all that is known of the line.
func (b Bracket) inBracket() bool { return b.Exact || b.Low == nil && b.High == nil }

func (b Bracket) estimated() bool { return !b.inBracket() && b.Estimate != nil }

func (b Bracket) String(unit string) string {
	switch {
	case b.Level == nil && b.LowestFailing != nil:
		return "below " + number.Text(*b.LowestFailing, 10) + " " + unit
	case b.Level == nil:
		return "unknown"
	case b.LowestFailing == nil:
		return number.Text(*b.Level, 10) + " " + unit + " or more"
	}
	if b.inBracket() || b.Low == nil || b.High == nil {
		return fmt.Sprintf("%s %s (fails at %s)", number.Text(*b.Level, 10), unit, number.Text(*b.LowestFailing, 10))
	}
	at := ""
	if b.Estimate != nil {
		at = "estimate " + number.Text(*b.Estimate, 4) + ", "
	}
	return fmt.Sprintf("%s %s (%s95%% interval %s to %s)", number.Text(*b.Level, 10), unit, at, number.Text(*b.Low, 4), number.Text(*b.High, 4))
}

// narrower says which searches would decide, if the lines stay where they are.
func narrower(baseline, arm string, a, b Bracket, margin float64) string {
	if a.LowestFailing == nil { // without an upper bound of the arm a verdict is possible, without the baseline's not
		return fmt.Sprintf("nothing failed in %s: search it with a higher --max", baseline)
	}
	if a.Level == nil || b.Level == nil {
		name := arm
		if a.Level == nil {
			name = baseline
		}
		return fmt.Sprintf("the first level failed in %s: search it with a lower --from", name)
	}
	la, lb := *a.Level, *b.Level
	change := lb/la - 1
	// With a resolution r the brackets are [la, la+r) and [lb, lb+r). At least
	// not worse is lb/(la+r)-1 >= -margin, and worse (lb+r)/la-1 < -margin.
	r := lb/(1-margin) - la
	if change < -margin || margin >= 1 {
		r = 0.999 * (la*(1-margin) - lb) // strictly below
	}
	if !(r > resolvable*la) {
		return "the load lines differ by about the margin: only a wider margin decides"
	}
	if b.LowestFailing == nil && change < -margin {
		return fmt.Sprintf("nothing failed in %s: search it with a higher --max", arm)
	}
	return fmt.Sprintf("searches with --resolution %s would decide, if the load lines stay where they are", roundDown(r))
}

const resolvable = 0.001 // of the line: the least resolution that is worth proposing

func roundDown(x float64) string {
	scale := math.Pow(10, math.Floor(math.Log10(x))-1)
	return number.Text(math.Floor(x/scale+1e-9)*scale, 4)
}
