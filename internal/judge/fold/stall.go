package fold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	// leastMissed is how many requests the rest of the hold must let expect where
	// none was answered, to call that a stall: by chance none comes once in 5e8.
	leastMissed = 20
	// mostDelays is in how many parts the requests that one slow request kept from
	// being sent are counted at most.
	mostDelays = 1000
	// lateWindows is by how many windows a stall may be longer than those in which
	// nothing was answered: what was done before is told late by some targets.
	lateWindows = 4
	// briefShare is the part of what is expected in a request's time that must be
	// missing around it, to call that time a stall and not one slow request.
	briefShare = 0.75
)

// stall is a time in which nothing was answered, of the whole stream where it has
// no place.
type stall struct {
	place    string
	from, to record.Micros // whole windows
	windows  int           // in which nothing was answered
	length   record.Micros // where it is known better than by whole windows
}

// lasted is how long a stall was at least.
func (x stall) lasted() record.Micros {
	if x.length > 0 {
		return x.length
	}
	return x.to - x.from
}

// stalls are the times of the hold in which a stream's load was under way and
// nothing was answered, in order: of the whole stream, or of one place while others
// went on. A place where requests failed in another way than by waiting has not
// stalled.
func (s *Stream) stalls() []stall {
	spans := s.spans()
	list := stallsOf("", spans, func(w *windowCounts) int { return w.answered })
	places := make(map[string]bool)
	for _, w := range spans {
		for place := range w.byPlace {
			places[place] = true
		}
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		for _, x := range stallsOf(place, spans, func(w *windowCounts) int { return w.byPlace[place] }) {
			if !slices.ContainsFunc(list, func(all stall) bool {
				return all.place == "" && all.from < x.to && x.from < all.to && x.windows <= all.windows+2 // the same, and its edges
			}) {
				list = append(list, x)
			}
		}
	}
	return list
}

// spans are the windows of the hold, those that components have of one time as one.
func (s *Stream) spans() []windowCounts {
	var list []windowCounts
	for _, w := range s.windows {
		if w.warmUp || w.to <= w.from {
			continue
		}
		if n := len(list) - 1; n >= 0 && list[n].from == w.from {
			x := &list[n]
			x.answered, x.refused = x.answered+w.answered, x.refused+w.refused
			x.byPlace, x.failedByPlace = sumOf(x.byPlace, w.byPlace), sumOf(x.failedByPlace, w.failedByPlace)
			continue
		}
		list = append(list, w)
	}
	return list
}

// sumOf adds up counts.
func sumOf(a, b map[string]int) map[string]int {
	if len(a) == 0 {
		return b
	}
	a = maps.Clone(a)
	for key, n := range b {
		a[key] += n
	}
	return a
}

// placesFailed are the places that had failed by the end of the hold, in order: in
// the last window that tells of the place requests failed there, and none was done.
func (s *Stream) placesFailed() []string {
	failed := make(map[string]bool)
	for _, w := range s.spans() {
		for place := range w.failedByPlace {
			failed[place] = w.byPlace[place] == 0
		}
		for place, n := range w.byPlace {
			failed[place] = failed[place] && n == 0
		}
	}
	maps.DeleteFunc(failed, func(_ string, f bool) bool { return !f })
	return slices.Sorted(maps.Keys(failed))
}

// stallsOf are the longest runs of windows in which a count is 0 where the others
// let expect leastMissed at least.
func stallsOf(place string, spans []windowCounts, count func(*windowCounts) int) []stall {
	n, length := 0, record.Micros(0)
	for i := range spans {
		if k := count(&spans[i]); k > 0 {
			n, length = n+k, length+spans[i].to-spans[i].from
		}
	}
	if length == 0 {
		return nil
	}
	var list []stall
	for i := 0; i < len(spans); i++ {
		x := stall{place: place, from: spans[i].from}
		for ; i < len(spans) && count(&spans[i]) == 0 && spans[i].refused == 0; i++ {
			x.to, x.windows = spans[i].to, x.windows+1
		}
		if x.windows > 0 && float64(n)*float64(x.to-x.from)/float64(length) >= leastMissed {
			list = append(list, x)
		}
	}
	return list
}

// unsent are the latencies of the requests that stalls kept a closed loop from
// sending, by milestone and batch. A client that waits sends none: had it gone on as
// it does at the median, it would have sent one each time that the median takes, and
// each would have waited for the rest of the stall. Requests half as long as the
// stall that were under way in it are those that were held up by it (Gil Tene's correction
// for coordinated omission, for these requests alone: others are slow by themselves).
type unsent map[string]*[streamBatches]unsentBatch

type unsentBatch struct {
	counts   *hdrhistogram.Histogram
	censored int // of requests that were given up at their bound
}

// unsent computes them; nil where there was no stall or the loop is open.
func (s *Stream) unsent(f *Facts, there string) (unsent, error) {
	if f.head.Open || len(s.stood) == 0 || s.sums[there] == nil {
		return nil, nil
	}
	each := int64(s.sums[there].ValueAtPercentile(50))
	if each <= 0 {
		return nil, nil
	}
	list := make(unsent)
	seen := make(map[int]bool) // a window's requests are corrected once
	for _, x := range s.stood {
		for i, w := range s.windows {
			// Some targets count a request in the window in which it ends.
			if length := w.to - w.from; w.warmUp || seen[i] || w.from >= x.to+length || w.to+length <= x.from {
				continue
			}
			seen[i] = true
			batch := s.batch(w.from)
			for name, encoded := range w.histograms {
				if list[name] == nil {
					list[name] = new([streamBatches]unsentBatch)
				}
				b := &list[name][batch]
				if b.counts == nil {
					b.counts = record.NewCounts()
				}
				counts, err := encoded.Counts()
				if err != nil {
					return nil, err
				}
				for _, bar := range counts.Distribution() {
					if bar.Count > 0 && bar.To >= int64(x.lasted()/2) {
						addUnsent(b.counts, bar.To, each, bar.Count)
					}
				}
				if name == there && f.timeout < unreached-1 {
					b.censored += w.timeouts * int(int64(f.timeout)/each)
				}
			}
		}
	}
	return list, nil
}

