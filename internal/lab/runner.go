package lab

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

const probePeriod = 25 * time.Millisecond // of a component that starts

const probeTimeout = 2 * time.Second // of one answer

// Parts of the API server's start that wait for a timer of a second, and which not all need.
const (
	hookRoles      = "poststarthook/rbac/bootstrap-roles"                         // until then only system:masters has rights
	hookPriorities = "poststarthook/scheduling/bootstrap-system-priority-classes" // for pods that name one
)

// waitHealthy waits until a component works, except for the given hooks of the API server, or ctx ends.
func (r *runner) waitHealthy(ctx context.Context, component string, except ...string) error {
	cluster, err := r.cluster()
	if err != nil {
		return err
	}
	if component == protocol.APIServer {
		return cluster.waitReady(ctx, except...)
	}
	probe, err := r.probe(component)
	if err != nil {
		return err
	}
	if component == protocol.SimulatedNodes {
		if err := cluster.waitNodesReady(ctx); err != nil {
			return err
		}
	}
	if err := poll(ctx, func() error { return probe(ctx) }); err != nil || component != protocol.RealNode {
		return err
	}
	for _, component := range []string{protocol.Kubelet, protocol.KubeProxy} {
		if err := r.waitHealthy(ctx, component); err != nil {
			return fmt.Errorf("wait for %s: %w", component, err)
		}
	}
	return cluster.waitRealNode(ctx)
}

// poll calls f until it succeeds. When ctx ends first, the error holds the last error of f before that.
func poll(ctx context.Context, f func() error) error {
	var why error
	for {
		err := f()
		if err == nil {
			return nil
		}
		if why == nil || ctx.Err() == nil {
			why = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (at last: %v)", context.Cause(ctx), why)
		case <-time.After(probePeriod):
		}
	}
}

// probe returns a function that asks a component once whether it works.
func (r *runner) probe(component string) (func(context.Context) error, error) {
	var ca, cert, base, path string
	var port int
	switch component {
	case protocol.Etcd:
		ca, cert, path, port = etcdCA, etcdClientCert, "/readyz", r.record.Ports.Etcd
	case protocol.APIServer:
		// Without a certificate: any cluster answers this to anyone.
		ca, path, base = clusterCA, "/readyz", r.record.apiServer()
	case protocol.ControllerManager:
		ca, path, port = clusterCA, "/healthz", r.record.Ports.ControllerManager
	case protocol.Scheduler:
		ca, path, port = clusterCA, "/readyz", r.record.Ports.Scheduler
	case protocol.SimulatedNodes, protocol.Virt, protocol.RealNode:
		return func(context.Context) error {
			_, err := os.Stat(r.dir.readyFile(component))
			return err
		}, nil
	case protocol.Containerd, protocol.Kubelet, protocol.KubeProxy:
		return r.probeRealNode(component)
	default:
		return nil, &ComponentError{component, r.componentNames()}
	}
	base = cmp.Or(base, r.record.Ports.url(port))
	config, err := r.dir.tls(ca, cert)
	if err != nil {
		return nil, err
	}
	return healthy(config, base+path), nil
}

// tls trusts an authority of the lab, and presents a certificate unless its name is "".
func (d directory) tls(authority, certificate string) (*tls.Config, error) {
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	pem, err := os.ReadFile(d.cert(authority))
	if err != nil {
		return nil, err
	}
	config.RootCAs.AppendCertsFromPEM(pem)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(d.cert(certificate), d.key(certificate))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (r *runner) probeRealNode(component string) (func(context.Context) error, error) {
	if component == protocol.Containerd {
		return func(ctx context.Context) error {
			process, err := r.processOf(protocol.Containerd)
			if err != nil {
				return err
			}
			if process == nil {
				return fmt.Errorf("containerd has no process")
			}
			// This path leads to the socket in the node's own view of the file system.
			var dialer net.Dialer
			connection, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/%d/root%s", process.pid, realnode.Socket))
			if err != nil {
				return err
			}
			return connection.Close()
		}, nil
	}
	port := realnode.KubeletHealthPort
	if component == protocol.KubeProxy {
		port = realnode.ProxyHealthPort
	}
	url := fmt.Sprintf("http://%s:%d/healthz", r.record.RealNode.Link.Node, port)
	return healthy(nil, url), nil
}

// healthy returns a function that asks a component once; config is nil for plain HTTP.
func healthy(config *tls.Config, url string) func(context.Context) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: probeTimeout}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		reply, err := client.Do(request)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if reply.StatusCode == http.StatusOK {
			return nil
		}
		body, _ := io.ReadAll(io.LimitReader(reply.Body, 2048))
		return fmt.Errorf("%s answers %s: %s", url, reply.Status, body)
	}
}

type runner struct {
	store  Store
	dir    directory
	record record
	tie    *proc.Tie // what a private lab's processes are tied to
}

