package ingress

import (
	"context"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// sourceController is the source of what the ingress controller of a step's arm has used.
const sourceController = "controller"

// controllerMetrics returns the metrics of what the controller used.
func controllerMetrics() []record.Metric {
	return append([]record.Metric{{
		Name: "requestsPerCPUSecond", Title: "requests per controller CPU second", Unit: "/s", LessIsWorse: true,
		Help: "requests that were answered for each second of CPU time that the ingress controller used",
		Of:   record.Fold{Source: record.SourceStep, Value: record.ValueDone, Fold: record.FoldLast},
		Per:  &record.Fold{Source: sourceController, Value: record.ValueCPU, Fold: record.FoldDifference},
	}}, record.UseOf(sourceController, "the ingress controller")...)
}

// knownPods says where the pods of a controller are, as NAMESPACE/SELECTOR, by its name in classes; "" is
// unknown. An empty namespace is any. The labels are those of each controller's chart or operator.
func knownPods(controller string) string {
	return map[string]string{
		"k8s.io/ingress-nginx":                 "/app.kubernetes.io/name=ingress-nginx,app.kubernetes.io/component=controller",
		traefikController:                      "/app.kubernetes.io/name=traefik",
		traefikGateways:                        "/app.kubernetes.io/name=traefik",
		"haproxy-ingress.github.io/controller": "/app.kubernetes.io/name=haproxy-ingress",
		openShiftController:                    "openshift-ingress/ingresscontroller.operator.openshift.io/deployment-ingresscontroller=default",
	}[controller]
}

const openShiftController = "openshift.io/ingress-to-route"

// meter reads what the pods of an ingress controller use, by the metrics API.
type meter struct {
	path  string
	query url.Values

	mu   sync.Mutex
	pods map[string]used // by namespace and name
	last float64         // CPU seconds of the last reading
}

// used holds the use of a pod until a moment, with its rate, by which the use goes on.
type used struct {
	at          time.Time
	cpu, rate   float64 // seconds since it was first read, and per second
	memoryBytes float64
}

const (
	meterInterval = 2 * time.Second // the API has new figures every 15 s
	mostGuessed   = time.Minute     // for which a pod's last rate is assumed
)

// newMeter makes the meter of the pods at NAMESPACE/SELECTOR.
func newMeter(pods string) *meter {
	namespace, selector, _ := strings.Cut(pods, "/")
	at := "/apis/metrics.k8s.io/v1beta1/pods"
	if namespace != "" {
		at = path.Join("/apis/metrics.k8s.io/v1beta1/namespaces", namespace, "pods")
	}
	return &meter{path: at, query: url.Values{"labelSelector": {selector}}, pods: make(map[string]used)}
}

// podMetrics is a list of the metrics API.
type podMetrics struct {
	Items []struct {
		Metadata   metav1.ObjectMeta
		Timestamp  metav1.Time
		Containers []struct {
			Usage map[string]resource.Quantity
		}
	}
}

// read takes in the present figures.
func (m *meter) read(ctx context.Context, c *api.Client) error {
	var list podMetrics
	if err := c.InJSON(ctx, m.path, m.query, nil, &list); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range list.Items {
		name := p.Metadata.Namespace + "/" + p.Metadata.Name
		was, known := m.pods[name]
		if known && !p.Timestamp.After(was.at) {
			continue
		}
		now := used{at: p.Timestamp.Time, cpu: was.cpu}
		for _, c := range p.Containers {
			cpu, memory := c.Usage["cpu"], c.Usage["memory"]
			now.rate += cpu.AsApproximateFloat64()
			now.memoryBytes += memory.AsApproximateFloat64()
		}
		if known {
			now.cpu += now.rate * now.at.Sub(was.at).Seconds()
		}
		m.pods[name] = now
	}
	return nil
}

// reading returns what the pods have used by now, false where nothing is known.
func (m *meter) reading(now time.Time) (record.Reading, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cpu, memory := 0.0, 0.0
	for _, p := range m.pods {
		cpu += p.cpu + p.rate*max(min(now.Sub(p.at), mostGuessed), 0).Seconds()
		memory += p.memoryBytes
	}
	m.last = max(m.last, cpu)
	return proc.Usage{CPUSeconds: m.last, RSSBytes: int64(memory), IOBytes: -1}.Sample(sourceController), len(m.pods) > 0
}

// findPods finds the pods of the controller of a site: those of the run's own, or of a cluster's by their labels.
func (i *instance) findPods(s *site) {
	at := s.pods
	if at == "" && s.via == viaRoute {
		at = knownPods(openShiftController)
	} else if at == "" && !i.brings {
		at = knownPods(s.controller)
	}
	if at != "" {
		s.meter = newMeter(at)
	}
}

// meter reads the meters of all sites until ctx ends. Without the API, or the right to it, nothing is known.
func (i *instance) meter(ctx context.Context) {
	for _, s := range i.Arms {
		if s.meter == nil {
			continue
		}
		i.signs.Go(func() {
			for {
				err := s.meter.read(ctx, i.Client())
				if api.Refused(err) || apierrors.IsNotFound(err) || !api.Sleep(ctx, meterInterval) {
					return
				}
			}
		})
	}
}

// ofController returns what the controller of a site has used: of the lab's readings, or by the metrics API.
func (i *instance) ofController(s *site, lab []record.Reading) []record.Reading {
	if s.meter != nil {
		if r, known := s.meter.reading(i.Now()); known {
			return []record.Reading{r}
		}
		return nil
	}
	sum := record.Reading{Source: sourceController, Values: make(map[string]float64)}
	for _, r := range lab {
		if r.Source == realnode.ComponentPart(s.name) {
			for name, value := range r.Values {
				sum.Values[name] += value
			}
		}
	}
	if len(sum.Values) == 0 {
		return nil
	}
	return []record.Reading{sum}
}

// siteOfPod returns the name of the site that a pod of a controller of the run's own serves, "" for other pods.
func (i *instance) siteOfPod(uid string) string {
	i.owned.Lock()
	defer i.owned.Unlock()
	return i.owned.sites[uid]
}
