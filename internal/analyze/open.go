package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/stats"
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
	return d != nil && d.Wakes > 0 && float64(d.Late) > tolerated*float64(d.Wakes)
}

// SourceWakes is the name of this program's own delays among the sources of
// samples.
const SourceWakes = "wakes"

func (b *Builder) addWakes(r *record.Sample) {
	if b.current == nil {
		return
	}
	made, _ := reading(r, "wakes")
	late, _ := reading(r, "late")
	most, _ := reading(r, "mostSeconds")
	if b.current.OwnDelay == nil {
		b.current.OwnDelay = &OwnDelay{}
	}
	d := b.current.OwnDelay
	d.Wakes, d.Late, d.Max = d.Wakes+int(made), d.Late+int(late), max(d.Max, round(most, 6))
}

// held reports whether the target held back so many arrivals that the rate
// was not achieved.
func (a *Arrivals) held() bool {
	return a.Judged > 0 && (a.Dropped > 0 || 100*float64(a.Late)/float64(a.Judged) > lateTolerated)
}

// timeArrivals fills in the rates of a step whose requests came by a schedule.
func (b *Builder) timeArrivals(c *building, f *facts) {
	a := &Arrivals{}
	c.Arrivals = a
	if c.reached == never {
		return
	}
	end := min(c.reached+c.hold, c.end)
	hold := end - c.reached
	var own []float64
	there, deletions := 0, 0
	within := func(t record.Micros) bool { return t != never && t >= c.reached && t < end }
	for _, s := range c.slots {
		for _, o := range s.objects {
			if within(o.reached(b.arrived)) {
				there++
			}
			if within(o.reached(b.milestone(milestoneDeleted))) {
				deletions++
			}
		}
		if !c.judges(s) {
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
		if s.told {
			own = append(own, max(s.sent-s.intended-s.waited, 0).Seconds())
		}
	}
	if hold <= 0 {
		return
	}
	a.OwnDelayP99 = finite(stats.NewSample(own, 0).Quantile(0.99))
	a.DeletionsPerSecond = *rate(deletions, hold)
	c.OfferedRate = rate(a.Judged, hold)
	c.AchievedRate = rate(there, hold)
	if *c.OfferedRate > 0 {
		achieved := 100 * *c.AchievedRate / *c.OfferedRate
		f.achieved = &achieved
	}
}

// ownerOf is whose work it is that an object reaches a milestone.
func ownerOf(milestone string) string {
	switch milestone {
	case milestoneCreated:
		return "API server"
	case "Scheduled":
		return "scheduler"
	}
	return "nodes"
}

// findBottleneck finds out what the step's own objects waited for.
func (b *Builder) findBottleneck(c *building, f *facts) {
	n := &Bottleneck{Waits: []Wait{}}
	type way struct{ from, to int }
	ways := make(map[way][]float64)
	total := 0.0
	for _, u := range f.units {
		if !u.own || u.slot.outcome == record.SlotDropped {
			continue
		}
		at, from := u.slot.zero, -1
		if !u.slot.told {
			if u.object == nil {
				continue
			}
			at = u.object.first
		}
		onTheWay := -1 // to the first milestone that none of those reached follows
		for m, name := range b.names {
			if name == milestoneDeleted {
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
				if m == b.arrived {
					break
				}
				continue
			}
			took := max(t-at, 0).Seconds()
			ways[way{from, m}] = append(ways[way{from, m}], took)
			total += took
			at, from, onTheWay = max(t, at), m, -1
			if m == b.arrived {
				break
			}
		}
		if onTheWay >= 0 {
			took := max(c.end-at, 0).Seconds()
			ways[way{from, onTheWay}] = append(ways[way{from, onTheWay}], took)
			total += took
		}
	}
	for w, took := range ways {
		s := stats.NewSample(took, 0)
		wait := Wait{From: "request", To: b.names[w.to], For: ownerOf(b.names[w.to]), Mean: round(s.Mean(), 6), P99: round(s.Quantile(0.99), 6)}
		if w.from >= 0 {
			wait.From = b.names[w.from]
		}
		if total > 0 {
			wait.Share = round(100*s.Mean()*float64(len(took))/total, 1)
		}
		n.Waits = append(n.Waits, wait)
	}
	slices.SortFunc(n.Waits, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.To, y.To))
	})
	if m, ok := c.usage[SourceMachine]; ok && m.cpus > 0 && m.span > 0 {
		n.CPUs = m.cpus
		all := float64(m.cpus) * m.span
		busy := round(min(100*m.used/all, 100), 1)
		n.CPUBusy = &busy
		others := busy
		split := make(map[string]bool) // sources whose parts are told too, which say more
		for source := range c.usage {
			if whole, _, ok := strings.Cut(source, "/"); ok {
				split[whole] = true
			}
		}
		for source, u := range c.usage {
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
		n.CPUBy = append(n.CPUBy, CPUShare{"others", round(max(others, 0), 1)})
		if others > othersTolerated {
			b.disturbed++
			b.others = max(b.others, others)
		}
		slices.SortFunc(n.CPUBy, func(x, y CPUShare) int {
			return cmp.Or(cmp.Compare(y.Percent, x.Percent), cmp.Compare(x.Source, y.Source))
		})
	}
	if len(n.Waits) > 0 || n.CPUs > 0 {
		c.Bottleneck = n
	}
}

// String says in a phrase what bound, "" if that is not known.
func (n *Bottleneck) String() string {
	if n == nil {
		return ""
	}
	var parts []string
	if len(n.Waits) > 0 && n.Waits[0].Share > 0 {
		w := n.Waits[0]
		parts = append(parts, fmt.Sprintf("%.0f%% of all waiting was for the %s (%s to %s, p99 %s)", w.Share, w.For, w.From, w.To, duration(w.P99, 0)))
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
