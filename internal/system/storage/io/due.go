package io

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// line reconstructs the IOs of one fio at a fixed rate. The n-th is due n periods after fio began; fio
// does late ones later, and counts latencies from submission.
type line struct {
	rates map[string]float64 // IOs per second by side; a side without follows others
	free  []float64          // when each place of the depth is free, in ns since fio began
	done  map[string]uint64  // IOs by side
	ran   time.Duration      // at the last report
	rng   *rand.Rand
}

// inexact bounds the difference between the time of a report and that of its counts.
const inexact = 20 * time.Millisecond

// leastSought is the least latency, as a share of a report's interval, whose position matters.
const leastSought = 0.01

type inLine struct { // one IO, in ns
	side      string
	due       float64
	took      float64 // since its submission
	submitted float64
	over      float64 // completion
}

// newLine begins after the work in a report.
func newLine(rates map[string]float64, depth int, before fio.Report, seed uint64) *line {
	q := &line{rates: rates, free: make([]float64, max(depth, 1)), done: make(map[string]uint64), ran: before.Ran, rng: rand.New(rand.NewPCG(seed, 0))}
	for name, x := range before.Sides {
		q.done[name] = x.Bins.N()
	}
	return q
}

// since returns the IOs completed since the last report by their times from submission. Their order is
// unknown, but the longest stop all others: they are as late as possible, and later ones waited.
func (q *line) since(took map[string]fio.Bins, ran time.Duration) (ios []inLine) {
	lists := make(map[string][]float64)
	longest := ""
	most := 0.0
	for _, name := range fio.SidesInOrder() {
		for ns, n := range took[name] {
			for range n {
				lists[name] = append(lists[name], float64(ns))
			}
		}
		list := lists[name]
		slices.Sort(list)
		q.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		if len(list) > 0 && q.rates[name] > 0 && slices.Max(list) > most {
			longest, most = name, slices.Max(list)
		}
	}
	var together, others []float64 // the longest ones, in flight together
	for _, ns := range lists[longest] {
		if ns > most/2 && len(together) < len(q.free) {
			together = append(together, ns)
		} else {
			others = append(others, ns)
		}
	}
	try := func(at int) float64 {
		lists[longest] = slices.Concat(others[:at], together, others[at:])
		_, free := q.run(lists, math.Inf(1))
		return slices.Max(free)
	}
	end := float64(ran)
	if most > leastSought*float64(ran-q.ran) {
		try(sort.Search(len(others), func(i int) bool { return try(i+1) > end }))
	}
	ios, q.free = q.run(lists, end)
	q.ran = ran
	for name, list := range lists {
		q.done[name] += uint64(len(list))
	}
	return ios
}

// run replays the IOs in order, completed between the last report and end. Syncs, which have no rate, are
// spread among the others, and begin when these end.
func (q *line) run(lists map[string][]float64, end float64) (ios []inLine, free []float64) {
	var syncs []inLine
	for _, name := range fio.SidesInOrder() {
		for i, ns := range lists[name] {
			x := inLine{side: name, took: ns}
			if rate := q.rates[name]; rate > 0 {
				x.due = float64(q.done[name]+uint64(i)) / rate * 1e9
				ios = append(ios, x)
			} else {
				syncs = append(syncs, x)
			}
		}
	}
	slices.SortStableFunc(ios, func(a, b inLine) int { return cmp.Compare(a.due, b.due) })
	free = slices.Clone(q.free)
	all := make([]inLine, 0, len(ios)+len(syncs))
	next := 0
	take := func(x inLine, place int) {
		x.submitted = max(x.due, free[place])
		if q.rates[x.side] == 0 {
			x.due = x.submitted
		}
		x.over = min(max(x.submitted+x.took, float64(q.ran-inexact)), end)
		free[place] = x.over
		all = append(all, x)
	}
	for i, x := range ios {
		place := slices.Index(free, slices.Min(free))
		take(x, place)
		for ; next < len(syncs)*(i+1)/len(ios); next++ {
			take(syncs[next], place)
		}
	}
	for ; next < len(syncs); next++ {
		take(syncs[next], 0)
	}
	return all, free
}

// latency returns the time from due to completion in ns, at least fio's count.
func (x inLine) latency() float64 { return max(x.over-x.due, x.took) }
