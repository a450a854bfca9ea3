// Package objects reads objects.parquet: what became of every object of a run,
// column by column, and the distributions that follow from it without the
// history. A million objects take a second and some 100 MB.
package objects

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/compare"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/stats"
)

// Table is objects.parquet in memory: one row for each object that was asked
// for.
type Table struct {
	Rows    int
	Columns []Column
}

// Column is one column: whole numbers, or texts as indices into the distinct
// ones.
type Column struct {
	Name    string
	Numbers []int64
	Texts   []int32
	Words   []string
}

// Null is a number that is not there.
const Null int64 = math.MinInt64

// MicrosSuffix ends the names of columns that are times in microseconds.
const MicrosSuffix = "_us"

// ofStep are columns that tell what the step has too.
func ofStep(name string) bool {
	return name == "level" || name == "arm" || name == "replicate"
}

// Read reads objects.parquet, without what the steps tell. Wanted, if not nil,
// chooses the columns.
func Read(dir record.Dir, wanted func(name string) bool) (*Table, error) {
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
	o := &Table{Rows: int(table.NumRows())}
	buffer := make([]parquet.Value, 1024)
	for i, path := range table.Schema().Columns() {
		c := Column{Name: strings.Join(path, ".")}
		if ofStep(c.Name) || wanted != nil && !wanted(c.Name) {
			continue
		}
		index := make(map[string]int32)
		for _, group := range table.RowGroups() {
			if err := c.read(group.ColumnChunks()[i], buffer, index); err != nil {
				return nil, fmt.Errorf("read %s: column %s: %w", record.ObjectsFile, c.Name, err)
			}
		}
		if len(c.Numbers)+len(c.Texts) != o.Rows {
			return nil, fmt.Errorf("read %s: column %s has %d of %d rows", record.ObjectsFile, c.Name, len(c.Numbers)+len(c.Texts), o.Rows)
		}
		o.Columns = append(o.Columns, c)
	}
	return o, nil
}

func (c *Column) read(chunk parquet.ColumnChunk, buffer []parquet.Value, index map[string]int32) error {
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

func (c *Column) add(v parquet.Value, index map[string]int32) {
	switch {
	case v.IsNull():
		c.Numbers = append(c.Numbers, Null)
	case v.Kind() == parquet.ByteArray:
		i, ok := index[string(v.ByteArray())]
		if !ok {
			i = int32(len(c.Words))
			c.Words = append(c.Words, string(v.ByteArray()))
			index[c.Words[i]] = i
		}
		c.Texts = append(c.Texts, i)
	case v.Kind() == parquet.Boolean:
		n := int64(0)
		if v.Boolean() {
			n = 1
		}
		c.Numbers = append(c.Numbers, n)
	default:
		c.Numbers = append(c.Numbers, v.Int64())
	}
}

func (o *Table) column(name string) *Column {
	for i := range o.Columns {
		if o.Columns[i].Name == name {
			return &o.Columns[i]
		}
	}
	return nil
}

// Numbers is a column of numbers, nil where there is none of that name.
func (o *Table) Numbers(name string) []int64 {
	if c := o.column(name); c != nil {
		return c.Numbers
	}
	return nil
}

// Micros is a column of times in microseconds since the start of the run,
// negative where one is not known; nil where there is none of that name. The
// names are intended, sent, replied and those of the milestones.
func (o *Table) Micros(name string) []int64 { return o.Numbers(name + MicrosSuffix) }

// Zeroes is the time zero of each object: when its request was sent, or was
// wanted where requests came by a schedule; its own creation for one that a
// controller made.
func (o *Table) Zeroes(steps []analyze.Step) []int64 {
	open := make(map[int64]bool)
	for _, s := range steps {
		open[int64(s.ID)] = s.Open
	}
	step, created := o.Numbers("step"), o.Micros("Created")
	sent, intended, slot := o.Micros("sent"), o.Micros("intended"), o.column("slot")
	var made []bool // by word: a controller made it
	if slot != nil {
		made = make([]bool, len(slot.Words))
		for i, word := range slot.Words {
			made[i] = strings.Contains(word, "#")
		}
	}
	list := make([]int64, o.Rows)
	for row := range list {
		list[row] = Null
		if sent != nil {
			list[row] = sent[row]
		}
		if intended != nil && step != nil && open[step[row]] {
			list[row] = intended[row]
		}
		isMade := slot != nil && slot.Texts != nil && made[slot.Texts[row]]
		if (isMade || list[row] < 0) && created != nil {
			list[row] = created[row]
		}
	}
	return list
}

// Judged are the rows of the objects that each step is judged by: those that
// it asked for, but for the warm-up where requests came by a schedule.
func (o *Table) Judged(steps []analyze.Step) map[int64][]int32 {
	rows := make(map[int64][]int32)
	for row, step := range o.Numbers("step") {
		rows[step] = append(rows[step], int32(row))
	}
	intended := o.Micros("intended")
	for _, s := range steps {
		if !s.Open || s.Arrivals == nil || intended == nil {
			continue
		}
		list := rows[int64(s.ID)]
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(intended[a], intended[b]) })
		list = list[min(s.Arrivals.WarmUp, len(list)):]
		rows[int64(s.ID)] = list[:min(s.Arrivals.Judged, len(list))]
	}
	return rows
}

