package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/metrics"
)

// Endpoints are where the lab's parts publish metrics. The API server is asked by the
// lab's own user, to whom priority and fairness does not apply: what is known must not
// end where a load begins to be throttled.
func (l *Lab) Endpoints() ([]metrics.Endpoint, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.dir.componentConfig("admin"))
	if err != nil {
		return nil, err
	}
	admin, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	store, err := l.etcdTransport()
	if err != nil {
		return nil, err
	}
	const lab = "lab"
	ports := l.record.Ports
	list := []metrics.Endpoint{
		{Job: protocol.Etcd, Instance: lab, URL: ports.url(ports.Etcd) + "/metrics", Transport: store},
		{Job: protocol.APIServer, Instance: lab, URL: l.record.apiServer() + "/metrics", Transport: admin},
		{Job: protocol.ControllerManager, Instance: lab, URL: ports.url(ports.ControllerManager) + "/metrics", Transport: admin},
		{Job: protocol.Scheduler, Instance: lab, URL: ports.url(ports.Scheduler) + "/metrics", Transport: admin},
	}
	if l.record.RealNode != nil {
		list = append(list, KubeletEndpoints(l.record.apiServer(), realnode.NodeName, admin, false)...)
	}
	return list, nil
}

// ClientWaits reads how long the requests of a part of the control plane waited for
// the limit of its own client, by the part's own metrics.
func (l *Lab) ClientWaits(part string) func(context.Context) ([]realnode.Histogram, error) {
	return func(ctx context.Context) ([]realnode.Histogram, error) {
		list, err := l.Endpoints()
		if err != nil {
			return nil, err
		}
		e := list[slices.IndexFunc(list, func(e metrics.Endpoint) bool { return e.Job == part })]
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
		if err != nil {
			return nil, err
		}
		answer, err := e.Transport.RoundTrip(request)
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", part, err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("read the metrics of %s: %s", part, answer.Status)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, metricsMost))
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", part, err)
		}
		return realnode.ClientWaits(text)
	}
}

// metricsMost bounds what is read of a program's metrics.
const metricsMost = 64 << 20

// KubeletEndpoints are where a node's kubelet publishes its own metrics and those of
// its containers, by the API server at an address.
func KubeletEndpoints(server, node string, transport http.RoundTripper, far bool) (list []metrics.Endpoint) {
	for _, path := range []string{"/metrics", "/metrics/cadvisor"} {
		list = append(list, metrics.Endpoint{
			Job: protocol.Kubelet, Instance: node, Labels: []string{"metrics_path", path}, Transport: transport, Far: far,
			URL: server + "/api/v1/nodes/" + node + "/proxy" + path,
		})
	}
	return list
}

// etcdTransport asks etcd as the API server does.
func (l *Lab) etcdTransport() (http.RoundTripper, error) {
	pem, err := os.ReadFile(l.dir.cert(etcdCA))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(l.dir.cert(etcdClientCert), l.dir.key(etcdClientCert))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	config.RootCAs.AppendCertsFromPEM(pem)
	return &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, nil
}
