package fold

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

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

// Where fewer come from then on is found, about there, and nothing where they
// come as before, or faster.
func TestSlowdown(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	come := func(n int, gap func(i int) float64) (times []record.Micros) {
		at := 0.0
		for i := range n {
			at += gap(i)
			times = append(times, record.Micros(1e6*at))
		}
		draw.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
		return times
	}
	from := func(first, then float64, at int) func(int) float64 {
		return func(i int) float64 {
			if i < at {
				return first * draw.ExpFloat64()
			}
			return then * draw.ExpFloat64()
		}
	}
	tests := []struct {
		why   string
		times []record.Micros
		after int // 0: none
	}{
		{"clones are flattened first from the 250th on", come(400, from(1, 3, 250)), 250},
		{"a burst, and then the limit", come(1000, from(0.01, 0.2, 300)), 300},
		{"they come faster in the end", come(400, from(3, 1, 250)), 0},
		{"a little slower is nothing to tell of", come(400, from(1, 1.2, 200)), 0},
		{"the last few are stragglers", come(400, from(1, 30, 395)), 0},
		{"too few", come(40, from(1, 10, 20)), 0},
		{"all at once", make([]record.Micros, 100), 0},
	}
	for _, tt := range tests {
		got := 0
		if s := slowdownIn(slices.Clone(tt.times)); s != nil {
			got = s.After
		}
		if got < tt.after*9/10 || got > tt.after*11/10 {
			t.Errorf("%s: after %d, want %d", tt.why, got, tt.after)
		}
	}
	found := 0
	for range 100 {
		if slowdownIn(come(200, from(1, 1, 0))) != nil {
			found++
		}
	}
	if found > 1 {
		t.Errorf("%d of 100 that come evenly are found to slow down", found)
	}
}
