// Package kubernetes is the Kubernetes target: it applies a workload's objects at
// a bounded rate, watches them, and removes everything that it made.
package kubernetes

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
	// annotationCanary numbers the canary's changes.
	annotationCanary = "plimsoll.dev/canary-number"
	// annotationAlive, on a run's own namespace, is when the run last gave a
	// sign of life: clean leaves a run alone that gave one lately.
	annotationAlive = "plimsoll.dev/alive"
	// AnnotationStartLatency plants a start latency on a simulated pod.
	AnnotationStartLatency = "plimsoll.dev/start-latency"
)
