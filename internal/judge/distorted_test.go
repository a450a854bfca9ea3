package judge

import (
	"encoding/json"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/distort"
)

// distorted holds, of every script that a test has made, that it is judged
// whatever its times are: the result can be written and read, and all of its
// figures are finite.
func distorted(t *testing.T, s *script) {
	for _, way := range distort.Ways(1) {
		b := NewBuilder(s.spec)
		for _, e := range way.Apply(s.events) {
			b.Add(e)
		}
		writable(t, way.Why, b.Finish(design.Sweep{Levels: []float64{1}}, record.Fidelity{}, ""))
	}
}

func writable(t *testing.T, why string, r Result) {
	t.Helper()
	data, err := record.Encode(&r, "")
	var read Result
	if err == nil {
		err = json.Unmarshal(data, &read)
	}
	if err != nil {
		t.Errorf("%s: %v", why, err)
	}
	for _, w := range r.Warnings {
		if w.Kind == record.WarningNotFinite {
			t.Errorf("%s: %v", why, w)
		}
	}
}

// What followed one another by seconds and then came at once, as news do after
// a watch was cut, has a pace that can be written.
func TestSlowdownOfNewsInOneMicrosecond(t *testing.T) {
	for _, tt := range []struct {
		why          string
		apart, later record.Micros // between two, of the first half and of the second
	}{
		{"a burst, and then slowly", 0, 1e6},
		{"slowly, and then a burst", 1e6, 0},
		{"one microsecond apart, and then slowly", 1, 1e6},
	} {
		var times []record.Micros
		at := record.Micros(0)
		for i := range 400 {
			times = append(times, at)
			if at += tt.apart; i >= 200 {
				at += tt.later - tt.apart
			}
		}
		slices.Reverse(times)
		if _, err := json.Marshal(slowdownIn(times)); err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}
