package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Cluster is one Kubernetes cluster, by a kubeconfig's context.
type Cluster struct {
	client *client
	// Context is the name of the kubeconfig's context.
	Context string
	// Server is the API server's address.
	Server string
	// Config is the kubeconfig that the cluster was named by.
	Config *clientcmdapi.Config
	// Naming is how the target is named in records.
	Naming record.TargetNaming
	now    func() time.Time
	host   target.Host

	discovering sync.Mutex
	discovered  meta.RESTMapper // nil until the API was first asked what it knows
}

// Connect reads a kubeconfig and makes a client for one of its contexts, the
// current one if context is "". It does not talk to the cluster. The error is a
// *target.MistakeError.
func Connect(kubeconfig, context string, host target.Host) (*Cluster, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, target.Mistakef(nearest.File(kubeconfig), "there is no kubeconfig %s", kubeconfig)
	}
	if err != nil {
		return nil, target.Mistakef("", "kubeconfig %s: %w", kubeconfig, err)
	}
	if context == "" {
		context = config.CurrentContext
	}
	if _, ok := config.Contexts[context]; !ok {
		what := fmt.Sprintf("no such context: %q", context)
		if context == "" {
			what = "no context is named, and the file has no current-context"
		}
		hint := "there is: " + strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
		return nil, target.Mistakef(hint, "kubeconfig %s: %s", kubeconfig, what)
	}
	loader := clientcmd.NewNonInteractiveClientConfig(*config, context, nil, &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig})
	rest, err := loader.ClientConfig()
	if err != nil {
		return nil, target.Mistakef("", "kubeconfig %s: %w", kubeconfig, err)
	}
	c, err := newClient(rest, "plimsoll/"+host.Version)
	if err != nil {
		return nil, target.Mistakef("", "kubeconfig %s: %w", kubeconfig, err)
	}
	return &Cluster{
		client: c, Context: context, Server: rest.Host, Config: config,
		Naming: record.TargetNaming{Kind: "cluster", Name: context}, now: host.Now, host: host,
	}, nil
}

// summary is what a user is shown before the cluster is loaded.
func (c *Cluster) summary(ctx context.Context) (string, error) {
	version, err := c.client.typed.Discovery().ServerVersion()
	if err != nil {
		return "", c.client.unreachable(err)
	}
	var counts [2]int
	for i, what := range []string{"nodes", "pods"} {
		if _, err := c.client.list(ctx, "/api/v1/"+what, nil, func([]byte) error { counts[i]++; return nil }); err != nil {
			return "", fmt.Errorf("list %s: %w", what, c.client.unreachable(err))
		}
	}
	return fmt.Sprintf("%s at %s: Kubernetes %s, %s, %s", c.Context, c.Server, version.GitVersion, observe.Pods().Place.Count(counts[0]), observe.Pods().Object.Count(counts[1])), nil
}

// exemption tells whether priority and fairness does not apply to the user, by
// the level that the server gave a request: a load of such a user is not held
// back as others are, and can starve them. Nil is not known.
func (c *Cluster) exemption(ctx context.Context) (*bool, error) {
	r, err := c.client.call(ctx, http.MethodGet, "/api/v1/namespaces/default", nil)
	if err != nil {
		return nil, c.client.unreachable(err)
	}
	name := c.client.priorityLevels(ctx)[r.level()]
	if name == "" {
		return nil, nil
	}
	return new(name == "exempt"), nil
}

// priorityLevels are the names of the cluster's priority levels by their UIDs,
// nil where they are not ours to see: that is no reason to stop.
func (c *client) priorityLevels(ctx context.Context) map[string]string {
	levels, err := c.typed.FlowcontrolV1().PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make(map[string]string, len(levels.Items))
	for _, level := range levels.Items {
		names[string(level.UID)] = level.Name
	}
	return names
}

// version is that of the server, and its clock less ours; see clockOffset.
func (c *Cluster) version(ctx context.Context) (version string, offset *float64, err error) {
	before := c.now()
	r, err := c.client.call(ctx, http.MethodGet, "/version", nil)
	if err != nil {
		return "", nil, c.client.unreachable(err)
	}
	offset = clockOffset(r.header, before, c.now())
	info, err := c.client.typed.Discovery().ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("get the server's version: %w", c.client.unreachable(err))
	}
	return info.GitVersion, offset, nil
}

// clockOffset is the server's clock less ours by the date of an answer, in
// seconds; nil where it has none.
func clockOffset(header http.Header, before, after time.Time) *float64 {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return nil
	}
	// The header has whole seconds; half of one is its mean.
	middle := before.Add(after.Sub(before) / 2)
	return new(date.Add(500 * time.Millisecond).Sub(middle).Seconds())
}

// mapper finds the resource of a kind. The API is asked once what it knows.
func (c *Cluster) mapper() (meta.RESTMapper, error) {
	c.discovering.Lock()
	defer c.discovering.Unlock()
	if c.discovered != nil {
		return c.discovered, nil
	}
	groups, err := restmapper.GetAPIGroupResources(c.client.typed.Discovery())
	if err != nil {
		return nil, fmt.Errorf("discover the API: %w", c.client.unreachable(err))
	}
	c.discovered = restmapper.NewDiscoveryRESTMapper(groups)
	return c.discovered, nil
}

// Typed is a client of the API's own types, for what happens once in a run.
func (c *Cluster) Typed() kubernetes.Interface { return c.client.typed }

// Close lets go of the cluster's connections.
func (c *Cluster) Close() { c.client.close() }

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
