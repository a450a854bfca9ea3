package metrics

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// asking is a fixture with a Live for queries, in which a step is made from 1 s on and
// held from 5 s on.
func asking(t testing.TB, queries []string, jobs ...string) *fixture {
	t.Helper()
	f := newFixture(t, jobs...)
	var err error
	if f.live, err = NewLive(start(), 5*time.Second, queries); err != nil {
		t.Fatal(err)
	}
	f.part()
	for seconds, body := range map[float64]record.Body{
		1: &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 7, Purpose: record.PurposeSweep}},
	} {
		f.live.Event(record.Event{T: record.Micros(seconds * 1e6), Step: 1, Body: body})
	}
	f.live.Event(record.Event{T: 4e6, Step: 1, Body: &record.Slot{Sent: 3e6, Replied: 4e6, Outcome: record.SlotFailed}})
	f.live.Event(record.Event{T: 4e6, Step: 1, Body: &record.Slot{Sent: 2e6, Replied: 4e6, Outcome: record.SlotCreated}})
	return f
}

func (f *fixture) hold() {
	f.live.Event(record.Event{T: 5e6, Step: 1, Body: &record.StepEvent{Phase: record.PhaseReached}})
}

// below asks whether all series of a query are below a bound at so many seconds.
func (f *fixture) below(query string, bound, seconds float64) Found {
	return f.live.Ask(context.Background(), Question{Query: query, Holds: func(v float64) bool { return v < bound }, At: start().Add(time.Duration(seconds * 1e9))})
}

func foundText(f Found) string {
	text := fmt.Sprintf("%d/%d/%d %s", f.Series, f.Broken, f.NaN, f.Of)
	if f.Series > f.NaN {
		text += "=" + strconv.FormatFloat(f.Value, 'g', 4, 64)
	}
	if !f.Since.IsZero() {
		text += " since " + strconv.FormatFloat(f.Since.Sub(start()).Seconds(), 'g', -1, 64)
	}
	if f.Why != "" {
		text = f.Why
	}
	return strings.TrimSpace(text)
}

func TestQuestionsAboutAStep(t *testing.T) {
	table := []struct{ why, query, want string }{
		{"the largest of several, of which all hold", "size", `2/0/0 size{instance="one", job="a", of="y"}=8`},
		{"one that broke, since when it is above", "temperature", `1/1/0 temperature{instance="one", job="a"}=70 since 15`},
		{"the one that broke first, though another is worse by now", "heat", `2/2/0 heat{instance="one", job="a", of="early"}=10 since 10`},
		{"all of the hold: 5 s to 25 s", "rate(count_total[hold])", `1/0/0 {instance="one", job="a"}=2`},
		{"all of the step", "increase(count_total[step])", `1/1/0 {instance="one", job="a"}=48 since 10`},
		{"a subquery of the hold", "max_over_time(size{of='x'}[hold:5s])", `1/0/0 {instance="one", job="a", of="x"}=3`},
		{"an average of the hold that broke at a moment of it", "avg_over_time(temperature[hold])", `1/1/0 {instance="one", job="a"}=27 since 20`},
		{"a number", "scalar(size{of='x'}) + 1", `1/0/0 =4`},
		{"nothing", "size > 100", "no series came back"},
		{"a ratio without traffic", "rate(idle_total[hold]) / rate(idle_total[hold])", "1 of 1 series are not numbers (NaN), as a ratio is without traffic"},
		{"one of them NaN does not hold", "ratio", "1 of 2 series are not numbers (NaN), as a ratio is without traffic"},
		{"one NaN and one that broke is a breach", "ratio + 9", `2/1/1 {instance="one", job="a", of="y"}=10 since 5`},
		{"a series of nobody", "nothing_of_this_name", "no series came back"},
		{"own figures", "plimsoll_level", `1/0/0 plimsoll_level{job="plimsoll"}=7`},
		{"own counts", "plimsoll_errors_total / ignoring(outcome) plimsoll_requests_total{outcome='failed'}", `1/0/0 {job="plimsoll"}=1`},
		{"load and use joined", "size{of='x'} and on() plimsoll_hold", `1/0/0 size{instance="one", job="a", of="x"}=3`},
		{"whether it was read", "min_over_time(up{job='a'}[hold])", `1/0/0 {instance="one", job="a"}=1`},
		{"what is no number", "histogram_quantile(0.5, sum by (le) (rate(took_seconds_bucket[hold])))", "1/0/0 =0.625"},
		{"far back", "size{of='x'} offset 15s", `1/0/0 size{instance="one", job="a", of="x"}=3`},
	}
	var queries []string
	for _, c := range table {
		queries = append(queries, c.query)
	}
	f := asking(t, queries, "a", "b")
	f.pages["b"] = text("other 1\n")
	rounds := func() {
		for i, seconds := range []float64{0, 5.5, 10, 15, 20, 25} {
			if i == 1 {
				f.hold()
			}
			early, late := 0, 0
			if i >= 2 {
				early = 10
			}
			if i >= 4 {
				late = 50
			}
			f.pages["a"] = text(fmt.Sprintf(`size{of="x"} 3
size{of="y"} 8
temperature %d
heat{of="early"} %d
heat{of="late"} %d
count_total %d
idle_total 7
ratio{of="x"} NaN
ratio{of="y"} 1
took_seconds_bucket{le="0.5"} %d
took_seconds_bucket{le="1"} %d
took_seconds_bucket{le="+Inf"} %d
`, []int{5, 5, 5, 15, 40, 70}[i], early, late, int(2*seconds), 10*i, 30*i, 30*i))
			f.round(seconds)
		}
	}
	rounds()
	for _, c := range table {
		bound := 10.0
		if got := foundText(f.below(c.query, bound, 25)); got != c.want {
			t.Errorf("%s: %s < 10 at 25 s:\n%s, want\n%s", c.why, c.query, got, c.want)
		}
	}
	// What is asked afterwards, of the blocks, has the same answers.
	s := f.open()
	for query, want := range map[string]string{"temperature": "70", "max(heat)": "50", "sum(size)": "11"} {
		if got := ask(t, s, 25, query); !strings.Contains(got, want) {
			t.Errorf("%s is %s afterwards, want %s", query, got, want)
		}
	}
	if got := foundText(f.below("size", 10, 24.5)); !strings.HasSuffix(got, "=8") {
		t.Errorf("between two scrapes: %s", got)
	}
}

