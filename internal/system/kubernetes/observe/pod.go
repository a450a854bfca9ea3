package observe

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

// Indices of a pod's milestones in its course.
const (
	bitScheduled = bitCreated + 1 + iota
	bitReadyToStart
	bitInitialized
	// BitStarted is that of ContainersStarted.
	BitStarted
	bitContainersReady
	bitReady
	// BitImagesReady is that of ImagesReady, of which no message of a pod tells.
	BitImagesReady
)

// PodCourse is the course of pods.
func PodCourse() Course {
	return Course{
		Names: []string{Created, Scheduled, PodReadyToStartContainers, Initialized, ContainersStarted, ContainersReady, Ready, ImagesReady},
		There: bitReady, Placed: bitScheduled,
	}
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
	Trouble Reason
}

// News is what the message tells, as of an object of any kind.
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
	m.Lacks = Reason{ready.Reason, ready.Message}
	if isTrouble(p.Trouble.Reason) {
		m.Trouble = p.Trouble
	}
	if scheduled.Known && !scheduled.True {
		m.Unplaced = Reason{scheduled.Reason, scheduled.Message}
	}
	return m
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
