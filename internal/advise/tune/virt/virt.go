// Package virt computes what virtual machines need of a cluster, and the times of their migrations and clones.
package virt

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
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Virt holds the parameters of virtual machines on a cluster.
type Virt struct {
	Platform param.In[string]      `yaml:"platform" flag:"platform" help:"what the cluster is" words:"openshift, kubernetes" default:"openshift" why:"the documents' platform"`
	VMs      param.In[int64]       `yaml:"vms" flag:"vms" help:"virtual machines" range:"1..10000000"`
	Classes  []VMClass             `yaml:"class" flag:"class" takes:"name=count,cores,memory[,time]" help:"machines of one kind, with the time of a migration" example:"rhel=1500,1,4Gi,14s"` // their counts make VMs
	Nodes    param.In[int64]       `yaml:"nodes" flag:"nodes" help:"nodes that they are on" range:"1..1000000"`
	Pods     param.In[int64]       `yaml:"pods" flag:"pods" help:"other pods" range:"0..100000000"`
	OwnPods  param.In[int64]       `yaml:"ownPods" flag:"own-pods" help:"pods of each node's own" range:"0..10000" default:"16" why:"as for addresses (D3)" when:"machines" in:"pods/node"`
	MaxPods  param.In[int64]       `yaml:"maxPods" flag:"max-pods" help:"maxPods of the nodes" range:"1..100000" default:"250" why:"OpenShift's" when:"nodes"`
	Cores    param.In[float64]     `yaml:"cores" flag:"cores" help:"CPU of a node"`
	Memory   param.In[param.Bytes] `yaml:"memory" flag:"memory" help:"memory of a node"`
	Overhead param.In[param.Bytes] `yaml:"overhead" flag:"overhead" help:"memory of a machine's pod besides the machine's" default:"256 MiB" why:"this program's own allowance" when:"classes" in:"B/machine"`
	Disks    param.In[int64]       `yaml:"disks" flag:"disks" help:"disks of each machine with dedicatedIOThread" range:"0..1000"`
	PerAPI   param.In[int64]       `yaml:"perApi" flag:"per-api" help:"machines for each virt-api pod" range:"1..1000000" default:"750" why:"V35" when:"machines"`
	KubeVirt param.In[string]      `yaml:"kubevirt" flag:"kubevirt" takes:"version" help:"KubeVirt's version, such as 1.3" default:"1.4" why:"1.4 or later"`
	// Live migration.
	ParallelCluster param.In[int64]         `yaml:"parallel" flag:"parallel" help:"migrations at a time" range:"1..100000" default:"20" why:"V34" when:"migrations"`
	ParallelNode    param.In[int64]         `yaml:"parallelNode" flag:"parallel-node" help:"migrations from a node at a time" range:"1..10000" default:"4" why:"V34" when:"migrations"`
	Migrate         param.In[int64]         `yaml:"migrate" flag:"migrate" help:"machines to migrate" range:"1..10000000"`
	Drain           param.In[int64]         `yaml:"drain" flag:"drain" help:"nodes that those are on" range:"1..1000000" in:"nodes"`
	MigrationTime   param.In[time.Duration] `yaml:"migrationTime" flag:"migration-time" help:"time of one migration (default: the average of the classes, or 17.2s)"`
	MaxUnavailable  param.In[int64]         `yaml:"maxUnavailable" flag:"max-unavailable" help:"nodes that are drained at a time" range:"1..1000000" default:"10" why:"V31" when:"drains or zones"`
	Reboot          param.In[time.Duration] `yaml:"reboot" flag:"reboot" help:"reboot of one node" default:"8m45s" why:"V38: 35 min of waiting in 4 rounds" when:"drains"`
	Observed        param.In[time.Duration] `yaml:"observed" flag:"observed" help:"time that such a migration took before"`
	Link            param.In[param.Rate]    `yaml:"link" flag:"link" help:"speed of a node's link, for migrations"`
	VMMemory        param.In[param.Bytes]   `yaml:"vmMemory" flag:"vm-memory" help:"memory of a machine, for migrations"`
	Zones           param.In[int64]         `yaml:"zones" flag:"zones" help:"pools to drain one after the other" range:"1..1000"`
	// Clones.
	Clones        param.In[int64]         `yaml:"clones" flag:"clones" help:"clones of one image" range:"1..50000"`
	CloneWorkers  param.In[int64]         `yaml:"cloneWorkers" flag:"clone-workers" help:"calls of the provisioner at a time" range:"1..10000" default:"10" why:"V23: 10 calls of the provisioner at a time" when:"clones"`
	CloneLock     param.In[time.Duration] `yaml:"cloneLock" flag:"clone-lock" help:"time that a clone holds the image"`
	CloneWork     param.In[time.Duration] `yaml:"cloneWork" flag:"clone-work" help:"time that a clone takes in parallel with others" default:"1s" why:"this program's own guess" when:"clones"`
	CloneBulk     param.In[time.Duration] `yaml:"cloneBulk" flag:"clone-bulk" help:"time that a bulk costs besides its clones" default:"2s" why:"V22: machines are asked every 2 s" when:"clones"`
	ClonePenalty  param.In[param.Share]   `yaml:"clonePenalty" flag:"clone-penalty" help:"by which each clone that waits beyond the workers slows the others, such as 0.2%" range:"0..1000%"`
	Flatten       param.In[time.Duration] `yaml:"flatten" flag:"flatten" help:"time that flattening one image takes (default: from measured bulks above 250)"`
	CloneReadings []CloneReading          `yaml:"cloneMeasured" flag:"clone-measured" takes:"bulk=time" help:"how long a bulk of clones took" example:"100=5m"`
	// Dataset is the data set of each machine, which Disk must hold.
	Dataset param.In[DatasetShape] `yaml:"dataset" flag:"dataset" takes:"DxFxsize" help:"directories x files x size of each machine's data set"`
	Disk    param.In[param.Bytes]  `yaml:"disk" flag:"disk" help:"size of the data set's disk"`
	Cluster cluster.Facts
}

