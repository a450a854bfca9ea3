package signature

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestUnschedulable(t *testing.T) {
	for _, tt := range []struct {
		message string
		want    string
		of      int
		why     string
	}{
		{"0/20 nodes are available: 20 Too many pods.", "20 Too many pods", 20, "nothing about making room"},
		{"0/20 nodes are available: 20 Too many pods. preemption: 0/20 nodes are available: 20 No preemption victims found for incoming pod.", "20 Too many pods", 20, "preemption was tried"},
		{"0/20 nodes are available: 20 Too many pods. no new claims to deallocate, preemption: 0/20 nodes are available: 20 No preemption victims found for incoming pod.", "20 Too many pods", 20, "claims were looked at before preemption"},
		{"0/20 nodes are available: 20 Too many pods. preemption: not eligible due to preemptionPolicy=Never..", "20 Too many pods", 20, "preemption is not allowed"},
		{"0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu. no new claims to deallocate, preemption: 0/5 nodes are available: 1 Preemption is not helpful for scheduling, 4 No preemption victims found for incoming pod.", "4 Insufficient cpu, 1 node(s) had untolerated taint(s)", 5, "the one for the most nodes comes first"},
		{"0/5 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 4 Insufficient memory. preemption: ...", "4 Insufficient memory, 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }", 5, "before 1.35 the taint was named"},
		{"0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory.", "3 Insufficient cpu, 3 Insufficient memory", 3, "a node may lack several things: the scheduler's order stays"},
		{"0/21 nodes are available: 1 Insufficient example.com/gpu, 12 Insufficient cpu, 8 Too many pods.", "12 Insufficient cpu, 8 Too many pods, 1 Insufficient example.com/gpu", 21, "resources have points in their names"},
		{"0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label).", "2 node(s) didn't match pod topology spread constraints (missing required label)", 2, "parentheses"},
		{"0/2 nodes are available: 2 node(s) said no, and meant it.", "2 node(s) said no, and meant it", 2, "a comma within a plugin's reason"},
		{"0/2 nodes are available: 2 node(s) said no", "2 node(s) said no", 2, "without its full stop"},
		{`0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`, "", 0, "a reason for the pod, not for nodes"},
		{"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", "", 0, "another one"},
		{"no nodes available to schedule pods", "", 0, "a cluster without nodes"},
		{"3/3 nodes are available: 3 Too many pods.", "", 0, "no such message"},
		{"0/99999999999999999999 nodes are available: 3 Too many pods.", "", 0, "no such number of nodes"},
		{"0/3 nodes are available: 99999999999999999999 Too many pods.", "", 0, "no such count"},
		{"0/3 nodes are available: -3 Too many pods.", "", 0, "no such count either"},
		{"0/3 nodes are available: ", "", 0, "no reason"},
		{"", "", 0, "no message"},
	} {
		counts, of := Unschedulable(tt.message)
		var words []string
		for _, c := range counts {
			words = append(words, fmt.Sprintf("%d %s", c.Count, c.Reason))
		}
		if got := strings.Join(words, ", "); got != tt.want || of != tt.of {
			t.Errorf("%s: %q of %d, want %q of %d", tt.why, got, of, tt.want, tt.of)
		}
	}
}

// Any message that is put together as the scheduler puts it together is taken
// apart again.
func TestUnschedulableTakesApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	known := []string{"Too many pods", "Insufficient cpu", "Insufficient nvidia.com/gpu", "node(s) had untolerated taint(s)", "node(s) didn't match Pod's node affinity/selector", "node(s) were unschedulable"}
	after := []string{"", " preemption: 0/7 nodes are available: 7 No preemption victims found for incoming pod.", " no new claims to deallocate, preemption: 0/7 nodes are available: 7 Preemption is not helpful for scheduling."}
	for range 500 {
		want := map[string]int{}
		for range 1 + rng.IntN(4) {
			want[known[rng.IntN(len(known))]] = 1 + rng.IntN(5000)
		}
		var parts []string
		for reason, n := range want {
			parts = append(parts, fmt.Sprintf("%v %v", n, reason))
		}
		slices.Sort(parts)
		message := fmt.Sprintf("0/5000 nodes are available: %s.%s", strings.Join(parts, ", "), after[rng.IntN(len(after))])
		counts, of := Unschedulable(message)
		if of != 5000 || len(counts) != len(want) {
			t.Fatalf("%q: %v of %d", message, counts, of)
		}
		for i, c := range counts {
			if want[c.Reason] != c.Count || i > 0 && counts[i-1].Count < c.Count {
				t.Fatalf("%q: %v", message, counts)
			}
		}
	}
}

func FuzzUnschedulable(f *testing.F) {
	f.Add("0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu. preemption: x")
	f.Add("0/2 nodes are available: 2 a, b, 3 c. no new claims to deallocate, preemption: y")
	f.Add("0/0 nodes are available: .")
	f.Fuzz(func(t *testing.T, message string) {
		counts, of := Unschedulable(message)
		if len(counts) == 0 && of != 0 {
			t.Errorf("%q: no reasons, but %d nodes", message, of)
		}
		for i, c := range counts {
			if c.Reason == "" || c.Count < 0 || i > 0 && c.Count > counts[i-1].Count {
				t.Errorf("%q: %v", message, counts)
			}
			if !strings.Contains(message, c.Reason) {
				t.Errorf("%q: the reason %q is not in it", message, c.Reason)
			}
		}
	})
}
