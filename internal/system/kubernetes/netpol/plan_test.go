package netpol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// world returns two namespaces, n-0 and n-1, with pods p-1 to p-3 each. The last one has its node's address.
func world() (namespaces []corev1.Namespace, pods []corev1.Pod) {
	for n := range 2 {
		name := fmt.Sprint("n-", n)
		namespaces = append(namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name, "odd": fmt.Sprint(n == 1)}}})
		for i := 1; i <= 3; i++ {
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprint("p-", i), Labels: map[string]string{"num": fmt.Sprint(i)}, UID: types.UID(addressOf(n, i))}}
			p.Status.PodIP, p.Spec.HostNetwork = addressOf(n, i), i == 3
			pods = append(pods, p)
		}
	}
	return namespaces, pods
}

func addressOf(namespace, pod int) string { return fmt.Sprintf("%d.%d", namespace, pod) }

func specOf(t *testing.T, text string) (spec networkingv1.NetworkPolicySpec) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// A policy allows connections from the pods that it selects to those that it is about.
func TestConnectionsOfAPolicy(t *testing.T) {
	t.Parallel()
	const from = "podSelector: {matchLabels: {num: '1'}}\ningress: [{from: [%]}]"
	named := "{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [n-1, n-9]}]}, podSelector: {matchExpressions: [{key: num, operator: In, values: ['1', '2']}]}}"
	ports := func(list string) string {
		return "podSelector: {}\ningress: [{from: [{podSelector: {matchLabels: {num: '2'}}}], ports: [" + list + "]}]"
	}
	const within = "0.2>0.1"
	for _, tt := range []struct {
		why, spec string
		want      string
		not       bool // such that pods cannot try it
	}{
		{"pods of a namespace by its name, as kube-burner's example has them", strings.Replace(from, "%", named, 1), "1.1>0.1 1.2>0.1", false},
		{"of a namespace by a label", strings.Replace(from, "%", "{namespaceSelector: {matchLabels: {odd: 'true'}}}", 1), "1.1>0.1 1.2>0.1", false},
		{"of its own, without a selector of namespaces, and not to themselves", strings.Replace(from, "%", "{podSelector: {}}", 1), "0.2>0.1", false},
		{"each once, by whichever rule", strings.Replace(from, "%", "{podSelector: {}}, {podSelector: {matchLabels: {num: '2'}}}", 1), "0.2>0.1", false},
		{"of a namespace that is not the run's", strings.Replace(from, "%", "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: n-9}}}", 1), "", false},
		{"addresses are no pods", strings.Replace(from, "%", "{ipBlock: {cidr: 10.0.0.0/8}}", 1), "", true},
		{"nothing", "podSelector: {}\ningress: []", "", true},
		{"the served port", ports("{port: 8080, protocol: TCP}"), within, false},
		{"a range with it", ports("{port: 5000}, {port: 8000, endPort: 9000}"), within, false},
		{"all TCP ports", ports("{protocol: TCP}"), within, false},
		{"another port", ports("{port: 8079}"), "", true},
		{"the port of another protocol", ports("{port: 8080, protocol: UDP}"), "", true},
	} {
		spec := specOf(t, tt.spec)
		if got := allows(&spec); got == tt.not {
			t.Errorf("%s: pods can try it: %v", tt.why, got)
		}
		c := castOf(world())
		list, err := c.pairs(&Policy{Namespace: "n-0", Spec: spec})
		var got []string
		for _, p := range list {
			got = append(got, p.from+">"+p.to)
		}
		if slices.Sort(got); strings.Join(got, " ") != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tt.why, got, err, tt.want)
		}
	}
}

// A connection that two policies allow is ordered once, with the first one.
func TestOrders(t *testing.T) {
	t.Parallel()
	policies := []Policy{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	orders := ordersOf(policies, map[string][]pair{"a": {{"1", "2"}, {"3", "2"}}, "b": {{"1", "2"}, {"1", "4"}, {"1", "5"}}, "c": {{"1", "4"}}})
	got := fmt.Sprint(orders["1"], orders["3"], len(orders))
	if want := "[{[2] [8080] a} {[4 5] [8080] b}] [{[2] [8080] a}] 2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
