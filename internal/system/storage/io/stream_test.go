package io

import (
	"math/rand/v2"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// sink keeps windows.
type sink []*record.Window

// Append implements record.Sink.
func (s *sink) Append(e record.Event) {
	if w, ok := e.Body.(*record.Window); ok {
		*s = append(*s, w)
	}
}

// Windows hold what was reported: nothing is lost or counted twice, however the
// reports come, and what was due and not done is dropped once.
func TestWindowsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var told sink
		const seconds, warm = 8, 2
		rate := rng.IntN(2) * 100
		l := &load{
			settings: settings{job: fio.Job{Pattern: "randrw", ReadPercent: 50}, depth: 1, volumes: 2, rate: 2 * rate},
			rec:      system.Recorder{Sink: &told, Clock: record.StartClock(time.Now), Step: func() int { return 1 }}, warm: warm,
		}
		for range seconds {
			l.windows = append(l.windows, &window{sides: make(map[string]*side), places: make(map[string]int)})
		}
		s := streams.Schedule{Open: rate > 0, Warm: warm * time.Second, Hold: (seconds - warm) * time.Second, Window: time.Second}
		slow := uint64(0) // what the twin counts: all of the reports, one by one
		done := 0.0       // part of what is due that is done
		if done = 1; rng.IntN(2) == 0 {
			done = 0.5
		}
		for n := range 2 {
			v := &volume{name: string(rune('a' + n)), n: n}
			l.volumes = append(l.volumes, v)
			sum := fio.Report{Sides: map[string]fio.Side{fio.Read: {Bins: fio.Bins{}}, fio.Write: {Bins: fio.Bins{}}}}
			at := time.Duration(rng.IntN(1000)) * time.Millisecond
			v.first.Ran, v.last.Ran = at, at
			if rate > 0 {
				v.line = newLine(l.rates(n), 1, v.first, 1)
			}
			for i := range seconds {
				if at += time.Second; rng.IntN(4) == 0 && i < seconds-1 {
					continue // a report that is skipped: the next one has it
				}
				next := fio.Report{Ran: at + time.Duration(rng.IntN(20))*time.Millisecond, Sides: map[string]fio.Side{}}
				for name, x := range sum.Sides {
					bins := fio.Bins{}
					bins.Add(x.Bins)
					k := uint64(done * float64(rate) / 2 * (next.Ran - v.last.Ran).Seconds())
					if rate == 0 {
						k = uint64(rng.IntN(50))
					}
					took := int64(1 + rng.IntN(1e6))
					if done < 1 && rate > 0 {
						took = int64(1e9 / (done * float64(rate))) // why it is half
					}
					bins[took] += k
					slow += k
					next.Sides[name] = fio.Side{Bins: bins, Bytes: x.Bytes + int64(k)*4096}
				}
				sum = next
				l.add(v, next, s.Window)
			}
		}
		missing := 0.0
		if done < 1 && rate > 0 {
			missing = float64(l.backlog(s, warm, seconds))
		}
		for l.told < seconds {
			last := 0.0
			if l.told == seconds-1 {
				last = missing
			}
			if err := l.emit(s, last); err != nil {
				t.Fatal(err)
			}
		}
		sum, dropped := 0, 0
		for _, w := range told {
			h, err := w.Histograms[fio.Complete].Counts()
			if err != nil {
				t.Fatal(err)
			}
			if w.Intended != w.Sent+w.Dropped || w.Sent != w.Done+w.FailedAll() || int(h.TotalCount()) != w.Done {
				t.Fatalf("%+v", w)
			}
			sum, dropped = sum+w.Done, dropped+w.Dropped
		}
		if uint64(sum) != slow {
			t.Fatalf("%d of %d are in windows", sum, slow)
		}
		if want := rate * (seconds - warm); done < 1 && rate > 0 && (dropped < want*8/10 || dropped > want*12/10) {
			t.Fatalf("at half of the rate %d of %d were dropped", dropped, 2*want)
		}
	}
}

// A drive's own rate is steady: the rate of a cache that fills is not.
func TestARateThatIsSteady(t *testing.T) {
	for _, tt := range []struct {
		why   string
		rates []float64
		want  float64
	}{
		{"nothing", nil, 0},
		{"too short", []float64{100, 100, 100}, 0},
		{"steady after its start", []float64{10, 100, 102, 98}, 100},
		{"a cache takes it at first", []float64{900, 900, 400, 100}, 0},
		{"and the drive later", []float64{900, 900, 400, 100, 100, 100}, 100},
		{"nothing was done", []float64{0, 0, 0, 0}, 0},
	} {
		if got := steady(tt.rates); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.why, got, tt.want)
		}
	}
}
