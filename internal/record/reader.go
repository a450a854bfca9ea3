package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const maxLine = 16 << 20 // bound of one line of the history, so that another file does not fill the memory

// History says what reading a history found besides its events.
type History struct {
	Events  int
	Unknown int      // lines of kinds that this version does not know
	Damaged []string // the parts of the file that were changed
	Cut     bool     // the history lacks its end: the program was killed
}

// DamagedError says that a history cannot be read any further. The events before it are right.
type DamagedError struct {
	File   string
	Line   int   // the first that is damaged for certain
	Offset int64 // in bytes of the file: the damage lies before it
	Err    error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged in its first %d bytes, at line %d of its text: %v", e.File, e.Offset, e.Line, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// laterError is the version of a format that this program does not read.
type laterError int

func (e laterError) Error() string {
	return fmt.Sprintf("format version %d, this program reads up to %d", int(e), HistoryVersion)
}

// suspect is the length of text before a damaged place that may be wrong: later text copies a wrong part
// as far as the window of the compression reaches, until it is no longer an event.
const suspect = 512 << 10

// ReadHistory hands every event of a run to each, in order, also of a killed run as far as it goes, and a
// Damaged for each damaged part. A history whose steps have no frames is read to some way before the
// damage; the error is then a *DamagedError.
func ReadHistory(d Dir, each func(Event) error) (History, error) {
	file, err := os.Open(d.Path(HistoryFile))
	if err != nil {
		return History{}, fmt.Errorf("read history: %w", err)
	}
	defer file.Close()
	h, err := readFile(file, each)
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		damaged.File = d.Path(HistoryFile)
		return h, fmt.Errorf("read history: %w", damaged)
	}
	if _, ok := errors.AsType[laterError](err); ok {
		needs := "a later version of plimsoll"
		if by := d.version(); by != "" {
			needs = "plimsoll " + by + ", which wrote it"
		}
		return h, fmt.Errorf("read %s: %w; it needs %s", d.Path(HistoryFile), err, needs)
	}
	if err != nil {
		return h, fmt.Errorf("read %s: %w", d.Path(HistoryFile), err)
	}
	return h, nil
}

// readFile checks the checksums of all frames before it hands out any event.
func readFile(file *os.File, each func(Event) error) (History, error) {
	info, err := file.Stat()
	if err != nil {
		return History{}, err
	}
	frames, err := framesOf(file, info.Size())
	if err != nil {
		return History{}, err
	}
	if len(frames) > 1 && slices.ContainsFunc(frames, func(f frame) bool { return f.state == frameDamaged }) {
		return readFrames(file, frames, each)
	}
	return readEvents(file, verifierOf(frames), each)
}

// readEvents hands out the events of a row of frames, as far as v trusts them.
func readEvents(compressed io.Reader, v verifier, each func(Event) error) (History, error) {
	var h History
	type held struct {
		event Event
		end   int64 // in the text
	}
	var waiting []held
	lines := 0
	hand := func(before int64) error { // the events that end before a place of the text
		n := 0
		for ; n < len(waiting) && waiting[n].end <= before; n++ {
			e := waiting[n].event
			h.Events++
			if e.Body == nil {
				h.Unknown++
				continue
			}
			if err := each(e); err != nil {
				return err
			}
		}
		waiting = waiting[n:]
		return nil
	}
	file := &counted{Reader: compressed}
	damaged := func(err error) error { return &DamagedError{Line: lines + 1, Offset: file.n, Err: err} }
	var other error // no damage
	cut, err := readLines(file, func(line []byte) error {
		e, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return err
		}
		lines++
		if run, ok := e.Body.(*RunEvent); ok && run.Version > HistoryVersion {
			other = laterError(run.Version)
			return other
		}
		if other = v.line(e, len(line)); other == nil && v.within != nil {
			other = v.within.add(e, len(line))
		}
		if other != nil {
			return other
		}
		waiting = append(waiting, held{e, v.text})
		other = hand(max(v.text-suspect, v.verified))
		return other
	})
	switch {
	case errors.Is(other, errUnverified):
		cut = true
	case other != nil:
		return h, other
	case v.framed && (err != nil || cut && !file.ended):
		if err := hand(v.verified); err != nil {
			return h, err
		}
		h.Damaged = append(h.Damaged, v.rest.String())
		return h, each(Event{Body: &v.rest})
	case errors.Is(err, zstd.ErrCRCMismatch):
		return h, fmt.Errorf("its checksum does not match, and the damaged part cannot be found: %w", err)
	case err != nil:
		return h, damaged(err)
	case cut && !file.ended:
		return h, damaged(io.ErrUnexpectedEOF) // a part of it ends too early, and not the file
	}
	h.Cut = cut
	return h, hand(v.text)
}

type counted struct {
	io.Reader
	n     int64
	ended bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.ended = c.ended || err == io.EOF
	return n, err
}

func newDecoder(compressed io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
}

// readLines hands whole lines to each, which must not keep them, and reports whether the end is cut.
func readLines(compressed io.Reader, each func(line []byte) error) (cut bool, err error) {
	zip, err := newDecoder(compressed)
	if err != nil {
		return false, err
	}
	defer zip.Close()
	lines := bufio.NewReaderSize(zip, 64<<10)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			if len(long) > maxLine {
				return false, fmt.Errorf("it is longer than %d bytes", maxLine)
			}
			line, err = lines.ReadSlice('\n')
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return errors.Is(err, io.ErrUnexpectedEOF) || len(line) > 0, nil // the last write of a killed run
		default:
			return false, err
		}
		if err := each(line); err != nil {
			return false, err
		}
		long = long[:0]
	}
}
