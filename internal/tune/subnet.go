package tune

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
)

// The platforms that settings are reckoned for.
const (
	OpenShift  = "openshift"
	Kubernetes = "kubernetes"
)

// The network plug-ins of OpenShift.
const (
	OVNKubernetes = "OVNKubernetes"
	OpenShiftSDN  = "OpenShiftSDN"
)

// reservedAddresses of a node's subnet are for the node's own pods: those of
// DaemonSets, and the network plug-in's gateway and management port (D3).
const reservedAddresses = 16

// Subnet are the parameters of a cluster's address ranges. What is given
// decides the direction: ranges give sizes, sizes give ranges, both are held
// against each other.
type Subnet struct {
	Platform In[string] // OpenShift by default
	Network  In[string] // OVNKubernetes by default; of OpenShift only
	// ClusterCIDRs holds one range of each family at most.
	ClusterCIDRs []In[netip.Prefix]
	HostPrefix   In[int64] // of IPv4
	HostPrefix6  In[int64]
	ServiceCIDRs []In[netip.Prefix]
	MachineCIDRs []netip.Prefix
	Avoid        []netip.Prefix // other ranges in use
	Nodes        In[int64]
	PodsPerNode  In[int64]
	Services     In[int64]
	Growth       In[float64] // headroom for more nodes and services, as a share
	Reserved     In[int64]   // addresses of each node for its own pods
	DualStack    In[bool]    // add IPv6 ranges
	// MaxPods is what the nodes' kubelets allow now, as read from a cluster.
	MaxPods In[int64]
}

// family is IPv4 or IPv6, with what is customary there.
type family struct {
	name           string
	suffix         string // of names of results
	bits           int
	hostPrefix     int64 // by default
	cluster        string
	service        string
	serviceFrom    string
	largestService int // prefix length
	pools          []string
}

