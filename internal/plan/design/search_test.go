package design

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// target is a planted system: what a step at a level comes to.
type target func(level float64, made int) (slo.Verdict, float64)

// hard holds up to limit; beyond it just limit objects get there.
func hard(limit float64) target {
	return func(level float64, _ int) (slo.Verdict, float64) {
		if level <= limit {
			return slo.Pass, level
		}
		return slo.Fail, limit
	}
}

// drive makes steps until the design is done.
func drive(t *testing.T, d Design, sys target) ([]Made, Outcome) {
	t.Helper()
	var made []Made
	for range 500 {
		n := d.Next(made, "")
		if n.Done {
			confirmed := 0
			for _, m := range made {
				if n.Outcome.Line != nil && m.Level == *n.Outcome.Line && m.FromEmpty && m.FullHold && m.Verdict == slo.Pass {
					confirmed++
				}
			}
			if n.Outcome.Confirmations > confirmed {
				t.Errorf("line %s is said to be confirmed %d times, and was %d times: %s", show(n.Outcome.Line), n.Outcome.Confirmations, confirmed, path(made))
			}
			for _, bound := range []struct {
				level   *float64
				verdict slo.Verdict
			}{{n.Outcome.Line, slo.Pass}, {n.Outcome.LowestFailing, slo.Fail}} {
				if bound.level != nil && !slices.ContainsFunc(made, func(m Made) bool { return m.Level == *bound.level && m.Verdict == bound.verdict }) {
					t.Errorf("the outcome names the level %v, at which no step was %s: %s", *bound.level, bound.verdict, path(made))
				}
			}
			return made, n.Outcome
		}
		if n.Why == "" {
			t.Errorf("step %d at %v has no reason", len(made)+1, n.Level)
		}
		if len(made) > 0 && n.Level <= made[len(made)-1].Level && !n.FromEmpty {
			t.Errorf("step %d lowers %v to %v without emptying the target", len(made)+1, made[len(made)-1].Level, n.Level)
		}
		verdict, effective := sys(n.Level, len(made))
		made = append(made, Made{StepPlan: n.StepPlan, Verdict: verdict, Effective: effective})
	}
	t.Fatalf("no outcome after %d steps", len(made))
	return nil, Outcome{}
}

func path(made []Made) string {
	var words []string
	for _, m := range made {
		mark := ""
		if m.Verdict != slo.Pass {
			mark = "!"
		}
		words = append(words, fmt.Sprintf("%s %g%s", m.Purpose, m.Level, mark))
	}
	return strings.Join(words, ", ")
}

func show(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}

func TestSearchTakesTheStatedPath(t *testing.T) {
	s := Search{From: 20, Step: 20, Max: 250, Resolution: 1, Need: 3, Of: 3}
	made, o := drive(t, s, hard(110))
	want := "ramp 20, ramp 40, ramp 60, ramp 80, ramp 100, ramp 120!, bracket 110, bracket 111!, confirm 110, confirm 110, confirm 110, upper 111!"
	if got := path(made); got != want {
		t.Errorf("path:\n got %s\nwant %s", got, want)
	}
	if o.Verdict != slo.Pass || show(o.Line) != "110" || show(o.LowestFailing) != "111" || o.Confirmations != 3 {
		t.Errorf("outcome %s line %s failing %s confirmed %d: %s", o.Verdict, show(o.Line), show(o.LowestFailing), o.Confirmations, o.Why)
	}
	for i, m := range made {
		whole := m.Purpose == record.PurposeConfirm || m.Purpose == record.PurposeUpper
		if whole != (m.FromEmpty && m.FullHold) && m.Purpose != record.PurposeBracket && i > 0 {
			t.Errorf("step %d (%s %g): from empty %v, full %v", i+1, m.Purpose, m.Level, m.FromEmpty, m.FullHold)
		}
	}
}