// VMClass describes machines of one kind.
type VMClass struct {
	Name      string
	Count     int64
	Cores     float64
	Memory    param.Bytes
	Migration time.Duration // of one machine; 0 is unknown
}

// UnmarshalText reads a class as a parameter.
func (c *VMClass) UnmarshalText(text []byte) error {
	return param.ReadParts(string(text), "name=count,cores,memory[,time]", &c.Name, &c.Count, &c.Cores, &c.Memory, &c.Migration)
}

// DatasetShape is a tree of files (V30).
type DatasetShape struct {
	Directories, Files int64
	Size               param.Bytes // of each file
}

// Bytes returns the size of all files.
func (d DatasetShape) Bytes() param.Bytes {
	return param.Bytes(d.Directories * d.Files * int64(d.Size))
}

func (d DatasetShape) String() string {
	return fmt.Sprintf("%d directories x %d files x %s", d.Directories, d.Files, d.Size)
}

// UnmarshalText reads a shape as a parameter.
func (d *DatasetShape) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDataset(string(text))
	return err
}

// ParseDataset reads a shape such as 300x8x20Mi.
func ParseDataset(text string) (d DatasetShape, _ error) {
	parts := strings.Split(text, "x")
	if len(parts) != 3 {
		return d, fmt.Errorf("%q: want DIRECTORIESxFILESxSIZE, such as 300x8x20Mi", text)
	}
	var directories, files, size error
	d.Directories, directories = param.ParseCount(parts[0])
	d.Files, files = param.ParseCount(parts[1])
	d.Size, size = param.ParseBytes(parts[2])
	if err := cmp.Or(directories, files, size); err != nil {
		return d, err
	}
	if d.Directories == 0 || d.Files == 0 || d.Size == 0 {
		return d, fmt.Errorf("%q does not describe data", text)
	}
	if float64(d.Directories)*float64(d.Files)*float64(d.Size) > 1<<60 {
		return d, fmt.Errorf("%q is more than 1 EiB", text)
	}
	return d, nil
}

