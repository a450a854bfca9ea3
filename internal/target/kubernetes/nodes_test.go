package kubernetes

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
)

// What a node's own conditions tell is told when it changes, whether it came
// by the watch or by a list after a gap, and what was so before any load is
// no news.
func TestTroublesOfNodes(t *testing.T) {
	node := func(name string, conditions ...corev1.NodeCondition) []byte {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
		raw, err := n.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Message: message}
	}
	ready := condition(corev1.NodeReady, corev1.ConditionTrue, "")
	silent := condition(corev1.NodeReady, corev1.ConditionUnknown, "Kubelet stopped posting node status.")
	full := condition(corev1.NodeDiskPressure, corev1.ConditionTrue, "kubelet has disk pressure")
	roomy := condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "")

	var told []string
	s := newNodeSet()
	s.tell = func(now record.Micros, e *record.KubeEvent) {
		told = append(told, fmt.Sprintf("%d %s %s %s: %s", now, e.Type, e.Object, e.Reason, e.Message))
	}
	list := func(now record.Micros, nodes ...[]byte) {
		err := s.listed(now, func(each func([]byte) error) error {
			for _, n := range nodes {
				if err := each(n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change := func(now record.Micros, raw []byte, kind string) {
		if err := s.changed(now, kind, raw); err != nil {
			t.Fatal(err)
		}
	}
	list(1, node("a", ready, roomy), node("b", silent))
	change(2, node("a", ready, roomy), eventModified)
	change(3, node("b", silent), eventModified)
	change(4, node("c", silent), eventAdded) // a node that comes up
	change(5, node("a", silent, full), eventModified)
	change(6, node("a", silent, full), eventModified)
	change(7, node("b", ready), eventModified)
	if n := s.countNotReady(); n != 2 {
		t.Errorf("%d nodes are not ready, want a and c", n)
	}
	list(8, node("a", ready, full), node("b", silent), node("d", silent))
	change(9, node("b", silent), eventDeleted)
	want := []string{
		"5 Warning a NodeNotReady: Kubelet stopped posting node status.", "5 Warning a NodeHasDiskPressure: kubelet has disk pressure",
		"7 Normal b NodeTroubleOver: NodeNotReady is over",
		"8 Normal a NodeTroubleOver: NodeNotReady is over", "8 Warning b NodeNotReady: Kubelet stopped posting node status.",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q\nwant %q", told, want)
	}
	if n := s.countNotReady(); n != 1 {
		t.Errorf("%d nodes are not ready, want d", n)
	}
}
