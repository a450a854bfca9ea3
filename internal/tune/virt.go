package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Virt are the parameters of virtual machines on a cluster.
type Virt struct {
	Platform In[string]
	VMs      In[int64]
	Classes  []VMClass // of the machines; their counts make VMs
	Nodes    In[int64]
	Pods     In[int64] // other pods
	OwnPods  In[int64] // of each node: DaemonSets and static pods
	MaxPods  In[int64]
	Cores    In[float64] // of a node
	Memory   In[Bytes]   // of a node
	Overhead In[Bytes]   // of a machine's pod besides the machine's memory
	Disks    In[int64]   // with dedicatedIOThread, of each machine
	PerAPI   In[int64]   // machines for each virt-api pod
	// KubeVirt is the version, such as "1.4".
	KubeVirt In[string]
	// Live migration.
	ParallelCluster, ParallelNode In[int64]
	Migrate                       In[int64] // machines to migrate
	Drain                         In[int64] // nodes that they are on
	MigrationTime                 In[time.Duration]
	MaxUnavailable                In[int64]
	Reboot                        In[time.Duration]
	Observed                      In[time.Duration] // that such a migration took
	Link                          In[Rate]          // of a node
	VMMemory                      In[Bytes]
	Zones                         In[int64]
	// Clones.
	Clones                                   In[int64]
	CloneWorkers                             In[int64]
	CloneLock, CloneWork, CloneBulk, Flatten In[time.Duration]
	ClonePenalty                             In[float64]
	CloneReadings                            []CloneReading
	// Dataset is what each machine keeps, held against Disk.
	Dataset In[DatasetShape]
	Disk    In[Bytes]
}

// VMClass are machines of one kind.
type VMClass struct {
	Name      string
	Count     int64
	Cores     float64
	Memory    Bytes
	Migration time.Duration // of one; 0 is not known
}

// DatasetShape is a tree of files (V30).
type DatasetShape struct {
	Directories, Files int64
	Size               Bytes // of each file
}

// Bytes is the size of all files.
func (d DatasetShape) Bytes() Bytes { return Bytes(d.Directories * d.Files * int64(d.Size)) }

func (d DatasetShape) String() string {
	return fmt.Sprintf("%d directories x %d files x %s", d.Directories, d.Files, d.Size)
}

// ParseDataset reads a shape such as 300x8x20Mi.
func ParseDataset(text string) (d DatasetShape, err error) {
	parts := strings.Split(text, "x")
	if len(parts) != 3 {
		return d, fmt.Errorf("%q: want DIRECTORIESxFILESxSIZE, such as 300x8x20Mi", text)
	}
	if d.Directories, err = ParseCount(parts[0]); err != nil {
		return d, err
	}
	if d.Files, err = ParseCount(parts[1]); err != nil {
		return d, err
	}
	if d.Size, err = ParseBytes(parts[2]); err != nil {
		return d, err
	}
	if float64(d.Directories)*float64(d.Files)*float64(d.Size) > 1<<60 {
		return d, fmt.Errorf("%q is more than 1 EiB", text)
	}
	return d, nil
}

// Figures of the document.
const (
	vmsPerAPI        = 750           // V35
	bootFirst        = 102.0 / 100   // V26: seconds for each of 100 machines
	bootLast         = 1065.0 / 1000 // and of 1000
	documentMigrated = 1000          // V38: machines
	documentMinutes  = 118           // and their time
	documentWaiting  = 35            // and the minutes of waiting for Ready
	documentParallel = 20            // V34
	documentOutbound = 4             // V34
	documentNodes    = 100           // V2
	documentVMs      = 3000          // V2
	testedPods       = 150_000       // of a cluster
	testedNodes      = 2_000
)

// migrationDefaults are KubeVirt's own, which changed with its versions.
type migrationDefaults struct {
	cluster, node int64
	perGiB        int64
	progress      int64
	bandwidth     string
	scalesAPI     bool // virt-api's replicas follow the number of nodes
}

