package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/util/annotations"

	"plimsoll.dev/plimsoll/internal/record"
)

// Store reads the metrics of a run.
type Store struct {
	Built  Built
	blocks []*block
	remove string // a directory that goes with it, or ""
}

// Open opens a run directory's metrics, and makes missing or outdated blocks again, if need be in tmp.
func Open(dir record.Dir, tmp string) (*Store, error) {
	place := dir.Path(BlocksDir)
	var made madeOf
	text, err := os.ReadFile(filepath.Join(place, stampFile))
	if err == nil && json.Unmarshal(text, &made) == nil && made.stamp == stampOf(dir) && made.isWhole(place) {
		if s, err := openBlocks(place, made.Built); err == nil {
			return s, nil
		}
	}
	built, err := Build(dir)
	if err == nil {
		return openBlocks(place, built)
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil, err
	}
	own, err := os.MkdirTemp(tmp, "plimsoll-metrics-*")
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	var s *Store
	place = filepath.Join(own, BlocksDir)
	if built, err = buildIn(dir, place); err == nil {
		s, err = openBlocks(place, built)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(own))
	}
	s.remove = own
	return s, nil
}

// isWhole reports whether no file of the blocks was cut, or is missing.
func (m *madeOf) isWhole(place string) bool {
	n, err := bytesIn(place)
	return err == nil && n == m.Bytes
}

func openBlocks(place string, built Built) (*Store, error) {
	entries, err := os.ReadDir(place)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	s := &Store{Built: built}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == walDir {
			continue
		}
		b, err := openBlock(filepath.Join(place, e.Name()))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read metrics: block %s: %w", e.Name(), err), s.Close())
		}
		s.blocks = append(s.blocks, b)
	}
	return s, nil
}

// Close closes the blocks.
func (s *Store) Close() error {
	var err error
	for _, b := range s.blocks {
		err = errors.Join(err, b.index.Close(), b.chunks.Close())
	}
	s.blocks = nil
	if s.remove != "" {
		err = errors.Join(err, os.RemoveAll(s.remove))
	}
	return err
}

// Querier returns the series of all blocks in a span of time.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	var list []storage.Querier
	for _, b := range s.blocks {
		if b.meta.MinTime <= maxt && mint < b.meta.MaxTime {
			list = append(list, &querier{b, mint, maxt})
		}
	}
	return storage.NewMergeQuerier(list, nil, storage.ChainedSeriesMerge), nil
}

type block struct {
	meta   meta
	index  *index.Reader
	chunks *chunks.Reader
}

func openBlock(dir string) (*block, error) {
	b := new(block)
	text, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err == nil {
		err = json.Unmarshal(text, &b.meta)
	}
	if err != nil {
		return nil, err
	}
	if b.index, err = index.NewFileReader(filepath.Join(dir, "index"), index.DecodePostingsRaw); err != nil {
		return nil, err
	}
	if b.chunks, err = chunks.NewDirReader(filepath.Join(dir, "chunks"), nil); err != nil {
		return nil, errors.Join(err, b.index.Close())
	}
	return b, nil
}

type querier struct {
	*block
	mint, maxt int64
}

// Close does nothing: blocks are closed with their Store.
func (*querier) Close() error { return nil }

func (q *querier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if len(matchers) == 0 {
		list, err := q.index.SortedLabelValues(ctx, name, hints)
		return list, nil, err
	}
	return q.texts(ctx, matchers, func(l labels.Label, found map[string]bool) {
		if l.Name == name {
			found[l.Value] = true
		}
	})
}

func (q *querier) LabelNames(ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if len(matchers) == 0 {
		list, err := q.index.LabelNames(ctx)
		return list, nil, err
	}
	return q.texts(ctx, matchers, func(l labels.Label, found map[string]bool) { found[l.Name] = true })
}

func (q *querier) texts(ctx context.Context, matchers []*labels.Matcher, each func(labels.Label, map[string]bool)) ([]string, annotations.Annotations, error) {
	found := make(map[string]bool)
	set := q.Select(ctx, false, nil, matchers...)
	for set.Next() {
		set.At().Labels().Range(func(l labels.Label) { each(l, found) })
	}
	return slices.Sorted(maps.Keys(found)), nil, set.Err()
}

// Select returns series, which are always in order.
func (q *querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	p, err := q.postings(ctx, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	s := &seriesSet{block: q.block, postings: p, mint: q.mint, maxt: q.maxt}
	if hints != nil {
		s.mint, s.maxt = hints.Start, hints.End
	}
	return s
}

// postings returns the series of all matchers that want something, without those that others exclude.
func (q *querier) postings(ctx context.Context, matchers []*labels.Matcher) (index.Postings, error) {
	var wanted, unwanted []index.Postings
	for _, m := range matchers {
		switch {
		case m.Matches(""):
			unwanted = append(unwanted, q.index.PostingsForLabelMatching(ctx, m.Name, func(v string) bool { return !m.Matches(v) }))
		case m.Type == labels.MatchEqual:
			p, err := q.index.Postings(ctx, m.Name, m.Value)
			if err != nil {
				return nil, err
			}
			wanted = append(wanted, p)
		default:
			wanted = append(wanted, q.index.PostingsForLabelMatching(ctx, m.Name, m.Matches))
		}
	}
	if len(wanted) == 0 {
		name, all := index.AllPostingsKey()
		p, err := q.index.Postings(ctx, name, all)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, p)
	}
	found := index.Intersect(wanted...)
	for _, p := range unwanted {
		found = index.Without(found, p)
	}
	return found, nil
}

// seriesSet reads the series of postings, in which they are in order.
type seriesSet struct {
	*block
	postings   index.Postings
	mint, maxt int64
	builder    labels.ScratchBuilder
	current    storage.Series
	err        error
}

func (s *seriesSet) Next() bool {
	for s.err == nil && s.postings.Next() {
		var list []chunks.Meta
		if s.err = s.index.Series(s.postings.At(), &s.builder, &list); s.err != nil {
			return false
		}
		within := overlapping(list, s.mint, s.maxt)
		if len(within) == 0 {
			continue
		}
		s.current = &storage.SeriesEntry{Lset: s.builder.Labels(), SampleIteratorFn: func(reuse chunkenc.Iterator) chunkenc.Iterator {
			return samples(within, reuse, func(m chunks.Meta) (chunkenc.Chunk, error) {
				c, _, err := s.chunks.ChunkOrIterable(m)
				return c, err
			})
		}}
		return true
	}
	s.err = cmp.Or(s.err, s.postings.Err())
	return false
}

func overlapping(list []chunks.Meta, mint, maxt int64) []chunks.Meta {
	var within []chunks.Meta
	for _, c := range list {
		if c.OverlapsClosedInterval(mint, maxt) {
			within = append(within, c)
		}
	}
	return within
}

func samples(list []chunks.Meta, reuse chunkenc.Iterator, read func(chunks.Meta) (chunkenc.Chunk, error)) chunkenc.Iterator {
	var each []chunkenc.Iterator
	for _, m := range list {
		c, err := read(m)
		if err != nil {
			return failing{chunkenc.NewNopIterator(), err}
		}
		if len(list) == 1 {
			return c.Iterator(reuse)
		}
		each = append(each, c.Iterator(nil))
	}
	return storage.ChainSampleIteratorFromIterators(reuse, each)
}

type failing struct {
	chunkenc.Iterator
	err error
}

func (f failing) Err() error { return f.err }

func (s *seriesSet) At() storage.Series              { return s.current }
func (s *seriesSet) Err() error                      { return s.err }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
