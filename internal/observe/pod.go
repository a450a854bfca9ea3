// Package observe turns news of objects into milestones: a pure state machine
// that reads no clock, knows no server and judges nothing. Whoever receives
// news stamps it and hands it over; out come the events of the history.
package observe

import "plimsoll.dev/plimsoll/internal/record"

// Milestones of a pod, in the order in which a kubelet reaches them.
const (
	Requested                 = "Requested" // the owner of a pod that a controller makes was requested
	Created                   = "Created"
	Scheduled                 = "Scheduled"
	PodReadyToStartContainers = "PodReadyToStartContainers"
	Initialized               = "Initialized"
	ContainersStarted         = "ContainersStarted"
	ContainersReady           = "ContainersReady"
	Ready                     = "Ready"
	Deleted                   = "Deleted"
)

// PodMilestones are the milestones that the news of a pod can tell, in order.
func PodMilestones() []string {
	return []string{Created, Scheduled, PodReadyToStartContainers, Initialized, ContainersStarted, ContainersReady, Ready, Deleted}
}

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

// Counts sums up the objects that are followed.
type Counts struct {
	Seen          int // created, by what was seen
	Ready         int // ready now
	Failed        int // will never get there
	Unschedulable int // the scheduler finds no place for them now
	Gone          int // deleted
	// Moved is when an object last reached a milestone, failed or went.
	Moved record.Micros
}

type pod struct {
	uid           string
	slot          string // "" when it equals the name
	reached       uint16 // bit i: PodMilestones()[i]
	ready         bool
	fell          bool // was ready once and fell from it
	failed        bool
	unschedulable bool
	listed        int // the list that last had it
	reason        string
	message       string
	node          string
	restarts      int
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
// every pod of it is handed over as Listed, then EndList follows.
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
		p = &pod{uid: m.UID, node: m.Node}
		if m.Slot != m.Name {
			p.slot = m.Slot
		}
		t.pods[m.Name] = p
		t.counts.Seen++
		t.reach(now, m, p, 0, m.Created, late)
	}
	p.listed = t.list
	if change == Gone {
		t.gone(now, m.Name, p, false)
		return
	}
	t.advance(now, m, p, late)
	t.explain(now, m, p)
}

// bits of the milestones in pod.reached, in PodMilestones' order.
const (
	bitCreated = iota
	bitScheduled
	bitReadyToStart
	bitInitialized
	bitStarted
	bitContainersReady
	bitReady
	bitDeleted
)

func (t *Tracker) advance(now record.Micros, m *Pod, p *pod, late bool) {
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
	c := &m.Conditions[CondReady]
	if c.True {
		t.reach(now, m, p, bitReady, c.Stamp, late)
	}
	// A pod that is being deleted, or whose containers are done, is no longer
	// a pod that serves.
	ready := c.True && !m.Deleting && m.Phase != PhaseSucceeded && m.Phase != PhaseFailed
	switch {
	case ready && !p.ready:
		p.ready = true
		t.counts.Ready++
		t.counts.Moved = now
		if p.fell {
			t.emit(now, &record.State{Object: m.Name, Slot: p.slot, Node: p.node, Regained: Ready})
		}
	case !ready && p.ready:
		p.ready, p.fell = false, true
		t.counts.Ready--
		t.counts.Moved = now
		reason, message := c.Reason, c.Message
		if m.Deleting {
			reason, message = "Deleting", ""
		}
		if reason == "" {
			reason = "NotReady"
		}
		t.emit(now, &record.State{Object: m.Name, Slot: p.slot, Node: p.node, Reason: reason, Message: message, Lost: Ready})
	}
}

// reach emits a milestone the first time that it is seen.
func (t *Tracker) reach(now record.Micros, m *Pod, p *pod, bit int, stamp int64, late bool) {
	if p.reached&(1<<bit) != 0 {
		return
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
}

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
	case bitReady:
		return Ready
	default:
		return Deleted
	}
}

func (t *Tracker) gone(now record.Micros, name string, p *pod, late bool) {
	if p.ready {
		t.counts.Ready--
	}
	if p.unschedulable {
		t.counts.Unschedulable--
	}
	if p.failed {
		t.counts.Failed--
	}
	t.counts.Gone++
	t.counts.Moved = now
	delete(t.pods, name)
	t.emit(now, &record.Object{Object: name, Slot: p.slot, Milestone: Deleted, Late: late})
}

// explain emits what keeps the pod from getting there, when that changes.
func (t *Tracker) explain(now record.Micros, m *Pod, p *pod) {
	reason, message := troubleOf(m)
	failed := m.Phase == PhaseFailed && !p.ready
	unschedulable := reason == reasonUnschedulable
	if unschedulable != p.unschedulable {
		if unschedulable {
			t.counts.Unschedulable++
		} else {
			t.counts.Unschedulable--
		}
		p.unschedulable = unschedulable
		t.counts.Moved = now
	}
	if failed && !p.failed {
		p.failed = true
		t.counts.Failed++
		t.counts.Moved = now
	}
	if m.Restarts > p.restarts && reason == "" {
		// The restart went by between two messages.
		reason = "Restarted"
	}
	p.restarts = m.Restarts
	if reason == p.reason && message == p.message {
		return
	}
	p.reason, p.message = reason, message
	t.emit(now, &record.State{Object: m.Name, Slot: p.slot, Node: p.node, Reason: reason, Message: message, Failed: failed})
}

const reasonUnschedulable = "Unschedulable"

// troubleOf is what keeps a pod from getting there, as far as it tells.
// Waiting for an image or a sandbox is the way of every pod and no trouble.
func troubleOf(m *Pod) (reason, message string) {
	if m.Trouble.Reason != "" {
		switch m.Trouble.Reason {
		case "ContainerCreating", "PodInitializing", "Completed":
		default:
			return m.Trouble.Reason, m.Trouble.Message
		}
	}
	if c := &m.Conditions[CondScheduled]; c.Known && !c.True {
		return c.Reason, c.Message
	}
	return "", ""
}

// Unfinished emits, for every pod that is not ready, what it was last seen
// waiting for, so that the record can say why it never got there.
func (t *Tracker) Unfinished(now record.Micros) {
	for name, p := range t.pods {
		if p.ready || p.reason != "" {
			continue
		}
		last := bitCreated
		for bit := bitCreated; bit <= bitReady; bit++ {
			if p.reached&(1<<bit) != 0 {
				last = bit
			}
		}
		t.emit(now, &record.State{Object: name, Slot: p.slot, Node: p.node, Reason: "Not" + milestoneOf(min(last+1, bitReady)),
			Message: "no trouble was told; the last milestone was " + milestoneOf(last)})
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
