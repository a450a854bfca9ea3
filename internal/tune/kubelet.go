package tune

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Kubelet are the parameters of the kubelets of a pool of nodes.
type Kubelet struct {
	Platform   In[string]
	MaxPods    In[int64]
	QPS, Burst In[int64]
	EvenSpread In[bool]  // report all images of a node, so that pods spread evenly
	HostPrefix In[int64] // of the nodes' subnets, if known
	// Cores and Memory of a node give what is to be reserved by the platform's
	// own rule, Costs by what components were measured to use.
	Cores  In[float64]
	Memory In[Bytes]
	Costs  []ComponentCost
	// Headroom on top of measured costs, as a share.
	Headroom       In[float64]
	PIDMax         In[int64] // kernel.pid_max
	Pool           In[string]
	Label          In[string] // of the pool, as KEY=VALUE
	Nodes          In[int64]
	MaxUnavailable In[int64]
	Reboot         In[time.Duration] // of one node
	// NowMaxPods is what the nodes have, as read from a cluster.
	NowMaxPods In[int64]
}

// ComponentCost is what one component of a node used with so many pods on it.
type ComponentCost struct {
	Name   string
	Pods   float64
	Cores  float64
	Memory Bytes
	From   string
}

// Defaults of the kubelet, from its configuration API, and of OpenShift.
const (
	upstreamMaxPods  = 110
	openShiftMaxPods = 250
	defaultQPS       = 50
	defaultBurst     = 100
	documentQPS      = 100 // V15
	documentBurst    = 200
	openShiftPIDs    = 4096
	// pidsForTheNode are left to what is no pod.
	pidsForTheNode = 32768
	largestPIDMax  = 4194304
)

// TuneKubelet reckons the kubelets' settings for a number of pods (V15 to V17,
// D3, D14).
func TuneKubelet(p Kubelet) (*Answer, error) {
	if !p.MaxPods.Ok() {
		return nil, needs("max-pods", "how many pods a node is to take", "--max-pods 500")
	}
	p.Platform = p.Platform.or(OpenShift, "the documents' platform")
	p.Pool = p.Pool.or("worker", "the pool of ordinary nodes")
	p.Label = p.Label.or("custom-kubelet=enabled", "V17")
	p.Headroom = p.Headroom.or(0.2, "this program's own allowance")
	p.PIDMax = p.PIDMax.or(largestPIDMax, "OpenShift's profile, and systemd's on 64-bit hosts")
	key, value, ok := strings.Cut(p.Label.Value, "=")
	if !ok || key == "" {
		return nil, badParam("label", "for example custom-kubelet=enabled", "%q: want KEY=VALUE", p.Label.Value)
	}
	if err := fit(
		within("max-pods", p.MaxPods, 1, 100_000), within("qps", p.QPS, 1, 100_000), within("burst", p.Burst, 1, 100_000),
		within("host-prefix", p.HostPrefix, 4, 30), within("cores", p.Cores, 0.1, 100_000), within("headroom", p.Headroom, 0, 10),
		within("pid-max", p.PIDMax, 301, largestPIDMax), within("nodes", p.Nodes, 1, 1_000_000), within("max-unavailable", p.MaxUnavailable, 1, 1_000_000),
		checkWord("pool", p.Pool.Value), checkWord("label", p.Label.Value), checkCosts(p.Costs),
	); err != nil {
		return nil, err
	}
	if p.Memory.Ok() && p.Memory.Value < 256<<20 {
		return nil, badParam("memory", "for example 384Gi", "%s is less than any node has", p.Memory.Value)
	}
	a := newAnswer("kubelet", fmt.Sprintf("Kubelets of %s pods each", grouped(p.MaxPods.Value)))
	input(a, "platform", p.Platform, "")
	input(a, "maxPods", p.MaxPods, "")
	input(a, "hostPrefix", p.HostPrefix, "")
	input(a, "cores", p.Cores, "")
	input(a, "memory", p.Memory, "B")

	k := kubeletFields{MaxPods: p.MaxPods.Value}
	a.result("maxPods", p.MaxPods.Value, "", "")
	a.density(p)
	a.rates(p, &k)
	a.images(p, &k)
	a.pids(p, &k)
	a.reserve(p, &k)
	a.reboots(p)
	a.kubeletFiles(p, k, key, value)
	return a, nil
}

