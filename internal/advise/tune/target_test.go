package tune

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct {
		why, text                           string
		vms, pods, podsPerNode, nodes, osds int64 // -1 is not said
	}{
		{"V2, as the document has it", "3000 VMs and 21,400 pods on 100 nodes", 3000, 21400, -1, 100, -1},
		{"D2", "2500 pods per node on 26 nodes", -1, -1, 2500, 26, -1},
		{"with a slash, and in capitals", "250 Pods/node on 3 Nodes", -1, -1, 250, 3, -1},
		{"in whole words", "3,000 virtual machines, 21400 idle pods, 100 worker nodes and 141 OSDs", 3000, 21400, -1, 100, 141},
		{"one of each", "1 VM on 1 node", 1, -1, -1, 1, -1},
		{"each node's", "500 pods each node on 20 workers", -1, -1, 500, 20, -1},
	} {
		got, err := ParseTarget(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		for name, x := range map[string]struct {
			in   param.In[int64]
			want int64
		}{"VMs": {got.VMs, tt.vms}, "pods": {got.Pods, tt.pods}, "pods per node": {got.PodsPerNode, tt.podsPerNode}, "nodes": {got.Nodes, tt.nodes}, "OSDs": {got.OSDs, tt.osds}} {
			if x.in.Ok() != (x.want >= 0) || x.in.Ok() && (x.in.Value != x.want || !strings.Contains(x.in.From, tt.text)) {
				t.Errorf("%s: %s: %+v, want %d", tt.why, name, x.in, x.want)
			}
		}
	}
	for text, want := range map[string]string{
		"":                           "is not a target",
		"many VMs":                   `"many" is not a number`,
		"300 podz on 3 nodes":        `did you mean "pods"?`,
		"300 pods and 200 pods":      "says twice",
		"300 VMs per node":           "only pods are counted per node",
		"300":                        "300 of what?",
		"-3 nodes":                   `"-3" is not a number`,
		"2,14 pods on 3 nodes":       `"2,14" is not a number`,
		"99999999999999999 nodes":    "is not a number",
		"3000 VMs on 10 nodes daily": `"daily" is not a number`,
	} {
		if got, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("3000 VMs and 21,400 pods on 100 nodes")
	f.Add("2500 pods per node on 26 nodes")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil {
			return
		}
		// What was read can be planned, or is refused with a reason.
		_, _ = TunePlan(Plan{VMs: got.VMs, Pods: got.Pods, PodsPerNode: got.PodsPerNode, Nodes: got.Nodes, OSDs: got.OSDs})
	})
}
