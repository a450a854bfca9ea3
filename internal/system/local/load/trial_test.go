package load_test

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// A server of ten workers is asked for more than they can, by 40 connections: with 30 it
// answers as much. One that serves any number at once answers as much more as there are
// connections more. Where no request waited nothing is tried, and a trial sends little
// faster than the schedule did.
func TestWhetherMoreConnectionsWouldHelpIsTried(t *testing.T) {
	suite.Long(t, "loads by a schedule, and tries for seconds")
	t.Parallel()
	planFor := protocols(t)["HTTP/1.1"]
	for _, c := range []struct {
		why                 string
		service             time.Duration
		workers, places     int
		rate, fewer, all    float64 // answered per second, 0 for no trial
		leastGain, mostGain float64
	}{
		{"all workers are busy", 10 * time.Millisecond, 10, 40, 2000, 30, 40, 0.9, 1.1},
		{"all connections are busy", 50 * time.Millisecond, 1000, 8, 1000, 6, 8, 1.2, 1.45},
		{"none waits", 10 * time.Millisecond, 1000, 40, 200, 0, 0, 0, 0},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			clock := record.StartClock(time.Now)
			p := &planted{now: clock.Now, service: c.service, workers: make(chan struct{}, c.workers)}
			g := load.New(planFor(p), clock.Now, 1)
			var sum total
			s := streams.Schedule{
				Open: true, Value: c.rate, Begin: clock.Now(), Warm: 100 * time.Millisecond, Hold: 500 * time.Millisecond, Window: 100 * time.Millisecond,
				Timeout: time.Minute, DropAfter: time.Minute, MaxInFlight: c.places,
			}
			var trials []*record.Trial
			if err := g.Load(t.Context(), s, sum.add, func(b record.Body) { trials = append(trials, b.(*record.Trial)) }); err != nil {
				t.Fatal(err)
			}
			if sum.Intended != s.Requests() || len(sum.windows) != 6 {
				t.Errorf("%d windows, with %d requests of %d: the trial is not among them", len(sum.windows), sum.Intended, s.Requests())
			}
			if c.all == 0 {
				if len(trials) > 0 {
					t.Errorf("%+v was tried", trials[0])
				}
				return
			}
			if len(trials) != 2 || trials[0].Places != int(c.fewer) || trials[1].Places != int(c.all) {
				t.Fatalf("tried: %+v", trials)
			}
			fewer, all := float64(trials[0].Answered)/trials[0].Seconds, float64(trials[1].Answered)/trials[1].Seconds
			if gain := all / fewer; gain < c.leastGain || gain > c.mostGain || all > 1.1*c.rate || trials[0].Seconds < 1 {
				t.Errorf("%.4g a second with %d, %.4g with %d, in %.3g s: a gain of %.3g", fewer, trials[0].Places, all, trials[1].Places, trials[1].Seconds, gain)
			}
		})
	}
}
