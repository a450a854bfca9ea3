package virt

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

func poolResource() schema.GroupVersionResource {
	return resourceOf("machineconfiguration.openshift.io", "v1", "machineconfigpools")
}

func configResource() schema.GroupVersionResource {
	return resourceOf("machineconfiguration.openshift.io", "v1", "machineconfigs")
}

func resourceOf(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// Annotations that the operator writes on nodes.
const (
	currentConfig = "machineconfiguration.openshift.io/currentConfig"
	desiredConfig = "machineconfiguration.openshift.io/desiredConfig"
	configState   = "machineconfiguration.openshift.io/state"
	configReason  = "machineconfiguration.openshift.io/reason"
	rebooting     = "reboot" // in the annotation of a node that is down
)

// pool holds the fields of a MachineConfigPool that are used here.
type pool struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Paused                bool                  `json:"paused"`
		MaxUnavailable        *intstr.IntOrString   `json:"maxUnavailable"`
		NodeSelector          *metav1.LabelSelector `json:"nodeSelector"`
		MachineConfigSelector *metav1.LabelSelector `json:"machineConfigSelector"`
	} `json:"spec"`
	Status poolStatus `json:"status"`
}

type poolStatus struct {
	ObservedGeneration      int64             `json:"observedGeneration"`
	MachineCount            int32             `json:"machineCount"`
	UpdatedMachineCount     int32             `json:"updatedMachineCount"`
	ReadyMachineCount       int32             `json:"readyMachineCount"`
	UnavailableMachineCount int32             `json:"unavailableMachineCount"`
	DegradedMachineCount    int32             `json:"degradedMachineCount"`
	Configuration           poolConfiguration `json:"configuration"`
	Conditions              []poolCondition   `json:"conditions"`
}

// poolConfiguration names the configuration in force, and its parts.
type poolConfiguration struct {
	Name   string                   `json:"name,omitempty"`
	Source []corev1.ObjectReference `json:"source,omitempty"`
}

type poolCondition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

const (
	poolPeriod   = 5 * time.Second // of the operator
	drainTimeout = time.Hour       // after it the operator calls a node degraded
)

func (w *world) runPools(ctx context.Context) error {
	period := min(max(w.scaled(poolPeriod), 100*time.Millisecond), time.Second)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, u := range w.pools.all() {
			if err := w.syncPool(ctx, u); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				w.Log.Warn("will try again", "pool", u.GetName(), "error", err)
			}
		}
	}, period)
	return nil
}

func (w *world) syncPool(ctx context.Context, u *unstructured.Unstructured) error {
	var p pool
	if err := p.read(u); err != nil {
		return err
	}
	nodes, err := w.nodesOf(&p)
	if err != nil {
		return err
	}
	rendered, err := w.render(&p)
	if err != nil {
		return err
	}
	unavailable := 0
	for _, n := range nodes {
		if !available(n) {
			unavailable++
		}
	}
	var steps sync.WaitGroup
	var mu sync.Mutex
	for _, n := range nodes {
		begin := false
		switch state := n.Annotations[configState]; {
		case n.Annotations[currentConfig] == "":
			// A node that was never configured gets its pool's current configuration.
		case state == "Working" || state == "Degraded":
		case n.Annotations[currentConfig] == rendered:
			continue
		case p.Spec.Paused || unavailable >= mostUnavailable(&p, len(nodes)) && available(n):
			continue
		default:
			begin = true
			if available(n) {
				unavailable++
			}
		}
		steps.Go(func() {
			if stepped := w.stepNode(ctx, &p, n, rendered, begin); stepped != nil {
				mu.Lock()
				defer mu.Unlock()
				err = stepped
			}
		})
	}
	steps.Wait()
	if err != nil {
		return err
	}
	return w.reportPool(ctx, u, &p, rendered)
}

func (p *pool) read(u *unstructured.Unstructured) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return fmt.Errorf("read pool: %w", err)
	}
	return nil
}

