package streams

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// ask is one request of a stream, and how it goes.
type ask struct {
	intended, sent, ended record.Micros
	waits, drops          bool
	outcome               Outcome
}

// count tells the windows of the request, as a generator does.
func (a ask) count(w *Windows) {
	if a.waits {
		w.Wait(a.intended)
	}
	if a.drops {
		w.Drop(a.intended, a.sent)
		return
	}
	w.Sent(a.intended, a.sent, a.waits, 0)
	w.End(a.intended, a.ended, a.outcome)
}

// asks draws requests over a hold of four seconds, of every fate.
func asks(n int) []ask {
	rng := rand.New(rand.NewPCG(48, uint64(n)))
	list := make([]ask, n)
	for i := range list {
		a := &list[i]
		a.intended = record.Micros(rng.IntN(4_000_000))
		a.waits = rng.IntN(5) == 0
		a.drops = a.waits && rng.IntN(3) == 0
		a.sent = a.intended + record.Micros(rng.IntN(1000))
		a.ended = a.sent + record.Micros(rng.IntN(20_000))
		switch rng.IntN(6) {
		case 0:
			a.outcome = Outcome{Failed: "reset", Place: "b"}
		case 1:
			a.outcome = Outcome{Lost: true}
		default:
			a.outcome = Outcome{Place: "a", BytesIn: 100, BytesOut: 10, Retries: rng.IntN(2), Times: map[string]record.Micros{"Responded": a.ended - a.intended}}
		}
	}
	return list
}

// tally holds a stream's totals over all windows.
type tally struct {
	intended, sent, done, reset, lost, late, dropped, retried, answered, timed int
	in, out                                                                    int64
	placeA, placeB                                                             int
}

// counted is the slow twin: it counts the requests one by one.
func counted(list []ask, end record.Micros) (n tally) {
	for _, a := range list {
		n.intended++
		if a.waits {
			n.late++
		}
		if a.drops {
			n.dropped++
			continue
		}
		n.sent++
		n.retried += a.outcome.Retries
		n.in, n.out = n.in+a.outcome.BytesIn, n.out+a.outcome.BytesOut
		switch {
		case a.outcome.Lost:
			n.lost++
		case a.outcome.Failed != "":
			n.reset++
			n.placeB++
		default:
			n.done++
			n.placeA++
			n.timed++
			if a.ended < end {
				n.answered++
			}
		}
	}
	return n
}

// No request is lost from the account of a stream, however many end at once.
func TestWindowsCountEveryRequest(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	schedule := Schedule{Open: true, Value: 1, Hold: 4 * time.Second, Window: time.Second}
	// So many that requests of two senders meet also where one processor is busy.
	const senders, each, rounds = 8, 20_000, 20
	list := asks(senders * each)
	var got tally
	windows := NewWindows(schedule, "c", func(w *record.Window) {
		got.intended, got.sent, got.done = got.intended+w.Intended, got.sent+w.Sent, got.done+w.Done
		got.reset, got.lost, got.late = got.reset+w.Failed["reset"], got.lost+w.Lost, got.late+w.Late
		got.dropped, got.retried, got.answered = got.dropped+w.Dropped, got.retried+w.Retried, got.answered+w.Answered
		got.in, got.out = got.in+w.BytesIn, got.out+w.BytesOut
		got.placeA, got.placeB = got.placeA+w.ByPlace["a"], got.placeB+w.FailedByPlace["b"]
		h, err := w.Histograms["Responded"].Counts()
		if err != nil {
			t.Error(err)
			return
		}
		got.timed += int(h.TotalCount())
	})
	var all sync.WaitGroup
	begin := make(chan struct{})
	for s := range senders {
		all.Go(func() {
			<-begin
			for range rounds {
				for _, a := range list[s*each : (s+1)*each] {
					a.count(windows)
				}
			}
		})
	}
	close(begin)
	all.Wait()
	if err := windows.Tell(record.Micros(10_000_000)); err != nil {
		t.Fatal(err)
	}
	if want := counted(slices.Repeat(list, rounds), schedule.End()); got != want {
		t.Errorf("windows add up to\n%+v\nthe requests to\n%+v", got, want)
	}
}

// Requests go on while windows are put on record: whoever sends must not wait for that,
// for it would be late by milliseconds in each second.
func TestWindowsAreReportedWhileRequestsGoOn(t *testing.T) {
	told := 0
	var w *Windows
	w = NewWindows(Schedule{Open: true, Value: 1000, Hold: 2 * time.Second, Window: time.Second}, "", func(*record.Window) {
		if told++; !w.mu.TryLock() {
			t.Error("a request would wait until the window is on record")
			return
		}
		w.mu.Unlock()
		ask{intended: 1_500_000, sent: 1_500_000, ended: 1_500_100}.count(w)
	})
	ask{intended: 500_000, sent: 500_000, ended: 500_100}.count(w)
	if err := w.Tell(1_000_000); err != nil || told != 1 {
		t.Errorf("%v; %d windows were told", err, told)
	}
	if err := w.Tell(2_000_000); err != nil || told != 2 {
		t.Errorf("%v; with the one in which a request came meanwhile %d were", err, told)
	}
}
