package metrics

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// ScrapesFile is the file of a run directory that scrapes are appended to. It is
// a row of Zstandard frames. Before each stands a skippable one with the length
// and the checksum of what follows, by which a reader finds how far the file is
// whole. Of a scrape only the values are in it that differ from the scrape before.
const ScrapesFile = "scrapes.zst"

const (
	scrapesVersion = 1
	frameHead      = 16
	skippable      = 0x184d2a50 // RFC 8878, 3.1.2
	// mostFrame bounds a frame, and mostPayload what one may hold: a file that is
	// no file of scrapes must not fill the memory.
	mostFrame   = 64 << 20
	mostPayload = 256 << 20
	// mostListed bounds lists of one frame.
	mostListed = 10_000_000
)

// The kinds of frames.
const (
	framePart   = iota // a part of the run begins: nothing of before holds
	frameScrape        // what an endpoint told, or why it told nothing
	frameEnded         // the endpoint is no more
)

// The bits of a value's head.
const (
	valueRaw   = 1 << iota // 8 bytes follow, else the difference of two whole numbers
	valueTimed             // the time that the endpoint gave follows, less the one before
	valueBits  = 2
)

func checksum(body []byte) uint32 { return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) }

// appender appends frames to the file of scrapes.
type appender struct {
	file *os.File
	zip  *zstd.Encoder
	out  []byte
}

// openScrapes opens the file of scrapes to append to it, without what a killed run
// has left of its last frame.
func openScrapes(path string) (*appender, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := eachFrame(file, func([]byte) error { return nil })
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	a := &appender{file: file}
	if err == nil {
		a.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	}
	if err == nil {
		err = a.append(binary.AppendUvarint([]byte{framePart}, scrapesVersion))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

// append writes a frame, which is then the operating system's.
func (a *appender) append(payload []byte) error {
	a.out = a.zip.EncodeAll(payload, append(a.out[:0], make([]byte, frameHead)...))
	body := a.out[frameHead:]
	binary.LittleEndian.PutUint32(a.out, skippable)
	binary.LittleEndian.PutUint32(a.out[4:], frameHead-8)
	binary.LittleEndian.PutUint32(a.out[8:], uint32(len(body)))
	binary.LittleEndian.PutUint32(a.out[12:], checksum(body))
	_, err := a.file.Write(a.out)
	return err
}

func (a *appender) close() error { return errors.Join(a.zip.Close(), a.file.Close()) }

// eachFrame hands each whole frame to each, not decompressed, and is where the last
// one ends: a killed run may have left a part of another.
func eachFrame(r io.Reader, each func(body []byte) error) (end int64, err error) {
	var head [frameHead]byte
	var body []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return end, notTheEnd(err)
		}
		length := binary.LittleEndian.Uint32(head[8:])
		if binary.LittleEndian.Uint32(head[:]) != skippable || binary.LittleEndian.Uint32(head[4:]) != frameHead-8 || length > mostFrame {
			return end, nil
		}
		if int(length) > cap(body) {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return end, notTheEnd(err)
		}
		if checksum(body) != binary.LittleEndian.Uint32(head[12:]) {
			return end, nil
		}
		if err := each(body); err != nil {
			return end, err
		}
		end += frameHead + int64(length)
	}
}

func notTheEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// readScrapes hands what was scraped to b, as far as the file is whole, and says
// how far that is.
func readScrapes(path string, b *builder) (end int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostPayload))
	if err != nil {
		return 0, err
	}
	defer zip.Close()
	d := decoder{b: b}
	var payload []byte
	var failed error
	end, err = eachFrame(file, func(body []byte) error {
		if payload, failed = zip.DecodeAll(body, payload[:0]); failed == nil {
			failed = d.frame(payload)
		}
		if failed != nil && !errors.As(failed, new(*versionError)) && !errors.As(failed, new(*blockError)) {
			failed = nil
			return io.EOF // its checksum is right and it says nothing: read no further
		}
		return failed
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return end, err
}

// versionError is that of a file of a later version.
type versionError struct{ version uint64 }

func (e *versionError) Error() string {
	return fmt.Sprintf("%s has format version %d, this program reads up to %d", ScrapesFile, e.version, scrapesVersion)
}

// decoder knows what the frames so far have said.
type decoder struct {
	b         *builder
	endpoints []*told
	at        []byte // what is left of the frame
}

// told is what an endpoint has told.
type told struct {
	labels             []string // by turns names and values
	up, took, returned *head
	series             []toldSeries
	gaps               []gap
}

// gap is when an endpoint was not read that should have been, in milliseconds since
// 1970: from the time at which that was tried to that at which it was read again.
type gap struct {
	from, to int64 // to is MaxInt64 while it lasts
	why      string
}

func (e *told) isRemote() bool { return len(e.labels) > 1 && e.labels[1] == remoteJob }

// open notes that the endpoint cannot be read from a time on.
func (e *told) open(at int64, why string) {
	if n := len(e.gaps); n == 0 || e.gaps[n-1].to != math.MaxInt64 {
		e.gaps = append(e.gaps, gap{at, math.MaxInt64, why})
	}
}

// close notes that it was read at a time.
func (e *told) close(at int64) {
	if n := len(e.gaps); n > 0 && e.gaps[n-1].to == math.MaxInt64 {
		e.gaps[n-1].to = at
	}
}

type toldSeries struct {
	*head
	value float64
	gone  bool
	timed bool  // by the endpoint itself
	time  int64 // that it gave last
}

// shortError is that of a frame that ends before what it begins.
type shortError struct{}

func (shortError) Error() string { return "the frame is too short" }

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.at)
	if n <= 0 {
		panic(shortError{})
	}
	d.at = d.at[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.at)
	if n <= 0 {
		panic(shortError{})
	}
	d.at = d.at[n:]
	return v
}