// The steps are those that were asked for, and the resolution ends the bracket:
// neither need be a multiple of the other.
func TestTheStepIsWhatWasAskedFor(t *testing.T) {
	s := Search{From: 5, Step: 10, Max: 100, Resolution: 7, Need: 1, Of: 1}
	made, o := drive(t, s, hard(20))
	want := "ramp 5, ramp 15, ramp 25!, bracket 20, confirm 20, upper 25!"
	if got := path(made); got != want {
		t.Errorf("path:\n got %s\nwant %s", got, want)
	}
	if o.Verdict != slo.Pass || show(o.Line) != "20" || show(o.LowestFailing) != "25" {
		t.Errorf("outcome %s line %s failing %s: %s", o.Verdict, show(o.Line), show(o.LowestFailing), o.Why)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 3000 {
		s := Search{From: float64(1 + rng.IntN(100)), Resolution: []float64{1, 3, 7, 0.3, 0.25, 1.0 / 3}[rng.IntN(6)], Need: 1, Of: 1}
		s.Step = math.Ceil(100*s.Resolution*(1+20*rng.Float64())) / 100
		if rng.IntN(2) == 0 {
			s.Step = math.Ceil(s.Step)
		}
		s.Max = s.From + 100*rng.Float64()
		limit := s.From + 120*rng.Float64()
		tell := rng.IntN(2) == 0
		made, o := drive(t, s, func(level float64, n int) (slo.Verdict, float64) {
			v, e := hard(limit)(level, n)
			if !tell {
				e = level * 0.3
			}
			return v, e
		})
		for i, m := range made {
			if m.Purpose == record.PurposeRamp && i+1 < len(made) && made[i+1].Purpose == record.PurposeRamp && math.Abs(made[i+1].Level-m.Level-s.Step) > 1e-6 && made[i+1].Level+s.Step <= s.Max {
				t.Fatalf("%+v: a step from %v to %v", s, m.Level, made[i+1].Level)
			}
		}
		if o.Verdict != slo.Pass || o.Line == nil || *o.Line > limit {
			t.Fatalf("%+v limit %v: %s line %s: %s (%s)", s, limit, o.Verdict, show(o.Line), o.Why, path(made))
		}
		if o.LowestFailing == nil && limit < s.Max-s.Resolution || o.LowestFailing != nil && (*o.LowestFailing < limit || *o.LowestFailing-*o.Line > s.Resolution+1e-6) {
			t.Fatalf("%+v limit %v: line %s failing %s (%s)", s, limit, show(o.Line), show(o.LowestFailing), path(made))
		}
	}
}

// However the range is cut up, a hard limit is found to the resolution, with
// the published search's own shape among the cases: 250 to 2750.
func TestSearchFindsAHardLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		s := Search{
			From:       float64(1 + rng.IntN(300)),
			Resolution: []float64{1, 5, 10, 0.5}[rng.IntN(4)],
			Need:       1 + rng.IntN(3),
		}
		s.Of = s.Need + rng.IntN(2)
		s.Step = s.Resolution * float64(1+rng.IntN(60))
		s.Max = s.From + s.Resolution*float64(rng.IntN(400))
		limit := s.From + s.Resolution*(float64(rng.IntN(500))-20) + 0.25*s.Resolution
		tell := rng.IntN(2) == 0 // whether the effective level is right
		sys := func(level float64, made int) (slo.Verdict, float64) {
			v, e := hard(limit)(level, made)
			if !tell {
				e = level * 0.3
			}
			return v, e
		}
		made, o := drive(t, s, sys)
		top := s.From + math.Floor((s.Max-s.From)/s.Resolution+1e-9)*s.Resolution
		switch {
		case limit < s.From:
			if o.Verdict != slo.Fail || o.Line != nil || show(o.LowestFailing) != fmt.Sprint(s.From) {
				t.Fatalf("%+v limit %v: %s line %s failing %s", s, limit, o.Verdict, show(o.Line), show(o.LowestFailing))
			}
		case limit >= top:
			if o.Verdict != slo.Pass || *o.Line != top || o.LowestFailing != nil {
				t.Fatalf("%+v limit %v: %s line %s failing %s, want %v and none (%s)", s, limit, o.Verdict, show(o.Line), show(o.LowestFailing), top, path(made))
			}
		default:
			want := s.From + math.Floor((limit-s.From)/s.Resolution)*s.Resolution
			if o.Verdict != slo.Pass || *o.Line != want || *o.LowestFailing != want+s.Resolution || o.Confirmations < s.Need {
				t.Fatalf("%+v limit %v: %s line %s failing %s confirmed %d, want %v (%s)", s, limit, o.Verdict, show(o.Line), show(o.LowestFailing), o.Confirmations, want, path(made))
			}
		}
	}
}

