package report

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// Objects is objects.parquet in memory, column by column: one row for each
// object that was asked for. A report needs whole columns of few bytes rather
// than rows.
type Objects struct {
	rows    int
	columns []objectColumn
}

// objectColumn is one column: whole numbers, or texts as indices into the
// distinct ones.
type objectColumn struct {
	name    string
	numbers []int64
	texts   []int32
	words   []string
}

// null is a number that is not there.
const null int64 = math.MinInt64

// Columns that a report tells by the step, which has them too.
func ofStep(name string) bool {
	return name == "level" || name == "arm" || name == "replicate"
}

// readObjects reads objects.parquet.
func readObjects(dir record.Dir) (*Objects, error) {
	file, err := os.Open(dir.Path(record.ObjectsFile))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.ObjectsFile, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.ObjectsFile, err)
	}
	table, err := parquet.OpenFile(file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", record.ObjectsFile, err)
	}
	o := &Objects{rows: int(table.NumRows())}
	buffer := make([]parquet.Value, 1024)
	for i, path := range table.Schema().Columns() {
		c := objectColumn{name: strings.Join(path, ".")}
		if ofStep(c.name) {
			continue
		}
		index := make(map[string]int32)
		for _, group := range table.RowGroups() {
			if err := c.read(group.ColumnChunks()[i], buffer, index); err != nil {
				return nil, fmt.Errorf("read %s: column %s: %w", record.ObjectsFile, c.name, err)
			}
		}
		if len(c.numbers)+len(c.texts) != o.rows {
			return nil, fmt.Errorf("read %s: column %s has %d of %d rows", record.ObjectsFile, c.name, len(c.numbers)+len(c.texts), o.rows)
		}
		o.columns = append(o.columns, c)
	}
	return o, nil
}

