// Package objects reads objects.parquet, the outcome of every object of a run, column by column, and the
// distributions that follow from it without the history.
package objects

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/record"
)

// Table is objects.parquet in memory: one row for each requested object.
type Table struct {
	Rows    int
	Columns []Column
}

// Column is one column: whole numbers, or texts as indices into the distinct ones.
type Column struct {
	Name    string
	Numbers []int64
	Texts   []int32
	Words   []string
}

// Null is a missing number.
const Null int64 = math.MinInt64

// MicrosSuffix ends the names of columns with times in microseconds.
const MicrosSuffix = "_us"

// Read reads objects.parquet, without the columns of steps. Wanted, if not nil, chooses the columns.
func Read(dir record.Dir, wanted func(name string) bool) (*Table, error) {
	file, table, err := record.OpenTable(dir, record.ObjectsFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	o := &Table{Rows: int(table.NumRows())}
	if table.Root().Column(ZeroColumn) == nil {
		return nil, dir.FormatError(record.ObjectsFile, ZeroColumn)
	}
	var at []int // in the file
	for i, path := range table.Schema().Columns() {
		name := strings.Join(path, ".")
		if slices.Contains([]string{"level", "arm", "replicate"}, name) || wanted != nil && !wanted(name) { // of the step
			continue
		}
		o.Columns = append(o.Columns, Column{Name: name})
		at = append(at, i)
	}
	var columns errgroup.Group
	columns.SetLimit(runtime.GOMAXPROCS(0))
	for k := range o.Columns {
		columns.Go(func() error {
			c := &o.Columns[k]
			r := columnReader{Column: c, rows: o.Rows, index: make(map[string]int32)}
			for _, group := range table.RowGroups() {
				if err := r.read(group.ColumnChunks()[at[k]]); err != nil {
					return fmt.Errorf("read %s: column %s: %w", record.ObjectsFile, c.Name, err)
				}
			}
			if n := len(c.Numbers) + len(c.Texts); n != o.Rows {
				return fmt.Errorf("read %s: column %s has %d of %d rows", record.ObjectsFile, c.Name, n, o.Rows)
			}
			return nil
		})
	}
	if err := columns.Wait(); err != nil {
		return nil, err
	}
	return o, nil
}

type columnReader struct {
	*Column
	rows   int
	index  map[string]int32 // of Words
	buffer []parquet.Value

	ofDictionary []int32 // the words of a chunk's dictionary, -1 before they are needed
}

func (c *columnReader) read(chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	c.ofDictionary = nil
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.page(page); err != nil {
			return err
		}
		parquet.Release(page)
	}
}

