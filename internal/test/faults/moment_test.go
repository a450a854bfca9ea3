package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// moment is an event of a run at which a fault comes. The run's own directory shows
// it: a fault that comes after a random time meets whatever the machine does then.
type moment struct {
	name     string
	happened func(dir record.Dir) bool
}

// made happens when the run has its directory, in which it begins its record.
func made() moment {
	return moment{"the directory is made", func(dir record.Dir) bool {
		_, err := os.Stat(string(dir))
		return err == nil
	}}
}

// begun happens before the run changes its target.
func begun() moment {
	return recorded("the run begins", 1, func(e record.Event) bool {
		r, is := e.Body.(*record.RunEvent)
		return is && r.Phase == record.PhaseStart
	})
}

func raising() moment { return phase("the raise begins", record.PhaseStart) }
func holding() moment { return phase("the hold begins", record.PhaseReached) }
func held() moment    { return phase("the step ends", record.PhaseEnd) }

// created happens when the record has the nth object that the target created.
func created(n int) moment {
	return recorded(fmt.Sprintf("object %d is created", n), n, func(e record.Event) bool {
		s, is := e.Body.(*record.Slot)
		return is && s.Units > 0 && s.Outcome == record.SlotCreated
	})
}

// windows happens when the record has the nth window of a stream.
func windows(n int) moment {
	return recorded(fmt.Sprintf("window %d is over", n), n, func(e record.Event) bool {
		return e.Body.Kind() == record.KindWindow
	})
}

// removing happens when the run begins to empty its target: the end of its steps is
// the last event before that.
func removing() moment {
	return recorded("the removal begins", 1, func(e record.Event) bool {
		r, is := e.Body.(*record.RunEvent)
		return is && r.Phase == record.PhaseEnd
	})
}

func written() moment {
	return moment{"the result is written", func(dir record.Dir) bool {
		_, err := os.Stat(dir.Path(record.ResultFile))
		return err == nil
	}}
}

// phase happens when the first step that the record has is in a phase.
func phase(name string, p record.Phase) moment {
	return recorded(name, 1, func(e record.Event) bool {
		s, is := e.Body.(*record.StepEvent)
		return is && s.Phase == p
	})
}

// recorded happens when a run's history has the nth event of some.
func recorded(name string, n int, of func(record.Event) bool) moment {
	enough := errors.New("the history has as many")
	return moment{name, func(dir record.Dir) bool {
		seen := 0
		_, err := record.ReadHistory(dir, func(e record.Event) error {
			if of(e) {
				seen++
			}
			if seen == n {
				return enough
			}
			return nil
		})
		return errors.Is(err, enough)
	}}
}

// files are the sizes of the files that a moment looks at, -1 for none.
type files struct{ history, result int64 }

func filesOf(dir record.Dir) files {
	size := func(name string) int64 {
		info, err := os.Stat(dir.Path(name))
		if err != nil {
			return -1
		}
		return info.Size()
	}
	return files{size(record.HistoryFile), size(record.ResultFile)}
}

// await waits until the cell's moment has happened. It reports false where the run
// ended before, or did not come to it within its bound.
func (c *cell) await() bool {
	const poll = 2 * time.Millisecond
	dir := record.Dir(filepath.Join(c.p.Dir, c.out))
	tick, bound := time.NewTicker(poll), time.NewTimer(time.Until(c.begun.Add(c.load.bound)))
	defer tick.Stop()
	defer bound.Stop()
	looked := false
	var last files
	for {
		ended := c.run.Ended()
		// A history is read again when there is more of it.
		if now := filesOf(dir); !looked || now != last || c.moment.name == made().name {
			looked, last = true, now
			if c.moment.happened(dir) {
				return !ended
			}
		}
		if ended {
			return false
		}
		select {
		case <-tick.C:
		case <-bound.C:
			return false
		}
	}
}

// awaited counts the cells whose fault had a moment, and how many of their runs ended
// before it, or before the fault came.
type awaited struct{ cells, before int }

// tooMany reports whether so many runs ended before their moment that the cells say
// little about the fault: more than 1 in 4, of at least 8.
func (a awaited) tooMany() bool {
	const enough, most = 8, 4
	return a.cells >= enough && most*a.before > a.cells
}

func (a awaited) String() string {
	return fmt.Sprintf("%d of %d ended before their moment", a.before, a.cells)
}

