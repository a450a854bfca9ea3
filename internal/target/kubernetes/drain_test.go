package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
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
		drainNode("of another run", func(n *corev1.Node) { n.Labels[labelDrained] = "other" }),
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
		{"another run's", map[string]string{labelDrained: "other", labelCordoned: "other"}, "null"},
		{"chosen and not yet cordoned, or cordoned by somebody else since", map[string]string{labelDrained: "run"}, `{"metadata":{` + none + `}}`},
		{"cordoned by the run", map[string]string{labelDrained: "run", labelCordoned: "run"}, `{"metadata":{` + none + `},"spec":{"unschedulable":null}}`},
	}
	for _, tt := range tests {
		got, err := json.Marshal(releaseOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tt.labels}}, "run"))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.why, got, err, tt.want)
		}
	}
}

func TestMostNodesOfAPlan(t *testing.T) {
	tests := []struct {
		axis plan.Axis
		want int
	}{
		{plan.Axis{Levels: []float64{2, 8, 4}}, 8},
		{plan.Axis{Level: new(3.0)}, 3},
		{plan.Axis{Search: &plan.Search{From: 1, Max: 10}}, 10},
	}
	for _, tt := range tests {
		if got := mostNodes(&tt.axis); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.axis, got, tt.want)
		}
	}
}

func TestLimitInAnObject(t *testing.T) {
	object := []byte(`{"spec":{"migrations":{"cluster":20}}}`)
	for path, want := range map[string]int{"spec.migrations.cluster": 20, "spec.migrations.node": 2, "": 2} {
		if got := limitIn(object, workload.Limit{Path: path, Default: 2}); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
}

// A limit that a run sets is the one that holds; of arms the highest.
func TestChangedLimits(t *testing.T) {
	from := &workload.Limits{Kind: "KubeVirt", All: workload.Limit{Path: "spec.all"}, PerPlace: workload.Limit{Path: "spec.each"}}
	arm := func(kind, path string, to int64) armVariant {
		return armVariant{Variant: Variant{Settings: []workload.Value{{To: to, Setting: workload.Setting{In: []workload.SettingPlace{{Kind: "Other", Path: "x"}, {Kind: kind, Path: path}}}}}}}
	}
	for _, tt := range []struct {
		why  string
		arms []armVariant
		want record.Concurrent
	}{
		{"nothing is changed", nil, record.Concurrent{Limit: 5, PerPlaceLimit: 2}},
		{"one limit", []armVariant{arm("KubeVirt", "spec.each", 4)}, record.Concurrent{Limit: 5, PerPlaceLimit: 4}},
		{"arms that differ", []armVariant{arm("KubeVirt", "spec.all", 1), arm("KubeVirt", "spec.all", 3)}, record.Concurrent{Limit: 3, PerPlaceLimit: 2}},
		{"another object's", []armVariant{arm("Quota", "spec.all", 9)}, record.Concurrent{Limit: 5, PerPlaceLimit: 2}},
	} {
		got := record.Concurrent{Limit: 5, PerPlaceLimit: 2}
		if changeLimits(tt.arms, from, &got); got != tt.want {
			t.Errorf("%s: %+v", tt.why, got)
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