// Figures of the document.
const (
	bootFirst        = 102.0 / 100   // V26: seconds for each of 100 machines
	bootLast         = 1065.0 / 1000 // and of 1000
	documentMigrated = 1000          // V38: machines
	documentMinutes  = 118           // and their time
	documentParallel = 20            // V34
	documentOutbound = 4             // V34
	documentNodes    = 100           // V2
)

// migrationDefaults are KubeVirt's own, which depend on its version.
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
	return 0, 0, fmt.Errorf("%q is not a version: want one such as 1.4", text)
}

// Cases fills in what was read of the cluster, and returns the cases in which defaults matter.
func (p *Virt) Cases() map[string]bool {
	p.Platform.Read(p.Cluster.Platform())
	p.Nodes.Read(p.Cluster.WorkerCount())
	p.MaxPods.Read(p.Cluster.LeastMaxPods())
	p.Cores.Read(p.Cluster.Cores())
	p.Memory.Read(p.Cluster.Memory())
	return map[string]bool{
		"machines": p.VMs.Ok(), "nodes": p.VMs.Ok() && p.Nodes.Ok(), "classes": len(p.Classes) > 0,
		"migrations": p.VMs.Ok() || p.Migrate.Ok(), "drains": p.Migrate.Ok(), "drains or zones": p.Migrate.Ok() || p.Zones.Ok(),
		"clones": p.Clones.Ok() && (p.CloneLock.Ok() || len(p.CloneReadings) > 0),
	}
}

