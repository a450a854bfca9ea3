package tune

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
)

func ceilingOf(t *testing.T, a *answer.Answer, name string) answer.Ceiling {
	t.Helper()
	for _, c := range a.Ceilings {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no ceiling %s: %+v", name, a.Ceilings)
	return answer.Ceiling{}
}

func settingOf(t *testing.T, a *answer.Answer, name string) answer.Setting {
	t.Helper()
	for _, s := range a.Settings {
		if strings.HasPrefix(s.Name, name) {
			return s
		}
	}
	t.Fatalf("no setting %s: %+v", name, a.Settings)
	return answer.Setting{}
}

func TestPlanForMachines(t *testing.T) {
	// V2: 3000 machines and 21,400 pods on 100 nodes, with V12's 141 OSDs.
	a, err := TunePlan(Plan{VMs: count(3000), Pods: count(21400), Nodes: count(100), OSDs: count(141), RTT: param.Given(208*time.Microsecond, "flag"), Link: param.Given(param.Rate(50e9), "flag")})
	answered(t, a, err)
	for name, want := range map[string]any{
		"allPodsPerNode": int64(260), "maxPods": int64(500), "hostPrefix": int64(22), "clusterCIDR": "10.128.0.0/14",
		"pgNum": int64(4096), "virtAPIReplicas": int64(4), "services": int64(0), "migrationTimeExpected": 7080.0,
	} {
		wantResult(t, a, name, want)
	}
	if a.Impossible() {
		t.Errorf("%+v", a.Findings)
	}
	for name, set := range map[string]string{"addressesPerNode": "installation", "nodeSubnets": "installation", "maxPods": "setting", "testedMachines": "tested", "serviceAddresses": "installation"} {
		if c := ceilingOf(t, a, name); c.Set != set || !c.Holds {
			t.Errorf("%+v", c)
		}
	}
	// The customary range is enough, and stays: only the subnets are larger.
	if slices.ContainsFunc(a.Settings, func(s answer.Setting) bool { return s.Name == "range of the pods" }) {
		t.Errorf("%+v", a.Settings)
	}
	// What can only be chosen at installation is said to be, and comes first.
	if s := settingOf(t, a, "hostPrefix"); !s.Fixed || s.Stage != 1 || s.From != "23" || s.To != "22" || s.File != "1-installation/install-config-networking.yaml" {
		t.Errorf("%+v", s)
	}
	if s := settingOf(t, a, "maxPods"); s.Fixed || s.Stage != 3 || s.To != "500" {
		t.Errorf("%+v", s)
	}
	if !a.Stages[0].Fixed || len(a.Stages) != 6 || slices.ContainsFunc(a.Stages[1:], func(s answer.Stage) bool { return s.Fixed }) {
		t.Errorf("%+v", a.Stages)
	}
	if last := a.Settings[0].Stage; last != 1 || !slices.IsSortedFunc(a.Settings, func(x, y answer.Setting) int { return x.Stage - y.Stage }) {
		t.Errorf("the settings are not in their order: %+v", a.Settings)
	}
	for _, path := range []string{"PLAN.md", "1-installation/install-config-networking.yaml", "2-storage/ceph-tuning.sh", "2-storage/etc/sysctl.d/" + host.ArpFile, "3-nodes/kubeletconfig-worker.yaml", "3-nodes/tuned-worker.yaml", "4-virtualization/hyperconverged.yaml"} {
		fileOf(t, a, path)
	}
	// Ceph's hosts get the document's ARP cache; OpenShift's nodes keep the
	// larger one of their own profile.
	if text := fileOf(t, a, "2-storage/etc/sysctl.d/"+host.ArpCacheFile); !strings.Contains(text, "gc_thresh3 = 32768\n") {
		t.Errorf("%s", text)
	}
	if text := fileOf(t, a, "3-nodes/tuned-worker.yaml"); !strings.Contains(text, "gc_thresh3=>65536\n") {
		t.Errorf("%s", text)
	}
	// Commands name the files where the plan writes them.
	if !slices.ContainsFunc(a.Commands, func(c answer.Command) bool { return c.Line == "oc apply -f 3-nodes/kubeletconfig-worker.yaml" }) {
		t.Errorf("%+v", a.Commands)
	}
}

func TestPlanForDensity(t *testing.T) {
	// D3, D16: 2500 pods per node on 26 nodes.
	a, err := TunePlan(Plan{PodsPerNode: count(2500), Nodes: count(26)})
	answered(t, a, err)
	for name, want := range map[string]any{
		"allPods": int64(65000), "maxPods": int64(2500), "hostPrefix": int64(20), "podsPerNodeOfOneNamespace": int64(384), "iterations": int64(32292), "namespaces": int64(7),
	} {
		wantResult(t, a, name, want)
	}
	if c := ceilingOf(t, a, "addressesPerNode"); c.Limit != 4078 || c.Usual != 494 || !c.Holds {
		t.Errorf("%+v", c)
	}
	if c := ceilingOf(t, a, "testedServices"); c.Holds {
		t.Errorf("%+v", c)
	}
	if s := settingOf(t, a, "podPidsLimit"); s.To != "1664" || s.Stage != 2 {
		t.Errorf("%+v", s)
	}
	settingOf(t, a, "namespacedIterations")
	// Without storage and machines there are four stages, numbered in turn.
	if len(a.Stages) != 4 {
		t.Errorf("%+v", a.Stages)
	}
	fileOf(t, a, "2-nodes/kubeletconfig-worker.yaml")
	// Nothing that was not asked for: no MTU, no bound of images, no pool.
	for _, f := range a.Files {
		if strings.Contains(f.Content, "mtu:") || strings.Contains(f.Content, "nodeStatusMaxImages") || strings.Contains(f.Content, "paused") {
			t.Errorf("%s:\n%s", f.Path, f.Content)
		}
	}
	wantResult(t, a, "clusters", int64(1)) // V41
	text := fileOf(t, a, "PLAN.md")
	for _, part := range []string{"## Commands", "oc apply -f 2-nodes/kubeletconfig-worker.yaml", "## 1. before installation", "This cannot be changed later.", "## 4. raise", "enableServiceLinks: false", "| testedServices"} {
		if !strings.Contains(text, part) {
			t.Errorf("PLAN.md lacks %q:\n%s", part, text)
		}
	}
	if !slices.ContainsFunc(a.Commands, func(c answer.Command) bool {
		return strings.HasPrefix(c.Line, "plimsoll limit node-density") && strings.HasSuffix(c.Line, "--max 2500")
	}) {
		t.Errorf("%+v", a.Commands)
	}
	// The customary range holds 64 such nodes. It is left where it is in use
	// elsewhere, and where it is too small.
	wantResult(t, a, "clusterCIDR", "10.128.0.0/14")
	for want, p := range map[string]Plan{
		"10.0.0.0/15":   {Nodes: count(26), Avoid: ranges("10.128.0.0/9")},
		"10.128.0.0/13": {Nodes: count(62)},
	} {
		p.PodsPerNode = count(2500)
		moved, err := TunePlan(p)
		answered(t, moved, err)
		wantResult(t, moved, "clusterCIDR", want)
		if s := settingOf(t, moved, "range of the pods"); s.From != "10.128.0.0/14" || s.To != want {
			t.Errorf("%+v", s)
		}
	}
	// D16's remedy is not asked for below 385 pods per node.
	a, err = TunePlan(Plan{PodsPerNode: count(384), Nodes: count(26)})
	answered(t, a, err)
	wantResult(t, a, "namespaces", int64(1))
	a, err = TunePlan(Plan{PodsPerNode: count(450), Nodes: count(26)})
	answered(t, a, err)
	wantResult(t, a, "namespaces", int64(2))
}

func TestPlanElsewhere(t *testing.T) {
	a, err := TunePlan(Plan{Platform: param.Given(param.Kubernetes, "flag"), Pods: count(5000), Nodes: count(50), Growth: param.Given[param.Share](1, "flag"), MachineCIDRs: ranges("10.0.0.0/8")})
	answered(t, a, err)
	if cidr := a.Result("clusterCIDR").(string); strings.HasPrefix(cidr, "10.") {
		t.Errorf("%s is in the machines' range", cidr)
	}
	fileOf(t, a, "1-installation/kubeadm-cluster.yaml")
	fileOf(t, a, "2-nodes/kubelet-config.yaml")
	for _, f := range a.Files {
		if strings.Contains(f.Content, "machineconfiguration") || strings.Contains(f.Path, "hyperconverged") {
			t.Errorf("%s is OpenShift's", f.Path)
		}
	}
	for why, p := range map[string]Plan{
		"no nodes":              {Pods: count(5)},
		"no pods":               {Nodes: count(5)},
		"pods twice":            {Nodes: count(5), Pods: count(5), PodsPerNode: count(5)},
		"more than there is":    {Nodes: count(100_000), PodsPerNode: count(2500)},
		"a class without count": {Nodes: count(5), Classes: []virt.VMClass{{Name: "x", Count: 0, Cores: 1, Memory: 1, Migration: 0}}},
	} {
		if a, err := TunePlan(p); err == nil {
			t.Errorf("%s was taken: %s", why, a.Title)
		}
	}
}

// every answers once for nearly everything that can be asked.
func every(t *testing.T) []*answer.Answer {
	t.Helper()
	shape, _ := virt.ParseDataset("300x8x20Mi")
	facts, err := host.ReadFacts(bundle(map[string]string{"proc/net/softnet_stat.0": softnetRow(0, 1, 0, 0), "proc/net/softnet_stat.1": softnetRow(0, 9, 1, 1)}), "bundle")
	if err != nil {
		t.Fatal(err)
	}
	var list []*answer.Answer
	add := func(a *answer.Answer, err error) {
		t.Helper()
		list = append(list, answered(t, a, err))
	}
	add(cluster.TuneSubnet(cluster.Subnet{PodsPerNode: count(500), Nodes: count(100), Services: count(10)}))
	add(cluster.TuneSubnet(cluster.Subnet{Platform: param.Given(param.Kubernetes, "x"), Nodes: count(10), DualStack: param.Given(true, "x")}))
	add(cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(2750), Cores: param.Given(8.0, "x"), Memory: param.Given(param.Bytes(32<<30), "x")}))
	add(cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), Nodes: count(5), MaxUnavailable: count(2), EvenSpread: param.Given(true, "x")}))
	add(host.TuneHost(host.Host{Facts: &facts, RTT: param.Given(time.Millisecond, "x"), Link: param.Given(param.Rate(1e9), "x"), Packet: param.Given(param.Bytes(512<<10), "x"), ARPFlux: param.Given(true, "x"), Pods: count(5), Connections: count(5), Outgoing: count(5), Formats: host.HostFormats()}))
	add(host.TuneHost(host.Host{Packet: param.Given(param.Bytes(512<<10), "x"), Pods: count(5), Connections: count(5), Outgoing: count(40_000), Formats: host.HostFormats()}))
	add(ceph.Tune(ceph.Ceph{OSDs: count(141), Clones: count(1000)}))
	add(virt.Tune(virt.Virt{VMs: count(3000), Nodes: count(100), Pods: count(21400), Migrate: count(1000), Zones: count(3), Clones: count(100), CloneLock: param.Given(time.Second, "x"), Dataset: param.Given(shape, "x"), KubeVirt: param.Given("0.44", "x")}))
	add(host.TuneRouter(host.Router{Rate: count(5), Metal: param.Given(true, "x"), Static: count(5), Routes: count(5), Header: param.Given(param.Bytes(5), "x"), Connections: count(5)}))
	add(host.TuneNetwork(host.Network{Networks: count(5), MTU: count(9000), IPsec: param.Given(true, "x"), Facts: &host.Facts{
		NUMA: map[int]string{0: "0"}, Interfaces: []host.Interface{{Name: "e", Up: true, Physical: true, Features: host.NICFeatures{"rx-checksumming": {On: true}}}},
	}}))
	add(TunePlan(Plan{VMs: count(3000), Pods: count(21400), Nodes: count(100), OSDs: count(141)}))
	add(TunePlan(Plan{Platform: param.Given(param.Kubernetes, "x"), VMs: count(300), Pods: count(2000), Nodes: count(100), OSDs: count(141)}))
	return list
}

