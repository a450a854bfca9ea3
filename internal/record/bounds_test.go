package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// A few bytes of somebody else's record can ask for more than any memory holds: what is
// counted is refused before it is counted up.
func TestHistoriesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	slot := func(units int) Event {
		return Event{Step: 1, Body: &Slot{Slot: "a/b", Units: units, Outcome: SlotCreated}}
	}
	of := func(n int, each func(i int) Event) func(add func(Event)) {
		return func(add func(Event)) {
			for i := range n {
				add(each(i))
			}
		}
	}
	for _, tt := range []struct {
		why    string
		events func(add func(Event))
		what   string // "" is read
	}{
		{"a few objects", of(3, func(int) Event { return slot(1) }), ""},
		{"as many as there may be", of(2, func(int) Event { return slot(mostObjects / 2) }), ""},
		{"one request for too many", of(1, func(int) Event { return slot(2_000_000_000) }), "objects at a time"},
		{"for more than there are numbers", of(3, func(int) Event { return slot(1<<63 - 1) }), "objects at a time"},
		{"many requests", of(3, func(int) Event { return slot(mostObjects / 2) }), "objects at a time"},
		{"many, each of a target that was emptied", of(9, func(i int) Event {
			if i%2 == 1 {
				return Event{Body: &StepEvent{Phase: PhaseReset}}
			}
			return slot(mostObjects)
		}), ""},
		{"news of too many objects", of(mostObjects+1, func(i int) Event {
			return Event{Body: &Object{Object: fmt.Sprint("a/", i), Milestone: "Ready"}}
		}), "objects with news at a time"},
		{"much news of few objects", of(mostObjects+1, func(i int) Event {
			return Event{Body: &State{Object: fmt.Sprint("a/", i%100), Reason: "x"}}
		}), ""},
		{"too many steps", of(mostSteps+1, func(i int) Event { return Event{Step: i, Body: &StepEvent{Phase: PhaseStart}} }), "steps"},
		{"too many objects in all steps", of(202, func(i int) Event {
			if i == 0 {
				return slot(mostObjects / 2)
			}
			return Event{Body: &StepEvent{Phase: PhaseEnd}}
		}), "objects in all of its steps"},
	} {
		b, read := newBounds(), 0
		var err error
		tt.events(func(e Event) {
			if err == nil {
				err = b.add(e, 100)
				read++
			}
		})
		bound, refused := errors.AsType[*BoundError](err)
		if refused != (tt.what != "") || refused && bound.What != tt.what {
			t.Errorf("%s: %v after %d events", tt.why, err, read)
		}
	}
	b := newBounds()
	if err := b.add(Event{Body: &Note{}}, mostBeside+1); err == nil {
		t.Error("events beside the objects have no bound")
	}
}

// The bounds hold for whoever reads a file, and for text that a small file unpacks to.
func TestFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	dir, err := CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Append(Event{Body: &RunEvent{Phase: PhaseStart, Version: HistoryVersion}})
	w.Append(Event{Step: 1, Body: &StepEvent{Phase: PhaseStart}})
	w.Append(Event{Step: 1, Body: &Slot{Slot: "a/b", Units: 2_000_000_000, Outcome: SlotCreated}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadHistory(dir, func(Event) error { return nil }); !errors.As(err, new(*BoundError)) {
		t.Errorf("a request for 2,000,000,000 objects: %v", err)
	}
	// Text of 100 kB, of which 50 kB are left to unpack.
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	packed := zip.EncodeAll(make([]byte, 100_000), nil)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(packed); err != nil {
		t.Fatal(err)
	}
	left := int64(50_000)
	if _, err := verified(file, 0, int64(len(packed)), &left); err == nil || left >= 0 {
		t.Errorf("%d bytes are left of 50000: %v", left, err)
	}
	// Rows that are all the same take no room.
	table, err := os.Create(dir.Path(ObjectsFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := parquet.NewGenericWriter[struct{ A int64 }](table)
	same := make([]struct{ A int64 }, 100_000)
	for range mostRows/len(same) + 1 {
		if _, err := rows.Write(same); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(rows.Close(), table.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenTable(dir, ObjectsFile); !errors.As(err, new(*BoundError)) {
		t.Errorf("%d rows: %v", mostRows+1, err)
	}
	wide := hdrhistogram.New(1, math.MaxInt64/2, 5)
	if err := wide.RecordValue(1); err != nil {
		t.Fatal(err)
	}
	text, err := wide.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Histogram(text).Counts(); err == nil {
		t.Errorf("a histogram of %d MB is decoded from %d bytes", wide.ByteSize()>>20, len(text))
	}
	for _, places := range []*Places{
		{Rows: []PlaceRow{{Count: 2_000_000_000}}}, {Rows: []PlaceRow{{Count: -1}}}, {Facts: []Fact{{}}, Rows: []PlaceRow{{Count: 1}}}, {Rows: []PlaceRow{{Count: mostPlaces}, {Count: 1}}},
	} {
		if places.Check() == nil {
			t.Errorf("%+v are places", places.Rows)
		}
	}
}
