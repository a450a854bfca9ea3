package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// trials returns how many a row of the table has: fewer where the table is not written.
func trials(all int) int {
	if os.Getenv("PLIMSOLL_TRUTH_OUT") == "" {
		return max(all/20, 30)
	}
	return all
}

// few returns the largest number of n that chance makes of a share in one of a thousand
// cases: what a test with fewer trials allows.
func few(n int, share float64) int {
	return int(float64(n)*share + 3.1*math.Sqrt(float64(n)*share*(1-share)) + 1)
}

// lineOf returns the line of a search whose steps pass with a probability that falls with
// their level. Refused says that a step which fails was refused everywhere.
func lineOf(rng *rand.Rand, d design.Search, refused bool, holds func(level float64) float64) (*result.LoadLine, slo.Verdict) {
	goal, err := slo.ParseGoal("g=all Ready")
	if err != nil {
		panic(err)
	}
	spec := result.Spec{Goals: []slo.Goal{goal}, Axis: "a", Unit: "u", Kind: record.ObjectKind{There: "Ready"}}
	var made []design.Made
	var steps []*verdict.Judged
	for {
		n := d.Next(made, "")
		if n.Done {
			return findings.LineOf(&spec, steps, d, "g", n.Outcome), n.Outcome.Verdict
		}
		v := slo.Pass
		if rng.Float64() >= holds(n.Level) {
			v = slo.Fail
		}
		made = append(made, design.Made{StepPlan: n.StepPlan, Reached: n.Level, Verdict: v, Effective: n.Level})
		m := fold.Measured{}
		m.Step = result.Step{ID: len(made), StepPlan: n.StepPlan, LevelReached: n.Level, Verdict: v, Goals: map[string]slo.Verdict{"g": v}}
		steps = append(steps, &verdict.Judged{Measured: m, Binding: map[string]string{}, Exact: refused && v == slo.Fail})
	}
}

// The interval of a line holds the level at which half of the steps hold; lines of
// equal plans are seldom better or worse than each other.
func TestLinesAreEstimates(t *testing.T) {
	n := trials(2000)
	for _, width := range []float64{0.01, 0.05, 0.1} {
		rng := rand.New(rand.NewPCG(26, uint64(1000*width)))
		covered, found, wrong, pairs := 0, 0, 0, 0
		var before *compare.Bracket
		for range n {
			at := 100 + 400*rng.Float64()
			soft := func(level float64) float64 { return 1 / (1 + math.Exp((level-at)/(width*at))) }
			l, _ := lineOf(rng, design.Search{From: 25, Step: 50, Max: 2000, Resolution: 1, Need: 3, Of: 3}, false, soft)
			if l != nil && l.Interval != nil {
				found++
				if (l.Interval.Lo == nil || *l.Interval.Lo <= at) && (l.Interval.Hi == nil || *l.Interval.Hi >= at) {
					covered++
				}
			}
			// Pairs of one planted line.
			soft = func(level float64) float64 { return 1 / (1 + math.Exp((level-300)/(width*300))) }
			l, v := lineOf(rng, design.Search{From: 25, Step: 50, Max: 2000, Resolution: 1, Need: 3, Of: 3}, false, soft)
			if l == nil {
				continue
			}
			b := l.Bracket(v)
			if before != nil {
				pairs++
				if c := compare.Line("a", "b", *before, b, "u", 0.05); c.Verdict == stats.Better || c.Verdict == stats.Worse {
					wrong++
				}
			}
			before = &b
		}
		if found < n*9/10 || found-covered > few(found, 0.06) {
			t.Errorf("width %g: the interval holds the planted line in %d of %d searches", width, covered, found)
		}
		if wrong > few(pairs, 0.05) {
			t.Errorf("width %g: %d of %d pairs of equal plans are better or worse", width, wrong, pairs)
		}
		add(fmt.Sprintf("interval of a line, width %g%% (sim)", 100*width), fmt.Sprintf("%d soft limits from 100 to 500, logistic", n), "at least 94%", "%.1f%% of %d hold it", 100*float64(covered)/float64(found), found)
		add(fmt.Sprintf("equal plans compared, width %g%% (sim)", 100*width), fmt.Sprintf("%d searches of one limit", n), "at most 5% better or worse", "%d of %d pairs", wrong, pairs)
	}
	rng := rand.New(rand.NewPCG(26, 1))
	exact := 0
	for range n {
		at := math.Floor(100 + 400*rng.Float64())
		l, _ := lineOf(rng, design.Search{From: 25, Step: 50, Max: 2000, Resolution: 1, Need: 3, Of: 3}, true, func(level float64) float64 {
			if level <= at {
				return 1
			}
			return 0
		})
		if l != nil && l.Exact && *l.Level == at && *l.LowestFailing == at+1 {
			exact++
		}
	}
	if exact != n {
		t.Errorf("hard limits: %d of %d are exact", exact, n)
	}
	add("bracket of a hard line (sim)", fmt.Sprintf("%d limits at which all places refuse", n), "always", "%d of %d", exact, n)
}

