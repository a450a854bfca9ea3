package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// probePeriod is how often a starting component is asked whether it works.
const probePeriod = 25 * time.Millisecond

// probeTimeout is how long an answer may take.
const probeTimeout = 2 * time.Second

// Parts of the API server's start that wait for a timer of a second and that
// others need not wait for.
const (
	hookRoles      = "poststarthook/rbac/bootstrap-roles"                         // until then only system:masters may do anything
	hookPriorities = "poststarthook/scheduling/bootstrap-system-priority-classes" // for pods that name one
)

// waitHealthy waits until a component does its work, but for the given hooks
// of the API server's, or ctx ends.
func (l *Lab) waitHealthy(ctx context.Context, component string, except ...string) error {
	if component == APIServer {
		return l.waitAPIServer(ctx, except...)
	}
	probe, err := l.probe(component)
	if err != nil {
		return err
	}
	if component == SimulatedNodes {
		if err := l.waitNodesReady(ctx); err != nil {
			return err
		}
	}
	err = poll(ctx, func() error { return probe(ctx) })
	if err == nil && component == RealNode {
		return l.waitRealNode(ctx)
	}
	return err
}

// waitAPIServer waits until the API server's start is complete except for
// some hooks.
func (l *Lab) waitAPIServer(ctx context.Context, except ...string) error {
	client, err := l.admin()
	if err != nil {
		return err
	}
	return poll(ctx, func() error {
		request := client.CoreV1().RESTClient().Get().AbsPath("/readyz").Timeout(probeTimeout)
		for _, hook := range except {
			request.Param("exclude", hook)
		}
		return request.Do(ctx).Error()
	})
}

// poll calls f until it succeeds. When ctx ends first the error says what f
// found last.
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

// probe makes a function that asks a component once whether it works.
func (l *Lab) probe(component string) (func(context.Context) error, error) {
	var ca, cert, base, path string
	var port int
	switch component {
	case Etcd:
		ca, cert, path, port = etcdCA, etcdClientCert, "/readyz", l.record.Ports.Etcd
	case APIServer:
		// Asked without a certificate: it says so to anyone, like any cluster.
		ca, path, base = clusterCA, "/readyz", l.record.apiServer()
	case ControllerManager:
		ca, path, port = clusterCA, "/healthz", l.record.Ports.ControllerManager
	case Scheduler:
		ca, path, port = clusterCA, "/readyz", l.record.Ports.Scheduler
	case SimulatedNodes, RealNode:
		return func(context.Context) error {
			_, err := os.Stat(l.dir.sign(component))
			return err
		}, nil
	case Containerd, Kubelet, KubeProxy:
		return l.probeRealNode(component)
	default:
		return nil, &ComponentError{component, l.componentNames()}
	}
	if base == "" {
		base = l.record.Ports.url(port)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	pem, err := os.ReadFile(l.dir.cert(ca))
	if err != nil {
		return nil, err
	}
	config.RootCAs.AppendCertsFromPEM(pem)
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(l.dir.cert(cert), l.dir.key(cert))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		Timeout:   probeTimeout,
	}
	return healthy(client, base+path), nil
}

// healthy asks a component whether it is well.
func healthy(client *http.Client, url string) func(context.Context) error {
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

// admin is a client with all rights, for setting up and looking after the
// laboratory only: priority and fairness does not apply to it.
func (l *Lab) admin() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.dir.componentConfig("admin"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// setUp writes into the cluster what makes it a laboratory: the marker, and
// the rights of its two users.
func (l *Lab) setUp(ctx context.Context) error {
	client, err := l.admin()
	if err != nil {
		return err
	}
	creates := []func() error{
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, bindUser(userExperiments, "cluster-admin"), metav1.CreateOptions{})
			return err
		},
		func() error {
			role := &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: userSimulatedNodes},
				Rules:      simulatedNodesRules(),
			}
			_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, bindUser(userSimulatedNodes, userSimulatedNodes), metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, bindUser(userKubeletClient, "system:kubelet-api-admin"), metav1.CreateOptions{})
			return err
		},
		func() error {
			marker := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: MarkerNamespace, Name: MarkerConfigMap},
				Data:       map[string]string{MarkerKey: l.record.ID, "name": l.record.Name},
			}
			_, err := client.CoreV1().ConfigMaps(MarkerNamespace).Create(ctx, marker, metav1.CreateOptions{})
			return err
		},
		func() error { // for the nodes' leases
			_, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{})
			return err
		},
	}
	if l.record.RealNode != nil {
		creates = append(creates, runtimeClasses(ctx, client, l.record.RealNode.Programs)...)
	}
	for _, create := range creates {
		// The namespaces appear a moment after the API server says it is ready.
		err := poll(ctx, func() error {
			if err := create(); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("set up users and roles: %w", err)
		}
	}
	return nil
}

func bindUser(user, role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// waitServiceAccount waits for the service account without which no pod can be
// created in the namespace default.
func (l *Lab) waitServiceAccount(ctx context.Context) error {
	client, err := l.admin()
	if err != nil {
		return err
	}
	err = poll(ctx, func() error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace default: %w", err)
	}
	return nil
}

// waitNodesReady waits until all simulated nodes can take pods: Ready, and
// freed by the controller manager of the taint that every new node gets.
func (l *Lab) waitNodesReady(ctx context.Context) error {
	if l.record.Nodes == 0 {
		return nil
	}
	client, err := l.admin()
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	return poll(ctx, func() error { return l.countReady(ctx, client, ready) })
}

// countReady follows one watch until all nodes are ready or the watch ends.
func (l *Lab) countReady(ctx context.Context, client kubernetes.Interface, ready map[string]bool) error {
	// From version 0 the watch begins with all nodes that there are.
	w, err := client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
		LabelSelector:   SimulatedSelector,
		ResourceVersion: "0",
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	told := time.Now()
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-w.ResultChan():
		case <-ctx.Done():
		}
		if !open {
			return fmt.Errorf("%d of %d nodes are ready", len(ready), l.record.Nodes)
		}
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		if event.Type != watch.Deleted && usable(node) {
			ready[node.Name] = true
		} else {
			delete(ready, node.Name)
		}
		if len(ready) >= l.record.Nodes {
			return nil
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			l.store.progress("%d of %d nodes are ready", len(ready), l.record.Nodes)
		}
	}
}

func usable(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
