// Package prepared is a workload made ready for a cluster, and the run that loads
// it: what the parts of the target have in common.
package prepared

import (
	"cmp"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
)

// Identity is the run that objects belong to.
type Identity struct{ UUID, Run string }

// Workload is a workload made ready for a cluster.
type Workload struct {
	Variant
	// Axis is what is raised: one of those that observe.Declare lists.
	Axis string
	// Objects says what is followed; nil is pods.
	Objects *described.Objects
	// Progress shows what is waited for before a step begins; nil shows nothing.
	Progress func() (show func(what string), end func())
	// Arms are the loads of a comparison by name, of which each level names
	// one; they differ in parameters. Without any, every level is Variant's.
	Arms map[string]Variant
	// AsItIs says that the configuration's own rates, pauses and waits hold.
	AsItIs bool
	// Component names the component of an object of a job, "" for none.
	Component func(job, object int) string
	// Namespace is one that exists and that everything is made in, "" for
	// namespaces of the run's own.
	Namespace string
	// RunID and UUID name the run; RunID is part of names and labels.
	RunID, UUID string
	// NormalEvents records the cluster's events of type Normal too.
	NormalEvents bool
	// Images follows the images of pods to their nodes, by the events that
	// real kubelets write.
	Images bool
	// CanaryInterval is how often watch lag is measured.
	CanaryInterval time.Duration
	// Deletions bounds deletions per second; 0 is no bound, and pods then go by
	// their namespaces, which takes the right to deletecollection.
	Deletions float64
	// PodLife is how long after it was Ready a pod of an open axis is deleted,
	// and Follow how long after its creation one that never was.
	PodLife, Follow time.Duration
	// Places keeps the component of each pod in place for ComponentOfPod, for
	// whoever reads what pods use where they run.
	Places bool
	// Planted is the start latency planted on a pod by its UID and the value
	// of its annotation; nil where pods are real.
	Planted func(uid, annotation string) time.Duration
	// Patience is how long a request is tried again while the server is out of
	// reach or asks for patience; 0 is a minute.
	Patience time.Duration
	// Abandon leaves everything where it is at the end: the cluster itself is
	// about to go.
	Abandon bool
}

// Variant is one rendering of a workload.
type Variant struct {
	Config    *kubeburner.Config
	Templates [][]*kubeburner.Template // by job and object
	Settings  []workload.Value         // of the cluster
	Params    workload.Params          // that it was rendered with
}

// In is the path of a resource of the core group as far as this run sees it: in the
// namespace that exists, or in all.
func (l *Workload) In(resource string) string {
	if l.Namespace != "" {
		return "/api/v1/namespaces/" + l.Namespace + "/" + resource
	}
	return "/api/v1/" + resource
}

// RetryFor is how long a request is tried again.
func (l *Workload) RetryFor() time.Duration { return cmp.Or(l.Patience, time.Minute) }

// Run is what the parts of a target have in common.
type Run struct {
	Client *api.Client
	Load   *Workload
	Sink   record.Sink
	Clock  *record.Clock
	Step   func() int
}

// Emit puts body on record as of now.
func (s *Run) Emit(body record.Body) { s.EmitAt(s.Clock.Now(), body) }

// EmitAt puts body on record as of a time.
func (s *Run) EmitAt(at record.Micros, body record.Body) {
	s.Sink.Append(record.Event{T: at, Step: s.Step(), Body: body})
}
