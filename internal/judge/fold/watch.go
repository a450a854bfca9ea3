package fold

import (
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// canaries collects how late the news of a step came.
type canaries struct {
	lags   []float64 // seconds, of those that were seen
	unseen int
	list   []record.Canary // thinned where there are too many
}

func (c *canaries) add(r *record.Canary) {
	c.list = append(usage.Thinned(c.list), *r)
	if r.Seen == 0 {
		c.unseen++
		return
	}
	c.lags = append(c.lags, (r.Seen - r.Sent).Seconds())
}

// faults collects the faults that last: while there is any, what becomes of the
// objects is not known.
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
	w = record.Warning{Kind: record.WarningWatch, Seconds: (r.To - r.From).Seconds()}
	if step > 0 {
		w.Steps = []int{step}
	}
	if w.Text = r.What + ": changes during the gap are not known"; r.Healed {
		w.Text = r.What + ": nothing was lost; changes during the gap are dated to its end"
	}
	return w, true
}

// lasting says of each fault that lasts until when it did.
func (c faults) lasting(until string) []record.Warning {
	var list []record.Warning
	for _, f := range c {
		list = append(list, record.Warning{
			Kind: record.WarningWatch,
			Text: f.What + " from " + f.From.Duration().Round(time.Millisecond).String() + " on, " + until + ": the state of the objects after that is not known",
		})
	}
	return list
}
