package record

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// writeHistory puts a history's file into a run directory.
func writeHistory(t *testing.T, data []byte) Dir {
	t.Helper()
	d := newRun(t)
	if err := os.WriteFile(d.Path(HistoryFile), data, 0o640); err != nil {
		t.Fatal(err)
	}
	return d
}

// wholeHistory is the file of a run that was not cut, flushed after each event.
func wholeHistory(t *testing.T, list []Event) []byte {
	t.Helper()
	d := newRun(t)
	w, err := NewWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		w.Append(e)
		w.Flush()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Wherever a killed run's file ends, its history goes on after the last whole
// line, and may be cut and go on again.
func TestHistoryGoesOnAfterAnyCut(t *testing.T) {
	all := events(t)
	whole := wholeHistory(t, all)
	more := Event{T: 2_000_000, Step: 3, Body: &Note{Text: "goes on"}}
	last := Event{T: 3_000_000, Step: 4, Body: &Note{Text: "and on"}}
	for size := 0; size <= len(whole); size += 7 {
		d := writeHistory(t, whole[:size])
		before, _ := read(t, d)

		w, err := ResumeWriter(d, nil, nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		w.Append(more)
		w.Flush() // and is killed: nothing is closed
		got, h := read(t, d)
		if !reflect.DeepEqual(got, append(before[:len(before):len(before)], more)) || !h.Cut {
			t.Fatalf("cut at %d, after %d events: gone on with it holds %d, cut %v", size, len(before), len(got), h.Cut)
		}
		again, err := ResumeWriter(d, nil, nil)
		if err != nil {
			t.Fatalf("cut at %d, second time: %v", size, err)
		}
		again.Append(last)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		got, h = read(t, d)
		if !reflect.DeepEqual(got, append(before[:len(before):len(before)], more, last)) || h.Cut {
			t.Fatalf("cut at %d: resumed twice it holds %d events, cut %v", size, len(got), h.Cut)
		}
		w.Close()
		if entries, _ := os.ReadDir(string(d)); len(entries) != 1 {
			t.Fatalf("%d files in the directory: a temporary one was left", len(entries))
		}
	}
}

// A resumed history that is cut in its second part is read as far as it goes.
func TestResumedHistoryCutAnywhere(t *testing.T) {
	all := events(t)
	first := wholeHistory(t, all)
	d := writeHistory(t, first[:len(first)/2])
	kept, _ := read(t, d)
	w, err := ResumeWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		w.Append(e)
		w.Flush()
	}
	w.Close()
	whole, err := os.ReadFile(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	want := append(kept[:len(kept):len(kept)], all...)
	for size := int(before.Size()); size <= len(whole); size++ {
		n := 0
		_, err := readEvents(bytes.NewReader(whole[:size]), verifier{}, func(e Event) error {
			if !reflect.DeepEqual(e, want[n]) {
				t.Fatalf("cut at %d: event %d is %+v", size, n, e)
			}
			n++
			return nil
		})
		if err != nil || n < len(kept) {
			t.Fatalf("cut at %d: %d of %d events, %v", size, n, len(want), err)
		}
	}
}

// Lines that this version does not understand are not this version's to drop.
func TestResumingKeepsWhatItDoesNotKnow(t *testing.T) {
	zip, _ := zstd.NewWriter(nil)
	lines := `{"t":1,"kind":"dream","step":0,"x":[1]}` + "\n" + `{"t":2,"kind":"note","step":0,"text":"a","later":1}` + "\n"
	d := writeHistory(t, zip.EncodeAll([]byte(lines+`{"t":3,"kind":"no`), nil))
	w, err := ResumeWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	unzip, _ := zstd.NewReader(nil)
	if got, err := unzip.DecodeAll(data, nil); err != nil || string(got) != lines {
		t.Errorf("it holds %q (%v), want %q", got, err, lines)
	}
	if info, _ := os.Stat(d.Path(HistoryFile)); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode became %v", info.Mode())
	}
}

// What cannot be gone on with stays as it is.
func TestADamagedHistoryIsLeftAlone(t *testing.T) {
	damaged := []byte("plain text, long enough to be looked at")
	d := writeHistory(t, damaged)
	if _, err := ResumeWriter(d, nil, nil); err == nil {
		t.Error("no error")
	}
	if data, err := os.ReadFile(d.Path(HistoryFile)); err != nil || !bytes.Equal(data, damaged) {
		t.Errorf("it became %q (%v)", data, err)
	}
	if entries, _ := os.ReadDir(string(d)); len(entries) != 1 {
		t.Errorf("%d files in the directory: a temporary one was left", len(entries))
	}
}

func TestResumeClock(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		why   string
		start time.Time
		last  Micros
		now   time.Time
		want  Micros
		back  time.Duration // how much the clock was set back
	}{
		{"the gap counts", start, 5_000_000, start.Add(time.Hour), 3_600_000_000, 0},
		{"resumed at once", start, 5_000_000, start.Add(5 * time.Second), 5_000_001, time.Microsecond},
		{"the wall clock was set back", start, 5_000_000, start.Add(-time.Hour), 5_000_001, time.Hour + 5_000_001*time.Microsecond},
		{"no event on record", start, 0, start.Add(time.Second), 1_000_000, 0},
		{"when it began is unknown", time.Time{}, 7, start, 8, 0},
	} {
		at := c.now
		clock := ResumeClock(c.start, c.last, func() time.Time { return at })
		if got := clock.Now(); got != c.want {
			t.Errorf("%s: it goes on at %d, want %d", c.why, got, c.want)
		}
		if back := c.start.Sub(clock.Start()); !c.start.IsZero() && back != c.back {
			t.Errorf("%s: set back by %v, want %v", c.why, back, c.back)
		}
		at = at.Add(time.Second)
		if got := clock.Now(); got != c.want+1_000_000 {
			t.Errorf("%s: a second later it is %d", c.why, got)
		}
	}
}

func TestADirectoryIsWrittenByOne(t *testing.T) {
	d := newRun(t)
	lock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := d.Lock(); !errors.As(err, &busy) {
		t.Errorf("a second lock: %v", err)
	}
	lock.Close()
	again, err := d.Lock()
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	again.Close()
	if entries, _ := os.ReadDir(string(d)); len(entries) != 0 {
		t.Errorf("it has left %d files", len(entries))
	}
	if _, err := Dir(d.Path("none")).Lock(); err == nil {
		t.Error("a directory that is not there can be locked")
	}
}
