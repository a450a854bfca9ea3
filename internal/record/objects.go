package record

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// ObjectRow is one row of objects.parquet: one object that was asked for and
// what became of it. Times are microseconds since the start of the run, -1
// where they are not known.
type ObjectRow struct {
	Slot         string  `parquet:"slot"`
	Step         int64   `parquet:"step"` // that asked for it
	Level        float64 `parquet:"level"`
	Arm          string  `parquet:"arm"`
	Replicate    int64   `parquet:"replicate"`
	Component    string  `parquet:"component"`
	Iteration    int64   `parquet:"iteration"`
	Node         string  `parquet:"node"`
	Intended     int64   `parquet:"intended_us"`
	Sent         int64   `parquet:"sent_us"`
	Replied      int64   `parquet:"replied_us"`
	Zero         int64   `parquet:"zero_us"` // from which its latencies count
	Code         int64   `parquet:"code"`
	Retries      int64   `parquet:"retries"`
	Throttled    int64   `parquet:"throttled"`
	PlantedDelay int64   `parquet:"planted_delay_us"`
	Outcome      string  `parquet:"outcome"` // of the request
	Error        string  `parquet:"error"`
	There        bool    `parquet:"there"` // when it was last seen
	Late         bool    `parquet:"late"`  // a gap in the watch bears on its times
	Reason       string  `parquet:"reason"`
	Message      string  `parquet:"message"`
	// Milestones are when each was reached, by its name; a milestone that was
	// not reached is missing. In the file each has a column of its own,
	// "<Milestone>_us", with nulls.
	Milestones map[string]int64 `parquet:"-"`
}

// ObjectWriter writes objects.parquet.
type ObjectWriter struct {
	dir     Dir
	file    *os.File
	rows    *parquet.GenericWriter[any]
	columns []objectColumn // by the schema's order
	row     []parquet.Row
	err     error
}

// objectColumn is where a column's value comes from: a field of the row, or a
// milestone.
type objectColumn struct {
	field     int
	milestone string
}

const objectsPart = "." + ObjectsFile + ".part"

// NewObjectWriter starts objects.parquet anew, with a column for each
// milestone. The file takes its name once the writer is closed without error.
func NewObjectWriter(d Dir, milestones []string) (*ObjectWriter, error) {
	file, err := os.Create(d.Path(objectsPart))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", ObjectsFile, err)
	}
	group := parquet.Group{}
	from := make(map[string]objectColumn)
	t := reflect.TypeFor[ObjectRow]()
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("parquet")
		switch f.Type.Kind() {
		case reflect.String:
			group[name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case reflect.Int64:
			group[name] = parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)
		case reflect.Float64:
			group[name] = parquet.Leaf(parquet.DoubleType)
		case reflect.Bool:
			group[name] = parquet.Leaf(parquet.BooleanType)
		default:
			continue
		}
		from[name] = objectColumn{field: i}
	}
	for _, m := range milestones {
		name := m + "_us"
		group[name] = parquet.Optional(parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked))
		from[name] = objectColumn{field: -1, milestone: m}
	}
	schema := parquet.NewSchema("object", group)
	w := &ObjectWriter{dir: d, file: file, row: make([]parquet.Row, 1)}
	for _, column := range schema.Columns() {
		w.columns = append(w.columns, from[strings.Join(column, ".")])
	}
	w.rows = parquet.NewGenericWriter[any](file, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(100_000))
	return w, nil
}

// Add appends a row. After the first failure rows are dropped; Close tells.
func (w *ObjectWriter) Add(row ObjectRow) {
	if w.err != nil {
		return
	}
	v := reflect.ValueOf(row)
	out := w.row[0][:0]
	for i, c := range w.columns {
		if c.field < 0 {
			if t, ok := row.Milestones[c.milestone]; ok {
				out = append(out, parquet.Int64Value(t).Level(0, 1, i))
			} else {
				out = append(out, parquet.NullValue().Level(0, 0, i))
			}
			continue
		}
		out = append(out, parquet.ValueOf(v.Field(c.field).Interface()).Level(0, 0, i))
	}
	w.row[0] = out
	_, w.err = w.rows.WriteRows(w.row)
}

// Close completes the file.
func (w *ObjectWriter) Close() error {
	err := cmp.Or(w.err, w.rows.Close(), w.file.Close())
	if err == nil {
		err = os.Rename(w.file.Name(), w.dir.Path(ObjectsFile))
	} else {
		os.Remove(w.file.Name())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", ObjectsFile, err)
	}
	return nil
}
