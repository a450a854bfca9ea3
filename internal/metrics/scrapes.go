package metrics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/encoding"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
	"github.com/prometheus/prometheus/util/compression"

	"plimsoll.dev/plimsoll/internal/record"
)

// ScrapesDir has a directory for each part of the run with a write-ahead log like a Prometheus': scrapes
// before a kill can be read. A scrape is a record of new series and one of all samples. A full segment is
// compressed to a tenth.
const ScrapesDir = "scrapes"

const beforeScrapes = "scrapes.zst" // of an earlier version, in a format of its own

const (
	segmentSize  = 4 << 20
	mostSegment  = 64 << 20 // with a single large record
	mostSeries   = 10_000   // of a record
	pageSize     = 32 << 10 // of package wlog
	fragmentHead = 7        // of package wlog
	compressed   = ".zst"   // ends the name of a compressed segment
	timedRef     = 1        // bit of a series' reference: samples have times of their own, and do not end with a part
)

// segmentName returns the name of a log's segment, and of a part's directory.
func segmentName(i int) string { return filepath.Base(wlog.SegmentName("", i)) }

type appender struct {
	walrecord.Encoder
	log *wlog.WL
	dir record.Dir
	at  int // the segment that is written to
	buf []byte
	zip *zstd.Encoder
}

func openScrapes(dir string) (a *appender, err error) {
	parts, err := partsOf(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	path := filepath.Join(dir, segmentName(len(parts)))
	a = &appender{dir: record.Dir(path)}
	if err := os.MkdirAll(path, record.DirMode); err != nil {
		return nil, err
	}
	if a.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(segmentSize/2), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	if a.log, err = wlog.NewSize(nil, nil, path, segmentSize, compression.None); err != nil {
		return nil, err
	}
	return a, a.reach(0)
}

// append writes the new series, and samples. They then survive this process.
func (a *appender) append(series []walrecord.RefSeries, samples []walrecord.RefSample) error {
	var list [][]byte
	for some := range slices.Chunk(series, mostSeries) {
		list = append(list, a.Series(some, nil))
	}
	a.buf = a.Samples(samples, a.buf[:0])
	if err := a.log.Log(append(list, a.buf)...); err != nil {
		return err
	}
	last, _, err := a.log.LastSegmentAndOffset()
	if err == nil && last > a.at {
		err = a.reach(last)
	}
	return err
}

// reach compresses all segments before one that begins, and hides that from other users.
func (a *appender) reach(segment int) error {
	for ; a.at < segment; a.at++ {
		a.compress(segmentName(a.at))
	}
	return os.Chmod(a.dir.Path(segmentName(segment)), 0o600)
}

// compress compresses a segment. On an error, as on a full disk, it stays as it is.
func (a *appender) compress(name string) {
	data, err := a.dir.ReadFile(name)
	if err == nil && a.dir.WriteFile(name+compressed, a.zip.EncodeAll(data, nil)) == nil {
		_ = os.Remove(a.dir.Path(name))
	}
}

func (a *appender) close() error {
	err := a.log.Close()
	a.compress(segmentName(a.at))
	return errors.Join(err, a.zip.Close())
}

func partsOf(dir string) (list []record.Dir, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory, it is %s", dir, info.Mode())
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, record.Dir(filepath.Join(dir, e.Name())))
		}
	}
	return list, err
}

// readScrapes reads each part as far as it is whole, and reports whether one is cut or damaged.
func readScrapes(dir string, b *builder) (cut bool, err error) {
	parts, err := partsOf(dir)
	if err != nil {
		return false, err
	}
	d := decoder{Decoder: walrecord.NewDecoder(nil, slog.New(slog.DiscardHandler)), b: b}
	if d.zip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostSegment)); err != nil {
		return false, err
	}
	defer d.zip.Close()
	for _, part := range parts {
		whole, err := d.part(part)
		if err != nil {
			return cut, err
		}
		cut = cut || !whole
	}
	return cut, nil
}

type decoder struct {
	walrecord.Decoder
	zip     *zstd.Decoder
	b       *builder
	heads   map[chunks.HeadSeriesRef]*head
	samples []walrecord.RefSample
}

// part reads the log of a part, which ends earlier series, and reports whether it is whole.
func (d *decoder) part(dir record.Dir) (whole bool, err error) {
	for ref, h := range d.heads {
		if ref&timedRef == 0 {
			d.b.stale(h, h.last+1)
		}
	}
	d.heads = make(map[chunks.HeadSeriesRef]*head)
	for i := 0; ; i++ {
		data, whole, err := d.segment(dir, segmentName(i))
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		r := wlog.NewReader(bytes.NewReader(data))
		for r.Next() {
			if !d.record(r.Record()) {
				return false, nil
			}
			if err := d.b.cut(); err != nil {
				return false, err
			}
		}
		if !whole || r.Err() != nil {
			return false, nil
		}
	}
}

// segment reads a segment as far as it is whole, and fills up its last page with zeros.
func (d *decoder) segment(dir record.Dir, name string) (data []byte, whole bool, err error) {
	var damaged error
	if data, err = dir.ReadFile(name); errors.Is(err, fs.ErrNotExist) {
		if data, err = dir.ReadFile(name + compressed); err == nil {
			data, damaged = d.zip.DecodeAll(data, nil)
		}
	}
	if n := len(data) % pageSize; n > 0 {
		data = append(data, make([]byte, pageSize-n)...)
	}
	if len(data) > mostSegment || !plain(data) {
		return nil, false, err
	}
	return data, damaged == nil, err
}

// plain reports whether pages have only uncompressed fragments: a compressed one could hold any amount.
func plain(data []byte) bool {
	const kind = 1<<3 - 1 // the bits of a fragment's first byte that say which it is
	for page := range slices.Chunk(data, pageSize) {
		for len(page) > 0 && page[0]&kind != 0 {
			if page[0]&^kind != 0 || len(page) < fragmentHead {
				return false
			}
			n := fragmentHead + int(binary.BigEndian.Uint16(page[1:]))
			if n > len(page) {
				return false
			}
			page = page[n:]
		}
	}
	return true
}

// record takes in a record, and reports whether its checksum is right.
func (d *decoder) record(rec []byte) bool {
	switch d.Type(rec) {
	case walrecord.Series:
		return d.series(rec[1:])
	case walrecord.Samples:
		var err error
		if d.samples, err = d.Samples(rec, d.samples[:0]); err != nil {
			return false
		}
		for _, one := range d.samples {
			h := d.heads[one.Ref]
			if h == nil {
				return false
			}
			h.take(one.T, one.V)
		}
	}
	return true
}

// series takes in a record of series. Prometheus' own decoder trusts its numbers.
func (d *decoder) series(rec []byte) bool {
	list := encoding.Decbuf{B: rec}
	for list.Len() > 0 && list.Err() == nil {
		ref, n := chunks.HeadSeriesRef(list.Be64()), list.Uvarint64()
		if n > uint64(list.Len()) {
			return false
		}
		var texts []string
		for range 2 * n {
			texts = append(texts, string(list.UvarintBytes()))
		}
		d.heads[ref] = d.b.series(labelsOf(texts))
	}
	return list.Err() == nil
}

// labelsOf returns labels of names and values by turns. The first one of a name counts.
func labelsOf(texts []string) labels.Labels {
	set := make(map[string]string, len(texts)/2)
	for i := 0; i+1 < len(texts); i += 2 {
		if _, given := set[texts[i]]; !given {
			set[texts[i]] = texts[i+1]
		}
	}
	maps.DeleteFunc(set, func(_, v string) bool { return v == "" })
	return labels.FromMap(set)
}
