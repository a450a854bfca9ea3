package stream

import (
	"math"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// A closed loop of 10 clients with answers after 10 ms, in windows of 1 s, and what
// is planted in it.
func TestStallsOfAStream(t *testing.T) {
	const each = record.Micros(10e3)
	type plant struct {
		done     int
		slow     record.Micros // of 10 of its requests
		failed   map[string]int
		byPlace  map[string]int
		answered int
	}
	steady := plant{done: 1000, answered: 1000}
	half := plant{done: 510, answered: 500, slow: 500e3}
	for _, tt := range []struct {
		why     string
		open    bool
		own     float64 // how long the program itself stood
		windows []plant
		stalls  []result.Stall
		p99     float64 // corrected, 0 for none
	}{
		{"nothing", false, 0, []plant{steady, steady, steady, steady}, nil, 0},
		{
			"two windows without an answer: 10 requests of 2 s kept 1990 from being sent", false, 0,
			[]plant{steady, {done: 10, slow: 2e6}, {}, steady, steady, steady, steady, steady, steady, steady},
			[]result.Stall{{Seconds: 2, Windows: 2}}, 1.9,
		},
		{
			"half a window", false, 0, []plant{steady, steady, half, steady, steady, steady},
			[]result.Stall{{Seconds: 0.5}}, 0.44,
		},
		{"half a window in which requests were refused", false, 0, []plant{steady, steady, {done: 500, answered: 500, slow: 500e3, failed: map[string]int{"refused": 9}}, steady, steady}, nil, 0},
		{"one slow request while others go on", false, 0, []plant{steady, {done: 1000, answered: 1000, slow: 500e3}, steady, steady}, nil, 0},
		{"the program itself stood", false, 1, []plant{steady, {done: 10, slow: 1e6}, {}, steady, steady}, nil, 0},
		{"all refused is no stall", false, 0, []plant{steady, {failed: map[string]int{"refused": 900}}, steady}, nil, 0},
		{"a schedule sent them anyway", true, 0, []plant{steady, {done: 1000, slow: 1e6}, {done: 1000, answered: 2000}, steady}, []result.Stall{{Seconds: 1, Windows: 1}}, 0},
		{
			"one place of two", false, 0, []plant{steady, {done: 510, answered: 510, slow: 1e6, byPlace: map[string]int{"a": 510}}, steady, steady},
			[]result.Stall{{Place: "b", Seconds: 1, Windows: 1}}, 0.955,
		},
		{"too few to say so", false, 0, []plant{{done: 5, answered: 5}, {}, {done: 5, answered: 5}}, nil, 0},
	} {
		s := New(record.Micros(1e6*len(tt.windows)), nil)
		for i, p := range tt.windows {
			counts := record.NewCounts()
			slow := min(10, p.done)
			if p.slow == 0 {
				slow = 0
			}
			record.CountMany(counts, each, int64(p.done-slow))
			record.CountMany(counts, p.slow, int64(slow))
			h, err := record.HistogramOf(counts)
			if err != nil {
				t.Fatal(err)
			}
			w := &record.Window{
				From: record.Micros(1e6 * i), To: record.Micros(1e6 * (i + 1)), Done: p.done, Failed: p.failed, ByPlace: p.byPlace,
				Answered: p.answered, Histograms: map[string]record.Histogram{"Complete": h},
			}
			if w.ByPlace == nil {
				w.ByPlace = map[string]int{"a": p.done / 2, "b": p.done / 2}
			}
			w.Sent = w.Done + w.FailedAll()
			w.Intended = w.Sent
			s.Add(w)
		}
		s.FindStalls("Complete", Loop{Open: tt.open, OwnDelay: tt.own})
		got := s.Stood
		if len(got) != len(tt.stalls) {
			t.Errorf("%s: %+v, want %+v", tt.why, got, tt.stalls)
			continue
		}
		for i, x := range tt.stalls {
			if got[i].Place != x.Place || math.Abs(got[i].Lasted().Seconds()-x.Seconds) > 0.01 || got[i].Windows != x.Windows {
				t.Errorf("%s: %+v, want %+v", tt.why, got[i], x)
			}
		}
		if with, ok := s.Corrected["Complete"]; ok != (tt.p99 > 0) || ok && math.Abs(with.Quantile(0.99)-tt.p99) > 0.03 {
			t.Errorf("%s: corrected %v %+v, want p99 %v", tt.why, ok, with.Quantile(0.99), tt.p99)
		}
	}
}
