package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/metrics"
)

// State says in what condition a lab or component is.
type State string

// The states of labs and components.
const (
	Running  State = "running"  // it works
	Starting State = "starting" // a command is bringing it up
	Broken   State = "broken"   // a component does not answer; of a lab, also: a component has no process
	Stopped  State = "stopped"  // a component has no process
)

// Component reports one of a lab's processes.
type Component struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"` // 0 without a process
	State State  `json:"state"`
}

// Status reports the state of a lab.
type Status struct {
	Name       string      `json:"name"`
	State      State       `json:"state"`
	Nodes      *int64      `json:"nodes"` // Nodes and Pods are counted in the cluster; null if it does not answer
	Pods       *int64      `json:"pods"`
	Components []Component `json:"components"`
}

// Components finds the processes of a lab. It does not probe them: State is Running or Stopped.
func (l *Lab) Components() ([]Component, error) {
	processes, err := processesOf(string(l.dir))
	if err != nil {
		return nil, fmt.Errorf("find the components of lab %q: %w", l.Name(), err)
	}
	names := l.componentNames()
	components := make([]Component, 0, len(names))
	for _, name := range names {
		c := Component{Name: name, State: Stopped}
		for _, p := range processes {
			if p.component == name {
				c.PID, c.State = p.pid, Running
			}
		}
		components = append(components, c)
	}
	return components, nil
}

// statusTimeout bounds how long Status waits for answers.
const statusTimeout = 2 * time.Second

// Status finds a lab's processes, probes them, and counts nodes and pods. A broken lab is not an error.
func (l *Lab) Status(ctx context.Context) (Status, error) {
	status := Status{Name: l.Name(), State: Running}
	components, err := l.Components()
	if err != nil {
		return status, err
	}
	status.Components = components
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	// All at once, so that one that hangs does not use up the others' time.
	var asked sync.WaitGroup
	for i, c := range components {
		if c.State != Running {
			continue
		}
		asked.Go(func() {
			probe, err := l.probe(c.Name)
			if err != nil || probe(ctx) != nil {
				components[i].State = Broken
			}
		})
		if c.Name == protocol.APIServer {
			asked.Go(func() {
				if cluster, err := l.cluster(); err == nil {
					if nodes, pods, err := cluster.count(ctx); err == nil {
						status.Nodes, status.Pods = &nodes, &pods
					}
				}
			})
		}
	}
	asked.Wait()
	if slices.ContainsFunc(components, func(c Component) bool { return c.State != Running }) {
		status.State = Broken
	}
	if !l.record.Ready && l.lock == nil && l.beingMade() {
		status.State = Starting
	}
	return status, nil
}

// beingMade reports whether another command holds a lab that was not up yet when it was opened.
func (l *Lab) beingMade() bool {
	held, err := tryLock(string(l.dir))
	if held != nil {
		held.release()
	}
	return held == nil && err == nil
}

// Restart kills a component, starts it again, and returns when it works, with etcd also the API server. It
// returns a *ComponentError for an unknown component, and a *BusyError for a busy lab.
func (l *Lab) Restart(ctx context.Context, component string) error {
	if !slices.Contains(l.componentNames(), component) {
		return &ComponentError{component, l.componentNames()}
	}
	if l.lock == nil {
		held, err := l.acquire(ctx)
		if err != nil {
			return err
		}
		defer held.release()
	}
	err := l.damage
	if err == nil {
		err = l.restart(ctx, component)
	}
	if err != nil {
		return fmt.Errorf("restart %s of lab %q: %w", component, l.Name(), err)
	}
	return nil
}

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
// server's garbage collection, or the waits of another part's client. For a missing kubelet it returns nil.
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