// Every row of the table of rules, and every page, is used by a calculator.
func TestEveryRuleHasACalculator(t *testing.T) {
	cited := map[string]bool{}
	for _, a := range every(t) {
		for _, s := range a.Sources {
			cited[s.ID] = true
		}
	}
	for row := range strings.FieldsSeq(`
		R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 R17 D3 D4 D5 D8 D14 D15 D16 D18 V2 V3 V4 V5 V6 V7 V8 V9
		V10 V11 V12 V13 V14 V15 V16 V17 V23 V24 V25 V26 V27 V30 V31 V32 V33 V34 V35 V29 V36 V37 V38 V41
	`) {
		if !cited[row] {
			t.Errorf("no calculator is about %s", row)
		}
	}
	page, err := os.ReadFile("../../../docs/tables/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\| ([a-z]\S+) \| \S.* \| https://\S+ \| \S.* \|$`).FindAllStringSubmatch(string(page), -1)
	if len(names) < 30 {
		t.Errorf("docs/tables/sources.md has %d official pages", len(names))
	}
	for _, m := range names {
		if !cited[m[1]] {
			t.Errorf("no calculator follows %s", m[1])
		}
	}
	// What the sources print wrongly is corrected.
	corrected := map[string]bool{}
	for _, a := range every(t) {
		for _, c := range a.Corrections {
			corrected[c.Row] = true
		}
	}
	for _, row := range []string{"R10", "R15", "R17", "V4", "V7", "V8", "V9", "V13", "V17", "V30", "V32", "V33"} {
		if !corrected[row] {
			t.Errorf("the error in %s is not told", row)
		}
	}
}

// What every answer has in common.
func TestEveryAnswerIsWhole(t *testing.T) {
	for _, a := range every(t) {
		if a.Schema != answer.Schema || a.Title == "" || len(a.Inputs) == 0 || len(a.Results) == 0 || len(a.Sources) == 0 || len(a.Steps) == 0 {
			t.Errorf("%s lacks something: %d inputs, %d results, %d sources, %d steps", a.Tool, len(a.Inputs), len(a.Results), len(a.Sources), len(a.Steps))
		}
		for _, format := range answer.Formats() {
			if text, err := answer.Render(a, format, 100); err != nil || len(text) == 0 {
				t.Errorf("%s as %s: %v", a.Tool, format, err)
			}
		}
		names := map[string]bool{}
		for _, r := range a.Results {
			if names[r.Name] {
				t.Errorf("%s: two results %s", a.Tool, r.Name)
			}
			names[r.Name] = true
			switch r.Value.(type) {
			case int64, float64, string, bool:
			default:
				t.Errorf("%s: %s is a %T", a.Tool, r.Name, r.Value)
			}
		}
		for _, in := range a.Inputs {
			if in.From == "" && in.Name != "" {
				t.Errorf("%s: where does %s come from?", a.Tool, in.Name)
			}
		}
		paths := map[string]bool{}
		for _, f := range a.Files {
			if paths[f.Path] || f.For == "" || !strings.HasSuffix(f.Content, "\n") {
				t.Errorf("%s: the file %s is there twice, for nobody, or does not end", a.Tool, f.Path)
			}
			paths[f.Path] = true
			switch {
			case strings.HasSuffix(f.Path, ".yaml"), strings.HasSuffix(f.Path, ".yml"):
				var v any
				if err := yaml.Unmarshal([]byte(f.Content), &v); err != nil {
					t.Errorf("%s: %s: %v", a.Tool, f.Path, err)
				}
			case strings.HasSuffix(f.Path, ".sh"):
				shellReads(t, f.Content)
			}
		}
		if _, err := answer.Write(t.TempDir(), a.Files, false); err != nil {
			t.Errorf("%s: %v", a.Tool, err)
		}
	}
}

// A mistake in a parameter names the parameter.
func TestMistakesAreParamErrors(t *testing.T) {
	for i, f := range []func() (*answer.Answer, error){
		func() (*answer.Answer, error) { return cluster.TuneSubnet(cluster.Subnet{Nodes: count(-1)}) },
		func() (*answer.Answer, error) { return cluster.TuneKubelet(cluster.Kubelet{}) },
		func() (*answer.Answer, error) { return host.TuneHost(host.Host{}) },
		func() (*answer.Answer, error) { return ceph.Tune(ceph.Ceph{}) },
		func() (*answer.Answer, error) { return virt.Tune(virt.Virt{}) },
		func() (*answer.Answer, error) { return host.TuneRouter(host.Router{Threads: count(1000)}) },
		func() (*answer.Answer, error) { return host.TuneNetwork(host.Network{MTU: count(1)}) },
		func() (*answer.Answer, error) { return TunePlan(Plan{}) },
	} {
		a, err := f()
		var param *param.Error
		if a != nil || !errors.As(err, &param) || param.Name == "" || strings.Contains(fmt.Sprint(err), "%!") {
			t.Errorf("%d: %v %v", i, a, err)
		}
	}
}
