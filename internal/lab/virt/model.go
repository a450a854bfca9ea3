package virt

import (
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/plan/planted"
)

// A clone is a volume to make from a parent.
type clone struct {
	key    string // of its DataVolume
	parent string
	work   time.Duration // of a worker, before the lock
	locks  bool          // needs the lock of its parent
	gib    float64
	began  time.Time // when a worker took it; zero before
	made   time.Time // when the storage had made it; zero before
}

// cloneQueue models the storage at given times: workers take clones in order, and each parent has a lock.
type cloneQueue struct {
	figures planted.Virt
	waiting []*clone
	busy    int
	parents map[string]*parent
	due     dueTimes
}

type parent struct {
	underWay int // clones that are not made yet
	made     int // clones since none was under way: not yet flattened
	waiting  []*clone
	held     bool
}

// due says when a clone's work ends, or its hold of the lock.
type due struct {
	at       time.Time
	sequence int
	clone    *clone
	lock     bool
}

type dueTimes struct {
	list []due
	next int
}

func (d *dueTimes) Len() int { return len(d.list) }
func (d *dueTimes) Less(i, j int) bool {
	a, b := d.list[i], d.list[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.sequence < b.sequence
}
func (d *dueTimes) Swap(i, j int) { d.list[i], d.list[j] = d.list[j], d.list[i] }
func (d *dueTimes) Push(x any)    { d.list = append(d.list, x.(due)) }
func (d *dueTimes) Pop() any {
	last := d.list[len(d.list)-1]
	d.list = d.list[:len(d.list)-1]
	return last
}

func newCloneQueue(figures planted.Virt) *cloneQueue {
	return &cloneQueue{figures: figures, parents: map[string]*parent{}}
}

func (q *cloneQueue) add(now time.Time, c *clone) (changed []*clone) {
	changed = q.advance(now)
	p := q.parents[c.parent]
	if p == nil {
		p = &parent{}
		q.parents[c.parent] = p
	}
	p.underWay++
	q.waiting = append(q.waiting, c)
	return append(changed, q.start(now)...)
}

// advance lets time pass, and returns the clones that a worker took or that are made.
func (q *cloneQueue) advance(now time.Time) (changed []*clone) {
	for q.due.Len() > 0 && !q.due.list[0].at.After(now) {
		d := heap.Pop(&q.due).(due)
		p := q.parents[d.clone.parent]
		switch {
		case !d.lock && d.clone.locks:
			p.waiting = append(p.waiting, d.clone)
			q.lock(d.at, p)
			continue
		case d.lock:
			p.made++
			p.held = false
		}
		d.clone.made = d.at
		if p.underWay--; p.underWay == 0 {
			delete(q.parents, d.clone.parent)
		} else {
			q.lock(d.at, p)
		}
		q.busy--
		changed = append(changed, d.clone)
		changed = append(changed, q.start(d.at)...)
	}
	return changed
}

// next returns when advance has something to do; false is never.
func (q *cloneQueue) next() (time.Time, bool) {
	if q.due.Len() == 0 {
		return time.Time{}, false
	}
	return q.due.list[0].at, true
}

func (q *cloneQueue) start(now time.Time) (started []*clone) {
	for q.busy < q.figures.CloneWorkers && len(q.waiting) > 0 {
		c := q.waiting[0]
		q.waiting = q.waiting[1:]
		c.began = now
		q.busy++
		q.schedule(now.Add(c.work), c, false)
		started = append(started, c)
	}
	return started
}

// lock gives the lock of a parent to the first clone that waits for it.
func (q *cloneQueue) lock(now time.Time, p *parent) {
	if p.held || len(p.waiting) == 0 {
		return
	}
	c := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.held = true
	beyond := max(0, p.underWay-q.figures.CloneWorkers)
	hold := time.Duration(float64(q.figures.CloneLock) * (1 + q.figures.CloneContention*float64(beyond)))
	if p.made >= q.figures.FlattenAbove {
		hold += time.Duration(float64(q.figures.FlattenPerGiB) * c.gib)
	}
	q.schedule(now.Add(hold), c, true)
}

func (q *cloneQueue) schedule(at time.Time, c *clone, lock bool) {
	q.due.next++
	heap.Push(&q.due, due{at, q.due.next, c, lock})
}

// bootLine lets machines start one after the other.
type bootLine struct {
	share, growth time.Duration
	until         time.Time
	storm         int // machines since nobody waited
}

// take returns when the turn of a machine that comes now is over.
func (b *bootLine) take(now time.Time) time.Time {
	if !now.Before(b.until) {
		b.storm, b.until = 0, now
	}
	b.until = b.until.Add(b.share + time.Duration(b.storm)*b.growth)
	b.storm++
	return b.until
}

type limits struct{ cluster, outbound int }

// gate lets migrations begin in order within the limits. One that waits for its node holds up no others.
type gate struct {
	limits  limits
	from    map[types.UID]string // the source node of each that is under way
	waiting []candidate
}

type candidate struct {
	id        types.UID
	key, node string
}

func newGate() *gate { return &gate{from: map[types.UID]string{}} }

// ask queues a migration, and reports whether it may begin. A migration may ask again.
func (g *gate) ask(c candidate) bool {
	if _, ok := g.from[c.id]; ok {
		return true
	}
	if i := slices.IndexFunc(g.waiting, func(w candidate) bool { return w.id == c.id }); i >= 0 {
		g.waiting[i] = c
		return false
	}
	g.waiting = append(g.waiting, c)
	g.admit()
	_, ok := g.from[c.id]
	return ok
}

// done removes a migration, wherever it stands, and returns the keys of those that may begin.
func (g *gate) done(id types.UID) []string {
	delete(g.from, id)
	g.waiting = slices.DeleteFunc(g.waiting, func(c candidate) bool { return c.id == id })
	return g.admit()
}

func (g *gate) admit() (keys []string) {
	g.waiting = slices.DeleteFunc(g.waiting, func(c candidate) bool {
		if !g.room(c.node) {
			return false
		}
		g.from[c.id] = c.node
		keys = append(keys, c.key)
		return true
	})
	return keys
}

// room reports whether a migration from a node could begin now.
func (g *gate) room(node string) bool {
	from := 0
	for _, n := range g.from {
		if n == node {
			from++
		}
	}
	return len(g.from) < g.limits.cluster && from < g.limits.outbound
}
