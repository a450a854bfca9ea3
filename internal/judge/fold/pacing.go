package fold

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// What makes the pace of what serves one at a time: they come one by one, evenly.
const (
	paceNeeds  = 50
	paceSpread = 0.35 // of the median distance, that between the quartiles at most
	paceLeast  = 4e-3 // seconds between two: above 250 a second nothing is shown
	paceEven   = 1.5  // of the distance from an even spread of waits, by the root of their number
	paceUneven = 0.15 // that distance for many waits: a load that pauses for a moment makes them uneven, too
	paceOwn    = 0.15 // the distance from the load's own rate below which the load sets the pace
)

// CPUsBusy is the percentage of CPUs in use that shows the limit of the CPUs, and not of the target.
const CPUsBusy = 95.0

// paced reports each milestone that something which serves one at a time paced. A client's limit of
// requests, a lock and one worker look alike: what they delay comes evenly, and has waited for anything
// up to the distance, or up to the whole backlog's time where more comes than they let through. So paced
// names a cause only where a figure of its own says that it was in use while others waited. Answers to a
// load that comes evenly did not wait like that, and answers without enough processors are not even.
func (f *Facts) paced(s *Measured, tell func(reason, text string)) {
	n := s.Bottleneck
	if n == nil || n.CPUBusy != nil && *n.CPUBusy >= CPUsBusy {
		return
	}
	own := f.head.Level // of the load, by the second
	if !f.head.Open {
		own, _ = strconv.ParseFloat(strings.TrimSuffix(f.head.Pace, "/s"), 64)
	}
	for _, w := range n.Waits {
		from, to := f.find(w.From), f.find(w.To)
		if from < 0 {
			continue // the request's own answer
		}
		var waits, came []float64
		for _, u := range f.ownUnits() {
			if s, t := u.reached(from), u.reached(to); s != Never && t != Never {
				waits, came = append(waits, (t-s).Seconds()), append(came, t.Seconds())
			}
		}
		if len(came) < paceNeeds {
			continue
		}
		slices.Sort(came)
		apart := make([]float64, len(came)-1)
		for i := range apart {
			apart[i] = came[i+1] - came[i]
		}
		between := stats.NewSample(apart, 0)
		every, low, high := between.Quantile(0.5), between.Quantile(0.25), between.Quantile(0.75)
		even := every >= paceLeast && high-low <= paceSpread*every
		if !even || math.Abs(own*every-1) <= paceOwn || !spreadEvenly(waits) {
			continue
		}
		up := 2 * stats.NewSample(waits, 0).Mean()
		if up < 0.7*every {
			continue // they hardly waited
		}
		reason, proof := "ServedOneAtATime", fmt.Sprintf("an unknown part serves one at a time, about %.0f/s", 1/every)
		if limit := s.Proof(w.For, (f.End - f.Start).Seconds()); limit != "" {
			reason, proof = "PacedByLimit", limit
		}
		tell(reason, fmt.Sprintf("%s came every %s (half of them %s to %s apart), %.0f a second, after waits for the %s spread evenly up to %s: %s",
			w.To, result.DurationText(every, 0), result.DurationText(low, 0), result.DurationText(high, 0), 1/every, w.For, result.DurationText(up, 0), proof))
	}
}

// spreadEvenly compares waits with an even spread from 0 to twice their mean (Kolmogorov's distance).
func spreadEvenly(waits []float64) bool {
	slices.Sort(waits)
	n := float64(len(waits))
	up, far := 2*stats.NewSample(waits, 0).Mean(), 0.0
	if up <= 0 {
		return false
	}
	for i, w := range waits {
		share := min(w/up, 1)
		far = max(far, share-float64(i)/n, float64(i+1)/n-share)
	}
	return far <= max(paceEven/math.Sqrt(n), paceUneven)
}

// showed gives the signatures what the step shows besides its events.
func (c *Collector) showed(f *Facts, s *Measured) {
	at := f.Start
	tell := func(reason, text string) {
		c.matcher.Event(at, &record.TargetEvent{Reason: reason, Message: text, Source: usage.SourceSelf})
	}
	f.paced(s, tell)
	for _, text := range s.InUse((f.End - f.Start).Seconds()) {
		tell("LimitInUse", text)
	}
	for _, text := range s.collections() {
		tell("GarbageCollection", text)
	}
	for _, x := range f.Stood {
		at = x.From
		tell("WritesStoodStill", x.Evidence)
	}
}

// The least garbage collection of a program that is worth a word.
const (
	collectionPause = 0.1 // seconds of its pauses, at p99
	collectionShare = 0.4 // of its CPU time
	collectionLeast = 1.0 // seconds of CPU time
)

// collections names programs with long or expensive garbage collection, each in a sentence.
func (c *Measured) collections() (list []string) {
	for _, d := range c.Durations {
		switch {
		case d.Mean == nil:
		case d.Name == record.CollectionPauses && d.P99.Above >= collectionPause:
			list = append(list, fmt.Sprintf("%s was paused by it %d times, p99 over %s", d.Source, d.N, result.DurationText(d.P99.Above, 0)))
		case d.Name == record.CollectionCPU:
			took, all := *d.Mean*float64(d.N), c.Resources[d.Source].CPUSeconds
			if took >= collectionLeast && took >= collectionShare*all && took <= all { // more was measured at another time
				list = append(list, fmt.Sprintf("%s spent %.1f s of its %.1f s of CPU time on it, in %s", d.Source, took, all, record.Noun{One: "cycle", Many: "cycles"}.Count(int(d.N))))
			}
		}
	}
	return list
}

// slowdownOf finds the first milestone that was reached less often from some object on, or nil.
func slowdownOf(spec *result.Spec, f *Facts) *result.Slowdown {
	if f.head.Open {
		return nil
	}
	since := make([]record.Micros, len(f.units)) // of the last milestone, or of the request
	for i := range since {
		since[i] = f.units[i].sent()
	}
	for m, name := range f.names {
		if m == f.gone || f.behind(m) {
			continue
		}
		var ways []stats.Passage
		for i, u := range f.ownUnits() {
			if t := u.reached(m); t != Never {
				ways = append(ways, stats.Passage{From: since[i].Duration(), At: t.Duration()})
				since[i] = max(since[i], t)
			}
		}
		if s, slowed := stats.FindSlowdown(ways); slowed {
			return &result.Slowdown{
				Milestone: name, For: spec.Kind.Owner(name), After: s.After, Of: s.Of, Before: result.Round(s.Before, 3), Then: result.Round(s.Then, 3),
			}
		}
	}
	return nil
}