func (d *decoder) count() int {
	n := d.number()
	if n > mostListed {
		panic(shortError{})
	}
	return int(n)
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.at)) {
		panic(shortError{})
	}
	b := d.at[:n]
	d.at = d.at[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes(d.number())) }

func (d *decoder) texts() []string {
	var list []string
	for range d.count() {
		list = append(list, d.text())
	}
	return list
}

// frame takes in a frame. A damaged one is an error, whatever it holds.
func (d *decoder) frame(payload []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			short, is := r.(shortError)
			if !is {
				panic(r)
			}
			err = short
		}
	}()
	d.at = payload
	switch kind := d.bytes(1)[0]; kind {
	case framePart:
		if v := d.number(); v > scrapesVersion {
			return &versionError{v}
		}
		for _, e := range d.endpoints {
			if e.up != nil {
				d.b.stale(e.up, e.up.last+1)
			}
			d.end(e)
		}
		d.endpoints = nil
	case frameEnded:
		e, at := d.endpoint(), int64(d.number())
		d.b.stale(e.up, at)
		d.gap(e, at)
		e.open(at, "it is there no more")
	case frameScrape:
		d.scrape(d.endpoint())
	}
	return d.b.cut()
}

// end marks the series of an endpoint as gone where the last of them ends: what comes
// next is not known to follow.
func (d *decoder) end(e *told) {
	for _, s := range e.series {
		if !s.gone && !s.timed {
			d.b.stale(s.head, s.last+1)
		}
	}
}

// gap marks the series of an endpoint as gone from a time on.
func (d *decoder) gap(e *told, at int64) {
	for i := range e.series {
		if s := &e.series[i]; !s.gone && !s.timed {
			d.b.stale(s.head, at)
			s.gone = true
		}
	}
}

func (d *decoder) endpoint() *told {
	id := d.count()
	if id == len(d.endpoints) {
		e := &told{labels: d.texts()}
		d.endpoints = append(d.endpoints, e)
		named := func(name string) *head { return d.b.series(append([]string{nameLabel, name}, e.labels...)) }
		e.up, e.took, e.returned = named("up"), named("scrape_duration_seconds"), named("scrape_samples_scraped")
	}
	if id >= len(d.endpoints) {
		panic(shortError{})
	}
	return d.endpoints[id]
}

// scrape takes in one scrape.
func (d *decoder) scrape(e *told) {
	at := int64(d.number())
	e.took.add(at, float64(d.number())/1e6)
	if why := d.text(); why != "" {
		e.up.add(at, 0)
		d.gap(e, at)
		e.open(at, why)
		return
	}
	e.up.add(at, 1)
	e.close(at)
	for range d.count() {
		timed := d.bytes(1)[0] == 1
		e.series = append(e.series, toldSeries{head: d.b.series(append(d.texts(), e.labels...)), timed: timed, gone: true})
	}
	of := func(i int) *toldSeries {
		if i >= len(e.series) {
			panic(shortError{})
		}
		return &e.series[i]
	}
	i := 0
	for range d.count() {
		i += d.count()
		s := of(i)
		if s.gone = true; !s.timed {
			d.b.stale(s.head, at)
		}
	}
	next, changed := 0, d.count()
	returned := 0
	same := func(until int) {
		for ; next < until; next++ {
			if s := of(next); !s.gone {
				returned++
				if !s.timed {
					s.add(at, s.value)
				}
			}
		}
	}
	for range changed {
		head := d.number()
		gap := head >> valueBits
		if gap > mostListed {
			panic(shortError{})
		}
		same(next + int(gap))
		s, t := of(next), at
		if head&valueRaw != 0 {
			s.value = math.Float64frombits(binary.LittleEndian.Uint64(d.bytes(8)))
		} else {
			s.value += float64(d.signed())
		}
		if head&valueTimed != 0 {
			s.time += d.signed()
			t = s.time
		}
		s.gone = false
		s.add(t, s.value)
		returned++
		next++
	}
	same(len(e.series))
	e.returned.add(at, float64(returned))
}
