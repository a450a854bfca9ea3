package load

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// recorded keeps a stream's requests for the record: the slowest, and the first that failed.
type recorded struct {
	most            int
	slowest, failed []record.Request
}

func (r *recorded) add(x record.Request) {
	if x.Failed != "" {
		if len(r.failed) < r.most {
			r.failed = append(r.failed, x)
		}
		return
	}
	n := len(r.slowest)
	if n == r.most && !slower(x, r.slowest[n-1]) {
		return
	}
	at, _ := slices.BinarySearchFunc(r.slowest, x, func(a, b record.Request) int {
		if slower(b, a) {
			return 1
		}
		return -1
	})
	r.slowest = slices.Insert(r.slowest, at, x)[:min(n+1, r.most)]
}

func slower(a, b record.Request) bool { return a.Ended-a.Intended > b.Ended-b.Intended }

// merge adds the requests of another part of the stream.
func (r *recorded) merge(other recorded) {
	for _, x := range other.slowest {
		r.add(x)
	}
	r.failed = append(r.failed, other.failed...)
	slices.SortStableFunc(r.failed, func(a, b record.Request) int { return cmp.Compare(a.Ended, b.Ended) })
	r.failed = r.failed[:min(len(r.failed), r.most)]
}

// note keeps the ended request, if it belongs to the hold.
func (c *conn) note(x system.Outcome) {
	if c.plan.Record == 0 || x.Lost || c.intended < c.Begin+record.MicrosOf(c.Warm) {
		return
	}
	c.recorded.add(record.Request{
		Place: c.plan.Hosts[c.host].Name, Intended: c.intended, Sent: c.began, Ended: c.last, Status: c.answer.Status,
		Failed: x.Failed, Retried: c.retries > 0, BytesIn: x.BytesIn, BytesOut: x.BytesOut,
	})
}
