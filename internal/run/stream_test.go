package run

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// streamed is a trial of a stream of requests, in an open loop.
func streamed(plan simulated.Plan, levels ...float64) trial {
	plan.Stream = true
	return trial{
		plan: plan, goals: []string{"latency=Responded p99 <= 50ms; errors < 1%; achieved >= 95%"}, design: design.Sweep{Levels: levels},
		options: engine.Options{Open: true, Warmup: 5 * time.Second, MaxInFlight: 10_000, Timeout: 10 * time.Second, Hold: 30 * time.Second, ShortHold: 30 * time.Second},
	}
}

func took(d time.Duration) dist.Dist { return dist.Dist{Shape: dist.Constant, A: d} }

// only is the one step that a trial makes.
func only(t *testing.T, tr trial) result.Step {
	t.Helper()
	r, _, _, err := tr.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Steps) != 1 {
		t.Fatalf("%d steps: %s", len(r.Steps), r.Why)
	}
	return r.Steps[0]
}

// Planted times are found within the resolution of the histograms, in either
// loop.
func TestPlantedTimesOfAStreamAreFound(t *testing.T) {
	t.Parallel()
	within := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || *got < want || *got > want*(1+record.HistogramResolution) {
			t.Errorf("%s is %v, planted %g and a resolution of %g", what, got, want, record.HistogramResolution)
		}
	}
	tr := streamed(simulated.Plan{Latency: took(37123 * time.Microsecond), Connect: took(4567 * time.Microsecond)}, 1000)
	s := only(t, tr)
	for what, got := range map[string]*float64{"p50": s.Latency["Responded"].P50, "p99": s.Latency["Responded"].P99, "the maximum": s.Latency["Responded"].Max} {
		within(what, got, 0.04169)
	}
	within("the way to the server", s.Latency["Connected"].P50, 0.004567)
	if s.Verdict != slo.Pass || s.Requests.Intended != 30_000 || s.Requests.Done != 30_000 || s.Arrivals.WarmUp != 5000 || math.Abs(*s.AchievedRate-1000) > 0.1 {
		t.Errorf("%s (%s), %+v, %d before the hold, %v a second", s.Verdict, s.VerdictWhy, s.Requests, s.Arrivals.WarmUp, *s.AchievedRate)
	}

	tr = streamed(simulated.Plan{Latency: took(10 * time.Millisecond)}, 8)
	tr.options.Open = false
	s = only(t, tr)
	within("p99 of clients", s.Latency["Responded"].P99, 0.01)
	if s.Verdict != slo.Pass || s.Requests.Done != 24_000 || s.InFlightMax != 8 || *s.AchievedRate != 800 {
		t.Errorf("8 clients of 10 ms each: %s (%s), %+v, %v a second, %d in flight", s.Verdict, s.VerdictWhy, s.Requests, *s.AchievedRate, s.InFlightMax)
	}

	tr = streamed(simulated.Plan{Latency: dist.Dist{Shape: dist.Uniform, A: 10 * time.Millisecond, B: 30 * time.Millisecond}}, 2000)
	l := only(t, tr).Latency["Responded"]
	for q, got := range map[float64]*float64{0.5: l.P50, 0.9: l.P90, 0.99: l.P99} {
		want := 0.01 + 0.02*q
		if math.Abs(*got-want) > 0.02*4*math.Sqrt(q*(1-q)/60_000)+0.001*want {
			t.Errorf("p%g is %g, planted %g", 100*q, *got, want)
		}
	}
	if lo, hi := l.Intervals["p50"][0], l.Intervals["p50"][1]; lo == nil || hi == nil || *lo > 0.02 || *hi < 0.02 || *hi-*lo > 0.001 {
		t.Errorf("the interval of the median is %v to %v, planted 0.02", lo, hi)
	}
}

