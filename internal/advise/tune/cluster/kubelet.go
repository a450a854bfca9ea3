package cluster

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Kubelet holds the parameters of the kubelets of a pool of nodes.
type Kubelet struct {
	Platform   param.In[string] `yaml:"platform" flag:"platform" help:"what the cluster is" words:"openshift, kubernetes" default:"openshift" why:"the documents' platform"`
	MaxPods    param.In[int64]  `yaml:"maxPods" flag:"max-pods" help:"pods that a node takes" range:"1..100000" needed:"--max-pods 500"`
	QPS        param.In[int64]  `yaml:"qps" flag:"qps" help:"requests per second to the API server (default 50; above 250 pods 100)" range:"1..100000"`
	Burst      param.In[int64]  `yaml:"burst" flag:"burst" help:"requests in a burst (default twice --qps)" range:"1..100000"`
	EvenSpread param.In[bool]   `yaml:"evenSpread" flag:"even-spread" help:"report all images of a node, so that pods spread evenly"`
	HostPrefix param.In[int64]  `yaml:"hostPrefix" flag:"host-prefix" help:"prefix length of each node's subnet" range:"4..30"`
	// Cores and Memory of a node give the reservation by the platform's own rule, Costs by measured components.
	Cores          param.In[float64]       `yaml:"cores" flag:"cores" help:"CPU of a node" range:"0.1..100000"`
	Memory         param.In[param.Bytes]   `yaml:"memory" flag:"memory" help:"memory of a node" range:"256Mi..1024Pi"`
	Costs          []ComponentCost         `yaml:"measured" flag:"measured" takes:"name@pods=cores,memory" help:"what a component of the node used" example:"kubelet@250=0.8,450Mi"`
	Headroom       param.In[param.Share]   `yaml:"headroom" flag:"headroom" help:"on top of what was measured" range:"0..1000%" default:"20%" why:"this program's own allowance" when:"measured"`
	PIDMax         param.In[int64]         `yaml:"pidMax" flag:"pid-max" help:"kernel.pid_max of the nodes" range:"301..4194304" default:"4194304" why:"OpenShift's profile, and systemd's on 64-bit hosts"`
	Pool           param.In[string]        `yaml:"pool" flag:"pool" takes:"name" help:"MachineConfigPool" default:"worker" why:"the pool of ordinary nodes" object:"true"`
	Label          param.In[string]        `yaml:"label" flag:"label" takes:"key=value" help:"label that selects the pool (default: the label that the pool has by itself)"`
	Nodes          param.In[int64]         `yaml:"nodes" flag:"nodes" help:"nodes of the pool" range:"1..1000000"`
	MaxUnavailable param.In[int64]         `yaml:"maxUnavailable" flag:"max-unavailable" help:"nodes that reboot at a time" range:"1..1000000" default:"1" why:"a MachineConfigPool's" when:"rebooted"`
	Reboot         param.In[time.Duration] `yaml:"reboot" flag:"reboot" help:"drain and reboot of one node" default:"10m0s" why:"this program's own guess of a drain and reboot" when:"rebooted"`
	Cluster        Facts
}

// ComponentCost says what a component of a node used with so many pods on it.
type ComponentCost struct {
	Name   string
	Pods   float64
	Cores  float64
	Memory param.Bytes
	From   string
}

// UnmarshalText reads a cost as a parameter.
func (c *ComponentCost) UnmarshalText(text []byte) error {
	var pods int64
	err := param.ReadParts(string(text), "name@pods=cores,memory", &c.Name, &pods, &c.Cores, &c.Memory)
	c.Pods = float64(pods)
	return err
}

// Defaults of the kubelet, from its configuration API, of OpenShift, and of the document (V15).
const (
	DefaultQPS     = 50
	defaultBurst   = 100
	documentQPS    = 100
	documentBurst  = 200
	OpenShiftPIDs  = 4096
	pidsForTheNode = 32768 // left for processes outside of pods
)

