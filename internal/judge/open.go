package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	// OwnDelayBound is how late this program may be by its own doing, at p99:
	// in sending what a schedule says, and in being woken by a timer. Beyond it
	// the step says nothing of the target.
	OwnDelayBound = 10 * time.Millisecond
	// lateTolerated is the percentage of arrivals that may find no place
	// before the rate counts as not achieved.
	lateTolerated = 1.0
	// othersTolerated is the percentage of the CPUs that programs beside the
	// run may use without a word.
	othersTolerated = 15.0
)

// OwnDelay is how long this program waited for a processor: it asks to be
// woken at known times.
type OwnDelay struct {
	Wakes int     `json:"wakes"`
	Late  int     `json:"late"` // by more than OwnDelayBound
	Max   float64 `json:"max"`  // seconds
}

// short reports whether the program was short of CPU: it was late in more
// than 1 % of cases where a schedule says when to send, and in more than 10 %
// where only the reading of news was delayed.
func (d *OwnDelay) short(open bool) bool {
	tolerated := 0.10
	if open {
		tolerated = 0.01
	}
	return d != nil && d.Late >= leastLate && float64(d.Late) > tolerated*float64(d.Wakes)
}

// leastLate is how often the program must have been late for that to be no
// chance: a step of a tenth of a second has ten wakes.
const leastLate = 3

// held reports whether the target held back so many arrivals that the rate
// was not achieved.
func (a *Arrivals) held() bool {
	return a.Judged > 0 && (a.Dropped > 0 || 100*float64(a.Late)/float64(a.Judged) > lateTolerated)
}

// arrivalsOf are the requests of a step whose requests came by a schedule.
func arrivalsOf(f *facts) *Arrivals {
	a := &Arrivals{}
	if f.reached == never {
		return a
	}
	var own []float64
	for _, s := range f.own {
		if !f.judges(s) {
			a.WarmUp++
			continue
		}
		a.Judged++
		if s.outcome == record.SlotDropped {
			a.Late++
			a.Dropped++
			continue
		}
		if s.waited > 0 {
			a.Late++
		}
		if s.onRecord {
			own = append(own, max(s.sent-s.intended-s.waited, 0).Seconds())
		}
	}
	if from, to := f.held(); to > from {
		a.OwnDelayP99 = finite(stats.NewSample(own, 0).Quantile(0.99))
		a.DeletionsPerSecond = *rate(f.reachedIn(f.gone, from, to), to-from)
	}
	return a
}

// arrivalRates are the rates of a step whose requests came by a schedule: of
// arrivals in the hold, of objects that became ready in it, and the second in
// percent of the first; nil where the hold was not reached.
func arrivalRates(f *facts, a *Arrivals) (offered, rateOf, achieved *float64) {
	from, to := f.held()
	if to <= from {
		return nil, nil, nil
	}
	offered, rateOf = rate(a.Judged, to-from), rate(f.reachedIn(f.there, from, to), to-from)
	if *offered > 0 {
		achieved = new(100 * *rateOf / *offered)
	}
	return offered, rateOf, achieved
}

// held is from when to when the level was held; both are the same where it was
// not reached.
func (f *facts) held() (from, to record.Micros) {
	if f.reached == never {
		return never, never
	}
	return f.reached, min(f.reached+f.hold, f.end)
}

// reachedIn counts the objects of the step's requests that reached a milestone
// in a span.
func (f *facts) reachedIn(milestone int, from, to record.Micros) int {
	n := 0
	for _, s := range f.own {
		for _, o := range s.objects {
			if t := o.reached(milestone); t != never && t >= from && t < to {
				n++
			}
		}
	}
	return n
}