// Arrivals by chance wait where evenly spread ones do not, for as long as the
// theory of queues says: of Poisson arrivals at a server of constant time 1/m
// that is used to the share r, r / (2 m (1 - r)) on average (Pollaczek and
// Khinchine).
func TestRandomArrivalsWait(t *testing.T) {
	t.Parallel()
	for random, want := range map[bool]float64{false: 0.005, true: 0.005 + 0.8/(2*1000*0.2)} {
		tr := streamed(simulated.Plan{Latency: took(5 * time.Millisecond), Rate: 1000, RandomArrivals: random}, 800)
		tr.options.Hold, tr.options.ShortHold = 120*time.Second, 120*time.Second
		s := only(t, tr)
		if mean := s.Latency["Responded"].Mean; mean == nil || math.Abs(*mean-want) > 0.1*(want-0.0049) {
			t.Errorf("random arrivals %v: the mean is %g, want %g", random, *mean, want)
		}
		if n := s.Requests.Intended; math.Abs(float64(n)-96_000) > 1500 || !random && n != 96_000 {
			t.Errorf("random arrivals %v: %d requests", random, n)
		}
	}
}

// A server that stands still for a second shows in p99 as it must: those that
// came meanwhile count from when they should have come. A client that waits for
// its answer sends little meanwhile, and would hide it.
func TestAStreamOmitsNothing(t *testing.T) {
	t.Parallel()
	s := only(t, streamed(simulated.Plan{Latency: took(time.Millisecond), Pause: time.Second}, 1000))
	// 1000 of 30,000 came in that second; of the slowest 300 each waited for
	// more than 700 ms.
	if p99 := s.Latency["Responded"].P99; p99 == nil || *p99 < 0.69 || *p99 > 0.71 {
		t.Errorf("p99 is %v, want 0.7", p99)
	}
	if b := s.Breaches; s.Verdict != slo.Fail || len(b) != 1 || b[0].Kind != result.BreachLatency {
		t.Errorf("%s (%s), %+v", s.Verdict, s.VerdictWhy, b)
	}
}

// A generator that is too slow makes a step invalid, and not the target slow;
// one that has room to spare does not.
func TestASlowGeneratorIsNotTheTargets(t *testing.T) {
	t.Parallel()
	for generator, want := range map[float64]slo.Verdict{990: slo.Invalid, 1010: slo.Pass} {
		s := only(t, streamed(simulated.Plan{Latency: took(20 * time.Millisecond), Generator: generator}, 1000))
		if s.Verdict != want || want == slo.Invalid && !strings.Contains(s.VerdictWhy, "plimsoll itself was late") {
			t.Errorf("a generator of %g/s at 1000/s: %s (%s), own delay %v", generator, s.Verdict, s.VerdictWhy, *s.Arrivals.OwnDelayP99)
		}
	}
}

// What the generator itself was late by only adds: a goal that holds all the same
// holds. One that does not hold may be its doing, unless requests failed.
func TestOwnDelayOnlyAdds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, goal string
		failEvery int
		want      slo.Verdict
	}{
		{"it holds", "Responded p99 <= 100ms", 0, slo.Pass},
		{"the delay may be why it does not", "Responded p99 <= 2ms", 0, slo.Invalid},
		{"requests failed", "Responded p99 <= 2ms; errors < 1%", 50, slo.Fail},
	} {
		tr := streamed(simulated.Plan{Latency: took(time.Millisecond), Generator: 1200, RandomArrivals: true, FailEvery: c.failEvery}, 1000)
		tr.goals = []string{"goal=" + c.goal}
		if s := only(t, tr); s.Verdict != c.want || *s.Arrivals.OwnDelayP99 < 0.001 {
			t.Errorf("%s: %s (%s), own delay %v", c.why, s.Verdict, s.VerdictWhy, *s.Arrivals.OwnDelayP99)
		}
	}
}

// A server of 1000 a second is asked for more. What it answers in the hold is the
// rate, and the backlog is what the schedule says less that, be it dropped later.
func TestOverloadIsReportedByTheClock(t *testing.T) {
	t.Parallel()
	for _, times := range []float64{1.1, 2, 10} {
		tr := streamed(simulated.Plan{Latency: took(time.Millisecond), Rate: 1000}, 1000*times)
		tr.options.MaxInFlight = 100
		s := only(t, tr)
		if s.Verdict != slo.Fail || math.Abs(*s.AchievedRate-1000) > 1 || *s.EffectiveLevel != *s.AchievedRate {
			t.Errorf("%g times: %s (%s), %v a second", times, s.Verdict, s.VerdictWhy, *s.AchievedRate)
		}
		// Five seconds after it was due a request is dropped.
		most, last := 5000*times+100, s.Backlog.Means[len(s.Backlog.Means)-1]
		if want := min(1000*(times-1)*35, most); math.Abs(last-want) > 0.01*want+1 {
			t.Errorf("%g times: the backlog is %v at the end, want %g", times, s.Backlog.Means, want)
		}
	}
}

func TestWhatBecomesOfRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why     string
		plan    simulated.Plan
		change  func(*trial)
		verdict slo.Verdict
		because string
		is      func(r result.StreamRequests) bool
	}{
		{"every 50th fails", simulated.Plan{FailEvery: 50}, nil, slo.Fail, "errors < 1%: it was 2%",
			func(r result.StreamRequests) bool { return r.Failed["PlantedFailure"] == 600 && r.Done == 29_400 }},
		{"one in 200 fails: so few are allowed, and p99 does not fall on them", simulated.Plan{FailEvery: 200}, nil, slo.Pass, "",
			func(r result.StreamRequests) bool { return r.Failed["PlantedFailure"] == 150 }},
		{"what is given up at its bound has failed", simulated.Plan{Latency: took(20 * time.Second)}, nil, slo.Fail, "Responded p99 <= 50ms: it was never reached",
			func(r result.StreamRequests) bool { return r.Failed[record.FailedTimeout] == 30_000 }},
		{"what becomes of the last is unknown", simulated.Plan{LoseAfter: 34_000}, nil, slo.Inconclusive, "1000 requests",
			func(r result.StreamRequests) bool { return r.Lost == 1000 && r.Done == 29_000 }},
		{"no place among those under way", simulated.Plan{Latency: took(20 * time.Millisecond)}, func(tr *trial) { tr.options.MaxInFlight = 10 }, slo.Invalid, "the generator reached its own limit of requests in flight, which says nothing about the target: 30000 of 30000 arrivals waited for a place among 10, each of which took 20",
			func(r result.StreamRequests) bool { return r.Late == 30_000 && r.Dropped > 5000 }},
		{"no place among those under way, which take longer than is allowed", simulated.Plan{Latency: took(80 * time.Millisecond)}, func(tr *trial) { tr.options.MaxInFlight = 40 }, slo.Fail, "achievedRate",
			func(r result.StreamRequests) bool { return r.Late == 30_000 && r.Dropped > 5000 }},
		{"all must be done, and one is not", simulated.Plan{FailEvery: 34_000}, func(tr *trial) { tr.goals = []string{"all=all Responded"} }, slo.Fail, "1 request did not reach it",
			func(r result.StreamRequests) bool { return r.Done == 29_999 }},
	} {
		tr := streamed(tt.plan, 1000)
		if tt.change != nil {
			tt.change(&tr)
		}
		s := only(t, tr)
		if s.Verdict != tt.verdict || !strings.Contains(s.VerdictWhy, tt.because) || !tt.is(*s.Requests) || s.Requests.Intended != 30_000 {
			t.Errorf("%s: %s (%s), %+v", tt.why, s.Verdict, s.VerdictWhy, *s.Requests)
		}
		if tt.verdict == slo.Fail && len(s.Breaches) == 0 {
			t.Errorf("%s: no breach is told", tt.why)
		}
	}
}

// A sweep that cannot tell says which step, and why; it concludes nothing of a
// limit that it did not look for.
func TestASweepSaysWhyItCannotTell(t *testing.T) {
	t.Parallel()
	r, _, _, err := streamed(simulated.Plan{LoseAfter: 34_000}, 500, 1000).run(t)
	if err != nil || r.Verdict != slo.Inconclusive || !strings.Contains(r.Why, "2 of 2 levels were made; step 2 is inconclusive: ") {
		t.Errorf("%s (%s), %v", r.Verdict, r.Why, err)
	}
	tr := streamed(simulated.Plan{FailEvery: 10}, 500)
	for kind, says := range map[string]bool{"limit": true, "sweep": false} {
		tr.kindOfRun = kind
		if r, _, _, _ := tr.run(t); r.BrokeFirst == nil || (r.BrokeFirst.Says != "") != says {
			t.Errorf("of a %s: %+v", kind, r.BrokeFirst)
		}
	}
}

