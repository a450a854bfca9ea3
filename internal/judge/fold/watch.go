package fold

import (
	"cmp"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// canaries collects how late the news of a step came.
type canaries struct {
	lags   []float64 // seconds, of those that were seen
	unseen int
	list   []record.Canary   // of changes that were made, thinned where there are too many
	seen   map[string][]news // by watch, in order
	// lost are, by watch, when the changes were answered whose news never came.
	lost map[string][]record.Micros
	gaps []record.Fault // that are over
}

// news is a change that was seen, and how long after its reply: a server that is slow
// to take a change is no late watch.
type news struct{ at, lag record.Micros }

func (c *canaries) add(r *record.Canary) {
	if r.Beside {
		return
	}
	if r.Of == "" {
		c.list = append(usage.Thinned(c.list), *r)
	}
	if r.Seen == 0 {
		c.unseen++
		if c.lost == nil {
			c.lost = make(map[string][]record.Micros)
		}
		c.lost[r.Of] = append(c.lost[r.Of], max(r.Replied, r.Sent))
		return
	}
	c.lags = append(c.lags, (r.Seen - r.Sent).Seconds())
	if c.seen == nil {
		c.seen = make(map[string][]news)
	}
	list := c.seen[r.Of]
	n := news{r.Seen, max(r.Seen-r.Replied, 0)}
	if last := len(list) - 1; last >= 0 && n.at <= list[last].at {
		list[last].lag = max(list[last].lag, n.lag) // one message told of both
		return
	}
	c.seen[r.Of] = append(list, n)
}

// close ends the collection at the end of a step. Where the news of a change never came,
// all news of that watch may be late until some came again.
func (c *canaries) close(end record.Micros) {
	for of, lost := range c.lost {
		for len(lost) > 0 {
			from := slices.Min(lost)
			gap := record.Fault{From: from, To: max(end, from)}
			for _, n := range c.seen[of] {
				if n.at >= gap.From {
					gap.To = n.at
					break
				}
			}
			c.gaps = append(c.gaps, gap)
			lost = slices.DeleteFunc(lost, func(t record.Micros) bool { return t <= gap.To })
		}
	}
	c.lost = nil
}

// afterGap is how long after a gap in the news that of the gap comes.
const afterGap = record.Micros(1e6)

// lagAt is how late news that came at a time may have been: as late as that of the
// changes that were seen next to it, or as a gap that it came out of was long.
func (c *canaries) lagAt(t record.Micros) (lag record.Micros) {
	for _, list := range c.seen {
		i, _ := slices.BinarySearchFunc(list, t, func(n news, t record.Micros) int { return cmp.Compare(n.at, t) })
		for _, n := range list[max(i-1, 0):min(i+1, len(list))] {
			lag = max(lag, n.lag)
		}
	}
	for _, g := range c.gaps {
		if t >= g.From && t <= g.To+afterGap {
			lag = max(lag, t-g.From)
		}
	}
	return lag
}

// most is the longest of all.
func (c *canaries) most() (lag record.Micros) {
	for _, list := range c.seen {
		for _, n := range list {
			lag = max(lag, n.lag)
		}
	}
	for _, g := range c.gaps {
		lag = max(lag, g.To-g.From)
	}
	return lag
}

// faults collects the faults that last: while there is any, what becomes of the
// objects is unknown.
type faults []record.Fault

// add takes in a fault, and returns what the reader must know of one that is
// over. The step is the one under way, 0 for none.
func (c *faults) add(r *record.Fault, step int) (w record.Warning, over bool) {
	if r.To == 0 {
		*c = append(*c, *r)
		return w, false
	}
	if i := slices.IndexFunc(*c, func(f record.Fault) bool { return f.What == r.What }); i >= 0 {
		*c = slices.Delete(*c, i, i+1)
	}
	w = watchWarning(step)
	w.Seconds = (r.To - r.From).Seconds()
	if r.Late {
		w.Text = r.What + ": its news came more than 2 s after it was published, or not before a list"
		return w, true
	}
	if w.Text = r.What + ": changes during the gap are unknown"; r.Healed {
		w.Text = r.What + ": nothing was lost; changes during the gap are dated to its end"
	}
	return w, true
}

// blind reports whether what becomes of the objects is unknown. News that is late is
// waited for at the end of a step: that it does not come is a fault of its own.
func (c faults) blind() bool {
	return slices.ContainsFunc(c, func(f record.Fault) bool { return !f.Beside && !f.Late })
}

func watchWarning(step int) record.Warning {
	w := record.Warning{Kind: record.WarningWatch}
	if step > 0 {
		w.Steps = []int{step}
	}
	return w
}

// AddCorrected takes in what a list has shown, and returns what the reader must know
// of it.
func (c *Collector) AddCorrected(r *record.Corrected) record.Warning {
	step := 0
	if f := c.current; f != nil {
		step = f.head.ID
		if f.head.Missed == nil {
			f.head.Missed = make(map[string]int)
		}
		f.head.Missed[r.Watch] += r.Missed
	}
	w := watchWarning(step)
	w.Text, w.Count = "the watch of "+r.Watch+" missed changes, which a list showed", r.Missed
	return w
}

// lasting says of each fault that lasts until when it did.
func (c faults) lasting(until string) []record.Warning {
	var list []record.Warning
	for _, f := range c {
		list = append(list, record.Warning{
			Kind: record.WarningWatch,
			Text: f.What + " from " + f.From.Duration().Round(time.Millisecond).String() + " on, " + until + ": " + unknown(f.Beside),
		})
	}
	return list
}

// unknown says what is unknown while news does not come.
func unknown(beside bool) string {
	if beside {
		return "what they told after that is unknown"
	}
	return "the state of the objects after that is unknown"
}
