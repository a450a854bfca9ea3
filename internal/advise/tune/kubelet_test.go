package tune

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletapi "k8s.io/kubelet/config/v1beta1"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestKubeletOfTheDocument(t *testing.T) {
	// V15, V16, V17.
	a, err := cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), EvenSpread: param.Given(true, "flag")})
	answered(t, a, err)
	for name, want := range map[string]int64{"maxPods": 500, "kubeAPIQPS": 100, "kubeAPIBurst": 200, "nodeStatusMaxImages": -1, "podPidsLimit": 4096} {
		wantResult(t, a, name, want)
	}
	correction(t, a, "V17")
	if c := correction(t, a, "V16"); !strings.Contains(c.Right, "not merged") {
		t.Errorf("%+v", c)
	}
	config := objectOf[struct {
		Selector      readSelector   `yaml:"machineConfigPoolSelector"`
		KubeletConfig map[string]any `yaml:"kubeletConfig"`
	}](t, a, "kubeletconfig-worker.yaml")
	// The selector is the label that the pool has by itself: the document's
	// matches none, and nobody has to label anything.
	if got, ok := config.Spec.Selector.MatchLabels[answer.BuiltInLabel+"worker"]; !ok || got != "" || len(a.Files) != 1 {
		t.Errorf("%+v, %+v", config.Spec.Selector, a.Files)
	}
	if len(a.Commands) != 2 || a.Commands[0].Line != "oc apply -f kubeletconfig-worker.yaml" {
		t.Errorf("%+v", a.Commands)
	}
	if f := finding(t, a, "maxPods"); f.Grade != answer.Change || f.Now != "250 by default" {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(strings.Join(a.Warnings, "\n"), "reboots every node") {
		t.Errorf("no warning about reboots: %q", a.Warnings)
	}
	// A pool of one's own selects its own MachineConfigs and worker's.
	a, err = cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), Pool: param.Given("dense", "flag"), Label: param.Given("a=b", "flag"), MaxUnavailable: count(10), Nodes: count(100)})
	answered(t, a, err)
	pool := objectOf[readPool](t, a, "machineconfigpool-dense.yaml")
	if e := pool.Spec.MachineConfigSelector.MatchExpressions; len(e) != 1 || strings.Join(e[0].Values, ",") != "worker,dense" || pool.Metadata.Labels["a"] != "b" || pool.Spec.MaxUnavailable != 10 {
		t.Errorf("%+v", pool)
	}
	wantResult(t, a, "rebootRounds", int64(10))
	wantResult(t, a, "rebootTime", (100 * time.Minute).String())
	// The wait is longer than what is predicted.
	if last := a.Commands[len(a.Commands)-1].Line; !strings.HasSuffix(last, "--timeout=3h") {
		t.Errorf("%s", last)
	}
	// Nothing that was not asked for and is the default.
	a, err = cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(250)})
	answered(t, a, err)
	if text := fileOf(t, a, "kubeletconfig-worker.yaml"); strings.Contains(text, "nodeStatusMaxImages") {
		t.Errorf("%s", text)
	}
}

// What is emitted for the kubelet is read by its own types, and by nothing that
// would let a misspelt field pass.
func TestKubeletReadsItsConfiguration(t *testing.T) {
	for _, p := range []cluster.Kubelet{
		{MaxPods: count(500)},
		{MaxPods: count(110)},
		{MaxPods: count(2500), QPS: count(300), Cores: param.Given(112.0, "flag"), Memory: param.Given(param.Bytes(512<<30), "flag")},
		{MaxPods: count(250), EvenSpread: param.Given(false, "flag"), Costs: []cluster.ComponentCost{{Name: "kubelet", Pods: 250, Cores: 0.9, Memory: 450 << 20, From: "x"}, {Name: "sshd", Pods: 250, Cores: 0.01, Memory: 8 << 20, From: "x"}}},
	} {
		p.Platform = param.Given(param.Kubernetes, "flag")
		a, err := cluster.TuneKubelet(p)
		answered(t, a, err)
		var config kubeletapi.KubeletConfiguration
		if err := k8syaml.UnmarshalStrict([]byte(fileOf(t, a, "kubelet-config.yaml")), &config); err != nil {
			t.Errorf("%v", err)
		}
		if int64(config.MaxPods) != p.MaxPods.Value || config.Kind != "KubeletConfiguration" || config.PodPidsLimit == nil || *config.PodPidsLimit < 1 {
			t.Errorf("%+v", config)
		}
		if len(p.Costs) > 0 && (config.KubeReserved["cpu"] != "1080m" || config.KubeReserved["memory"] != "540Mi" || config.SystemReserved["cpu"] != "20m" || config.SystemReserved["memory"] != "10Mi") {
			t.Errorf("kubeReserved %v, systemReserved %v", config.KubeReserved, config.SystemReserved)
		}
		// The same settings in a KubeletConfig of OpenShift.
		p.Platform = param.Given(param.OpenShift, "flag")
		a, err = cluster.TuneKubelet(p)
		answered(t, a, err)
		var object struct {
			Spec struct {
				KubeletConfig kubeletapi.KubeletConfiguration `json:"kubeletConfig"`
			} `json:"spec"`
		}
		if err := k8syaml.Unmarshal([]byte(fileOf(t, a, "kubeletconfig-worker.yaml")), &object); err != nil {
			t.Error(err)
		}
		inner, err := json.Marshal(object.Spec.KubeletConfig)
		if err != nil {
			t.Fatal(err)
		}
		if err := k8syaml.UnmarshalStrict(inner, &config); err != nil || len(object.Spec.KubeletConfig.KubeReserved) > 0 {
			t.Errorf("%v, kubeReserved %v (OpenShift does not use it)", err, object.Spec.KubeletConfig.KubeReserved)
		}
	}
}