// The planted capacity is found, and a cut step never counts as a breach.
func TestAPlantedCapacityIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector it takes half a minute, and shares no more between goroutines than others do")
	}
	t.Parallel()
	tr := streamed(simulated.Plan{Latency: took(2 * time.Millisecond), Rate: 730})
	tr.design = design.Search{From: 200, Step: 200, Max: 5000, Resolution: 10, Need: 3, Of: 3}
	r, _, _, err := tr.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != slo.Pass || *r.LoadLine.Level != 730 || *r.LoadLine.LowestFailing != 740 {
		t.Errorf("verdict %s (%s), line %+v", r.Verdict, r.Why, r.LoadLine)
	}
}

func TestACutStreamIsInconclusive(t *testing.T) {
	t.Parallel()
	for _, at := range []int{2000, 20_000, 34_990} {
		tr := streamed(simulated.Plan{Latency: took(200 * time.Millisecond)}, 1000) // a breach, if it were whole
		tr.cancel = func(cancel context.CancelFunc, w *watcher) {
			w.onStatus = func(s engine.Status) {
				if s.Sent >= at {
					cancel()
				}
			}
		}
		r, _, _, err := tr.run(t)
		if s := r.Steps[0]; err == nil || s.Verdict != slo.Inconclusive || s.Ending != record.EndInterrupted || r.LoadLine != nil {
			t.Errorf("cut after %d requests: %s (%s), error %v", at, s.Verdict, s.VerdictWhy, err)
		}
	}
}

// A stream that was cut in any of its steps goes on to the verdict of an
// unbroken one.
func TestACutStreamGoesOn(t *testing.T) {
	t.Parallel()
	tr := streamed(simulated.Plan{Latency: took(2 * time.Millisecond), Rate: 95})
	tr.design = design.Sweep{Levels: []float64{50, 150, 80}}
	tr.options.Hold, tr.options.ShortHold, tr.options.Warmup = 10*time.Second, 10*time.Second, 2*time.Second
	goesOn(t, tr)
}

// A guard on errors stops a stream within a window, in either loop, and leaves one alone
// that fails less often than the bound allows.
func TestTheGuardOnErrorsStopsAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why       string
		open      bool
		failEvery int
		bound     float64
		stopped   bool
	}{
		{"every request fails", true, 1, 50, true},
		{"of clients that wait for answers", false, 1, 50, true},
		{"one in ten fails, and one in twenty may", true, 10, 5, true},
		{"one in ten fails, and half may", true, 10, 50, false},
		{"one in forty fails, and one in twenty may", true, 40, 5, false},
	} {
		tr := streamed(simulated.Plan{Latency: took(time.Millisecond), FailEvery: tt.failEvery}, 400, 800)
		tr.options.Open, tr.options.Guards = tt.open, []engine.Guard{{Name: record.MeasureRequestErrors, Bound: tt.bound, Percent: true}}
		tr.goals = []string{"answered=errors < 60%"}
		r, _, _, err := tr.run(t)
		if err != nil || len(r.Steps) != 2 {
			t.Fatalf("%s: %d steps, %v", tt.why, len(r.Steps), err)
		}
		for _, s := range r.Steps {
			stopped := s.Ending == record.EndGuard
			if stopped != tt.stopped || stopped && (s.Verdict != slo.Fail || !strings.Contains(s.VerdictWhy, "guard:apiErrors")) {
				t.Errorf("%s: ended %s: %s (%s)", tt.why, s.Ending, s.Verdict, s.VerdictWhy)
			}
			// Two windows: one may begin in time, and a share is taken over whole ones.
			start, _ := time.Parse(time.RFC3339Nano, s.Start)
			end, _ := time.Parse(time.RFC3339Nano, s.End)
			if took := end.Sub(start); stopped && tt.failEvery == 1 && (took <= 0 || took > 2*time.Second) {
				t.Errorf("%s: stopped after %v", tt.why, took)
			}
		}
	}
}
