package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// events is one of each kind, every field set.
func events(t *testing.T) []Event {
	t.Helper()
	var list []Event
	for i, body := range []Body{new(RunEvent), new(StepEvent), new(Slot), new(Object), new(State), new(TargetEvent), new(Reading), new(Canary), new(Guard), new(Fault), new(Note)} {
		v := reflect.ValueOf(body).Elem()
		for j, field := range reflect.VisibleFields(v.Type()) {
			if field.Anonymous || field.Tag.Get("json") == "-" {
				continue // its own fields follow, or it is not written
			}
			switch f := v.FieldByIndex(field.Index); f.Kind() {
			case reflect.String:
				f.SetString(fmt.Sprintf("text \"%d\"\n", j))
			case reflect.Int, reflect.Int64:
				f.SetInt(1)
			case reflect.Float64:
				f.SetFloat(0.5)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"text"}))
			case reflect.Map:
				f.Set(reflect.ValueOf(map[string]float64{"cpuSeconds": 1.5}))
			default:
				t.Fatalf("%s has a field of kind %s", body.Kind(), f.Kind())
			}
		}
		list = append(list, Event{T: Micros(1_000_000 + i), Step: i, Body: body})
	}
	return list
}

func newRun(t *testing.T) Dir {
	t.Helper()
	d, err := CreateDir(filepath.Join(t.TempDir(), "runs", "one"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t *testing.T, d Dir) ([]Event, History) {
	t.Helper()
	var got []Event
	h, err := ReadHistory(d, func(e Event) error { got = append(got, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return got, h
}

func TestHistoryComesBackAsWritten(t *testing.T) {
	d := newRun(t)
	var followed []Event
	w, err := NewWriter(d, nil, func(e Event) { followed = append(followed, e) })
	if err != nil {
		t.Fatal(err)
	}
	want := events(t)
	for _, e := range want {
		w.Append(e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Append(want[0]) // after the end: dropped
	got, h := read(t, d)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(followed, want) {
		t.Errorf("read back %+v\nfollowed %+v\nwant %+v", got, followed, want)
	}
	if h.Cut || h.Unknown != 0 || h.Events != len(want) {
		t.Errorf("history %+v", h)
	}
}

// Each kind has a body, and no body's field hides one of the header's.
func TestEveryKindHasABody(t *testing.T) {
	for _, e := range events(t) {
		if newBody(e.Body.Kind()) == nil {
			t.Errorf("kind %s has no body", e.Body.Kind())
		}
		v := reflect.TypeOf(e.Body).Elem()
		for _, field := range reflect.VisibleFields(v) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" && !field.Anonymous || name == "t" || name == "kind" || name == "step" {
				t.Errorf("%s.%s has the JSON name %q", v.Name(), field.Name, name)
			}
		}
	}
}

// What was appended more than a flush interval ago survives SIGKILL: it is on
// file although nothing was closed.
func TestHistorySurvivesWithoutClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newRun(t)
		w, err := NewWriter(d, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := events(t)
		for _, e := range want {
			w.Append(e)
		}
		time.Sleep(FlushInterval + time.Millisecond)
		got, h := read(t, d)
		if !reflect.DeepEqual(got, want) || !h.Cut {
			t.Errorf("after %v: %d of %d events, cut %v", FlushInterval, len(got), len(want), h.Cut)
		}
		w.Close()
	})
}

// Wherever a killed run's file ends, reading gives the events before that
// point and says that the history was cut.
func TestHistoryCutAnywhere(t *testing.T) {
	d := newRun(t)
	w, err := NewWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int64 // file size after each flush
	all := events(t)
	for _, e := range all {
		w.Append(e)
		w.Flush()
		info, err := os.Stat(d.Path(HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	w.Close()
	whole, err := os.ReadFile(d.Path(HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for size := int64(0); size < ends[len(ends)-1]; size++ {
		sure := 0
		for sure < len(ends) && ends[sure] <= size {
			sure++
		}
		n := 0
		h, err := readEvents(bytes.NewReader(whole[:size]), verifier{}, func(e Event) error {
			if !reflect.DeepEqual(e, all[n]) {
				t.Fatalf("cut at %d: event %d is %+v", size, n, e)
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if n < sure || (!h.Cut && size > 0) {
			t.Errorf("cut at %d: %d events, at least %d were flushed; cut %v", size, n, sure, h.Cut)
		}
	}
}

func TestReaderOnOtherHistories(t *testing.T) {
	pack := func(lines string) []byte {
		zip, _ := zstd.NewWriter(nil)
		return zip.EncodeAll([]byte(lines), nil)
	}
	for _, tt := range []struct {
		data    []byte
		events  int
		unknown int
		err     string
		why     string
	}{
		{pack(`{"t":1,"kind":"dream","step":0,"x":[1]}` + "\n" + `{"t":2,"kind":"note","step":0,"text":"a"}` + "\n"), 2, 1, "", "a kind from a later version"},
		{pack(`{"t":1,"kind":"note","step":0,"text":"a","later":{}}` + "\n"), 1, 0, "", "a field from a later version"},
		{pack(`{"t":1,"kind":"run","step":0,"phase":"start","version":99}` + "\n"), 1, 0, "version 99", "a format from a later version"},
		{pack("not json\n"), 0, 0, "line 1", "no history"},
		{pack(`{"t":1,"kind":"note","step":0,"text":5}` + "\n"), 0, 0, "line 1 of its text: parse note", "a field of another type"},
		{[]byte("plain text, long enough to be looked at"), 0, 0, "magic", "no zstd"},
		{pack(strings.Repeat("x", maxLine+(1<<17))), 0, 0, "longer than", "one endless line"},
		{nil, 0, 0, "", "an empty file: killed before the first flush"},
	} {
		h, err := readEvents(bytes.NewReader(tt.data), verifier{}, func(Event) error { return nil })
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", tt.why, err, tt.err)
		}
		if tt.err == "" && (h.Events != tt.events || h.Unknown != tt.unknown) {
			t.Errorf("%s: %+v, want %d events, %d unknown", tt.why, h, tt.events, tt.unknown)
		}
	}
}

func TestWriterSaysThatItFailed(t *testing.T) {
	d := newRun(t)
	w, err := NewWriter(d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.file.Close() // as a full disk would, every write fails from here on
	for range 100_000 {
		w.Append(Event{Body: &Note{Text: strings.Repeat("abc", 20)}})
	}
	w.Flush()
	select {
	case <-w.Failed():
	default:
		t.Error("Failed is open after writes that failed")
	}
	if w.Err() == nil || w.Close() == nil {
		t.Error("neither Err nor Close told of it")
	}
}

func TestRunDirectoryIsNeverOverwritten(t *testing.T) {
	d := newRun(t)
	if _, err := CreateDir(string(d)); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	if err := d.WriteFile(ResultFile, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDir(string(d)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory with a result: %v, want one that says it exists", err)
	}
	entries, _ := os.ReadDir(string(d))
	if len(entries) != 1 {
		t.Errorf("%d files after one write: a temporary file was left", len(entries))
	}
	for _, path := range []string{filepath.Join(string(d), "none"), d.Path(ResultFile), string(d)} {
		var not *NotRunDirError
		if _, err := OpenDir(path); !errors.As(err, &not) {
			t.Errorf("OpenDir(%s): %v", path, err)
		}
	}
}

func TestObjectsFile(t *testing.T) {
	d := newRun(t)
	w, err := NewObjectWriter(d, []string{"Created", "Ready"})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(ObjectRow{Slot: "ns/a", Step: 1, Level: 2.5, Sent: 10, Outcome: "created", There: true, Milestones: map[string]int64{"Created": 20, "Ready": 30}})
	w.Add(ObjectRow{Slot: "ns/b", Step: 1, Sent: -1, Outcome: "failed", Error: "no", Milestones: nil})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Slot    string  `parquet:"slot"`
		Level   float64 `parquet:"level"`
		Sent    int64   `parquet:"sent_us"`
		There   bool    `parquet:"there"`
		Error   string  `parquet:"error"`
		Created *int64  `parquet:"Created_us,optional"`
		Ready   *int64  `parquet:"Ready_us,optional"`
	}
	rows, err := parquet.ReadFile[row](d.Path(ObjectsFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Slot != "ns/a" || *rows[0].Ready != 30 || *rows[0].Created != 20 || !rows[0].There || rows[0].Level != 2.5 ||
		rows[1].Ready != nil || rows[1].Error != "no" || rows[1].Sent != -1 {
		t.Errorf("read back %+v", rows)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"t":1,"kind":"object","step":2,"object":"a/b","milestone":"Ready"}`))
	f.Add([]byte(`{"t":1,"kind":"sample","step":2,"values":{"a":1e400}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := parseLine(line)
		if err != nil || e.Body == nil {
			return
		}
		again, err := appendLine(nil, e)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if back, err := parseLine(bytes.TrimSuffix(again, []byte("\n"))); err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s became %s: %+v, %v", line, again, back, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	d, err := CreateDir(filepath.Join(b.TempDir(), "run"))
	if err != nil {
		b.Fatal(err)
	}
	w, err := NewWriter(d, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.ReportAllocs()
	for i := range b.N {
		w.Append(Event{T: Micros(i), Step: 1, Body: &Object{Object: "node-density-1/node-density-1234", Milestone: "Ready", Stamp: 1790000000}})
	}
}

// A window goes through its row and back, and its histograms are what
// HdrHistogram reads.
func TestWindowsGoThroughParquet(t *testing.T) {
	counts := NewCounts()
	for _, took := range []Micros{0, 1, 999, 1_000_000, 2 * 3600 * 1e6, -5} { // the last but one is beyond what is held
		Count(counts, took)
	}
	h, err := HistogramOf(counts)
	if err != nil {
		t.Fatal(err)
	}
	want := []*Window{
		{Component: "a", From: 1, To: 1_000_001, WarmUp: true, Intended: 9, Sent: 8, Done: 5, Failed: map[string]int{"timeout": 2, "HTTP 503": 1}, FailedByPlace: map[string]int{"route-2": 3}, Late: 3, Dropped: 1, InFlight: 4, Backlog: 6,
			Answered: 3, AnsweredBytes: 6, BytesIn: 10, BytesOut: 20, ByPlace: map[string]int{"route-1": 5}, Histograms: map[string]Histogram{"Responded": h, "Connected": h}, OwnDelay: h},
		{From: 1_000_001, To: 2_000_001, Lost: 7, Sent: 7, Intended: 7, Failed: map[string]int{}, ByPlace: map[string]int{}, FailedByPlace: map[string]int{}, Histograms: map[string]Histogram{}},
	}
	dir, err := CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWindowWriter(dir)
	for _, x := range want {
		row, err := x.Row()
		if err != nil {
			t.Fatal(err)
		}
		w.Add(row)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := ReadWindows(dir)
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i := range rows {
		if got := &rows[i].Window; !reflect.DeepEqual(got, want[i]) {
			t.Errorf("window %d is %+v; want %+v", i, got, want[i])
		}
	}
	if l := rows[0].Latencies[0]; l.Milestone != "Connected" || l.N != 6 || l.P50 != 1 || l.Max < 3_599_000_000 {
		t.Errorf("latencies %+v", l)
	}
	back, err := h.Counts()
	if err != nil || !back.Equals(counts) {
		t.Errorf("the histogram comes back as another: %v", err)
	}
	if _, err := Histogram("nonsense").Counts(); err == nil {
		t.Error("nonsense is taken for a histogram")
	}
	if rows, err := ReadWindows(Dir(t.TempDir())); err != nil || rows != nil {
		t.Errorf("without the file: %v, %v", rows, err)
	}
}

// What a refusal, a log or a password in any text says stands nowhere in a history,
// and the judge is given what stands there.
func TestSecretsAreNotWritten(t *testing.T) {
	const planted = "hUnter2-s3cr3t"
	d := newRun(t)
	var followed []Event
	secrets := new(redact.Secrets)
	if _, err := secrets.Hide("x", "a name-of-mine"); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(d, secrets, func(e Event) { followed = append(followed, e) })
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []Body{
		&Slot{Slot: "a", Outcome: SlotFailed, Error: "refused: password=" + planted}, &Slot{Slot: "eyJhbGciOi.eyJpc3MiOi." + planted, Outcome: SlotUnknown},
		&Slot{Slot: "a", Outcome: SlotCreated, Trouble: "Authorization: Bearer " + planted}, &Object{Object: "ns/a name-of-mine", Milestone: "Created"},
		&Object{Object: "ns/a", Milestone: "Created", Labels: []string{"token=" + planted}}, &State{Message: "https://me:" + planted + "@h/"},
		&TargetEvent{Message: "Get /x?token=" + planted}, &Fault{Message: `"client-key-data": "` + planted}, &Note{Text: "passwd: " + planted}, &RunEvent{Command: "--set token=" + planted, Message: "a name-of-mine"},
		&Log{Lines: []string{"the token is " + planted, "-----BEGIN RSA PRIVATE KEY-----", planted}, Error: "secret=" + planted}, &Guard{Message: "dsn=postgres://u:" + planted + "@h"},
	} {
		w.Append(Event{Body: body})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := read(t, d)
	if !reflect.DeepEqual(got, followed) {
		t.Errorf("written %+v\nfollowed %+v", got, followed)
	}
	for _, e := range got {
		if line, _ := appendLine(nil, e); strings.Contains(string(line), planted) || strings.Contains(string(line), "name-of-mine") || !strings.Contains(string(line), redact.Masked) {
			t.Errorf("%s", line)
		}
	}
	if info, err := os.Stat(d.Path(HistoryFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if info, err := os.Stat(string(d)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}
