package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/metrics"
)

// Endpoints lists where the lab's parts publish metrics, for the lab's own user, whom no limit throttles.
func (l *Lab) Endpoints() ([]metrics.Endpoint, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.dir.componentConfig("admin"))
	if err != nil {
		return nil, err
	}
	admin, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	store, err := l.dir.tls(etcdCA, etcdClientCert)
	if err != nil {
		return nil, err
	}
	const lab = "lab"
	ports := l.record.Ports
	list := []metrics.Endpoint{
		{
			Job: protocol.Etcd, Instance: lab, URL: ports.url(ports.Etcd) + "/metrics",
			Transport: &http.Transport{TLSClientConfig: store, ForceAttemptHTTP2: true},
		},
		{Job: protocol.APIServer, Instance: lab, URL: l.record.apiServer() + "/metrics", Transport: admin},
		{Job: protocol.ControllerManager, Instance: lab, URL: ports.url(ports.ControllerManager) + "/metrics", Transport: admin},
		{Job: protocol.Scheduler, Instance: lab, URL: ports.url(ports.Scheduler) + "/metrics", Transport: admin},
	}
	if l.record.RealNode != nil {
		list = append(list, KubeletEndpoints(l.record.apiServer(), realnode.NodeName, admin, false)...)
	}
	return list, nil
}

// Histograms reads from a part's metrics how long its work took: the kubelet's and its runtime's, the API
// server's garbage collection, or the waits of another part's client. It returns nil without a kubelet.
func (l *Lab) Histograms(ctx context.Context, part string) ([]realnode.Histogram, error) {
	list, err := l.Endpoints()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(e metrics.Endpoint) bool { return e.Job == part })
	if i < 0 {
		return nil, nil
	}
	text, err := read(ctx, list[i])
	if err != nil {
		return nil, fmt.Errorf("read the metrics of %s: %w", part, err)
	}
	switch part {
	case protocol.Kubelet:
		return realnode.KubeletHistograms(bytes.NewReader(text))
	case protocol.APIServer:
		return realnode.Collections(text)
	}
	return realnode.ClientWaits(text)
}

func read(ctx context.Context, from metrics.Endpoint) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from.URL, nil)
	if err != nil {
		return nil, err
	}
	answer, err := from.Transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, metricsMost))
}

// metricsMost bounds the bytes read of a program's metrics.
const metricsMost = 64 << 20

// KubeletEndpoints lists the metrics of a node's kubelet and containers, through the API server.
func KubeletEndpoints(server, node string, transport http.RoundTripper, far bool) (list []metrics.Endpoint) {
	for _, path := range []string{"/metrics", "/metrics/cadvisor"} {
		list = append(list, metrics.Endpoint{
			Job: protocol.Kubelet, Instance: node, Labels: []string{"metrics_path", path}, Transport: transport, Far: far,
			URL: server + "/api/v1/nodes/" + node + "/proxy" + path,
		})
	}
	return list
}
