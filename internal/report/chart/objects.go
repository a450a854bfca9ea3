package chart

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/record"
)

// Packed is a table of all objects, which the page turns into CSV when asked; that would be too large.
type Packed struct {
	Rows    int            `json:"rows"`
	Unit    int64          `json:"unit"` // of times, in microseconds: 1, unless that makes the page too large
	Columns []packedColumn `json:"columns"`
	Short   bool           `json:"short"` // columns were left out
	Text    string         `json:"-"`     // base64 of a raw deflate stream
}

// packedColumn says how a column's values follow each other in the data.
type packedColumn struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"` // number (zigzag varints), time (packTimes), word (varint indices) or name (packNames)
	Words []string `json:"words,omitempty"`
}

// The bounds of the table of objects in a page.
const (
	maxPacked = 1_000_000 // characters of base64
	maxWords  = 1000      // distinct texts of a column that is packed as words
)

// pack packs the objects in the smallest unit of time within the bound, if need be without the columns of
// mayLeaveOut. It returns nil where that is too much as well.
func pack(o *objects.Table, kind record.ObjectKind) (*Packed, error) {
	if o == nil || o.Rows == 0 {
		return nil, nil
	}
	all, few := &objects.Table{Rows: o.Rows}, &objects.Table{Rows: o.Rows}
	for _, c := range o.Columns {
		if c.Name == objects.ZeroColumn {
			continue // it is one of the other times
		}
		all.Columns = append(all.Columns, c)
		if !mayLeaveOut(c.Name, kind) {
			few.Columns = append(few.Columns, c)
		}
	}
	for _, try := range []struct {
		of   *objects.Table
		unit int64
	}{{all, 1}, {all, 100}, {all, 1000}, {few, 1000}} {
		p, err := packIn(try.of, try.unit, kind.Names())
		if err != nil {
			return nil, err
		}
		p.Short = try.of == few
		if len(p.Text) <= maxPacked {
			return p, nil
		}
	}
	return nil, nil
}

// mayLeaveOut reports whether a column is only about requests, or about a milestone without a part.
func mayLeaveOut(name string, kind record.ObjectKind) bool {
	switch name {
	case "intended_us", "replied_us", "planted_delay_us", "iteration", "code", "retries", "throttled":
		return true
	}
	milestone, ok := strings.CutSuffix(name, objects.MicrosSuffix)
	return ok && slices.Contains(kind.Names(), milestone) && !slices.Contains([]string{kind.Created, kind.Placed, kind.Started, kind.There}, milestone)
}

func packIn(o *objects.Table, unit int64, milestones []string) (*Packed, error) {
	p := &Packed{Rows: o.Rows, Unit: unit, Columns: []packedColumn{}}
	var out bytes.Buffer
	encoded := base64.NewEncoder(base64.StdEncoding, &out)
	deflated, err := flate.NewWriter(encoded, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	var data []byte
	var before []int64 // the latest known time of each row
	flush := func(c packedColumn) error {
		p.Columns = append(p.Columns, c)
		_, err := deflated.Write(data)
		data = data[:0]
		return err
	}
	var times []objects.Column
	for _, c := range o.Columns {
		switch {
		case c.Texts != nil && len(c.Words) > maxWords:
			data = packNames(data, c)
			err = flush(packedColumn{Name: c.Name, Kind: "name"})
		case c.Texts != nil:
			for _, t := range c.Texts {
				data = binary.AppendUvarint(data, uint64(t))
			}
			err = flush(packedColumn{Name: c.Name, Kind: "word", Words: c.Words})
		case strings.HasSuffix(c.Name, objects.MicrosSuffix) && c.Name != "planted_delay"+objects.MicrosSuffix:
			times = append(times, c)
		default:
			scale := int64(1)
			if strings.HasSuffix(c.Name, objects.MicrosSuffix) {
				scale = unit
			}
			for _, n := range c.Numbers {
				data = binary.AppendVarint(data, n/scale)
			}
			err = flush(packedColumn{Name: c.Name, Kind: "number"})
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(times, func(a, b objects.Column) int { return timeRank(a, milestones) - timeRank(b, milestones) })
	before = make([]int64, o.Rows)
	for i, c := range times {
		if i == 0 {
			last := int64(0) // the first column counts from the row before
			for row, t := range c.Numbers {
				before[row] = last
				if t >= 0 {
					last = t / unit
				}
			}
		}
		data = packTimes(data, c.Numbers, before, unit)
		if err := flush(packedColumn{Name: c.Name, Kind: "time"}); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(deflated.Close(), encoded.Close()); err != nil {
		return nil, err
	}
	p.Text = out.String()
	return p, nil
}

// timeRank orders the columns of times so that each is near the one before.
func timeRank(c objects.Column, milestones []string) int {
	order := append([]string{"intended", "sent", "replied"}, milestones...)
	if i := slices.Index(order, strings.TrimSuffix(c.Name, objects.MicrosSuffix)); i >= 0 {
		return i
	}
	return len(order)
}

// packTimes writes 0 for an unknown time, else 1 + the zigzag of its distance from the row's last time.
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

// packNames writes the length of the prefix shared with the text before, that of the rest, and the rest.
func packNames(data []byte, c objects.Column) []byte {
	last := ""
	for _, t := range c.Texts {
		word := c.Words[t]
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