func families(platform string) (four, six family) {
	four = family{
		name: "IPv4", bits: 32, hostPrefix: 23, cluster: "10.128.0.0/14",
		service: "172.30.0.0/16", serviceFrom: "OpenShift's", largestService: 12,
		pools: []string{"10.128.0.0/9", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"},
	}
	six = family{
		name: "IPv6", suffix: "6", bits: 128, hostPrefix: 64, cluster: "fd01::/48",
		service: "fd02::/112", serviceFrom: "OpenShift's example", largestService: 108,
		pools: []string{"fd01::/16", "fd10::/12"},
	}
	if platform == Kubernetes {
		four.hostPrefix, four.cluster = 24, ""
		four.service, four.serviceFrom = "10.96.0.0/12", "kubeadm's"
		six.service, six.serviceFrom = "fd00:10:96::/112", "as is customary"
		six.cluster = "fd00:10:244::/48"
	}
	return four, six
}

// named is a range with what it is for.
type named struct {
	what string
	rng  netip.Prefix
	ours bool // chosen or asked for here
}

// TuneSubnet reckons a cluster's address ranges (R15, R16, D3).
func TuneSubnet(p Subnet) (*Answer, error) {
	p.Platform = p.Platform.or(OpenShift, "the documents' platform")
	p.Network = p.Network.or(OVNKubernetes, "OpenShift's since 4.12")
	p.Reserved = p.Reserved.or(reservedAddresses, "for the node's own pods (D3)")
	p.Growth = p.Growth.or(0, "no headroom asked for")
	if err := fit(
		within("nodes", p.Nodes, 1, 10_000_000), within("pods-per-node", p.PodsPerNode, 1, 1_000_000),
		within("services", p.Services, 1, 1_000_000_000), within("growth", p.Growth, 0, 100),
		within("reserved", p.Reserved, 0, 10_000), within("host-prefix", p.HostPrefix, 4, 30), within("host-prefix6", p.HostPrefix6, 16, 126),
		oneOfEach("cluster-cidr", p.ClusterCIDRs), oneOfEach("service-cidr", p.ServiceCIDRs),
	); err != nil {
		return nil, err
	}
	four, six := families(p.Platform.Value)
	cluster4, cluster6 := byFamily(p.ClusterCIDRs)
	service4, service6 := byFamily(p.ServiceCIDRs)
	useSix := cluster6.Ok() || service6.Ok() || p.HostPrefix6.Ok() || p.DualStack.Value
	useFour := cluster4.Ok() || !useSix || p.DualStack.Value || p.HostPrefix.Ok()
	if useFour && !cluster4.Ok() && !p.Nodes.Ok() && four.cluster == "" {
		return nil, needs("cluster-cidr", "Kubernetes has no default range, so it or --nodes must be given", "--cluster-cidr 10.128.0.0/14")
	}

	a := newAnswer("subnet", "Address ranges of a cluster")
	input(a, "platform", p.Platform, "")
	if p.Platform.Value == OpenShift {
		input(a, "networkType", p.Network, "")
	}
	input(a, "nodes", p.Nodes, "")
	input(a, "podsPerNode", p.PodsPerNode, "")
	input(a, "services", p.Services, "")
	input(a, "growth", p.Growth, "")
	input(a, "reserved", p.Reserved, "addresses/node")

	taken := p.taken(useSix)
	layout := subnetLayout{platform: p.Platform.Value, network: p.Network.Value, machine: p.MachineCIDRs}
	titles := []string{}
	for _, f := range []struct {
		use              bool
		family           family
		cluster, service In[netip.Prefix]
		hostPrefix       In[int64]
	}{{useFour, four, cluster4, service4, p.HostPrefix}, {useSix, six, cluster6, service6, p.HostPrefix6}} {
		if !f.use {
			continue
		}
		got, title, err := a.ranges(p, f.family, f.cluster, f.service, f.hostPrefix, taken)
		if err != nil {
			return nil, err
		}
		taken = append(taken, got...)
		layout.cluster = append(layout.cluster, clusterEntry{CIDR: got[0].rng.String(), HostPrefix: int(a.Result("hostPrefix" + f.family.suffix).(int64))})
		layout.service = append(layout.service, got[1].rng.String())
		titles = append(titles, title)
	}
	a.Title = "Address ranges of a cluster: " + strings.Join(titles, "; ")
	a.conflicts(taken)
	a.fixedForEver(p.Platform.Value)
	a.readMaxPods(p)
	if useFour {
		a.cite("R16")
	}
	layout.write(a)
	return a, nil
}

// oneOfEach refuses two ranges of one family.
func oneOfEach(name string, list []In[netip.Prefix]) error {
	for i, a := range list {
		for _, b := range list[:i] {
			if a.Value.Addr().Is4() == b.Value.Addr().Is4() {
				return badParam(name, "for dual-stack give one range of IPv4 and one of IPv6", "%s and %s are of one family", b.Value, a.Value)
			}
		}
	}
	return nil
}

func byFamily(list []In[netip.Prefix]) (four, six In[netip.Prefix]) {
	for _, in := range list {
		if in.Value.Addr().Is4() {
			four = in
		} else {
			six = in
		}
	}
	return four, six
}

// taken are the ranges that the cluster's own must stay clear of.
func (p *Subnet) taken(useSix bool) []named {
	var list []named
	for _, m := range p.MachineCIDRs {
		list = append(list, named{what: "machine network", rng: m})
	}
	for _, v := range p.Avoid {
		list = append(list, named{what: "range to avoid", rng: v})
	}
	if p.Platform.Value == OpenShift && p.Network.Value == OVNKubernetes {
		for _, in := range []struct{ what, text string }{
			{"OVN-Kubernetes join subnet", "100.64.0.0/16"}, {"OVN-Kubernetes transit subnet", "100.88.0.0/16"}, {"OVN-Kubernetes masquerade subnet (4.17)", "169.254.0.0/17"},
			{"OVN-Kubernetes join subnet", "fd98::/64"}, {"OVN-Kubernetes transit subnet", "fd97::/64"}, {"OVN-Kubernetes masquerade subnet (4.17)", "fd69::/112"},
		} {
			rng := netip.MustParsePrefix(in.text)
			if rng.Addr().Is4() || useSix {
				list = append(list, named{what: in.what, rng: rng})
			}
		}
	}
	return list
}

// ranges answers for one family: the cluster's range and the services'.
func (a *Answer) ranges(p Subnet, f family, cluster, service In[netip.Prefix], hostPrefix In[int64], taken []named) ([]named, string, error) {
	hostPrefix, err := a.hostPrefix(p, f, cluster, hostPrefix)
	if err != nil {
		return nil, "", err
	}
	// A range that was given for the services is to be kept clear as well.
	if service.Ok() {
		taken = append(slices.Clone(taken), named{what: "service network", rng: service.Value})
	}
	cluster, err = a.clusterRange(p, f, cluster, hostPrefix, taken)
	if err != nil {
		return nil, "", err
	}
	if int64(cluster.Value.Bits()) > hostPrefix.Value {
		return nil, "", badParam("host-prefix"+f.suffix, "", "/%d is larger than the whole range %s", hostPrefix.Value, cluster.Value)
	}
	input(a, "clusterCIDR"+f.suffix, cluster, "")
	input(a, "hostPrefix"+f.suffix, hostPrefix, "")

	wide := int(hostPrefix.Value) - cluster.Value.Bits()
	nodes, addresses := power(wide), power(f.bits-int(hostPrefix.Value))
	usable := minus(addresses, 2)
	if f.bits == 128 {
		usable = addresses // no broadcast address, and nobody counts the first
	}
	own := minus(usable, p.Reserved.Value)
	a.result("clusterCIDR"+f.suffix, cluster.Value.String(), "", "")
	a.result("hostPrefix"+f.suffix, hostPrefix.Value, "", "")
	a.result("nodes"+f.suffix, shownPower(nodes, wide), "", "each with a subnet of its own")
	a.result("addressesPerNode"+f.suffix, shownPower(usable, f.bits-int(hostPrefix.Value)), "", "for pods")
	a.result("podsPerNode"+f.suffix, shownPower(own, f.bits-int(hostPrefix.Value)), "", fmt.Sprintf("largest maxPods with %d addresses left for the node's own pods", p.Reserved.Value))
	a.step("nodes = 2^(hostPrefix - prefix of the cluster's range)", fmt.Sprintf("2^(%d - %d) = %s", hostPrefix.Value, cluster.Value.Bits(), textPower(nodes, wide)), "R15", "openshift-cidr")
	if f.bits == 32 {
		a.step("addresses for pods = 2^(32 - hostPrefix) - 2", fmt.Sprintf("2^(32 - %d) - 2 = %s", hostPrefix.Value, textPower(usable, 32-int(hostPrefix.Value))), "R15")
	}
	a.sizes(p, f, nodes, own, cluster.Value, hostPrefix.Value)

	service, err = a.serviceRange(p, f, service, append(slices.Clone(taken), named{what: "cluster network", rng: cluster.Value}))
	if err != nil {
		return nil, "", err
	}
	title := fmt.Sprintf("%s with a /%d for each node: %s nodes x %s pod addresses", cluster.Value, hostPrefix.Value, textPower(nodes, wide), textPower(usable, f.bits-int(hostPrefix.Value)))
	if f.bits == 32 {
		a.documentsNodes()
	}
	return []named{{what: "cluster network", rng: cluster.Value, ours: true}, {what: "service network", rng: service.Value, ours: true}}, title, nil
}

// hostPrefix is the size of each node's subnet: as given, or the smallest that
// holds the pods.
func (a *Answer) hostPrefix(p Subnet, f family, cluster In[netip.Prefix], given In[int64]) (In[int64], error) {
	if given.Ok() || !p.PodsPerNode.Ok() || f.bits == 128 {
		return given.or(f.hostPrefix, "as "+platformName(p.Platform.Value)+" has it"), nil
	}
	want := p.PodsPerNode.Value + p.Reserved.Value + 2
	prefix := int64(f.bits - bits.Len64(uint64(want-1)))
	a.step("hostPrefix = the largest with 2^(32 - hostPrefix) - 2 - reserved >= pods per node",
		fmt.Sprintf("2^(32 - %d) - 2 - %d = %s >= %s", prefix, p.Reserved.Value, grouped(power(int(32-prefix))-2-p.Reserved.Value), grouped(p.PodsPerNode.Value)), "D3")
	if cluster.Ok() && int64(cluster.Value.Bits()) > prefix {
		a.find(Finding{Cannot, "pods per node in " + cluster.Value.String(), grouped(power(f.bits - cluster.Value.Bits())), grouped(want), "not even one node's pods fit into the range", "a larger range"})
		prefix = int64(cluster.Value.Bits())
	}
	return Given(prefix, "from podsPerNode"), nil
}

// clusterRange is the cluster's range: as given, or one that holds the nodes.
func (a *Answer) clusterRange(p Subnet, f family, given In[netip.Prefix], hostPrefix In[int64], taken []named) (In[netip.Prefix], error) {
	if given.Ok() {
		return given, nil
	}
	// Without a number of nodes the customary range serves, as far as it can.
	if !p.Nodes.Ok() {
		return Given(netip.MustParsePrefix(f.cluster), "default: as is customary on "+platformName(p.Platform.Value)), nil
	}
	want := grown(p.Nodes.Value, p.Growth.Value)
	length := int(hostPrefix.Value) - bits.Len64(uint64(want-1))
	a.step("prefix of the cluster's range = hostPrefix - log2(nodes with headroom, rounded up to a power of two)",
		fmt.Sprintf("%d - log2(%s) = %d", hostPrefix.Value, grouped(power(bits.Len64(uint64(want-1)))), length), "D3")
	if f.bits == 128 {
		// Short of what is customary there is nothing to save.
		if custom := netip.MustParsePrefix(f.cluster); length >= custom.Bits() {
			return Given(custom, "default: as is customary"), nil
		}
	}
	rng, ok := freeRange(f.pools, length, taken)
	if !ok {
		return given, badParam("nodes", "fewer nodes or pods per node, fewer ranges to avoid, or several clusters",
			"%s nodes with a /%d each need a /%d, and no private range has one free", grouped(want), hostPrefix.Value, length)
	}
	return Given(rng, "from nodes and hostPrefix"), nil
}

// usualRange is the platform's customary range, where it holds all that the
// range of an answer does and is free: a plan changes what it must, and a
// narrower range only takes room for later away.
func (p *Subnet) usualRange(answer *Answer) (in In[netip.Prefix], ok bool) {
	four, _ := families(p.Platform.Value)
	text, _ := answer.Result("clusterCIDR").(string)
	rng, err := netip.ParsePrefix(text)
	if err != nil || four.cluster == "" {
		return in, false
	}
	usual := netip.MustParsePrefix(four.cluster)
	for _, other := range p.taken(false) {
		if other.rng.Overlaps(usual) {
			return in, false
		}
	}
	return Given(usual, "default: as is customary on "+platformName(p.Platform.Value)+", and enough"), rng.Bits() > usual.Bits()
}

// freeRange is the first range of a length in the pools that overlaps nothing
// that is taken.
func freeRange(pools []string, length int, taken []named) (netip.Prefix, bool) {
	for _, text := range pools {
		pool := netip.MustParsePrefix(text)
		if length < pool.Bits() {
			continue
		}
		at := pool.Addr()
		for pool.Contains(at) {
			rng := netip.PrefixFrom(at, length).Masked()
			i := slices.IndexFunc(taken, func(t named) bool { return t.rng.Overlaps(rng) })
			if i < 0 {
				return rng, true
			}
			// The next of its kind behind the larger of the two: no loop visits
			// what is taken twice.
			larger := rng
			if taken[i].rng.Bits() < rng.Bits() {
				larger = taken[i].rng
			}
			at = last(larger).Next()
			if !at.IsValid() {
				break
			}
		}
	}
	return netip.Prefix{}, false
}

// last is a range's last address.
func last(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for i := range raw {
		for bit := range 8 {
			if i*8+bit >= p.Bits() {
				raw[i] |= 1 << (7 - bit)
			}
		}
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr
}

// sizes holds what was asked for against what the ranges give.
func (a *Answer) sizes(p Subnet, f family, nodes, own int64, cluster netip.Prefix, hostPrefix int64) {
	if p.Nodes.Ok() {
		want := grown(p.Nodes.Value, p.Growth.Value)
		if f.bits == 32 && nodes >= p.Nodes.Value {
			a.result("nodesLeft", nodes-p.Nodes.Value, "", "room for growth")
		}
		if want > nodes {
			a.find(Finding{Cannot, "nodes in " + cluster.String(), grouped(nodes), grouped(want),
				"a node without a subnet starts no pods", fmt.Sprintf("a /%d for the cluster, or a larger hostPrefix number", hostPrefix-int64(bits.Len64(uint64(want-1))))})
		} else {
			a.find(Finding{Grade: OK, What: "nodes in " + cluster.String(), Now: textPower(nodes, 62), Wanted: grouped(want)})
		}
	}
	if p.PodsPerNode.Ok() && f.bits == 32 {
		what := fmt.Sprintf("pods per node in a /%d", hostPrefix)
		if own < p.PodsPerNode.Value {
			need := 32 - bits.Len64(uint64(p.PodsPerNode.Value+p.Reserved.Value+1))
			a.find(Finding{Cannot, what, grouped(own), grouped(p.PodsPerNode.Value), "pods wait for an address that does not come", fmt.Sprintf("hostPrefix %d", need)})
		} else {
			a.find(Finding{Grade: OK, What: what, Now: grouped(own), Wanted: grouped(p.PodsPerNode.Value)})
		}
	}
	const most = 16 // clusterSubnetMaxDiff
	if f.bits == 128 && p.Platform.Value == Kubernetes && int(hostPrefix)-cluster.Bits() > most {
		a.cite("k8s-nodeipam")
		a.find(Finding{Cannot, "IPv6 node subnets in " + cluster.String(), fmt.Sprintf("hostPrefix - prefix = %d", int(hostPrefix)-cluster.Bits()), fmt.Sprintf("at most %d", most),
			"kube-controller-manager refuses to start its allocator", fmt.Sprintf("a /%d for the cluster", int(hostPrefix)-most)})
	}
}

// serviceRange is the services' range.
func (a *Answer) serviceRange(p Subnet, f family, given In[netip.Prefix], taken []named) (In[netip.Prefix], error) {
	if !given.Ok() {
		custom := netip.MustParsePrefix(f.service)
		need := f.bits - 1
		if p.Services.Ok() {
			need = f.bits - bits.Len64(uint64(grown(p.Services.Value, p.Growth.Value)+3))
		}
		clear := !slices.ContainsFunc(taken, func(t named) bool { return t.rng.Overlaps(custom) })
		if need >= custom.Bits() && clear {
			given = Given(custom, "default: "+f.serviceFrom)
		} else {
			pools := append([]string{"172.16.0.0/12"}, f.pools...)
			if f.bits == 128 {
				pools = f.pools
			}
			// As large as is customary, but for the /12 of kubeadm, which few
			// private ranges have room for.
			rng, ok := freeRange(pools, min(need, max(custom.Bits(), f.bits-16)), taken)
			if !ok {
				return given, badParam("services", "", "%s services need a /%d, and no private range has one free", grouped(p.Services.Value), need)
			}
			given = Given(rng, "from services, clear of the other ranges")
		}
	}
	input(a, "serviceCIDR"+f.suffix, given, "")
	wide := f.bits - given.Value.Bits()
	all := power(wide)
	usable := minus(all, 2)
	if f.bits == 128 {
		usable = minus(all, 1)
	}
	a.result("serviceCIDR"+f.suffix, given.Value.String(), "", "")
	a.result("services"+f.suffix, shownPower(usable, wide), "", fmt.Sprintf("of %s addresses; the API server's own and the DNS service take one each of them", textPower(all, wide)))
	a.step("addresses for services = 2^(bits - prefix), less the first and in IPv4 the last", fmt.Sprintf("2^(%d - %d) = %s, %s usable", f.bits, given.Value.Bits(), textPower(all, wide), textPower(usable, wide)), "R15", "k8s-services")
	if p.Services.Ok() && usable-2 < grown(p.Services.Value, p.Growth.Value) {
		a.find(Finding{Cannot, "services in " + given.Value.String(), textPower(usable, wide), grouped(grown(p.Services.Value, p.Growth.Value) + 2), "services without an address are refused", "a larger range"})
	}
	if given.Value.Bits() < f.largestService {
		a.find(Finding{Change, "service network " + given.Value.String(), fmt.Sprintf("/%d", given.Value.Bits()), fmt.Sprintf("/%d or smaller", f.largestService), "API servers before 1.34 refuse to start with it", "a smaller range"})
	}
	return given, nil
}

// documentsNodes is the error in R15.
func (a *Answer) documentsNodes() {
	a.correct("R15", "the defaults allow 1024 nodes with a /23 each", "10.128.0.0/14 with a /23 gives 2^(23-14) = 512 nodes; 1024 need a /13", "the 513th node gets no subnet")
}

// conflicts finds ranges that overlap, where at least one is the cluster's.
func (a *Answer) conflicts(list []named) {
	found := false
	for i, x := range list {
		for _, y := range list[:i] {
			if (x.ours || y.ours) && x.rng.Overlaps(y.rng) {
				found = true
				a.find(Finding{Cannot, fmt.Sprintf("%s %s and %s %s", y.what, y.rng, x.what, x.rng), "overlap", "apart",
					"addresses in both are reached by one of the two only", "move the one that is chosen freely"})
			}
		}
	}
	if !found {
		var ours, others []string
		for _, n := range list {
			text := n.what + " " + n.rng.String()
			if n.ours {
				ours = append(ours, text)
			} else {
				others = append(others, text)
			}
		}
		what := strings.Join(ours, " and ") + " do not overlap"
		if len(others) > 0 {
			what += ", nor do they with " + strings.Join(others, ", ")
		}
		a.find(Finding{Grade: OK, What: what})
	}
	a.cite("openshift-cidr")
}

func (a *Answer) fixedForEver(platform string) {
	if platform == OpenShift {
		a.warn("choose before installing: hostPrefix and the services' range cannot be changed afterwards; with OVN-Kubernetes the cluster's range can be widened, with the same hostPrefix (R16, openshift-cidr)")
		return
	}
	a.cite("k8s-services")
	a.warn("choose before installing: the size of the nodes' subnets cannot be changed while nodes have theirs; since Kubernetes 1.33 more ranges for services can be added (ServiceCIDR)")
}

// readMaxPods holds the kubelets' limit, as read from a cluster, against the
// subnets.
func (a *Answer) readMaxPods(p Subnet) {
	own, known := a.Result("podsPerNode").(int64)
	if !p.MaxPods.Ok() || !known {
		return
	}
	input(a, "maxPods", p.MaxPods, "")
	f := Finding{Grade: OK, What: "maxPods of the nodes against their addresses", Now: grouped(p.MaxPods.Value), Wanted: "at most " + grouped(own)}
	if p.MaxPods.Value > own {
		f.Grade, f.Cost, f.Remedy = Change, "pods beyond the addresses stay in ContainerCreating", "a lower maxPods, or new nodes with larger subnets"
	}
	a.find(f)
}

// grown is a number with headroom.
func grown(n int64, share float64) int64 {
	g := int64(float64(n)*(1+share) + 0.999999)
	return max(g, n)
}

// power is 2^n, or the largest number where it is larger.
func power(n int) int64 {
	if n >= 62 {
		return 1 << 62
	}
	return 1 << max(n, 0)
}

func minus(n, less int64) int64 {
	if n >= 1<<62 {
		return n
	}
	return max(n-less, 0)
}

// shownPower is a number, or a power of two in words where it is too large for
// one.
func shownPower(n int64, exponent int) any {
	if n >= 1<<53 {
		return fmt.Sprintf("2^%d", exponent)
	}
	return n
}

func textPower(n int64, exponent int) string {
	if n >= 1<<53 {
		return fmt.Sprintf("2^%d", exponent)
	}
	return grouped(n)
}

func platformName(platform string) string {
	if platform == OpenShift {
		return "OpenShift"
	}
	return "Kubernetes"
}

// clusterEntry is one range of install-config's clusterNetwork.
type clusterEntry struct {
	CIDR       string `yaml:"cidr"`
	HostPrefix int    `yaml:"hostPrefix"`
}

type subnetLayout struct {
	platform, network string
	cluster           []clusterEntry
	service           []string
	machine           []netip.Prefix
}

type installConfig struct {
	Networking installNetworking `yaml:"networking"`
}

type installNetworking struct {
	NetworkType    string         `yaml:"networkType"`
	ClusterNetwork []clusterEntry `yaml:"clusterNetwork"`
	ServiceNetwork []string       `yaml:"serviceNetwork"`
	MachineNetwork []machineEntry `yaml:"machineNetwork,omitempty"`
}

type machineEntry struct {
	CIDR string `yaml:"cidr"`
}

type kubeadmCluster struct {
	APIVersion        string            `yaml:"apiVersion"`
	Kind              string            `yaml:"kind"`
	Networking        kubeadmNetworking `yaml:"networking"`
	ControllerManager kubeadmExtra      `yaml:"controllerManager"`
}

type kubeadmNetworking struct {
	PodSubnet     string `yaml:"podSubnet"`
	ServiceSubnet string `yaml:"serviceSubnet"`
}

type kubeadmExtra struct {
	ExtraArgs []kubeadmArg `yaml:"extraArgs"`
}

type kubeadmArg struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

// write emits the files of a platform.
func (l subnetLayout) write(a *Answer) {
	if l.platform == Kubernetes {
		var pods []string
		args := []kubeadmArg{{"allocate-node-cidrs", "true"}}
		for _, c := range l.cluster {
			pods = append(pods, c.CIDR)
			name := "node-cidr-mask-size"
			if len(l.cluster) > 1 {
				name += "-ipv4"
				if strings.Contains(c.CIDR, ":") {
					name = "node-cidr-mask-size-ipv6"
				}
			}
			args = append(args, kubeadmArg{name, fmt.Sprint(c.HostPrefix)})
		}
		a.cite("k8s-nodeipam")
		a.file("kubeadm-cluster.yaml", manifest(kubeadmCluster{
			APIVersion: "kubeadm.k8s.io/v1beta4", Kind: "ClusterConfiguration",
			Networking:        kubeadmNetworking{strings.Join(pods, ","), strings.Join(l.service, ",")},
			ControllerManager: kubeadmExtra{args},
		}, "Address ranges: before the cluster is made."), "kubeadm init --config")
		return
	}
	var machine []machineEntry
	for _, m := range l.machine {
		machine = append(machine, machineEntry{m.String()})
	}
	a.file("install-config-networking.yaml", manifest(installConfig{installNetworking{l.network, l.cluster, l.service, machine}},
		"Part of install-config.yaml: before the cluster is made."), "openshift-install: merge it into install-config.yaml")
	// The old installer knew IPv4 only.
	if len(l.cluster) == 1 && !strings.Contains(l.cluster[0].CIDR, ":") {
		a.correct("R16", "the section [OSE3:vars] of the inventory", "the group of the installer's playbooks is OSEv3: [OSEv3:vars]", "the variable belongs to a group that no host is in, and the default stays")
		a.file("inventory-openshift3.ini", fmt.Sprintf("# OpenShift 3: before the cluster is made.\n[OSEv3:vars]\nosm_cluster_network_cidr=%s\nosm_host_subnet_length=%d\nopenshift_portal_net=%s\n",
			l.cluster[0].CIDR, 32-l.cluster[0].HostPrefix, l.service[0]), "openshift-ansible of OpenShift 3: merge it into the inventory")
	}
}