func TestSearchOnTargetsThatWaver(t *testing.T) {
	s := Search{From: 10, Step: 10, Max: 100, Resolution: 1, Need: 3, Of: 3}
	t.Run("a candidate that fails to confirm is stepped down from", func(t *testing.T) {
		_, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			// The ramp and the bracket see 55; made whole from empty, 53 holds.
			if level <= 53 || level <= 55 && made < 8 {
				return slo.Pass, level
			}
			return slo.Fail, 55
		})
		if o.Verdict != slo.Pass || show(o.Line) != "53" || show(o.LowestFailing) != "54" {
			t.Errorf("%s line %s failing %s: %s", o.Verdict, show(o.Line), show(o.LowestFailing), o.Why)
		}
	})
	t.Run("after three step-downs it cannot tell", func(t *testing.T) {
		made, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if level <= 55 && made < 8 {
				return slo.Pass, level
			}
			return slo.Fail, 55
		})
		if o.Verdict != slo.Inconclusive {
			t.Errorf("%s: %s (%s)", o.Verdict, o.Why, path(made))
		}
	})
	t.Run("an upper bound that passes from empty becomes the candidate", func(t *testing.T) {
		_, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if level <= 55 || level <= 56 && made > 8 {
				return slo.Pass, level
			}
			return slo.Fail, 55
		})
		if o.Verdict != slo.Pass || show(o.Line) != "56" || show(o.LowestFailing) != "57" {
			t.Errorf("%s line %s failing %s: %s", o.Verdict, show(o.Line), show(o.LowestFailing), o.Why)
		}
	})
	t.Run("levels that fail at first and pass from empty, one after the other, decide nothing", func(t *testing.T) {
		made, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if level <= 55 || made > 8 {
				return slo.Pass, level
			}
			return slo.Fail, 55
		})
		if o.Verdict != slo.Inconclusive || show(o.Line) != "59" || o.Confirmations != 1 {
			t.Errorf("%s line %s confirmed %d: %s (%s)", o.Verdict, show(o.Line), o.Confirmations, o.Why, path(made))
		}
	})
	t.Run("4 of 5 tolerates one failure", func(t *testing.T) {
		s := s
		s.Need, s.Of = 4, 5
		failed := false
		_, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if level == 55 && made > 9 && !failed {
				failed = true
				return slo.Fail, 54
			}
			return hard(55)(level, made)
		})
		if o.Verdict != slo.Pass || show(o.Line) != "55" || o.Confirmations != 4 {
			t.Errorf("%s line %s confirmed %d: %s", o.Verdict, show(o.Line), o.Confirmations, o.Why)
		}
	})
	t.Run("a step that does not decide is made again, from empty", func(t *testing.T) {
		made, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if made == 2 {
				return slo.Inconclusive, 0
			}
			return hard(55)(level, made)
		})
		if o.Verdict != slo.Pass || show(o.Line) != "55" || made[3].Level != made[2].Level || !made[3].FromEmpty {
			t.Errorf("%s line %s: %s", o.Verdict, show(o.Line), path(made))
		}
	})
	t.Run("a level that never decides leaves the bracket and its verdict", func(t *testing.T) {
		_, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if level == 40 {
				return slo.Invalid, 0
			}
			return hard(55)(level, made)
		})
		if o.Verdict != slo.Invalid || show(o.Line) != "30" {
			t.Errorf("%s line %s: %s", o.Verdict, show(o.Line), o.Why)
		}
	})
	t.Run("confirmations that are all invalid decide nothing", func(t *testing.T) {
		_, o := drive(t, s, func(level float64, made int) (slo.Verdict, float64) {
			if made >= 8 {
				return slo.Invalid, 0
			}
			return hard(55)(level, made)
		})
		if o.Verdict != slo.Inconclusive || o.Confirmations != 0 {
			t.Errorf("%s confirmed %d: %s", o.Verdict, o.Confirmations, o.Why)
		}
	})
}