func defaultsOf(major, minor int) migrationDefaults {
	d := migrationDefaults{5, 2, 150, 150, "unlimited", true}
	at := func(a, b int) bool { return major > a || major == a && minor >= b }
	if !at(1, 4) {
		d.perGiB = 800
	}
	if !at(0, 53) {
		d.scalesAPI = false
	}
	if !at(0, 44) {
		d.bandwidth = "64Mi"
	}
	return d
}

// parseVersion reads a version's first two numbers.
func parseVersion(text string) (major, minor int, err error) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) >= 2 {
		major, err = strconv.Atoi(parts[0])
		if err == nil {
			minor, err = strconv.Atoi(parts[1])
		}
		if err == nil && major >= 0 && minor >= 0 {
			return major, minor, nil
		}
	}
	return 0, 0, fmt.Errorf("%q is no version: want one such as 1.4", text)
}

// TuneVirt reckons for virtual machines: density, virt-api's replicas, live
// migration, clones (V2, V23 to V27, V30 to V38, V41).
func TuneVirt(p Virt) (*Answer, error) {
	p.Platform = p.Platform.or(OpenShift, "the documents' platform")
	p.KubeVirt = p.KubeVirt.or("1.4", "1.4 or later")
	p.PerAPI = p.PerAPI.or(vmsPerAPI, "V35")
	p.OwnPods = p.OwnPods.or(reservedAddresses, "as for addresses (D3)")
	p.Overhead = p.Overhead.or(256<<20, "this program's own allowance")
	total := int64(0)
	for _, c := range p.Classes {
		if !plainWord(c.Name) || c.Count < 1 || c.Cores < 0 || c.Memory < 0 {
			return nil, badParam("class", "for example rhel=1500,1,4Gi", "%q makes no sense", c.Name)
		}
		total += c.Count
	}
	if total > 0 {
		if p.VMs.Ok() && p.VMs.Value != total {
			return nil, badParam("vms", "leave --vms out", "%d machines, and the classes have %d", p.VMs.Value, total)
		}
		p.VMs = Given(total, "from the classes")
	}
	if !p.VMs.Ok() && !p.Clones.Ok() && !p.Dataset.Ok() && !p.Migrate.Ok() {
		return nil, needs("vms", "how many machines there are to be", "--vms 3000")
	}
	major, minor, err := parseVersion(p.KubeVirt.Value)
	if err != nil {
		return nil, badParam("kubevirt", "", "%v", err)
	}
	if err := fit(
		within("vms", p.VMs, 1, 10_000_000), within("nodes", p.Nodes, 1, 1_000_000), within("pods", p.Pods, 0, 100_000_000), within("own-pods", p.OwnPods, 0, 10_000),
		within("max-pods", p.MaxPods, 1, 100_000), within("per-api", p.PerAPI, 1, 1_000_000), within("parallel", p.ParallelCluster, 1, 100_000), within("parallel-node", p.ParallelNode, 1, 10_000),
		within("migrate", p.Migrate, 1, 10_000_000), within("drain", p.Drain, 1, 1_000_000), within("max-unavailable", p.MaxUnavailable, 1, 1_000_000),
		within("zones", p.Zones, 1, 1000), within("clones", p.Clones, 1, 50_000), within("clone-penalty", p.ClonePenalty, 0, 10), within("clone-workers", p.CloneWorkers, 1, 10_000), within("disks", p.Disks, 0, 1000), checkReadings(p.CloneReadings),
	); err != nil {
		return nil, err
	}
	title := "Virtual machines on a cluster"
	if p.VMs.Ok() {
		title = grouped(p.VMs.Value) + " virtual machines on a cluster"
	}
	a := newAnswer("virt", title)
	input(a, "vms", p.VMs, "")
	input(a, "nodes", p.Nodes, "")
	input(a, "pods", p.Pods, "")
	input(a, "kubevirt", p.KubeVirt, "")
	defaults := defaultsOf(major, minor)
	v := virtObject{}
	if p.VMs.Ok() {
		a.apiReplicas(p, defaults, &v)
		a.vmDensity(p)
		a.bootStorm(p)
		a.split(p)
	}
	if p.VMs.Ok() || p.Migrate.Ok() {
		a.migrationLimits(p, defaults, &v)
		a.migration(p)
	}
	a.cloneBulks(p)
	a.dataset(p)
	a.virtFiles(p, v)
	return a, nil
}