func (r *runner) componentNames() []string {
	names := ComponentNames()
	if r.record.HasVirt() {
		names = append(names, protocol.Virt)
	}
	if r.record.RealNode == nil {
		return names
	}
	if r.record.Nodes == 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return name == protocol.SimulatedNodes })
	}
	return append(names, RealNodeComponentNames()...)
}

func (r *runner) processOf(component string) (*process, error) {
	processes, err := processesOf(string(r.dir))
	if err != nil {
		return nil, err
	}
	for _, p := range processes {
		if p.component == component {
			return &p, nil
		}
	}
	return nil, nil
}

func (r *runner) start(component string) (*proc.Process, error) {
	var apart []int
	if node := r.record.RealNode; node != nil && component != protocol.RealNode {
		apart = realnode.ProcessorsBeside(node.CPUs)
	}
	c, err := start(r.store.Executable, r.dir, component, arguments(component, r.dir, r.record), r.tie, apart)
	if err != nil {
		return c, err
	}
	if r.record.ControlPlaneCPUs > 0 && slices.Contains([]string{protocol.Etcd, protocol.APIServer, protocol.ControllerManager, protocol.Scheduler}, component) {
		return c, realnode.EnterControlPlane(string(r.dir), c.PID())
	}
	if component != protocol.RealNode {
		return c, nil
	}
	return c, r.record.RealNode.Attach(c.PID())
}

// startAll starts each component as soon as its needs work: clients that retry would pause for seconds.
func (r *runner) startAll(ctx context.Context) error {
	cluster, err := r.cluster()
	if err != nil {
		return err
	}
	if err := r.startOne(ctx, protocol.Etcd); err != nil {
		return err
	}
	if err := r.startOne(ctx, protocol.APIServer, hookRoles, hookPriorities); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := cluster.setUp(ctx); err != nil {
			return err
		}
		for _, component := range []string{protocol.SimulatedNodes, protocol.Virt, protocol.RealNode} {
			if slices.Contains(r.componentNames(), component) {
				group.Go(func() error {
					if component == protocol.Virt { // its rights come from a role
						if err := cluster.waitRoles(ctx); err != nil {
							return err
						}
					}
					return r.startOne(ctx, component)
				})
			}
		}
		return nil
	})
	group.Go(func() error {
		if err := cluster.waitRoles(ctx); err != nil {
			return err
		}
		for _, component := range []string{protocol.ControllerManager, protocol.Scheduler} {
			group.Go(func() error { return r.startOne(ctx, component) })
		}
		if err := cluster.waitServiceAccount(ctx); err != nil {
			return err
		}
		return cluster.waitReady(ctx)
	})
	return group.Wait()
}

// startOne starts a component and waits until it works, but for the given hooks of the API server.
func (r *runner) startOne(ctx context.Context, component string, except ...string) error {
	r.store.progress("starting %s", component)
	if err := ignoreNotExist(os.Remove(r.dir.readyFile(component))); err != nil {
		return err
	}
	c, err := r.start(component)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		select {
		case <-c.Done():
			cancel(&endedError{component, c.State().String(), proc.LogTail(r.dir.log(component), 15)})
		case <-ctx.Done():
		}
	}()
	err = r.waitHealthy(ctx, component, except...)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-watcher
	if err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	return nil
}

type endedError struct{ component, state, log string }

func (e *endedError) Error() string {
	return fmt.Sprintf("it ended by itself (%s); its log ends with\n%s", e.state, e.log)
}

func (r *runner) restart(ctx context.Context, component string) error {
	if slices.Contains([]string{protocol.Containerd, protocol.Kubelet, protocol.KubeProxy}, component) {
		return r.restartOnRealNode(ctx, component)
	}
	err := killAll(ctx, string(r.dir), func(p process) bool { return p.component == component })
	if err != nil {
		return err
	}
	if component == protocol.RealNode {
		// The link went with the node.
		if err := r.record.RealNode.MakeLink(); err != nil {
			return err
		}
	}
	if component == protocol.ControllerManager || component == protocol.Scheduler {
		cluster, err := r.cluster()
		if err == nil {
			err = cluster.dropLease(ctx, component)
		}
		if err != nil {
			return err
		}
	}
	if err := r.startOne(ctx, component); err != nil {
		return err
	}
	if component != protocol.Etcd {
		return nil
	}
	api, err := r.processOf(protocol.APIServer)
	if err != nil || api == nil {
		return err
	}
	return r.waitHealthy(ctx, protocol.APIServer)
}

// restartOnRealNode kills one of the real node's programs; the node's first process starts it again.
func (r *runner) restartOnRealNode(ctx context.Context, component string) error {
	before, err := r.processOf(component)
	if err != nil {
		return err
	}
	if before == nil {
		return fmt.Errorf("it has no process: %q brings the whole node up again", "plimsoll lab restart "+protocol.RealNode)
	}
	if err := before.kill(r.store.labs()); err != nil {
		return err
	}
	err = poll(ctx, func() error {
		now, err := r.processOf(component)
		if err == nil && (now == nil || *now == *before) {
			err = fmt.Errorf("it was not started again")
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.waitHealthy(ctx, component)
}
