package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// standstill is a time in which no write was answered, although some were under
// way all through it, and nothing moved: what stops the whole API, be it the
// store behind it or the way there.
type standstill struct {
	from, to record.Micros
	released int // requests that were answered together when it was over
}

func (s standstill) seconds() float64 { return (s.to - s.from).Seconds() }

const (
	// leastStandstill is how long one is at least: shorter ones are a matter of
	// disks and of garbage collection, and are seen in the latencies.
	leastStandstill = record.Micros(2e6)
	// newsDelay is how long what was done before may still be reported.
	newsDelay = record.Micros(500e3)
	// releasedWithin is how soon after its end what it held back is answered.
	releasedWithin = record.Micros(1e6)
)

// standstills are those of a step, in order. There are none where this program
// itself stood still: then it does not know; nor where nothing but the load writes:
// a request that takes long, as each may at a target without an API, is no more.
func (f *facts) standstills() []standstill {
	type write struct{ sent, replied record.Micros }
	var writes []write
	add := func(sent, replied record.Micros, answered bool) {
		if !answered {
			replied = f.end
		}
		writes = append(writes, write{sent, replied})
	}
	for _, s := range f.own {
		if s.onRecord && s.outcome != record.SlotDropped {
			add(s.sent, s.replied, s.outcome != record.SlotUnknown)
		}
	}
	for _, x := range f.canaries.list {
		add(x.Sent, x.Replied, x.Replied > 0)
	}
	slices.SortFunc(writes, func(a, b write) int { return cmp.Compare(a.replied, b.replied) })
	// Between two answers that follow each other nothing was answered: since
	// when something waited says the earliest of what was answered later.
	var list []standstill
	waiting := never
	for i := len(writes) - 1; i >= 0; i-- {
		w := writes[i]
		if waiting == never || w.sent < waiting {
			waiting = w.sent
		}
		from := max(waiting, f.start)
		if i > 0 {
			from = max(from, writes[i-1].replied)
		}
		if to := min(w.replied, f.end); to-from >= leastStandstill {
			list = append(list, standstill{from: from, to: to})
		}
	}
	if d := f.readings.ownDelay; len(list) == 0 || len(f.canaries.list) == 0 || d != nil && d.Max >= leastStandstill.Seconds()/2 {
		return nil
	}
	moved := func(s standstill) bool {
		for _, x := range f.own {
			if x.retries > 0 && x.sent < s.to && x.replied > s.from {
				return true // it was answered, and sent again
			}
		}
		for _, x := range f.place {
			for _, o := range x.objects {
				for _, t := range o.at {
					if t > s.from+newsDelay && t < s.to-newsDelay {
						return true
					}
				}
			}
		}
		return false
	}
	list = slices.DeleteFunc(list, moved)
	slices.Reverse(list)
	for i := range list {
		s := &list[i]
		for _, x := range f.own {
			if x.onRecord && x.sent < s.to && x.replied >= s.to && x.replied <= s.to+releasedWithin {
				s.released++
			}
		}
	}
	return list
}

// evidence is what the record tells of a standstill, in a sentence.
func (f *facts) evidence(s standstill) string {
	parts := []string{fmt.Sprintf("no write was answered from %s to %s after the step's start, and nothing moved", seconds(s.from-f.start), seconds(s.to-f.start))}
	if s.released > 0 {
		parts = append(parts, "then "+manyOf("request", s.released)+" ended together")
	}
	if idle := f.idleIn(s); idle != "" {
		parts = append(parts, idle)
	}
	if hidden := f.hiddenBy(s); hidden != "" {
		parts = append(parts, hidden)
	}
	return strings.Join(parts, "; ")
}

func seconds(t record.Micros) string { return fmt.Sprintf("%.2f s", t.Seconds()) }

// idleIn tells of the programs that used next to no processor meanwhile, and
// else did.
func (f *facts) idleIn(s standstill) string {
	type use struct {
		source    string
		now, rest float64
	}
	var idle []use
	for source, points := range f.readings.cpu {
		if source == SourceSelf || source == SourceMachine || partOfAnother(source) {
			continue
		}
		// Readings are a second apart: those that lie within it are of it.
		margin := min(record.Micros(1e6), (s.to-s.from)/4)
		now, ok := cpuIn(points, s.from+margin, s.to-margin)
		u := f.readings.usage[source]
		left := u.span - s.seconds()
		if !ok || left <= 0 {
			continue
		}
		now = f.readings.percent(now)
		if other := f.readings.percent(100 * u.used / left); other >= 1 && now < other/10 {
			idle = append(idle, use{source, now, other})
		}
	}
	slices.SortFunc(idle, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.now/a.rest, b.now/b.rest), cmp.Compare(a.source, b.source))
	})
	var parts []string
	for _, u := range idle[:min(len(idle), 2)] {
		parts = append(parts, fmt.Sprintf("%s used %.1f %% of the CPUs meanwhile, else %.1f %%", u.source, u.now, u.rest))
	}
	return strings.Join(parts, ", ")
}

// hiddenBy says how many requests a schedule would have sent into a standstill:
// a load that waits for answers sends none, so that few objects are slow, however
// long it takes. It is "" where a schedule did send, or the load was over.
func (f *facts) hiddenBy(s standstill) string {
	if f.head.Open || f.loaded == never || s.from >= f.loaded {
		return ""
	}
	sent := 0
	for _, x := range f.own {
		if x.onRecord && (x.sent < s.from || x.sent > s.to) {
			sent++
		}
	}
	rest := (f.loaded - f.start).Seconds() - (min(s.to, f.loaded) - s.from).Seconds()
	if rest <= 0 {
		return ""
	}
	per := float64(sent) / rest
	met := int(math.Round(per * s.seconds()))
	if met <= s.released {
		return ""
	}
	return fmt.Sprintf("the load waited for answers and asked for next to nothing: at its %.0f requests/s a schedule would have sent %d into it", per, met)
}
