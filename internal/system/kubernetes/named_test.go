package kubernetes

import (
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/workloads"
)

// What a plan says of a cluster or of a private lab, with the defaults and every
// mistake at its place.
func TestSettingsOfAPlan(t *testing.T) {
	w, err := workload.Load(workloads.FS(), "node-density", workload.TargetsOf(Provider{}.Declare()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ why, text, system, want string }{
		{"nothing is said", "", "a private lab", `{"lab":{"maxPods":110,"nodes":10}}`},
		{"a lab of the usual shape", "{lab: {}}", "a private lab", `{"lab":{"maxPods":110,"nodes":10}}`},
		{"the rest of a lab", "{lab: {nodes: 3}}", "a private lab", `{"lab":{"maxPods":110,"nodes":3}}`},
		{"a real node needs no simulated ones", "{lab: {realNode: true}}", "a private lab", `{"lab":{"maxPods":110,"realNode":true}}`},
		{"all of a real node", "{lab: {realNode: true, nodeCPUs: 0.5, nodeMemory: 1.5Gi, podCIDRPrefix: 22}}", "a private lab", `{"lab":{"maxPods":110,"nodeCPUs":0.5,"nodeMemory":"1536Mi","podCIDRPrefix":22,"realNode":true}}`},
		{"machines have a scale of time", "{lab: {virt: {qps: 5}}}", "a private lab", `{"lab":{"maxPods":110,"nodes":10,"timeScale":1,"virt":{"qps":"5"}}}`},
		{"so have real guests", "{lab: {realGuests: 2}}", "a private lab", `{"lab":{"maxPods":110,"nodes":10,"realGuests":2,"timeScale":1}}`},
		{"a named lab has its own shape", "{labName: l}", "lab l", `{"labName":"l"}`},
		{"a cluster", "{kubeconfig: k}", "the cluster of k", `{"kubeconfig":"k"}`},
		{"a context of it", "{kubeconfig: k, context: c}", "the context c of k", `{"context":"c","kubeconfig":"k"}`},

		{"the cluster of this pod", "{inCluster: true}", "the cluster of this pod", `{"inCluster":true}`},
		{"two targets of three", "{inCluster: true, kubeconfig: b}", "", "f.yaml:3:1: target: more than one target is named (keep one of lab, labName, kubeconfig and inCluster)"},
		{"a context of this pod's cluster", "{inCluster: true, context: b}", "", "f.yaml:3:1: target: more than one target is named (keep one of lab, labName, kubeconfig and inCluster)"},
		{"two targets", "{labName: a, kubeconfig: b}", "", "f.yaml:3:1: target: more than one target is named (keep one of lab, labName, kubeconfig and inCluster)"},
		{"a lab and a cluster's context", "{lab: {}, kubeconfig: k, context: c}", "", "f.yaml:3:1: target: more than one target is named (keep one of lab, labName, kubeconfig and inCluster)"},
		{"a context of no file", "{context: c}", "", "f.yaml:3:19: target.context: a context is named without the kubeconfig that has it (name the file as well: kubeconfig)"},
		{"a lab without nodes", "{lab: {nodes: 0}}", "", "f.yaml:3:23: target.lab.nodes: a lab without nodes holds no pods (for example nodes: 10)"},
		{"fewer nodes than none", "{lab: {nodes: -1}}", "", "f.yaml:3:23: target.lab.nodes: -1 is not a number of simulated nodes: want 0 to 100000 (for example nodes: 10)"},
		{"nodes that hold nothing", "{lab: {maxPods: 0}}", "", "f.yaml:3:25: target.lab.maxPods: 0 is not a number of pods that a node can hold: want 1 to 100000 (for example maxPods: 110)"},
		{"a delay without a shape", "{lab: {startLatency: 5s}}", "", `f.yaml:3:30: target.lab.startLatency: delay "5s" has no shape: want constant:D | uniform:LO,HI | lognormal:P50,P99`},
		{"a number for a truth", "{lab: {realNode: 1}}", "", "f.yaml:3:26: target.lab.realNode: wants true or false, found the number 1"},
		{"what belongs to a real node without one", "{lab: {nodeCPUs: 1}}", "", "f.yaml:3:26: target.lab.nodeCPUs: it belongs to a real node, and the lab has none (add realNode: true)"},
		{"less than no processor", "{lab: {realNode: true, nodeCPUs: -1}}", "", "f.yaml:3:42: target.lab.nodeCPUs: -1 is not a number of processors: want at least 0"},
		{"a range of one address", "{lab: {realNode: true, podCIDRPrefix: 32}}", "", "f.yaml:3:47: target.lab.podCIDRPrefix: 32 is not a prefix of a range of pod addresses: want 16 to 29"},
		{"more guests than there can be", "{lab: {realGuests: 65}}", "", "f.yaml:3:28: target.lab.realGuests: 65 is not a number of real guests: want 0 to 64 (for example realGuests: 2)"},
		{"a figure that there is not", "{lab: {virt: {bootTim: 1s}}}", "", `f.yaml:3:16: target.lab.virt: unknown key "bootTim" (did you mean "bootTime"?)`},
		{"time that stands still", "{lab: {virt: {}, timeScale: 0}}", "", "f.yaml:3:37: target.lab.timeScale: virtual machines need a scale of time above 0 (for example timeScale: 60)"},
		{"machines on a real node alone", "{lab: {realNode: true, timeScale: 2}}", "", "f.yaml:3:10: target.lab.virt: virtual machines need simulated nodes (for example nodes: 20)"},
		{"a key of a lab that is like none", "{lab: {size: 3}}", "", `f.yaml:3:16: target.lab: unknown key "size" (allowed: nodes, maxPods, startLatency, controlPlaneCPUs, virt, timeScale, realGuests, realNode, nodeCPUs, nodeMemory, podCIDRPrefix)`},
	} {
		p, err := plan.Parse("f.yaml", []byte("schema: plimsoll/experiment/v1\nworkload: node-density\ntarget: "+c.text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		p.Default(w)
		if err := p.Validate(w); c.system == "" || err != nil {
			if err == nil || err.Error() != c.want {
				t.Errorf("%s:\n got %v\nwant %s", c.why, err, c.want)
			}
			continue
		}
		if own := p.Own; own.System() != c.system || p.Target.Meaning() != c.want {
			t.Errorf("%s: %s, %s, want %s, %s", c.why, own.System(), p.Target.Meaning(), c.system, c.want)
		}
	}
}

// What names a cluster to another command is what named it to this one.
func TestWhatNamesACluster(t *testing.T) {
	for want, s := range map[string]Settings{
		"": {}, "--lab l": {LabName: "l"}, "--kubeconfig k": {Kubeconfig: "k"}, "--kubeconfig k --context c": {Kubeconfig: "k", Context: "c"},
		"--in-cluster --namespace n": {InCluster: true, Namespace: "n"},
	} {
		if got := s.Named(); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%+v is named %q", s, got)
		}
	}
}

func TestScrapedNodes(t *testing.T) {
	for text, want := range map[string]int{"kubeconfig: k": defaultScraped, "{kubeconfig: k, scrape: {nodes: 2}}": 2, "{kubeconfig: k, scrape: {nodes: 0}}": 0} {
		p, err := plan.Parse("f.yaml", []byte("schema: plimsoll/experiment/v1\nworkload: w\ntarget:\n  "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ValidateTarget(Provider{}.Declare()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := settingsOf(p).scraped(); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