// apiReplicas is V35.
func (a *Answer) apiReplicas(p Virt, d migrationDefaults, v *virtObject) {
	want := (p.VMs.Value + p.PerAPI.Value - 1) / p.PerAPI.Value
	a.step("virt-api pods = machines / 750, rounded up", fmt.Sprintf("%s / %d = %d", grouped(p.VMs.Value), p.PerAPI.Value, want), "V35")
	// With fewer than two the API is gone while its node is.
	use := max(want, 2)
	note := ""
	if use != want {
		note = "two at least, so that one may fail"
	}
	a.result("virtAPIReplicas", use, "", note)
	a.correct("V35", `oc patch hco ... "kubevirt.kubevirt.io/jsonpatch":[{"op\": \"add\" ...`, "the annotation's value is a text that holds JSON: it must be quoted as one", "the shell hands over what is no JSON, and nothing is patched")
	own := int64(2)
	switch {
	case !d.scalesAPI:
		a.find(Finding{Change, "virt-api replicas", "2 (KubeVirt before 0.53)", fmt.Sprint(use), "virt-api's webhooks time out when many machines are made", "the patch below"})
		a.cite("kubevirt-api")
	case p.Nodes.Ok():
		a.cite("kubevirt-api")
		if p.Nodes.Value == 1 {
			own = 1
		} else {
			own = max(2, p.Nodes.Value/10)
		}
		a.step("KubeVirt since 0.53: one virt-api for every 10 nodes, two at least", fmt.Sprintf("%s / 10 -> %d", grouped(p.Nodes.Value), own), "kubevirt-api")
		a.result("virtAPIReplicasAutomatic", own, "", "what virt-operator makes of the number of nodes by itself")
		if own >= use {
			a.find(Finding{Grade: OK, What: "virt-api replicas", Now: fmt.Sprintf("%d by itself", own), Wanted: fmt.Sprint(use)})
			return
		}
		a.find(Finding{Change, "virt-api replicas", fmt.Sprintf("%d by itself", own), fmt.Sprint(use), "virt-api's webhooks time out when many machines are made", "the patch below, which ends the automatic number"})
	default:
		a.cite("kubevirt-api")
		a.warn("KubeVirt since 0.53 scales virt-api by the number of nodes, one for every 10: give --nodes to see whether a patch is needed")
	}
	v.replicas = use
}

