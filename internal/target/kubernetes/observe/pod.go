// Package observe turns news of objects into milestones: a pure state machine
// that reads no clock, knows no server and judges nothing. Whoever receives
// news stamps it and hands it over; out come the events of the history.
package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Milestones of a pod, in the order in which a kubelet reaches them.
const (
	Requested                 = "Requested" // the owner of a pod that a controller makes was requested
	Created                   = "Created"
	Scheduled                 = "Scheduled"
	PodReadyToStartContainers = "PodReadyToStartContainers"
	Initialized               = "Initialized"
	ImagesReady               = "ImagesReady" // by events, whose news is apart from the pod's own: it may come after ContainersStarted
	ContainersStarted         = "ContainersStarted"
	ContainersReady           = "ContainersReady"
	Ready                     = "Ready"
	Deleted                   = "Deleted"
)

// Condition is one of the pod's conditions as a message tells it.
type Condition struct {
	True    bool
	Known   bool // the message has this condition
	Reason  string
	Message string
	Stamp   int64 // server's time of the last transition, in seconds since 1970
}

// Index of a condition in Pod.Conditions.
const (
	CondScheduled = iota
	CondReadyToStart
	CondInitialized
	CondContainersReady
	CondReady
	numConditions
)

// Phase is the pod's phase.
type Phase byte

// The phases of a pod.
const (
	PhaseUnknown Phase = iota
	PhasePending
	PhaseRunning
	PhaseSucceeded
	PhaseFailed
)

// Trouble is what a container says of itself when it does not run.
type Trouble struct {
	Reason  string // empty: no trouble
	Message string
}

// Pod is what one message tells of a pod.
type Pod struct {
	Name      string // namespace/name
	UID       string
	Slot      string // the slot it fills; equal to Name for a pod that we created
	Component string
	Node      string
	Phase     Phase
	Deleting  bool
	Created   int64 // server's time of creation, in seconds since 1970

	Conditions [numConditions]Condition
	// Containers is how many the pod has, those that initialise it included.
	Containers int
	// Started says that every container runs or has run; StartedStamp is
	// when the last one started by the node's clock.
	Started      bool
	StartedStamp int64
	Restarts     int
	// Trouble is that of the first container that has one; Reason and Message
	// of the pod's own status (Evicted) come before it.
	Trouble Trouble
}

// Change says how a message came.
type Change byte

// The ways in which news of an object comes.
const (
	Changed Change = iota // the watch told of it
	Gone                  // the watch told of its deletion
	Listed                // a list had it, after a gap in the watch
)

// Counts sums up the objects that are followed. No object is in two of Ready,
// Failed and Unschedulable.
type Counts struct {
	Seen          int // created, by what was seen
	Ready         int // ready now
	Failed        int // done without being ready: they never will be
	Unschedulable int // the scheduler finds no place for them now
	Gone          int // deleted
	// Moved is when an object last reached a milestone, went, or changed
	// from one of the above to another.
	Moved record.Micros
}

type pod struct {
	uid     string
	slot    string // "" when it equals the name
	node    string
	reached uint16 // bit i: milestone i was reached
	listed  int    // the list that last had it
	// pulled are those of its containers whose images are on the node, until
	// all are.
	containers int
	pulled     []string
	// restarts is how many times its containers were started anew.
	restarts int
	standing
}

// standing is how a pod stands by what it last told.
type standing struct {
	ready         bool
	done          bool // its containers have ended for good
	unschedulable bool
	reason        string // what keeps it from being ready, "" for nothing
	message       string
}

// Tracker follows the pods of a run. Its methods are not safe for concurrent
// use.
type Tracker struct {
	emit   func(record.Micros, record.Body)
	pods   map[string]*pod
	counts Counts
	list   int
}

// NewTracker makes a Tracker that hands its events to emit.
func NewTracker(emit func(record.Micros, record.Body)) *Tracker {
	return &Tracker{emit: emit, pods: make(map[string]*pod)}
}

// Counts sums up the pods that are followed.
func (t *Tracker) Counts() Counts { return t.counts }

// Forget drops all that is known, for a target that was emptied.
func (t *Tracker) Forget() {
	clear(t.pods)
	t.counts = Counts{Moved: t.counts.Moved}
}

// BeginList starts a list that was made because news may have been missed:
// every pod of it is handed over as Listed, then EndList follows. A list that
// fails halfway is given up by beginning another one.
func (t *Tracker) BeginList() { t.list++ }

// EndList takes pods that the list did not have for deleted at a time before
// now.
func (t *Tracker) EndList(now record.Micros) {
	for name, p := range t.pods {
		if p.listed != t.list {
			t.gone(now, name, p, true)
		}
	}
}

