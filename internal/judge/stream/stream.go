package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

const batchCount = 20 // number of batches of a hold, whose differences give the intervals of quantiles

// Stream folds the windows of one step's stream. Its memory grows by a few counts each.
type Stream struct {
	Windows  []Window
	WarmUp   int                   // requests that do not count for the verdict
	Account  result.StreamRequests // of the others
	Recorded []*record.Request     // single requests on record
	Trials   []*record.Trial       // after the hold, with fewer places and with as many
	Err      error                 // a histogram that could not be read

	// By [Stream.FindStalls]: stalls, and a closed loop's corrected distributions by milestone, or nil.
	Stood     []Stall
	Corrected map[string]stats.Sample

	hold    record.Micros
	began   bool          // with the first judged window
	first   record.Micros // its begin
	batches map[seriesOf]*[batchCount]*hdrhistogram.Histogram
	sums    map[string]*hdrhistogram.Histogram // of all batches, by milestone
	delay   *hdrhistogram.Histogram
	bounds  []slo.SLO // each window counts requests beyond them
}

type seriesOf struct{ milestone, component string }

// Window holds the counts of one window.
type Window struct {
	From, To                              record.Micros
	WarmUp                                bool
	Intended, Done, Failed, Late, Dropped int
	Answered, Retried                     int
	AnsweredBytes                         int64
	InFlight, Backlog                     int
	ByPlace, FailedByPlace                map[string]int
	over                                  []int // done requests beyond each bound
	timeouts, refused                     int   // failed requests, by their timeout or otherwise
	histograms                            map[string]record.Histogram
}

// New begins a step's stream with a judged hold. Bounds are objectives on latencies.
func New(hold record.Micros, bounds []slo.SLO) *Stream {
	return &Stream{
		hold: hold, Account: result.StreamRequests{Failed: make(map[string]int)},
		batches: make(map[seriesOf]*[batchCount]*hdrhistogram.Histogram), delay: record.NewCounts(), bounds: bounds,
		sums: make(map[string]*hdrhistogram.Histogram),
	}
}

// Add takes in a window.
func (s *Stream) Add(w *record.Window) {
	counts := Window{
		From: w.From, To: w.To, WarmUp: w.WarmUp, Intended: w.Intended, Done: w.Done, Failed: w.FailedAll(), Late: w.Late, Dropped: w.Dropped,
		Answered: w.Answered, AnsweredBytes: w.AnsweredBytes, Retried: w.Retried, InFlight: w.InFlight, Backlog: w.Backlog, over: make([]int, len(s.bounds)),
		ByPlace: w.ByPlace, FailedByPlace: w.FailedByPlace, timeouts: w.Failed[record.FailedTimeout], histograms: w.Histograms,
	}
	counts.refused = counts.Failed - counts.timeouts
	defer func() { s.Windows = append(s.Windows, counts) }()
	if w.WarmUp {
		s.WarmUp += w.Intended
		return
	}
	a := &s.Account
	a.Intended, a.Sent, a.Done = a.Intended+w.Intended, a.Sent+w.Sent, a.Done+w.Done
	a.Late, a.Dropped, a.Lost = a.Late+w.Late, a.Dropped+w.Dropped, a.Lost+w.Lost
	a.Retried += w.Retried
	for kind, n := range w.Failed {
		a.Failed[kind] += n
	}
	a.ByPlace, a.FailedByPlace = sumOf(a.ByPlace, w.ByPlace), sumOf(a.FailedByPlace, w.FailedByPlace)
	if !s.began {
		s.began, s.first = true, w.From
	}
	if delay, err := w.OwnDelay.Counts(); err != nil {
		s.Err = cmp.Or(s.Err, err)
	} else {
		s.delay.Merge(delay)
	}
	batch := s.batch(w.From)
	for name, h := range w.Histograms {
		series := seriesOf{name, w.Component}
		list, ok := s.batches[series]
		if !ok {
			list = new([batchCount]*hdrhistogram.Histogram)
			s.batches[series] = list
		}
		if list[batch] == nil {
			list[batch] = record.NewCounts()
		}
		own, err := h.Counts()
		if err != nil {
			s.Err = cmp.Or(s.Err, err)
			continue
		}
		list[batch].Merge(own)
		if s.sums[name] == nil {
			s.sums[name] = record.NewCounts()
		}
		s.sums[name].Merge(own)
		for i, bound := range s.bounds {
			if bound.Milestone == name {
				x := sampleOf(own, 0)
				counts.over[i] += x.N() - x.AtMost(bound.Within.Seconds())
			}
		}
	}
}

func sampleOf(h *hdrhistogram.Histogram, censored int) stats.Sample {
	if h == nil {
		return stats.Counted(nil, censored, record.HistogramResolution)
	}
	var list []stats.Count
	for _, bar := range h.Distribution() {
		if bar.Count > 0 {
			list = append(list, stats.Count{Value: float64(bar.To) / 1e6, N: int(bar.Count)})
		}
	}
	return stats.Counted(list, censored, record.HistogramResolution)
}

