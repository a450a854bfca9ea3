package compare

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// bracket is a confirmed line; a negative number is none.
func bracket(level, failing float64) Bracket {
	b := Bracket{Verdict: "pass"}
	if level >= 0 {
		b.Level = &level
	} else {
		b.Verdict = "fail"
	}
	if failing >= 0 {
		b.LowestFailing = &failing
	}
	return b
}

// soft is a confirmed line with an estimate.
func soft(level, failing, estimate, low, high float64) Bracket {
	b := bracket(level, failing)
	b.Estimate, b.Low, b.High = &estimate, &low, &high
	return b
}

func TestLine(t *testing.T) {
	for _, tt := range []struct {
		why    string
		a, b   Bracket
		margin float64
		want   stats.Verdict
		says   string
	}{
		{"the same", bracket(100, 101), bracket(100, 101), 0.05, stats.Equivalent, "is 100 pods (fails at 101), it was 100 pods (fails at 101), +0.0%"},
		{"the same, and the bracket as wide as the margin", bracket(20, 21), bracket(20, 21), 0.05, stats.Equivalent, "-4.8% to +5.0%"},
		{"the same, and the bracket a little wider than the margin", bracket(19, 20), bracket(19, 20), 0.05, stats.NotWorse, "-5.0% to +5.3%"},
		{"a little lower", bracket(100, 101), bracket(97, 98), 0.05, stats.Equivalent, ", -3.0%;"},
		{"lower", bracket(100, 101), bracket(90, 91), 0.05, stats.Worse, "margin 5%"},
		{"higher", bracket(100, 101), bracket(110, 111), 0.05, stats.Better, ""},
		{"so wide that it may be either", bracket(100, 150), bracket(100, 150), 0.05, stats.Undecided, "searches with --resolution 5.2 would decide"},
		{"wide, and lower", bracket(100, 150), bracket(80, 130), 0.05, stats.Undecided, "searches with --resolution 14 would decide"},
		{"as far apart as the margin", bracket(100, 110), bracket(95, 105), 0.05, stats.Undecided, "only a wider margin decides"},
		{"nothing failed in the arm: not worse is sure", bracket(100, 101), bracket(100, -1), 0.05, stats.NotWorse, "without an upper bound"},
		{"nothing failed in the arm, far above", bracket(100, 101), bracket(200, -1), 0.05, stats.Better, "200 pods or more"},
		{"nothing failed in the baseline", bracket(100, -1), bracket(100, 101), 0.05, stats.Undecided, "nothing failed in base: search it with a higher --max"},
		{"nothing failed in either", bracket(100, -1), bracket(100, -1), 0.05, stats.Undecided, "a higher --max"},
		{"nothing failed in the arm, whose levels are low", bracket(100, 101), bracket(80, -1), 0.05, stats.Undecided, "nothing failed in arm: search it with a higher --max"},
		{"the arm does not even hold the first level", bracket(100, 101), bracket(-1, 50), 0.05, stats.Worse, "is below 50 pods"},
		{"the first level was above the baseline's line", bracket(100, 101), bracket(-1, 150), 0.05, stats.Undecided, "the first level failed in arm"},
		{"the baseline does not even hold the first level", bracket(-1, 50), bracket(100, 101), 0.05, stats.Better, "without an upper bound"},
		{"unconfirmed", bracket(100, 101), Bracket{Verdict: "inconclusive"}, 0.05, stats.Undecided, "the load line of arm is inconclusive"},
		{"invalid", Bracket{Verdict: "invalid"}, bracket(100, 101), 0.05, stats.Undecided, "the load line of base is invalid"},
		{
			"soft lines: the change is that of the estimates", soft(58, 60, 58.5, 57, 61), soft(59, 61, 58.03, 57, 60), 0.05, stats.Undecided,
			"is 59 pods (estimate 58.03, 95% interval 57 to 60), it was 58 pods (estimate 58.5, 95% interval 57 to 61), by the estimates -0.8%",
		},
		{"confirmed of nothing", bracket(-1, -1), bracket(100, 101), 0.05, stats.Undecided, "is unknown"},
	} {
		got := Line("base", "arm", tt.a, tt.b, "pods", tt.margin)
		if got.Verdict != tt.want || !strings.Contains(got.Why, tt.says) {
			t.Errorf("%s: %s, want %s: %q lacks %q", tt.why, got.Verdict, tt.want, got.Why, tt.says)
		}
	}
}

// The interval holds the change of the limits, wherever in their brackets they
// lie, and no tighter one does; what is decided is then right. A resolution
// that is proposed decides, and one half as wide again does not.
func TestLinesHoldTheLimits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	proposed := 0
	resolution := regexp.MustCompile(`--resolution ([0-9.e+-]+) would decide`)
	for range 3000 {
		step := []float64{1, 5, 25}[rng.IntN(3)]
		limit := func() (float64, Bracket) {
			at := 20 + 200*rng.Float64()
			level := math.Floor(at/step) * step
			return at, bracket(level, level+step)
		}
		x, a := limit()
		y, b := limit()
		const margin = 0.1
		c := Line("a", "b", a, b, "", margin)
		if *a.Level == 0 {
			continue
		}
		d := y/x - 1
		if d < *c.Lo-1e-9 || d > *c.Hi+1e-9 {
			t.Fatalf("limits %g and %g, in %s and %s: the change %g is not in %g to %g", x, y, a.String(""), b.String(""), d, *c.Lo, *c.Hi)
		}
		wrong := c.Verdict == stats.Better && d <= margin || c.Verdict == stats.Worse && d >= -margin ||
			c.Verdict == stats.Equivalent && math.Abs(d) > margin+1e-9 || c.Verdict == stats.NotWorse && d < -margin-1e-9
		if wrong {
			t.Fatalf("limits %g and %g: %s", x, y, c.Verdict)
		}
		m := resolution.FindStringSubmatch(c.Why)
		if m == nil {
			continue
		}
		proposed++
		r, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		with := func(r float64) stats.Verdict {
			return Line("a", "b", bracket(*a.Level, *a.Level+r), bracket(*b.Level, *b.Level+r), "", margin).Verdict
		}
		if with(r) == stats.Undecided || with(1.5*r) != stats.Undecided {
			t.Fatalf("%s and %s: a resolution of %g gives %s, one of %g %s", a.String(""), b.String(""), r, with(r), 1.5*r, with(1.5*r))
		}
	}
	if proposed < 100 {
		t.Errorf("only %d resolutions were proposed", proposed)
	}
}
