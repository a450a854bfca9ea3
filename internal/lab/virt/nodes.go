package virt

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

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
