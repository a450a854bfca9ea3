package metrics

import (
	"cmp"
	"context"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"

	"plimsoll.dev/plimsoll/internal/record"
)

// BlocksDir is the directory of blocks in a run directory. A Prometheus can open it as its own data.
const BlocksDir = "metrics"

const nameLabel = model.MetricNameLabel

// Built says what a run's metrics contain.
type Built struct {
	Series, Samples int
	Cut             bool      // scrapes of a part of the run end within a scrape, or are damaged
	From, To        time.Time // the time on record
	Steps           []Span
}

// Span says when a step was made, and when its hold began: zero without a hold.
type Span struct {
	ID             int
	Level          float64
	From, Held, To time.Time
}

// stampFile says what blocks were made of, and by which version of this code.
const (
	stampFile    = "made-of.json" // from what the blocks were made, and by which version of this code
	stampVersion = 1
)

const walDir = "wal" // promtool needs it

// stamp says whether blocks still match the record.
type stamp struct {
	Version          int
	History, Scrapes int64  // bytes
	Result           string // sum
}

// madeOf is the content of stampFile.
type madeOf struct {
	stamp
	Built Built
	Bytes int64 // of all blocks
}

func bytesIn(place string) (n int64, err error) {
	err = filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == stampFile {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

func stampOf(dir record.Dir) stamp {
	s := stamp{Version: stampVersion}
	if info, err := os.Stat(dir.Path(record.HistoryFile)); err == nil {
		s.History = info.Size()
	}
	s.Scrapes, _ = bytesIn(dir.Path(ScrapesDir)) // 0 where nothing was scraped
	s.Result, _ = dir.Sum(record.ResultFile)     // "" where it was not judged
	return s
}

// Build makes a run directory's blocks again, from whole scrapes and the record's own figures.
func Build(dir record.Dir) (Built, error) { return buildIn(dir, dir.Path(BlocksDir)) }

// Rebuild builds the blocks of a run directory with scrapes; those of others are made on demand.
func Rebuild(dir record.Dir) error {
	if _, err := os.Stat(dir.Path(ScrapesDir)); err != nil {
		return nil
	}
	_, err := Build(dir)
	return err
}

func buildIn(dir record.Dir, place string) (Built, error) {
	tmp, err := os.MkdirTemp(filepath.Dir(place), "."+BlocksDir+"-*")
	if err != nil {
		return Built{}, fmt.Errorf("make the blocks of metrics: %w", err)
	}
	defer os.RemoveAll(tmp)
	s := madeOf{stamp: stampOf(dir)}
	if s.Built, err = fill(dir, tmp); err == nil {
		err = os.Mkdir(filepath.Join(tmp, walDir), record.DirMode)
	}
	if err != nil {
		return s.Built, fmt.Errorf("make the blocks of metrics: %w", err)
	}
	s.Bytes, err = bytesIn(tmp)
	var text []byte
	if err == nil {
		text, err = json.Marshal(s)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(tmp, stampFile), text, 0o600)
	}
	if err == nil {
		err = os.RemoveAll(place)
	}
	if err == nil {
		err = os.Rename(tmp, place)
	}
	if err != nil {
		return s.Built, fmt.Errorf("make the blocks of metrics: %w", err)
	}
	return s.Built, nil
}

func fill(dir record.Dir, to string) (Built, error) {
	environment, err := dir.Environment()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Built{}, nil // the run ended before its first step
		}
		return Built{}, err
	}
	b := &builder{dir: to, heads: make(map[string]*head)}
	if err := ownFigures(dir, environment.Start, b); err != nil {
		return b.built, err
	}
	if b.built.Cut, err = readScrapes(dir.Path(ScrapesDir), b); errors.Is(err, fs.ErrNotExist) {
		if _, old := os.Lstat(dir.Path(beforeScrapes)); old == nil {
			return b.built, fmt.Errorf("%s has the metrics in the format of an earlier version; use that version, or run the experiment again", beforeScrapes)
		}
		err = nil
	}
	if err != nil {
		return b.built, err
	}
	return b.built, b.write()
}

// builder gathers samples, and writes a block whenever there are too many to wait in memory for more.
type builder struct {
	dir     string
	heads   map[string]*head // by their labels
	pending int              // samples since the last block
	blocks  int
	built   Built
	key     []byte
	keeps   func(labels.Labels) bool // says which series are kept, nil for all
	none    head                     // stands for the others
}

// ignored reports whether it stands for the series that are left out.
func (h *head) ignored() bool { return h.b == nil }

const mostPending = 15_000_000 // bound of the samples that wait in memory, at about two bytes each

// head is the part of a series that is not in a block yet.
type head struct {
	b      *builder
	labels labels.Labels
	chunks []chunks.Meta
	app    chunkenc.Appender
	last   int64
	lastly float64 // the value then
}

const perChunk = 120 // samples, as in Prometheus

func (b *builder) series(l labels.Labels) *head {
	b.key = l.Bytes(b.key)
	if h := b.heads[string(b.key)]; h != nil {
		return h
	}
	h := &head{b: b, labels: l, last: math.MinInt64}
	if b.keeps != nil && !b.keeps(l) {
		return &b.none // there may be any number of them
	}
	b.heads[string(b.key)] = h
	b.built.Series++
	return h
}

