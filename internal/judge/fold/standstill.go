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

// Standstill is a time in which writes were under way, none was answered, and nothing moved.
type Standstill struct {
	From, To record.Micros
	Released int // requests that were answered together when it was over
	Evidence string
}

// Seconds returns how long it lasted.
func (s Standstill) Seconds() float64 { return (s.To - s.From).Seconds() }

func (s Standstill) String() string { return "all writes stood still for " + seconds(s.To-s.From) }

const (
	leastStandstill = record.Micros(2e6)   // shortest one that counts: disks and garbage collection cause shorter ones
	newsDelay       = record.Micros(500e3) // longest time after which earlier changes may still be reported
	releasedWithin  = record.Micros(1e6)   // time after its end within which the requests that it held back are answered
)

// standstills returns a step's standstills, unless this program stood still or only the load writes.
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
	for _, x := range f.canaries.List {
		add(x.Sent, x.Replied, x.Replied > 0)
	}
	slices.SortFunc(writes, func(a, b write) int { return cmp.Compare(a.replied, b.replied) })
	// Since when something waited says the earliest of what was answered later.
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
	if d := f.readings.OwnDelay; len(list) == 0 || len(f.canaries.List) == 0 || d != nil && d.Max >= leastStandstill.Seconds()/2 {
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

// idleIn names the programs that used next to no processor meanwhile, and did otherwise.
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
		margin := min(record.Micros(1e6), (s.To-s.From)/4) // readings are a second apart
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
		parts = append(parts, fmt.Sprintf("%s used %.1f%% of the CPUs meanwhile, else %.1f%%", u.source, u.now, u.rest))
	}
	return strings.Join(parts, ", ")
}

// hiddenBy says how many requests a schedule would have sent into a standstill, in which a load that
// waits sends none and has few slow objects; "" where a schedule did send, or the load was over.
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