func checkCosts(costs []ComponentCost) error {
	for _, c := range costs {
		if !plainWord(c.Name) || c.Pods < 1 || c.Cores < 0 || c.Memory < 0 || math.IsNaN(c.Cores) {
			return badParam("measured", "for example kubelet@250=0.8,450Mi", "%s at %s pods makes no sense", c.Name, trim(c.Pods))
		}
	}
	return nil
}

// density says how far the number of pods is from what is usual and tested.
func (a *Answer) density(p Kubelet) {
	n := p.MaxPods.Value
	usual := int64(openShiftMaxPods)
	if p.Platform.Value == Kubernetes {
		usual = upstreamMaxPods
	}
	now := fmt.Sprintf("%d by default", usual)
	if p.NowMaxPods.Ok() {
		now = fmt.Sprintf("%d (%s)", p.NowMaxPods.Value, p.NowMaxPods.From)
		usual = p.NowMaxPods.Value
	}
	a.cite("V15", "kubelet-config")
	grade := OK
	if n > usual {
		grade = Change
	}
	a.find(Finding{grade, "maxPods", now, fmt.Sprint(n), costIf(grade, "pods beyond it are not scheduled: Too many pods"), ""})
	switch {
	case n > 2500:
		a.cite("openshift-2500")
		a.find(Finding{Advice, "pods per node that were tested", "", "2500 at most", "untested ground: 2750 failed where 2500 held (D5)", "raise step by step from 150 (D18)"})
		a.cite("D5", "D18")
	case n > 500:
		a.cite("openshift-2500", "D18", "D14")
		a.find(Finding{Advice, "pods per node that were tested", "", "2500 at most, on one cluster of 26 nodes", "more than the 500 that most releases were tested with", "raise step by step from 150 (D18)"})
	case n > openShiftMaxPods:
		a.cite("openshift-500")
		a.find(Finding{Advice, "pods per node that were tested", "", "500 at most", "more than 250 was not recommended for want of long runs (V15)", "raise step by step"})
	}
	if p.HostPrefix.Ok() {
		own := power(int(32-p.HostPrefix.Value)) - 2 - reservedAddresses
		a.step("addresses for pods of a node = 2^(32 - hostPrefix) - 2 - 16 of its own", fmt.Sprintf("2^(32 - %d) - 18 = %s", p.HostPrefix.Value, grouped(own)), "D3")
		if own < n {
			need := int64(32)
			for power(int(32-need))-2-reservedAddresses < n {
				need--
			}
			a.find(Finding{Cannot, fmt.Sprintf("addresses in a /%d", p.HostPrefix.Value), grouped(max(own, 0)), grouped(n), "pods stay in ContainerCreating for want of an address", fmt.Sprintf("hostPrefix %d, which is chosen at installation: plimsoll tune subnet", need)})
		} else {
			a.find(Finding{Grade: OK, What: fmt.Sprintf("addresses in a /%d", p.HostPrefix.Value), Now: grouped(own), Wanted: grouped(n)})
		}
	} else if n > 494 {
		a.cite("D3")
		a.warn("a /23 for each node, the default, has 510 addresses, 494 of them for more than the node's own pods: choose hostPrefix at installation (plimsoll tune subnet --pods-per-node %d)", n)
	}
}

func costIf(g Grade, cost string) string {
	if g == OK {
		return ""
	}
	return cost
}