// Live sums up the stream so far: done requests, and quantiles of latency in seconds, nil if not done.
func (s *Stream) Live(there string) (done int, p50, p99 *float64) {
	quantile := func(q float64) *float64 {
		h := s.sums[there]
		if h == nil || q*float64(s.Account.Intended) > float64(h.TotalCount()) {
			return nil
		}
		return result.Finite(float64(h.ValueAtPercentile(100*q*float64(s.Account.Intended)/float64(h.TotalCount()))) / 1e6)
	}
	return s.Account.Done, quantile(0.5), quantile(0.99)
}

// Samples returns the judged requests' distributions by milestone; the unfinished ones count in there.
func (s *Stream) Samples(there string) map[string]stats.Sample {
	samples := make(map[string]stats.Sample)
	for series := range s.batches {
		if _, ok := samples[series.milestone]; !ok {
			samples[series.milestone] = s.sample(series.milestone, func(seriesOf) bool { return true }, there)
		}
	}
	if _, ok := samples[there]; !ok && s.Account.Intended > 0 {
		samples[there] = s.sample(there, func(seriesOf) bool { return true }, there)
	}
	return samples
}

func (s *Stream) sample(milestone string, chosen func(seriesOf) bool, there string) stats.Sample {
	return s.sampleWith(milestone, chosen, there, new([batchCount]unsentBatch))
}

// sampleWith adds requests that were not sent.
func (s *Stream) sampleWith(milestone string, chosen func(seriesOf) bool, there string, added *[batchCount]unsentBatch) stats.Sample {
	var batches []stats.Sample
	var missing [batchCount]int
	if milestone == there {
		for _, w := range s.Windows {
			if !w.WarmUp {
				missing[s.batch(w.From)] += w.Intended - w.Done
			}
		}
	}
	for i := range batchCount {
		sum := record.NewCounts()
		for series, list := range s.batches {
			if series.milestone == milestone && chosen(series) && list[i] != nil {
				sum.Merge(list[i])
			}
		}
		if added[i].counts != nil {
			sum.Merge(added[i].counts)
		}
		if x := sampleOf(sum, missing[i]+added[i].censored); x.N() > 0 {
			batches = append(batches, x)
		}
	}
	return stats.Batched(batches...)
}

// batch returns the batch of requests that were due at a time; a damaged record may have earlier ones.
func (s *Stream) batch(t record.Micros) int {
	return int(min(max((t-s.first)*batchCount/max(s.hold, 1), 0), batchCount-1))
}

// components returns the components with distributions, where there are several.
func (s *Stream) components() []string {
	set := make(map[string]bool)
	for series := range s.batches {
		set[series.component] = true
	}
	if len(set) < 2 {
		return nil
	}
	return slices.Sorted(maps.Keys(set))
}

// ByComponent returns distributions for a comparison: of each milestone over all, and by component.
func (s *Stream) ByComponent(there string, milestones []string) []compare.MilestoneSample {
	var list []compare.MilestoneSample
	all := s.Samples(there)
	for _, name := range milestones {
		x, ok := all[name]
		if !ok {
			continue
		}
		list = append(list, compare.MilestoneSample{Milestone: name, Sample: x})
		for _, c := range s.components() {
			list = append(list, compare.MilestoneSample{Milestone: name, Component: c, Sample: s.sample(name, func(x seriesOf) bool { return x.component == c }, "")})
		}
	}
	return list
}

const recordedShown = 10 // bound of the slowest and the failed requests in a result; the history has all

// Shown returns the single requests for a result: the longest done and failed ones.
func (s *Stream) Shown(spec *result.Spec) []result.RecordedRequest {
	slices.SortStableFunc(s.Recorded, func(a, b *record.Request) int { return cmp.Compare(b.Ended-b.Intended, a.Ended-a.Intended) })
	var lists [2][]result.RecordedRequest
	for _, x := range s.Recorded {
		list := &lists[0]
		if x.Failed != "" {
			list = &lists[1]
		}
		if len(*list) < recordedShown {
			*list = append(*list, result.RecordedRequest{
				Due: spec.Wall(x.Intended), Late: (x.Sent - x.Intended).Seconds(), Seconds: (x.Ended - x.Intended).Seconds(),
				Place: x.Place, Status: x.Status, Failed: x.Failed, Retried: x.Retried, Bytes: x.BytesIn,
			})
		}
	}
	return slices.Concat(lists[0], lists[1])
}

// Answered counts the requests answered in the hold, whenever due, and the bytes of the answers.
func (s *Stream) Answered() (n int, bytes int64) {
	for _, w := range s.Windows {
		if !w.WarmUp {
			n, bytes = n+w.Answered, bytes+w.AnsweredBytes
		}
	}
	return n, bytes
}

