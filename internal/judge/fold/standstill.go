package fold

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// Standstill is a time in which no write was answered, although some were under
// way all through it, and nothing moved: what stops the whole API, be it the
// store behind it or the way there.
type Standstill struct {
	From, To record.Micros
	Released int // requests that were answered together when it was over
	Evidence string
}

// Seconds is how long it was.
func (s Standstill) Seconds() float64 { return (s.To - s.From).Seconds() }

// String says it in a phrase.
func (s Standstill) String() string { return "all writes stood still for " + seconds(s.To-s.From) }

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
func (f *Facts) standstills() []Standstill {
	type write struct{ sent, replied record.Micros }
	var writes []write
	add := func(sent, replied record.Micros, answered bool) {
		if !answered {
			replied = f.End
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
	var list []Standstill
	waiting := Never
	for i := len(writes) - 1; i >= 0; i-- {
		w := writes[i]
		if waiting == Never || w.sent < waiting {
			waiting = w.sent
		}
		from := max(waiting, f.Start)
		if i > 0 {
			from = max(from, writes[i-1].replied)
		}
		if to := min(w.replied, f.End); to-from >= leastStandstill {
			list = append(list, Standstill{From: from, To: to})
		}
	}
	if d := f.readings.OwnDelay; len(list) == 0 || len(f.canaries.list) == 0 || d != nil && d.Max >= leastStandstill.Seconds()/2 {
		return nil
	}
	moved := func(s Standstill) bool {
		for _, x := range f.own {
			if x.retries > 0 && x.sent < s.To && x.replied > s.From {
				return true // it was answered, and sent again
			}
		}
		for _, x := range f.place {
			for _, o := range x.objects {
				for _, t := range o.at {
					if t > s.From+newsDelay && t < s.To-newsDelay {
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
			if x.onRecord && x.sent < s.To && x.replied >= s.To && x.replied <= s.To+releasedWithin {
				s.Released++
			}
		}
		s.Evidence = s.evidence(f)
	}
	return list
}

// evidence is what the record tells of a standstill, in a sentence.
func (s Standstill) evidence(f *Facts) string {
	parts := []string{fmt.Sprintf("no write was answered from %s to %s after the step's start, and nothing moved", seconds(s.From-f.Start), seconds(s.To-f.Start))}
	if s.Released > 0 {
		parts = append(parts, "then "+result.ManyOf("request", s.Released)+" ended together")
	}
	if idle := s.idleIn(f); idle != "" {
		parts = append(parts, idle)
	}
	if hidden := s.hiddenBy(f); hidden != "" {
		parts = append(parts, hidden)
	}
	return strings.Join(parts, "; ")
}

func seconds(t record.Micros) string { return fmt.Sprintf("%.2f s", t.Seconds()) }

// idleIn tells of the programs that used next to no processor meanwhile, and
// else did.
func (s Standstill) idleIn(f *Facts) string {
	type use struct {
		source    string
		now, rest float64
	}
	var idle []use
	for source, points := range f.readings.CPU {
		if source == usage.SourceSelf || source == usage.SourceMachine || usage.PartOfAnother(source) {
			continue
		}
		// Readings are a second apart: those that lie within it are of it.
		margin := min(record.Micros(1e6), (s.To-s.From)/4)
		now, ok := usage.CPUIn(points, s.From+margin, s.To-margin)
		u := f.readings.Usage[source]
		left := u.Span - s.Seconds()
		if !ok || left <= 0 {
			continue
		}
		now = f.readings.Percent(now)
		if other := f.readings.Percent(100 * u.Used / left); other >= 1 && now < other/10 {
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
func (s Standstill) hiddenBy(f *Facts) string {
	if f.head.Open || f.loaded == Never || s.From >= f.loaded {
		return ""
	}
	sent := 0
	for _, x := range f.own {
		if x.onRecord && (x.sent < s.From || x.sent > s.To) {
			sent++
		}
	}
	rest := (f.loaded - f.Start).Seconds() - (min(s.To, f.loaded) - s.From).Seconds()
	if rest <= 0 {
		return ""
	}
	per := float64(sent) / rest
	met := int(math.Round(per * s.Seconds()))
	if met <= s.Released {
		return ""
	}
	return fmt.Sprintf("the load waited for answers and asked for next to nothing: at its %.0f requests/s a schedule would have sent %d into it", per, met)
}
