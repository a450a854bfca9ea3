package api

// Labels and annotations on everything that this program makes in a cluster.
const (
	// LabelManagedBy marks every object of ours, whatever run made it.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is its value.
	ManagedBy = "plimsoll"
	// LabelRun names the run that an object belongs to.
	LabelRun = "plimsoll.dev/run"
	// LabelSlot names the slot that a pod made by a controller fills.
	LabelSlot = "plimsoll.dev/slot"
	// LabelCanary marks the pod that measures watch lag.
	LabelCanary = "plimsoll.dev/canary"
	// AnnotationCanary numbers the canary's changes.
	AnnotationCanary = "plimsoll.dev/canary-number"
	// AnnotationAlive, on a run's own namespace, is when the run last gave a
	// sign of life: clean leaves a run alone that gave one lately.
	AnnotationAlive = "plimsoll.dev/alive"
	// AnnotationStartLatency plants a start latency on a simulated pod.
	AnnotationStartLatency = "plimsoll.dev/start-latency"
)

// Labels and annotations on what a run changes that is not its own.
const (
	// LabelChangedBy, on an object that is not ours, names the run that has
	// changed it.
	LabelChangedBy = "plimsoll.dev/changed-by"
	// AnnotationWas, on the same object, is what has to be put back: a list of
	// change.
	AnnotationWas = "plimsoll.dev/was"
	// AnnotationChanged, on a run's own namespace, lists the paths of objects
	// that the run may have changed.
	AnnotationChanged = "plimsoll.dev/changed"
)

// What a node carries that a run has chosen to drain: the run, which of its nodes
// it is, and the run again from when it cordoned it. Whoever removes what a run
// has left uncordons by the last one, and no other node.
const (
	LabelDrained  = "plimsoll.dev/drained-by"
	LabelDrain    = "plimsoll.dev/drain"
	LabelCordoned = "plimsoll.dev/cordoned-by"
)

// NotTerminal selects pods that take up a place.
const NotTerminal = "status.phase!=Succeeded,status.phase!=Failed"
