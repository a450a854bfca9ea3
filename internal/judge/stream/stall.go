package stream

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
	leastMissed = 20   // expected requests without any answer that make a stall: chance has one in 5e8
	mostDelays  = 1000 // parts in which the requests that one slow request held back are counted
	lateWindows = 4    // that a stall may be longer than the windows without answers: some targets report late
	mostPlaces  = 200  // that are searched for stalls
	briefShare  = 0.75 // of the expected answers in a request's time that are missing in a stall
	mostHeld    = 2.5  // times the expected requests of half a stall that it may make late, with those behind them
)

// Stall is a time without any answer, of the whole stream where it has no place.
type Stall struct {
	Place    string
	From, To record.Micros // whole windows
	Windows  int           // without an answer
	before   record.Micros // time without answers in the window before From, by the answers that it lacks
	length   record.Micros // if known better than by whole windows
}

// stalls returns the times of the hold with a load in flight and without answers, in order: of the
// stream, or of one place while others went on, unless it failed otherwise than by timeouts.
func (s *Stream) stalls(open bool) []Stall {
	spans := s.spans()
	whole := stallsOf("", spans, open, func(w *Window) int { return w.Answered })
	list := slices.Clone(whole)
	for _, place := range busiest(spans) {
		for _, x := range stallsOf(place, spans, open, func(w *Window) int { return w.ByPlace[place] }) {
			if !slices.ContainsFunc(whole, func(all Stall) bool {
				return all.From < x.To && x.From < all.To && x.Windows <= all.Windows+2 // the same, and its edges
			}) {
				list = append(list, x)
			}
		}
	}
	return list
}

// busiest returns the places with the most done requests, at most mostPlaces, in order of their names.
func busiest(spans []Window) []string {
	done := make(map[string]int)
	for _, w := range spans {
		for place, n := range w.ByPlace {
			done[place] += n
		}
	}
	places := slices.Sorted(maps.Keys(done))
	if len(places) > mostPlaces {
		slices.SortStableFunc(places, func(a, b string) int { return cmp.Compare(done[b], done[a]) })
		places = places[:mostPlaces]
		slices.Sort(places)
	}
	return places
}

// spans returns the windows of the hold, with those of several components at one time as one.
func (s *Stream) spans() []Window {
	var list []Window
	for _, w := range s.Windows {
		if w.WarmUp || w.To <= w.From {
			continue
		}
		if n := len(list) - 1; n >= 0 && list[n].From == w.From {
			x := &list[n]
			x.Answered, x.refused = x.Answered+w.Answered, x.refused+w.refused
			x.ByPlace, x.FailedByPlace = sumOf(x.ByPlace, w.ByPlace), sumOf(x.FailedByPlace, w.FailedByPlace)
			continue
		}
		list = append(list, w)
	}
	return list
}

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

// PlacesFailed returns the places whose last window with any request has failures alone, in order.
func (s *Stream) PlacesFailed() []string {
	failed := make(map[string]bool)
	for _, w := range s.spans() {
		for place := range w.FailedByPlace {
			failed[place] = w.ByPlace[place] == 0
		}
		for place, n := range w.ByPlace {
			failed[place] = failed[place] && n == 0
		}
	}
	maps.DeleteFunc(failed, func(_ string, f bool) bool { return !f })
	return slices.Sorted(maps.Keys(failed))
}

// stallsOf returns the runs of empty windows in which the others let expect leastMissed requests. With a
// schedule the other windows also have the answers that came after a stall.
func stallsOf(place string, spans []Window, open bool, count func(*Window) int) []Stall {
	n, length := 0, record.Micros(0)
	for i := range spans {
		if k := count(&spans[i]); k > 0 || open {
			n, length = n+k, length+spans[i].To-spans[i].From
		}
	}
	if length == 0 {
		return nil
	}
	var list []Stall
	for i := 0; i < len(spans); i++ {
		x := Stall{Place: place, From: spans[i].From}
		if i > 0 && spans[i-1].refused == 0 {
			whole := spans[i-1].To - spans[i-1].From
			x.before = max(whole-record.Micros(float64(count(&spans[i-1]))*float64(length)/float64(max(n, 1))), 0)
		}
		for ; i < len(spans) && count(&spans[i]) == 0 && spans[i].refused == 0; i++ {
			x.To, x.Windows = spans[i].To, x.Windows+1
		}
		if x.Windows > 0 && float64(n)*float64(x.To-x.From)/float64(length) >= leastMissed {
			list = append(list, x)
		}
	}
	return list
}

