package record

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll.dev/plimsoll/internal/text/redact"
)

// FlushInterval is the time between two flushes to the operating system: SIGKILL can cost as much.
const FlushInterval = 100 * time.Millisecond

// Writer appends events to a run's history as they happen, and masks secrets.
type Writer struct {
	follow  func(Event)
	secrets *redact.Secrets

	mu     sync.Mutex
	file   *os.File
	zip    *zstd.Encoder
	line   []byte
	dirty  bool
	err    error
	failed chan struct{}
	closed bool

	stop chan struct{}
	done chan struct{}
}

// NewWriter starts a run's history. Follow may be nil, gets each event as written, and must not write.
func NewWriter(d Dir, secrets *redact.Secrets, follow func(Event)) (*Writer, error) {
	file, err := os.OpenFile(d.Path(HistoryFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, fmt.Errorf("start history: %w", err)
	}
	zip, err := newEncoder(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("start history: %w", err)
	}
	return newWriter(file, zip, secrets, follow), nil
}

// newEncoder uses one thread and a small window, because it runs beside the measured load.
func newEncoder(file *os.File) (*zstd.Encoder, error) {
	return zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
}

func newWriter(file *os.File, zip *zstd.Encoder, secrets *redact.Secrets, follow func(Event)) *Writer {
	w := &Writer{follow: follow, secrets: secrets, file: file, zip: zip,
		failed: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	go w.flushLoop()
	return w
}

// Append writes an event. After the first failure it drops events; see Failed and Err.
func (w *Writer) Append(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.err != nil {
		return
	}
	if log, ok := e.Body.(*Log); ok {
		log.Lines, log.Masked = redact.Lines(log.Lines)
	}
	line, err := appendLine(w.line[:0], e)
	w.line = line
	if names, ok := e.Body.(interface{ onlyNames() bool }); err == nil && (!ok || !names.onlyNames() || w.secrets.Holds(line)) {
		if masked := w.secrets.JSON(line); &masked[0] != &line[0] {
			line = masked
			e, err = parseLine(line)
		}
	}
	if err == nil {
		_, err = w.zip.Write(line)
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.dirty = true
	if endsFrame(e) {
		w.endFrame()
	}
	if w.follow != nil {
		w.follow(e)
	}
}

// endFrame ends the frame with its checksum, and begins another: readers see one text.
func (w *Writer) endFrame() {
	w.dirty = false
	if err := w.zip.Close(); err != nil {
		w.fail(err)
		return
	}
	w.zip.Reset(w.file)
}

func (w *Writer) fail(err error) {
	w.err = fmt.Errorf("write history: %w", err)
	close(w.failed)
}

// Failed closes when the history cannot be written any more: a run must not go on without a record.
func (w *Writer) Failed() <-chan struct{} { return w.failed }

// Err returns the first failure, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) flushLoop() {
	defer close(w.done)
	tick := time.NewTicker(FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.Flush()
		case <-w.stop:
			return
		}
	}
}

// Flush hands all events to the operating system at once: they survive the end of this process.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dirty || w.err != nil || w.closed {
		return
	}
	w.dirty = false
	if err := w.zip.Flush(); err != nil {
		w.fail(err)
	}
}

// Close ends the history and returns the first failure to write it.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return w.err
	}
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	<-w.done
	err := cmp.Or(w.zip.Close(), w.file.Sync(), w.file.Close())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.err == nil {
		w.fail(err)
	}
	return w.err
}