// rates are the kubelet's own bounds on its requests.
func (a *Answer) rates(p Kubelet, k *kubeletFields) {
	qps, burst := int64(defaultQPS), int64(defaultBurst)
	if p.MaxPods.Value > openShiftMaxPods {
		qps, burst = documentQPS, documentBurst
	}
	from := "the document's, for more than 250 pods"
	if qps == defaultQPS {
		from = "the kubelet's default"
	}
	if p.QPS.Ok() {
		qps, from = p.QPS.Value, p.QPS.From
		burst = 2 * qps
	}
	if p.Burst.Ok() {
		burst = p.Burst.Value
	}
	if burst < qps {
		a.warn("kubeAPIBurst %d is below kubeAPIQPS %d: bursts then never reach the rate", burst, qps)
	}
	a.result("kubeAPIQPS", qps, "requests/s", fmt.Sprintf("%s; %d by default", from, defaultQPS))
	a.result("kubeAPIBurst", burst, "requests", fmt.Sprintf("%d by default", defaultBurst))
	a.cite("V15", "kubelet-config")
	if qps != defaultQPS || burst != defaultBurst {
		k.QPS, k.Burst = &qps, burst
		a.cite("D14")
		a.find(Finding{Grade: Advice, What: "kubeAPIQPS and kubeAPIBurst", Wanted: fmt.Sprintf("%d and %d", qps, burst), Remedy: "not required: 2500 pods per node were reached without (D14); it shortens bursts and loads the API server more"})
		if p.Nodes.Ok() {
			a.step("requests of all kubelets at their bound = nodes x kubeAPIQPS", fmt.Sprintf("%s x %d = %s/s", grouped(p.Nodes.Value), qps, grouped(p.Nodes.Value*qps)), "V15")
		}
	}
}

// images is V16.
func (a *Answer) images(p Kubelet, k *kubeletFields) {
	if p.EvenSpread.Ok() && !p.EvenSpread.Value {
		return
	}
	a.cite("V16", "kubelet-config", "openshift-kubeletconfig")
	a.result("nodeStatusMaxImages", int64(-1), "", "no bound, 50 by default: the scheduler's preference for nodes that have the image then sees all of them")
	a.warn("nodeStatusMaxImages -1 makes a node's status longer by each image on it, and the status is sent every few minutes and on every change")
	all := int64(-1)
	k.MaxImages = &all
	if p.Platform.Value == OpenShift {
		a.correct("V16", "two KubeletConfigs, set-max-pods and custom-scheduling, for the same pool", "one KubeletConfig with all settings of the pool: several for one pool are not merged, the one made last counts", "with the later one alone maxPods stays at 250")
	}
}

// pids bounds each pod's PIDs so that all pods together leave some.
func (a *Answer) pids(p Kubelet, k *kubeletFields) {
	room := (p.PIDMax.Value - pidsForTheNode) / p.MaxPods.Value
	usual := int64(openShiftPIDs)
	limit := min(usual, room)
	if room < 1 {
		a.find(Finding{Cannot, "PIDs for each pod", "0", "at least 1", "pods cannot start processes", "a larger kernel.pid_max: plimsoll tune host"})
		return
	}
	input(a, "pidMax", p.PIDMax, "")
	a.step("podPidsLimit <= (kernel.pid_max - 32768 for the node) / maxPods", fmt.Sprintf("(%d - %d) / %d = %d", p.PIDMax.Value, pidsForTheNode, p.MaxPods.Value, room), "openshift-pids")
	note := "OpenShift's default, which leaves PIDs over"
	switch {
	case limit < usual:
		note = fmt.Sprintf("%d x %d, OpenShift's default, would be more than kernel.pid_max", p.MaxPods.Value, usual)
		k.PodPIDs = &limit
	case p.Platform.Value == Kubernetes:
		note = "without a limit, the kubelet's default, one pod can use up the node's PIDs"
		k.PodPIDs = &limit
	}
	a.result("podPidsLimit", limit, "PIDs/pod", note)
}