// unsent holds the latencies of the requests that stalls kept a closed loop from sending, by milestone
// and batch. A waiting client sends none: at its median pace it would have sent one each time that the
// median takes, and each would have waited for the rest of the stall. Requests at least half as long as
// the stall that were in flight in it were held up by it (Gil Tene's correction for coordinated omission,
// for these requests alone: others are slow by themselves).
type unsent map[string]*[batchCount]unsentBatch

type unsentBatch struct {
	counts   *hdrhistogram.Histogram
	censored int // of requests that were given up at their bound
}

// unsent computes them for requests that are given up at a bound, 0 for none; nil without a stall.
func (s *Stream) unsent(there string, timeout record.Micros) (unsent, error) {
	if len(s.Stood) == 0 || s.sums[there] == nil {
		return nil, nil
	}
	each := int64(s.sums[there].ValueAtPercentile(50))
	if each <= 0 {
		return nil, nil
	}
	list := make(unsent)
	seen := make(map[int]bool) // a window's requests are corrected once
	for _, x := range s.Stood {
		for i, w := range s.Windows {
			if w.WarmUp || seen[i] || !x.near(&w) {
				continue
			}
			seen[i] = true
			batch := s.batch(w.From)
			for name, encoded := range w.histograms {
				if list[name] == nil {
					list[name] = new([batchCount]unsentBatch)
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
					if bar.Count > 0 && bar.To >= int64(x.Lasted()/2) {
						addUnsent(b.counts, bar.To, each, bar.Count)
					}
				}
				if name == there && timeout > 0 {
					b.censored += w.timeouts * int(int64(timeout)/each)
				}
			}
		}
	}
	return list, nil
}

// addUnsent counts the requests that n requests of a latency held back.
func addUnsent(counts *hdrhistogram.Histogram, latency, each, n int64) {
	missed := latency/each - 1
	step := max((missed+mostDelays-1)/mostDelays, 1)
	for k := int64(0); k < missed; k += step {
		many := min(step, missed-k)
		record.CountMany(counts, record.Micros(latency-(k+(many+1)/2)*each), n*many)
	}
}

// lengthen gives a stall the length of the longest request that it held up. With a schedule requests wait
// for each other after it as well: it ended within the window after it.
func (s *Stream) lengthen(x *Stall, there string, open bool) error {
	for _, w := range s.Windows {
		if w.WarmUp || !x.near(&w) {
			continue
		}
		counts, err := w.histograms[there].Counts()
		if err != nil {
			return err
		}
		most, whole := record.Micros(counts.Max()), w.To-w.From
		if open {
			most = min(max(most, x.To-x.From+x.before), x.To-x.From+x.before+whole)
		}
		if most > max(x.length, x.To-x.From) && most <= x.To-x.From+lateWindows*whole {
			x.length = most
		}
	}
	return nil
}