// nodesOf returns a pool's simulated nodes in order. A node of several pools belongs to the newest.
func (w *world) nodesOf(p *pool) ([]*corev1.Node, error) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("read nodeSelector: %w", err)
	}
	var newer []labels.Selector
	for _, u := range w.pools.all() {
		var other pool
		if u.GetCreationTimestamp().After(p.Metadata.CreationTimestamp.Time) && other.read(u) == nil {
			if s, err := metav1.LabelSelectorAsSelector(other.Spec.NodeSelector); err == nil {
				newer = append(newer, s)
			}
		}
	}
	var nodes []*corev1.Node
	for _, n := range w.nodes.all() {
		if n.Labels[protocol.FidelityLabel] == protocol.FidelitySimulated && selector.Matches(labels.Set(n.Labels)) &&
			!slices.ContainsFunc(newer, func(s labels.Selector) bool { return s.Matches(labels.Set(n.Labels)) }) {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes, nil
}

// selected returns the configurations that a pool selects, in order.
func (w *world) selected(p *pool) ([]*unstructured.Unstructured, error) {
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.MachineConfigSelector)
	if err != nil {
		return nil, fmt.Errorf("read machineConfigSelector: %w", err)
	}
	configs := slices.DeleteFunc(w.configs.all(), func(c *unstructured.Unstructured) bool { return !selector.Matches(labels.Set(c.GetLabels())) })
	slices.SortFunc(configs, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return configs, nil
}

// render names a pool's rendered configuration: another name for each change of its parts.
func (w *world) render(p *pool) (string, error) {
	configs, err := w.selected(p)
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	for _, c := range configs {
		spec, err := json.Marshal(c.Object["spec"])
		if err != nil {
			return "", fmt.Errorf("read configuration %s: %w", c.GetName(), err)
		}
		fmt.Fprintf(h, "%s %s\n", c.GetName(), spec)
	}
	return fmt.Sprintf("rendered-%s-%016x", p.Metadata.Name, h.Sum64()), nil
}

// contents returns the part of a name that configurations with the same contents share.
func contents(rendered string) string { return rendered[strings.LastIndexByte(rendered, '-')+1:] }

// available reports whether a node takes pods and is not being changed.
func available(n *corev1.Node) bool {
	return !n.Spec.Unschedulable && n.Annotations[configState] != "Working" && n.Annotations[configState] != "Degraded" &&
		slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
}

func mostUnavailable(p *pool, nodes int) int {
	if p.Spec.MaxUnavailable == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(p.Spec.MaxUnavailable, nodes, false)
	if err != nil {
		return 1
	}
	return max(1, most)
}

// newPools returns a pool for each zone, which selects configurations by its name as role.
func newPools() (list []*unstructured.Unstructured) {
	for i := range zones {
		name := fmt.Sprintf("zone-%d", i)
		list = append(list, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
			"metadata": map[string]any{"name": name, "labels": map[string]any{corev1.LabelTopologyZone: name}},
			"spec": map[string]any{"maxUnavailable": "33%", "nodeSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelTopologyZone: name}},
				"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"machineconfiguration.openshift.io/role": name}}}}})
	}
	return list
}

// stepNode cordons, drains, reboots and frees a node, as far as it gets now.
func (w *world) stepNode(ctx context.Context, p *pool, n *corev1.Node, rendered string, begin bool) error {
	if n.Annotations[currentConfig] == "" || begin && contents(rendered) == contents(n.Annotations[currentConfig]) {
		// A new node, or one from another pool with the same configuration.
		return w.markNode(ctx, n.Name, nil, map[string]any{currentConfig: rendered, desiredConfig: rendered, configState: "Done"})
	}
	if begin {
		return w.markNode(ctx, n.Name, new(true), map[string]any{desiredConfig: rendered, configState: "Working", configReason: ""})
	}
	if n.Annotations[protocol.DownAnnotation] == rebooting {
		if left := w.left(n.UID, rebooting, w.Figures.Reboot); left > 0 {
			return nil
		}
		if err := w.setDown(ctx, n.Name, "", corev1.ConditionTrue); err != nil {
			return err
		}
		w.forget(n.UID, rebooting, "drain", "rebooted")
		w.since(n.UID, "rebooted")
		return nil
	}
	w.mu.Lock()
	_, rebooted := w.moments[moment{n.UID, "rebooted"}]
	w.mu.Unlock()
	if rebooted {
		w.forget(n.UID, "rebooted")
		return w.markNode(ctx, n.Name, new(false), map[string]any{currentConfig: n.Annotations[desiredConfig], configState: "Done", configReason: ""})
	}
	degrade := func(reason string) error {
		if n.Annotations[configState] == "Degraded" {
			return nil
		}
		return w.markNode(ctx, n.Name, nil, map[string]any{configState: "Degraded", configReason: reason})
	}
	late := w.left(n.UID, "drain", w.scaled(drainTimeout)) <= 0
	remain, err := w.drain(ctx, n.Name)
	switch {
	case err != nil:
		return err
	case remain > 0 && late:
		return degrade(fmt.Sprintf("failed to drain node: %s after 1 hour: %d pods are left", n.Name, remain))
	case remain > 0:
		return nil
	case p.Metadata.Annotations[FaultAnnotation] == FaultDegraded || p.Metadata.Name == w.Figures.DegradedPool:
		return degrade("unexpected on-disk state validating against " + n.Annotations[desiredConfig])
	}
	w.since(n.UID, rebooting)
	return w.setDown(ctx, n.Name, rebooting, corev1.ConditionFalse)
}

// markNode writes annotations, and cordons or frees the node unless cordon is nil.
func (w *world) markNode(ctx context.Context, name string, cordon *bool, annotations map[string]any) error {
	change := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	if cordon != nil {
		change["spec"] = map[string]any{"unschedulable": *cordon}
	}
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	if _, err := w.free.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("mark node %s: %w", name, err)
	}
	return nil
}

func (w *world) drain(ctx context.Context, node string) (left int, err error) {
	pods, err := w.free.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), ResourceVersion: "0"})
	if err != nil {
		return 0, fmt.Errorf("list pods of %s: %w", node, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOf(pod)
		if owner != nil && owner.Kind == "DaemonSet" || pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			continue
		}
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		left++
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := w.free.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) {
			return left, fmt.Errorf("evict %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return left, nil
}

func (w *world) reportPool(ctx context.Context, u *unstructured.Unstructured, p *pool, rendered string) error {
	nodes, err := w.nodesOf(p)
	if err != nil {
		return err
	}
	next := poolStatus{ObservedGeneration: u.GetGeneration(), MachineCount: int32(len(nodes)), Configuration: p.Status.Configuration}
	why := ""
	for _, n := range nodes {
		switch done := n.Annotations[currentConfig] == rendered && n.Annotations[configState] == "Done"; {
		case n.Annotations[configState] == "Degraded":
			next.DegradedMachineCount++
			why = "Node " + n.Name + " is reporting: " + n.Annotations[configReason]
		case done:
			next.UpdatedMachineCount++
			if available(n) {
				next.ReadyMachineCount++
			}
		}
		if !available(n) {
			next.UnavailableMachineCount++
		}
	}
	updated := next.UpdatedMachineCount == next.MachineCount && next.UnavailableMachineCount == 0
	if updated {
		next.Configuration = poolConfiguration{Name: rendered}
		configs, err := w.selected(p)
		if err != nil {
			return err
		}
		for _, c := range configs {
			next.Configuration.Source = append(next.Configuration.Source, corev1.ObjectReference{APIVersion: c.GetAPIVersion(), Kind: c.GetKind(), Name: c.GetName()})
		}
	}
	next.Conditions = slices.Clone(p.Status.Conditions)
	set := func(kind string, is bool, reason, message string) {
		c := poolCondition{kind, corev1.ConditionFalse, metav1.NewTime(time.Now().Truncate(time.Second)), reason, message}
		if is {
			c.Status = corev1.ConditionTrue
		}
		i := slices.IndexFunc(next.Conditions, func(c poolCondition) bool { return c.Type == kind })
		if i < 0 {
			next.Conditions = append(next.Conditions, c)
			return
		}
		if next.Conditions[i].Status == c.Status {
			c.LastTransitionTime = next.Conditions[i].LastTransitionTime
		}
		next.Conditions[i] = c
	}
	set("Updated", updated, "", "All nodes are updated with "+rendered)
	set("Updating", !updated && !p.Spec.Paused, "", "Nodes are updating to "+rendered)
	set("Degraded", next.DegradedMachineCount > 0, "", why)
	set("NodeDegraded", next.DegradedMachineCount > 0, fmt.Sprintf("%d nodes are reporting degraded status on sync", next.DegradedMachineCount), why)
	set("RenderDegraded", false, "", "")
	if equality.Semantic.DeepEqual(p.Status, next) {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next)
	if err != nil {
		return err
	}
	changed := u.DeepCopy()
	changed.Object["status"] = status
	if _, err := w.free.dynamic.Resource(poolResource()).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report on pool: %w", err)
	}
	return nil
}

