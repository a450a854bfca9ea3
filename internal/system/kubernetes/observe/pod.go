package observe

import "slices"

// Milestones of a pod, in the order in which a kubelet reaches them.
const (
	Requested                 = "Requested" // request for the owner that makes the pod
	Created                   = "Created"
	Scheduled                 = "Scheduled"
	PodReadyToStartContainers = "PodReadyToStartContainers"
	Initialized               = "Initialized"
	ImagesReady               = "ImagesReady" // from events, so it may come after ContainersStarted
	ContainersStarted         = "ContainersStarted"
	ContainersReady           = "ContainersReady"
	Ready                     = "Ready"
	Deleted                   = "Deleted"
)

// Indices of a pod's milestones in its course.
const (
	bitScheduled = bitCreated + 1 + iota
	bitReadyToStart
	bitInitialized
	BitStarted // BitStarted is the index of ContainersStarted
	bitContainersReady
	bitReady
	BitImagesReady // BitImagesReady is the index of ImagesReady, which no message of a pod has.
)

// PodCourse returns the course of pods.
func PodCourse() Course {
	return Course{
		Names: []string{Created, Scheduled, PodReadyToStartContainers, Initialized, ContainersStarted, ContainersReady, Ready, ImagesReady},
		There: bitReady, Placed: bitScheduled,
	}
}

// Condition holds one of a pod's conditions.
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

// Phase holds the phase of a pod.
type Phase byte

// The phases of a pod.
const (
	PhaseUnknown Phase = iota
	PhasePending
	PhaseRunning
	PhaseSucceeded
	PhaseFailed
)

// Pod holds the content of one message about a pod.
type Pod struct {
	Name      string // namespace/name
	UID       string
	Slot      string // equal to Name for a pod that we created
	Component string
	Node      string
	Phase     Phase
	Deleting  bool
	OfJob     bool  // a Job made it: it is to end
	Created   int64 // server's time of creation, in seconds since 1970

	Conditions [numConditions]Condition
	Containers int // counts the containers, init containers included
	// Started says that every container runs or has run; StartedStamp is the last start, by the node's clock.
	Started      bool
	StartedStamp int64
	Restarts     int
	Trouble      Reason // the pod's own (Evicted), or that of its first container
}

// News converts the message to news of an object of any kind.
func (p *Pod) News() *News {
	m := &News{
		Name: p.Name, UID: p.UID, Slot: p.Slot, Component: p.Component, Place: p.Node, Deleting: p.Deleting,
		Done: p.Phase == PhaseSucceeded || p.Phase == PhaseFailed, Parts: p.Containers, Restarts: p.Restarts,
	}
	reach := func(bit int, stamp int64) {
		m.Reached |= 1 << bit
		m.Stamps[bit] = stamp
	}
	m.Stamps[bitCreated] = p.Created
	scheduled := &p.Conditions[CondScheduled]
	if scheduled.True || p.Node != "" {
		reach(bitScheduled, scheduled.Stamp)
	}
	for _, step := range [...]struct{ bit, cond int }{
		{bitReadyToStart, CondReadyToStart}, {bitInitialized, CondInitialized}, {bitContainersReady, CondContainersReady}, {bitReady, CondReady},
	} {
		if c := &p.Conditions[step.cond]; c.True {
			reach(step.bit, c.Stamp)
		}
	}
	if p.Started {
		reach(BitStarted, p.StartedStamp)
	}
	ready := &p.Conditions[CondReady]
	m.There = ready.True
	if p.OfJob && p.Phase == PhaseSucceeded {
		m.There, m.Done = true, false
		reach(bitReady, ready.Stamp)
	}
	m.Lacks = Reason{ready.Reason, ready.Message}
	// All pods wait for images, and containers may end well.
	if !slices.Contains([]string{"", "ContainerCreating", "PodInitializing", "Completed"}, p.Trouble.Reason) {
		m.Trouble = p.Trouble
	}
	if scheduled.Known && !scheduled.True {
		m.Unplaced = Reason{scheduled.Reason, scheduled.Message}
	}
	return m
}