// Each moment happens with its event, and not one event earlier.
func TestMomentsHappenWithTheirEvents(t *testing.T) {
	create := func(outcome record.SlotOutcome, units int) record.Body {
		return &record.Slot{Slot: "s", Units: units, Outcome: outcome}
	}
	moments := []moment{made(), begun(), raising(), created(3), windows(3), holding(), held(), removing()}
	var history []record.Event
	happened := 0
	for _, tt := range []struct {
		body record.Body
		want []string // that happen with it
	}{
		{&record.Note{Text: "nothing yet"}, []string{"the directory is made"}},
		{&record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, Framed: true}, []string{"the run begins"}},
		{&record.StepEvent{Phase: record.PhaseStart}, []string{"the raise begins"}},
		{create(record.SlotCreated, 1), nil},
		{create(record.SlotCreated, 0), nil}, // a namespace is no object of the load
		{create(record.SlotFailed, 1), nil},
		{create(record.SlotCreated, 2), nil},
		{create(record.SlotCreated, 1), []string{"object 3 is created"}},
		{&record.Window{WarmUp: true}, nil},
		{&record.Window{}, nil},
		{&record.StepEvent{Phase: record.PhaseReached}, []string{"the hold begins"}},
		{&record.Window{}, []string{"window 3 is over"}},
		{&record.StepEvent{Phase: record.PhaseLoaded}, nil},
		{&record.StepEvent{Phase: record.PhaseEnd}, []string{"the step ends"}},
		{&record.StepEvent{Phase: record.PhaseReset}, nil},
		{&record.RunEvent{Phase: record.PhaseEnd}, []string{"the removal begins"}},
		{&record.Cleanup{Left: 3}, nil},
	} {
		history = append(history, record.Event{T: record.Micros(len(history)), Body: tt.body})
		dir := record.Dir(t.TempDir())
		w, err := record.NewWriter(dir, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range history {
			w.Append(e)
		}
		w.Flush() // as a run under way has it
		var names []string
		for _, m := range moments {
			if m.happened(dir) {
				names = append(names, m.name)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if happened += len(tt.want); len(names) != happened {
			t.Errorf("with %d events these happened: %q", len(history), names)
		}
		for _, want := range tt.want {
			if !slices.Contains(names, want) {
				t.Errorf("with %d events %q has not happened: %q", len(history), want, names)
			}
		}
		if written().happened(dir) {
			t.Error("there is no result, and it is written")
		}
		if err := dir.WriteFile(record.ResultFile, []byte("{}\n")); err != nil || !written().happened(dir) {
			t.Errorf("the result is written, and that has not happened: %v", err)
		}
	}
	if nowhere := record.Dir(filepath.Join(t.TempDir(), "r")); made().happened(nowhere) || begun().happened(nowhere) || written().happened(nowhere) {
		t.Error("something happened in a run that has no directory")
	}
}

// The seed draws the moments of a fault, and its cells on a load take them in turn:
// with as many cells as moments each comes once.
func TestTheSeedDrawsTheMoments(t *testing.T) {
	for _, f := range table() {
		for _, l := range loads() {
			if (f.at == nil) != (f.act == nil && f.must != resumed && f.must != prompt) {
				t.Fatalf("%s: whether it has a moment: %v", f.name, f.at != nil)
			}
			if f.at == nil || !slices.Contains(f.on, l.name) {
				continue
			}
			all, orders := f.at(l), make(map[string]bool)
			for seed := range uint64(20) {
				m, again := &matrix{seed: seed}, &matrix{seed: seed}
				var order []string
				for n := range all {
					order = append(order, m.newCell(f, l, n).moment.name)
					if got := again.newCell(f, l, n).moment.name; got != order[n] {
						t.Errorf("%s, %s: seed %d draws %q, then %q", f.name, l.name, seed, order[n], got)
					}
				}
				orders[fmt.Sprint(order)] = true
				for _, m := range all {
					if !slices.Contains(order, m.name) {
						t.Errorf("%s, %s: seed %d never draws %q: %q", f.name, l.name, seed, m.name, order)
					}
				}
			}
			if len(all) > 1 && len(orders) < 2 {
				t.Errorf("%s, %s: every seed draws %v", f.name, l.name, orders)
			}
		}
	}
}

// A run that ended before its moment is no failure, unless there are too many, or it
// ended otherwise than its twin.
func TestRunsThatEndBeforeTheirMomentAreBounded(t *testing.T) {
	for _, tt := range []struct {
		awaited
		want bool
	}{
		{awaited{0, 0}, false},
		{awaited{7, 7}, false}, // too few to say
		{awaited{8, 2}, false},
		{awaited{8, 3}, true},
		{awaited{40, 10}, false},
		{awaited{40, 11}, true},
	} {
		if got := tt.tooMany(); got != tt.want {
			t.Errorf("%v: too many %v", tt.awaited, got)
		}
	}
	for _, must := range []must{healed, told, named, refused, resumed, prompt} {
		if !must.holds(endedBefore) {
			t.Errorf("%q does not hold of a run that ended before its moment", must)
		}
		c := &cell{fault: fault{must: must}, before: true}
		if got := c.judged(&cell{}); got != endedBefore {
			t.Errorf("%q: a run that held is judged %q", must, got)
		}
		c.got.Code = 1
		if got := c.judged(&cell{}); got != differs {
			t.Errorf("%q: a run that failed without its fault is judged %q", must, got)
		}
	}
}

// What a removal came to may differ between two results, and the seal that covers it;
// nothing else may.
func TestResultsAreComparedWithoutTheirRemoval(t *testing.T) {
	text := func(rest string) []byte {
		return fmt.Appendf(nil, `{"verdict":"pass","cleanup":%s}`, rest)
	}
	before := text(`{"done":false,"left":3},"warnings":[],"sha256":"a"`)
	after := text(`{"done":false,"left":2},"warnings":[{"kind":"cleanup","text":"clean up: it was interrupted"}],"sha256":"b"`)
	if a, b := withoutRemoval(before), withoutRemoval(after); !bytes.Equal(a, b) {
		t.Errorf("these differ: %s", different(a, b))
	}
	other := bytes.Replace(after, []byte("pass"), []byte("fail"), 1)
	if a, b := withoutRemoval(before), withoutRemoval(other); bytes.Equal(a, b) || different(a, b) != ".verdict: pass | fail" {
		t.Errorf("the verdicts differ, and this is said: %s", different(a, b))
	}
}

// A server that is killed is named by the reason why requests failed. Where the first
// sentence must name the fault, that is not enough.
func TestAReasonNamesAFault(t *testing.T) {
	says := regexp.MustCompile("HAProxy")
	for must, want := range map[must]verdict{told: named_, named: differs} {
		c := &cell{fault: fault{must: must, says: says, waits: []string{router}}, load: load{name: router}}
		c.got.Code = process.ExitFail
		c.result = &result.Result{Steps: []result.Step{{Reasons: []result.Reason{{Reason: "HAProxy ended by signal 9", Count: 3}}}}}
		if got := c.judged(&cell{}); got != want {
			t.Errorf("%q: judged %q, want %q", must, got, want)
		}
	}
}
