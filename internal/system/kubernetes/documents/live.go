package documents

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

// Live makes documents of objects that others make, as those of one job. It implements record.Sink.
type Live struct {
	job string

	mu     sync.Mutex
	fold   *fold
	before bool // what is reported was there before
}

// NewLive returns a Live whose events have times since start. Until Listed its objects count as there before.
func NewLive(job string, start time.Time) *Live {
	l := &Live{job: job, fold: newFold(), before: true}
	l.fold.start, l.fold.jobs[job] = start, newJobFold()
	return l
}

// Listed says that all objects that were there before are reported.
func (l *Live) Listed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = false
}

// Append implements record.Sink. Of an object that was there before, only the server's own times count.
func (l *Live) Append(e record.Event) {
	o, is := e.Body.(*record.Object)
	if !is {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	news := *o
	news.Slot = "" // a run of this program may have made it
	if nodes := l.fold.kindOf(o.Object) == kubeburner.Nodes; !nodes && l.before {
		if o.Stamp == 0 {
			return
		}
		e.T = record.MicrosOf(time.Unix(o.Stamp, 0).Sub(l.fold.start))
	} else if !nodes && o.Late {
		return // it was reached at some time before
	}
	if l.fold.kindOf(o.Object) != kubeburner.Nodes && o.Milestone == created {
		l.fold.addSlot(0, &record.Slot{Slot: o.Object, Component: l.job, Units: 1, Grouped: true, Intended: e.T, Sent: e.T, Outcome: record.SlotCreated})
	}
	e.Body = &news
	_ = l.fold.add(e) // an object's news has no error
}

// Make returns the documents of the job's measurements. No further events are taken.
func (l *Live) Make(c Configuration, environment *record.Environment) []Document {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := maker{Configuration: c, start: l.fold.start}
	m.Metadata = metadata(c.Metadata, environment)
	return m.measured(c.Jobs[0], l.fold.all()[l.job])
}

// Lines returns the quantiles in a document for people, nothing for another document.
func (d Document) Lines() (list []string) {
	figure := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return strconv.FormatInt(*n, 10)
	}
	for _, item := range d.Items {
		if q, is := item.(quantile); is {
			list = append(list, fmt.Sprintf("%s %s: P50 %s, P99 %s, max %s, avg %s ms", d.Metric, q.Name, figure(q.P50), figure(q.P99), figure(q.Max), figure(q.Avg)))
		}
	}
	return list
}
