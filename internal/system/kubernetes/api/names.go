package api

// Labels and annotations on all objects that this program makes in a cluster.
const (
	LabelManagedBy   = "app.kubernetes.io/managed-by" // marks every object of ours
	ManagedBy        = "plimsoll"                     // value of LabelManagedBy
	LabelRun         = "plimsoll.dev/run"             // names the run that an object belongs to
	LabelSlot        = "plimsoll.dev/slot"            // names the slot that a pod made by a controller fills
	LabelCanary      = "plimsoll.dev/canary"          // marks the pod that measures watch lag
	AnnotationCanary = "plimsoll.dev/canary-number"   // numbers the canary's changes
	// AnnotationAlive, on a run's namespace, has its last sign of life: clean spares recent ones.
	AnnotationAlive        = "plimsoll.dev/alive"
	AnnotationStartLatency = "plimsoll.dev/start-latency" // plants a start latency on a simulated pod
)

const labelJob = "batch.kubernetes.io/job-name" // marks the pods that a Job makes

// Labels and annotations on objects of others that a run changes.
const (
	LabelChangedBy = "plimsoll.dev/changed-by" // names the run that changed the object
	AnnotationWas  = "plimsoll.dev/was"        // has the values to put back: a list of change
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