// Apply takes in one message that was received at now.
func (t *Tracker) Apply(now record.Micros, change Change, m *Pod) {
	late := change == Listed
	p := t.pods[m.Name]
	if p != nil && p.uid != m.UID {
		// The name was given to another pod: the old one's deletion was
		// missed, or comes after the new one's news.
		if change == Gone {
			return
		}
		t.gone(now, m.Name, p, true)
		p = nil
	}
	if p == nil {
		if change == Gone {
			// A pod that came and went within a gap, or whose news came after
			// its end was taken for granted.
			return
		}
		p = &pod{uid: m.UID, node: m.Node, containers: m.Containers}
		if m.Slot != m.Name {
			p.slot = m.Slot
		}
		t.pods[m.Name] = p
		t.counts.Seen++
		t.reach(now, m, p, bitCreated, m.Created, late)
	}
	p.listed = t.list
	if change == Gone {
		t.gone(now, m.Name, p, false)
		return
	}
	arrived := t.advance(now, m, p, late)
	t.updateStanding(now, m, p, arrived)
}

// Pulled takes in an event of a pod, "namespace/name", that was received at
// now: the image of one of its containers is on the node. Events of pods that
// are not followed say nothing.
func (t *Tracker) Pulled(now record.Micros, name, uid, container string, stamp int64) {
	p := t.pods[name]
	if p == nil || p.uid != uid || p.has(bitImagesReady) || slices.Contains(p.pulled, container) {
		return
	}
	p.pulled = append(p.pulled, container)
	if len(p.pulled) < p.containers {
		return
	}
	p.pulled = nil
	t.reach(now, &Pod{Name: name}, p, bitImagesReady, stamp, false)
}

// bits of the milestones in pod.reached, in the order in which a kubelet
// reaches them.
const (
	bitCreated = iota
	bitScheduled
	bitReadyToStart
	bitInitialized
	bitStarted
	bitContainersReady
	bitReady
	bitImagesReady // not in the kubelet's order: no message of a pod tells of it
)

func milestoneOf(bit int) string {
	switch bit {
	case bitCreated:
		return Created
	case bitScheduled:
		return Scheduled
	case bitReadyToStart:
		return PodReadyToStartContainers
	case bitInitialized:
		return Initialized
	case bitStarted:
		return ContainersStarted
	case bitContainersReady:
		return ContainersReady
	case bitImagesReady:
		return ImagesReady
	default:
		return Ready
	}
}

// advance emits the milestones that a message tells of for the first time, and
// reports whether Ready is one of them.
func (t *Tracker) advance(now record.Micros, m *Pod, p *pod, late bool) (arrived bool) {
	if c := &m.Conditions[CondScheduled]; c.True || m.Node != "" {
		t.reach(now, m, p, bitScheduled, c.Stamp, late)
		p.node = m.Node
	}
	for _, step := range [...]struct{ bit, cond int }{
		{bitReadyToStart, CondReadyToStart}, {bitInitialized, CondInitialized},
	} {
		if c := &m.Conditions[step.cond]; c.True {
			t.reach(now, m, p, step.bit, c.Stamp, late)
		}
	}
	if m.Started {
		t.reach(now, m, p, bitStarted, m.StartedStamp, late)
	}
	if c := &m.Conditions[CondContainersReady]; c.True {
		t.reach(now, m, p, bitContainersReady, c.Stamp, late)
	}
	if c := &m.Conditions[CondReady]; c.True {
		arrived = t.reach(now, m, p, bitReady, c.Stamp, late)
	}
	return arrived
}

// reach emits a milestone the first time that it is seen, and reports whether
// this was it.
func (t *Tracker) reach(now record.Micros, m *Pod, p *pod, bit int, stamp int64, late bool) bool {
	if p.has(bit) {
		return false
	}
	p.reached |= 1 << bit
	t.counts.Moved = now
	o := &record.Object{Object: m.Name, Slot: p.slot, Milestone: milestoneOf(bit), Stamp: stamp, Late: late}
	switch bit {
	case bitCreated:
		o.Component = m.Component
	case bitScheduled:
		o.Node = m.Node
	}
	t.emit(now, o)
	return true
}

func (p *pod) has(bit int) bool { return p.reached&(1<<bit) != 0 }

func (t *Tracker) gone(now record.Micros, name string, p *pod, late bool) {
	t.count(p.standing, -1)
	t.counts.Gone++
	t.counts.Moved = now
	delete(t.pods, name)
	t.emit(now, &record.Object{Object: name, Slot: p.slot, Milestone: Deleted, Late: late})
}

// count adds n pods of a standing to the counts.
func (t *Tracker) count(s standing, n int) {
	switch {
	case s.ready:
		t.counts.Ready += n
	case s.done:
		t.counts.Failed += n
	case s.unschedulable:
		t.counts.Unschedulable += n
	}
}