// Tune computes settings for virtual machines (V2, V23 to V27, V30 to V38, V41).
func Tune(p Virt) (*answer.Answer, error) {
	total := int64(0)
	for i, c := range p.Classes {
		if !param.IsWord(c.Name) || c.Count < 1 || c.Cores < 0 || c.Memory < 1 {
			return nil, param.Bad("class", "for example rhel=1500,1,4Gi", "%q makes no sense", c.Name)
		}
		if slices.ContainsFunc(p.Classes[:i], func(other VMClass) bool { return other.Name == c.Name }) {
			return nil, param.Bad("class", "", "%s is given twice", c.Name)
		}
		total += c.Count
	}
	if total > 0 {
		if p.VMs.Ok() && p.VMs.Value != total {
			return nil, param.Bad("vms", "leave --vms out", "%d machines, and the classes have %d", p.VMs.Value, total)
		}
		p.VMs = param.Given(total, "from the classes")
	}
	if !p.VMs.Ok() && !p.Clones.Ok() && !p.Dataset.Ok() && !p.Migrate.Ok() {
		return nil, param.Needs("vms", "how many machines there are to be", "--vms 3000")
	}
	b, err := answer.Begin("virt", &p, func() error { return checkReadings(p.CloneReadings) }, func() error {
		if p.VMs.Ok() && p.Migrate.Value > p.VMs.Value {
			return param.Bad("migrate", "", "%d of %d machines", p.Migrate.Value, p.VMs.Value)
		}
		if p.Migrate.Value > 0 && p.Nodes.Value == 1 {
			return param.Bad("nodes", "leave --migrate out", "a machine migrates from one node to another, and there is 1")
		}
		if p.Nodes.Ok() && p.Zones.Value > p.Nodes.Value {
			return param.Bad("zones", "", "%d of %d nodes", p.Zones.Value, p.Nodes.Value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	major, minor, err := parseVersion(p.KubeVirt.Value)
	if err != nil {
		return nil, param.Bad("kubevirt", "", "%v", err)
	}
	b.Title = "Virtual machines on a cluster"
	if p.VMs.Ok() {
		b.Title = param.Grouped(p.VMs.Value) + " virtual machines on a cluster"
	}
	t := virtTuner{Builder: b, Virt: p, defaults: defaultsOf(major, minor)}
	if p.VMs.Ok() {
		t.apiReplicas()
		t.density()
		t.bootStorm()
		SplitClusters(t.Builder, p.VMs.Value+p.Pods.Value+p.OwnPods.Value*p.Nodes.Value, p.Nodes.Value, p.VMs.Value)
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

// virtTuner builds the answer about virtual machines.
type virtTuner struct {
	*answer.Builder
	Virt
	defaults   migrationDefaults
	replicas   int64          // of virt-api, to write; 0 leaves them alone
	migrations answer.Mapping // the configuration to write
}

// apiReplicas is V35.
func (t *virtTuner) apiReplicas() {
	want := param.CeilDiv(t.VMs.Value, t.PerAPI.Value)
	t.Step("virt-api pods = machines / 750, rounded up", fmt.Sprintf("%s / %d = %d", param.Grouped(t.VMs.Value), t.PerAPI.Value, want), "V35")
	// With one replica the API is gone while its node is.
	use := max(want, 2)
	note := ""
	if use != want {
		note = "two at least, so that one may fail"
	}
	t.Figure("virtAPIReplicas", use, "", note)
	t.Correct("V35", `oc patch hco ... "kubevirt.kubevirt.io/jsonpatch":[{"op\": \"add\" ...`, "the annotation's value is a text that holds JSON: it must be quoted as one", "the shell hands over what is not JSON, and nothing is patched")
	switch {
	case !t.defaults.scalesAPI:
		t.Cite("kubevirt-api")
		t.Check(use <= 2, answer.Finding{Grade: answer.Change, What: "virt-api replicas", Now: "2 (KubeVirt before 0.53)", Wanted: fmt.Sprint(use), Cost: "virt-api's webhooks time out when many machines are made", Remedy: "the patch below"})
		if use <= 2 {
			return
		}
	case t.Nodes.Ok():
		t.Cite("kubevirt-api")
		own := min(t.Nodes.Value, max(2, t.Nodes.Value/10))
		t.Step("KubeVirt since 0.53: one virt-api for every 10 nodes, two at least", fmt.Sprintf("%s / 10 -> %d", param.Grouped(t.Nodes.Value), own), "kubevirt-api")
		t.Figure("virtAPIReplicasAutomatic", own, "", "what virt-operator makes of the number of nodes by itself")
		t.Check(own >= use, answer.Finding{Grade: answer.Change, What: "virt-api replicas", Now: fmt.Sprintf("%d by itself", own), Wanted: fmt.Sprint(use), Cost: "virt-api's webhooks time out when many machines are made", Remedy: "the patch below, which ends the automatic number"})
		if own >= use {
			return
		}
	default:
		t.Cite("kubevirt-api")
		t.Warn("KubeVirt since 0.53 scales virt-api by the number of nodes, one for every 10: give --nodes to see whether a patch is needed")
	}
	t.replicas = use
}

// density is V2: machines and pods of each node. A machine is a pod too.
func (t *virtTuner) density() {
	if !t.Nodes.Ok() {
		return
	}
	t.Cite("V2")
	vms, pods := param.CeilDiv(t.VMs.Value, t.Nodes.Value), param.CeilDiv(t.Pods.Value, t.Nodes.Value)
	all := vms + pods + t.OwnPods.Value
	t.Figure("vmsPerNode", vms, "", "")
	t.Figure("podsPerNode", pods, "", "other pods")
	t.Figure("allPodsPerNode", all, "", "a machine runs in a pod too, and the node has its own")
	t.Step("pods of a node = machines + other pods + its own", fmt.Sprintf("%d + %d + %d = %d", vms, pods, t.OwnPods.Value, all), "V2")
	maxPods := t.MaxPods
	t.Check(all <= maxPods.Value, answer.Finding{Grade: answer.Change, What: "pods of a node", Now: param.Grouped(all), Wanted: fmt.Sprintf("at most maxPods, %d", maxPods.Value), Cost: "machines and pods stay Pending: Too many pods", Remedy: fmt.Sprintf("plimsoll tune kubelet --max-pods %d", max(500, param.RoundUp(all+all/10, 50)))})
	threads, note := vms, "one for each machine"
	if t.Disks.Value > 0 {
		threads, note = vms*t.Disks.Value, fmt.Sprintf("%d disks of each machine with dedicatedIOThread", t.Disks.Value)
	}
	t.Cite("V27")
	t.Figure("ioThreadsPerNode", threads, "", note)
	t.resources()
}

func (t *virtTuner) resources() {
	if len(t.Classes) == 0 {
		return
	}
	var cores float64
	var memory param.Bytes
	for _, c := range t.Classes {
		t.Inputs = append(t.Inputs, answer.Input{Name: "class " + c.Name, Value: fmt.Sprintf("%s x %s cores, %s", param.Grouped(c.Count), param.Trim(c.Cores), c.Memory), Unit: "", From: "flag --class"})
		cores += float64(c.Count) * c.Cores
		memory += param.Bytes(c.Count) * (c.Memory + t.Overhead.Value)
	}
	n := t.Nodes.Value
	nodeCores, nodeMemory := cores/float64(n), memory/param.Bytes(n)
	t.Figure("coresPerNode", math.Round(nodeCores*10)/10, "cores", "that the machines ask for, of an average node")
	t.Figure("memoryPerNode", int64(nodeMemory), "B", "with the overhead of their pods")
	if t.Cores.Ok() {
		t.hold("CPU that machines ask for on a node", nodeCores, t.Cores.Value, "cores")
	}
	if t.Memory.Ok() {
		t.hold("memory that machines ask for on a node", float64(nodeMemory)/(1<<30), float64(t.Memory.Value)/(1<<30), "GiB")
	}
	if t.Nodes.Value > 1 && (t.Cores.Ok() || t.Memory.Ok()) {
		t.Warn("while a node is drained its machines are on the others: leave a node's share free, or as many as are drained at a time")
	}
}

func (t *virtTuner) hold(what string, want, have float64, unit string) {
	t.Check(want <= have, answer.Finding{Grade: answer.Cannot, What: what, Now: fmt.Sprintf("%.1f %s", want, unit), Wanted: fmt.Sprintf("at most %.1f %s", have, unit), Cost: "machines are not scheduled", Remedy: "more nodes, or smaller machines"})
}

// bootStorm is V26: near linear, from 1.02 s per machine of 100 to 1.065 s per machine of 1000.
func (t *virtTuner) bootStorm() {
	t.Cite("V26")
	n := float64(t.VMs.Value)
	per := bootFirst + (bootLast-bootFirst)*(n-100)/900
	per = max(per, bootFirst)
	t.Figure("bootStorm", math.Round(n*per), "s", "for all machines at once, as on the document's cluster of 100 nodes")
	t.Step("boot storm = machines x (1.02 s at 100, 1.065 s at 1000)", fmt.Sprintf("%s x %.3f = %s", param.Grouped(t.VMs.Value), per, seconds(n*per)), "V26")
	if n > 1000 {
		t.Warn("boot storms were measured up to 1000 machines: beyond, the time is extrapolated, and longer queues may make it longer")
	}
}

// SplitClusters answers V41: how many clusters so many pods, nodes and machines need.
func SplitClusters(t *answer.Builder, pods, nodes, vms int64) {
	t.Cite("V41", "openshift-500")
	clusters := max(param.CeilDiv(pods, ceiling.TestedPods), param.CeilDiv(max(nodes, 1), ceiling.OpenShiftNodes))
	t.Figure("clusters", clusters, "", fmt.Sprintf("by the tested maximums of %s pods and %s nodes", param.Grouped(int64(ceiling.TestedPods)), param.Grouped(int64(ceiling.OpenShiftNodes))))
	if clusters > 1 {
		t.Find(answer.Finding{Grade: answer.Change, What: "pods and nodes of one cluster", Now: fmt.Sprintf("%s pods, %s nodes", param.Grouped(pods), param.Grouped(nodes)), Wanted: fmt.Sprintf("%s and %s", param.Grouped(int64(ceiling.TestedPods)), param.Grouped(int64(ceiling.OpenShiftNodes))), Cost: "untested ground for the control plane", Remedy: fmt.Sprintf("%d clusters", clusters)})
	}
	if vms > ceiling.ShownVMs {
		t.Find(answer.Finding{Grade: answer.Advice, What: "machines of one cluster", Now: param.Grouped(vms), Wanted: fmt.Sprintf("%s were tested, on %d nodes", param.Grouped(int64(ceiling.ShownVMs)), documentNodes), Remedy: "consider several clusters, the more the higher the churn"})
	}
}

// migrationLimits is V34.
func (t *virtTuner) migrationLimits() {
	cluster, node := t.ParallelCluster.Value, t.ParallelNode.Value
	t.Cite("V34", "kubevirt-migration")
	t.Figure("parallelMigrationsPerCluster", cluster, "", "5 by default")
	t.Figure("parallelOutboundMigrationsPerNode", node, "", "2 by default")
	t.Figure("completionTimeoutPerGiB", t.defaults.perGiB, "s/GiB", "the default of KubeVirt "+t.KubeVirt.Value)
	t.Figure("completionTimeoutPerGiBDocument", int64(800), "s/GiB", "the document's, the default until KubeVirt 1.3")
	t.Figure("progressTimeout", int64(150), "s", "150 by default")
	written := int64(800)
	if t.Platform.Value == param.OpenShift {
		t.Cite("hco-migration")
		t.Find(answer.Finding{Grade: answer.Advice, What: "defaults of newer hyperconverged operators", Now: "20 s/GiB and 1 migration of a node at a time, since July 2026", Wanted: fmt.Sprintf("%d of a node at a time in the document", documentOutbound),
			Cost: "migrations of a node share its link, so that busy machines converge later", Remedy: "keep the operator's defaults where machines are busy: --parallel-node 1"})
	}
	if t.defaults.perGiB != written {
		t.Find(answer.Finding{Grade: answer.Advice, What: "completionTimeoutPerGiB", Now: fmt.Sprintf("%d by default since KubeVirt 1.4", t.defaults.perGiB), Wanted: "800 in the document, where it was the default",
			Cost: "a machine of 64 GiB that does not converge holds its slot for 14 h instead of 2.7 h", Remedy: "leave it at the default unless large or busy machines are cancelled"})
		written = 0
	}
	t.migrations = answer.Mapping{{"completionTimeoutPerGiB", written}, {"parallelMigrationsPerCluster", cluster}, {"parallelOutboundMigrationsPerNode", node}, {"progressTimeout", 150}}
	if cluster < node {
		t.Find(answer.Finding{Grade: answer.Change, What: "parallelMigrationsPerCluster", Now: fmt.Sprint(cluster), Wanted: fmt.Sprintf("at least %d, one node's", node), Cost: "a node's limit is never reached", Remedy: "raise it"})
	}
	if t.Link.Ok() && t.VMMemory.Ok() {
		each := float64(t.VMMemory.Value) * 8 * float64(node) / float64(t.Link.Value)
		gib := float64(t.VMMemory.Value) / (1 << 30)
		t.Step("copying a machine's memory once = memory x 8 x migrations of the node / speed", fmt.Sprintf("%s x 8 x %d / %s = %.1f s", t.VMMemory.Value, node, t.Link.Value, each), "V34")
		t.Figure("copyTime", math.Round(each*10)/10, "s", "at least, with the node's link shared")
		if limit := float64(t.defaults.perGiB) * gib; each > limit {
			t.Find(answer.Finding{Grade: answer.Change, What: "time of a copy", Now: fmt.Sprintf("%.0f s", each), Wanted: fmt.Sprintf("below %.0f s, completionTimeoutPerGiB x %.1f GiB", limit, gib), Cost: "migrations are cancelled and started again", Remedy: "fewer migrations of a node, or a longer timeout"})
		}
	}
}

// migration is V31 and V38: the time to drain and reboot nodes.
func (t *virtTuner) migration() {
	if !t.Migrate.Ok() {
		return
	}
	t.Cite("V31", "V37", "V38")
	drained := t.Drain
	if !drained.Ok() && t.VMs.Ok() && t.Nodes.Ok() {
		drained = param.Given(max(1, param.CeilDiv(t.Migrate.Value*t.Nodes.Value, t.VMs.Value)), "from migrate and the machines of a node")
	}
	drained = drained.Or(param.CeilDiv(t.Migrate.Value, 30), "30 machines of each node (V2)")
	each := t.MigrationTime
	if !each.Ok() {
		each = averageMigration(t.Classes)
	}
	each = each.Or(17200*time.Millisecond, "V37: (400 x 14 s + 400 x 23 s + 200 x 12 s) / 1000")
	cluster, node := t.ParallelCluster.Value, t.ParallelNode.Value
	unavailable, reboot := t.MaxUnavailable, t.Reboot
	t.Put("drain", drained, "nodes")
	t.Put("migrationTime", each, "")
	plan := drainPlan{t.Migrate.Value, drained.Value, unavailable.Value, cluster, node}
	waves, rounds := plan.waves()
	parallel := plan.parallel(unavailable.Value)
	moving := time.Duration(waves) * each.Value
	waiting := time.Duration(rounds) * reboot.Value
	t.Step("migrations at a time = the lesser of parallelMigrationsPerCluster and maxUnavailable x parallelOutboundMigrationsPerNode", fmt.Sprintf("min(%d, %d x %d) = %d", cluster, unavailable.Value, node, parallel), "V34")
	t.Step("rounds = nodes / maxUnavailable, rounded up; waves of each = its machines / migrations at a time", fmt.Sprintf("%d rounds, %d waves in all", rounds, waves), "V31")
	t.Step("time = waves x time of one migration + rounds x reboot", fmt.Sprintf("%d x %v + %d x %v = %v", waves, each.Value, rounds, reboot.Value, (moving+waiting).Round(time.Second)), "V38")
	t.Figure("migrationWaves", waves, "", "")
	t.Figure("rebootRounds", rounds, "", "")
	t.Figure("migrationTime", math.Round(moving.Seconds()), "s", "at least: every slot is always in use, and no pod is slow to leave")
	t.Figure("drainAndRebootTime", math.Round((moving + waiting).Seconds()), "s", "with the reboots")
	t.Cite("V36")
	t.Correct("V36", "the time of a migration is that of a machine's phases Scheduling, Scheduled and Running", "those are the phases of its start; a migration's are in status.migrationState (startTimestamp, endTimestamp) and in its VirtualMachineInstanceMigration (phaseTransitionTimestamps)", "restarts are measured in place of migrations")
	// A machine's time in a slot on the document's cluster, or here.
	slot := float64(documentMinutes*60*documentParallel) / documentMigrated
	of := "the document's: 118 min x 20 / 1000 machines"
	if t.Observed.Ok() {
		slot = t.Observed.Value.Seconds() * float64(parallel) / float64(t.Migrate.Value)
		of = "of --observed"
	}
	expected := slot * float64(t.Migrate.Value) / float64(parallel)
	t.Step("time that a machine takes up of a slot = time x migrations at a time / machines", fmt.Sprintf("%.1f s (%s), %.1f times the migration itself", slot, of, slot/each.Value.Seconds()), "V38")
	total := expected + waiting.Seconds()
	t.Step("total = time with queues and evictions + rounds x reboot", fmt.Sprintf("%s + %s = %s", seconds(expected), seconds(waiting.Seconds()), seconds(total)), "V38")
	t.Figure("totalTimeExpected", math.Round(total), "s", "with the reboots")
	t.Figure("migrationTimeExpected", math.Round(expected), "s", "with the time that "+strings.Split(of, ":")[0]+" machines took up of a slot: waiting for the target pod, queues and evictions of pods included")
	t.Warn("the migrations themselves explain a small part of what was measured (V38): most is queueing and evictions; calibrate with --observed, the time that a migration of so many machines took")
}

func averageMigration(classes []VMClass) (in param.In[time.Duration]) {
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
	return param.Given(time.Duration(sum/n*float64(time.Second)).Round(10*time.Millisecond), "average of the classes")
}

type drainPlan struct {
	machines, nodes, unavailable, cluster, node int64
}

// parallel returns how many machines migrate at a time while so many nodes are drained.
func (d drainPlan) parallel(nodes int64) int64 {
	return max(1, min(d.cluster, min(nodes, d.nodes)*d.node))
}

// waves counts the waves of equal migrations over all rounds, spread evenly over the drained nodes.
func (d drainPlan) waves() (waves, rounds int64) {
	left, nodes := d.machines, d.nodes
	for nodes > 0 {
		m := min(d.unavailable, nodes)
		machines := param.CeilDiv(left*m, nodes)
		waves += param.CeilDiv(machines, d.parallel(m))
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
	t.Figure("datasetBytes", int64(size), "B", size.String())
	t.Step("data set = directories x files x size of a file", fmt.Sprintf("%d x %d x %s = %s", t.Dataset.Value.Directories, t.Dataset.Value.Files, t.Dataset.Value.Size, size), "V30")
	t.Correct("V30", "300 directories x 8 files x 20 MiB are 4.8 GiB", "they are 48000 MiB, 46.9 GiB", "a disk of 40 GiB is full before the data set is written")
	if t.Disk.Ok() {
		t.Check(size <= t.Disk.Value, answer.Finding{Grade: answer.Cannot, What: "data set on its disk", Now: size.String(), Wanted: "at most " + t.Disk.Value.String(), Cost: "writing it fails: No space left on device", Remedy: "a larger disk, or fewer files"})
	}
}

type componentPatch struct {
	ResourceType string `yaml:"resourceType" json:"resourceType"`
	ResourceName string `yaml:"resourceName" json:"resourceName"`
	Type         string `yaml:"type" json:"type"`
	Patch        string `yaml:"patch" json:"patch"`
}

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
		// This patch becomes a text in the JSON of another patch.
		patches = []componentPatch{{"Deployment", "virt-api", "json", jsonPatch("replace", "/spec/replicas", t.replicas)}}
	}
	const comment = "Live migration, and virt-api's replicas where they are named."
	if t.Platform.Value == param.Kubernetes {
		t.File("kubevirt.yaml", answer.Manifest(answer.Object("kubevirt.io/v1", "KubeVirt", answer.Mapping{{"name", "kubevirt"}, {"namespace", "kubevirt"}}, answer.Mapping{
			{"configuration", answer.Mapping{{"migrations", t.migrations}}}, {"customizeComponents", answer.Mapping{{"patches", patches}}.Compact()},
		}), comment), "virt-operator: kubectl apply --server-side -f")
		return
	}
	// An annotation lets the hyperconverged operator patch KubeVirt's object.
	var annotations map[string]string
	if t.replicas > 0 {
		annotations = map[string]string{"kubevirt.kubevirt.io/jsonpatch": jsonPatch("add", "/spec/customizeComponents/patches", patches)}
	}
	t.File("hyperconverged.yaml", answer.Manifest(answer.Object("hco.kubevirt.io/v1beta1", "HyperConverged", answer.Mapping{{"name", "kubevirt-hyperconverged"}, {"namespace", "openshift-cnv"}, {"annotations", annotations}},
		answer.Mapping{{"liveMigrationConfig", t.migrations}}), comment), "the hyperconverged operator: oc apply --server-side -f")
}

// zones is V31 to V33: pools by zone, and a way to drain and reboot one.
func (t *virtTuner) zones() {
	t.Cite("V31", "V32", "V33", "openshift-machineconfig")
	unavailable := t.MaxUnavailable
	for i := range t.Zones.Value {
		name := fmt.Sprintf("zone-%d", i)
		t.File("machineconfigpool-"+name+".yaml", answer.Manifest(answer.PoolOf(name, map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""}, unavailable.Value),
			"The nodes labelled node-role.kubernetes.io/"+name+"."), "the machine config operator of OpenShift: oc apply -f")
		t.Command("oc label node NODE node-role.kubernetes.io/"+name+"=", "for each node of "+name)
	}
	t.File("machineconfig-drain-zone-0.yaml", answer.Manifest(answer.MachineConfigOf("99-zone-0-plimsoll-drain", "zone-0", []answer.Mapping{answer.Ignite("/var/tmp/plimsoll-drain", "1\n")}),
		"Drains and reboots the nodes of zone-0. The name must be a new one each time."), "the machine config operator of OpenShift: oc apply -f; it reboots the zone's nodes")
	t.Correct("V32", "the pool zone-0 selects MachineConfigs of worker and zone-2", "it selects those of worker and zone-0", "what is meant for zone-0 reaches nobody, and zone-2's drains zone-0")
	t.Correct("V33", "a file with filesystem: root, beside networkd, in Ignition 3.1.0", "filesystem and networkd are fields of version 2; version 3 has neither", "at best they are ignored")
}
