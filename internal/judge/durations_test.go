package judge

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

func TestDurationsBelongToTheirStep(t *testing.T) {
	bounds := []float64{1, 2}
	s := newScript(t)
	s.put(histogram("start", bounds, []float64{0.5})) // before any load
	s.begin(1)
	s.made("a", 1)
	s.put(histogram("start", bounds, []float64{0.5, 1.5, 3}))
	s.put(histogram("stop", bounds, []float64{0.1})) // never done before
	first := s.end(record.EndHeld)
	if len(first.Durations) != 2 || first.Durations[0].N != 2 || first.Durations[0].P99.AtMost != nil || first.Durations[0].P50 != (result.Bucket{Above: 1, AtMost: &bounds[1]}) && *first.Durations[0].P50.AtMost != 2 || first.Durations[1].N != 1 {
		t.Errorf("two starts, of which one took too long, and one stop: %+v", first.Durations)
	}
	// The next step's begins with what is read before its own load, and the
	// kubelet is started again in it.
	s.put(histogram("start", bounds, []float64{0.5, 1.5, 3, 1, 1}))
	s.begin(2)
	s.made("b", 1)
	s.put(histogram("start", bounds, []float64{1}))
	if second := s.end(record.EndHeld); len(second.Durations) != 0 {
		t.Errorf("counted from anew: %+v", second.Durations)
	}
	// Nothing could be read before: nobody knows what fell into the step.
	s.begin(3)
	s.made("c", 1)
	s.put(histogram("start", bounds, []float64{1, 1}))
	if third := s.end(record.EndHeld); len(third.Durations) != 0 {
		t.Errorf("without a reading before the load: %+v", third.Durations)
	}
	s.finish(design.Sweep{})
}

// histogram makes a histogram of durations as a program publishes it.
func histogram(name string, bounds, took []float64) *record.ComponentHistogram {
	d := &record.ComponentHistogram{Source: "kubelet", Name: name, Bounds: bounds, Counts: make([]uint64, len(bounds))}
	for _, x := range took {
		d.Count++
		d.Sum += x
		for i, b := range bounds {
			if x <= b {
				d.Counts[i]++
			}
		}
	}
	return d
}