// reserve is what is kept from pods for the node's own components.
func (a *Answer) reserve(p Kubelet, k *kubeletFields) {
	var kube, system reservation
	switch {
	case len(p.Costs) > 0:
		kube, system = a.measured(p)
	case p.Cores.Ok() && p.Memory.Ok():
		system = a.formula(p)
	default:
		a.cite("D14")
		a.warn("nothing is reserved for the node's own components: measure them (--measured, --run) or give --cores and --memory of a node (D14)")
		return
	}
	if p.Platform.Value == OpenShift {
		// OpenShift does not use kubeReserved.
		a.cite("openshift-reserved")
		system = reservation{system.cores + kube.cores, system.memory + kube.memory}
		kube = reservation{}
	}
	for _, r := range []struct {
		name string
		r    reservation
		into *reservedFields
	}{{"systemReserved", system, &k.System}, {"kubeReserved", kube, &k.Kube}} {
		if r.r == (reservation{}) {
			continue
		}
		fields := r.r.fields()
		*r.into = fields
		a.result(r.name+".cpu", fields.CPU, "", "")
		a.result(r.name+".memory", fields.Memory, "", "")
	}
	total := reservation{system.cores + kube.cores, system.memory + kube.memory}
	if p.Memory.Ok() {
		left := p.Memory.Value - total.memory - 100<<20
		a.result("allocatableMemory", int64(left), "B", "capacity less what is reserved and 100 MiB of the kubelet's hard eviction")
		if left <= 0 {
			a.find(Finding{Cannot, "memory that is left for pods", left.String(), "more than none", "no pod is scheduled", "fewer pods, or a larger node"})
		} else {
			a.result("memoryPerPod", int64(left)/p.MaxPods.Value, "B", "for each of maxPods")
		}
	}
	if p.Cores.Ok() && total.cores >= p.Cores.Value {
		a.find(Finding{Cannot, "CPU that is left for pods", trim(p.Cores.Value - total.cores), "more than none", "no pod is scheduled", "fewer pods, or a larger node"})
	}
}

// reservation is CPU in cores and memory.
type reservation struct {
	cores  float64
	memory Bytes
}

// fields rounds up: CPU to 10 thousandths of a core, memory to MiB.
func (r reservation) fields() reservedFields {
	milli := int64(math.Ceil(r.cores*100-1e-9)) * 10
	mib := (int64(r.memory) + 1<<20 - 1) >> 20
	return reservedFields{fmt.Sprintf("%dm", milli), fmt.Sprintf("%dMi", mib)}
}

// formula is OpenShift's own rule (autoSizingReserved), by the node's size
// alone.
func (a *Answer) formula(p Kubelet) reservation {
	gib := float64(p.Memory.Value) / (1 << 30)
	memory, rest := 0.0, gib
	for _, tier := range []struct{ size, share float64 }{{4, 0.25}, {4, 0.20}, {8, 0.10}, {112, 0.06}, {math.Inf(1), 0.02}} {
		part := min(rest, tier.size)
		memory += part * tier.share
		rest -= part
	}
	cores := max(0.5, 0.06+0.012*(p.Cores.Value-1))
	a.step("memory = 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % of the rest", fmt.Sprintf("of %.1f GiB: %.2f GiB", gib, memory), "openshift-sizing")
	a.step("CPU = 0.06 + 0.012 x (cores - 1), at least 0.5", fmt.Sprintf("0.06 + 0.012 x %s = %.2f", trim(p.Cores.Value-1), max(0.5, 0.06+0.012*(p.Cores.Value-1))), "openshift-sizing")
	a.warn("this rule knows the node's size, not its number of pods: measure the components at the density that is meant (D14)")
	return reservation{cores, Bytes(memory * (1 << 30))}
}

