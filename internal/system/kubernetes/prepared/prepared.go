// Package prepared holds a workload that is ready for a cluster, and the run that loads it.
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

// Identity names the run that objects belong to.
type Identity struct{ UUID, Run string }

// Workload holds a workload that is ready for a cluster.
type Workload struct {
	Variant
	Axis    string             // Axis is one of those that observe.Declare lists
	Objects *described.Objects // Objects says which objects are followed; nil is pods
	// Progress shows the wait before a step begins; nil shows nothing.
	Progress func() (show func(what string), end func())
	// Arms holds the variants of a comparison by name; they differ in parameters. Without any, every
	// level uses Variant.
	Arms   map[string]Variant
	AsItIs bool // AsItIs keeps the configuration's own rates, pauses and waits
	// Component returns the component of an object of a job, "" for none.
	Component      func(job, object int) string
	Namespace      string        // Namespace is an existing one for all objects, "" for the run's own ones.
	RunID, UUID    string        // RunID is part of names and labels
	NormalEvents   bool          // NormalEvents records the cluster's events of type Normal as well
	Images         bool          // Images follows the images of pods by the events of real kubelets
	CanaryInterval time.Duration // CanaryInterval is the time between measurements of watch lag
	// Deletions bounds deletions per second. 0 is no bound: namespaces then delete their pods, which
	// needs the right to deletecollection.
	Deletions float64
	// On an open axis, pods are deleted PodLife after Ready, or Follow after creation if never ready.
	PodLife, Follow time.Duration
	Places          bool // Places keeps each pod's component for ComponentOfPod
	// Planted returns a pod's planted start latency by its UID and annotation; nil where pods are real.
	Planted  func(uid, annotation string) time.Duration
	Patience time.Duration // Patience bounds the retries of a request; 0 is a minute
	Abandon  bool          // Abandon skips the removal at the end: the cluster is about to go
}

// Variant holds a workload rendered with one set of parameters.
type Variant struct {
	Config    *kubeburner.Config
	Templates [][]*kubeburner.Template // by job and object
	Settings  []workload.Value         // of the cluster
	Params    workload.Params
}

// In returns the path of a core resource: in the run's existing namespace, or in all.
func (l *Workload) In(resource string) string {
	if l.Namespace != "" {
		return "/api/v1/namespaces/" + l.Namespace + "/" + resource
	}
	return "/api/v1/" + resource
}

// RetryFor returns Patience with its default.
func (l *Workload) RetryFor() time.Duration { return cmp.Or(l.Patience, time.Minute) }

// Run holds what the parts of a target share.
type Run struct {
	Client *api.Client
	Load   *Workload
	Sink   record.Sink
	Clock  *record.Clock
	Step   func() int
}

// Emit records body as of now.
func (s *Run) Emit(body record.Body) { s.EmitAt(s.Clock.Now(), body) }

// EmitAt records body as of a time.
func (s *Run) EmitAt(at record.Micros, body record.Body) {
	s.Sink.Append(record.Event{T: at, Step: s.Step(), Body: body})
}
