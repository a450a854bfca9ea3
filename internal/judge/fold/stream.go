package fold

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
)

// streamBatches is how many batches the hold of a stream is divided into: the
// intervals of its quantiles come from how they differ. They are too few to
// be alike by chance, and long enough to differ little by it.
const streamBatches = 20

// Stream folds the windows of one step's stream of requests. Its memory grows
// with the number of windows by a few counts each.
type Stream struct {
	hold     record.Micros
	windows  []windowCounts
	warmUp   int // requests that are not judged
	account  result.StreamRequests
	recorded []*record.Request
	first    record.Micros // when the first window began that is judged
	batches  map[streamSeries]*[streamBatches]*hdrhistogram.Histogram
	sums     map[string]*hdrhistogram.Histogram // of all batches, by milestone
	delay    *hdrhistogram.Histogram
	// bounds are those whose exceeding is counted by window.
	bounds []slo.SLO
	stood  []stall // once the step is over
	Err    error   // a histogram that could not be read
}

// streamSeries is what a distribution of a stream is of.
type streamSeries struct{ milestone, component string }

// windowCounts are what is kept of one window.
type windowCounts struct {
	from, to                              record.Micros
	warmUp                                bool
	intended, done, failed, late, dropped int
	answered, retried                     int
	answeredBytes                         int64
	told                                  bool // what was answered meanwhile
	inFlight, backlog                     int
	over                                  []int // of the bounds: how many that were done exceeded it
	byPlace, failedByPlace                map[string]int
	timeouts, refused                     int // requests that were given up at their bound, and that failed otherwise
	histograms                            map[string]record.Histogram
}

// NewStream begins a step's stream, of which a hold is judged. Bounds are
// objectives on latencies.
func NewStream(hold record.Micros, bounds []slo.SLO) *Stream {
	return &Stream{
		hold: hold, account: result.StreamRequests{Failed: make(map[string]int)}, first: Never,
		batches: make(map[streamSeries]*[streamBatches]*hdrhistogram.Histogram), delay: record.NewCounts(), bounds: bounds,
		sums: make(map[string]*hdrhistogram.Histogram),
	}
}