// updateStanding takes in how a pod stands now and emits what has changed: whether it
// is ready, and what keeps it from being ready. Arrived says that the
// message was the first to tell that it was ready.
func (t *Tracker) updateStanding(now record.Micros, m *Pod, p *pod, arrived bool) {
	was, is := p.standing, p.standsBy(m)
	p.standing, p.restarts = is, m.Restarts
	t.count(was, -1)
	t.count(is, +1)
	if is.ready != was.ready || is.done != was.done || is.unschedulable != was.unschedulable {
		t.counts.Moved = now
	}
	s := &record.State{Object: m.Name, Slot: p.slot, Node: p.node, Reason: is.reason, Message: is.message, Failed: is.done}
	switch {
	case !is.ready && (was.ready || arrived):
		// The milestone says that it was ready; it is no more.
		s.Lost = Ready
	case is.ready && !was.ready && !arrived:
		s.Regained = Ready
	case is.reason == was.reason && is.message == was.message && is.done == was.done:
		return
	}
	t.emit(now, s)
}

// standsBy is how a pod stands by a message whose milestones were taken in.
func (p *pod) standsBy(m *Pod) standing {
	c := &m.Conditions[CondReady]
	var s standing
	s.done = p.done || m.Phase == PhaseSucceeded || m.Phase == PhaseFailed
	s.ready = c.True && !m.Deleting && !s.done
	scheduled := &m.Conditions[CondScheduled]
	switch {
	case !s.ready && m.Deleting && p.has(bitReady):
		// What its containers tell from here on follows from the deletion.
		if s.reason, s.message = p.reason, p.message; s.reason == "" {
			s.reason = reasonDeleting
		}
	case isTrouble(m.Trouble.Reason):
		s.reason, s.message = m.Trouble.Reason, m.Trouble.Message
	case scheduled.Known && !scheduled.True:
		s.reason, s.message = scheduled.Reason, scheduled.Message
		s.unschedulable = scheduled.Reason == reasonUnschedulable && !s.ready && !s.done
	case !s.ready && (s.done || p.has(bitReady)):
		s.reason, s.message = c.Reason, c.Message
		if s.reason == "" {
			s.reason = "NotReady"
		}
	case m.Restarts > p.restarts:
		// The restart went by between two messages.
		s.reason = "Restarted"
	}
	return s
}

// isTrouble reports whether what a container gives as its reason for not
// running is a trouble: waiting for an image or a sandbox is the way of every
// pod, and a container may have ended well.
func isTrouble(reason string) bool {
	switch reason {
	case "", "ContainerCreating", "PodInitializing", "Completed":
		return false
	}
	return true
}

// Unfinished emits, for every pod that is not ready and told of no trouble,
// what it was last seen waiting for, so that the record can say why it was never
// ready.
func (t *Tracker) Unfinished(now record.Micros) {
	for name, p := range t.pods {
		if p.ready || p.reason != "" {
			continue
		}
		last := bitCreated // a pod that was Ready and fell from it has a reason
		for bit := bitCreated; bit < bitReady; bit++ {
			if p.has(bit) {
				last = bit
			}
		}
		p.reason = "Not" + milestoneOf(last+1)
		p.message = "no reason given; the last milestone was " + milestoneOf(last)
		t.emit(now, &record.State{Object: name, Slot: p.slot, Node: p.node, Reason: p.reason, Message: p.message})
	}
}

// Followed is how many pods are followed.
func (t *Tracker) Followed() int { return len(t.pods) }

// Names are the names of the pods that are followed, in no order.
func (t *Tracker) Names() []string {
	names := make([]string, 0, len(t.pods))
	for name := range t.pods {
		names = append(names, name)
	}
	return names
}

// PerNode adds the pods that are followed to counts, by node. Pods without a
// node are left out.
func (t *Tracker) PerNode(counts map[string]int) {
	for _, p := range t.pods {
		if p.node != "" {
			counts[p.node]++
		}
	}
}

// Failing is a pod that is not there and whose containers have written
// something, or may have.
type Failing struct {
	Name, Node, Reason string
}

// Failing lists pods that are on a node, have started a container and are not
// ready: at most perReason for each reason, the most frequent reasons first, at
// most n in all, by name. It takes time in proportion to the pods.
func (t *Tracker) Failing(perReason, n int) []Failing {
	type group struct {
		reason string
		count  int
		first  []Failing // the first by name, in order
	}
	groups := make(map[string]*group)
	for name, p := range t.pods {
		if p.ready || p.unschedulable || p.node == "" || !p.has(bitStarted) && p.restarts == 0 && !hasRun(p.reason) {
			continue
		}
		g := groups[p.reason]
		if g == nil {
			g = &group{reason: p.reason}
			groups[p.reason] = g
		}
		g.count++
		i, _ := slices.BinarySearchFunc(g.first, name, func(f Failing, name string) int { return strings.Compare(f.Name, name) })
		if i < perReason {
			g.first = slices.Insert(g.first, i, Failing{name, p.node, p.reason})
			g.first = g.first[:min(len(g.first), perReason)]
		}
	}
	order := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.reason, b.reason))
	})
	var list []Failing
	for _, g := range order {
		list = append(list, g.first...)
	}
	return list[:min(len(list), n)]
}

// hasRun reports whether a container that gives a reason for not running has
// run before.
func hasRun(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "Error", "OOMKilled", "ContainerCannotRun", "DeadlineExceeded", "Restarted":
		return true
	}
	return false
}
