package api

// Labels and annotations on all objects that this program makes in a cluster.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by" // LabelManagedBy marks every object of ours
	ManagedBy      = "plimsoll"                     // value of LabelManagedBy
	LabelRun       = "plimsoll.dev/run"             // LabelRun names the run that an object belongs to
	// LabelSlot names the slot that a pod made by a controller fills.
	LabelSlot        = "plimsoll.dev/slot"
	LabelCanary      = "plimsoll.dev/canary"        // LabelCanary marks the pod that measures watch lag
	AnnotationCanary = "plimsoll.dev/canary-number" // AnnotationCanary numbers the canary's changes
	// AnnotationAlive, on a run's namespace, has its last sign of life: clean spares recent ones.
	AnnotationAlive = "plimsoll.dev/alive"
	// AnnotationStartLatency plants a start latency on a simulated pod.
	AnnotationStartLatency = "plimsoll.dev/start-latency"
)

// Labels and annotations on objects of others that a run changes.
const (
	LabelChangedBy = "plimsoll.dev/changed-by" // LabelChangedBy names the run that changed the object
	AnnotationWas  = "plimsoll.dev/was"        // AnnotationWas has the values to put back: a list of change
	// AnnotationChanged, on a run's namespace, lists the paths of objects that it may have changed.
	AnnotationChanged = "plimsoll.dev/changed"
)

// Labels of a drained node: the run, the node's number, and from when it is cordoned the run again, by
// which alone the removal of leftovers uncordons.
const (
	LabelDrained  = "plimsoll.dev/drained-by"
	LabelDrain    = "plimsoll.dev/drain"
	LabelCordoned = "plimsoll.dev/cordoned-by"
)

// NotTerminal selects pods that have not ended.
const NotTerminal = "status.phase!=Succeeded,status.phase!=Failed"
