package record

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Window is a stretch of one component of a stream: the requests that were due (closed loop: sent) from
// From to before To, once each has ended or passed its bound. Intended = Sent + Dropped, and Sent = Done
// + all Failed + Lost.
type Window struct {
	Component string         `json:"component,omitempty" parquet:"component,dict"`
	From      Micros         `json:"from" parquet:"from_us"`
	To        Micros         `json:"to" parquet:"to_us"`
	WarmUp    bool           `json:"warmUp,omitempty" parquet:"warm_up"` // the requests do not count for the verdict
	Intended  int            `json:"intended" parquet:"intended"`
	Sent      int            `json:"sent" parquet:"sent"`
	Done      int            `json:"done" parquet:"done"`                 // answered correctly
	Failed    map[string]int `json:"failed,omitempty" parquet:"failed"`   // number of the others that ended, by the kind of failure, such as FailedTimeout
	Late      int            `json:"late,omitempty" parquet:"late"`       // found no place among those under way, open loop
	Dropped   int            `json:"dropped,omitempty" parquet:"dropped"` // of them, given up unsent
	Lost      int            `json:"lost,omitempty" parquet:"lost"`       // their outcome is unknown
	Retried   int            `json:"retried,omitempty" parquet:"retried"` // requests that were sent again
	// Answered counts correct answers between From and To, whenever due, and AnsweredBytes their bytes.
	Answered      int   `json:"answered,omitempty" parquet:"answered"`
	AnsweredBytes int64 `json:"answeredBytes,omitempty" parquet:"answered_bytes"`
	InFlight      int   `json:"inFlight,omitempty" parquet:"in_flight"` // number of requests in flight at To, and Backlog the due ones that had not ended
	Backlog       int   `json:"backlog,omitempty" parquet:"backlog"`
	BytesIn       int64 `json:"bytesIn,omitempty" parquet:"bytes_in"`
	BytesOut      int64 `json:"bytesOut,omitempty" parquet:"bytes_out"`
	// ByPlace and FailedByPlace count done and failed requests of each place, where there are several.
	ByPlace       map[string]int `json:"byPlace,omitempty" parquet:"done_by_place"`
	FailedByPlace map[string]int `json:"failedByPlace,omitempty" parquet:"failed_by_place"`
	// Histograms hold the done requests' times by milestone, in microseconds from the intended start.
	Histograms map[string]Histogram `json:"histograms,omitempty" parquet:"histograms"`
	OwnDelay   Histogram            `json:"ownDelay,omitempty" parquet:"own_delay"` // how late the generator itself sent
}

// FailedTimeout is the kind of failure of a request that was given up at its bound.
const FailedTimeout = "timeout"

// FailedAll counts the requests that failed in any way.
func (w *Window) FailedAll() int {
	n := 0
	for _, k := range w.Failed {
		n += k
	}
	return n
}

// Histogram holds counts of microseconds in HdrHistogram's encoding (V2, compressed, base 64), or "".
type Histogram string

const (
	histogramMost       = time.Hour
	histogramDigits     = 3
	HistogramResolution = 1e-3 // largest relative error of a time in a histogram
)

// NewCounts makes an empty histogram of microseconds to three digits, up to an hour and longer.
func NewCounts() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, histogramMost.Microseconds(), histogramDigits)
}

// Count adds a time to a histogram.
func Count(h *hdrhistogram.Histogram, took Micros) { CountMany(h, took, 1) }

// CountMany counts n of one time.
func CountMany(h *hdrhistogram.Histogram, took Micros, n int64) {
	_ = h.RecordValues(min(max(int64(took), 0), histogramMost.Microseconds()), n) // fails only out of bounds
}

// HistogramOf encodes a histogram; one without counts, or nil, is "".
func HistogramOf(h *hdrhistogram.Histogram) (Histogram, error) {
	if h == nil || h.TotalCount() == 0 {
		return "", nil
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode a histogram: %w", err)
	}
	return Histogram(text), nil
}

// Counts decodes the histogram; that of "" is empty.
func (h Histogram) Counts() (*hdrhistogram.Histogram, error) {
	if h == "" {
		return NewCounts(), nil
	}
	if err := h.shape(); err != nil {
		return nil, fmt.Errorf("decode a histogram: %w", err)
	}
	counts, err := hdrhistogram.Decode([]byte(h))
	if err != nil {
		return nil, fmt.Errorf("decode a histogram: %w", err)
	}
	return counts, nil
}

// shape refuses other histograms than NewCounts makes: a hundred bytes can ask for 48 MB.
func (h Histogram) shape() error {
	// By the encoding, version 2: its own header, and that of what it holds.
	const digitsAt, mostAt = 12, 24
	var own [8]byte
	var held [40]byte
	text := base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(h)))
	_, err := io.ReadFull(text, own[:])
	if err != nil {
		return err
	}
	z, err := zlib.NewReader(text)
	if err == nil {
		_, err = io.ReadFull(z, held[:])
	}
	if err != nil {
		return err
	}
	digits, most := binary.BigEndian.Uint32(held[digitsAt:]), binary.BigEndian.Uint64(held[mostAt:])
	if digits > histogramDigits || most > uint64(histogramMost.Microseconds()) {
		return fmt.Errorf("it has %d digits up to %d µs, and at most %d up to %v are kept", digits, most, histogramDigits, histogramMost)
	}
	return nil
}
