// Package smallfiles does operations on many small files in its own process, and reports as fio.
package smallfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// Component is the name of the process among the program's hidden commands.
const Component = "small-files"

// Spec describes the work of one process in one directory.
type Spec struct {
	Dir     string `json:"dir"`
	Workers int    `json:"workers"`
	// Files counts the files of each worker, in its own directory, and Size their bytes.
	Files int           `json:"files"`
	Size  int64         `json:"size"`
	Rate  float64       `json:"rate"`  // number of operations per second in all; 0 is as many as possible
	Fsync bool          `json:"fsync"` // syncs each file before it counts as created
	Every time.Duration `json:"every"` // interval of reports
	Seed  uint64        `json:"seed"`
}

// Operations lists the operations on files, in their order.
func Operations() []string { return []string{fio.Create, fio.Stat, fio.Read, fio.Delete} }

const exact = 10 // number of leading bits kept of a latency: 1 part in 1024

// bin returns the middle of a latency's bin, in nanoseconds.
func bin(took time.Duration) int64 {
	ns := max(took.Nanoseconds(), 0)
	shift := max(bits.Len64(uint64(ns))-exact, 0)
	return ns>>shift<<shift + 1<<shift/2
}

type state struct {
	Spec
	now   func() time.Time
	mu    sync.Mutex
	sides map[string]*side
	errno int
	over  atomic.Bool
}

type side struct {
	Bytes   int64 `json:"io_bytes"`
	Latency struct {
		Bins map[string]uint64 `json:"bins"`
	} `json:"lat_ns"`
	bins fio.Bins
}

// Run does the Spec on in until an operation fails or the process is killed, with fio's reports.
func Run(now func() time.Time, in io.Reader, out io.Writer) error {
	s := &state{now: now, sides: make(map[string]*side)}
	if err := json.NewDecoder(in).Decode(&s.Spec); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	if s.Workers < 1 || s.Files < 1 || s.Size < 0 || s.Every <= 0 {
		return fmt.Errorf("nothing can be done with %+v", s.Spec)
	}
	for _, name := range Operations() {
		s.sides[name] = &side{bins: make(fio.Bins)}
	}
	workers := make([]*worker, s.Workers)
	for i := range workers {
		workers[i] = &worker{state: s, n: i, dir: filepath.Join(s.Dir, "worker-"+strconv.Itoa(i+1)), data: make([]byte, s.Size), rng: rand.New(rand.NewPCG(s.Seed, uint64(i)))}
	}
	failed := make(chan error, 2*s.Workers)
	var prepared sync.WaitGroup
	for _, w := range workers {
		prepared.Go(func() {
			if err := w.prepare(); err != nil {
				failed <- err
			}
		})
	}
	prepared.Wait()
	begin := now()
	var working sync.WaitGroup
	defer working.Wait()
	defer s.over.Store(true)
	if len(failed) == 0 {
		for _, w := range workers {
			working.Go(func() {
				if err := w.work(begin); err != nil {
					failed <- err
				}
			})
		}
	}
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case err := <-failed:
			s.fail(err)
			return errors.Join(err, s.report(out, now().Sub(begin)))
		case <-tick.C:
			if err := s.report(out, now().Sub(begin)); err != nil {
				return err
			}
		}
	}
}

func (s *state) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errno syscall.Errno
	if s.errno = int(syscall.EIO); errors.As(err, &errno) {
		s.errno = int(errno)
	}
}

func (s *state) report(out io.Writer, ran time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := map[string]any{"jobname": Component, "job_runtime": max(ran.Milliseconds(), 1), "error": s.errno}
	for name, x := range s.sides {
		x.Latency.Bins = make(map[string]uint64, len(x.bins))
		for at, n := range x.bins {
			x.Latency.Bins[strconv.FormatInt(at, 10)] = n
		}
		job[name] = x
	}
	text, err := json.Marshal([]any{job})
	if err == nil {
		_, err = fmt.Fprintf(out, "{\n\"jobs\": %s\n}\n", text)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// worker does one operation at a time in its own directory.
type worker struct {
	*state
	n             int
	dir           string
	data          []byte
	rng           *rand.Rand
	first, beyond int // of its files
}

func (w *worker) file(n int) string { return filepath.Join(w.dir, strconv.Itoa(n)) }

func (w *worker) any() string { return w.file(w.first + w.rng.IntN(w.beyond-w.first)) }

// prepare begins from empty: an earlier step may have left files.
func (w *worker) prepare() error {
	if err := os.RemoveAll(w.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	for range w.Files {
		if _, err := w.do(fio.Create); err != nil {
			return err
		}
	}
	return nil
}

// work does the operations in turn until one fails or everything is over.
func (w *worker) work(begin time.Time) error {
	for n := 0; !w.over.Load(); n++ {
		name := Operations()[n%len(Operations())]
		from := w.now()
		if w.Rate > 0 {
			due := begin.Add(time.Duration((float64(n*w.Workers) + float64(w.n)) / w.Rate * float64(time.Second)))
			if wait := due.Sub(from); wait > 0 {
				time.Sleep(wait)
			}
			from = due
		}
		bytes, err := w.do(name)
		if err != nil {
			return fmt.Errorf("%s a file: %w", name, err)
		}
		at := bin(w.now().Sub(from))
		w.mu.Lock()
		x := w.sides[name]
		x.bins[at]++
		x.Bytes += bytes
		w.mu.Unlock()
	}
	return nil
}

// do does one operation, and returns the bytes of data that it moved.
func (w *worker) do(name string) (int64, error) {
	switch name {
	case fio.Create:
		w.beyond++
		return w.Size, w.create(w.file(w.beyond - 1))
	case fio.Stat:
		_, err := os.Stat(w.any())
		return 0, err
	case fio.Read:
		text, err := os.ReadFile(w.any())
		if err == nil && int64(len(text)) != w.Size {
			err = fmt.Errorf("it has %d of %d bytes: %w", len(text), w.Size, syscall.EIO)
		}
		return w.Size, err
	}
	w.first++
	return 0, os.Remove(w.file(w.first - 1))
}

func (w *worker) create(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(w.data)
	if err == nil && w.Fsync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