// bottleneckOf is what the step's own objects waited for, and what the CPUs did;
// nil where neither is known. Others is what other programs used of the CPUs in
// percent, 0 where that is no more than is tolerated.
func bottleneckOf(spec *Spec, f *facts, atOnce []BoundShare) (n *Bottleneck, others float64) {
	n = &Bottleneck{Waits: waitsOf(spec, f), Slowdown: slowdownOf(spec, f)}
	if m, ok := f.readings.usage[SourceMachine]; ok && m.cpus > 0 && m.span > 0 {
		others = n.addCPUs(m, f.readings.usage)
		if peak, ok := peakCPU(f.readings.cpu[SourceMachine]); ok {
			n.CPUPeak = min(f.readings.percent(peak), 100)
		}
	}
	if from, to := f.held(); f.stream != nil && to > from {
		n.Bounds = f.readings.boundsIn(spec.Kind.Bounds, from, to, false)
	} else if f.stream == nil {
		n.Bounds = append(atOnce, f.readings.boundsIn(spec.Kind.Bounds, f.start, min(f.reached, f.end), true)...)
	}
	if len(n.Waits) == 0 && n.CPUs == 0 && len(n.Bounds) == 0 {
		return nil, 0
	}
	return n, others
}

// bound is what kept the load from going faster, nil where nothing that is known
// of did.
func (n *Bottleneck) bound() *BoundShare {
	if n == nil {
		return nil
	}
	if i := slices.IndexFunc(n.Bounds, func(b BoundShare) bool { return b.Held }); i >= 0 {
		return &n.Bounds[i]
	}
	return nil
}

// waitsOf are the ways between two milestones of the step's own objects, the
// longest on average first. An object's first way begins with its request.
func waitsOf(spec *Spec, f *facts) []Wait {
	type way struct{ from, to int }
	ways := make(map[way][]float64)
	total := 0.0
	for i := range f.units {
		u := &f.units[i]
		if !u.own || u.slot.outcome == record.SlotDropped || !u.slot.onRecord && u.object == nil {
			continue
		}
		at, from := u.zero, -1
		if u.slot.onRecord {
			at = u.slot.zeroOf(nil)
		}
		onTheWay := -1 // to the first milestone that none of those reached follows
		for m := range f.names {
			if m == f.gone {
				continue
			}
			t := never
			if u.object != nil {
				t = u.object.reached(m)
			}
			if t == never {
				// Not every system tells of every milestone.
				if onTheWay < 0 {
					onTheWay = m
				}
				if m == f.there {
					break
				}
				continue
			}
			took := max(t-at, 0).Seconds()
			ways[way{from, m}] = append(ways[way{from, m}], took)
			total += took
			at, from, onTheWay = max(t, at), m, -1
			if m == f.there {
				break
			}
		}
		if onTheWay >= 0 {
			took := max(f.end-at, 0).Seconds()
			ways[way{from, onTheWay}] = append(ways[way{from, onTheWay}], took)
			total += took
		}
	}
	list := []Wait{}
	for w, took := range ways {
		s, to := stats.NewSample(took, 0), f.names[w.to]
		wait := Wait{From: "request", To: to, For: spec.Kind.Owner(to), Mean: round(s.Mean(), 6), P99: round(s.Quantile(0.99), 6)}
		if w.from >= 0 {
			wait.From = f.names[w.from]
		}
		if total > 0 {
			wait.Share = round(100*s.Mean()*float64(len(took))/total, 1)
		}
		list = append(list, wait)
	}
	slices.SortFunc(list, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.To, y.To))
	})
	return list
}

// addCPUs adds what the CPUs of the machine did, and returns what other programs
// used of them in percent, 0 where that is no more than is tolerated.
func (n *Bottleneck) addCPUs(machine *stepUsage, usage map[string]*stepUsage) float64 {
	n.CPUs = machine.cpus
	all := float64(machine.cpus) * machine.span
	busy := round(min(100*machine.used/all, 100), 1)
	n.CPUBusy = &busy
	others := busy
	split := make(map[string]bool) // sources whose parts are known too, which say more
	for source := range usage {
		if whole, _, ok := strings.Cut(source, "/"); ok {
			split[whole] = true
		}
	}
	for source, u := range usage {
		if source == SourceMachine || source == SourceNode {
			continue
		}
		percent := round(100*u.used/all, 1)
		if !partOfAnother(source) {
			others -= percent
		}
		if !split[source] {
			n.CPUBy = append(n.CPUBy, CPUShare{source, percent})
		}
	}
	n.CPUBy = append(n.CPUBy, CPUShare{othersOf, round(max(others, 0), 1)})
	slices.SortFunc(n.CPUBy, func(x, y CPUShare) int {
		return cmp.Or(cmp.Compare(y.Percent, x.Percent), cmp.Compare(x.Source, y.Source))
	})
	if others <= othersTolerated {
		return 0
	}
	return others
}