func TestKubeletReserves(t *testing.T) {
	// A line through two readings, with headroom; all of it in systemReserved
	// on OpenShift.
	a, err := cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(500), Headroom: param.Given[param.Share](0, "flag"), Costs: []cluster.ComponentCost{
		{Name: "kubelet", Pods: 100, Cores: 0.4, Memory: 300 << 20, From: "x"}, {Name: "kubelet", Pods: 250, Cores: 0.7, Memory: 450 << 20, From: "x"}, {Name: "crio", Pods: 250, Cores: 0.5, Memory: 100 << 20, From: "x"},
	}})
	answered(t, a, err)
	wantResult(t, a, "systemReserved.cpu", "2200m")    // 1.2 + 1.0
	wantResult(t, a, "systemReserved.memory", "900Mi") // 700 + 200
	if a.Result("kubeReserved.cpu") != nil {
		t.Error("OpenShift does not use kubeReserved")
	}
	// Far beyond what was measured is said to be.
	a, err = cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(2500), Costs: []cluster.ComponentCost{{Name: "kubelet", Pods: 100, Cores: 0.4, Memory: 300 << 20, From: "x"}}})
	answered(t, a, err)
	if !strings.Contains(strings.Join(a.Warnings, "\n"), "more than twice as far") {
		t.Errorf("%q", a.Warnings)
	}
}

func TestKubeletBounds(t *testing.T) {
	for _, tt := range []struct {
		why, what string
		p         cluster.Kubelet
		grade     answer.Grade
	}{
		{"a /23 has too few addresses", "addresses in a /23", cluster.Kubelet{MaxPods: count(500), HostPrefix: count(23)}, answer.Cannot},
		{"a /22 has enough", "addresses in a /22", cluster.Kubelet{MaxPods: count(500), HostPrefix: count(22)}, answer.OK},
		{"2500 need a /20", "addresses in a /20", cluster.Kubelet{MaxPods: count(2500), HostPrefix: count(20)}, answer.OK},
		{"no PIDs left", "PIDs for each pod", cluster.Kubelet{MaxPods: count(500), PIDMax: count(32768)}, answer.Cannot},
		{"beyond what was tested", "tested", cluster.Kubelet{MaxPods: count(2750)}, answer.Advice},
		{"fewer than by default", "maxPods", cluster.Kubelet{MaxPods: count(100)}, answer.OK},
		{"no memory left", "memory that is left", cluster.Kubelet{MaxPods: count(10), Cores: param.Given(4.0, "flag"), Memory: param.Given(param.Bytes(1<<30), "flag"), Costs: []cluster.ComponentCost{{Name: "kubelet", Pods: 10, Cores: 1, Memory: 2 << 30, From: "x"}}}, answer.Cannot},
		{"no CPU left", "CPU that is left", cluster.Kubelet{MaxPods: count(10), Cores: param.Given(1.0, "flag"), Memory: param.Given(param.Bytes(64<<30), "flag"), Costs: []cluster.ComponentCost{{Name: "kubelet", Pods: 10, Cores: 1, Memory: 1 << 30, From: "x"}}}, answer.Cannot},
	} {
		a, err := cluster.TuneKubelet(tt.p)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		if f := finding(t, answered(t, a, nil), tt.what); f.Grade != tt.grade {
			t.Errorf("%s: %+v", tt.why, f)
		}
	}
	// 2500 pods of 4096 PIDs are more than any kernel has.
	a, err := cluster.TuneKubelet(cluster.Kubelet{MaxPods: count(2500)})
	answered(t, a, err)
	wantResult(t, a, "podPidsLimit", int64(1664))
	for why, p := range map[string]cluster.Kubelet{
		"no number of pods":        {},
		"a label without a value":  {MaxPods: count(5), Label: param.Given("enabled", "flag")},
		"a cost of no pods":        {MaxPods: count(5), Costs: []cluster.ComponentCost{{Name: "kubelet", Pods: 0, Cores: 1, Memory: 1, From: "x"}}},
		"less memory than a phone": {MaxPods: count(5), Memory: param.Given(param.Bytes(1024), "flag")},
	} {
		if _, err := cluster.TuneKubelet(p); err == nil {
			t.Errorf("%s was taken", why)
		}
	}
}

func TestKubeletFromACluster(t *testing.T) {
	facts := cluster.Facts{From: "cluster x", Nodes: []cluster.NodeFacts{
		{Name: "big", Worker: true, MaxPods: 250, Cores: 64, Memory: 512 << 30, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}},
		{Name: "small", Worker: true, MaxPods: 110, Cores: 8, Memory: 32 << 30},
		{Name: "master", MaxPods: 50, Cores: 4, Memory: 16 << 30},
	}}
	p := cluster.Kubelet{MaxPods: count(200), Cluster: facts}
	p.Cases()
	if p.Memory.Value != 32<<30 || p.Cores.Value != 8 || p.Nodes.Value != 2 || facts.LeastMaxPods().Value != 110 || p.HostPrefix.Value != 24 || p.Platform.Value != param.Kubernetes {
		t.Errorf("%+v", p)
	}
	a, err := cluster.TuneKubelet(p)
	answered(t, a, err)
	if f := finding(t, a, "maxPods"); f.Grade != answer.Change || !strings.HasPrefix(f.Now, "110 (read from node small") {
		t.Errorf("%+v", f)
	}
	wantResult(t, a, "systemReserved.memory", "3646Mi") // 3.56 GiB
}
