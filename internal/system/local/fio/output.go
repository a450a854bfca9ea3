package fio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// Report holds the work of one fio since its start, over all of its jobs.
type Report struct {
	Ran   time.Duration   // since the start
	Sides map[string]Side // holds the work by the names below
	Errno int             // first error of a job, 0 for none
}

// Side holds the work in one direction.
type Side struct {
	Bytes int64
	Bins  Bins // counts the times from submission to completion
}

// Names of the sides of a report. The last three are not fio's.
const (
	Read   = "read"
	Write  = "write"
	Sync   = "sync"
	Create = "create"
	Stat   = "stat"
	Delete = "delete"
)

// SidesInOrder returns all names of sides.
func SidesInOrder() []string { return []string{Read, Write, Sync, Create, Stat, Delete} }

// Complete is the milestone of an IO.
const Complete = "Complete"

// Operations returns the kind of IOs, whose places, further metrics and bounds are the target's. Its readings are of
// the sources fio and throughput.
func Operations() record.ObjectKind {
	return record.ObjectKind{
		Object:     record.Noun{One: "IO", Many: "IOs"},
		Milestones: []record.Milestone{{Name: Complete, Owner: "storage"}},
		There:      Complete,
		Generator:  "fio",
		Measures:   []record.Measure{record.RequestErrors(0)},
		Metrics: []record.Metric{
			record.AchievedRate("IOs completed per second (IOPS)"),
			{Name: "throughput", Unit: "B/s", Help: "bytes read and written per second", LessIsWorse: true, Of: record.Fold{Source: "throughput", Value: "value", Fold: record.FoldLast}},
		},
		Bounds: []record.Bound{{Name: "fio", What: "the processor of fio", Source: "fio", Value: "busiest", Full: 0.9, Generator: true}},
	}
}

// document holds the used parts of fio's json+ output.
type document struct {
	Jobs   []jobOutput `json:"jobs"`
	Client []jobOutput `json:"client_stats"`
}

type jobOutput struct {
	Name    string     `json:"jobname"`
	Error   int        `json:"error"`
	Runtime int64      `json:"job_runtime"` // milliseconds
	Read    sideOutput `json:"read"`
	Write   sideOutput `json:"write"`
	Sync    sideOutput `json:"sync"`
	Create  sideOutput `json:"create"`
	Stat    sideOutput `json:"stat"`
	Delete  sideOutput `json:"delete"`
}

type sideOutput struct {
	Bytes   int64 `json:"io_bytes"`
	Latency struct {
		Bins map[string]uint64 `json:"bins"`
	} `json:"lat_ns"`
}

// allClients names fio's entry for all clients, whose sums have been wrong.
const allClients = "All clients"

// ParseReport reads a document of fio's json+ output, merges the jobs' bins, and skips fio's own sum.
func ParseReport(text []byte) (Report, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return Report{}, fmt.Errorf("read the output of fio: %w", err)
	}
	r := Report{Sides: make(map[string]Side)}
	jobs := 0
	for _, j := range append(d.Jobs, d.Client...) {
		if j.Name == allClients {
			continue
		}
		jobs++
		if r.Errno == 0 {
			r.Errno = j.Error
		}
		if j.Runtime < 0 || j.Runtime > math.MaxInt64/int64(time.Millisecond) {
			return r, fmt.Errorf("read the output of fio: a job ran for %d ms", j.Runtime)
		}
		r.Ran = max(r.Ran, time.Duration(j.Runtime)*time.Millisecond)
		for name, from := range map[string]sideOutput{Read: j.Read, Write: j.Write, Sync: j.Sync, Create: j.Create, Stat: j.Stat, Delete: j.Delete} {
			to := r.Sides[name]
			if to.Bins == nil {
				to.Bins = make(Bins, len(from.Latency.Bins))
			}
			to.Bytes += from.Bytes
			for key, n := range from.Latency.Bins {
				at, err := strconv.ParseInt(key, 10, 64)
				if err != nil || at < 0 {
					return r, fmt.Errorf("read the output of fio: %q is not a bin of a histogram", key)
				}
				to.Bins[at] += n
			}
			r.Sides[name] = to
		}
	}
	if jobs == 0 {
		return r, errors.New("read the output of fio: it has no job")
	}
	return r, nil
}

const mostDocument = 64 << 20 // bounds a document

// ReadReports reads a fio's output until its end, so that fio does not wait: documents to report, other
// lines to line. It returns the first error.
func ReadReports(from io.Reader, report func(Report), line func(string)) error {
	lines := bufio.NewReader(from)
	var text bytes.Buffer
	var failed error
	within := false
	for {
		piece, err := lines.ReadSlice('\n')
		whole := strings.TrimRight(string(piece), "\r\n")
		switch {
		case !within && whole == "{":
			within = true
			text.Reset()
			text.Write(piece)
		case within && failed == nil:
			if text.Len() > mostDocument {
				failed = errors.New("read the output of fio: a document has no end")
				continue
			}
			text.Write(piece)
			if whole == "}" {
				within = false
				r, err := ParseReport(text.Bytes())
				if err != nil {
					failed = err
					continue
				}
				report(r)
			}
		case !within && whole != "":
			line(whole)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			switch {
			case failed != nil:
				return failed
			case !errors.Is(err, io.EOF):
				return fmt.Errorf("read the output of fio: %w", err)
			case within:
				return errors.New("read the output of fio: it ends within a document")
			}
			return nil
		}
	}
}

// Bins counts latencies by the middle of fio's bins, in ns, which are the same for all clients.
type Bins map[int64]uint64

// Resolution bounds a latency's distance from its bin: fio divides powers of two into 64 bins.
const Resolution = 1.0 / 128

// N returns the sum of the counts.
func (b Bins) N() uint64 {
	n := uint64(0)
	for _, k := range b {
		n += k
	}
	return n
}

// Add adds other counts.
func (b Bins) Add(other Bins) {
	for at, n := range other {
		b[at] += n
	}
}

// Since returns the increase since before. A count that fell, which is of another client, is 0.
func (b Bins) Since(before Bins) Bins {
	d := make(Bins)
	for at, n := range b {
		if was := before[at]; n > was {
			d[at] = n - was
		}
	}
	return d
}

// Quantile returns the bin of the q-th part, 0 to 1, in ns, as fio's percentiles do; 0 without any.
func (b Bins) Quantile(q float64) int64 {
	all, sum := float64(b.N()), uint64(0)
	for _, at := range slices.Sorted(maps.Keys(b)) {
		if sum += b[at]; float64(sum) >= q*all {
			return at
		}
	}
	return 0
}

// Count adds the bins to a histogram of microseconds.
func (b Bins) Count(h *hdrhistogram.Histogram) {
	for at, n := range b {
		// The value is within the bounds, so there is no error.
		_ = h.RecordValues(min(max((at+500)/1000, 0), h.HighestTrackableValue()), int64(min(n, 1<<62)))
	}
}

// Histogram returns the bins as a record keeps them.
func (b Bins) Histogram() (record.Histogram, error) {
	h := record.NewCounts()
	b.Count(h)
	return record.HistogramOf(h)
}