func TestALevelThatWasNotHeldHasNoHold(t *testing.T) {
	f := asking(t, []string{"rate(x[hold])", "x"}, "a")
	f.pages["a"] = text("x 1\n")
	for _, seconds := range []float64{0, 5, 10} {
		f.round(seconds)
	}
	for query, want := range map[string]string{"rate(x[hold])": "the level was not held", "x": `1/0/0 x{instance="one", job="a"}=1`, "y": "it was not asked for when the run began"} {
		if got := foundText(f.below(query, 10, 10)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// An endpoint that dies in the hold, at whatever moment and for however long, leaves no
// answer of what depends on it, and one of all else.
func TestWhatDependsOnAnEndpointThatDiesIsNotKnown(t *testing.T) {
	unknown := []string{
		"rate(x_total[hold])", "sum(rate(x_total[hold]))", "sum by (job) (rate(x_total[hold]))", "max_over_time(x_total{job='a'}[hold]) or vector(0)",
		"rate(x_total[1m])", "avg_over_time(sum(x_total)[hold:5s])", "rate(x_total{job='b'}[hold]) + on() rate(x_total{job='a'}[hold])",
	}
	known := []string{"rate(x_total{job='b'}[hold])", "count(rate(y_total[hold]))", "min_over_time(up{job='a'}[hold]) + 1"}
	for seed := range 20 {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		f := asking(t, append(append([]string{"x_total"}, unknown...), known...), "a", "b")
		const rounds = 12
		dies := 2 + rng.IntN(rounds-2)
		for i := range rounds {
			if i == 1 {
				f.hold()
			}
			f.pages["a"], f.pages["b"] = text(fmt.Sprintf("x_total %d\n", i)), text(fmt.Sprintf("x_total %d\ny_total %d\n", i, i))
			if dead := i >= dies && (seed%2 == 0 || i == dies); dead {
				f.pages["a"] = page{code: 503}
			}
			f.round(float64(i)*5 + 0.5)
		}
		at := float64(rounds-1)*5 + 0.5
		for _, query := range unknown {
			if got := f.below(query, 1e9, at); !strings.Contains(got.Why, "the metrics of a of one could not be read at ") {
				t.Errorf("seed %d: a died at scrape %d: %s is known: %s", seed, dies, query, foundText(got))
			}
		}
		for _, query := range known {
			if got := f.below(query, 1e9, at); got.Why != "" || got.Series == 0 {
				t.Errorf("seed %d: a died at scrape %d: %s is unknown: %s", seed, dies, query, foundText(got))
			}
		}
		// The latest value is known again once it was read again.
		back := seed%2 != 0 && dies < rounds-1
		if got := f.below("x_total", 1e9, at); (got.Why == "") != back {
			t.Errorf("seed %d: a died at scrape %d of %d: x_total: %s", seed, dies, rounds, foundText(got))
		}
	}
}

// An endpoint that never answered is missed where it is named.
func TestAnEndpointThatNeverAnsweredIsMissedByName(t *testing.T) {
	f := asking(t, []string{"x{job='a'} or y", "x or y"}, "a", "b")
	f.pages["a"], f.pages["b"] = page{code: 500}, text("y 1\n")
	f.hold()
	for _, seconds := range []float64{6, 11} {
		f.round(seconds)
	}
	if got := foundText(f.below("x{job='a'} or y", 10, 11)); !strings.Contains(got, "the metrics of a of one could not be read at 03:04:11") {
		t.Errorf("by name: %s", got)
	}
	if got := foundText(f.below("x or y", 10, 11)); !strings.HasPrefix(got, "1/0/0") {
		t.Errorf("not by name: %s", got)
	}
}
