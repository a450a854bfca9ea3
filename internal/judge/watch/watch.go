package watch

import (
	"cmp"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// Canaries collects how late the news of a step came.
type Canaries struct {
	Unseen int             // changes without news
	List   []record.Canary // changes that were made, thinned where there are too many
	Gaps   []record.Fault  // faults that are over

	lags []float64                  // of the changes that were seen, in seconds
	seen map[string][]news          // by watch, in order
	lost map[string][]record.Micros // the replies to changes without news, by watch
}

// NewCanaries returns the canaries of a step that begins.
func NewCanaries() Canaries {
	return Canaries{seen: make(map[string][]news), lost: make(map[string][]record.Micros)}
}

// news is a change that was seen; its lag begins with the reply to the change.
type news struct{ at, lag record.Micros }

// Add takes in a canary.
func (c *Canaries) Add(r *record.Canary) {
	if r.Beside {
		return
	}
	if r.Of == "" {
		c.List = append(usage.Thinned(c.List), *r)
	}
	if r.Seen == 0 {
		c.Unseen++
		c.lost[r.Of] = append(c.lost[r.Of], max(r.Replied, r.Sent))
		return
	}
	c.lags = append(c.lags, (r.Seen - r.Sent).Seconds())
	list := c.seen[r.Of]
	n := news{r.Seen, max(r.Seen-r.Replied, 0)}
	if last := len(list) - 1; last >= 0 && n.at <= list[last].at {
		list[last].lag = max(list[last].lag, n.lag) // one message reported both
		return
	}
	c.seen[r.Of] = append(list, n)
}

// Close ends the collection of a step. Where a change's news never came, all may be late until some came.
func (c *Canaries) Close(end record.Micros) {
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
			c.Gaps = append(c.Gaps, gap)
			lost = slices.DeleteFunc(lost, func(t record.Micros) bool { return t <= gap.To })
		}
	}
	c.lost = nil
}

const afterGap = record.Micros(1e6) // time after a gap during which news of the gap may still come

// LagAt returns how late news at a time may have been: as the seen changes beside it, or a gap's length.
func (c *Canaries) LagAt(t record.Micros) (lag record.Micros) {
	for _, list := range c.seen {
		i, _ := slices.BinarySearchFunc(list, t, func(n news, t record.Micros) int { return cmp.Compare(n.at, t) })
		for _, n := range list[max(i-1, 0):min(i+1, len(list))] {
			lag = max(lag, n.lag)
		}
	}
	for _, g := range c.Gaps {
		if t >= g.From && t <= g.To+afterGap {
			lag = max(lag, t-g.From)
		}
	}
	return lag
}

// Most returns the longest lag or gap.
func (c *Canaries) Most() (lag record.Micros) {
	for _, list := range c.seen {
		for _, n := range list {
			lag = max(lag, n.lag)
		}
	}
	for _, g := range c.Gaps {
		lag = max(lag, g.To-g.From)
	}
	return lag
}

// Lag returns how late the news of the step came, nil where that was not measured.
func (c *Canaries) Lag() *result.WatchLag {
	n := len(c.lags) + c.Unseen
	if n == 0 {
		return nil
	}
	lag := stats.NewSample(c.lags, c.Unseen)
	return &result.WatchLag{N: n, Unseen: c.Unseen, P50: result.Finite(lag.Quantile(0.5)), P99: result.Finite(lag.Quantile(0.99))}
}

// Faults collects the faults that last. While there is any, the state of the objects is unknown.
type Faults []record.Fault

// Add takes in a fault, and returns the warning about one that is over. The step is 0 outside of any.
func (c *Faults) Add(r *record.Fault, step int) (w record.Warning, over bool) {
	if r.To == 0 {
		*c = append(*c, *r)
		return w, false
	}
	if i := slices.IndexFunc(*c, func(f record.Fault) bool { return f.What == r.What }); i >= 0 {
		*c = slices.Delete(*c, i, i+1)
	}
	w = Warning(step)
	w.Seconds = (r.To - r.From).Seconds()
	switch {
	case r.Late:
		w.Text = r.What + ": its news came more than 2 s after it was published, or not before a list"
	case r.Healed:
		w.Text = r.What + ": nothing was lost; changes during the gap are dated to its end"
	default:
		w.Text = r.What + ": changes during the gap are unknown"
	}
	return w, true
}

// Blind reports whether the state of the objects is unknown. A step waits at its end for late news; news
// that never comes is a fault of its own.
func (c Faults) Blind() bool {
	return slices.ContainsFunc(c, func(f record.Fault) bool { return !f.Beside && !f.Late })
}

// Lasting returns a warning for each fault that lasts.
func (c Faults) Lasting(until string) (list []record.Warning) {
	for _, f := range c {
		unknown := "the state of the objects after that is unknown"
		if f.Beside {
			unknown = "its news after that is unknown"
		}
		list = append(list, record.Warning{
			Kind: record.WarningWatch,
			Text: f.What + " from " + f.From.Duration().Round(time.Millisecond).String() + " on, " + until + ": " + unknown,
		})
	}
	return list
}

// Warning returns an empty warning about the watches, of a step or of 0 for none.
func Warning(step int) record.Warning {
	w := record.Warning{Kind: record.WarningWatch}
	if step > 0 {
		w.Steps = []int{step}
	}
	return w
}