const kvm = "devices.kubevirt.io/kvm"

// prepared counts the nodes on which machines can run.
func (w *world) prepared() (n int) {
	for _, node := range w.nodes.all() {
		if node.Labels[kubevirt.NodeSchedulable] != "" {
			n++
		}
	}
	return n
}

// syncNode prepares a simulated node for machines, as virt-handler does, and loses it if that is planted.
func (w *world) syncNode(ctx context.Context, name string) (time.Duration, error) {
	node, ok := w.nodes.get(name)
	if !ok || node.Labels[protocol.FidelityLabel] != protocol.FidelitySimulated {
		return 0, nil
	}
	if node.Labels[kubevirt.NodeSchedulable] == "" {
		if w.Figures.KVMPerNode > 0 {
			devices := fmt.Appendf(nil, `{"status":{"capacity":{%q:"%d"},"allocatable":{%[1]q:"%[2]d"}}}`, kvm, w.Figures.KVMPerNode)
			if _, err := w.free.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, devices, metav1.PatchOptions{}, "status"); err != nil {
				return 0, fmt.Errorf("give devices: %w", err)
			}
		}
		label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true",%q:%q}}}`, kubevirt.NodeSchedulable, corev1.LabelTopologyZone, zoneOf(name))
		if _, err := w.free.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			return 0, fmt.Errorf("label: %w", err)
		}
	}
	why, again := w.lose(node)
	is := node.Annotations[protocol.DownAnnotation]
	switch {
	case why != "" && is == "":
		return 0, w.setDown(ctx, name, why, corev1.ConditionUnknown)
	case why == "" && is == FaultLost:
		return again, w.setDown(ctx, name, "", corev1.ConditionTrue)
	}
	return again, nil
}