// Cases fills in what was read of the cluster, and returns the cases in which defaults matter.
func (p *Kubelet) Cases() map[string]bool {
	p.Platform.Read(p.Cluster.Platform())
	p.HostPrefix.Read(p.Cluster.hostPrefix(true))
	p.Cores.Read(p.Cluster.Cores())
	p.Memory.Read(p.Cluster.Memory())
	p.Nodes.Read(p.Cluster.WorkerCount())
	return map[string]bool{"measured": len(p.Costs) > 0, "rebooted": p.Platform.Value != param.Kubernetes && p.Nodes.Ok()}
}

// TuneKubelet computes the kubelets' settings for a number of pods (V15 to V17, D3, D14).
func TuneKubelet(p Kubelet) (*answer.Answer, error) {
	b, err := answer.Begin("kubelet", &p, func() error {
		if p.Label.Ok() && !param.LabelPair.MatchString(p.Label.Value) {
			return param.Bad("label", "for example custom-kubelet=enabled", "%q: want KEY=VALUE as labels have them", p.Label.Value)
		}
		for _, c := range p.Costs {
			if !param.IsWord(c.Name) || c.Pods < 1 || c.Cores < 0 || c.Memory < 0 || math.IsNaN(c.Cores) {
				return param.Bad("measured", "for example kubelet@250=0.8,450Mi", "%s at %s pods makes no sense", c.Name, param.Trim(c.Pods))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.Title = fmt.Sprintf("Kubelets of %s pods each", param.Grouped(p.MaxPods.Value))
	t := kubeletTuner{b, p, answer.Mapping{{"maxPods", p.MaxPods.Value}}}
	t.Figure("maxPods", p.MaxPods.Value, "", "")
	t.density()
	t.rates()
	t.images()
	t.pids()
	t.reserve()
	t.reboots()
	t.files()
	return &t.Answer, nil
}

type kubeletTuner struct {
	*answer.Builder
	Kubelet
	fields answer.Mapping // the settings to write, as the kubelet's configuration names and orders them
}

// density compares the number of pods with what is usual and tested.
func (t *kubeletTuner) density() {
	n := t.MaxPods.Value
	usual := int64(ceiling.OpenShiftMaxPods)
	if t.Platform.Value == param.Kubernetes {
		usual = ceiling.DefaultMaxPods
	}
	now := fmt.Sprintf("%d by default", usual)
	if read := t.Cluster.LeastMaxPods(); read.Ok() {
		now = fmt.Sprintf("%d (%s)", read.Value, read.From)
		usual = read.Value
	}
	t.Cite("V15", "kubelet-config")
	t.Check(n <= usual, answer.Finding{Grade: answer.Change, What: "maxPods", Now: now, Wanted: fmt.Sprint(n), Cost: "pods beyond it are not scheduled: Too many pods", Remedy: ""})
	switch {
	case n > ceiling.ShownMaxPods:
		t.Cite("openshift-2500")
		t.Find(answer.Finding{Grade: answer.Advice, What: "pods per node that were tested", Now: "", Wanted: "2500 at most", Cost: "untested ground: 2750 failed where 2500 held (D5)", Remedy: "raise step by step from 150 (D18)"})
		t.Cite("D5", "D18")
	case n > ceiling.TestedMaxPods:
		t.Cite("openshift-2500", "D18", "D14")
		t.Find(answer.Finding{Grade: answer.Advice, What: "pods per node that were tested", Now: "", Wanted: "2500 at most, on one cluster of 26 nodes", Cost: "more than the 500 that most releases were tested with", Remedy: "raise step by step from 150 (D18)"})
	case n > ceiling.OpenShiftMaxPods:
		t.Cite("openshift-500")
		t.Find(answer.Finding{Grade: answer.Advice, What: "pods per node that were tested", Now: "", Wanted: "500 at most", Cost: "more than 250 was not recommended, since long runs were missing (V15)", Remedy: "raise step by step"})
	}
	if t.HostPrefix.Ok() {
		four := netip.IPv4Unspecified()
		own := int64(ceiling.Addresses(netip.PrefixFrom(four, int(t.HostPrefix.Value)))) - ceiling.ReservedAddresses
		t.Step("addresses for pods of a node = 2^(32 - hostPrefix) - 2 - 16 of its own", fmt.Sprintf("2^(32 - %d) - 18 = %s", t.HostPrefix.Value, param.Grouped(own)), "D3")
		need := ceiling.HostPrefix(four, n+ceiling.ReservedAddresses)
		t.Check(own >= n, answer.Finding{Grade: answer.Cannot, What: fmt.Sprintf("addresses in a /%d", t.HostPrefix.Value), Now: param.Grouped(max(own, 0)), Wanted: param.Grouped(n), Cost: "pods stay in ContainerCreating without an address", Remedy: fmt.Sprintf("hostPrefix %d, which is chosen at installation: plimsoll tune subnet", need)})
	} else if n > 494 {
		t.Cite("D3")
		t.Warn("a /23 for each node, the default, has 510 addresses, 494 of them for more than the node's own pods: choose hostPrefix at installation (plimsoll tune subnet --pods-per-node %d)", n)
	}
}

// rates is about the kubelet's own bounds on its requests.
func (t *kubeletTuner) rates() {
	qps, burst, from := int64(DefaultQPS), int64(defaultBurst), "the kubelet's default"
	if t.MaxPods.Value > ceiling.OpenShiftMaxPods {
		qps, burst, from = documentQPS, documentBurst, "the document's, for more than 250 pods"
	}
	if t.QPS.Ok() {
		qps, burst, from = t.QPS.Value, 2*t.QPS.Value, t.QPS.From
	}
	if t.Burst.Ok() {
		burst = t.Burst.Value
	}
	if burst < qps {
		t.Warn("kubeAPIBurst %d is below kubeAPIQPS %d: bursts then never reach the rate", burst, qps)
	}
	t.Figure("kubeAPIQPS", qps, "requests/s", fmt.Sprintf("%s; %d by default", from, DefaultQPS))
	t.Figure("kubeAPIBurst", burst, "requests", fmt.Sprintf("%d by default", defaultBurst))
	t.Cite("V15", "kubelet-config")
	if qps != DefaultQPS || burst != defaultBurst {
		t.fields = append(t.fields, [2]any{"kubeAPIQPS", qps}, [2]any{"kubeAPIBurst", burst})
		t.Cite("D14")
		t.Find(answer.Finding{Grade: answer.Advice, What: "kubeAPIQPS and kubeAPIBurst", Wanted: fmt.Sprintf("%d and %d", qps, burst), Remedy: "not required: 2500 pods per node were reached without (D14); it shortens bursts and loads the API server more"})
		if t.Nodes.Ok() {
			t.Step("requests of all kubelets at their bound = nodes x kubeAPIQPS", fmt.Sprintf("%s x %d = %s/s", param.Grouped(t.Nodes.Value), qps, param.Grouped(t.Nodes.Value*qps)), "V15")
		}
	}
}

// images is V16.
func (t *kubeletTuner) images() {
	if t.Platform.Value == param.OpenShift {
		t.Cite("openshift-kubeletconfig")
		t.Correct("V16", "two KubeletConfigs, set-max-pods and custom-scheduling, for the same pool", "one KubeletConfig with all settings of the pool: several for one pool are not merged, the one made last counts", "with the later one alone maxPods stays at 250")
	}
	if !t.EvenSpread.Value {
		return
	}
	t.Cite("V16", "kubelet-config")
	t.Figure("nodeStatusMaxImages", int64(-1), "", "no bound, 50 by default: the scheduler's preference for nodes that have the image then sees all of them")
	t.Warn("nodeStatusMaxImages -1 makes a node's status longer by each image on it, and the status is sent every few minutes and on every change")
	t.fields = append(t.fields, [2]any{"nodeStatusMaxImages", -1})
}

// pids bounds each pod's PIDs so that all pods together leave some.
func (t *kubeletTuner) pids() {
	room := (t.PIDMax.Value - pidsForTheNode) / t.MaxPods.Value
	usual := int64(OpenShiftPIDs)
	limit := min(usual, room)
	if room < 1 {
		t.Find(answer.Finding{Grade: answer.Cannot, What: "PIDs for each pod", Now: "0", Wanted: "at least 1", Cost: "pods cannot start processes", Remedy: "a larger kernel.pid_max: plimsoll tune host"})
		return
	}
	t.Step("podPidsLimit <= (kernel.pid_max - 32768 for the node) / maxPods", fmt.Sprintf("(%d - %d) / %d = %d", t.PIDMax.Value, pidsForTheNode, t.MaxPods.Value, room), "openshift-pids")
	note, write := "OpenShift's default, which leaves PIDs over", true
	switch {
	case limit < usual:
		note = fmt.Sprintf("%d x %d, OpenShift's default, would be more than kernel.pid_max", t.MaxPods.Value, usual)
	case t.Platform.Value == param.Kubernetes:
		note = "without a limit, the kubelet's default, one pod can use up the node's PIDs"
	default:
		write = false
	}
	if write {
		t.fields = append(t.fields, [2]any{"podPidsLimit", limit})
	}
	t.Figure("podPidsLimit", limit, "PIDs/pod", note)
}

// reserve keeps CPU and memory from pods for the node's own components.
func (t *kubeletTuner) reserve() {
	var kube, system reservation
	switch {
	case len(t.Costs) > 0:
		kube, system = t.measured()
	case t.Cores.Ok() && t.Memory.Ok():
		system = t.formula()
	default:
		t.Cite("D14")
		t.Warn("nothing is reserved for the node's own components: measure them (--measured, --run) or give --cores and --memory of a node (D14)")
		return
	}
	if t.Platform.Value == param.OpenShift {
		// OpenShift does not use kubeReserved.
		t.Cite("openshift-reserved")
		system, kube = system.plus(kube), reservation{}
	}
	total := system.plus(kube)
	at := len(t.fields) // where kubeReserved goes before systemReserved
	for _, r := range []struct {
		name string
		reservation
	}{{"systemReserved", system}, {"kubeReserved", kube}} {
		if r.reservation == (reservation{}) {
			continue
		}
		cpu, memory := r.text()
		t.fields = slices.Insert(t.fields, at, [2]any{r.name, answer.Mapping{{"cpu", cpu}, {"memory", memory}}})
		t.Figure(r.name+".cpu", cpu, "", "")
		t.Figure(r.name+".memory", memory, "", "")
	}
	if t.Memory.Ok() {
		left := t.Memory.Value - total.memory - 100<<20
		t.Figure("allocatableMemory", int64(left), "B", "capacity less what is reserved and 100 MiB of the kubelet's hard eviction")
		if left <= 0 {
			t.Find(answer.Finding{Grade: answer.Cannot, What: "memory that is left for pods", Now: left.String(), Wanted: "more than none", Cost: "no pod is scheduled", Remedy: "fewer pods, or a larger node"})
		} else {
			t.Figure("memoryPerPod", int64(left)/t.MaxPods.Value, "B", "for each of maxPods")
		}
	}
	if t.Cores.Ok() && total.cores >= t.Cores.Value {
		t.Find(answer.Finding{Grade: answer.Cannot, What: "CPU that is left for pods", Now: param.Trim(t.Cores.Value - total.cores), Wanted: "more than none", Cost: "no pod is scheduled", Remedy: "fewer pods, or a larger node"})
	}
}

type reservation struct {
	cores  float64
	memory param.Bytes
}

func (r reservation) plus(o reservation) reservation {
	return reservation{r.cores + o.cores, r.memory + o.memory}
}

// text rounds up: CPU to 10 thousandths of a core, memory to MiB.
func (r reservation) text() (cpu, memory string) {
	return fmt.Sprintf("%dm", int64(math.Ceil(r.cores*100-1e-9))*10), fmt.Sprintf("%dMi", (int64(r.memory)+1<<20-1)>>20)
}

// formula is OpenShift's own rule (autoSizingReserved), by the node's size alone.
func (t *kubeletTuner) formula() reservation {
	gib := float64(t.Memory.Value) / (1 << 30)
	memory, rest := 0.0, gib
	for _, tier := range []struct{ size, share float64 }{{4, 0.25}, {4, 0.20}, {8, 0.10}, {112, 0.06}, {math.Inf(1), 0.02}} {
		part := min(rest, tier.size)
		memory += part * tier.share
		rest -= part
	}
	cores := max(0.5, 0.06+0.012*(t.Cores.Value-1))
	t.Step("memory = 25% of the first 4 GiB, 20% of the next 4, 10% of the next 8, 6% of the next 112, 2% of the rest", fmt.Sprintf("of %.1f GiB: %.2f GiB", gib, memory), "openshift-sizing")
	t.Step("CPU = 0.06 + 0.012 x (cores - 1), at least 0.5", fmt.Sprintf("0.06 + 0.012 x %s = %.2f", param.Trim(t.Cores.Value-1), cores), "openshift-sizing")
	t.Warn("this rule knows the node's size, not its number of pods: measure the components at the density that is meant (D14)")
	return reservation{cores, param.Bytes(memory * (1 << 30))}
}

// measured fits a line through each component's use by number of pods, and reads it at maxPods, with headroom.
func (t *kubeletTuner) measured() (kube, system reservation) {
	var names []string
	for _, c := range t.Costs {
		t.Inputs = append(t.Inputs, answer.Input{Name: "cost of " + c.Name, Value: fmt.Sprintf("%s cores, %s at %s pods", param.Trim(math.Round(c.Cores*1000)/1000), c.Memory, param.Trim(c.Pods)), Unit: "", From: c.From})
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	t.Cite("D14")
	at, factor := float64(t.MaxPods.Value), 1+float64(t.Headroom.Value)
	for _, name := range names {
		var pods, cores, memory []float64
		for _, c := range t.Costs {
			if c.Name == name {
				pods, cores, memory = append(pods, c.Pods), append(cores, c.Cores), append(memory, float64(c.Memory))
			}
		}
		needCores, how := extrapolate(pods, cores, at)
		needMemory, _ := extrapolate(pods, memory, at)
		t.Step(fmt.Sprintf("%s at %s pods: %s", name, param.Grouped(t.MaxPods.Value), how), fmt.Sprintf("%.2f cores, %s", needCores, param.Bytes(needMemory)), "D14")
		if slices.Max(pods) < at/2 {
			t.Warn("%s was measured with %s pods at most: %d is more than twice as far", name, param.Trim(slices.Max(pods)), t.MaxPods.Value)
		}
		into := &system
		if slices.Contains([]string{"kubelet", "crio", "cri-o", "containerd", "containerd-shims", "dockerd", "kube-proxy"}, name) {
			into = &kube
		}
		*into = into.plus(reservation{needCores * factor, param.Bytes(needMemory * factor)})
	}
	t.Step("reserved = sum over the components x (1 + headroom)", fmt.Sprintf("x %s: %.2f cores, %s", param.Trim(factor), kube.cores+system.cores, kube.memory+system.memory), "D14")
	return kube, system
}

// extrapolate returns a component's need at a number of pods: on the line of least squares and not below what
// was seen, or with one reading in proportion, which is an upper bound.
func extrapolate(pods, values []float64, at float64) (need float64, how string) {
	most := slices.Max(values)
	if slices.Max(pods) == slices.Min(pods) {
		return most * max(1, at/pods[0]), "in proportion to its pods, from one number of pods: an upper bound"
	}
	base, slope := stat.LinearRegression(pods, values, nil, false)
	if slope < 0 {
		base, slope = stat.Mean(values, nil), 0
	}
	need = base + slope*at
	// At fewer pods than were seen, the need may be less than was seen.
	if at >= slices.Max(pods) {
		need = max(need, most)
	}
	return max(need, 0), fmt.Sprintf("on the line through %d readings", len(pods))
}

// reboots is the other half of V16: the cost of applying it.
func (t *kubeletTuner) reboots() {
	if t.Platform.Value != param.OpenShift {
		t.Warn("kubelets read their configuration when they start: restart them one after the other")
		return
	}
	t.Cite("V16")
	if !t.Nodes.Ok() {
		t.Warn("applying a KubeletConfig reboots every node of the pool, maxUnavailable (1 by default) at a time")
		return
	}
	unavailable, reboot := t.MaxUnavailable, t.Reboot
	rounds := param.CeilDiv(t.Nodes.Value, unavailable.Value)
	total := time.Duration(rounds) * reboot.Value
	t.Step("time of the reboots = nodes / maxUnavailable, rounded up, x time of one", fmt.Sprintf("%s / %d = %d rounds x %v = %v", param.Grouped(t.Nodes.Value), unavailable.Value, rounds, reboot.Value, total), "V16")
	t.Figure("rebootRounds", rounds, "", "")
	t.Figure("rebootTime", total.String(), "", "")
	t.Warn("applying it reboots all %s nodes of the pool, %d at a time: about %v", param.Grouped(t.Nodes.Value), unavailable.Value, total)
}

func (t *kubeletTuner) files() {
	if t.Platform.Value == param.Kubernetes {
		t.Cite("kubelet-config")
		t.File("kubelet-config.yaml", answer.Manifest(append(answer.Mapping{{"apiVersion", "kubelet.config.k8s.io/v1beta1"}, {"kind", "KubeletConfiguration"}}, t.fields...),
			"Part of the kubelet's configuration; a drop-in of --config-dir as it is."), "the kubelet: --config, or --config-dir as 90-plimsoll.conf")
		return
	}
	t.Cite("V17", "openshift-kubeletconfig")
	t.Correct("V17", "machineConfigPoolSelector custom-kubelet: enabled, and oc label machineconfigpool worker custom-kubelet=enable", "the label's value is the selector's; a pool of the operator's own is selected by the label that it has", "the selector matches no pool, and nothing changes")
	pool := t.Pool.Value
	key, value := answer.BuiltInLabel+pool, ""
	if t.Label.Ok() {
		key, value, _ = strings.Cut(t.Label.Value, "=")
	}
	config, file := "kubeletconfig-"+pool+".yaml", "machineconfigpool-"+pool+".yaml"
	t.File(config, answer.Manifest(answer.Object("machineconfiguration.openshift.io/v1", "KubeletConfig", answer.Mapping{{"name", "plimsoll-" + pool}},
		answer.Mapping{{"machineConfigPoolSelector", answer.MatchLabels(key, value)}, {"kubeletConfig", t.fields}},
	), "All settings of the pool's kubelets in one object. It reboots the pool's nodes."), "the machine config operator of OpenShift: oc apply -f")
	own := pool == "worker" || pool == "master"
	unavailable := t.MaxUnavailable.Value
	if strings.HasPrefix(t.MaxUnavailable.From, "default:") {
		unavailable = 0 // the pool's own
	}
	if !own || t.Label.Ok() || unavailable > 0 {
		t.File(file, answer.Manifest(answer.PoolOf(pool, map[string]string{answer.BuiltInLabel + pool: "", key: value}, unavailable), "The pool with the label that the KubeletConfig selects."),
			"the machine config operator of OpenShift: oc apply --server-side -f")
		t.Command("oc apply --server-side -f "+file, "the pool with the label that the KubeletConfig selects, first")
	}
	t.Command("oc apply -f "+config, "this reboots the pool's nodes")
	// Half as long again as the reboots should take.
	hours := int64(24)
	if t.Nodes.Ok() {
		expected := time.Duration(param.CeilDiv(t.Nodes.Value, t.MaxUnavailable.Value)) * t.Reboot.Value
		hours = max(1, int64(math.Ceil(1.5*expected.Hours())))
	}
	t.Command(fmt.Sprintf("oc wait machineconfigpool %s --for=condition=Updated --timeout=%dh", pool, hours), "until every node has it")
}