// vmDensity is V2: machines and pods of each node. A machine is a pod as well.
func (a *Answer) vmDensity(p Virt) {
	if !p.Nodes.Ok() {
		return
	}
	a.cite("V2")
	vms, pods := ceilDiv(p.VMs.Value, p.Nodes.Value), ceilDiv(p.Pods.Value, p.Nodes.Value)
	all := vms + pods + p.OwnPods.Value
	input(a, "ownPods", p.OwnPods, "pods/node")
	a.result("vmsPerNode", vms, "", "")
	a.result("podsPerNode", pods, "", "other pods")
	a.result("allPodsPerNode", all, "", "a machine runs in a pod too, and the node has its own")
	a.step("pods of a node = machines + other pods + its own", fmt.Sprintf("%d + %d + %d = %d", vms, pods, p.OwnPods.Value, all), "V2")
	maxPods := p.MaxPods.or(openShiftMaxPods, "OpenShift's")
	input(a, "maxPods", maxPods, "")
	if all > maxPods.Value {
		a.find(Finding{Change, "pods of a node", grouped(all), fmt.Sprintf("at most maxPods, %d", maxPods.Value), "machines and pods stay Pending: Too many pods", fmt.Sprintf("plimsoll tune kubelet --max-pods %d", max(500, roundUp(all+all/10, 50)))})
	} else {
		a.find(Finding{Grade: OK, What: "pods of a node", Now: grouped(all), Wanted: fmt.Sprintf("at most maxPods, %d", maxPods.Value)})
	}
	threads := vms
	note := "one for each machine"
	if p.Disks.Ok() && p.Disks.Value > 0 {
		threads, note = vms*p.Disks.Value, fmt.Sprintf("%d disks of each machine with dedicatedIOThread", p.Disks.Value)
	}
	a.cite("V27")
	a.result("ioThreadsPerNode", threads, "", note)
	a.resources(p)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func roundUp(n, step int64) int64 { return ceilDiv(n, step) * step }

// resources holds what the classes ask for against what nodes have.
func (a *Answer) resources(p Virt) {
	if len(p.Classes) == 0 {
		return
	}
	var cores float64
	var memory Bytes
	for _, c := range p.Classes {
		a.Inputs = append(a.Inputs, Input{"class " + c.Name, fmt.Sprintf("%s x %s cores, %s", grouped(c.Count), trim(c.Cores), c.Memory), "", "flag --class"})
		cores += float64(c.Count) * c.Cores
		memory += Bytes(c.Count) * (c.Memory + p.Overhead.Value)
	}
	input(a, "overhead", p.Overhead, "B/machine")
	n := p.Nodes.Value
	nodeCores, nodeMemory := cores/float64(n), memory/Bytes(n)
	a.result("coresPerNode", math.Round(nodeCores*10)/10, "cores", "that the machines ask for, of an average node")
	a.result("memoryPerNode", int64(nodeMemory), "B", "with the overhead of their pods")
	if p.Cores.Ok() {
		a.hold("CPU that machines ask for on a node", nodeCores, p.Cores.Value, "cores")
	}
	if p.Memory.Ok() {
		a.hold("memory that machines ask for on a node", float64(nodeMemory)/(1<<30), float64(p.Memory.Value)/(1<<30), "GiB")
	}
	if p.Nodes.Value > 1 && (p.Cores.Ok() || p.Memory.Ok()) {
		a.warn("while a node is drained its machines are on the others: leave a node's share free, or as many as are drained at a time")
	}
}

func (a *Answer) hold(what string, want, have float64, unit string) {
	now, limit := fmt.Sprintf("%.1f %s", want, unit), fmt.Sprintf("at most %.1f %s", have, unit)
	if want > have {
		a.find(Finding{Cannot, what, now, limit, "machines are not scheduled", "more nodes, or smaller machines"})
	} else {
		a.find(Finding{Grade: OK, What: what, Now: now, Wanted: limit})
	}
}

// bootStorm is V26: near linear, from 1.02 s for each of 100 machines to 1.065 s
// for each of 1000.
func (a *Answer) bootStorm(p Virt) {
	a.cite("V26")
	n := float64(p.VMs.Value)
	per := bootFirst + (bootLast-bootFirst)*(n-100)/900
	per = max(per, bootFirst)
	a.result("bootStorm", math.Round(n*per), "s", "for all machines at once, as on the document's cluster of 100 nodes")
	a.step("boot storm = machines x (1.02 s at 100, 1.065 s at 1000)", fmt.Sprintf("%s x %.3f = %s", grouped(p.VMs.Value), per, seconds(n*per)), "V26")
	if n > 1000 {
		a.warn("boot storms were measured up to 1000 machines: beyond, the time is extrapolated, and longer queues may make it longer")
	}
}

// split is V41: when one cluster is too large.
func (a *Answer) split(p Virt) {
	a.cite("V41", "openshift-500")
	pods := p.VMs.Value + p.Pods.Value + p.OwnPods.Value*p.Nodes.Value
	clusters := max(ceilDiv(pods, testedPods), ceilDiv(max(p.Nodes.Value, 1), testedNodes))
	a.result("clusters", clusters, "", fmt.Sprintf("by the tested maximums of %s pods and %s nodes", grouped(int64(testedPods)), grouped(int64(testedNodes))))
	if clusters > 1 {
		a.find(Finding{Change, "pods and nodes of one cluster", fmt.Sprintf("%s pods, %s nodes", grouped(pods), grouped(p.Nodes.Value)), fmt.Sprintf("%s and %s", grouped(int64(testedPods)), grouped(int64(testedNodes))), "untested ground for the control plane", fmt.Sprintf("%d clusters", clusters)})
	}
	if p.VMs.Value > documentVMs {
		a.find(Finding{Grade: Advice, What: "machines of one cluster", Now: grouped(p.VMs.Value), Wanted: fmt.Sprintf("%s were tested, on %d nodes", grouped(int64(documentVMs)), documentNodes), Remedy: "consider several clusters, the more the higher the churn"})
	}
}

// migrationLimits is V34.
func (a *Answer) migrationLimits(p Virt, d migrationDefaults, v *virtObject) {
	cluster := p.ParallelCluster.or(documentParallel, "V34")
	node := p.ParallelNode.or(documentOutbound, "V34")
	input(a, "parallel", cluster, "")
	input(a, "parallelNode", node, "")
	a.cite("V34", "kubevirt-migration")
	a.result("parallelMigrationsPerCluster", cluster.Value, "", fmt.Sprintf("%d by default", d.cluster))
	a.result("parallelOutboundMigrationsPerNode", node.Value, "", fmt.Sprintf("%d by default", d.node))
	a.result("completionTimeoutPerGiB", d.perGiB, "s/GiB", "the default of KubeVirt "+p.KubeVirt.Value)
	a.result("completionTimeoutPerGiBDocument", int64(800), "s/GiB", "the document's, the default until KubeVirt 1.3")
	a.result("progressTimeout", int64(150), "s", fmt.Sprintf("%d by default", d.progress))
	v.migration = migrationConfig{PerGiB: 800, Cluster: cluster.Value, Node: node.Value, Progress: 150}
	if d.perGiB != 800 {
		a.find(Finding{Grade: Advice, What: "completionTimeoutPerGiB", Now: fmt.Sprintf("%d by default since KubeVirt 1.4", d.perGiB), Wanted: "800 in the document, where it was the default",
			Cost: "a machine of 64 GiB that does not converge holds its slot for 14 h instead of 2.7 h", Remedy: "leave it at the default unless large or busy machines are cancelled"})
		v.migration.PerGiB = 0
	}
	if cluster.Value < node.Value {
		a.find(Finding{Change, "parallelMigrationsPerCluster", fmt.Sprint(cluster.Value), fmt.Sprintf("at least %d, one node's", node.Value), "a node's limit is never reached", "raise it"})
	}
	if p.Link.Ok() && p.VMMemory.Ok() {
		input(a, "link", p.Link, "bit/s")
		input(a, "vmMemory", p.VMMemory, "B")
		each := float64(p.VMMemory.Value) * 8 * float64(node.Value) / float64(p.Link.Value)
		gib := float64(p.VMMemory.Value) / (1 << 30)
		a.step("copying a machine's memory once = memory x 8 x migrations of the node / speed", fmt.Sprintf("%s x 8 x %d / %s = %.1f s", p.VMMemory.Value, node.Value, p.Link.Value, each), "V34")
		a.result("copyTime", math.Round(each*10)/10, "s", "at least, with the node's link shared")
		if limit := float64(d.perGiB) * gib; each > limit {
			a.find(Finding{Change, "time of a copy", fmt.Sprintf("%.0f s", each), fmt.Sprintf("below %.0f s, completionTimeoutPerGiB x %.1f GiB", limit, gib), "migrations are cancelled and begun anew", "fewer migrations of a node, or a longer timeout"})
		}
	}
}

// migration is V31 and V38: how long it takes to drain and reboot nodes.
func (a *Answer) migration(p Virt) {
	if !p.Migrate.Ok() {
		return
	}
	a.cite("V31", "V37", "V38")
	drained := p.Drain
	if !drained.Ok() && p.VMs.Ok() && p.Nodes.Ok() {
		drained = Given(max(1, ceilDiv(p.Migrate.Value*p.Nodes.Value, p.VMs.Value)), "from migrate and the machines of a node")
	}
	drained = drained.or(ceilDiv(p.Migrate.Value, 30), "30 machines of each node (V2)")
	unavailable := p.MaxUnavailable.or(10, "V31")
	each := p.MigrationTime
	if !each.Ok() {
		each = averageMigration(p.Classes)
	}
	each = each.or(17200*time.Millisecond, "V37: (400 x 14 s + 400 x 23 s + 200 x 12 s) / 1000")
	reboot := p.Reboot.or(documentWaiting*time.Minute/4, "V38: 35 min of waiting in 4 rounds")
	cluster, node := p.ParallelCluster.or(documentParallel, "V34"), p.ParallelNode.or(documentOutbound, "V34")
	input(a, "migrate", p.Migrate, "")
	input(a, "drain", drained, "nodes")
	input(a, "maxUnavailable", unavailable, "")
	input(a, "migrationTime", each, "")
	input(a, "reboot", reboot, "")
	plan := drainPlan{p.Migrate.Value, drained.Value, unavailable.Value, cluster.Value, node.Value}
	waves, rounds := plan.waves()
	moving := time.Duration(waves) * each.Value
	waiting := time.Duration(rounds) * reboot.Value
	a.step("migrations at a time = the lesser of parallelMigrationsPerCluster and maxUnavailable x parallelOutboundMigrationsPerNode", fmt.Sprintf("min(%d, %d x %d) = %d", cluster.Value, unavailable.Value, node.Value, plan.parallel(unavailable.Value)), "V34")
	a.step("rounds = nodes / maxUnavailable, rounded up; waves of each = its machines / migrations at a time", fmt.Sprintf("%d rounds, %d waves in all", rounds, waves), "V31")
	a.step("time = waves x time of one migration + rounds x reboot", fmt.Sprintf("%d x %v + %d x %v = %v", waves, each.Value, rounds, reboot.Value, (moving+waiting).Round(time.Second)), "V38")
	a.result("migrationWaves", waves, "", "")
	a.result("rebootRounds", rounds, "", "")
	a.result("migrationTime", math.Round(moving.Seconds()), "s", "at least: every slot is always in use, and no pod is slow to leave")
	a.result("drainAndRebootTime", math.Round((moving + waiting).Seconds()), "s", "with the reboots")
	// What a machine took up of a slot on the document's cluster, or here.
	slot := float64(documentMinutes*60*documentParallel) / documentMigrated
	of := "the document's: 118 min x 20 / 1000 machines"
	if p.Observed.Ok() {
		slot = p.Observed.Value.Seconds() * float64(plan.parallel(unavailable.Value)) / float64(p.Migrate.Value)
		of = "of --observed"
		input(a, "observed", p.Observed, "")
	}
	expected := slot * float64(p.Migrate.Value) / float64(plan.parallel(unavailable.Value))
	a.step("time that a machine takes up of a slot = time x migrations at a time / machines", fmt.Sprintf("%.1f s (%s), %.1f times the migration itself", slot, of, slot/each.Value.Seconds()), "V38")
	a.result("migrationTimeExpected", math.Round(expected), "s", "with the time that "+strings.Split(of, ":")[0]+" machines took up of a slot: waiting for the target pod, queues and evictions of pods included")
	a.warn("the migrations themselves explain a small part of what was measured (V38): most is queueing and evictions; calibrate with --observed, the time that a migration of so many machines took")
}

func averageMigration(classes []VMClass) (in In[time.Duration]) {
	var sum, n float64
	for _, c := range classes {
		if c.Migration == 0 {
			return in
		}
		sum += float64(c.Count) * c.Migration.Seconds()
		n += float64(c.Count)
	}
	if n == 0 {
		return in
	}
	return Given(time.Duration(sum/n*float64(time.Second)).Round(10*time.Millisecond), "average of the classes")
}

// drainPlan is machines that leave nodes, some nodes at a time.
type drainPlan struct {
	machines, nodes, unavailable, cluster, node int64
}

// parallel is how many migrate at a time while so many nodes are drained.
func (d drainPlan) parallel(nodes int64) int64 {
	return max(1, min(d.cluster, min(nodes, d.nodes)*d.node))
}

// waves counts waves of migrations of equal length over all rounds: in each
// round the machines of the nodes drained leave, spread evenly over them.
func (d drainPlan) waves() (waves, rounds int64) {
	left, nodes := d.machines, d.nodes
	for nodes > 0 {
		m := min(d.unavailable, nodes)
		machines := ceilDiv(left*m, nodes)
		waves += ceilDiv(machines, d.parallel(m))
		left -= machines
		nodes -= m
		rounds++
	}
	return waves, rounds
}

// dataset is V30.
func (a *Answer) dataset(p Virt) {
	if !p.Dataset.Ok() {
		return
	}
	size := p.Dataset.Value.Bytes()
	input(a, "dataset", p.Dataset, "")
	a.result("datasetBytes", int64(size), "B", size.String())
	a.step("data set = directories x files x size of a file", fmt.Sprintf("%d x %d x %s = %s", p.Dataset.Value.Directories, p.Dataset.Value.Files, p.Dataset.Value.Size, size), "V30")
	a.correct("V30", "300 directories x 8 files x 20 MiB are 4.8 GiB", "they are 48000 MiB, 46.9 GiB", "a disk of 40 GiB is full before the data set is written")
	if p.Disk.Ok() {
		input(a, "disk", p.Disk, "B")
		if size > p.Disk.Value {
			a.find(Finding{Cannot, "data set on its disk", size.String(), "at most " + p.Disk.Value.String(), "writing it fails: No space left on device", "a larger disk, or fewer files"})
		} else {
			a.find(Finding{Grade: OK, What: "data set on its disk", Now: size.String(), Wanted: "at most " + p.Disk.Value.String()})
		}
	}
}

// virtObject is what is written of the settings.
type virtObject struct {
	replicas  int64 // of virt-api; 0 leaves them alone
	migration migrationConfig
}

type migrationConfig struct {
	PerGiB   int64 `yaml:"completionTimeoutPerGiB,omitempty"`
	Cluster  int64 `yaml:"parallelMigrationsPerCluster"`
	Node     int64 `yaml:"parallelOutboundMigrationsPerNode"`
	Progress int64 `yaml:"progressTimeout"`
}

type hyperConverged struct {
	APIVersion string             `yaml:"apiVersion"`
	Kind       string             `yaml:"kind"`
	Metadata   meta               `yaml:"metadata"`
	Spec       hyperConvergedSpec `yaml:"spec"`
}

type hyperConvergedSpec struct {
	Migration migrationConfig `yaml:"liveMigrationConfig"`
}

type kubeVirt struct {
	APIVersion string       `yaml:"apiVersion"`
	Kind       string       `yaml:"kind"`
	Metadata   meta         `yaml:"metadata"`
	Spec       kubeVirtSpec `yaml:"spec"`
}

type kubeVirtSpec struct {
	Configuration kubeVirtConfiguration `yaml:"configuration"`
	Customize     *customizeComponents  `yaml:"customizeComponents,omitempty"`
}

type kubeVirtConfiguration struct {
	Migrations migrationConfig `yaml:"migrations"`
}

type customizeComponents struct {
	Patches []componentPatch `yaml:"patches"`
}

type componentPatch struct {
	ResourceType string `yaml:"resourceType" json:"resourceType"`
	ResourceName string `yaml:"resourceName" json:"resourceName"`
	Type         string `yaml:"type" json:"type"`
	Patch        string `yaml:"patch" json:"patch"`
}

// replicasPatch sets virt-api's replicas: a patch in the JSON of which another
// patch is a text.
func replicasPatch(n int64) componentPatch {
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	inner, _ := json.Marshal([]op{{"replace", "/spec/replicas", n}})
	return componentPatch{"Deployment", "virt-api", "json", string(inner)}
}

// jsonPatchAnnotation is the annotation by which the hyperconverged operator
// patches KubeVirt's object.
func jsonPatchAnnotation(n int64) string {
	type op struct {
		Op    string           `json:"op"`
		Path  string           `json:"path"`
		Value []componentPatch `json:"value"`
	}
	text, _ := json.Marshal([]op{{"add", "/spec/customizeComponents/patches", []componentPatch{replicasPatch(n)}}})
	return string(text)
}

func (a *Answer) virtFiles(p Virt, v virtObject) {
	if p.Zones.Ok() {
		defer a.zones(p)
	}
	if v == (virtObject{}) {
		return
	}
	if p.Platform.Value == Kubernetes {
		k := kubeVirt{APIVersion: "kubevirt.io/v1", Kind: "KubeVirt", Metadata: meta{Name: "kubevirt", Namespace: "kubevirt"}, Spec: kubeVirtSpec{Configuration: kubeVirtConfiguration{v.migration}}}
		if v.replicas > 0 {
			k.Spec.Customize = &customizeComponents{[]componentPatch{replicasPatch(v.replicas)}}
		}
		a.file("kubevirt.yaml", manifest(k, "Live migration, and virt-api's replicas where they are named."), "virt-operator: kubectl apply --server-side -f")
	} else {
		h := hyperConverged{APIVersion: "hco.kubevirt.io/v1beta1", Kind: "HyperConverged", Metadata: meta{Name: "kubevirt-hyperconverged", Namespace: "openshift-cnv"}, Spec: hyperConvergedSpec{v.migration}}
		if v.replicas > 0 {
			h.Metadata.Annotations = map[string]string{"kubevirt.kubevirt.io/jsonpatch": jsonPatchAnnotation(v.replicas)}
		}
		a.file("hyperconverged.yaml", manifest(h, "Live migration, and virt-api's replicas where they are named."), "the hyperconverged operator: oc apply --server-side -f")
	}
}

// zones is V31 to V33: pools by zone, and what makes one drain and reboot.
func (a *Answer) zones(p Virt) {
	a.cite("V31", "V32", "V33", "openshift-machineconfig")
	input(a, "zones", p.Zones, "")
	unavailable := p.MaxUnavailable.or(10, "V31")
	for i := range p.Zones.Value {
		name := fmt.Sprintf("zone-%d", i)
		a.file("machineconfigpool-"+name+".yaml", manifest(poolOf(name, map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""}, unavailable.Value),
			"The nodes labelled node-role.kubernetes.io/"+name+"."), "the machine config operator of OpenShift: oc apply -f")
	}
	a.file("machineconfig-drain-zone-0.yaml", manifest(machineConfigOf("99-zone-0-plimsoll-drain", "zone-0", []ignitionFile{ignite("/var/tmp/plimsoll-drain", "1\n")}),
		"Drains and reboots the nodes of zone-0. The name must be a new one each time."), "the machine config operator of OpenShift: oc apply -f; it reboots the zone's nodes")
	a.correct("V32", "the pool zone-0 selects MachineConfigs of worker and zone-2", "it selects those of worker and zone-0", "what is meant for zone-0 reaches nobody, and zone-2's drains zone-0")
	a.correct("V33", "a file with filesystem: root, beside networkd, in Ignition 3.1.0", "filesystem and networkd are fields of version 2; version 3 has neither", "at best they are ignored")
	a.command("oc label node NODE node-role.kubernetes.io/zone-0=", "for each node, with its zone")
}
