package judge

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

// loadsAt is the load of a step at each of several moments, which are in
// order.
func (f *facts) loadsAt(moments []record.Micros) []StepProgress {
	loads := make([]StepProgress, len(moments)+1)
	if f.stream != nil {
		for i, t := range moments {
			loads[i].Level = f.head.Level
			if w := f.stream.windowAt(t); w != nil {
				loads[i].Backlog = w.backlog
			}
		}
		return loads[:len(moments)]
	}
	// from is the first moment at or after t: what happened at t holds from
	// there on.
	from := func(t record.Micros) int {
		i, _ := slices.BinarySearch(moments, t)
		return i
	}
	placedAt := f.of(f.kind.Placed)
	for _, s := range f.place {
		if s.outcome == record.SlotDropped {
			continue
		}
		n := s.count()
		if s.onRecord {
			loads[from(s.sent)].Asked += n
		}
		for i, o := range s.filling() {
			if i >= n {
				break
			}
			if !s.onRecord {
				loads[from(o.first)].Asked++
			}
			end := len(moments)
			if o.gone {
				if t := o.reached(f.gone); t != never {
					end = from(t)
					if f.head.Open {
						loads[end].Asked-- // it was removed as it aged
					}
				}
			}
			if o.fell != never {
				end = min(end, from(o.fell))
			}
			if t := o.reached(f.there); t != never && from(t) < end {
				loads[from(t)].There++
				loads[end].There--
			}
			if placedAt >= 0 {
				placed := len(moments)
				if t := o.reached(placedAt); t != never {
					placed = from(t)
				}
				if first := from(o.first); first < placed {
					loads[first].Unplaced++
					loads[placed].Unplaced--
				}
			}
		}
	}
	total := max(f.setOut, len(f.units))
	for i := range moments {
		if i > 0 {
			loads[i].Asked += loads[i-1].Asked
			loads[i].There += loads[i-1].There
			loads[i].Unplaced += loads[i-1].Unplaced
		}
	}
	for i := range moments {
		l := &loads[i]
		switch {
		case f.head.Open:
			l.Level = f.head.Level
		case f.places > 0:
			l.Level = round(float64(f.others+l.Asked)/float64(f.places), 6)
		case total > 0:
			l.Level = round(f.head.LevelReached*(float64(l.Asked)/float64(total)), 6)
		}
	}
	return loads[:len(moments)]
}