// page takes in numbers and the indices of a dictionary at once, anything else value by value.
func (c *columnReader) page(page parquet.Page) error {
	levels := page.DefinitionLevels()
	switch dictionary := page.Dictionary(); {
	case dictionary != nil && dictionary.Type().Kind() == parquet.ByteArray && len(levels) == 0:
		if c.ofDictionary == nil {
			c.ofDictionary = slices.Repeat([]int32{-1}, dictionary.Len())
		}
		c.Texts = slices.Grow(c.Texts, c.rows-len(c.Texts))
		data := page.Data()
		for _, i := range data.Int32() {
			if i < 0 || int(i) >= len(c.ofDictionary) {
				return fmt.Errorf("it has the text %d of %d", i, len(c.ofDictionary))
			}
			if c.ofDictionary[i] < 0 {
				c.ofDictionary[i] = c.word(dictionary.Index(i).ByteArray())
			}
			c.Texts = append(c.Texts, c.ofDictionary[i])
		}
		return nil
	case dictionary == nil && page.Type().Kind() == parquet.Int64:
		c.Numbers = slices.Grow(c.Numbers, c.rows-len(c.Numbers))
		data := page.Data()
		numbers := data.Int64()
		if len(levels) == 0 {
			c.Numbers = append(c.Numbers, numbers...)
			return nil
		}
		for _, level := range levels {
			switch {
			case level == 0:
				c.Numbers = append(c.Numbers, Null)
			case len(numbers) == 0:
				return errors.New("a page has fewer values than it says")
			default:
				c.Numbers = append(c.Numbers, numbers[0])
				numbers = numbers[1:]
			}
		}
		return nil
	}
	if c.buffer == nil {
		c.buffer = make([]parquet.Value, 1024)
	}
	values := page.Values()
	for {
		n, err := values.ReadValues(c.buffer)
		for _, v := range c.buffer[:n] {
			c.add(v)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *columnReader) add(v parquet.Value) {
	switch {
	case v.IsNull():
		c.Numbers = append(c.Numbers, Null)
	case v.Kind() == parquet.ByteArray:
		c.Texts = append(c.Texts, c.word(v.ByteArray()))
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

func (c *columnReader) word(text []byte) int32 {
	i, ok := c.index[string(text)]
	if !ok {
		i = int32(len(c.Words))
		c.Words = append(c.Words, string(text))
		c.index[c.Words[i]] = i
	}
	return i
}

func (o *Table) column(name string) *Column {
	for i := range o.Columns {
		if o.Columns[i].Name == name {
			return &o.Columns[i]
		}
	}
	return nil
}

// Numbers returns a column of numbers, or nil.
func (o *Table) Numbers(name string) []int64 {
	if c := o.column(name); c != nil {
		return c.Numbers
	}
	return nil
}

// Micros returns a column of times by its name, such as intended or a milestone; negative is unknown.
func (o *Table) Micros(name string) []int64 { return o.Numbers(name + MicrosSuffix) }

// Zeroes returns the time zero of each object, negative where it is unknown.
func (o *Table) Zeroes() []int64 { return o.Numbers(ZeroColumn) }

// ZeroColumn is the column of the time zero of objects.
const ZeroColumn = "zero" + MicrosSuffix

// Judged returns the rows of each step's own objects, without the warm-up of a schedule.
func (o *Table) Judged(steps []result.Step) map[int64][]int32 {
	rows := make(map[int64][]int32)
	numbers := o.Numbers("step")
	for from := 0; from < len(numbers); {
		to := from // a step's objects are mostly beside each other
		for to < len(numbers) && numbers[to] == numbers[from] {
			to++
		}
		list := slices.Grow(rows[numbers[from]], to-from)
		for row := from; row < to; row++ {
			list = append(list, int32(row))
		}
		rows[numbers[from]] = list
		from = to
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

// Latencies returns the shortest latencies, sorted: as many as were reached by the verdict on the step.
func Latencies(rows []int32, at, zero []int64, reached int) []int64 {
	list := latencies(rows, at, zero)
	return list[:min(len(list), max(reached, 0))]
}

func latencies(rows []int32, at, zero []int64) []int64 {
	list := make([]int64, 0, len(rows))
	for _, row := range rows {
		if at[row] >= 0 && zero[row] >= 0 {
			list = append(list, max(at[row]-zero[row], 0))
		}
	}
	slices.Sort(list)
	return list
}

// Samples returns the distributions of a run's steps by their IDs, for a comparison: of each milestone
// over all objects of its kind, and by component where there are several. There is the milestone that counts.
func Samples(dir record.Dir, steps []result.Step, kind record.ObjectKind, milestones []string, there string) (map[int][]compare.MilestoneSample, error) {
	if slices.ContainsFunc(steps, result.Step.Streams) {
		return streamSamples(dir, milestones, there)
	}
	needed := []string{"step", "component", "intended" + MicrosSuffix, ZeroColumn}
	if slices.ContainsFunc(kind.Milestones, func(m record.Milestone) bool { return m.Of != "" }) {
		needed = append(needed, "slot") // each its own: they take memory
	}
	for _, m := range milestones {
		needed = append(needed, m+MicrosSuffix)
	}
	o, err := Read(dir, func(name string) bool { return slices.Contains(needed, name) })
	if err != nil {
		return nil, err
	}
	zero := o.Numbers(ZeroColumn)
	judged, component := o.Judged(steps), o.column("component")
	if component != nil && (component.Texts == nil || len(component.Words) < 2) {
		component = nil
	}
	of := o.ofKind(kind)
	list := make([][]compare.MilestoneSample, len(steps))
	var each errgroup.Group
	each.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range steps {
		each.Go(func() error {
			list[i] = o.samplesOf(s, judged[int64(s.ID)], zero, component, milestones, of)
			return nil
		})
	}
	_ = each.Wait() // none of them fails
	samples := make(map[int][]compare.MilestoneSample, len(steps))
	for i, s := range steps {
		samples[s.ID] = list[i]
	}
	return samples, nil
}

// ofKind returns what counts the rows of objects that should reach a milestone.
func (o *Table) ofKind(kind record.ObjectKind) func(rows []int32, milestone string) int {
	of, prefixes := make(map[string]string), map[string]bool{}
	for _, m := range kind.Milestones {
		if m.Of != "" {
			of[m.Name], prefixes[m.Of] = m.Of, true
		}
	}
	slot := o.column("slot")
	if slot == nil || slot.Texts == nil {
		return func(rows []int32, _ string) int { return len(rows) }
	}
	kinds := make([]string, len(slot.Words))
	for i, word := range slot.Words {
		if prefix, _, _ := strings.Cut(word, "/"); prefixes[prefix] {
			kinds[i] = prefix
		}
	}
	return func(rows []int32, milestone string) (n int) {
		for _, row := range rows {
			if kinds[slot.Texts[row]] == of[milestone] {
				n++
			}
		}
		return n
	}
}

// samplesOf returns the distributions of one step by its rows. Component is nil for a single one.
func (o *Table) samplesOf(s result.Step, rows []int32, zero []int64, component *Column, milestones []string, of func([]int32, string) int) []compare.MilestoneSample {
	var samples []compare.MilestoneSample
	parts := [][]int32{rows} // by the component's word
	if component != nil {
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
		ofParts := make([]stats.Sample, len(parts))
		for w, part := range parts {
			ofParts[w] = stats.NewSample(seconds(latencies(part, at, zero)), 0)
		}
		values := stats.Merge(ofParts...).Values()
		values = values[:min(len(values), max(l.N-l.Censored, 0))]
		samples = append(samples, compare.MilestoneSample{Milestone: m, Sample: stats.NewSample(values, l.N-len(values))})
		last := math.Inf(1)
		if l.Censored > 0 && len(values) > 0 {
			last = values[len(values)-1]
		}
		all := of(rows, m)
		for w, part := range parts {
			asked := of(part, m)
			if asked == 0 || asked == all {
				continue
			}
			n := ofParts[w].AtMost(last) // later ones came after the verdict on the step
			samples = append(samples, compare.MilestoneSample{Milestone: m, Component: component.Words[w], Sample: stats.NewSample(ofParts[w].Values()[:n], asked-n)})
		}
	}
	return samples
}

func seconds(micros []int64) []float64 {
	list := make([]float64, len(micros))
	for i, n := range micros {
		list[i] = float64(n) / 1e6
	}
	return list
}

// Windows returns the windows of a recorded run's streams, by the step's ID.
func Windows(dir record.Dir) (map[int][]*record.Window, error) {
	rows, err := record.ReadWindows(dir)
	if err != nil {
		return nil, err
	}
	windows := make(map[int][]*record.Window)
	for i := range rows {
		windows[int(rows[i].Step)] = append(windows[int(rows[i].Step)], &rows[i].Window)
	}
	return windows, nil
}

// Stream folds the windows of a step again.
func Stream(windows []*record.Window) *stream.Stream {
	var hold record.Micros
	judged := windows[min(max(slices.IndexFunc(windows, func(w *record.Window) bool { return !w.WarmUp }), 0), len(windows)):]
	for _, w := range judged {
		hold = max(hold, w.To-judged[0].From)
	}
	s := stream.New(hold, nil)
	for _, w := range windows {
		s.Add(w)
	}
	return s
}

func streamSamples(dir record.Dir, milestones []string, there string) (map[int][]compare.MilestoneSample, error) {
	windows, err := Windows(dir)
	if err != nil {
		return nil, err
	}
	samples := make(map[int][]compare.MilestoneSample)
	for id, list := range windows {
		samples[id] = Stream(list).ByComponent(there, milestones)
	}
	return samples, nil
}
