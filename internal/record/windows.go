package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// WindowRow is one row of windows.parquet: a window of a stream of requests, and quantiles of its
// histograms.
type WindowRow struct {
	Step      int64   `parquet:"step"`
	Level     float64 `parquet:"level"`
	Arm       string  `parquet:"arm,dict"`
	Replicate int64   `parquet:"replicate"`
	Window
	Latencies []WindowLatency `parquet:"latencies,list"`
}

// WindowLatency is the distribution of one milestone's latency in a window, in microseconds.
type WindowLatency struct {
	Milestone string `parquet:"milestone,dict"`
	N         int64  `parquet:"n"`
	P50       int64  `parquet:"p50_us"`
	P90       int64  `parquet:"p90_us"`
	P99       int64  `parquet:"p99_us"`
	P999      int64  `parquet:"p999_us"`
	Max       int64  `parquet:"max_us"`
}

// Row returns the window's row without the columns of its step.
func (w *Window) Row() (WindowRow, error) {
	row := WindowRow{Window: *w}
	for _, name := range slices.Sorted(maps.Keys(w.Histograms)) {
		h, err := w.Histograms[name].Counts()
		if err != nil {
			return row, err
		}
		row.Latencies = append(row.Latencies, WindowLatency{
			Milestone: name, N: h.TotalCount(), P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90), P99: h.ValueAtPercentile(99),
			P999: h.ValueAtPercentile(99.9), Max: h.Max(),
		})
	}
	return row, nil
}

// WindowWriter writes windows.parquet if there is any window. The file takes its name once the writer is
// closed without error.
type WindowWriter struct {
	table
	dir  Dir
	rows *parquet.GenericWriter[WindowRow]
}

// NewWindowWriter starts windows.parquet again.
func NewWindowWriter(d Dir) *WindowWriter { return &WindowWriter{dir: d} }

// Add appends a row. After the first failure it drops rows; Close returns the failure.
func (w *WindowWriter) Add(row WindowRow) {
	if w.err == nil && w.file == nil {
		if w.table, w.err = newTable(w.dir, WindowsFile); w.err == nil {
			w.rows = parquet.NewGenericWriter[WindowRow](w.file, parquet.Compression(&parquet.Zstd))
		}
	}
	if w.err == nil {
		_, w.err = w.rows.Write([]WindowRow{row})
	}
}

func (w *WindowWriter) Close() error {
	if w.file == nil {
		return w.err
	}
	return w.finish(cmp.Or(w.err, w.rows.Close()))
}

// ReadWindows reads windows.parquet; a missing file is not an error.
func ReadWindows(d Dir) ([]WindowRow, error) {
	file, _, err := OpenTable(d, WindowsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := parquet.ReadFile[WindowRow](d.Path(WindowsFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", WindowsFile, err)
	}
	return rows, nil
}

// mostRows bounds the rows of a table that is read: a run with 10 million objects has as many.
const mostRows = 10_000_000

// OpenTable opens one of a run directory's tables; the caller closes it. It refuses more than 10 million
// rows, however small the file is.
func OpenTable(d Dir, name string) (*os.File, *parquet.File, error) {
	file, err := os.Open(d.Path(name))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	info, err := file.Stat()
	var table *parquet.File
	if err == nil {
		table, err = parquet.OpenFile(file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	}
	if err == nil && (table.NumRows() < 0 || table.NumRows() > mostRows) {
		err = &BoundError{"rows", mostRows}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", name, err), file.Close())
	}
	return file, table, nil
}