func (c *objectColumn) read(chunk parquet.ColumnChunk, buffer []parquet.Value, index map[string]int32) error {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		values := page.Values()
		for {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				c.add(v, index)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

func (c *objectColumn) add(v parquet.Value, index map[string]int32) {
	switch {
	case v.IsNull():
		c.numbers = append(c.numbers, null)
	case v.Kind() == parquet.ByteArray:
		i, ok := index[string(v.ByteArray())]
		if !ok {
			i = int32(len(c.words))
			c.words = append(c.words, string(v.ByteArray()))
			index[c.words[i]] = i
		}
		c.texts = append(c.texts, i)
	case v.Kind() == parquet.Boolean:
		n := int64(0)
		if v.Boolean() {
			n = 1
		}
		c.numbers = append(c.numbers, n)
	default:
		c.numbers = append(c.numbers, v.Int64())
	}
}

// numbers is a column of numbers, nil where there is none of that name.
func (o *Objects) numbers(name string) []int64 {
	for _, c := range o.columns {
		if c.name == name {
			return c.numbers
		}
	}
	return nil
}

// text is a row's text in a column, "" where there is none of that name.
func (o *Objects) text(name string, row int) string {
	for _, c := range o.columns {
		if c.name == name && c.texts != nil {
			return c.words[c.texts[row]]
		}
	}
	return ""
}

// milestone is when each object reached one, in microseconds since the start
// of the run, null where it did not.
func (o *Objects) milestone(name string) []int64 { return o.numbers(name + microsSuffix) }

const microsSuffix = "_us"

// packed is a table of all objects as the page carries it, to be turned into
// CSV when the reader asks for it. Unpacked it would be most of the page.
type packed struct {
	Rows int `json:"rows"`
	// Unit is the unit of times in microseconds: 1, unless that would have
	// made the page too large.
	Unit    int64          `json:"unit"`
	Columns []packedColumn `json:"columns"`
	// Short says that columns were left out.
	Short bool   `json:"short"`
	data  string // base64 of a raw deflate stream
}

// packedColumn says how a column's values follow each other in the data.
type packedColumn struct {
	Name string `json:"name"`
	// Kind is number (zigzag varints), time (see packTimes), word (varint
	// indices into Words) or name (see packNames).
	Kind  string   `json:"kind"`
	Words []string `json:"words,omitempty"`
}

// Bounds of the table of objects in a page.
const (
	maxPacked = 1_000_000 // characters of base64
	maxWords  = 1000      // distinct texts of a column that is packed as words
)

// pack packs the objects in the smallest unit of time that stays within the
// bound; where none does, without the columns that tell more of the requests
// than of the objects. It is nil when that is too much as well: objects.parquet
// beside the page has them all.
func (o *Objects) pack() (*packed, error) {
	if o == nil || o.rows == 0 {
		return nil, nil
	}
	few := &Objects{rows: o.rows}
	for _, c := range o.columns {
		if !ofRequest(c.name) {
			few.columns = append(few.columns, c)
		}
	}
	for _, try := range []struct {
		of   *Objects
		unit int64
	}{{o, 1}, {o, 100}, {o, 1000}, {few, 1000}} {
		p, err := try.of.packIn(try.unit)
		if err != nil {
			return nil, err
		}
		p.Short = try.of == few
		if len(p.data) <= maxPacked {
			return p, nil
		}
	}
	return nil, nil
}

// ofRequest are the columns that a page leaves out when it must.
func ofRequest(name string) bool {
	switch name {
	case "intended_us", "replied_us", "planted_delay_us", "iteration", "code", "retries", "throttled",
		"PodReadyToStartContainers_us", "Initialized_us", "ContainersReady_us", "Deleted_us":
		return true
	}
	return false
}

func (o *Objects) packIn(unit int64) (*packed, error) {
	p := &packed{Rows: o.rows, Unit: unit, Columns: []packedColumn{}}
	var out bytes.Buffer
	encoded := base64.NewEncoder(base64.StdEncoding, &out)
	deflated, err := flate.NewWriter(encoded, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	var data []byte
	var before []int64 // the latest time of each row that is known so far
	flush := func(c packedColumn) error {
		p.Columns = append(p.Columns, c)
		_, err := deflated.Write(data)
		data = data[:0]
		return err
	}
	var times []objectColumn
	for _, c := range o.columns {
		switch {
		case c.texts != nil && len(c.words) > maxWords:
			data = packNames(data, c)
			err = flush(packedColumn{Name: c.name, Kind: "name"})
		case c.texts != nil:
			for _, t := range c.texts {
				data = binary.AppendUvarint(data, uint64(t))
			}
			err = flush(packedColumn{Name: c.name, Kind: "word", Words: c.words})
		case strings.HasSuffix(c.name, microsSuffix) && c.name != "planted_delay"+microsSuffix:
			times = append(times, c)
		default:
			scale := int64(1)
			if strings.HasSuffix(c.name, microsSuffix) {
				scale = unit
			}
			for _, n := range c.numbers {
				data = binary.AppendVarint(data, n/scale)
			}
			err = flush(packedColumn{Name: c.name, Kind: "number"})
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(times, func(a, b objectColumn) int { return timeRank(a) - timeRank(b) })
	before = make([]int64, o.rows)
	for i, c := range times {
		if i == 0 {
			// The first is told from the row before.
			last := int64(0)
			for row, t := range c.numbers {
				before[row] = last
				if t >= 0 {
					last = t / unit
				}
			}
		}
		data = packTimes(data, c.numbers, before, unit)
		if err := flush(packedColumn{Name: c.name, Kind: "time"}); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(deflated.Close(), encoded.Close()); err != nil {
		return nil, err
	}
	p.data = out.String()
	return p, nil
}

// timeRank orders the columns of times so that each is near the one before.
func timeRank(c objectColumn) int {
	order := []string{"intended", "sent", "replied", "Created", "Scheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready", "Deleted"}
	if i := slices.Index(order, strings.TrimSuffix(c.name, microsSuffix)); i >= 0 {
		return i
	}
	return len(order)
}

// packTimes writes 0 for a time that is not known, else 1 more than the
// zigzag of its distance from the row's latest known time before it.
func packTimes(data []byte, times, before []int64, unit int64) []byte {
	for row, t := range times {
		if t < 0 {
			data = binary.AppendUvarint(data, 0)
			continue
		}
		t /= unit
		d := t - before[row]
		data = binary.AppendUvarint(data, uint64(d<<1^d>>63)+1)
		before[row] = t
	}
	return data
}

// packNames writes each text as the number of bytes it shares with the one
// before it, the number of further bytes, and these.
func packNames(data []byte, c objectColumn) []byte {
	last := ""
	for _, t := range c.texts {
		word := c.words[t]
		same := 0
		for same < min(len(word), len(last)) && word[same] == last[same] {
			same++
		}
		data = binary.AppendUvarint(data, uint64(same))
		data = binary.AppendUvarint(data, uint64(len(word)-same))
		data = append(data, word[same:]...)
		last = word
	}
	return data
}