func TestSearchStopsWithItsBracket(t *testing.T) {
	s := Search{From: 10, Step: 10, Max: 100, Resolution: 1, Need: 3, Of: 3}
	made, _ := drive(t, s, hard(55))
	for n := range made {
		next := s.Next(made[:n], "the budget is spent")
		if !next.Done || next.Outcome.Verdict != slo.Inconclusive || !strings.Contains(next.Outcome.Why, "budget") {
			t.Errorf("after %d steps: %+v", n, next)
		}
	}
	if o := s.Next(made[:8], "the budget is spent").Outcome; show(o.Line) != "55" || show(o.LowestFailing) != "56" {
		t.Errorf("after the bracket: line %s failing %s, want 55 and 56", show(o.Line), show(o.LowestFailing))
	}
}

// Another goal's search over the same steps repeats none that it can use.
func TestSearchUsesStepsMadeForAnotherGoal(t *testing.T) {
	s := Search{From: 10, Step: 10, Max: 100, Resolution: 1, Need: 3, Of: 3}
	made, _ := drive(t, s, hard(55))
	again := make([]Made, len(made))
	copy(again, made)
	if n := s.Next(again, ""); !n.Done {
		t.Errorf("a goal with the same line wants %s %g", n.Purpose, n.Level)
	}
	// A stricter goal fails at 40 in the ramp, where the first held.
	for i := range again {
		if again[i].Level > 33 {
			again[i].Verdict, again[i].Effective = slo.Fail, 33
		}
	}
	n := s.Next(again, "")
	if n.Done || n.Purpose != record.PurposeBracket || n.Level != 33 || !n.FromEmpty {
		t.Errorf("the stricter goal wants %+v, want its bracket at 33", n)
	}
}

// The search is a function of the steps alone: asking again, or asking from a
// copy, answers the same.
func TestSearchIsPure(t *testing.T) {
	s := Search{From: 3, Step: 7, Max: 90, Resolution: 1, Need: 2, Of: 3}
	made, _ := drive(t, s, hard(41))
	for n := range len(made) + 1 {
		before := append([]Made(nil), made[:n]...)
		a, b := s.Next(made[:n], ""), s.Next(before, "")
		if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(before, append([]Made(nil), made[:n]...)) {
			t.Fatalf("after %d steps: %+v and %+v", n, a, b)
		}
	}
}

func TestSweep(t *testing.T) {
	made, o := drive(t, Sweep{Levels: []float64{40, 20, 60, 80}}, hard(60))
	if path(made) != "sweep 40, sweep 20, sweep 60, sweep 80!" || o.Verdict != slo.Fail || show(o.Line) != "60" || show(o.LowestFailing) != "80" {
		t.Errorf("%s: %s line %s failing %s", path(made), o.Verdict, show(o.Line), show(o.LowestFailing))
	}
	if !made[0].FromEmpty || !made[1].FromEmpty || made[2].FromEmpty {
		t.Errorf("from empty: %v %v %v, want true true false", made[0].FromEmpty, made[1].FromEmpty, made[2].FromEmpty)
	}
	o = Sweep{Levels: []float64{1, 2, 3}}.Next(made[:1], "the budget is spent").Outcome
	if o.Verdict != slo.Inconclusive || !strings.Contains(o.Why, "1 of 3") {
		t.Errorf("a sweep that was cut: %s, %s", o.Verdict, o.Why)
	}
}

