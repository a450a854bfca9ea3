package stream

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// A schedule of 1000 requests a second, answered after 10 ms, that the target freezes for, or answers
// more and more slowly. A window has the requests that were due in it, and the answers that came in it.
func TestFreezesOfASchedule(t *testing.T) {
	const warm, hold = 5, 20 // seconds
	for _, c := range []struct {
		why      string
		from, to float64 // the freeze, in seconds
		capacity float64 // answers a second after it, 0 for all at once
		slowdown float64 // latency that is added per second of the hold after its begin
		begin    float64
		want     float64 // seconds, 0 for no stall
	}{
		{"nothing", 0, 0, 0, 0, 0, 0},
		{"of three seconds, in the middle of windows", 5.5, 8.5, 0, 0, 0, 3},
		{"of three seconds, from the end of a window", 5.9, 8.9, 0, 0, 0, 3},
		{"of three whole windows", 5, 8, 0, 0, 0, 3},
		{"of a second, in the middle of two windows", 5.5, 6.5, 0, 0, 0, 1},
		{"of a second, from the end of a window", 5.95, 6.95, 0, 0, 0, 1},
		{"of a whole window", 5, 6, 0, 0, 0, 1},
		{"of three seconds, after which the target works the rest off", 5.5, 8.5, 2000, 0, 0, 3},
		{"of half a window: shorter than is seen", 5.2, 5.7, 0, 0, 0, 0},
		{"slower and slower is not a stall", 0, 0, 0, 0.1, 0, 0},
		{"too much from the start", 0, 0, 0, 0.035, -50, 0},
		{"too much at the end", 0, 0, 0, 1, 17.5, 0},
	} {
		var windows [hold]*record.Window
		var counts [hold]*hdrhistogram.Histogram
		for i := range windows {
			windows[i] = &record.Window{From: record.Micros(1e6 * i), To: record.Micros(1e6 * (i + 1)), ByPlace: map[string]int{}}
			counts[i] = record.NewCounts()
		}
		last := 0.0
		for i := -warm * 1000; i < hold*1000; i++ {
			due := (float64(i) + 0.5) / 1000
			done := due + 0.01 + c.slowdown*max(due-c.begin, 0)
			if done > c.from && done < c.to {
				done = c.to
			}
			if c.capacity > 0 && done >= c.to {
				done = max(done, last+1/c.capacity)
				last = done
			}
			if due >= 0 {
				w := windows[int(due)]
				w.Intended, w.Sent, w.Done = w.Intended+1, w.Sent+1, w.Done+1
				record.CountMany(counts[int(due)], record.Micros(1e6*(done-due)), 1)
			}
			if done >= 0 && done < hold {
				windows[int(done)].Answered++
				windows[int(done)].ByPlace["a"]++
			}
		}
		s := New(hold*1e6, nil)
		for i, w := range windows {
			h, err := record.HistogramOf(counts[i])
			if err != nil {
				t.Fatal(err)
			}
			w.Histograms = map[string]record.Histogram{"Complete": h}
			s.Add(w)
		}
		s.FindStalls("Complete", Loop{Open: true})
		got := 0.0
		for _, x := range s.Stood {
			got += x.Lasted().Seconds()
		}
		if len(s.Stood) > 1 || math.Abs(got-c.want) > 0.1 {
			t.Errorf("%s: %v s, want %v: %+v", c.why, got, c.want, s.Stood)
		}
	}
}

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
