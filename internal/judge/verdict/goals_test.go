package verdict

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// A goal breaks on a backlog that grows, and on no other.
func TestNotSteady(t *testing.T) {
	for _, c := range []struct {
		why     string
		backlog *result.Backlog
		breaks  bool
	}{
		{"there is none", nil, false},
		{"it rose at the end alone", &result.Backlog{Means: []float64{10, 100}, Stalled: true}, false},
		{"it grew", &result.Backlog{Means: []float64{10, 100}, Slope: result.Interval{Value: new(2.0), Lo: new(1.0), Hi: new(3.0)}, Tolerated: 0.5, Growing: true}, true},
	} {
		breach, breaks := notSteady(c.backlog)
		if breaks != c.breaks || breaks && (!strings.HasPrefix(breach.What, "notSteady: the backlog grew throughout the hold, from 10 to 100: by 2 a second (99.7% interval 1 to 3), of which 0.5 are tolerated") || *breach.Value != 2 || *breach.Bound != 0.5) {
			t.Errorf("%s: %v %+v", c.why, breaks, breach)
		}
	}
}
