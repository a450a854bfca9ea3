package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
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

// poll calls f until it succeeds. When ctx ends first, the error holds f's last error.
func poll(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (at last: %v)", context.Cause(ctx), err)
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
	if base == "" {
		base = r.record.Ports.url(port)
	}
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
