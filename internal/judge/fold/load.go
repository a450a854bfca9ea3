package fold

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

func (f objectAccount) LoadsAt(moments []record.Micros) []result.StepProgress {
	loads := make([]result.StepProgress, len(moments)+1)
	from := func(t record.Micros) int { // the first moment at or after t: from there on it counts
		i, _ := slices.BinarySearch(moments, t)
		return i
	}
	for _, s := range f.place {
		if s.outcome != record.SlotDropped {
			f.addLoad(loads, s, from)
		}
	}
	total := max(f.setOut, len(f.units))
	for i := range moments {
		l := &loads[i]
		if i > 0 {
			l.Asked += loads[i-1].Asked
			l.There += loads[i-1].There
			l.Unplaced += loads[i-1].Unplaced
		}
		switch {
		case f.head.Open:
			l.Level = f.head.Level
		case f.places > 0:
			l.Level = result.Round(float64(f.Others+l.Asked)/float64(f.places), 6)
		case total > 0:
			l.Level = result.Round(f.head.LevelReached*(float64(l.Asked)/float64(total)), 6)
		}
	}
	return loads[:len(moments)]
}

func (f *Facts) addLoad(loads []result.StepProgress, s *slot, from func(record.Micros) int) {
	placedAt, last := f.of(f.kind.Placed), len(loads)-1
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
		end := last
		if o.gone {
			if t := o.reached(f.gone); t != Never {
				end = from(t)
				if f.head.Open {
					loads[end].Asked-- // it was removed as it aged
				}
			}
		}
		if o.fell != Never {
			end = min(end, from(o.fell))
		}
		if t := o.reached(f.there); t != Never && from(t) < end {
			loads[from(t)].There++
			loads[end].There--
		}
		if placedAt >= 0 {
			placed := last
			if t := o.reached(placedAt); t != Never {
				placed = from(t)
			}
			if first := from(o.first); first < placed {
				loads[first].Unplaced++
				loads[placed].Unplaced--
			}
		}
	}
}