// Levels that went both ways come with how often. A level that failed whole from
// empty, below one that passed, decides against any line.
func TestSearchTellsWhereStepsDisagree(t *testing.T) {
	s := Search{From: 110, Step: 10, Max: 200, Resolution: 10, Need: 3, Of: 3}
	step := func(level float64, purpose record.Purpose, full bool, v slo.Verdict) Made {
		return Made{StepPlan: record.StepPlan{Level: level, Purpose: purpose, FromEmpty: true, FullHold: full}, Verdict: v, Effective: level}
	}
	held := func(level float64, purpose record.Purpose, n int) (list []Made) {
		for range n {
			list = append(list, step(level, purpose, true, slo.Pass))
		}
		return list
	}
	for _, tt := range []struct {
		why     string
		whole   bool // the step at 120 that failed
		verdict slo.Verdict
		line    float64
		says    string
	}{
		{"a short step only proposes: what was made whole decides", false, slo.Pass, 130, "130 held in 3 of 3"},
		{"a whole step from empty decides as much as those of the line", true, slo.Inconclusive, 110, "120 failed where the higher 130 passed"},
	} {
		made := []Made{step(110, record.PurposeRamp, false, slo.Pass), step(120, record.PurposeRamp, tt.whole, slo.Fail)}
		made = append(made, held(110, record.PurposeConfirm, 3)...)
		made = append(made, held(120, record.PurposeUpper, 3)...)
		made = append(made, held(130, record.PurposeUpper, 3)...)
		made = append(made, step(140, record.PurposeBracket, true, slo.Pass), step(140, record.PurposeUpper, true, slo.Fail))
		n := s.Next(made, "")
		want := []Mixed{{120, 3, 1}, {130, 3, 0}, {140, 1, 1}}
		if !n.Done || n.Outcome.Verdict != tt.verdict || *n.Outcome.Line != tt.line || !strings.Contains(n.Outcome.Why, tt.says) || !reflect.DeepEqual(n.Outcome.Mixed, want) {
			t.Errorf("%s: %+v", tt.why, n)
		}
	}
	if _, o := drive(t, s, hard(150)); len(o.Mixed) != 0 {
		t.Errorf("a target that is clear: %+v", o.Mixed)
	}
}

// Steps that another goal asked for tell whether the first level's failure was
// the system's limit.
func TestAFirstLevelThatFailedBelowOneThatHeld(t *testing.T) {
	s := Search{From: 10, Step: 10, Max: 100, Resolution: 1, Need: 3, Of: 3}
	for _, c := range []struct {
		why     string
		above   []slo.Verdict // of steps at 20
		verdict slo.Verdict
	}{
		{"nothing was made above it", nil, slo.Fail},
		{"a higher level failed too", []slo.Verdict{slo.Fail}, slo.Fail},
		{"a higher level held", []slo.Verdict{slo.Pass}, slo.Inconclusive},
		{"a higher level held and failed", []slo.Verdict{slo.Pass, slo.Fail}, slo.Fail},
		{"a higher level does not decide", []slo.Verdict{slo.Inconclusive}, slo.Fail},
	} {
		made := []Made{{StepPlan: record.StepPlan{Level: 10, Purpose: record.PurposeRamp, FromEmpty: true}, Verdict: slo.Fail}}
		for _, v := range c.above {
			made = append(made, Made{StepPlan: record.StepPlan{Level: 20, Purpose: record.PurposeRamp}, Verdict: v})
		}
		n := s.Next(made, "")
		if !n.Done || n.Outcome.Verdict != c.verdict || show(n.Outcome.LowestFailing) != "10" {
			t.Errorf("%s: %s, done %v: %s", c.why, n.Outcome.Verdict, n.Done, n.Outcome.Why)
		}
		if c.verdict == slo.Inconclusive && n.Outcome.Why != "the first level, 10, failed where the higher 20 held" {
			t.Errorf("%s: %s", c.why, n.Outcome.Why)
		}
	}
}
