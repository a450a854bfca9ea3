package tune

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
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
	Cluster ClusterFacts
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
func ParseDataset(text string) (d DatasetShape, _ error) {
	parts := strings.Split(text, "x")
	if len(parts) != 3 {
		return d, fmt.Errorf("%q: want DIRECTORIESxFILESxSIZE, such as 300x8x20Mi", text)
	}
	var directories, files, size error
	d.Directories, directories = ParseCount(parts[0])
	d.Files, files = ParseCount(parts[1])
	d.Size, size = ParseBytes(parts[2])
	if err := cmp.Or(directories, files, size); err != nil {
		return d, err
	}
	if d.Directories == 0 || d.Files == 0 || d.Size == 0 {
		return d, fmt.Errorf("%q is no data", text)
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
)

// migrationDefaults are KubeVirt's own, which changed with its versions.
type migrationDefaults struct {
	perGiB    int64
	scalesAPI bool // virt-api's replicas follow the number of nodes
}

func defaultsOf(major, minor int) migrationDefaults {
	d := migrationDefaults{800, major > 0 || minor >= 53}
	if major > 1 || major == 1 && minor >= 4 {
		d.perGiB = 150
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

// Params are the parameters as flags.
func (p *Virt) Params() []Param {
	migrates, drains := p.VMs.Ok() || p.Migrate.Ok(), p.Migrate.Ok()
	clones := p.Clones.Ok() && (p.CloneLock.Ok() || len(p.CloneReadings) > 0)
	perNode := p.VMs.Ok() && p.Nodes.orThat(p.Cluster.workerCount()).Ok()
	return []Param{
		platformParam(&p.Platform, p.Cluster.platform()),
		intParam(&p.VMs, "vms", "virtual machines").within(1, 10_000_000),
		classParam(&p.Classes),
		intParam(&p.Nodes, "nodes", "nodes that they are on").read(p.Cluster.workerCount()).within(1, 1_000_000),
		intParam(&p.Pods, "pods", "other pods").within(0, 100_000_000),
		intParam(&p.OwnPods, "own-pods", "pods of each node's own").within(0, 10_000).by(ceiling.ReservedAddresses, "as for addresses (D3)").when(p.VMs.Ok()).per("pods/node"),
		intParam(&p.MaxPods, "max-pods", "maxPods of the nodes").read(p.Cluster.leastMaxPods()).within(1, 100_000).by(ceiling.OpenShiftMaxPods, "OpenShift's").when(perNode),
		coresParam(&p.Cores, "cores", "CPU of a node").read(p.Cluster.cores()),
		bytesParam(&p.Memory, "memory", "memory of a node").read(p.Cluster.memory()),
		bytesParam(&p.Overhead, "overhead", "memory of a machine's pod besides the machine's").by(256<<20, "this program's own allowance").when(len(p.Classes) > 0).per("B/machine"),
		intParam(&p.Disks, "disks", "disks of each machine with dedicatedIOThread").within(0, 1000),
		intParam(&p.PerAPI, "per-api", "machines for each virt-api pod").within(1, 1_000_000).by(vmsPerAPI, "V35").when(p.VMs.Ok()),
		textParam(&p.KubeVirt, "kubevirt", "version", "KubeVirt's version, such as 1.3").by("1.4", "1.4 or later"),
		intParam(&p.ParallelCluster, "parallel", "migrations at a time").within(1, 100_000).by(documentParallel, "V34").when(migrates),
		intParam(&p.ParallelNode, "parallel-node", "migrations from a node at a time").within(1, 10_000).by(documentOutbound, "V34").when(migrates),
		intParam(&p.Migrate, "migrate", "machines to migrate").within(1, 10_000_000),
		intParam(&p.Drain, "drain", "nodes that those are on").within(1, 1_000_000).per("nodes"),
		timeParam(&p.MigrationTime, "migration-time", "time of one migration (default: the average of the classes, or 17.2s)"),
		intParam(&p.MaxUnavailable, "max-unavailable", "nodes that are drained at a time").within(1, 1_000_000).by(10, "V31").when(drains || p.Zones.Ok()),
		timeParam(&p.Reboot, "reboot", "reboot of one node").by(documentWaiting*time.Minute/4, "V38: 35 min of waiting in 4 rounds").when(drains),
		timeParam(&p.Observed, "observed", "time that such a migration took before"),
		rateParam(&p.Link, "link", "speed of a node's link, for migrations"),
		bytesParam(&p.VMMemory, "vm-memory", "memory of a machine, for migrations"),
		intParam(&p.Zones, "zones", "pools to drain one after the other").within(1, 1000),
		intParam(&p.Clones, "clones", "clones of one image").within(1, 50_000),
		intParam(&p.CloneWorkers, "clone-workers", "calls of the provisioner at a time").within(1, 10_000).by(10, "V23: 10 calls of the provisioner at a time").when(clones),
		timeParam(&p.CloneLock, "clone-lock", "time that a clone holds the image"),
		timeParam(&p.CloneWork, "clone-work", "time that a clone takes in parallel with others").by(time.Second, "this program's own guess").when(clones),
		timeParam(&p.CloneBulk, "clone-bulk", "time that a bulk costs besides its clones").by(2*time.Second, "V22: machines are asked every 2 s").when(clones),
		shareParam(&p.ClonePenalty, "clone-penalty", "by which each clone that waits beyond the workers slows the others, such as 0.2%").within(0, 10),
		timeParam(&p.Flatten, "flatten", "time that flattening one image takes (default: from measured bulks above 250)"),
		newParts(&p.CloneReadings, "clone-measured", "bulk=time", "how long a bulk of clones took", "100=5m", func(r *CloneReading) []func(string) error {
			r.From = "flag --clone-measured"
			return []func(string) error{into(&r.Bulk, whole[int]), into(&r.Seconds, parseSeconds)}
		}),
		formParam(&p.Dataset, "dataset", "DxFxsize", "directories x files x size of each machine's data set", ParseDataset),
		bytesParam(&p.Disk, "disk", "size of the data set's disk"),
	}
}

// classParam is a list of machines by their kind.
func classParam(list *[]VMClass) Param {
	return newParts(list, "class", "name=count,cores,memory[,time]", "machines of one kind, with the time of a migration", "rhel=1500,1,4Gi,14s", func(c *VMClass) []func(string) error {
		return []func(string) error{into(&c.Name, parseName), into(&c.Count, ParseCount), into(&c.Cores, ParseCores), into(&c.Memory, ParseBytes), into(&c.Migration, ParseDelay)}
	})
}

func parseSeconds(text string) (float64, error) {
	d, err := ParseDelay(text)
	return d.Seconds(), err
}

// TuneVirt computes for virtual machines: density, virt-api's replicas, live
// migration, clones (V2, V23 to V27, V30 to V38, V41).
func TuneVirt(p Virt) (*Answer, error) {
	total := int64(0)
	for i, c := range p.Classes {
		if !plainWord(c.Name) || c.Count < 1 || c.Cores < 0 || c.Memory < 1 {
			return nil, badParam("class", "for example rhel=1500,1,4Gi", "%q makes no sense", c.Name)
		}
		if slices.ContainsFunc(p.Classes[:i], func(other VMClass) bool { return other.Name == c.Name }) {
			return nil, badParam("class", "", "%s is given twice", c.Name)
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
	b, err := begin("virt", p.Params(), func() error { return checkReadings(p.CloneReadings) }, func() error {
		if p.VMs.Ok() && p.Migrate.Value > p.VMs.Value {
			return badParam("migrate", "", "%d of %d machines", p.Migrate.Value, p.VMs.Value)
		}
		if p.Migrate.Value > 0 && p.Nodes.Value == 1 {
			return badParam("nodes", "leave --migrate out", "a machine migrates from one node to another, and there is 1")
		}
		if p.Nodes.Ok() && p.Zones.Value > p.Nodes.Value {
			return badParam("zones", "", "%d of %d nodes", p.Zones.Value, p.Nodes.Value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	major, minor, err := parseVersion(p.KubeVirt.Value)
	if err != nil {
		return nil, badParam("kubevirt", "", "%v", err)
	}
	b.Title = "Virtual machines on a cluster"
	if p.VMs.Ok() {
		b.Title = grouped(p.VMs.Value) + " virtual machines on a cluster"
	}
	t := virtTuner{builder: b, Virt: p, defaults: defaultsOf(major, minor)}
	if p.VMs.Ok() {
		t.apiReplicas()
		t.density()
		t.bootStorm()
		t.split()
	}
	if p.VMs.Ok() || p.Migrate.Ok() {
		t.migrationLimits()
		t.migration()
	}
	t.cloneBulks()
	t.dataset()
	t.files()
	return &t.Answer, nil
}

// virtTuner makes the answer about virtual machines.
type virtTuner struct {
	*builder
	Virt
	defaults migrationDefaults
	// What is written: virt-api's replicas, where 0 leaves them alone, and the
	// configuration of migrations.
	replicas   int64
	migrations mapping
}

// apiReplicas is V35.
func (t *virtTuner) apiReplicas() {
	want := ceilDiv(t.VMs.Value, t.PerAPI.Value)
	t.step("virt-api pods = machines / 750, rounded up", fmt.Sprintf("%s / %d = %d", grouped(t.VMs.Value), t.PerAPI.Value, want), "V35")
	// With fewer than two the API is gone while its node is.
	use := max(want, 2)
	note := ""
	if use != want {
		note = "two at least, so that one may fail"
	}
	t.result("virtAPIReplicas", use, "", note)
	t.correct("V35", `oc patch hco ... "kubevirt.kubevirt.io/jsonpatch":[{"op\": \"add\" ...`, "the annotation's value is a text that holds JSON: it must be quoted as one", "the shell hands over what is no JSON, and nothing is patched")
	switch {
	case !t.defaults.scalesAPI:
		t.cite("kubevirt-api")
		t.check(use <= 2, Finding{Change, "virt-api replicas", "2 (KubeVirt before 0.53)", fmt.Sprint(use), "virt-api's webhooks time out when many machines are made", "the patch below"})
		if use <= 2 {
			return
		}
	case t.Nodes.Ok():
		t.cite("kubevirt-api")
		own := min(t.Nodes.Value, max(2, t.Nodes.Value/10))
		t.step("KubeVirt since 0.53: one virt-api for every 10 nodes, two at least", fmt.Sprintf("%s / 10 -> %d", grouped(t.Nodes.Value), own), "kubevirt-api")
		t.result("virtAPIReplicasAutomatic", own, "", "what virt-operator makes of the number of nodes by itself")
		t.check(own >= use, Finding{Change, "virt-api replicas", fmt.Sprintf("%d by itself", own), fmt.Sprint(use), "virt-api's webhooks time out when many machines are made", "the patch below, which ends the automatic number"})
		if own >= use {
			return
		}
	default:
		t.cite("kubevirt-api")
		t.warn("KubeVirt since 0.53 scales virt-api by the number of nodes, one for every 10: give --nodes to see whether a patch is needed")
	}
	t.replicas = use
}

// density is V2: machines and pods of each node. A machine is a pod as well.
func (t *virtTuner) density() {
	if !t.Nodes.Ok() {
		return
	}
	t.cite("V2")
	vms, pods := ceilDiv(t.VMs.Value, t.Nodes.Value), ceilDiv(t.Pods.Value, t.Nodes.Value)
	all := vms + pods + t.OwnPods.Value
	t.result("vmsPerNode", vms, "", "")
	t.result("podsPerNode", pods, "", "other pods")
	t.result("allPodsPerNode", all, "", "a machine runs in a pod too, and the node has its own")
	t.step("pods of a node = machines + other pods + its own", fmt.Sprintf("%d + %d + %d = %d", vms, pods, t.OwnPods.Value, all), "V2")
	maxPods := t.MaxPods
	t.check(all <= maxPods.Value, Finding{Change, "pods of a node", grouped(all), fmt.Sprintf("at most maxPods, %d", maxPods.Value), "machines and pods stay Pending: Too many pods", fmt.Sprintf("plimsoll tune kubelet --max-pods %d", max(500, roundUp(all+all/10, 50)))})
	threads, note := vms, "one for each machine"
	if t.Disks.Value > 0 {
		threads, note = vms*t.Disks.Value, fmt.Sprintf("%d disks of each machine with dedicatedIOThread", t.Disks.Value)
	}
	t.cite("V27")
	t.result("ioThreadsPerNode", threads, "", note)
	t.resources()
}

// resources holds what the classes ask for against what nodes have.
func (t *virtTuner) resources() {
	if len(t.Classes) == 0 {
		return
	}
	var cores float64
	var memory Bytes
	for _, c := range t.Classes {
		t.Inputs = append(t.Inputs, Input{"class " + c.Name, fmt.Sprintf("%s x %s cores, %s", grouped(c.Count), trim(c.Cores), c.Memory), "", "flag --class"})
		cores += float64(c.Count) * c.Cores
		memory += Bytes(c.Count) * (c.Memory + t.Overhead.Value)
	}
	n := t.Nodes.Value
	nodeCores, nodeMemory := cores/float64(n), memory/Bytes(n)
	t.result("coresPerNode", math.Round(nodeCores*10)/10, "cores", "that the machines ask for, of an average node")
	t.result("memoryPerNode", int64(nodeMemory), "B", "with the overhead of their pods")
	if t.Cores.Ok() {
		t.hold("CPU that machines ask for on a node", nodeCores, t.Cores.Value, "cores")
	}
	if t.Memory.Ok() {
		t.hold("memory that machines ask for on a node", float64(nodeMemory)/(1<<30), float64(t.Memory.Value)/(1<<30), "GiB")
	}
	if t.Nodes.Value > 1 && (t.Cores.Ok() || t.Memory.Ok()) {
		t.warn("while a node is drained its machines are on the others: leave a node's share free, or as many as are drained at a time")
	}
}

func (t *virtTuner) hold(what string, want, have float64, unit string) {
	t.check(want <= have, Finding{Cannot, what, fmt.Sprintf("%.1f %s", want, unit), fmt.Sprintf("at most %.1f %s", have, unit), "machines are not scheduled", "more nodes, or smaller machines"})
}

// bootStorm is V26: near linear, from 1.02 s for each of 100 machines to 1.065 s
// for each of 1000.
func (t *virtTuner) bootStorm() {
	t.cite("V26")
	n := float64(t.VMs.Value)
	per := bootFirst + (bootLast-bootFirst)*(n-100)/900
	per = max(per, bootFirst)
	t.result("bootStorm", math.Round(n*per), "s", "for all machines at once, as on the document's cluster of 100 nodes")
	t.step("boot storm = machines x (1.02 s at 100, 1.065 s at 1000)", fmt.Sprintf("%s x %.3f = %s", grouped(t.VMs.Value), per, seconds(n*per)), "V26")
	if n > 1000 {
		t.warn("boot storms were measured up to 1000 machines: beyond, the time is extrapolated, and longer queues may make it longer")
	}
}

// split is V41: when one cluster is too large.
func (t *virtTuner) split() {
	splitClusters(t.builder, t.VMs.Value+t.Pods.Value+t.OwnPods.Value*t.Nodes.Value, t.Nodes.Value, t.VMs.Value)
}

// splitClusters is V41: how many clusters take so many pods, nodes and machines.
func splitClusters(t *builder, pods, nodes, vms int64) {
	t.cite("V41", "openshift-500")
	clusters := max(ceilDiv(pods, ceiling.TestedPods), ceilDiv(max(nodes, 1), ceiling.OpenShiftNodes))
	t.result("clusters", clusters, "", fmt.Sprintf("by the tested maximums of %s pods and %s nodes", grouped(int64(ceiling.TestedPods)), grouped(int64(ceiling.OpenShiftNodes))))
	if clusters > 1 {
		t.find(Finding{Change, "pods and nodes of one cluster", fmt.Sprintf("%s pods, %s nodes", grouped(pods), grouped(nodes)), fmt.Sprintf("%s and %s", grouped(int64(ceiling.TestedPods)), grouped(int64(ceiling.OpenShiftNodes))), "untested ground for the control plane", fmt.Sprintf("%d clusters", clusters)})
	}
	if vms > ceiling.ShownVMs {
		t.find(Finding{Grade: Advice, What: "machines of one cluster", Now: grouped(vms), Wanted: fmt.Sprintf("%s were tested, on %d nodes", grouped(int64(ceiling.ShownVMs)), documentNodes), Remedy: "consider several clusters, the more the higher the churn"})
	}
}

// migrationLimits is V34.
func (t *virtTuner) migrationLimits() {
	cluster, node := t.ParallelCluster.Value, t.ParallelNode.Value
	t.cite("V34", "kubevirt-migration")
	t.result("parallelMigrationsPerCluster", cluster, "", "5 by default")
	t.result("parallelOutboundMigrationsPerNode", node, "", "2 by default")
	t.result("completionTimeoutPerGiB", t.defaults.perGiB, "s/GiB", "the default of KubeVirt "+t.KubeVirt.Value)
	t.result("completionTimeoutPerGiBDocument", int64(800), "s/GiB", "the document's, the default until KubeVirt 1.3")
	t.result("progressTimeout", int64(150), "s", "150 by default")
	written := int64(800)
	if t.Platform.Value == OpenShift {
		t.cite("hco-migration")
		t.find(Finding{Grade: Advice, What: "defaults of newer hyperconverged operators", Now: "20 s/GiB and 1 migration of a node at a time, since July 2026", Wanted: fmt.Sprintf("%d of a node at a time in the document", documentOutbound),
			Cost: "migrations of a node share its link, so that busy machines converge later", Remedy: "keep the operator's defaults where machines are busy: --parallel-node 1"})
	}
	if t.defaults.perGiB != written {
		t.find(Finding{Grade: Advice, What: "completionTimeoutPerGiB", Now: fmt.Sprintf("%d by default since KubeVirt 1.4", t.defaults.perGiB), Wanted: "800 in the document, where it was the default",
			Cost: "a machine of 64 GiB that does not converge holds its slot for 14 h instead of 2.7 h", Remedy: "leave it at the default unless large or busy machines are cancelled"})
		written = 0
	}
	t.migrations = mapping{{"completionTimeoutPerGiB", written}, {"parallelMigrationsPerCluster", cluster}, {"parallelOutboundMigrationsPerNode", node}, {"progressTimeout", 150}}
	if cluster < node {
		t.find(Finding{Change, "parallelMigrationsPerCluster", fmt.Sprint(cluster), fmt.Sprintf("at least %d, one node's", node), "a node's limit is never reached", "raise it"})
	}
	if t.Link.Ok() && t.VMMemory.Ok() {
		each := float64(t.VMMemory.Value) * 8 * float64(node) / float64(t.Link.Value)
		gib := float64(t.VMMemory.Value) / (1 << 30)
		t.step("copying a machine's memory once = memory x 8 x migrations of the node / speed", fmt.Sprintf("%s x 8 x %d / %s = %.1f s", t.VMMemory.Value, node, t.Link.Value, each), "V34")
		t.result("copyTime", math.Round(each*10)/10, "s", "at least, with the node's link shared")
		if limit := float64(t.defaults.perGiB) * gib; each > limit {
			t.find(Finding{Change, "time of a copy", fmt.Sprintf("%.0f s", each), fmt.Sprintf("below %.0f s, completionTimeoutPerGiB x %.1f GiB", limit, gib), "migrations are cancelled and begun anew", "fewer migrations of a node, or a longer timeout"})
		}
	}
}

// migration is V31 and V38: how long it takes to drain and reboot nodes.
func (t *virtTuner) migration() {
	if !t.Migrate.Ok() {
		return
	}
	t.cite("V31", "V37", "V38")
	drained := t.Drain
	if !drained.Ok() && t.VMs.Ok() && t.Nodes.Ok() {
		drained = Given(max(1, ceilDiv(t.Migrate.Value*t.Nodes.Value, t.VMs.Value)), "from migrate and the machines of a node")
	}
	drained = drained.or(ceilDiv(t.Migrate.Value, 30), "30 machines of each node (V2)")
	each := t.MigrationTime
	if !each.Ok() {
		each = averageMigration(t.Classes)
	}
	each = each.or(17200*time.Millisecond, "V37: (400 x 14 s + 400 x 23 s + 200 x 12 s) / 1000")
	cluster, node := t.ParallelCluster.Value, t.ParallelNode.Value
	unavailable, reboot := t.MaxUnavailable, t.Reboot
	t.put("drain", drained, "nodes")
	t.put("migrationTime", each, "")
	plan := drainPlan{t.Migrate.Value, drained.Value, unavailable.Value, cluster, node}
	waves, rounds := plan.waves()
	parallel := plan.parallel(unavailable.Value)
	moving := time.Duration(waves) * each.Value
	waiting := time.Duration(rounds) * reboot.Value
	t.step("migrations at a time = the lesser of parallelMigrationsPerCluster and maxUnavailable x parallelOutboundMigrationsPerNode", fmt.Sprintf("min(%d, %d x %d) = %d", cluster, unavailable.Value, node, parallel), "V34")
	t.step("rounds = nodes / maxUnavailable, rounded up; waves of each = its machines / migrations at a time", fmt.Sprintf("%d rounds, %d waves in all", rounds, waves), "V31")
	t.step("time = waves x time of one migration + rounds x reboot", fmt.Sprintf("%d x %v + %d x %v = %v", waves, each.Value, rounds, reboot.Value, (moving+waiting).Round(time.Second)), "V38")
	t.result("migrationWaves", waves, "", "")
	t.result("rebootRounds", rounds, "", "")
	t.result("migrationTime", math.Round(moving.Seconds()), "s", "at least: every slot is always in use, and no pod is slow to leave")
	t.result("drainAndRebootTime", math.Round((moving + waiting).Seconds()), "s", "with the reboots")
	t.cite("V36")
	t.correct("V36", "the time of a migration is that of a machine's phases Scheduling, Scheduled and Running", "those are the phases of its start; a migration's are in status.migrationState (startTimestamp, endTimestamp) and in its VirtualMachineInstanceMigration (phaseTransitionTimestamps)", "restarts are measured in place of migrations")
	// What a machine took up of a slot on the document's cluster, or here.
	slot := float64(documentMinutes*60*documentParallel) / documentMigrated
	of := "the document's: 118 min x 20 / 1000 machines"
	if t.Observed.Ok() {
		slot = t.Observed.Value.Seconds() * float64(parallel) / float64(t.Migrate.Value)
		of = "of --observed"
	}
	expected := slot * float64(t.Migrate.Value) / float64(parallel)
	t.step("time that a machine takes up of a slot = time x migrations at a time / machines", fmt.Sprintf("%.1f s (%s), %.1f times the migration itself", slot, of, slot/each.Value.Seconds()), "V38")
	total := expected + waiting.Seconds()
	t.step("total = time with queues and evictions + rounds x reboot", fmt.Sprintf("%s + %s = %s", seconds(expected), seconds(waiting.Seconds()), seconds(total)), "V38")
	t.result("totalTimeExpected", math.Round(total), "s", "with the reboots")
	t.result("migrationTimeExpected", math.Round(expected), "s", "with the time that "+strings.Split(of, ":")[0]+" machines took up of a slot: waiting for the target pod, queues and evictions of pods included")
	t.warn("the migrations themselves explain a small part of what was measured (V38): most is queueing and evictions; calibrate with --observed, the time that a migration of so many machines took")
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
func (t *virtTuner) dataset() {
	if !t.Dataset.Ok() {
		return
	}
	size := t.Dataset.Value.Bytes()
	t.result("datasetBytes", int64(size), "B", size.String())
	t.step("data set = directories x files x size of a file", fmt.Sprintf("%d x %d x %s = %s", t.Dataset.Value.Directories, t.Dataset.Value.Files, t.Dataset.Value.Size, size), "V30")
	t.correct("V30", "300 directories x 8 files x 20 MiB are 4.8 GiB", "they are 48000 MiB, 46.9 GiB", "a disk of 40 GiB is full before the data set is written")
	if t.Disk.Ok() {
		t.check(size <= t.Disk.Value, Finding{Cannot, "data set on its disk", size.String(), "at most " + t.Disk.Value.String(), "writing it fails: No space left on device", "a larger disk, or fewer files"})
	}
}

type componentPatch struct {
	ResourceType string `yaml:"resourceType" json:"resourceType"`
	ResourceName string `yaml:"resourceName" json:"resourceName"`
	Type         string `yaml:"type" json:"type"`
	Patch        string `yaml:"patch" json:"patch"`
}

// jsonPatch is a patch of one operation, as JSON.
func jsonPatch(op, path string, value any) string {
	text, _ := json.Marshal([]struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{{op, path, value}})
	return string(text)
}

func (t *virtTuner) files() {
	if t.Zones.Ok() {
		defer t.zones()
	}
	if t.migrations == nil {
		return
	}
	var patches []componentPatch
	if t.replicas > 0 {
		// A patch in the JSON of which another patch is a text.
		patches = []componentPatch{{"Deployment", "virt-api", "json", jsonPatch("replace", "/spec/replicas", t.replicas)}}
	}
	const comment = "Live migration, and virt-api's replicas where they are named."
	if t.Platform.Value == Kubernetes {
		t.file("kubevirt.yaml", manifest(object("kubevirt.io/v1", "KubeVirt", mapping{{"name", "kubevirt"}, {"namespace", "kubevirt"}}, mapping{
			{"configuration", mapping{{"migrations", t.migrations}}}, {"customizeComponents", mapping{{"patches", patches}}.compact()},
		}), comment), "virt-operator: kubectl apply --server-side -f")
		return
	}
	// The hyperconverged operator patches KubeVirt's object by an annotation.
	var annotations map[string]string
	if t.replicas > 0 {
		annotations = map[string]string{"kubevirt.kubevirt.io/jsonpatch": jsonPatch("add", "/spec/customizeComponents/patches", patches)}
	}
	t.file("hyperconverged.yaml", manifest(object("hco.kubevirt.io/v1beta1", "HyperConverged", mapping{{"name", "kubevirt-hyperconverged"}, {"namespace", "openshift-cnv"}, {"annotations", annotations}},
		mapping{{"liveMigrationConfig", t.migrations}}), comment), "the hyperconverged operator: oc apply --server-side -f")
}

// zones is V31 to V33: pools by zone, and what makes one drain and reboot.
func (t *virtTuner) zones() {
	t.cite("V31", "V32", "V33", "openshift-machineconfig")
	unavailable := t.MaxUnavailable
	for i := range t.Zones.Value {
		name := fmt.Sprintf("zone-%d", i)
		t.file("machineconfigpool-"+name+".yaml", manifest(poolOf(name, map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""}, unavailable.Value),
			"The nodes labelled node-role.kubernetes.io/"+name+"."), "the machine config operator of OpenShift: oc apply -f")
		t.command("oc label node NODE node-role.kubernetes.io/"+name+"=", "for each node of "+name)
	}
	t.file("machineconfig-drain-zone-0.yaml", manifest(machineConfigOf("99-zone-0-plimsoll-drain", "zone-0", []mapping{ignite("/var/tmp/plimsoll-drain", "1\n")}),
		"Drains and reboots the nodes of zone-0. The name must be a new one each time."), "the machine config operator of OpenShift: oc apply -f; it reboots the zone's nodes")
	t.correct("V32", "the pool zone-0 selects MachineConfigs of worker and zone-2", "it selects those of worker and zone-0", "what is meant for zone-0 reaches nobody, and zone-2's drains zone-0")
	t.correct("V33", "a file with filesystem: root, beside networkd, in Ignition 3.1.0", "filesystem and networkd are fields of version 2; version 3 has neither", "at best they are ignored")
}
