package follow

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// A change of a node's conditions is news, by the watch or by a list after a gap. A
// condition from before the load is not.
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
	s.tell = func(now record.Micros, body record.Body) {
		e := body.(*record.TargetEvent)
		told = append(told, fmt.Sprintf("%d %s %s %s: %s", now, e.Type, e.Object, e.Reason, e.Message))
	}
	change := func(now record.Micros, raw []byte, kind string) {
		if err := s.Changed(now, kind, raw); err != nil {
			t.Fatal(err)
		}
	}
	list := func(now record.Micros, nodes ...[]byte) {
		for _, n := range nodes {
			change(now, n, api.Listed)
		}
	}
	list(1, node("a", ready, roomy), node("b", silent))
	change(2, node("a", ready, roomy), api.EventModified)
	change(3, node("b", silent), api.EventModified)
	change(4, node("c", silent), api.EventAdded) // a node that comes up
	change(5, node("a", silent, full), api.EventModified)
	change(6, node("a", silent, full), api.EventModified)
	change(7, node("b", ready), api.EventModified)
	if n := s.CountNotReady(); n != 2 {
		t.Errorf("%d nodes are not ready, want a and c", n)
	}
	list(8, node("a", ready, full), node("b", silent), node("d", silent))
	s.Missing(8, []api.Identity{{Name: "c"}})
	change(9, node("b", silent), api.EventDeleted)
	want := []string{
		"5 Warning a NodeNotReady: Kubelet stopped posting node status.", "5 Warning a NodeHasDiskPressure: kubelet has disk pressure",
		"7 Normal b NodeTroubleOver: NodeNotReady is over",
		"8 Normal a NodeTroubleOver: NodeNotReady is over", "8 Warning b NodeNotReady: Kubelet stopped posting node status.",
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q\nwant %q", told, want)
	}
	if n := s.CountNotReady(); n != 1 {
		t.Errorf("%d nodes are not ready, want d", n)
	}
}

// What happens to nodes on purpose is not a failure: their operator reboots them, or a
// run drains them. What happens to others meanwhile is reported.
func TestEventsThatAreMeant(t *testing.T) {
	node := func(name, state, cordonedBy string, ready, closed bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{annotationUpdate: state}}, Spec: corev1.NodeSpec{Unschedulable: closed}}
		if cordonedBy != "" {
			n.Labels[api.LabelCordoned] = cordonedBy
		}
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		return n
	}
	rebooted, drained := node("rebooted", "Working", "", false, true), node("drained", "", "run", true, true)
	well, lost, shut := node("well", "Done", "", true, false), node("lost", "Done", "", false, false), node("shut", "", "", true, true)
	event := func(kind, name, reason, message string) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Reason: reason, Message: message}
	}
	notReady, podOn := event("Node", "rebooted", "NodeNotReady", ""), event("Pod", "p", "NodeNotReady", "Node is not ready")
	noPlace := event("Pod", "p", "FailedScheduling", "0/3 nodes are available: 2 node(s) were unschedulable, 1 Too many pods.")
	tests := []struct {
		why   string
		nodes []*corev1.Node
		event *corev1.Event
		want  bool
	}{
		{"a node that is rebooted", []*corev1.Node{rebooted, well}, notReady, true},
		{"another one is lost meanwhile", []*corev1.Node{rebooted, lost}, notReady, true},
		{"the lost one", []*corev1.Node{rebooted, lost}, event("Node", "lost", "NodeNotReady", ""), false},
		{"a pod of a node that is rebooted", []*corev1.Node{rebooted, well}, podOn, true},
		{"a pod, perhaps of the lost one", []*corev1.Node{rebooted, lost}, podOn, false},
		{"no node is rebooted", []*corev1.Node{well}, podOn, false},
		{"pods wait for nodes that are drained", []*corev1.Node{rebooted, drained, well}, noPlace, true},
		{"somebody has closed one", []*corev1.Node{drained, shut, well}, noPlace, false},
		{"pods wait for room", []*corev1.Node{rebooted}, event("Pod", "p", "FailedScheduling", "0/3 nodes are available: 2 Too many pods, 1 node(s) were unschedulable."), false},
		{"an event of something else", []*corev1.Node{rebooted}, event("Pod", "p", "Unhealthy", ""), false},
	}
	for _, tt := range tests {
		s := newNodeSet()
		for _, n := range tt.nodes {
			s.put(n.DeepCopy(), false)
		}
		if got := s.meant(tt.event); got != tt.want {
			t.Errorf("%s: %t", tt.why, got)
		}
	}
}