// Latencies are the shortest latencies, sorted: as many as the analysis counts
// as reached. What came after the step had been judged is not among them.
func Latencies(rows []int32, at, zero []int64, reached int) []int64 {
	list := make([]int64, 0, len(rows))
	for _, row := range rows {
		if at[row] >= 0 && zero[row] >= 0 {
			list = append(list, max(at[row]-zero[row], 0))
		}
	}
	slices.Sort(list)
	return list[:min(len(list), max(reached, 0))]
}

// Samples are the distributions of a run's steps, by the step's ID, for a
// comparison: of each milestone over all objects, and by component where there
// are several.
func Samples(dir record.Dir, steps []analyze.Step, milestones []string) (map[int][]compare.Sample, error) {
	needed := []string{"slot", "step", "component", "sent", "intended", "Created"}
	o, err := Read(dir, func(name string) bool {
		name = strings.TrimSuffix(name, MicrosSuffix)
		return slices.Contains(needed, name) || slices.Contains(milestones, name)
	})
	if err != nil {
		return nil, err
	}
	zero, judged, component := o.Zeroes(steps), o.Judged(steps), o.column("component")
	samples := make(map[int][]compare.Sample)
	for _, s := range steps {
		rows := judged[int64(s.ID)]
		var parts [][]int32 // by the component's word
		if component != nil && component.Texts != nil && len(component.Words) > 1 {
			parts = make([][]int32, len(component.Words))
			for _, row := range rows {
				w := component.Texts[row]
				parts[w] = append(parts[w], row)
			}
		}
		for _, m := range milestones {
			l, ok := s.Latency[m]
			at := o.Micros(m)
			if !ok || at == nil || l.N == 0 {
				continue
			}
			all := seconds(Latencies(rows, at, zero, l.N-l.Censored))
			samples[s.ID] = append(samples[s.ID], compare.Sample{Milestone: m, Sample: stats.NewSample(all, l.N-len(all))})
			last := math.Inf(1)
			if l.Censored > 0 && len(all) > 0 {
				last = all[len(all)-1]
			}
			for w, part := range parts {
				if len(part) == 0 || len(part) == len(rows) {
					continue
				}
				values := seconds(Latencies(part, at, zero, len(part)))
				for len(values) > 0 && values[len(values)-1] > last {
					values = values[:len(values)-1] // it came after the step had been judged
				}
				samples[s.ID] = append(samples[s.ID], compare.Sample{Milestone: m, Component: component.Words[w], Sample: stats.NewSample(values, len(part)-len(values))})
			}
		}
	}
	return samples, nil
}

func seconds(micros []int64) []float64 {
	list := make([]float64, len(micros))
	for i, n := range micros {
		list[i] = float64(n) / 1e6
	}
	return list
}