// briefStall returns the longest time without an empty window in which next to nothing was answered, or
// nil: a request took so long, and most of the expected answers of a closed loop are missing. A schedule's
// answers come later: there the requests that were due in the first half of at least a whole window were
// late by half of it.
func (s *Stream) briefStall(there string, open bool) (*Stall, error) {
	if s.sums[there] == nil {
		return nil, nil
	}
	spans := s.spans()
	var n int
	var length, longest record.Micros
	at := -1
	for i := range spans {
		n, length = n+spans[i].Answered, length+spans[i].To-spans[i].From
	}
	for _, w := range s.Windows {
		counts, err := w.histograms[there].Counts()
		if err != nil {
			return nil, err
		}
		if most := record.Micros(counts.Max()); !w.WarmUp && most > longest {
			longest, at = most, slices.IndexFunc(spans, func(x Window) bool { return x.From == w.From })
		}
	}
	if at < 0 || length <= longest || longest < (spans[at].To-spans[at].From)/2 {
		return nil, nil
	}
	rate := float64(n) / float64(length-longest) // of the rest of the hold
	if open {
		rate = float64(n) / float64(length)
	}
	x, missing := Stall{From: spans[at].From, To: spans[at].To}, 0.0
	if rate*float64(longest) < leastMissed || open && longest < x.To-x.From {
		return nil, nil
	}
	for _, w := range spans {
		// Some targets count a request in the window in which it ends.
		if w.To > x.From-longest && w.From < x.To+longest {
			if w.refused > 0 {
				return nil, nil
			}
			missing += rate*float64(w.To-w.From) - float64(w.Answered)
		}
	}
	x.length = longest
	if !open {
		if missing < briefShare*rate*float64(longest) {
			return nil, nil
		}
		return &x, nil
	}
	before, held, err := s.heldUp(there, x)
	half := rate * float64(longest) / 2
	slow := s.sums[there].ValueAtPercentile(50) > int64(longest/4) // all the time
	if err != nil || slow || before > (1-briefShare)*half || held < briefShare*half || held > mostHeld*half {
		return nil, err
	}
	return &x, nil
}

// heldUp counts the requests from a stall on that took at least half as long, and those in the window before
// it that took a quarter: a load that becomes too much makes these late as well.
func (s *Stream) heldUp(there string, x Stall) (before, held float64, err error) {
	for _, w := range s.Windows {
		if w.To < x.From || w.From >= x.To+x.length {
			continue
		}
		counts, err := w.histograms[there].Counts()
		if err != nil {
			return 0, 0, err
		}
		for _, bar := range counts.Distribution() {
			switch {
			case w.To == x.From && bar.To >= int64(x.length/4):
				before += float64(bar.Count)
			case w.To != x.From && bar.To >= int64(x.length/2):
				held += float64(bar.Count)
			}
		}
	}
	return before, held, nil
}

// Loop holds what the stalls of a stream depend on beside its windows.
type Loop struct {
	Open     bool          // requests come by a schedule
	Timeout  record.Micros // after which a request is given up, 0 is never
	OwnDelay float64       // the longest standstill of the program itself, in seconds
}

// FindStalls finds stalls in the hold, unless they are this program's, and corrects a loop's latencies.
func (s *Stream) FindStalls(there string, loop Loop) {
	stalls := s.stalls(loop.Open)
	brief, err := s.briefStall(there, loop.Open)
	if s.Err = cmp.Or(s.Err, err); len(stalls) == 0 && brief != nil {
		stalls = append(stalls, *brief)
	}
	for i := range stalls {
		if x := &stalls[i]; x.length == 0 {
			err := s.lengthen(x, there, loop.Open)
			s.Err = cmp.Or(s.Err, err)
		}
	}
	s.Stood = slices.DeleteFunc(stalls, func(x Stall) bool { return loop.OwnDelay >= x.Lasted().Seconds()/2 })
	if loop.Open {
		return
	}
	list, err := s.unsent(there, loop.Timeout)
	s.Err = cmp.Or(s.Err, err)
	for name, added := range list {
		if s.Corrected == nil {
			s.Corrected = make(map[string]stats.Sample)
		}
		s.Corrected[name] = s.sampleWith(name, func(seriesOf) bool { return true }, there, added)
	}
}

// Lasted returns the least length of a stall.
func (x Stall) Lasted() record.Micros {
	if x.length > 0 {
		return x.length
	}
	return x.To - x.From
}

// near reports whether a window's requests may belong to a stall: some targets count one where it ends.
func (x Stall) near(w *Window) bool {
	length := w.To - w.From
	return w.From < x.To+length && w.To+length > x.From
}

// StallsOf describes the stalls of a stream in a sentence, "" for none.
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
		text += fmt.Sprintf("; clients that wait send nothing: p99 is %s of the requests that were sent, and %s with those that the stall held back",
			result.DurationText(*was, 0), result.DurationText(*with, 0))
	}
	return text
}