// add adds a sample. It leaves out one that is not later than the last one.
func (h *head) add(t int64, v float64) {
	if t <= h.last || h.ignored() {
		return
	}
	if n := len(h.chunks); h.app == nil || h.chunks[n-1].Chunk.NumSamples() >= perChunk {
		if h.app != nil {
			h.chunks[n-1].Chunk.Compact()
		}
		c := chunkenc.NewXORChunk()
		h.app, _ = c.Appender() // a new chunk has one
		h.chunks = append(h.chunks, chunks.Meta{Chunk: c, MinTime: t})
	}
	h.app.Append(0, t, v)
	h.chunks[len(h.chunks)-1].MaxTime = t
	h.last, h.lastly = t, v
	h.b.pending++
	h.b.built.Samples++
}

// take adds a sample, or the mark that the series has ended.
func (h *head) take(t int64, v float64) {
	if value.IsStaleNaN(v) {
		h.b.stale(h, t)
		return
	}
	h.add(t, v)
}

func (b *builder) stale(h *head, t int64) {
	if !h.ignored() && h.last != math.MinInt64 && !value.IsStaleNaN(h.lastly) {
		h.add(max(t, h.last+1), math.Float64frombits(value.StaleNaN))
	}
}

func (b *builder) cut() error {
	if b.pending < mostPending || b.dir == "" {
		return nil
	}
	return b.write()
}

func (b *builder) write() error {
	var list []*head
	for _, h := range b.heads {
		if len(h.chunks) > 0 {
			list = append(list, h)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(x, y *head) int { return labels.Compare(x.labels, y.labels) })
	m := meta{Version: 1, MinTime: math.MaxInt64, MaxTime: math.MinInt64}
	for _, h := range list {
		m.MinTime = min(m.MinTime, h.chunks[0].MinTime)
		m.MaxTime = max(m.MaxTime, h.last+1)
		m.Stats.NumChunks += len(h.chunks)
	}
	m.Stats.NumSeries, m.Stats.NumSamples, m.Stats.NumFloatSamples = len(list), b.pending, b.pending
	m.ULID = blockName(m.MinTime, b.blocks, b.pending)
	m.Compaction = compaction{Level: 1, Sources: []string{m.ULID}}
	dir := filepath.Join(b.dir, m.ULID)
	if err := os.MkdirAll(filepath.Join(dir, "chunks"), record.DirMode); err != nil {
		return err
	}
	if err := writeSeries(dir, list); err != nil {
		return err
	}
	written, err := filepath.Glob(filepath.Join(dir, "chunks", "*")) // which others can read
	if err != nil {
		return err
	}
	for _, path := range append(written, filepath.Join(dir, "index")) {
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	b.blocks, b.pending = b.blocks+1, 0
	return os.WriteFile(filepath.Join(dir, "meta.json"), text, 0o600)
}

// writeSeries writes the chunks of series, in order, and their index; the series are empty afterwards.
func writeSeries(dir string, list []*head) (err error) {
	symbols := make(map[string]bool)
	for _, h := range list {
		h.labels.Range(func(l labels.Label) { symbols[l.Name], symbols[l.Value] = true, true })
	}
	chunkFile, err := chunks.NewWriter(filepath.Join(dir, "chunks"))
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, chunkFile.Close()) }()
	indexFile, err := index.NewWriter(context.Background(), filepath.Join(dir, "index"))
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, indexFile.Close()) }()
	for _, s := range slices.Sorted(maps.Keys(symbols)) {
		if err := indexFile.AddSymbol(s); err != nil {
			return err
		}
	}
	for i, h := range list {
		if err := chunkFile.WriteChunks(h.chunks...); err != nil {
			return err
		}
		if err := indexFile.AddSeries(storage.SeriesRef(i), h.labels, h.chunks...); err != nil {
			return err
		}
		h.chunks, h.app = nil, nil
	}
	return nil
}

// meta is a block's meta.json.
type meta struct {
	ULID    string `json:"ulid"`
	MinTime int64  `json:"minTime"` // milliseconds since 1970
	MaxTime int64  `json:"maxTime"` // exclusive
	Stats   struct {
		NumSamples      int `json:"numSamples"`
		NumFloatSamples int `json:"numFloatSamples"`
		NumSeries       int `json:"numSeries"`
		NumChunks       int `json:"numChunks"`
	} `json:"stats"`
	Compaction compaction `json:"compaction"`
	Version    int        `json:"version"`
}

type compaction struct {
	Level   int      `json:"level"`
	Sources []string `json:"sources"`
}

// blockName returns a ULID, which is the same for blocks of the same record.
func blockName(t int64, n, samples int) string {
	hash := fnv.New128a()
	fmt.Fprint(hash, t, n, samples)
	var id [20]byte // two bits of 0, then the ULID, and padding
	binary.BigEndian.PutUint64(id[:], uint64(t)<<14)
	copy(id[6:], hash.Sum(nil)[:10])
	id[6] = byte(t<<6)&0xc0 | id[6]&0x3f
	digits := base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding).EncodeToString(id[:])
	return digits[:26]
}
