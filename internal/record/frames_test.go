package record

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

// A step has its end only where the checksum of its frame is there, also once the run
// goes on. A history whose steps have no frames of their own is read to its last line.
func TestAStepEndsWithItsFrame(t *testing.T) {
	for _, framed := range []bool{true, false} {
		d := Dir(t.TempDir())
		file, err := os.Create(d.Path(HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		zip, err := newEncoder(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, body := range []Body{
			&RunEvent{Phase: PhaseStart, Version: HistoryVersion, Framed: framed},
			&StepEvent{Phase: PhaseStart, StepPlan: StepPlan{Level: 1}}, &Note{Text: "under way"}, &StepEvent{Phase: PhaseEnd, Ending: EndHeld},
		} {
			line, err := appendLine(nil, Event{T: Micros(i), Step: min(i, 1), Body: body})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := zip.Write(line); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				if err := zip.Close(); err != nil {
					t.Fatal(err)
				}
				zip.Reset(file)
			}
		}
		if err := zip.Flush(); err != nil { // and is killed
			t.Fatal(err)
		}
		want := 4
		if framed {
			want = 3
		}
		if list, h := read(t, d); len(list) != want || !h.Cut {
			t.Errorf("framed %v: %d events, want %d, cut %v", framed, len(list), want, h.Cut)
		}
		again, err := ResumeWriter(d, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if list, h := read(t, d); len(list) != want || h.Cut {
			t.Errorf("framed %v, gone on with: %d events, want %d, cut %v", framed, len(list), want, h.Cut)
		}
	}
}

// Damage is reported with its place, and the frames around it are read.
func TestADamagedFrameIsLeftOut(t *testing.T) {
	d := Dir(t.TempDir())
	w, err := NewWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Append(Event{Body: &RunEvent{Phase: PhaseStart, Version: HistoryVersion, Framed: true}})
	for step := 1; step <= 3; step++ {
		w.Append(Event{T: Micros(step), Step: step, Body: &StepEvent{Phase: PhaseStart, StepPlan: StepPlan{Level: float64(step)}}})
		w.Append(Event{T: Micros(step), Step: step, Body: &StepEvent{Phase: PhaseEnd, Ending: EndHeld}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := read(t, d)
	for bit := range 8 * len(sound) {
		flipped := append([]byte(nil), sound...)
		flipped[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(d.Path(HistoryFile), flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		var got []Event
		damaged := 0
		_, err := ReadHistory(d, func(e Event) error {
			if _, ok := e.Body.(*Damaged); ok {
				damaged++
			} else {
				got = append(got, e)
			}
			return nil
		})
		if err != nil {
			t.Errorf("bit %d: %v", bit, err)
		}
		// Some bits of a frame's head do not bear on its text.
		changed := slices.ContainsFunc(got, func(e Event) bool {
			return !slices.ContainsFunc(all, func(was Event) bool { return reflect.DeepEqual(e, was) })
		})
		if changed || damaged > 1 || damaged == 0 && len(got) != len(all) || len(got) < len(all)-2 {
			t.Errorf("bit %d: %d of %d events, changed %v, %d parts damaged", bit, len(got), len(all), changed, damaged)
		}
	}
}