// othersOf is the name of all programs beside the run's among the shares.
const othersOf = "others"

// String says in a phrase how far it was used up.
func (b BoundShare) String() string {
	waited := ""
	if b.Waiting != nil {
		waited = fmt.Sprintf(", %.3g waited on average", *b.Waiting)
	}
	return fmt.Sprintf("%s (%.0f%% of it used%s)", b.What, 100*b.Share, waited)
}

// by is the share of all CPUs that a source used, in percent; 0 is not known.
func (n *Bottleneck) by(source string) float64 {
	if n != nil {
		for _, u := range n.CPUBy {
			if u.Source == source {
				return u.Percent
			}
		}
	}
	return 0
}

// Of a wait that counts as grown: by how much of what is normal, and by how many
// times the lag with which all news comes.
const (
	leastGrowth = 0.2
	lagsOfWait  = 2
)

// longest says in a phrase what a closed step's objects waited for longest, and
// from where on they waited longer; "" if that is not known.
func (n *Bottleneck) longest() string {
	if n == nil || len(n.Waits) == 0 {
		return ""
	}
	w := n.Waits[0]
	text := fmt.Sprintf("the longest wait was for the %s (%s to %s: %s on average, %.0f%% of all waiting)", w.For, w.From, w.To, duration(w.Mean, 0), w.Share)
	if n.Slowdown != nil {
		text += "; " + n.Slowdown.String()
	}
	return text
}

// growth says in a phrase which wait grew the most beside what is normal, and what
// the CPUs did; "" if that is not known. A wait that is as long as ever binds
// nothing, however much of all waiting it is, and one as short as the lag of news
// is not told from it.
func (n *Bottleneck) growth(normal *judged, lag *WatchLag) string {
	if n == nil {
		return ""
	}
	var parts []string
	if len(n.Bounds) > 0 && n.bound() == nil {
		parts = append(parts, "nothing that is watched was used up")
	}
	if normal != nil && normal.Bottleneck != nil && len(n.Bounds) == 0 {
		most, by, was := Wait{}, 0.0, 0.0
		for _, w := range n.Waits {
			before := 0.0 // of a way that no object of the normal step went
			for _, x := range normal.Bottleneck.Waits {
				if x.From == w.From && x.To == w.To {
					before = x.Mean
				}
			}
			grew := w.Mean - before
			if lag != nil && lag.P50 != nil && grew <= lagsOfWait**lag.P50 || grew <= leastGrowth*before {
				continue
			}
			if grew > by {
				most, by, was = w, grew, before
			}
		}
		text := fmt.Sprintf("no wait grew beside step %d", normal.ID)
		if by > 0 {
			text = fmt.Sprintf("the wait for the %s (%s to %s) grew from %s to %s on average beside step %d", most.For, most.From, most.To, duration(was, 0), duration(most.Mean, 0), normal.ID)
		}
		parts = append(parts, text)
	}
	if n.CPUBusy != nil {
		text := fmt.Sprintf("the %d CPUs were %.0f%% busy", n.CPUs, *n.CPUBusy)
		var most []string
		for _, u := range n.CPUBy[:min(len(n.CPUBy), 3)] {
			most = append(most, fmt.Sprintf("%s %.0f%%", u.Source, u.Percent))
		}
		if len(most) > 0 {
			text += ", " + strings.Join(most, ", ")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}