const zones = 3 // of the nodes, each with a pool of its own

func zoneOf(node string) string {
	number, _ := strconv.Atoi(node[strings.LastIndexByte(node, '-')+1:]) // without a number it is zone 0
	return fmt.Sprintf("zone-%d", number%zones)
}

// lose says why a node is to be lost, "" if it is not, and when to ask again.
func (w *world) lose(node *corev1.Node) (why string, again time.Duration) {
	if node.Annotations[FaultAnnotation] == FaultLost {
		return FaultLost, 0
	}
	if node.Name != w.Figures.LostNode {
		return "", 0
	}
	for _, pod := range w.launchers.by(byNode, node.Name) {
		if podIs(pod, corev1.ContainersReady, corev1.ConditionTrue) {
			w.since(node.UID, "loaded")
		}
	}
	w.mu.Lock()
	loaded, ok := w.moments[moment{node.UID, "loaded"}]
	w.mu.Unlock()
	switch left := time.Until(loaded.Add(w.Figures.LostAfter)); {
	case !ok:
		return "", w.scaled(5 * time.Second)
	case left > 0:
		return "", left
	}
	return FaultLost, 0
}

func (w *world) setDown(ctx context.Context, name, why string, ready corev1.ConditionStatus) error {
	nodes := w.free.CoreV1().Nodes()
	note := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, protocol.DownAnnotation, why)
	if why == "" {
		note = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, protocol.DownAnnotation)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	reason, message := "NodeStatusUnknown", "the simulated node is down: "+why
	if ready == corev1.ConditionTrue {
		reason, message = "KubeletReady", "simulated node takes pods"
	}
	condition := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":%q,"lastHeartbeatTime":%q,"lastTransitionTime":%[4]q}]}}`,
		ready, reason, message, now)
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, note, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("mark node %s: %w", name, err)
	}
	if _, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, condition, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("take node %s down or up: %w", name, err)
	}
	return nil
}

func (w *world) down(name string) bool {
	node, ok := w.nodes.get(name)
	return ok && node.Annotations[protocol.DownAnnotation] != ""
}
