package judge

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// The times of a load that is meant for one moment count from it. The result has how long
// sending took, and a warning above a tenth of the median.
func TestSendingCounts(t *testing.T) {
	for _, tt := range []struct {
		why      string
		apart    float64 // seconds between two requests of 100
		atOnce   bool
		p50, max float64
		sending  float64
		warned   bool
	}{
		{"a storm that was sent in half a second", 0.005, true, 10 + 49*0.005, 10 + 99*0.005, 99 * 0.005, false},
		{"a storm that took 20 s to send: the last answer came after 30", 0.2, true, 10 + 49*0.2, 10 + 99*0.2, 99 * 0.2, true},
		{"a density, or a record of before: each counts from its own request", 0.2, false, 10, 10, 0, false},
	} {
		s := newScript(t)
		s.at(0).begin(10)
		for i := range 100 {
			s.at(1+tt.apart*float64(i)).asked(fmt.Sprintf("p%d", i), func(x *record.Slot) {
				if tt.atOnce {
					x.Intended, x.AtOnce = 1e6, true
				}
			})
		}
		for i := range 100 {
			s.at(11 + tt.apart*float64(i)).news(fmt.Sprintf("p%d Created Scheduled ContainersStarted Ready", i))
		}
		s.at(60).end(record.EndHeld)
		r := s.finish(design.Sweep{Levels: []float64{10}})
		l, took := r.Steps[0].Latency["Ready"], r.Steps[0].APIRequests.Sending
		if l.P50 == nil || l.Max == nil || !near(*l.P50, tt.p50) || !near(*l.Max, tt.max) || !near(took, tt.sending) {
			t.Errorf("%s: %+v, sending took %g", tt.why, l, took)
		}
		warned := false
		for _, w := range r.Warnings {
			warned = warned || w.Kind == record.WarningSending && strings.HasPrefix(w.Text, "sending took 19.8s, more than a tenth of the median to Ready (19.8s)")
		}
		if warned != tt.warned {
			t.Errorf("%s: %+v", tt.why, r.Warnings)
		}
	}
}

func near(a, b float64) bool { return a > b-1e-3 && a < b+1e-3 }