// boundsOf are the objectives on latencies of all goals.
func boundsOf(goals []slo.Goal) []slo.SLO {
	var list []slo.SLO
	for _, g := range goals {
		for _, s := range g.SLOs {
			if s.Within > 0 && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// Add takes in a window.
func (s *Stream) Add(w *record.Window) {
	counts := windowCounts{
		from: w.From, to: w.To, warmUp: w.WarmUp, intended: w.Intended, done: w.Done, failed: w.FailedAll(), late: w.Late, dropped: w.Dropped,
		answered: w.Done, answeredBytes: w.BytesIn, retried: w.Retried, inFlight: w.InFlight, backlog: w.Backlog, over: make([]int, len(s.bounds)),
		byPlace: w.ByPlace, failedByPlace: w.FailedByPlace, timeouts: w.Failed[record.FailedTimeout], histograms: w.Histograms,
	}
	counts.refused = counts.failed - counts.timeouts
	if counts.told = w.ByClock; counts.told {
		counts.answered, counts.answeredBytes = w.Answered, w.AnsweredBytes
	}
	defer func() { s.windows = append(s.windows, counts) }()
	if w.WarmUp {
		s.warmUp += w.Intended
		return
	}
	a := &s.account
	a.Intended, a.Sent, a.Done = a.Intended+w.Intended, a.Sent+w.Sent, a.Done+w.Done
	a.Late, a.Dropped, a.Lost = a.Late+w.Late, a.Dropped+w.Dropped, a.Lost+w.Lost
	a.Retried += w.Retried
	for kind, n := range w.Failed {
		a.Failed[kind] += n
	}
	for place, n := range w.ByPlace {
		if a.ByPlace == nil {
			a.ByPlace = make(map[string]int)
		}
		a.ByPlace[place] += n
	}
	for place, n := range w.FailedByPlace {
		if a.FailedByPlace == nil {
			a.FailedByPlace = make(map[string]int)
		}
		a.FailedByPlace[place] += n
	}
	if s.first == Never {
		s.first = w.From
	}
	if delay, err := w.OwnDelay.Counts(); err != nil {
		s.Err = cmp.Or(s.Err, err)
	} else {
		s.delay.Merge(delay)
	}
	batch := s.batch(w.From)
	for name, h := range w.Histograms {
		series := streamSeries{name, w.Component}
		list, ok := s.batches[series]
		if !ok {
			list = new([streamBatches]*hdrhistogram.Histogram)
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

// sampleOf is what a histogram holds.
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

// live sums up the stream so far.
func (s *Stream) live(there string) Live {
	l := Live{There: s.account.Done}
	quantile := func(q float64) *float64 {
		h := s.sums[there]
		if h == nil || q*float64(s.account.Intended) > float64(h.TotalCount()) {
			return nil // nothing is there, or it falls on what is not
		}
		return result.Finite(float64(h.ValueAtPercentile(100*q*float64(s.account.Intended)/float64(h.TotalCount()))) / 1e6)
	}
	l.P50, l.P99 = quantile(0.5), quantile(0.99)
	return l
}

// Samples are the distributions of the judged requests by milestone. What never
// reached it counts in that of the milestone that counts as ready.
func (s *Stream) Samples(there string) map[string]stats.Sample {
	samples := make(map[string]stats.Sample)
	for series := range s.batches {
		if _, ok := samples[series.milestone]; !ok {
			samples[series.milestone] = s.sample(series.milestone, func(streamSeries) bool { return true }, there)
		}
	}
	if _, ok := samples[there]; !ok && s.account.Intended > 0 {
		samples[there] = s.sample(there, func(streamSeries) bool { return true }, there)
	}
	return samples
}

// sample is the distribution of those of a milestone's series that are chosen.
func (s *Stream) sample(milestone string, chosen func(streamSeries) bool, there string) stats.Sample {
	return s.sampleWith(milestone, chosen, there, new([streamBatches]unsentBatch))
}

// sampleWith is sample with requests that were not sent.
func (s *Stream) sampleWith(milestone string, chosen func(streamSeries) bool, there string, added *[streamBatches]unsentBatch) stats.Sample {
	var batches []stats.Sample
	var missing [streamBatches]int
	if milestone == there {
		for _, w := range s.windows {
			if !w.warmUp {
				missing[s.batch(w.from)] += w.intended - w.done
			}
		}
	}
	for i := range streamBatches {
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

// batch is the batch that requests belong to which were due at a time. Those of a
// damaged record may be due before the first.
func (s *Stream) batch(t record.Micros) int {
	return int(min(max((t-s.first)*streamBatches/max(s.hold, 1), 0), streamBatches-1))
}

// components are the components of which there are distributions, where there
// are several.
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

// ByComponent are the distributions for a comparison: of each milestone over all
// requests, and by component where there are several. What never got to the
// milestone that counts as there is counted once, among all.
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
			list = append(list, compare.MilestoneSample{Milestone: name, Component: c, Sample: s.sample(name, func(x streamSeries) bool { return x.component == c }, "")})
		}
	}
	return list
}

// fill fills in what a result has of a step whose load was a stream.
func (s *Stream) fill(spec *result.Spec, f *Facts, step *Measured) {
	step.Requests, step.Objects.None = &s.account, true
	step.Requested, step.Asked = s.warmUp+s.account.Intended, s.account.Intended
	f.Samples = make(map[string]Sample)
	step.Latency = make(result.Latencies)
	for name, x := range s.Samples(spec.Kind.There) {
		one := Sample{Sample: x}
		if name == spec.Kind.There {
			one.Lost = s.account.Lost
		}
		f.Samples[name], step.Latency[name] = one, summarise(x)
	}
	s.account.PlacesFailed = s.placesFailed()
	s.fillStalls(spec, f)
	own := sampleOf(s.delay, 0)
	step.Arrivals = &result.Arrivals{WarmUp: s.warmUp, Judged: s.account.Intended, Late: s.account.Late, Dropped: s.account.Dropped, OwnDelayP99: result.Finite(own.Quantile(0.99)), OwnDelayMax: result.Finite(own.Max())}
	step.Reasons = s.reasons()
	s.account.Recorded = s.shown(spec)
	for _, w := range s.windows {
		step.InFlightMax = max(step.InFlightMax, w.inFlight)
	}
	from, to := f.held()
	if to <= from || f.Cut() {
		return
	}
	step.OfferedRate = rate(s.account.Intended, to-from)
	if f.head.Open {
		step.Backlog = s.backlog(spec)
	}
	done, bytes := f.answered()
	step.AchievedRate = rate(done, to-from)
	if bits := 8 * float64(bytes) / (to - from).Seconds(); bits > 0 {
		s.account.BitsPerSecond = result.Significant(bits)
	}
	if s.account.Intended > 0 {
		f.Achieved = new(100 * float64(done) / float64(s.account.Intended))
	}
}

// recordedShown is how many of the slowest requests, and of those that failed, a
// result has; the history has all that are on record.
const recordedShown = 10

// shown are the single requests that a result has: of either kind those that took
// longest.
func (s *Stream) shown(spec *result.Spec) []result.RecordedRequest {
	slices.SortStableFunc(s.recorded, func(a, b *record.Request) int { return cmp.Compare(b.Ended-b.Intended, a.Ended-a.Intended) })
	var lists [2][]result.RecordedRequest
	for _, x := range s.recorded {
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

// answered is how many requests were answered in the hold, whenever they were due,
// and the bytes of these answers. Windows that do not tell are of those that were
// due: what the backlog rose by was not answered.
func (f *Facts) answered() (n int, bytes int64) {
	s := f.Stream
	told, before, last := true, 0, 0
	for _, w := range s.windows {
		if w.warmUp {
			before = w.backlog
			continue
		}
		told, last = told && w.told, w.backlog
		n, bytes = n+w.answered, bytes+w.answeredBytes
	}
	if !told && f.head.Open {
		n = max(s.account.Intended-s.account.Dropped-s.account.FailedAll()-(last-before), 0)
	}
	return n, bytes
}

// OwnBound says that requests waited for a place among those that the load has
// under way at most, where more places would have kept each objective: those under
// way took no longer than it allows, on average (Little's law). It is "" where
// fewer than half waited, for then the bound was reached at times only, when the target
// was slow; where that was too slow for as many as were under way already; and where
// how many these were is not known.
func (f *Facts) OwnBound(a *result.Arrivals, goal slo.Goal) string {
	if f.Stream == nil || a == nil || !HeldBack(a) || 2*a.Late < a.Judged {
		return ""
	}
	inFlight, windows := 0, 0
	for _, w := range f.Stream.windows {
		if !w.warmUp {
			inFlight, windows = inFlight+w.inFlight, windows+1
		}
	}
	done, _ := f.answered()
	if inFlight == 0 || done == 0 {
		return ""
	}
	mean := float64(inFlight) / float64(windows)
	took := mean * f.hold.Seconds() / float64(done)
	for _, x := range goal.SLOs {
		if x.Within > 0 && (x.Op == slo.Less || x.Op == slo.LessEqual) && took > x.Within.Seconds() {
			return ""
		}
	}
	return fmt.Sprintf("the load's own bound on requests under way was reached, which is not the target's: %d of %d arrivals waited for a place among %.0f, each of which took %s",
		a.Late, a.Judged, mean, result.DurationText(took, 0))
}

// reasons are why requests were not done, the most frequent first.
func (s *Stream) reasons() []result.Reason {
	list := []result.Reason{}
	for kind, n := range s.account.Failed {
		list = append(list, result.Reason{Reason: kind, Count: n})
	}
	if n := s.account.Dropped; n > 0 {
		list = append(list, result.Reason{Reason: "Dropped", Message: "the request found no place among those under way, and was not sent", Count: n})
	}
	if n := s.account.Lost; n > 0 {
		list = append(list, result.Reason{Reason: "Unknown", Message: "what became of the request is not known", Count: n})
	}
	slices.SortFunc(list, func(a, b result.Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// OwnDelay is a quantile of by how much the generator itself was late, in seconds.
func (s *Stream) OwnDelay(q float64) float64 { return sampleOf(s.delay, 0).Quantile(q) }

// since is when a count over the judged windows first came to n, to a window:
// the end of that one, or of the step if it never did. It returns the whole
// count, too.
func (s *Stream) since(f *Facts, n int, count func(w windowCounts) int) (at record.Micros, all int) {
	at = f.End
	for _, w := range s.windows {
		if w.warmUp {
			continue
		}
		was := all
		if all += count(w); was < n && all >= n {
			at = w.to
		}
	}
	return f.within(at), all
}

// over counts what a window has of requests that exceeded a bound, those that
// were never done among them.
func (s *Stream) over(bound slo.SLO) func(w windowCounts) int {
	i := slices.Index(s.bounds, bound)
	return func(w windowCounts) int {
		n := w.failed + w.dropped
		if i >= 0 {
			n += w.over[i]
		}
		return n
	}
}

// quantileAt is Moments.QuantileAt for a stream.
func (s *Stream) quantileAt(f *Facts, o slo.SLO, sample Sample) (record.Micros, int) {
	if o.Op == slo.Greater || o.Op == slo.GreaterEqual {
		over := s.over(o)
		return s.since(f, sample.Rank(o.Q), func(w windowCounts) int { return w.intended - over(w) })
	}
	return s.since(f, sample.N()-sample.Rank(o.Q)+1, s.over(o))
}

// windowAt is the window that a moment lies in, nil for none.
func (s *Stream) windowAt(t record.Micros) *windowCounts {
	for i := range s.windows {
		if w := &s.windows[i]; t >= w.from && t <= w.to {
			return w
		}
	}
	return nil
}
