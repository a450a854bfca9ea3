// Package prepared holds a workload that is ready for a cluster, and the run that loads it.
package prepared

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
	Axis    string               // one of those that observe.Declare lists
	Objects *described.Objects   // says which objects are followed; nil is pods
	Beside  []*described.Objects // says what is followed beside pods
	// Progress shows the wait before a step begins; nil shows nothing.
	Progress func() (show func(what string), end func())
	// Arms holds the variants of a comparison by name. Without any, every level uses Variant.
	Arms   map[string]Variant
	AsItIs bool // keeps the configuration's own rates, pauses and waits
	// Component returns the component of an object of a job, "" for none.
	Component      func(job, object int) string
	Namespace      string        // an existing one for all objects, "" for the run's own ones
	RunID, UUID    string        // RunID is part of names and labels
	NormalEvents   bool          // records the cluster's events of type Normal as well
	Images         bool          // follows the images of pods by the events of real kubelets
	CanaryInterval time.Duration // time between measurements of watch lag
	// Deletions bounds those per second; 0 is no bound: namespaces delete pods, by deletecollection.
	Deletions float64
	// On an open axis, pods are deleted PodLife after Ready, or Follow after creation if never ready.
	PodLife, Follow time.Duration
	Places          bool // keeps each pod's component for ComponentOfPod
	// Planted returns a pod's planted start latency by its UID and annotation; nil where pods are real.
	Planted  func(uid, annotation string) time.Duration
	Patience time.Duration // bounds the retries of a request; 0 is a minute
	Abandon  bool          // skips the removal at the end: the cluster is about to go
	Hooks    Commands
	// Reach calls addresses, separated by blanks, from a pod until each accepts a connection or the timeout has
	// passed. An address without a host is of the pod's node.
	Reach func(ctx context.Context, addresses string, timeout time.Duration) error
	// Connections waits until one or all of the connections that a network policy allows have been made by pods of the
	// load, and returns when; see netpol.Trial.
	Connections func(ctx context.Context, policy string, all bool) (record.Micros, error)
}

// Commands says where the commands of a configuration run, and with which environment.
type Commands struct {
	Dir string
	Env []string
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

// Resources returns each container's requests and limits by the parameters, empty without these.
func (v Variant) Resources() corev1.ResourceRequirements {
	list := func(kind string) (found corev1.ResourceList) {
		for name, param := range map[corev1.ResourceName]string{corev1.ResourceCPU: "cpu" + kind, corev1.ResourceMemory: "memory" + kind} {
			q, err := resource.ParseQuantity(v.Params.Get(param))
			if err != nil {
				continue // it is empty: other texts were checked
			}
			if found == nil {
				found = make(corev1.ResourceList)
			}
			found[name] = q
		}
		return found
	}
	return corev1.ResourceRequirements{Requests: list("Request"), Limits: list("Limit")}
}

// quotaWants matches the resources that a quota demands.
var quotaWants = regexp.MustCompile(`(limits|requests)\.(cpu|memory)`)

// Helps says what a user can do about a policy's refusal of a container, "" if unknown.
func Helps(says string, params workload.Params) string {
	says = strings.ToLower(says)
	if strings.Contains(says, "exceeded quota") || strings.Contains(says, "violates podsecurity") {
		return ""
	}
	var wanted []string
	add := func(param string) {
		if !slices.Contains(wanted, param) {
			wanted = append(wanted, param)
		}
	}
	for _, m := range quotaWants.FindAllStringSubmatch(says, -1) {
		add(m[2] + strings.TrimSuffix(strings.ToUpper(m[1][:1])+m[1][1:], "s"))
	}
	if len(wanted) == 0 {
		cpu, memory := strings.Contains(says, "cpu"), strings.Contains(says, "memory")
		for _, kind := range []string{"limit", "request"} {
			if !strings.Contains(says, kind+"s") && !strings.Contains(says, kind+" ") && !strings.HasSuffix(says, kind) {
				continue
			}
			if kind == "request" && strings.Contains(says, "denied request") && strings.Count(says, kind) == 1 {
				continue // the API server's own words
			}
			kind = strings.ToUpper(kind[:1]) + kind[1:]
			if cpu || !memory {
				add("cpu" + kind)
			}
			if memory || !cpu {
				add("memory" + kind)
			}
		}
	}
	given, lacking, set := []string{}, []string{}, []string{}
	for _, param := range wanted {
		value, has := params.All()[param]
		switch {
		case !has:
			lacking = append(lacking, param)
		case value != "":
			set = append(set, fmt.Sprintf("--set %s= (now %s)", param, value))
		default:
			given = append(given, "--set "+param+"="+modest(param, params))
		}
	}
	switch {
	case len(given) > 0:
		return strings.Join(given, " ")
	case len(set) > 0:
		return "change " + strings.Join(set, ", ")
	case len(lacking) > 0:
		return "give the workload the parameters " + strings.Join(lacking, ", ") + ", as node-density has them: its containers and the canary follow them"
	}
	return ""
}

// modest returns a value that is enough for the containers: a database needs more than an idle one.
func modest(param string, params workload.Params) string {
	small := map[string]string{"cpuRequest": "10m", "cpuLimit": "100m", "memoryRequest": "16Mi", "memoryLimit": "64Mi"}
	if params.Get("databaseImage") != "" {
		small = map[string]string{"cpuRequest": "20m", "cpuLimit": "500m", "memoryRequest": "64Mi", "memoryLimit": "256Mi"}
	}
	return small[param]
}
