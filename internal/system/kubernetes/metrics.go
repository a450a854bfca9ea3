package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// Endpoints implements system.Publisher: all parts of a lab; else the API server and some nodes.
func (s *session) Endpoints(ctx context.Context) ([]metrics.Endpoint, error) {
	s.usage.Lock()
	defer s.usage.Unlock()
	if s.usage.endpoints != nil || s.cluster == nil {
		return s.usage.endpoints, nil
	}
	var err error
	if s.lab != nil {
		s.usage.endpoints, err = s.lab.Endpoints()
	} else {
		s.usage.endpoints, err = s.clusterEndpoints(ctx)
	}
	return s.usage.endpoints, err
}

func (s *session) clusterEndpoints(ctx context.Context) ([]metrics.Endpoint, error) {
	transport, err := rest.TransportFor(s.cluster.client.Config)
	if err != nil {
		return nil, err
	}
	base := s.cluster.client.Base
	ip := net.ParseIP(base.Hostname())
	far := base.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
	server := strings.TrimSuffix(base.String(), "/")
	list := []metrics.Endpoint{{Job: protocol.APIServer, Instance: base.Host, URL: server + "/metrics", Transport: transport, Far: far}}
	nodes, err := s.drawNodes(ctx, settingsOf(s.Plan).scraped())
	for _, name := range nodes {
		list = append(list, lab.KubeletEndpoints(server, name, transport, far)...)
	}
	if api.Refused(err) {
		s.Log("note: which nodes there are this user may not know: their metrics are not read")
		err = nil
	}
	return list, err
}

// Prometheus implements system.Monitored: OpenShift's querier, for users with cluster-monitoring-view.
func (s *session) Prometheus(ctx context.Context, access metrics.Access) (string, metrics.Access, error) {
	get := func(path string, into any) error {
		text, err := s.cluster.client.Typed.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	var route struct{ Spec struct{ Host string } }
	if err := get("/apis/route.openshift.io/v1/namespaces/openshift-monitoring/routes/thanos-querier", &route); err != nil {
		return "", access, fmt.Errorf("get route openshift-monitoring/thanos-querier: %w", err)
	}
	config := s.cluster.client.Config
	if access.Token == "" && access.User == "" {
		access.Token = config.BearerToken
		if config.BearerTokenFile != "" {
			token, err := os.ReadFile(config.BearerTokenFile)
			if err != nil {
				return "", access, err
			}
			access.Token = strings.TrimSpace(string(token))
		}
		if access.Token == "" {
			return "", access, errors.New("the kubeconfig has no token, which it asks for: 'oc login' gets one, or --prometheus-token-file has one")
		}
	}
	if len(access.CA) == 0 && !access.Insecure {
		// Any user may read the certificate authority of the routes.
		var ca struct{ Data map[string]string }
		if err := get("/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert", &ca); err == nil {
			access.CA = []byte(ca.Data["ca-bundle.crt"])
		}
	}
	return "https://" + route.Spec.Host, access, nil
}

// drawNodes draws at most so many nodes with a kubelet, by the plan's seed.
func (s *session) drawNodes(ctx context.Context, most int) ([]string, error) {
	if most == 0 {
		return nil, nil
	}
	all, err := s.cluster.client.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var names []string
	for i := range all.Items {
		if follow.FidelityOf(&all.Items[i]) == record.Real {
			names = append(names, all.Items[i].Name)
		}
	}
	slices.Sort(names)
	if len(names) <= most {
		return names, nil
	}
	const stream = 0x6d657472696373 // keeps these draws independent of others by the seed
	rand.New(rand.NewPCG(s.Plan.Seed, stream)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	drawn := slices.Sorted(slices.Values(names[:most]))
	s.Log("note: metrics are read of %d of %d nodes: %s", most, len(names), strings.Join(drawn, ", "))
	return drawn, nil
}

const requestFamily = "apiserver_request_duration_seconds" // API server's histogram of answered requests

// requests returns the API server's histograms of all clients' requests, by verb and resource.
func requests(ctx context.Context, c *api.Client) ([]*record.ComponentHistogram, error) {
	metrics, err := c.Typed.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return requestsIn(metrics)
}

// requestsIn reads the histograms, but for watches, which last, and leases, which are no load.
func requestsIn(metrics []byte) ([]*record.ComponentHistogram, error) {
	var own []byte // the few lines of interest among megabytes
	for line := range bytes.Lines(metrics) {
		if bytes.HasPrefix(bytes.TrimPrefix(line, []byte("# TYPE ")), []byte(requestFamily)) {
			own = append(own, line...)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(own))
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	byName := make(map[string]*record.ComponentHistogram)
	var list []*record.ComponentHistogram
	for _, m := range families[requestFamily].GetMetric() {
		of := make(map[string]string)
		for _, l := range m.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		verb, resource := of["verb"], of["resource"]
		if resource == "" || resource == "leases" || slices.Contains([]string{"WATCH", "WATCHLIST", "CONNECT"}, verb) {
			continue
		}
		if of["subresource"] != "" {
			resource += "/" + of["subresource"]
		}
		name := verb + " " + resource
		h := byName[name]
		if h == nil {
			h = &record.ComponentHistogram{Source: record.SourceRequests, Name: name}
			byName[name], list = h, append(list, h)
		}
		addTo(h, m.GetHistogram())
	}
	return list, nil
}

// addTo adds a published histogram to one with the same buckets.
func addTo(h *record.ComponentHistogram, more *dto.Histogram) {
	h.Count, h.Sum = h.Count+more.GetSampleCount(), h.Sum+more.GetSampleSum()
	at := 0
	for _, b := range more.GetBucket() {
		if b.GetUpperBound() > 1e300 {
			continue
		}
		if at == len(h.Bounds) {
			h.Bounds, h.Counts = append(h.Bounds, b.GetUpperBound()), append(h.Counts, 0)
		}
		h.Counts[at] += b.GetCumulativeCount()
		at++
	}
}
