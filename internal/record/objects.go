package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// ObjectRow is one row of objects.parquet, a requested object: times in microseconds, -1 is unknown.
type ObjectRow struct {
	Slot         string           `parquet:"slot,dict"`
	Step         int64            `parquet:"step,delta"` // that asked for it
	Level        float64          `parquet:"level"`
	Arm          string           `parquet:"arm,dict"`
	Replicate    int64            `parquet:"replicate,delta"`
	Component    string           `parquet:"component,dict"`
	Iteration    int64            `parquet:"iteration,delta"`
	Place        string           `parquet:"node,dict"`
	Intended     int64            `parquet:"intended_us,delta"`
	Sent         int64            `parquet:"sent_us,delta"`
	Replied      int64            `parquet:"replied_us,delta"`
	Zero         int64            `parquet:"zero_us,delta"` // from which its latencies count
	Code         int64            `parquet:"code,delta"`
	Retries      int64            `parquet:"retries,delta"`
	Throttled    int64            `parquet:"throttled,delta"`
	PlantedDelay int64            `parquet:"planted_delay_us,delta"`
	Outcome      string           `parquet:"outcome,dict"` // of the request
	Error        string           `parquet:"error,dict"`
	There        bool             `parquet:"there"` // at the last news
	Late         bool             `parquet:"late"`  // a gap in the watch bears on its times
	Reason       string           `parquet:"reason,dict"`
	Message      string           `parquet:"message,dict"`
	Milestones   map[string]int64 `parquet:"-"` // the time of each reached milestone; a column "<Milestone>_us" in the file
}

// ObjectWriter writes objects.parquet. The file takes its name once the writer is closed without error.
type ObjectWriter struct {
	table
	rows    *parquet.GenericWriter[any]
	columns []objectColumn // by the schema's order
	row     []parquet.Row
}

// objectColumn is the source of a column's value: a field of the row, or a milestone.
type objectColumn struct {
	field     parquet.Field
	milestone string
}

// NewObjectWriter starts objects.parquet again, with a column for each milestone.
func NewObjectWriter(d Dir, milestones []string) (*ObjectWriter, error) {
	t, err := newTable(d, ObjectsFile)
	if err != nil {
		return nil, err
	}
	group := parquet.Group{}
	from := make(map[string]objectColumn)
	for _, f := range parquet.SchemaOf(ObjectRow{}).Fields() {
		group[f.Name()] = f
		from[f.Name()] = objectColumn{field: f}
	}
	for _, m := range milestones {
		name := m + "_us"
		group[name] = parquet.Optional(parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked))
		from[name] = objectColumn{milestone: m}
	}
	schema := parquet.NewSchema("object", group)
	w := &ObjectWriter{table: t, row: make([]parquet.Row, 1)}
	for _, column := range schema.Columns() {
		w.columns = append(w.columns, from[strings.Join(column, ".")])
	}
	w.rows = parquet.NewGenericWriter[any](t.file, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(100_000))
	return w, nil
}

// Add appends a row. After the first failure it drops rows; Close returns the failure.
func (w *ObjectWriter) Add(row ObjectRow) {
	if w.err != nil {
		return
	}
	v := reflect.ValueOf(row)
	out := w.row[0][:0]
	for i, c := range w.columns {
		if c.field == nil {
			if t, ok := row.Milestones[c.milestone]; ok {
				out = append(out, parquet.Int64Value(t).Level(0, 1, i))
			} else {
				out = append(out, parquet.NullValue().Level(0, 0, i))
			}
			continue
		}
		out = append(out, parquet.ValueOf(c.field.Value(v).Interface()).Level(0, 0, i))
	}
	w.row[0] = out
	_, w.err = w.rows.WriteRows(w.row)
}

func (w *ObjectWriter) Close() error { return w.finish(cmp.Or(w.err, w.rows.Close())) }

type table struct {
	name string // in messages, and at last
	file *os.File
	err  error // the first
}

func newTable(d Dir, name string) (table, error) {
	file, err := d.create("." + name + ".part")
	if err != nil {
		return table{}, fmt.Errorf("write %s: %w", name, err)
	}
	return table{name: name, file: file}, nil
}

func (t *table) finish(err error) error {
	if err = cmp.Or(err, t.file.Close()); err == nil {
		err = os.Rename(t.file.Name(), filepath.Join(filepath.Dir(t.file.Name()), t.name))
	} else {
		os.Remove(t.file.Name())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", t.name, err)
	}
	return nil
}

// WindowRow is one row of windows.parquet: a window of a stream, and quantiles of its histograms.
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

// WindowWriter writes windows.parquet if there is any window, whole once it is closed.
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

const mostRows = 10_000_000 // bound of the rows of a table that is read: a run with 10 million objects has as many

// OpenTable opens one of a run directory's tables, for the caller to close, of at most 10 million rows.
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