// addUnsent counts the requests that n requests of a latency kept from being sent.
func addUnsent(counts *hdrhistogram.Histogram, latency, each, n int64) {
	missed := latency/each - 1
	step := max((missed+mostDelays-1)/mostDelays, 1)
	for k := int64(0); k < missed; k += step {
		many := min(step, missed-k)
		record.CountMany(counts, record.Micros(latency-(k+(many+1)/2)*each), n*many)
	}
}

// lengthen gives a stall of a closed loop the length of the longest request that it
// held up, which shows the parts of windows as well in which nothing was answered.
func (s *Stream) lengthen(x *stall, there string) error {
	for _, w := range s.windows {
		length := w.to - w.from
		if w.warmUp || w.from >= x.to+length || w.to+length <= x.from {
			continue
		}
		counts, err := w.histograms[there].Counts()
		if err != nil {
			return err
		}
		if most := record.Micros(counts.Max()); most > max(x.length, x.to-x.from) && most <= x.to-x.from+lateWindows*length {
			x.length = most
		}
	}
	return nil
}

// briefStall is the longest time in which a closed loop answered next to nothing,
// though no whole window: a request took so long, and meanwhile most of what is
// expected in its time was not answered. It is nil where there was none.
func (s *Stream) briefStall(there string) (*stall, error) {
	if s.sums[there] == nil {
		return nil, nil
	}
	spans := s.spans()
	var n int
	var length, longest record.Micros
	at := -1
	for i := range spans {
		n, length = n+spans[i].answered, length+spans[i].to-spans[i].from
	}
	for _, w := range s.windows {
		counts, err := w.histograms[there].Counts()
		if err != nil {
			return nil, err
		}
		if most := record.Micros(counts.Max()); !w.warmUp && most > longest {
			longest, at = most, slices.IndexFunc(spans, func(x windowCounts) bool { return x.from == w.from })
		}
	}
	if at < 0 || length <= longest || longest < (spans[at].to-spans[at].from)/2 {
		return nil, nil
	}
	// The rate is that of the rest of the hold.
	rate := float64(n) / float64(length-longest)
	if rate*float64(longest) < leastMissed {
		return nil, nil
	}
	x, missing := stall{from: spans[at].from, to: spans[at].to}, 0.0
	for _, w := range spans {
		// Some targets count a request in the window in which it ends.
		if w.to > x.from-longest && w.from < x.to+longest {
			if w.refused > 0 {
				return nil, nil
			}
			missing += rate*float64(w.to-w.from) - float64(w.answered)
		}
	}
	if missing < briefShare*rate*float64(longest) {
		return nil, nil
	}
	x.length = longest
	return &x, nil
}

// fillStalls fills in what stood still, and the latencies with what that kept from
// being sent.
func (s *Stream) fillStalls(spec *result.Spec, f *Facts) {
	if f.Cut() {
		return
	}
	there := spec.Kind.There
	stalls := s.stalls()
	if !f.head.Open {
		brief, err := s.briefStall(there)
		if s.Err = cmp.Or(s.Err, err); len(stalls) == 0 && brief != nil {
			stalls = append(stalls, *brief)
		}
	}
	for i := range stalls {
		if x := &stalls[i]; !f.head.Open && x.length == 0 {
			err := s.lengthen(x, there)
			s.Err = cmp.Or(s.Err, err)
		}
	}
	own := f.readings.OwnDelay
	s.stood = slices.DeleteFunc(stalls, func(x stall) bool { return own != nil && own.Max >= x.lasted().Seconds()/2 })
	for _, x := range s.stood {
		s.account.Stalls = append(s.account.Stalls, result.Stall{Place: x.place, From: spec.Wall(x.from), Seconds: x.lasted().Seconds(), Windows: x.windows})
	}
	list, err := s.unsent(f, there)
	s.Err = cmp.Or(s.Err, err)
	for name, added := range list {
		x := s.sampleWith(name, func(streamSeries) bool { return true }, there, added)
		if f.Corrected == nil {
			f.Corrected, s.account.Corrected = make(map[string]stats.Sample), make(result.Latencies)
		}
		f.Corrected[name], s.account.Corrected[name] = x, summarise(x)
	}
}

// StallsOf says what stood still in a stream, in a sentence, "" for nothing.
func StallsOf(r *result.StreamRequests, there string, plain result.Latencies) string {
	if r == nil || len(r.Stalls) == 0 {
		return ""
	}
	var parts []string
	for _, x := range r.Stalls[:min(len(r.Stalls), 3)] {
		where := "nothing was answered"
		if x.Place != "" {
			where = x.Place + " answered nothing"
		}
		text := fmt.Sprintf("%s for %.3g s", where, x.Seconds)
		if x.Windows > 0 {
			text += fmt.Sprintf(" (%s)", result.ManyOf("window", x.Windows))
		}
		parts = append(parts, text)
	}
	if n := len(r.Stalls) - len(parts); n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	text := "a stall: " + strings.Join(parts, ", ")
	if was, with := plain[there].P99, r.Corrected[there].P99; r.Corrected != nil && was != nil && with != nil {
		text += fmt.Sprintf("; clients that wait send nothing, so that p99 is %s of the requests that were sent, and %s with those that the stall kept from being sent",
			result.DurationText(*was, 0), result.DurationText(*with, 0))
	}
	return text
}