// Places says whether more places in flight would have raised the rate, by a trial after the hold.
type Places string

// The findings of a trial.
const (
	PlacesUnknown Places = ""
	PlacesEnough  Places = "enough" // the target answers at the rate of the schedule: they waited at times only
	PlacesUseless Places = "no use" // the target answers at a lower rate, and with fewer places at the same
	PlacesTooFew  Places = "too few"
)

const (
	fullRate   = 0.98 // of the schedule's rate, which counts as all of it
	usefulGain = 0.1  // least gain of a third more places, which could raise the rate by a third
)

// Tried returns the finding of the trial after the hold, with its rates; "" without one.
func (s *Stream) Tried() (found Places, says string) {
	if len(s.Trials) != 2 || s.hold <= 0 {
		return PlacesUnknown, ""
	}
	rateOf := func(x *record.Trial) float64 { return float64(x.Answered) / x.Seconds }
	fewer, all := rateOf(s.Trials[0]), rateOf(s.Trials[1])
	says = fmt.Sprintf("with %d requests in flight %s a second were answered, and %s with %d", s.Trials[0].Places, number.Text(fewer, 4), number.Text(all, 4), s.Trials[1].Places)
	switch {
	case max(fewer, all) >= fullRate*float64(s.Account.Intended)/s.hold.Seconds():
		return PlacesEnough, says
	case all > (1+usefulGain)*fewer:
		return PlacesTooFew, says + ": more places would raise the rate, so allow the load more at once"
	}
	return PlacesUseless, says + ": more places would not raise the rate"
}

// OwnBound says that requests waited for a place among those that the load allows in flight, where more
// places would have kept each objective: those in flight took no longer than it allows, on average
// (Little's law), and a trial, if there was one, found that more raise the rate. It returns "" where
// fewer than half waited and there was no trial, because then the bound was reached only when the target
// was slow; where the target was too slow for the requests in flight already; and where their number is
// unknown.
func (s *Stream) OwnBound(a *result.Arrivals, goal slo.Goal, open bool) string {
	tried, says := s.Tried()
	if tried == PlacesUnknown && 2*a.Late < a.Judged || tried == PlacesEnough || tried == PlacesUseless {
		return ""
	}
	inFlight, windows := 0, 0
	for _, w := range s.Windows {
		if !w.WarmUp {
			inFlight, windows = inFlight+w.InFlight, windows+1
		}
	}
	done, _ := s.Answered()
	if inFlight == 0 || done == 0 {
		return ""
	}
	mean := float64(inFlight) / float64(windows)
	took := mean * s.hold.Seconds() / float64(done)
	for _, x := range goal.SLOs {
		if x.Within > 0 && (x.Op == slo.Less || x.Op == slo.LessEqual) && took > x.Within.Seconds() {
			return ""
		}
	}
	what := fmt.Sprintf("the generator reached its own limit of requests in flight, which says nothing about the target: %d of %d arrivals waited for a place among %.0f, each of which took %s",
		a.Late, a.Judged, mean, result.DurationText(took, 0))
	if says != "" {
		what += "; " + says
	}
	return what
}

// Reasons returns why requests were not done, the most frequent first.
func (s *Stream) Reasons() []result.Reason {
	list := []result.Reason{}
	for kind, n := range s.Account.Failed {
		list = append(list, result.Reason{Reason: kind, Count: n})
	}
	if n := s.Account.Dropped; n > 0 {
		list = append(list, result.Reason{Reason: "Dropped", Message: "the limit of requests in flight was reached, so the request was not sent", Count: n})
	}
	if n := s.Account.Lost; n > 0 {
		list = append(list, result.Reason{Reason: "Unknown", Message: "what became of the request is unknown", Count: n})
	}
	slices.SortFunc(list, func(a, b result.Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// OwnDelays returns how late the generator itself was, in seconds.
func (s *Stream) OwnDelays() stats.Sample { return sampleOf(s.delay, 0) }

// Since returns when a count over the judged windows first reached n, whether it did, and the count.
func (s *Stream) Since(n int, count func(w *Window) int) (at record.Micros, reached bool, all int) {
	for i := range s.Windows {
		w := &s.Windows[i]
		if w.WarmUp {
			continue
		}
		was := all
		if all += count(w); was < n && all >= n {
			at, reached = w.To, true
		}
	}
	return at, reached, all
}

// Over counts a window's requests beyond a bound, with those that were never done.
func (s *Stream) Over(bound slo.SLO) func(w *Window) int {
	i := slices.Index(s.bounds, bound)
	return func(w *Window) int {
		n := w.Failed + w.Dropped
		if i >= 0 {
			n += w.over[i]
		}
		return n
	}
}

// WindowAt returns the window of a moment, or nil.
func (s *Stream) WindowAt(t record.Micros) *Window {
	for i := range s.Windows {
		if w := &s.Windows[i]; t >= w.From && t <= w.To {
			return w
		}
	}
	return nil
}