// measured fits a line through what each component used by number of pods, and
// takes it at maxPods, with headroom.
func (a *Answer) measured(p Kubelet) (kube, system reservation) {
	input(a, "headroom", p.Headroom, "")
	var names []string
	for _, c := range p.Costs {
		a.Inputs = append(a.Inputs, Input{"cost of " + c.Name, fmt.Sprintf("%s cores, %s at %s pods", trim(math.Round(c.Cores*1000)/1000), c.Memory, trim(c.Pods)), "", c.From})
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	a.cite("D14")
	at := float64(p.MaxPods.Value)
	for _, name := range names {
		var pods, cores, memory []float64
		for _, c := range p.Costs {
			if c.Name == name {
				pods, cores, memory = append(pods, c.Pods), append(cores, c.Cores), append(memory, float64(c.Memory))
			}
		}
		needCores, how := extrapolate(pods, cores, at)
		needMemory, _ := extrapolate(pods, memory, at)
		a.step(fmt.Sprintf("%s at %s pods: %s", name, grouped(p.MaxPods.Value), how), fmt.Sprintf("%.2f cores, %s", needCores, Bytes(needMemory)), "D14")
		if slices.Max(pods) < at/2 {
			a.warn("%s was measured with %s pods at most: %d is more than twice as far", name, trim(slices.Max(pods)), p.MaxPods.Value)
		}
		need := reservation{needCores * (1 + p.Headroom.Value), Bytes(needMemory * (1 + p.Headroom.Value))}
		into := &system
		if slices.Contains([]string{"kubelet", "crio", "cri-o", "containerd", "containerd-shims", "dockerd", "kube-proxy"}, name) {
			into = &kube
		}
		into.cores += need.cores
		into.memory += need.memory
	}
	a.step("reserved = sum over the components x (1 + headroom)", fmt.Sprintf("x %s: %.2f cores, %s", trim(1+p.Headroom.Value), kube.cores+system.cores, kube.memory+system.memory), "D14")
	return kube, system
}

// extrapolate is what a component needs at a number of pods: on the line
// through readings at two numbers or more, by least squares, and not below what
// was seen; in proportion to the pods from one, which is an upper bound.
func extrapolate(pods, values []float64, at float64) (need float64, how string) {
	n := float64(len(pods))
	var sx, sy, sxx, sxy float64
	for i, x := range pods {
		sx, sy, sxx, sxy = sx+x, sy+values[i], sxx+x*x, sxy+x*values[i]
	}
	most := slices.Max(values)
	if slices.Max(pods) == slices.Min(pods) {
		return most * max(1, at/pods[0]), "in proportion to its pods, from one number of pods: an upper bound"
	}
	slope := max(0, (n*sxy-sx*sy)/(n*sxx-sx*sx))
	base := (sy - slope*sx) / n
	need = base + slope*at
	// At fewer pods than were seen less is needed than was seen.
	if at >= slices.Max(pods) {
		need = max(need, most)
	}
	return max(need, 0), fmt.Sprintf("on the line through %d readings", len(pods))
}

// reboots is the other half of V16: what applying it costs.
func (a *Answer) reboots(p Kubelet) {
	if p.Platform.Value != OpenShift {
		a.warn("kubelets read their configuration when they start: restart them one after the other")
		return
	}
	a.cite("V16")
	unavailable := p.MaxUnavailable.or(1, "a MachineConfigPool's")
	if !p.Nodes.Ok() {
		a.warn("applying a KubeletConfig reboots every node of the pool, maxUnavailable (1 by default) at a time")
		return
	}
	reboot := p.Reboot.or(10*time.Minute, "this program's own guess of a drain and reboot")
	input(a, "nodes", p.Nodes, "")
	input(a, "maxUnavailable", unavailable, "")
	input(a, "reboot", reboot, "")
	rounds := (p.Nodes.Value + unavailable.Value - 1) / unavailable.Value
	total := time.Duration(rounds) * reboot.Value
	a.step("time of the reboots = nodes / maxUnavailable, rounded up, x time of one", fmt.Sprintf("%s / %d = %d rounds x %v = %v", grouped(p.Nodes.Value), unavailable.Value, rounds, reboot.Value, total), "V16")
	a.result("rebootRounds", rounds, "", "")
	a.result("rebootTime", total.String(), "", "")
	a.warn("applying it reboots all %s nodes of the pool, %d at a time: about %v", grouped(p.Nodes.Value), unavailable.Value, total)
}

// kubeletFields are the settings that are written, in the names of the
// kubelet's configuration.
type kubeletFields struct {
	MaxPods   int64          `yaml:"maxPods"`
	QPS       *int64         `yaml:"kubeAPIQPS,omitempty"`
	Burst     int64          `yaml:"kubeAPIBurst,omitempty"`
	MaxImages *int64         `yaml:"nodeStatusMaxImages,omitempty"`
	PodPIDs   *int64         `yaml:"podPidsLimit,omitempty"`
	Kube      reservedFields `yaml:"kubeReserved,omitempty"`
	System    reservedFields `yaml:"systemReserved,omitempty"`
}

type reservedFields struct {
	CPU    string `yaml:"cpu,omitempty"`
	Memory string `yaml:"memory,omitempty"`
}

type kubeletConfig struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   meta              `yaml:"metadata"`
	Spec       kubeletConfigSpec `yaml:"spec"`
}

type kubeletConfigSpec struct {
	Selector labelSelector `yaml:"machineConfigPoolSelector"`
	Config   kubeletFields `yaml:"kubeletConfig"`
}

