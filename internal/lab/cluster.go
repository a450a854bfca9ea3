package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

// cluster is a client with all rights, exempt from priority and fairness, to look after a lab.
type cluster struct {
	kubernetes.Interface
	record   record
	progress func(format string, args ...any)
}

func (r *runner) cluster() (c cluster, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", r.dir.componentConfig("admin"))
	if err != nil {
		return c, err
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	return cluster{client, r.record, r.store.progress}, err
}

// waitReady waits until the API server has started, except for the given hooks.
func (c cluster) waitReady(ctx context.Context, except ...string) error {
	return poll(ctx, func() error {
		request := c.CoreV1().RESTClient().Get().AbsPath("/readyz").Timeout(probeTimeout)
		for _, hook := range except {
			request.Param("exclude", hook)
		}
		return request.Do(ctx).Error()
	})
}

func (c cluster) waitRoles(ctx context.Context) error {
	if err := c.waitReady(ctx, hookPriorities); err != nil {
		return fmt.Errorf("wait for the API server's roles: %w", err)
	}
	return nil
}

// setUp writes the lab's marker and the rights of its users into the cluster.
func (c cluster) setUp(ctx context.Context) error {
	bindings := c.RbacV1().ClusterRoleBindings()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: userSimulatedNodes}, Rules: simulatedNodesRules()}
	marker := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: MarkerNamespace, Name: MarkerConfigMap},
		Data:       map[string]string{MarkerKey: c.record.ID, "name": c.record.Name},
	}
	creates := []func(context.Context) error{
		creating(bindings.Create, bindUser(userExperiments, "cluster-admin")),
		creating(c.RbacV1().ClusterRoles().Create, role),
		creating(bindings.Create, bindUser(userSimulatedNodes, userSimulatedNodes)),
		creating(bindings.Create, bindUser(userKubeletClient, "system:kubelet-api-admin")),
		creating(c.CoreV1().ConfigMaps(MarkerNamespace).Create, marker),
		func(ctx context.Context) error { // for the nodes' leases
			_, err := c.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{})
			return err
		},
	}
	if c.record.HasVirt() {
		creates = append(creates, creating(bindings.Create, bindUser(userVirt, "cluster-admin")))
	}
	if c.record.RealNode != nil {
		for _, r := range c.record.RealNode.Programs.Runtimes() {
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Handler: r.Name}
			creates = append(creates, creating(c.NodeV1().RuntimeClasses().Create, class))
		}
	}
	for _, create := range creates {
		// The namespaces appear a moment after the API server says it is ready.
		err := poll(ctx, func() error {
			if err := create(ctx); !apierrors.IsAlreadyExists(err) {
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

func creating[T any](create func(context.Context, T, metav1.CreateOptions) (T, error), object T) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := create(ctx, object, metav1.CreateOptions{})
		return err
	}
}

// dropLease deletes the lease that a component held before it was killed.
func (c cluster) dropLease(ctx context.Context, component string) error {
	err := c.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, component, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take away its lease: %w", err)
	}
	return nil
}

// waitServiceAccount waits for the service account that pods in the namespace default need.
func (c cluster) waitServiceAccount(ctx context.Context) error {
	err := poll(ctx, func() error {
		_, err := c.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the service account of namespace default: %w", err)
	}
	return nil
}

// waitNodesReady waits until all simulated nodes can take pods, and machines if there are any.
func (c cluster) waitNodesReady(ctx context.Context) error {
	if c.record.Nodes == 0 {
		return nil
	}
	ready := map[string]bool{}
	return poll(ctx, func() error { return c.countReady(ctx, ready) })
}

// countReady follows one watch until all nodes are ready or the watch ends.
func (c cluster) countReady(ctx context.Context, ready map[string]bool) error {
	// From version 0 the watch begins with all existing nodes.
	w, err := c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
		LabelSelector: protocol.SimulatedSelector, ResourceVersion: "0",
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
			return fmt.Errorf("%d of %d nodes are ready", len(ready), c.record.Nodes)
		}
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		_, zoned := node.Labels[corev1.LabelTopologyZone]
		if event.Type != watch.Deleted && usable(node) && (zoned || !c.record.HasVirt()) {
			ready[node.Name] = true
		} else {
			delete(ready, node.Name)
		}
		if len(ready) >= c.record.Nodes {
			return nil
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			c.progress("%d of %d nodes are ready", len(ready), c.record.Nodes)
		}
	}
}

func usable(node *corev1.Node) bool {
	ready := readiness(node)
	return ready != nil && ready.Status == corev1.ConditionTrue && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	})
}

func readiness(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

func (c cluster) waitRealNode(ctx context.Context) error {
	described := false
	return poll(ctx, func() error {
		node, err := c.CoreV1().Nodes().Get(ctx, realnode.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !described {
			if err := c.describeNetwork(ctx); err != nil {
				return err
			}
			described = true
		}
		if usable(node) {
			return nil
		}
		if ready := readiness(node); ready != nil {
			return fmt.Errorf("node %s: %s", node.Name, ready.Message)
		}
		return fmt.Errorf("node %s says nothing of itself", node.Name)
	})
}

// describeNetwork writes the pods' addresses on the real node and its bridge into the cluster.
func (c cluster) describeNetwork(ctx context.Context) error {
	pods := c.record.RealNode.PodCIDR.String()
	// A kubelet may not give itself the label of a role.
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"},"labels":{%q:""}},"spec":{"podCIDR":%q,"podCIDRs":[%[3]q]}}`, BridgeAnnotation, protocol.WorkerLabel, pods)
	_, err := c.CoreV1().Nodes().Patch(ctx, realnode.NodeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("describe the real node's network: %w", err)
	}
	return nil
}

// count lists one object of each kind: the reply counts the others at no further cost.
func (c cluster) count(ctx context.Context) (nodes, pods int64, err error) {
	one := metav1.ListOptions{Limit: 1}
	nodeList, err := c.CoreV1().Nodes().List(ctx, one)
	if err != nil {
		return 0, 0, err
	}
	podList, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one)
	if err != nil {
		return 0, 0, err
	}
	return total(len(nodeList.Items), nodeList.RemainingItemCount), total(len(podList.Items), podList.RemainingItemCount), nil
}

func total(here int, more *int64) int64 {
	if more == nil {
		return int64(here)
	}
	return int64(here) + *more
}

func simulatedNodesRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"create", "get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "list", "watch", "update", "delete"}},
	}
}