// steady judges a stream of so many requests a second at a server that does capacity of
// them, each taking as long: the hold made again, longer, as the judge asks for.
func steady(rng *rand.Rand, rate, capacity float64, random bool) slo.Verdict {
	goal, err := slo.ParseGoal("g=errors < 1%")
	if err != nil {
		panic(err)
	}
	const hold, warmUp = 10, 2
	b := judge.NewBuilder(result.Spec{
		Goals: []slo.Goal{goal}, Axis: "requests", Unit: "requests/s", ExperimentKind: "sweep",
		Kind: record.ObjectKind{There: "Responded"}, HoldMax: 5 * hold * 1e6, Start: time.Unix(0, 0),
	})
	d := design.Sweep{Levels: []float64{rate}}
	now := 0.0
	for step := 1; ; step++ {
		n := b.NextStep(d, "")
		if n.Done {
			return n.Outcome.Verdict
		}
		seconds := max(n.Hold.Seconds(), hold)
		put := func(at float64, body record.Body) {
			b.Add(record.Event{T: record.Micros(at * 1e6), Step: step, Body: body})
		}
		put(now, &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: rate, Purpose: n.Purpose, FromEmpty: true, FullHold: true}, Reached: rate, Hold: record.Micros(seconds * 1e6), Open: true})
		put(now+warmUp, &record.StepEvent{Phase: record.PhaseReached, StepPlan: record.StepPlan{Level: rate}, Reached: rate})
		// Lindley's recursion: each request begins once the one before it is over.
		at, free := 0.0, 0.0
		var over []float64
		served, due := 0, 0
		window := seconds / 20
		for k := 0; ; {
			if random {
				at += rng.ExpFloat64() / rate
			} else {
				at += 1 / rate
			}
			for k < 20 && at > warmUp+window*float64(k+1) {
				to := warmUp + window*float64(k+1)
				for served < len(over) && over[served] <= to {
					served++
				}
				put(now+to, &record.Window{From: record.Micros((now + to - window) * 1e6), To: record.Micros((now + to) * 1e6), Intended: due, Sent: due, Done: due, Answered: due, Backlog: len(over) - served})
				k, due = k+1, 0
			}
			if at > warmUp+seconds {
				break
			}
			free = max(free, at) + 1/capacity
			over = append(over, free)
			if at > warmUp {
				due++
			}
		}
		now += warmUp + seconds
		put(now, &record.StepEvent{Phase: record.PhaseLoaded, StepPlan: record.StepPlan{Level: rate}, Reached: rate})
		put(now, &record.StepEvent{Phase: record.PhaseEnd, StepPlan: record.StepPlan{Level: rate}, Reached: rate, Ending: record.EndHeld})
		now++
	}
}

// A rate below the capacity is steady, and one above it is not.
func TestSteadyRates(t *testing.T) {
	n := trials(2000)
	for _, rate := range []float64{100, 1000} {
		rng := rand.New(rand.NewPCG(27, uint64(rate)))
		alarms, misses, open := 0, 0, 0
		for range n {
			if v := steady(rng, 0.95*rate, rate, true); v == slo.Fail {
				alarms++
			}
			switch steady(rng, 1.03*rate, rate, true) {
			case slo.Pass:
				misses++
			case slo.Inconclusive:
				open++
			}
		}
		if alarms > few(n, 0.01) || misses > few(n, 0.05) {
			t.Errorf("at %g a second: %d of %d steady rates grow, %d of %d that grow are steady", rate, alarms, n, misses, n)
		}
		add(fmt.Sprintf("notSteady, false alarms at %g/s (sim)", rate), fmt.Sprintf("%d holds at 95%% of the capacity, random arrivals", n), "at most 1%", "%d: %.2f%%", alarms, 100*float64(alarms)/float64(n))
		add(fmt.Sprintf("notSteady, misses at %g/s (sim)", rate), fmt.Sprintf("%d holds at 103%% of it, made longer while undecided", n), "at most 5%", "%d: %.2f%%; %d stay undecided", misses, 100*float64(misses)/float64(n), open)
	}
}

// A comparison that goes on until it is decided leaves the truth out of its interval
// at any look as seldom as it says, and decides soon.
func TestUntilDecided(t *testing.T) {
	s := stats.Sequential{Least: 4, Most: 30, Alpha: 0.05, Margin: 0.05}
	bounds, looks := s.Bounds(), stats.Looks(4, 30)
	rng := rand.New(rand.NewPCG(29, 1))
	n := trials(200_000)
	missed := 0
	for range n {
		sum, squares, made := 0.0, 0.0, 0.0
		for k, look := range looks {
			for ; made < float64(look); made++ {
				x := rng.NormFloat64()
				sum, squares = sum+x, squares+x*x
			}
			if math.Abs(sum) > bounds[k]*math.Sqrt(made*(squares-sum*sum/made)/(made-1)) {
				missed++
				break
			}
		}
	}
	if missed > few(n, 0.05) {
		t.Errorf("of %d comparisons %d leave the truth out at some look", n, missed)
	}
	add("until decided, miscoverage at any look (sim)", fmt.Sprintf("%d series of 30 blocks", n), "at most 5.2%", "%.2f%%", 100*float64(missed)/float64(n))

	n = trials(1000)
	for _, c := range []struct {
		why    string
		change float64
		want   stats.Verdict
	}{{"+10%", 0.10, stats.Worse}, {"no change", 0, stats.Equivalent}} {
		decided, blocks := 0, 0
		for range n {
			a, b := slices.Repeat([]float64{1}, 30), make([]float64, 30)
			for i := range b {
				b[i] = (1 + c.change) * math.Exp(0.06*rng.NormFloat64())
			}
			g, err := s.Judge(a, b, false, stats.Scheduled)
			if err != nil {
				t.Fatal(err)
			}
			if blocks += g.Blocks; g.Verdict == c.want {
				decided++
			}
		}
		if n-decided > few(n, 0.05) {
			t.Errorf("%s: %d of %d are %s", c.why, decided, n, c.want)
		}
		add(fmt.Sprintf("until decided, %s (sim)", c.why), "a spread of 6%, margin 5%, at most 30 blocks", "at least 95% "+string(c.want), "%.1f%% of %d, after %.1f blocks", 100*float64(decided)/float64(n), n, float64(blocks)/float64(n))
	}
}