type labelSelector struct {
	MatchLabels      map[string]string  `yaml:"matchLabels,omitempty"`
	MatchExpressions []labelRequirement `yaml:"matchExpressions,omitempty"`
}

type labelRequirement struct {
	Key      string   `yaml:"key"`
	Operator string   `yaml:"operator"`
	Values   []string `yaml:"values"`
}

type machineConfigPool struct {
	APIVersion string                `yaml:"apiVersion"`
	Kind       string                `yaml:"kind"`
	Metadata   meta                  `yaml:"metadata"`
	Spec       machineConfigPoolSpec `yaml:"spec"`
}

type machineConfigPoolSpec struct {
	MachineConfigSelector labelSelector `yaml:"machineConfigSelector"`
	NodeSelector          labelSelector `yaml:"nodeSelector"`
	MaxUnavailable        int64         `yaml:"maxUnavailable,omitempty"`
	Paused                bool          `yaml:"paused"`
}

type upstreamKubelet struct {
	APIVersion    string `yaml:"apiVersion"`
	Kind          string `yaml:"kind"`
	kubeletFields `yaml:",inline"`
}

// poolOf is a MachineConfigPool as the operator makes it, with a further
// label. MachineConfigs of other pools than worker build on worker's.
func poolOf(name string, labels map[string]string, maxUnavailable int64) machineConfigPool {
	const role = "machineconfiguration.openshift.io/role"
	pool := machineConfigPool{
		APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool",
		Metadata: meta{Name: name, Labels: labels},
		Spec:     machineConfigPoolSpec{NodeSelector: labelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + name: ""}}, MaxUnavailable: maxUnavailable},
	}
	if name == "worker" || name == "master" {
		pool.Spec.MachineConfigSelector.MatchLabels = map[string]string{role: name}
	} else {
		pool.Spec.MachineConfigSelector.MatchExpressions = []labelRequirement{{role, "In", []string{"worker", name}}}
	}
	return pool
}

func (a *Answer) kubeletFiles(p Kubelet, k kubeletFields, key, value string) {
	if p.Platform.Value == Kubernetes {
		a.cite("kubelet-config")
		a.file("kubelet-config.yaml", manifest(upstreamKubelet{"kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", k},
			"Part of the kubelet's configuration; a drop-in of --config-dir as it is."), "the kubelet: --config, or --config-dir as 90-plimsoll.conf")
		return
	}
	a.cite("V17", "openshift-kubeletconfig")
	a.correct("V17", "machineConfigPoolSelector custom-kubelet: enabled, and oc label machineconfigpool worker custom-kubelet=enable", "the label's value is the selector's: "+key+"="+value, "the selector matches no pool, and nothing changes")
	a.file("kubeletconfig-"+p.Pool.Value+".yaml", manifest(kubeletConfig{
		APIVersion: "machineconfiguration.openshift.io/v1", Kind: "KubeletConfig", Metadata: meta{Name: "plimsoll-" + p.Pool.Value},
		Spec: kubeletConfigSpec{labelSelector{MatchLabels: map[string]string{key: value}}, k},
	}, "All settings of the pool's kubelets in one object. It reboots the pool's nodes."), "the machine config operator of OpenShift: oc apply -f, after the pool has its label")
	labels := map[string]string{"pools.operator.machineconfiguration.openshift.io/" + p.Pool.Value: "", key: value}
	a.file("machineconfigpool-"+p.Pool.Value+".yaml", manifest(poolOf(p.Pool.Value, labels, p.MaxUnavailable.Value), "The pool with the label that the KubeletConfig selects."),
		"the machine config operator of OpenShift: oc apply --server-side -f, or the command below, which adds the label alone")
	a.command("oc label machineconfigpool "+p.Pool.Value+" "+word(key+"="+value)+" --overwrite", "the label that the KubeletConfig selects, first")
	a.command("oc apply -f kubeletconfig-"+p.Pool.Value+".yaml", "this reboots the pool's nodes")
	a.command("oc wait machineconfigpool "+p.Pool.Value+" --for=condition=Updated --timeout=4h", "until every node has it")
}
