package tune

import (
	_ "embed"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Plan holds the parameters of a whole cluster.
type Plan struct {
	Platform    param.In[string]      `yaml:"platform" flag:"platform" help:"what the cluster is" words:"openshift, kubernetes" default:"openshift" why:"the documents' platform"`
	Nodes       param.In[int64]       `yaml:"nodes" flag:"nodes" help:"nodes that take pods" range:"1..100000" needed:"--nodes 26"`
	OtherNodes  param.In[int64]       `yaml:"otherNodes" flag:"other-nodes" help:"nodes of the control plane and infrastructure" range:"0..10000" default:"3" why:"a control plane of three"`
	PodsPerNode param.In[int64]       `yaml:"podsPerNode" flag:"pods-per-node" help:"all pods of each node" range:"1..100000"` // in place of Pods
	Pods        param.In[int64]       `yaml:"pods" flag:"pods" help:"users' pods over all nodes" range:"0..100000000"`
	VMs         param.In[int64]       `yaml:"vms" flag:"vms" help:"virtual machines" range:"0..10000000"`
	Classes     []virt.VMClass        `yaml:"class" flag:"class" takes:"name=count,cores,memory[,time]" help:"machines of one kind, with the time of a migration" example:"rhel=1500,1,4Gi,14s"`
	MaxPods     param.In[int64]       `yaml:"maxPods" flag:"max-pods" help:"maxPods of the nodes (default the next that was tested)" range:"1..100000"`
	Growth      param.In[param.Share] `yaml:"growth" flag:"growth" help:"headroom for more nodes, such as 50%" default:"0%" why:"no headroom asked for"`
	// Two pods and one service are an iteration of node-density-heavy (D4).
	PodsPerIteration     param.In[int64]          `yaml:"podsPerIteration" flag:"pods-per-iteration" help:"pods of an iteration of the load" range:"1..10000" default:"2" why:"an application and its database (D4)"`
	ServicesPerIteration param.In[int64]          `yaml:"servicesPerIteration" flag:"services-per-iteration" help:"services of an iteration of the load" range:"0..10000" default:"1" why:"of the database (D16)"`
	OSDs                 param.In[int64]          `yaml:"osds" flag:"osds" help:"OSDs of a Ceph cluster"`
	Replicas             param.In[int64]          `yaml:"replicas" flag:"replicas" help:"copies in Ceph (default 3)"`
	CephPool             param.In[string]         `yaml:"poolName" flag:"pool-name" takes:"name" help:"Ceph's pool of the machines"`
	RTT                  param.In[time.Duration]  `yaml:"rtt" flag:"rtt" help:"round trip between the hosts" range:"1ns..1m"`
	Link                 param.In[param.Rate]     `yaml:"link" flag:"link" help:"speed of the nodes' link"`
	MTU                  param.In[int64]          `yaml:"mtu" flag:"mtu" help:"MTU of the nodes' link (default 1500)"`
	Cores                param.In[float64]        `yaml:"cores" flag:"cores" help:"CPU of a node"`
	Memory               param.In[param.Bytes]    `yaml:"memory" flag:"memory" help:"memory of a node"`
	MaxUnavailable       param.In[int64]          `yaml:"maxUnavailable" flag:"max-unavailable" help:"nodes that reboot at a time (default 1, with 100 nodes and more 10)"`
	MachineCIDRs         []param.In[netip.Prefix] `yaml:"machineCidr" flag:"machine-cidr" help:"range of the machines"`
	Avoid                []param.In[netip.Prefix] `yaml:"avoid" flag:"avoid" help:"range that is in use elsewhere"`
	Costs                []cluster.ComponentCost  `yaml:"measured" flag:"measured" takes:"name@pods=cores,memory" help:"what a component of the node used" example:"kubelet@250=0.8,450Mi"`
	KubeVirt             param.In[string]         `yaml:"kubevirt" flag:"kubevirt" takes:"version" help:"KubeVirt's version (default 1.4)"`
}

// The stages of a plan, in order.
const (
	stageInstall = iota + 1
	stageStorage
	stageNodes
	stageVirt
	stageLoad
	stageRaise
)

// number returns a stage's place in this plan, from 1. The stages of storage and machines may be missing.
func (b *planner) number(stage int) int {
	n := stage
	if stage > stageStorage && !b.OSDs.Ok() {
		n--
	}
	if stage > stageVirt && !b.VMs.Ok() {
		n--
	}
	return n
}

func (b *planner) dir(stage int) string {
	name := []string{"installation", "storage", "nodes", "virtualization", "load", "raise"}[stage-1]
	return fmt.Sprintf("%d-%s", b.number(stage), name)
}

// Cases sets the document's load beside machines: idle pods.
func (p *Plan) Cases() map[string]bool {
	if p.VMs.Ok() {
		p.PodsPerIteration = p.PodsPerIteration.Or(1, "idle pods beside the machines, as in the document (V2)")
		p.ServicesPerIteration = p.ServicesPerIteration.Or(0, "idle pods")
	}
	return nil
}

// TunePlan makes a plan for a target: ceilings, settings, their order and their files.
func TunePlan(p Plan) (*answer.Answer, error) {
	if len(p.Classes) > 0 {
		total := int64(0)
		for _, c := range p.Classes {
			total += c.Count
		}
		p.VMs = param.Given(total, "from the classes")
	}
	switch {
	case p.Pods.Ok() && p.PodsPerNode.Ok():
		return nil, param.Bad("pods", "keep one of them", "--pods and --pods-per-node both say how many")
	case !p.Pods.Ok() && !p.PodsPerNode.Ok() && !p.VMs.Ok():
		return nil, param.Needs("pods-per-node", "how many pods, or --pods, or --vms", "--pods-per-node 2500")
	}
	begun, err := answer.Begin("plan", &p)
	if err != nil {
		return nil, err
	}
	n := p.Nodes.Value
	vms, pods := param.CeilDiv(p.VMs.Value, n), param.CeilDiv(p.Pods.Value, n)
	all := vms + pods + ceiling.ReservedAddresses
	how := fmt.Sprintf("%d machines + %d pods + %d of its own = %d", vms, pods, ceiling.ReservedAddresses, all)
	if p.PodsPerNode.Ok() {
		all = max(p.PodsPerNode.Value, vms+ceiling.ReservedAddresses)
		how = fmt.Sprintf("%d, its own included", all)
		pods = max(0, all-vms-ceiling.ReservedAddresses)
	}
	maxPods := p.MaxPods
	switch {
	case maxPods.Ok() && maxPods.Value < all:
		return nil, param.Bad("max-pods", "leave it out for the next that was tested", "%d, and %s pods come to each node", maxPods.Value, param.Grouped(all))
	case maxPods.Ok():
	case p.PodsPerNode.Ok() || all > 500:
		maxPods = param.Given(max(all, ceiling.OpenShiftMaxPods), "all pods of a node")
	case all > ceiling.OpenShiftMaxPods:
		maxPods = param.Given(int64(500), "V15: the next that was tested")
	default:
		maxPods = param.Given(int64(ceiling.OpenShiftMaxPods), "OpenShift's default")
	}
	var target []string
	if p.VMs.Ok() {
		target = append(target, param.Grouped(p.VMs.Value)+" virtual machines")
	}
	if p.Pods.Ok() {
		target = append(target, param.Grouped(p.Pods.Value)+" pods")
	}
	if p.PodsPerNode.Ok() {
		target = append(target, param.Grouped(p.PodsPerNode.Value)+" pods on each node")
	}
	b := planner{Builder: begun, Plan: p, maxPods: maxPods, perNode: all, iterationPods: max(pods, 0) * n}
	b.Title = fmt.Sprintf("A plan for %s, on %s nodes", strings.Join(target, " and "), param.Grouped(n))
	b.Put("maxPods", maxPods, "")
	b.Step("pods of a node", how, "V2", "D4")
	b.Figure("allPodsPerNode", all, "", "")
	b.Figure("maxPods", maxPods.Value, "", maxPods.From)
	b.Figure("allPods", all*n, "", "over the nodes that take pods")
	for _, stage := range []func() error{b.install, b.storage, b.nodes, b.virt, b.load, b.raise, b.write} {
		if err := stage(); err != nil {
			return nil, err
		}
	}
	return &b.Answer, nil
}

type planner struct {
	*answer.Builder
	Plan
	maxPods       param.In[int64]
	perNode       int64
	iterationPods int64 // of the load, over all nodes
	hostPrefix    int64
	services      int64 // addresses for services
}

// take adds a stage's answer: its files, and its commands unless a script among them has those.
func (b *planner) take(stage int, c *answer.Answer) {
	dir := b.dir(stage) + "/"
	for _, f := range c.Findings {
		f.What = c.Tool + ": " + f.What
		b.Find(f)
	}
	for _, c := range c.Corrections {
		b.Correct(c.Row, c.Says, c.Right, c.Effect)
	}
	for _, w := range c.Warnings {
		b.Warn("%s: %s", c.Tool, w)
	}
	for _, f := range c.Files {
		b.File(dir+f.Path, f.Content, f.For)
	}
	for _, s := range c.Sources {
		b.Cite(s.ID)
	}
	if c.Tool != "kubelet" && c.Tool != "virt" {
		return
	}
	for _, command := range c.Commands {
		for _, f := range c.Files {
			command.Line = strings.ReplaceAll(command.Line, " "+f.Path, " "+dir+f.Path)
		}
		b.Commands = append(b.Commands, command)
	}
}

func (b *planner) set(stage int, name, from, to, file string) {
	if file != "" {
		file = b.dir(stage) + "/" + file
	}
	b.Settings = append(b.Settings, answer.Setting{Name: name, From: from, To: to, Stage: b.number(stage), Fixed: stage == stageInstall, File: file})
}

func (b *planner) stage(when string, fixed bool, do ...string) {
	b.Stages = append(b.Stages, answer.Stage{When: when, Do: do, Fixed: fixed})
}

func (b *planner) ceiling(name, what string, limit, asked, usual int64, set string) {
	b.Ceilings = append(b.Ceilings, answer.Ceiling{Name: name, What: what, Limit: limit, Asked: asked, Usual: usual, Set: set, Holds: asked <= limit})
	if asked > limit && set == "tested" {
		b.Find(answer.Finding{Grade: answer.Advice, What: name, Now: param.Grouped(asked), Wanted: "at most " + param.Grouped(limit) + " were tested", Cost: "untested ground", Remedy: what})
	}
}

func (b *planner) install() error {
	asked := cluster.Subnet{
		Platform: b.Platform, Nodes: param.Given(b.Nodes.Value+b.OtherNodes.Value, "nodes and other nodes"), PodsPerNode: param.Given(b.maxPods.Value, "maxPods"),
		Growth: b.Growth, MachineCIDRs: b.MachineCIDRs, Avoid: b.Avoid,
	}
	subnet, err := cluster.TuneSubnet(asked)
	if err != nil {
		return err
	}
	if usual, ok := asked.UsualRange(subnet); ok {
		asked.ClusterCIDRs = []param.In[netip.Prefix]{usual}
		if subnet, err = cluster.TuneSubnet(asked); err != nil {
			return err
		}
	}
	b.hostPrefix = subnet.Result("hostPrefix").(int64)
	b.services = subnet.Result("services").(int64)
	network, err := host.TuneNetwork(host.Network{Platform: b.Platform, MTU: b.MTU, Link: b.Link})
	if err != nil {
		return err
	}
	b.Figure("clusterCIDR", subnet.Result("clusterCIDR"), "", "")
	b.Figure("hostPrefix", b.hostPrefix, "", "")
	b.Figure("serviceCIDR", subnet.Result("serviceCIDR"), "", "")
	b.Figure("podMTU", network.Result("podMTU"), "B", "")
	b.take(stageInstall, subnet)
	b.take(stageInstall, network)
	usualPrefix, usualCIDR, file := "23", "10.128.0.0/14", "install-config-networking.yaml"
	usualNodes, usualAddresses := int64(512), int64(510-ceiling.ReservedAddresses)
	if b.Platform.Value == param.Kubernetes {
		usualPrefix, usualCIDR, file = "24", "none", "kubeadm-cluster.yaml"
		usualNodes, usualAddresses = 0, 254-ceiling.ReservedAddresses
	}
	cidr := subnet.Result("clusterCIDR").(string)
	if cidr != usualCIDR {
		b.set(stageInstall, "range of the pods", usualCIDR, cidr, file)
	}
	if fmt.Sprint(b.hostPrefix) != usualPrefix {
		b.set(stageInstall, "hostPrefix", usualPrefix, fmt.Sprint(b.hostPrefix), file)
	}
	if b.MTU.Ok() && b.MTU.Value != 1500 {
		b.set(stageInstall, "MTU of pods", "1400", fmt.Sprint(network.Result("podMTU")), "cluster-network-03-config.yml")
	}
	b.ceiling("nodeSubnets", "nodes that get a subnet", subnet.Result("nodes").(int64), b.Nodes.Value+b.OtherNodes.Value, usualNodes, "installation")
	b.ceiling("addressesPerNode", "addresses of a node, less 16 of its own", subnet.Result("podsPerNode").(int64), b.maxPods.Value, usualAddresses, "installation")
	b.stage("before installation", true,
		fmt.Sprintf("address ranges: %s with a /%d for each node, services %s (%s/%s)", cidr, b.hostPrefix, subnet.Result("serviceCIDR"), b.dir(stageInstall), file),
		fmt.Sprintf("MTU %v for pods; jumbo frames on every switch and node first, if there are to be any", network.Result("podMTU")),
		"headroom for more nodes: neither hostPrefix nor the services' range can be changed later")
	return nil
}

func (b *planner) storage() error {
	if !b.OSDs.Ok() {
		if b.VMs.Ok() {
			b.Warn("nothing is planned for the storage of the machines: --osds of a Ceph cluster")
		}
		return nil
	}
	clones := param.In[int64]{}
	if b.VMs.Ok() {
		clones = param.Given(b.VMs.Value, "all machines, of one image")
	}
	ceph, err := ceph.Tune(ceph.Ceph{OSDs: b.OSDs, Replicas: b.Replicas, Pool: b.CephPool, Clones: clones})
	if err != nil {
		return err
	}
	settings, err := host.TuneHost(host.Host{RTT: b.RTT, Link: b.bufferLink(), Neighbours: param.Given(b.Nodes.Value+b.OtherNodes.Value+b.OSDs.Value, "nodes, and a host for each OSD at most"), ARPFlux: param.Given(true, "bonded or several interfaces, as in the document"), Formats: []string{"sysctl", "ansible"}})
	if err != nil {
		return err
	}
	b.Figure("pgNum", ceph.Result("pgNum"), "", "")
	b.take(stageStorage, ceph)
	b.take(stageStorage, settings)
	b.set(stageStorage, "pg_num", "by the autoscaler", fmt.Sprint(ceph.Result("pgNum")), "ceph-tuning.sh")
	b.set(stageStorage, "mgr/prometheus/scrape_interval", "15", "60", "ceph-tuning.sh")
	b.set(stageStorage, "gc_thresh3 of Ceph hosts", "1024", fmt.Sprint(settings.Result("gcThresh3")), "etc/sysctl.d/"+host.ArpCacheFile)
	b.set(stageStorage, "arp_filter, arp_ignore, arp_announce of Ceph hosts", "0", "1", "etc/sysctl.d/"+host.ArpFile)
	do := []string{"kernel settings of the Ceph hosts (" + b.dir(stageStorage) + "/etc/sysctl.d, or ansible-sysctl.yaml)", "placement groups, in steps, and monitoring (" + b.dir(stageStorage) + "/ceph-tuning.sh)"}
	if b.VMs.Ok() {
		do = append(do, fmt.Sprintf("cloneStrategy copy, or %v golden images ("+b.dir(stageStorage)+"/storageprofile.yaml)", ceph.Result("parentImages")))
		b.set(stageStorage, "cloneStrategy", "snapshot or csi-clone", "copy", "storageprofile.yaml")
	}
	b.stage("storage", false, do...)
	return nil
}

// bufferLink returns the link if the round trip is known, because buffers need both.
func (b *planner) bufferLink() (in param.In[param.Rate]) {
	if b.RTT.Ok() {
		in = b.Link
	}
	return in
}

func (b *planner) nodes() error {
	unavailable := b.MaxUnavailable
	if !unavailable.Ok() && b.Nodes.Value >= 100 {
		unavailable = param.Given(int64(10), "V31")
	}
	kubelet, err := cluster.TuneKubelet(cluster.Kubelet{
		Platform: b.Platform, MaxPods: b.maxPods, HostPrefix: param.Given(b.hostPrefix, "the plan's"), Nodes: b.Nodes, MaxUnavailable: unavailable,
		Cores: b.Cores, Memory: b.Memory, Costs: b.Costs,
	})
	if err != nil {
		return err
	}
	formats := []string{"tuned"}
	if b.Platform.Value == param.Kubernetes {
		formats = []string{"sysctl", "ansible"}
	}
	pids := kubelet.Result("podPidsLimit")
	perPod := param.In[int64]{}
	if n, ok := pids.(int64); ok {
		perPod = param.Given(n, "podPidsLimit")
	}
	settings, err := host.TuneHost(host.Host{Platform: b.Platform, Pods: b.maxPods, PIDsPerPod: perPod, Neighbours: param.Given(b.Nodes.Value+b.OtherNodes.Value+b.maxPods.Value, "nodes and own pods"), RTT: b.RTT, Link: b.bufferLink(), Formats: formats})
	if err != nil {
		return err
	}
	b.take(stageNodes, kubelet)
	b.take(stageNodes, settings)
	usual, file := int64(ceiling.OpenShiftMaxPods), "kubeletconfig-worker.yaml"
	if b.Platform.Value == param.Kubernetes {
		usual, file = ceiling.DefaultMaxPods, "kubelet-config.yaml"
	}
	if b.maxPods.Value != usual {
		b.set(stageNodes, "maxPods", fmt.Sprint(usual), fmt.Sprint(b.maxPods.Value), file)
	}
	if qps := kubelet.Result("kubeAPIQPS").(int64); qps != cluster.DefaultQPS {
		b.set(stageNodes, "kubeAPIQPS, kubeAPIBurst", "50, 100", fmt.Sprintf("%d, %v", qps, kubelet.Result("kubeAPIBurst")), file)
	}
	if pids != nil && pids != int64(cluster.OpenShiftPIDs) {
		b.set(stageNodes, "podPidsLimit", fmt.Sprint(cluster.OpenShiftPIDs), fmt.Sprint(pids), file)
	}
	for _, r := range []string{"systemReserved", "kubeReserved"} {
		if cpu := kubelet.Result(r + ".cpu"); cpu != nil {
			b.set(stageNodes, r, "the platform's", fmt.Sprintf("%v, %v", cpu, kubelet.Result(r+".memory")), file)
		}
	}
	b.ceiling("maxPods", "pods that a node takes", b.maxPods.Value, b.perNode, usual, "setting")
	b.ceiling("testedPodsPerNode", "raise step by step, and confirm", ceiling.ShownMaxPods, b.perNode, 0, "tested")
	b.ceiling("testedPods", "several clusters (V41)", ceiling.TestedPods, b.perNode*b.Nodes.Value, 0, "tested")
	b.ceiling("testedNodes", "several clusters (V41)", ceiling.OpenShiftNodes, b.Nodes.Value+b.OtherNodes.Value, 0, "tested")
	b.Cite("openshift-2500", "openshift-500")
	do := []string{}
	if b.Platform.Value == param.OpenShift {
		do = append(do, "kernel settings of the nodes ("+b.dir(stageNodes)+"/tuned-worker.yaml): no reboot",
			"one KubeletConfig for the pool ("+b.dir(stageNodes)+"/kubeletconfig-worker.yaml)")
		if t := kubelet.Result("rebootTime"); t != nil {
			do = append(do, fmt.Sprintf("it reboots all %d nodes, %d at a time: about %v", b.Nodes.Value, max(unavailable.Value, 1), t))
		}
	} else {
		do = append(do, "kernel settings of the nodes ("+b.dir(stageNodes)+"/etc/sysctl.d)", "the kubelets' configuration ("+b.dir(stageNodes)+"/kubelet-config.yaml), and their restart")
	}
	if !b.VMs.Ok() { // with machines, virt does it
		virt.SplitClusters(b.Builder, b.perNode*b.Nodes.Value, b.Nodes.Value+b.OtherNodes.Value, 0)
	}
	b.stage("nodes, while they are empty", false, do...)
	return nil
}

func (b *planner) virt() error {
	if !b.VMs.Ok() {
		return nil
	}
	virt, err := virt.Tune(virt.Virt{
		Platform: b.Platform, VMs: param.Given(b.VMs.Value, b.VMs.From), Classes: b.Classes, Nodes: b.Nodes, Pods: param.Given(b.iterationPods, "of the plan"), MaxPods: b.maxPods, Cores: b.Cores, Memory: b.Memory,
		KubeVirt: b.KubeVirt, Zones: param.Given(int64(3), "V31"), Migrate: param.Given(param.CeilDiv(b.VMs.Value, 3), "a zone of three"), MaxUnavailable: b.MaxUnavailable,
	})
	if err != nil {
		return err
	}
	b.Figure("clusters", virt.Result("clusters"), "", "by the tested maximums (V41)")
	b.Figure("virtAPIReplicas", virt.Result("virtAPIReplicas"), "", "")
	b.Figure("bootStorm", virt.Result("bootStorm"), "s", "of all machines at once")
	b.Figure("migrationTimeExpected", virt.Result("migrationTimeExpected"), "s", "of a third of the machines, by the document's experience")
	b.take(stageVirt, virt)
	file := "hyperconverged.yaml"
	if b.Platform.Value == param.Kubernetes {
		file = "kubevirt.yaml"
	}
	b.set(stageVirt, "parallelMigrationsPerCluster", "5", "20", file)
	b.set(stageVirt, "parallelOutboundMigrationsPerNode", "2", "4", file)
	if auto := virt.Result("virtAPIReplicasAutomatic"); auto == nil || auto.(int64) < virt.Result("virtAPIReplicas").(int64) {
		b.set(stageVirt, "virt-api replicas", "by the number of nodes", fmt.Sprint(virt.Result("virtAPIReplicas")), file)
	}
	b.ceiling("testedMachines", "several clusters, the more the higher the churn (V41)", ceiling.ShownVMs, b.VMs.Value, 0, "tested")
	b.stage("virtualization", false,
		"limits of live migration, and virt-api's replicas where they are named ("+b.dir(stageVirt)+"/"+file+")",
		"a pool for each zone, so that drains come one zone at a time ("+b.dir(stageVirt)+"/machineconfigpool-zone-*.yaml)",
		"clone machines in bulks, and measure: plimsoll tune virt --clones N --clone-measured ...; the document's bulks of 100 were measured with CSI clones, and copies do not share the image's lock")
	return nil
}

func (b *planner) load() error {
	b.Cite("D4", "D16")
	iterations := max(0, b.iterationPods/b.PodsPerIteration.Value)
	services := iterations * b.ServicesPerIteration.Value
	b.Step("iterations = (nodes x pods of a node - those that are there) / pods of an iteration", fmt.Sprintf("%s / %d = %s", param.Grouped(b.iterationPods), b.PodsPerIteration.Value, param.Grouped(iterations)), "D4")
	of := "of 1 pod"
	if b.PodsPerIteration.Value > 1 {
		of = fmt.Sprintf("of %d pods", b.PodsPerIteration.Value)
	}
	b.Figure("iterations", iterations, "", of)
	b.Figure("services", services, "", "of the load")
	namespaces := max(1, param.CeilDiv(services, ceiling.NamespaceServices))
	b.Figure("namespaces", namespaces, "", fmt.Sprintf("at least, with at most %d services in each", ceiling.NamespaceServices))
	if b.ServicesPerIteration.Value > 0 {
		at := ceiling.NamespaceServices * b.PodsPerIteration.Value / (b.Nodes.Value * b.ServicesPerIteration.Value)
		b.Step("pods per node at which one namespace has 5000 services", fmt.Sprintf("%d x %d / %s = %d", ceiling.NamespaceServices, b.PodsPerIteration.Value, param.Grouped(b.Nodes.Value*b.ServicesPerIteration.Value), at), "D16")
		b.Figure("podsPerNodeOfOneNamespace", at, "", "above it one namespace is not enough")
	}
	do := []string{"enableServiceLinks: false in every pod: else each container gets about 7 environment variables for every service of its namespace, until exec fails with 'argument list too long'"}
	b.ceiling("servicesPerNamespace", "services in one namespace, with "+param.Grouped(namespaces)+" of them", ceiling.NamespaceServices, param.CeilDiv(services, namespaces), 0, "tested")
	if namespaces > 1 {
		do = append(do, fmt.Sprintf("a namespace for each iteration, or at least %d (namespacedIterations): one fails above 5000 services", namespaces))
		b.set(stageLoad, "namespacedIterations", "false", "true", "")
	}
	b.set(stageLoad, "enableServiceLinks", "true", "false", "")
	b.ceiling("serviceAddresses", "addresses for services", b.services, services, 65534, "installation")
	b.ceiling("testedServices", "fewer services, or several clusters", ceiling.TestedServices, services, 0, "tested")
	b.stage("the load", false, do...)
	return nil
}

// raise plans the way to the target: D5, D15, D18.
func (b *planner) raise() error {
	b.Cite("D5", "D15", "D18", "D8", "D14")
	top := b.perNode
	start := min(int64(150), top)
	step := max(50, param.RoundUp((top-start)/6, 50))
	const pace = 20
	total := b.perNode * b.Nodes.Value
	took := (time.Duration(total/pace) * time.Second).Round(time.Minute)
	b.Step("time to make all pods at 20 a second", fmt.Sprintf("%s / %d = %v", param.Grouped(total), pace, took), "D18")
	b.Figure("creationTime", took.String(), "", "at 20 pods a second")
	b.Command("plimsoll check node-density --kubeconfig FILE", "what is in the way, before any load")
	b.Command(fmt.Sprintf("plimsoll sweep node-density --kubeconfig FILE --levels %d --out normal", start), "what normal looks like (D18)")
	if top > start {
		b.Command(fmt.Sprintf("plimsoll limit node-density --kubeconfig FILE --from %d --step %d --max %d", start, step, top), "raise, and confirm the highest level that holds (D5)")
	}
	b.stage("raise, from low to high", false,
		fmt.Sprintf("begin with %d pods per node and learn what normal looks like (D18)", start),
		"node-density first, then node-density-cni, then node-density-heavy: a density that held in one says little of the next (D15)",
		"watch the kubelets: many Pending pods make all of them busy, and deleting those that cannot be scheduled relieves them (D8)",
		"record what kubelet and container runtime use, and reserve it: plimsoll tune kubelet --run DIR (D14)")
	return nil
}

// planPage shows an Answer as a page.
//
//go:embed plan.md.tmpl
var planPage string

func (b *planner) write() error {
	page, err := template.New("PLAN.md").Funcs(template.FuncMap{"grouped": param.Grouped[int64], "inc": func(i int) int { return i + 1 }}).Parse(planPage)
	var t strings.Builder
	if err == nil {
		err = page.Execute(&t, &b.Answer)
	}
	b.Files = slices.Insert(b.Files, 0, answer.File{Path: "PLAN.md", Content: t.String(), For: "people: the order, the ceilings, the commands and notes"})
	return err
}

// ParseTarget reads a plan's target in words, such as "3000 VMs and 21,400 pods on 100 nodes".
func ParseTarget(text string) (t Plan, err error) {
	const allowed = "want numbers of VMs, pods, pods per node, nodes and OSDs, such as \"3000 VMs and 21,400 pods on 100 nodes\""
	from := fmt.Sprintf("the target %q", text)
	words := targetWord.FindAllString(strings.ToLower(text), -1)
	if len(words) == 0 {
		return t, fmt.Errorf("%q is not a target: %s", text, allowed)
	}
	for i := 0; i < len(words); {
		word := words[i]
		if slices.Contains([]string{"and", "on", "with", "over", "across", "in", "of", "a", "cluster", "+", ",", "x"}, word) {
			i++
			continue
		}
		n, err := param.ParseCount(word)
		if err != nil {
			return t, fmt.Errorf("%q: %q is not a number: %s", text, word, allowed)
		}
		i++
		noun := ""
		if i < len(words) {
			noun = words[i]
			i++
		}
		if slices.Contains([]string{"idle", "virtual", "worker"}, noun) && i < len(words) {
			noun = words[i]
			i++
		}
		perNode := false
		if i+1 < len(words) && slices.Contains([]string{"per", "a", "each", "/"}, words[i]) && words[i+1] == "node" {
			perNode = true
			i += 2
		}
		var in *param.In[int64]
		switch strings.TrimSuffix(noun, "s") {
		case "vm", "machine":
			in = &t.VMs
		case "pod":
			if in = &t.Pods; perNode {
				in = &t.PodsPerNode
			}
		case "node", "worker":
			in = &t.Nodes
		case "osd":
			in = &t.OSDs
		default:
			hint := ""
			if near, ok := nearest.Word(noun, []string{"VMs", "pods", "nodes", "OSDs"}); ok {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return t, fmt.Errorf("%q: %s of what? %q%s: %s", text, word, noun, hint, allowed)
		}
		if perNode && in != &t.PodsPerNode {
			return t, fmt.Errorf("%q: only pods are counted per node: %s", text, allowed)
		}
		if in.Ok() {
			return t, fmt.Errorf("%q says twice how many %s", text, noun)
		}
		*in = param.Given(n, from)
	}
	return t, nil
}

var targetWord = regexp.MustCompile(`[0-9][0-9.,]*[0-9]|[0-9]|[^\s,/+]+|[,/+]`)
