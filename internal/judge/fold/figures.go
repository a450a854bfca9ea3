package fold

import (
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// FiguresIn returns a step's conditions between two moments. A request counts with all of its time.
func (f *Facts) FiguresIn(from, to record.Micros, load result.StepProgress) map[string]float64 {
	figures := make(map[string]float64)
	for source, points := range f.readings.CPU {
		used, ok := usage.CPUIn(points, from, to)
		if !ok {
			continue
		}
		if used = f.readings.Percent(used); source == usage.SourceMachine {
			figures[result.FigureMachine] = used
		} else {
			figures[result.FigureCPU+source] = used
		}
	}
	var service []float64
	var edges []edge
	for _, s := range f.own {
		if !s.onRecord || s.outcome == record.SlotDropped || s.sent > to || s.replied < from {
			continue
		}
		edges = append(edges, edge{max(s.sent, from), 1}, edge{s.replied, -1})
		service = append(service, (s.replied - s.sent).Seconds())
	}
	figures[result.FigureInFlight] = float64(mostAtOnce(edges))
	put := func(name string, values []float64) {
		if len(values) > 0 {
			figures[name] = result.Round(stats.NewSample(values, 0).Quantile(0.5), 6)
		}
	}
	put(result.FigureRequest, service)
	var latency, lag []float64
	for _, x := range f.canaries.List {
		if x.Sent > to || max(x.Replied, x.Seen, x.Sent) < from {
			continue
		}
		if x.Replied > 0 {
			latency = append(latency, (x.Replied - x.Sent).Seconds())
		}
		if x.Seen > 0 {
			lag = append(lag, (x.Seen - x.Sent).Seconds())
		}
	}
	put(result.FigureAPI, latency)
	put(result.FigureWatchLag, lag)
	f.Account.addFigures(figures, to, load)
	return figures
}

func (objectAccount) addFigures(figures map[string]float64, _ record.Micros, load result.StepProgress) {
	figures[result.FigurePending], figures[result.FigureUnplaced] = float64(load.Pending()), float64(load.Unplaced)
}

// MostPending returns the load at the moment up to t with the most of the step's own requests pending.
func (f *Facts) MostPending(t record.Micros) result.StepProgress {
	const moments = 256 // evenly spread: exact enough to compare with
	times := make([]record.Micros, 0, moments)
	for i := range record.Micros(moments) {
		at := f.Start + (t-f.Start)*(i+1)/moments
		if len(times) == 0 || at > times[len(times)-1] {
			times = append(times, at)
		}
	}
	var most result.StepProgress
	for _, l := range f.Account.LoadsAt(times) {
		if l.Pending() > most.Pending() {
			most.Asked, most.There = l.Asked, l.There
		}
		most.Unplaced, most.Backlog = max(most.Unplaced, l.Unplaced), max(most.Backlog, l.Backlog)
	}
	return most
}

// peaksOf returns a step's figures for its signatures: the most of counts and uses, the median of times.
func peaksOf(c *Measured, spec *result.Spec, f *Facts) map[string]float64 {
	figures := make(map[string]float64)
	if len(spec.Signatures) == 0 {
		return figures
	}
	maps.Copy(figures, f.FiguresIn(f.Start, f.End, f.MostPending(f.End)))
	for source, points := range f.readings.CPU {
		peak, ok := usage.PeakCPU(points)
		if !ok {
			// Figures of signatures are in percent of one processor.
			delete(figures, result.FigureCPU+source)
			continue
		}
		if source != usage.SourceMachine {
			figures[signature.FigureCPU+source] = peak
		} else if cpus := f.readings.Usage[source].CPUs; cpus > 0 {
			figures[signature.FigureMachine] = result.Round(peak/float64(cpus), 1)
		}
	}
	for source, u := range c.Resources {
		if u.PeakMemory() > 0 {
			figures[signature.FigureMemory+source] = float64(u.PeakMemory())
		}
	}
	for of, n := range f.made {
		name := signature.FigureMade(of.kind)
		figures[name] = max(figures[name], float64(n))
	}
	figures[signature.FigureThrottled] = float64(c.Retries429)
	return figures
}

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
	placedAt, last := f.find(f.kind.Placed), len(loads)-1
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
		if t := o.reached(s.arrival); t != Never && from(t) < end {
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
