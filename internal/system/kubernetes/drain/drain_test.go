package drain

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

func drainNode(name string, change func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(&n)
	}
	return n
}

func TestNodesThatCanBeDrained(t *testing.T) {
	nodes := []corev1.Node{
		drainNode("b", nil), drainNode("a", nil),
		drainNode("cordoned before", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		drainNode("not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		drainNode("control plane", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}} }),
		drainNode("rather not", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}} }),
		drainNode("of another run", func(n *corev1.Node) { n.Labels[api.LabelDrained] = "other" }),
		drainNode("others' machines", nil),
	}
	can := drainable(nodes, map[string]bool{"others' machines": true, "a": false})
	if got := strings.Join(can, ", "); got != "a, b, rather not" {
		t.Errorf("can be drained: %s", got)
	}
	if two, err := chosen(can, 2, "a=b"); err != nil || strings.Join(two, " ") != "a b" {
		t.Errorf("chosen %v, %v", two, err)
	}
	if all, err := chosen(can, 3, "a=b"); err == nil {
		t.Errorf("chosen %v: none is left to take what is on them", all)
	}
}

// What is uncordoned is what the run has cordoned, and nothing else.
func TestReleaseOfANode(t *testing.T) {
	none := `"labels":{"plimsoll.dev/cordoned-by":null,"plimsoll.dev/drain":null,"plimsoll.dev/drained-by":null}`
	tests := []struct {
		why    string
		labels map[string]string
		want   string
	}{
		{"nobody's", nil, "null"},
		{"another run's", map[string]string{api.LabelDrained: "other", api.LabelCordoned: "other"}, "null"},
		{"chosen and not yet cordoned, or cordoned by somebody else since", map[string]string{api.LabelDrained: "run"}, `{"metadata":{` + none + `}}`},
		{"cordoned by the run", map[string]string{api.LabelDrained: "run", api.LabelCordoned: "run"}, `{"metadata":{` + none + `},"spec":{"unschedulable":null}}`},
	}
	for _, tt := range tests {
		got, err := json.Marshal(releaseOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tt.labels}}, "run"))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.why, got, err, tt.want)
		}
	}
}

// A pool's nodes are drained at once within its maxUnavailable.
func TestPoolAtOnce(t *testing.T) {
	tests := []struct {
		why   string
		most  string
		nodes int
		want  int
	}{
		{"the default is one", `null`, 5, 1},
		{"a number", `10`, 33, 10},
		{"more than there are", `10`, 5, 5},
		{"a share is rounded down", `"33%"`, 11, 3},
		{"one at the least", `"33%"`, 2, 1},
		{"no share", `"many"`, 9, 1},
	}
	for _, tt := range tests {
		p := pool{nodes: make([]string, tt.nodes)}
		if err := json.Unmarshal([]byte(`{"spec":{"maxUnavailable":`+tt.most+`}}`), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.atOnce(); got != tt.want {
			t.Errorf("%s: %d at once, want %d", tt.why, got, tt.want)
		}
	}
}
