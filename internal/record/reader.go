package record

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// maxLine bounds one line of the history: a message may be long, but a file
// that is no history must not fill the memory.
const maxLine = 16 << 20

// History is what reading a history came to, besides its events.
type History struct {
	Events int
	// Unknown counts lines of kinds that this version does not know.
	Unknown int
	// Cut says that the history ends before its end was written: the program
	// was killed, and what happened in its last 100 ms may be missing.
	Cut bool
}

// ReadHistory hands every event of a recorded run to each, in the order in
// which they were written. A history that a killed run left is read as far as
// it goes; one that is damaged before its end is an error.
func ReadHistory(d Dir, each func(Event) error) (History, error) {
	file, err := os.Open(d.Path(HistoryFile))
	if err != nil {
		return History{}, fmt.Errorf("read history: %w", err)
	}
	defer file.Close()
	h, err := readEvents(file, each)
	if err != nil {
		return h, fmt.Errorf("read %s: %w", d.Path(HistoryFile), err)
	}
	return h, nil
}

func readEvents(compressed io.Reader, each func(Event) error) (History, error) {
	var h History
	cut, err := readLines(compressed, func(line []byte) error {
		e, err := parseLine(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return fmt.Errorf("line %d: %w", h.Events+1, err)
		}
		h.Events++
		if e.Body == nil {
			h.Unknown++
			return nil
		}
		if run, ok := e.Body.(*RunEvent); ok && run.Version > HistoryVersion {
			return fmt.Errorf("format version %d, this program reads up to %d", run.Version, HistoryVersion)
		}
		return each(e)
	})
	h.Cut = cut
	return h, err
}

// readLines hands every whole line of a compressed history to each, with its
// end, and reports whether the history was cut. Each must not keep the line.
func readLines(compressed io.Reader, each func(line []byte) error) (cut bool, err error) {
	zip, err := zstd.NewReader(compressed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return false, err
	}
	defer zip.Close()
	lines := bufio.NewReaderSize(zip, 64<<10)
	var long []byte
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			if len(long) > maxLine {
				return false, fmt.Errorf("line %d is longer than %d bytes", n, maxLine)
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
			// A line without its end is the last write of a killed run.
			return errors.Is(err, io.ErrUnexpectedEOF) || len(line) > 0, nil
		default:
			return false, fmt.Errorf("line %d: %w", n, err)
		}
		if err := each(line); err != nil {
			return false, err
		}
		long = long[:0]
	}
}
