package chart

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// streamCourse has for each window its due requests with quantiles, and the requests done in it.
type streamCourse struct {
	Step     int              `json:"step"`
	At       []float64        `json:"at"`     // the begin of each window, in seconds since the start of the run
	For      []float64        `json:"for"`    // its length, in seconds
	WarmUp   int              `json:"warmUp"` // the first windows, which are not judged
	Intended []int            `json:"intended"`
	Done     []int            `json:"done"`
	Late     []int            `json:"late"`
	Dropped  []int            `json:"dropped"`
	Lost     []int            `json:"lost"`
	InFlight []int            `json:"inFlight"`
	Backlog  []int            `json:"backlog"`
	Failed   map[string][]int `json:"failed"` // by the kind of failure
	// P50 and P99 are latencies of what is there, in seconds; null where no request was done.
	P50     []*float64 `json:"p50"`
	P99     []*float64 `json:"p99"`
	Sampled []sampled  `json:"sampled,omitempty"` // figures that parts of the target reported
}

// sampled is a chart of one step: lines over the times of samples, in seconds since the run's start.
type sampled struct {
	Title string       `json:"title"`
	At    []float64    `json:"at"`
	Lines []sampleLine `json:"lines"`
}

type sampleLine struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"` // null for a sample without the value
}

// sampledOf draws the charts of a step's samples between two moments, without lines of zeros.
func sampledOf(kind record.ObjectKind, samples []record.Event, from, to float64) []sampled {
	var list []sampled
	for _, c := range kind.Charts {
		one := sampled{Title: c.Title}
		lines := make([]sampleLine, len(c.Values))
		drawn := make([]bool, len(c.Values))
		for _, e := range samples {
			r := e.Body.(*record.Reading)
			if t := e.T.Seconds(); r.Source != c.Source || t < from || t > to {
				continue
			}
			one.At = append(one.At, e.T.Seconds())
			for i, v := range c.Values {
				var value *float64
				if x, ok := r.Values[v.Key]; ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
					value = new(digits(x))
					drawn[i] = drawn[i] || x != 0
				}
				lines[i].Name, lines[i].Values = v.Name, append(lines[i].Values, value)
			}
		}
		for i, l := range lines {
			if drawn[i] {
				one.Lines = append(one.Lines, l)
			}
		}
		if len(one.Lines) > 0 {
			list = append(list, one)
		}
	}
	return list
}

// digits rounds to four significant digits, as many as a chart shows.
func digits(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64) // of what was just written
	return y
}

func (d *Data) streams(in Recorded) error {
	for i, s := range in.Result.Steps {
		windows := in.Windows[s.ID]
		if !s.Streams() || len(windows) == 0 {
			continue
		}
		course, err := courseOf(s.ID, windows, d.Arrived)
		if err != nil {
			return err
		}
		last := len(course.At) - 1
		course.Sampled = sampledOf(in.Result.ObjectKind, in.Samples[s.ID], course.At[0], course.At[last]+course.For[last])
		d.Streams = append(d.Streams, course)
		samples := objects.Stream(windows).Samples(d.Arrived)
		for _, milestone := range slices.Sorted(maps.Keys(samples)) {
			if d.Distribution[milestone] == nil {
				d.Distribution[milestone] = slices.Repeat([]int{-1}, len(in.Result.Steps))
			}
			d.Distribution[milestone][i] = len(d.Curves)
			d.Curves = append(d.Curves, tailedCurve(samples[milestone]))
		}
	}
	return nil
}

func courseOf(step int, windows []*record.Window, there string) (streamCourse, error) {
	c := streamCourse{Step: step, Failed: make(map[string][]int)}
	byStart := make(map[record.Micros][]*record.Window)
	for _, w := range windows {
		byStart[w.From] = append(byStart[w.From], w)
	}
	starts := slices.Sorted(maps.Keys(byStart))
	for n, from := range starts {
		var sum record.Window
		failed := make(map[string]int)
		counts := record.NewCounts()
		for _, w := range byStart[from] {
			sum.To, sum.WarmUp = w.To, w.WarmUp
			sum.Intended, sum.Done, sum.Late, sum.Dropped = sum.Intended+w.Intended, sum.Done+w.Answered, sum.Late+w.Late, sum.Dropped+w.Dropped
			sum.Lost, sum.InFlight, sum.Backlog = sum.Lost+w.Lost, sum.InFlight+w.InFlight, max(sum.Backlog, w.Backlog) // each has that of all
			for kind, k := range w.Failed {
				failed[kind] += k
			}
			own, err := w.Histograms[there].Counts()
			if err != nil {
				return c, err
			}
			counts.Merge(own)
		}
		if sum.WarmUp {
			c.WarmUp++
		}
		c.At, c.For = append(c.At, from.Seconds()), append(c.For, (sum.To-from).Seconds())
		c.Intended, c.Done, c.Late = append(c.Intended, sum.Intended), append(c.Done, sum.Done), append(c.Late, sum.Late)
		c.Dropped, c.Lost = append(c.Dropped, sum.Dropped), append(c.Lost, sum.Lost)
		c.InFlight, c.Backlog = append(c.InFlight, sum.InFlight), append(c.Backlog, sum.Backlog)
		for kind, k := range failed {
			if c.Failed[kind] == nil {
				c.Failed[kind] = make([]int, len(starts))
			}
			c.Failed[kind][n] = k
		}
		var p50, p99 *float64
		if counts.TotalCount() > 0 {
			p50, p99 = new(float64(counts.ValueAtPercentile(50))/1e6), new(float64(counts.ValueAtPercentile(99))/1e6)
		}
		c.P50, c.P99 = append(c.P50, p50), append(c.P99, p99)
	}
	return c, nil
}

// tailedCurve draws a distribution through its quantiles, close together in the tail.
func tailedCurve(s stats.Sample) curve {
	c := curve{N: s.N()}
	x, y := []int64{}, []int64{}
	add := func(rank int) {
		if n := len(y); rank < 1 || rank > s.N()-s.Censored() || n > 0 && y[n-1] >= int64(rank) {
			return
		}
		x, y = append(x, int64(math.Round(1e6*s.Quantile(float64(rank)/float64(s.N()))))), append(y, int64(rank))
	}
	add(1)
	for i := 1; i < 200; i++ {
		add(s.N() * i / 200)
	}
	for beyond := float64(s.N()) / 200; beyond >= 1; beyond /= 1.1 {
		add(s.N() - int(beyond))
	}
	add(s.N() - s.Censored())
	c.X, c.Y = differences(x), differences(y)
	return c
}
