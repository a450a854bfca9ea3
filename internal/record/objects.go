package record

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// ObjectRow is one row of objects.parquet: one requested object and its outcome. Times are in
// microseconds since the start of the run, -1 where they are unknown.
type ObjectRow struct {
	Slot         string  `parquet:"slot,dict"`
	Step         int64   `parquet:"step,delta"` // that asked for it
	Level        float64 `parquet:"level"`
	Arm          string  `parquet:"arm,dict"`
	Replicate    int64   `parquet:"replicate,delta"`
	Component    string  `parquet:"component,dict"`
	Iteration    int64   `parquet:"iteration,delta"`
	Place        string  `parquet:"node,dict"`
	Intended     int64   `parquet:"intended_us,delta"`
	Sent         int64   `parquet:"sent_us,delta"`
	Replied      int64   `parquet:"replied_us,delta"`
	Zero         int64   `parquet:"zero_us,delta"` // from which its latencies count
	Code         int64   `parquet:"code,delta"`
	Retries      int64   `parquet:"retries,delta"`
	Throttled    int64   `parquet:"throttled,delta"`
	PlantedDelay int64   `parquet:"planted_delay_us,delta"`
	Outcome      string  `parquet:"outcome,dict"` // of the request
	Error        string  `parquet:"error,dict"`
	There        bool    `parquet:"there"` // at the last news
	Late         bool    `parquet:"late"`  // a gap in the watch bears on its times
	Reason       string  `parquet:"reason,dict"`
	Message      string  `parquet:"message,dict"`
	// Milestones holds the time of each milestone that was reached. In the file each has a column of its
	// own, "<Milestone>_us", with nulls.
	Milestones map[string]int64 `parquet:"-"`
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
