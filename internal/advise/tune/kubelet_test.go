package tune

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubeletapi "k8s.io/kubelet/config/v1beta1"
)

func TestKubeletOfTheDocument(t *testing.T) {
	// V15, V16, V17.
	a, err := TuneKubelet(Kubelet{MaxPods: count(500), EvenSpread: Given(true, "flag")})
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
	if got, ok := config.Spec.Selector.MatchLabels[builtInLabel+"worker"]; !ok || got != "" || len(a.Files) != 1 {
		t.Errorf("%+v, %+v", config.Spec.Selector, a.Files)
	}
	if len(a.Commands) != 2 || a.Commands[0].Line != "oc apply -f kubeletconfig-worker.yaml" {
		t.Errorf("%+v", a.Commands)
	}
	if f := finding(t, a, "maxPods"); f.Grade != Change || f.Now != "250 by default" {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(strings.Join(a.Warnings, "\n"), "reboots every node") {
		t.Errorf("no warning about reboots: %q", a.Warnings)
	}
	// A pool of one's own selects its own MachineConfigs and worker's.
	a, err = TuneKubelet(Kubelet{MaxPods: count(500), Pool: Given("dense", "flag"), Label: Given("a=b", "flag"), MaxUnavailable: count(10), Nodes: count(100)})
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
	a, err = TuneKubelet(Kubelet{MaxPods: count(250)})
	answered(t, a, err)
	if text := fileOf(t, a, "kubeletconfig-worker.yaml"); strings.Contains(text, "nodeStatusMaxImages") {
		t.Errorf("%s", text)
	}
}

// What is emitted for the kubelet is read by its own types, and by nothing that
// would let a misspelt field pass.
func TestKubeletReadsItsConfiguration(t *testing.T) {
	for _, p := range []Kubelet{
		{MaxPods: count(500)},
		{MaxPods: count(110)},
		{MaxPods: count(2500), QPS: count(300), Cores: Given(112.0, "flag"), Memory: Given(Bytes(512<<30), "flag")},
		{MaxPods: count(250), EvenSpread: Given(false, "flag"), Costs: []ComponentCost{{"kubelet", 250, 0.9, 450 << 20, "x"}, {"sshd", 250, 0.01, 8 << 20, "x"}}},
	} {
		p.Platform = Given(Kubernetes, "flag")
		a, err := TuneKubelet(p)
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
		p.Platform = Given(OpenShift, "flag")
		a, err = TuneKubelet(p)
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
	// OpenShift's rule, with the figures of its own table.
	for _, tt := range []struct {
		gib    int64
		memory float64
	}{{4, 1}, {8, 1.8}, {16, 2.6}, {32, 3.56}, {64, 5.48}, {128, 9.32}, {256, 11.88}, {512, 17}, {1024, 27.24}} {
		tuner := kubeletTuner{builder: newBuilder("x"), Kubelet: Kubelet{Memory: Given(Bytes(tt.gib<<30), "flag"), Cores: Given(8.0, "flag")}}
		got := tuner.formula()
		if math.Abs(float64(got.memory)/(1<<30)-tt.memory) > 0.005 {
			t.Errorf("%d GiB: %v, want %v GiB", tt.gib, got.memory, tt.memory)
		}
	}
	for _, tt := range []struct{ cores, want float64 }{{1, 0.5}, {16, 0.5}, {64, 0.816}, {128, 1.584}} {
		tuner := kubeletTuner{builder: newBuilder("x"), Kubelet: Kubelet{Memory: Given(Bytes(1<<30), "flag"), Cores: Given(tt.cores, "flag")}}
		if got := tuner.formula(); math.Abs(got.cores-tt.want) > 1e-9 {
			t.Errorf("%v cores: %v, want %v", tt.cores, got.cores, tt.want)
		}
	}
	// A line through two readings, with headroom; all of it in systemReserved
	// on OpenShift.
	a, err := TuneKubelet(Kubelet{MaxPods: count(500), Headroom: Given(0.0, "flag"), Costs: []ComponentCost{
		{"kubelet", 100, 0.4, 300 << 20, "x"}, {"kubelet", 250, 0.7, 450 << 20, "x"}, {"crio", 250, 0.5, 100 << 20, "x"},
	}})
	answered(t, a, err)
	wantResult(t, a, "systemReserved.cpu", "2200m")    // 1.2 + 1.0
	wantResult(t, a, "systemReserved.memory", "900Mi") // 700 + 200
	if a.Result("kubeReserved.cpu") != nil {
		t.Error("OpenShift does not use kubeReserved")
	}
	// Far beyond what was measured is said to be.
	a, err = TuneKubelet(Kubelet{MaxPods: count(2500), Costs: []ComponentCost{{"kubelet", 100, 0.4, 300 << 20, "x"}}})
	answered(t, a, err)
	if !strings.Contains(strings.Join(a.Warnings, "\n"), "more than twice as far") {
		t.Errorf("%q", a.Warnings)
	}
}

// Readings on a line give the line; fewer pods never need more.
func TestExtrapolate(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		base, slope := random.Float64()*10, random.Float64()
		var pods, values []float64
		for range 2 + random.IntN(5) {
			x := float64(1 + random.IntN(400))
			pods, values = append(pods, x), append(values, base+slope*x)
		}
		at := float64(1 + random.IntN(3000))
		got, _ := extrapolate(pods, values, at)
		if pods[0] == pods[1] && len(pods) == 2 {
			continue
		}
		if want := base + slope*at; math.Abs(got-want) > 1e-6*want {
			t.Fatalf("extrapolate(%v, %v, %v) = %v, want %v", pods, values, at, got, want)
		}
	}
	// Noise that falls with the pods is no reason to expect less.
	if got, _ := extrapolate([]float64{100, 200}, []float64{5, 4}, 500); got < 5 {
		t.Errorf("%v", got)
	}
	if got, _ := extrapolate([]float64{100}, []float64{5}, 50); got != 5 {
		t.Errorf("below what was seen: %v", got)
	}
}

func TestKubeletBounds(t *testing.T) {
	for _, tt := range []struct {
		why, what string
		p         Kubelet
		grade     Grade
	}{
		{"a /23 has too few addresses", "addresses in a /23", Kubelet{MaxPods: count(500), HostPrefix: count(23)}, Cannot},
		{"a /22 has enough", "addresses in a /22", Kubelet{MaxPods: count(500), HostPrefix: count(22)}, OK},
		{"2500 need a /20", "addresses in a /20", Kubelet{MaxPods: count(2500), HostPrefix: count(20)}, OK},
		{"no PIDs left", "PIDs for each pod", Kubelet{MaxPods: count(500), PIDMax: count(32768)}, Cannot},
		{"beyond what was tested", "tested", Kubelet{MaxPods: count(2750)}, Advice},
		{"fewer than by default", "maxPods", Kubelet{MaxPods: count(100)}, OK},
		{"no memory left", "memory that is left", Kubelet{MaxPods: count(10), Cores: Given(4.0, "flag"), Memory: Given(Bytes(1<<30), "flag"), Costs: []ComponentCost{{"kubelet", 10, 1, 2 << 30, "x"}}}, Cannot},
		{"no CPU left", "CPU that is left", Kubelet{MaxPods: count(10), Cores: Given(1.0, "flag"), Memory: Given(Bytes(64<<30), "flag"), Costs: []ComponentCost{{"kubelet", 10, 1, 1 << 30, "x"}}}, Cannot},
	} {
		a, err := TuneKubelet(tt.p)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		if f := finding(t, answered(t, a, nil), tt.what); f.Grade != tt.grade {
			t.Errorf("%s: %+v", tt.why, f)
		}
	}
	// 2500 pods of 4096 PIDs are more than any kernel has.
	a, err := TuneKubelet(Kubelet{MaxPods: count(2500)})
	answered(t, a, err)
	wantResult(t, a, "podPidsLimit", int64(1664))
	for why, p := range map[string]Kubelet{
		"no number of pods":        {},
		"a label without a value":  {MaxPods: count(5), Label: Given("enabled", "flag")},
		"a cost of no pods":        {MaxPods: count(5), Costs: []ComponentCost{{"kubelet", 0, 1, 1, "x"}}},
		"less memory than a phone": {MaxPods: count(5), Memory: Given(Bytes(1024), "flag")},
	} {
		if _, err := TuneKubelet(p); err == nil {
			t.Errorf("%s was taken", why)
		}
	}
}

func TestKubeletFromACluster(t *testing.T) {
	facts := ClusterFacts{From: "cluster x", Nodes: []NodeFacts{
		{Name: "big", Worker: true, MaxPods: 250, Cores: 64, Memory: 512 << 30, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}},
		{Name: "small", Worker: true, MaxPods: 110, Cores: 8, Memory: 32 << 30},
		{Name: "master", MaxPods: 50, Cores: 4, Memory: 16 << 30},
	}}
	p := Kubelet{MaxPods: count(200), Cluster: facts}
	p.Params()
	if p.Memory.Value != 32<<30 || p.Cores.Value != 8 || p.Nodes.Value != 2 || facts.leastMaxPods().Value != 110 || p.HostPrefix.Value != 24 || p.Platform.Value != Kubernetes {
		t.Errorf("%+v", p)
	}
	a, err := TuneKubelet(p)
	answered(t, a, err)
	if f := finding(t, a, "maxPods"); f.Grade != Change || !strings.HasPrefix(f.Now, "110 (read from node small") {
		t.Errorf("%+v", f)
	}
	wantResult(t, a, "systemReserved.memory", "3646Mi") // 3.56 GiB
}
