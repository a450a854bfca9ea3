package stream

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// The means of a number that changes are its integral, batch by batch, whatever
// was before the span.
func TestBatchMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var changes []Change
		for range 200 {
			changes = append(changes, Change{record.Micros(rng.IntN(3000)), rng.IntN(3) - 1})
		}
		const from, to = 1000, 3000
		got := BatchMeans(slices.Clone(changes), from, to)
		for i := range got {
			lo, hi := from+(to-from)*i/backlogBatches, from+(to-from)*(i+1)/backlogBatches
			sum := 0
			for at := lo; at < hi; at++ { // one microsecond after the other
				for _, c := range changes {
					if int(c.At) <= at {
						sum += c.By
					}
				}
			}
			if want := float64(sum) / float64(hi-lo); math.Abs(got[i]-want) > 1e-9 {
				t.Fatalf("batch %d: %g, want %g", i, got[i], want)
			}
		}
	}
}

// A trend differs from a stall and from noise.
func TestABacklogThatGrows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	means := func(at func(i float64) float64) []float64 {
		list := make([]float64, backlogBatches)
		for i := range list {
			list[i] = max(0, at(float64(i)+0.5)+10*(rng.Float64()-0.5))
		}
		return list
	}
	for _, c := range []struct {
		why              string
		at               func(i float64) float64
		growing, stalled bool
	}{
		{"it stays where it is", func(float64) float64 { return 80 }, false, false},
		{"it grows all the time", func(i float64) float64 { return 20 + 30*i }, true, false},
		{"it grows, but too little to matter", func(i float64) float64 { return 80 + 10*i }, false, false},
		{"it shrinks", func(i float64) float64 { return 900 - 30*i }, false, false},
		{"it rises in the last quarter alone", func(i float64) float64 { return 15 + max(0, i-16)*160 }, false, true},
		{"it rose once in the middle, and was done with again", func(i float64) float64 {
			if i > 8 && i < 11 {
				return 900
			}
			return 20
		}, false, true},
	} {
		b := NewBacklog(means(c.at), 60e6, 6000, 5)
		if b.Growing != c.growing || b.Stalled != c.stalled || (StallOf(b) != "") != c.stalled {
			t.Errorf("%s: %+v", c.why, b)
		}
	}
}

// What a few slow arrivals of a short hold make is no trend, and a backlog of
// many that grows by the same slope of them is.
func TestABacklogOfAFewArrivals(t *testing.T) {
	means := make([]float64, backlogBatches)
	for i := range means {
		means[i] = 0.07 * float64(i) // 1.4 in all, of 8
	}
	if b := NewBacklog(means, 2e6, 8, 0.04); b.Growing || b.Stalled {
		t.Errorf("a rise by one arrival is called a trend: %+v", b)
	}
	for i := range means {
		means[i] *= 3
	}
	if b := NewBacklog(means, 2e6, 24, 0.12); !b.Growing {
		t.Errorf("a rise by four is not: %+v", b)
	}
}

// A backlog in balance is seldom called a trend, however near to each other in
// time its figures are: those of a queue with nine of ten places taken.
func TestABacklogInBalanceIsSteady(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	wrong := 0
	for range 300 {
		var changes []Change
		n, at := 0, 0.0
		for at < 70e6 {
			at += rng.ExpFloat64() * 1e6 / 100 // 100 arrivals a second
			changes = append(changes, Change{record.Micros(at), 1})
			n++
		}
		free := 0.0
		for i := range n {
			free = max(free, float64(changes[i].At)) + rng.ExpFloat64()*1e6/110
			changes = append(changes, Change{record.Micros(free), -1})
		}
		if b := NewBacklog(BatchMeans(changes, 10e6, 70e6), 60e6, 6000, 1); b.Growing {
			wrong++
		}
	}
	if wrong > 3 {
		t.Errorf("%d of 300 backlogs in balance are called growing", wrong)
	}
}

// Arrivals that are given up at the end waited until then, and what several
// components have of one period is one backlog.
func TestABacklogThatIsGivenUp(t *testing.T) {
	s := New(10e6, nil)
	for i := range record.Micros(10) {
		w := record.Window{From: i * 1e6, To: (i + 1) * 1e6, Intended: 10, Sent: 10, Done: 10, Backlog: int(i+1) * 100}
		if i == 9 {
			w.Intended, w.Late, w.Dropped, w.Backlog = 1010, 1000, 1000, 0
		}
		for _, component := range []string{"read", "write"} {
			w.Component = component
			s.Add(&w)
			w.Intended, w.Late, w.Dropped = 10, 0, 0 // of the first one
		}
	}
	b := s.Backlog(new(result.Spec))
	if want := []float64{100, 200, 300, 400, 500, 600, 700, 800, 900, 900}; !slices.Equal(b.Means, want) || !b.Growing {
		t.Errorf("%v, want %v; it grows: %v", b.Means, want, b.Growing)
	}
}
