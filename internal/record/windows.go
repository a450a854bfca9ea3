package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// WindowRow is one row of windows.parquet: a window of a stream of requests.
// Times are in microseconds, those of the window since the start of the run.
type WindowRow struct {
	Step      int64   `parquet:"step"`
	Level     float64 `parquet:"level"`
	Arm       string  `parquet:"arm,dict"`
	Replicate int64   `parquet:"replicate"`
	Component string  `parquet:"component,dict"`
	From      int64   `parquet:"from_us"`
	To        int64   `parquet:"to_us"`
	WarmUp    bool    `parquet:"warm_up"`
	Intended  int64   `parquet:"intended"`
	Sent      int64   `parquet:"sent"`
	Done      int64   `parquet:"done"`
	Failed    int64   `parquet:"failed"`
	// FailedBy and DoneBy are JSON objects: how many by kind of failure, and by
	// place; "" for none.
	FailedBy string `parquet:"failed_by,dict"`
	DoneBy   string `parquet:"done_by,dict"`
	Late     int64  `parquet:"late"`
	Dropped  int64  `parquet:"dropped"`
	Lost     int64  `parquet:"lost"`
	InFlight int64  `parquet:"in_flight"`
	Backlog  int64  `parquet:"backlog"`
	BytesIn  int64  `parquet:"bytes_in"`
	BytesOut int64  `parquet:"bytes_out"`
	// OwnDelay and each latency's HDR are histograms in HdrHistogram's encoding.
	OwnDelay  string          `parquet:"own_delay_hdr"`
	Latencies []WindowLatency `parquet:"latencies,list"`
}

// WindowLatency is the distribution of one milestone's latency in a window.
type WindowLatency struct {
	Milestone string `parquet:"milestone,dict"`
	N         int64  `parquet:"n"`
	P50       int64  `parquet:"p50_us"`
	P90       int64  `parquet:"p90_us"`
	P99       int64  `parquet:"p99_us"`
	P999      int64  `parquet:"p999_us"`
	Max       int64  `parquet:"max_us"`
	HDR       string `parquet:"hdr"`
}

// Row is the window's row, but for what its step tells.
func (w *Window) Row() (WindowRow, error) {
	row := WindowRow{
		Component: w.Component, From: int64(w.From), To: int64(w.To), WarmUp: w.WarmUp, Intended: int64(w.Intended), Sent: int64(w.Sent), Done: int64(w.Done),
		Failed: int64(w.FailedAll()), FailedBy: countsText(w.Failed), DoneBy: countsText(w.ByPlace), Late: int64(w.Late), Dropped: int64(w.Dropped), Lost: int64(w.Lost),
		InFlight: int64(w.InFlight), Backlog: int64(w.Backlog), BytesIn: w.BytesIn, BytesOut: w.BytesOut, OwnDelay: string(w.OwnDelay),
	}
	for _, name := range slices.Sorted(maps.Keys(w.Histograms)) {
		h, err := w.Histograms[name].Counts()
		if err != nil {
			return row, err
		}
		row.Latencies = append(row.Latencies, WindowLatency{
			Milestone: name, N: h.TotalCount(), P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90), P99: h.ValueAtPercentile(99),
			P999: h.ValueAtPercentile(99.9), Max: h.Max(), HDR: string(w.Histograms[name]),
		})
	}
	return row, nil
}

// Window is the window that the row is of.
func (r *WindowRow) Window() (*Window, error) {
	w := &Window{
		Component: r.Component, From: Micros(r.From), To: Micros(r.To), WarmUp: r.WarmUp, Intended: int(r.Intended), Sent: int(r.Sent), Done: int(r.Done),
		Late: int(r.Late), Dropped: int(r.Dropped), Lost: int(r.Lost), InFlight: int(r.InFlight), Backlog: int(r.Backlog),
		BytesIn: r.BytesIn, BytesOut: r.BytesOut, OwnDelay: Histogram(r.OwnDelay), Histograms: make(map[string]Histogram, len(r.Latencies)),
	}
	for _, l := range r.Latencies {
		w.Histograms[l.Milestone] = Histogram(l.HDR)
	}
	for _, x := range []struct {
		text string
		into *map[string]int
	}{{r.FailedBy, &w.Failed}, {r.DoneBy, &w.ByPlace}} {
		if x.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(x.text), x.into); err != nil {
			return nil, fmt.Errorf("read %s: counts %q: %w", WindowsFile, x.text, err)
		}
	}
	return w, nil
}

// countsText writes counts by name as JSON, "" for none.
func countsText(counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	text, _ := json.Marshal(counts) // of numbers by text: it cannot fail
	return string(text)
}

// WindowWriter writes windows.parquet, if there is any window.
type WindowWriter struct {
	dir  Dir
	file *os.File
	rows *parquet.GenericWriter[WindowRow]
	err  error
}

// NewWindowWriter starts windows.parquet anew. The file takes its name once the
// writer is closed without error.
func NewWindowWriter(d Dir) *WindowWriter { return &WindowWriter{dir: d} }

// Add appends a row. After the first failure rows are dropped; Close tells.
func (w *WindowWriter) Add(row WindowRow) {
	if w.err == nil && w.file == nil {
		if w.file, w.err = os.Create(w.dir.Path("." + WindowsFile + ".part")); w.err == nil {
			w.rows = parquet.NewGenericWriter[WindowRow](w.file, parquet.Compression(&parquet.Zstd))
		}
	}
	if w.err == nil {
		_, w.err = w.rows.Write([]WindowRow{row})
	}
}

// Close completes the file.
func (w *WindowWriter) Close() error {
	if w.file == nil {
		return w.err
	}
	err := cmp.Or(w.err, w.rows.Close(), w.file.Close())
	if err == nil {
		err = os.Rename(w.file.Name(), w.dir.Path(WindowsFile))
	} else {
		os.Remove(w.file.Name())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", WindowsFile, err)
	}
	return nil
}

// ReadWindows reads windows.parquet; none are no error.
func ReadWindows(d Dir) ([]WindowRow, error) {
	rows, err := parquet.ReadFile[WindowRow](d.Path(WindowsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", WindowsFile, err)
	}
	return rows, nil
}
