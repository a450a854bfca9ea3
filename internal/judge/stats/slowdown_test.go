package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What followed one another by seconds and then came at once, as news do after
// a watch was cut, has a pace that can be written.
func TestSlowdownOfNewsInOneMicrosecond(t *testing.T) {
	for _, tt := range []struct {
		why          string
		apart, later time.Duration // between two, of the first half and of the second
	}{
		{"a burst, and then slowly", 0, time.Second},
		{"slowly, and then a burst", time.Second, 0},
		{"one microsecond apart, and then slowly", time.Microsecond, time.Second},
	} {
		var ways []Passage
		at := time.Duration(0)
		for i := range 400 {
			ways = append(ways, Passage{0, at})
			if at += tt.apart; i >= 200 {
				at += tt.later - tt.apart
			}
		}
		slices.Reverse(ways)
		found, _ := FindSlowdown(ways)
		if _, err := json.Marshal(found); err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// Where fewer come from then on is found, about there, and nothing where they come
// as before, or faster. The same fall in pace is no slowdown where the load comes to
// its end, or where each takes its own time.
func TestSlowdown(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	// served are taken one after the other, each for the gap before it, and came to
	// wait so many a second.
	served := func(n int, perSecond float64, gap func(i int) float64) (ways []Passage) {
		free := 0.0
		for i := range n {
			from := float64(i) / perSecond
			free = max(free, from) + gap(i)
			ways = append(ways, Passage{time.Duration(1e9 * from), time.Duration(1e9 * free)})
		}
		draw.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
		return ways
	}
	// alone are each as long as they take, and come at these times.
	alone := func(n int, from func(i int) float64, took func() float64) (ways []Passage) {
		for i := range n {
			at := from(i)
			ways = append(ways, Passage{time.Duration(1e9 * at), time.Duration(1e9 * (at + took()))})
		}
		return ways
	}
	come := func(n int, gap func(i int) float64) []Passage { return served(n, 1e6, gap) }
	from := func(first, then float64, at int) func(int) float64 {
		return func(i int) float64 {
			if i < at {
				return first * draw.ExpFloat64()
			}
			return then * draw.ExpFloat64()
		}
	}
	// closed has 16 under way at once, and is served 60 a second, then 20.
	closed := func(n, at int) (ways []Passage) {
		free := 0.0
		for i := range n {
			way := Passage{}
			if i >= 16 {
				way.From = ways[i-16].At
			}
			free += from(1.0/60, 1.0/20, at)(i)
			way.At = time.Duration(1e9 * free)
			ways = append(ways, way)
		}
		return ways
	}
	falls := func(i int) float64 { // 60 a second, and 20 from the 625th on
		if i < 625 {
			return float64(i) / 60
		}
		return 625.0/60 + float64(i-625)/20
	}
	tests := []struct {
		why   string
		ways  []Passage
		after int // 0: none
	}{
		{"clones are flattened first from the 250th on", come(400, from(1, 3, 250)), 250},
		{"a burst, and then the limit", come(1000, from(0.01, 0.2, 300)), 300},
		{"a burst, and then the limit, of a load that takes its time to be sent", served(1000, 60, from(0.01, 0.2, 300)), 300},
		{"a load that is sent as it is answered, and is answered slower", closed(1000, 625), 625},
		{"they come faster in the end", come(400, from(3, 1, 250)), 0},
		{"a little slower is nothing to tell of", come(400, from(1, 1.2, 200)), 0},
		{"the last few are stragglers", come(400, from(1, 30, 395)), 0},
		{"too few", come(40, from(1, 10, 20)), 0},
		{"all at once", make([]Passage, 100), 0},
		{"the load falls from 60 a second to 20", alone(1000, falls, func() float64 { return 10 + 0.2*draw.Float64() }), 0},
		{"the load ends after 17 s, and each takes up to 30 s", alone(1000, func(i int) float64 { return float64(i) / 60 }, func() float64 { return 30 * draw.Float64() }), 0},
		{"all at once, and each takes its own time, some long", alone(1000, func(int) float64 { return 0 }, func() float64 { return math.Exp(draw.NormFloat64()) }), 0},
	}
	for _, tt := range tests {
		got := 0
		if s, slowed := FindSlowdown(slices.Clone(tt.ways)); slowed {
			got = s.After
		}
		if got < tt.after*9/10 || got > tt.after*11/10 {
			t.Errorf("%s: after %d, want %d", tt.why, got, tt.after)
		}
	}
	found := 0
	for range 100 {
		if _, slowed := FindSlowdown(come(200, from(1, 1, 0))); slowed {
			found++
		}
	}
	if found > 1 {
		t.Errorf("%d of 100 that come evenly are found to slow down", found)
	}
}
