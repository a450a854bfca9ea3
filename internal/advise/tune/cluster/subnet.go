package cluster

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Subnet holds the parameters of a cluster's address ranges, which give sizes or are given by sizes.
type Subnet struct {
	Platform     param.In[string]         `yaml:"platform" flag:"platform" help:"what the cluster is" words:"openshift, kubernetes" default:"openshift" why:"the documents' platform"`
	Network      param.In[string]         `yaml:"network" flag:"network" help:"OpenShift's network plug-in" words:"OVNKubernetes, OpenShiftSDN" default:"OVNKubernetes" why:"OpenShift's since 4.12"`
	ClusterCIDRs []param.In[netip.Prefix] `yaml:"clusterCidr" flag:"cluster-cidr" help:"range of the pods; once for each family"`
	HostPrefix   param.In[int64]          `yaml:"hostPrefix" flag:"host-prefix" help:"prefix length of each node's subnet (default 23, Kubernetes 24)" range:"4..30"` // of IPv4
	HostPrefix6  param.In[int64]          `yaml:"hostPrefix6" flag:"host-prefix6" help:"the same for IPv6 (default 64)" range:"16..126"`
	ServiceCIDRs []param.In[netip.Prefix] `yaml:"serviceCidr" flag:"service-cidr" help:"range of the services; once for each family"`
	Nodes        param.In[int64]          `yaml:"nodes" flag:"nodes" help:"number of nodes" range:"1..10000000"`
	PodsPerNode  param.In[int64]          `yaml:"podsPerNode" flag:"pods-per-node" help:"pods of each node" range:"1..1000000"`
	Services     param.In[int64]          `yaml:"services" flag:"services" help:"number of services" range:"1..1000000000"`
	Growth       param.In[param.Share]    `yaml:"growth" flag:"growth" help:"headroom for more nodes and services, such as 50%" range:"0..10000%" default:"0%" why:"no headroom asked for"`
	Reserved     param.In[int64]          `yaml:"reserved" flag:"reserved" help:"addresses of each node for its own pods" range:"0..10000" default:"16" why:"for the node's own pods (D3)" in:"addresses/node"`
	MachineCIDRs []param.In[netip.Prefix] `yaml:"machineCidr" flag:"machine-cidr" help:"range of the machines"`
	Avoid        []param.In[netip.Prefix] `yaml:"avoid" flag:"avoid" help:"range that is in use elsewhere"`
	DualStack    param.In[bool]           `yaml:"dualStack" flag:"dual-stack" help:"ranges of IPv4 and IPv6"`
	Cluster      Facts
}

// family holds the customs of IPv4 or IPv6.
type family struct {
	name                          string
	suffix                        string // of names of results
	bits                          int
	hostPrefix                    int64 // by default
	cluster, service, serviceFrom string
	largestService                int // prefix length
	pools                         []string
}

func families(platform string) (four, six family) {
	four = family{
		name: "IPv4", bits: 32, hostPrefix: 23, cluster: "10.128.0.0/14",
		service: "172.30.0.0/16", serviceFrom: "OpenShift's", largestService: 12,
		pools: []string{"10.128.0.0/9", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"},
	}
	six = family{
		name: "IPv6", suffix: "6", bits: 128, hostPrefix: 64, cluster: "fd01::/48",
		service: "fd02::/112", serviceFrom: "OpenShift's example", largestService: 108, pools: []string{"fd01::/16", "fd10::/12"},
	}
	if platform == param.Kubernetes {
		four.hostPrefix, four.cluster = 24, ""
		four.service, four.serviceFrom = "10.96.0.0/12", "kubeadm's"
		six.service, six.serviceFrom = "fd00:10:96::/112", "as is customary"
		six.cluster = "fd00:10:244::/48"
	}
	return four, six
}

type named struct {
	what string
	rng  netip.Prefix
	ours bool // this cluster's
}

// Cases fills in what was read of the cluster.
func (p *Subnet) Cases() map[string]bool {
	p.Platform.Read(p.Cluster.Platform())
	p.Network.Read(p.Cluster.networkType())
	p.HostPrefix.Read(p.Cluster.hostPrefix(true))
	p.HostPrefix6.Read(p.Cluster.hostPrefix(false))
	p.Nodes.Read(param.ReadFrom(int64(len(p.Cluster.Nodes)), p.Cluster.From))
	return nil
}

// TuneSubnet computes a cluster's address ranges (R15, R16, D3).
func TuneSubnet(p Subnet) (*answer.Answer, error) {
	if len(p.ClusterCIDRs) == 0 {
		p.ClusterCIDRs = p.Cluster.ranges(func(n *NetworkFacts) []netip.Prefix { return n.Cluster })
	}
	if len(p.ServiceCIDRs) == 0 {
		p.ServiceCIDRs = p.Cluster.ranges(func(n *NetworkFacts) []netip.Prefix { return n.Service })
	}
	// An IPv6 cluster has one host prefix.
	if p.HostPrefix.Ok() && !p.HostPrefix6.Ok() && len(p.ClusterCIDRs) > 0 && !slices.ContainsFunc(p.ClusterCIDRs, func(in param.In[netip.Prefix]) bool { return in.Value.Addr().Is4() }) {
		p.HostPrefix, p.HostPrefix6 = param.In[int64]{}, p.HostPrefix
	}
	b, err := answer.Begin("subnet", &p, func() error { return usable("cluster-cidr", p.ClusterCIDRs) }, func() error { return usable("service-cidr", p.ServiceCIDRs) }, func() error {
		if p.Platform.Value == param.OpenShift {
			return nil // it takes several ranges
		}
		return oneOfEach("cluster-cidr", p.ClusterCIDRs)
	}, func() error { return oneOfEach("service-cidr", p.ServiceCIDRs) })
	if err != nil {
		return nil, err
	}
	four, six := families(p.Platform.Value)
	cluster4, cluster6 := byFamily(p.ClusterCIDRs)
	service4, service6 := byFamily(p.ServiceCIDRs)
	useSix := cluster6.Ok() || service6.Ok() || p.HostPrefix6.Ok() || p.DualStack.Value
	useFour := cluster4.Ok() || !useSix || p.DualStack.Value || p.HostPrefix.Ok()
	if useFour && !cluster4.Ok() && !p.Nodes.Ok() && four.cluster == "" {
		return nil, param.Needs("cluster-cidr", "Kubernetes has no default range, so it or --nodes must be given", "--cluster-cidr 10.128.0.0/14")
	}

	t := subnetTuner{Builder: b, Subnet: p, inUse: p.taken(useSix)}
	titles := []string{}
	for _, f := range []struct {
		use              bool
		family           family
		cluster, service param.In[netip.Prefix]
		hostPrefix       param.In[int64]
	}{{useFour, four, cluster4, service4, p.HostPrefix}, {useSix, six, cluster6, service6, p.HostPrefix6}} {
		if !f.use {
			continue
		}
		title, err := t.ranges(f.family, f.cluster, f.service, f.hostPrefix)
		if err != nil {
			return nil, err
		}
		titles = append(titles, title)
	}
	t.Title = "Address ranges of a cluster: " + strings.Join(titles, "; ")
	t.conflicts()
	t.fixedForEver()
	t.readMaxPods()
	if useFour {
		t.Cite("R16")
	}
	t.files()
	return &t.Answer, nil
}

type subnetTuner struct {
	*answer.Builder
	Subnet
	inUse          []named // with the chosen ranges
	clusterNetwork []podRange
	serviceNetwork []string
}

type podRange struct {
	cidr       string
	hostPrefix int64
}

// usable refuses ranges that no cluster can have.
func usable(name string, list []param.In[netip.Prefix]) error {
	for _, in := range list {
		p, a := in.Value, in.Value.Addr()
		if p.Bits() == 0 || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.Is4() && (a.As4()[0] == 0 || a.As4()[0] >= 240) {
			return param.Bad(name, "for example 10.128.0.0/14 or fd01::/48", "%s holds addresses that pods and services cannot have", p)
		}
	}
	return nil
}

func oneOfEach(name string, list []param.In[netip.Prefix]) error {
	for i, a := range list {
		for _, b := range list[:i] {
			if a.Value.Addr().Is4() == b.Value.Addr().Is4() {
				return param.Bad(name, "for dual-stack give one range of IPv4 and one of IPv6", "%s and %s are of one family", b.Value, a.Value)
			}
		}
	}
	return nil
}

func byFamily(list []param.In[netip.Prefix]) (four, six param.In[netip.Prefix]) {
	for _, in := range slices.Backward(list) {
		if in.Value.Addr().Is4() {
			four = in
		} else {
			six = in
		}
	}
	return four, six
}

func (p *Subnet) taken(useSix bool) []named {
	var list []named
	for _, in := range p.MachineCIDRs {
		list = append(list, named{what: "machine network", rng: in.Value})
	}
	for _, in := range p.Avoid {
		list = append(list, named{what: "range to avoid", rng: in.Value})
	}
	if p.Platform.Value == param.OpenShift && p.Network.Value == param.OVNKubernetes {
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
func (t *subnetTuner) ranges(f family, cluster, service param.In[netip.Prefix], hostPrefix param.In[int64]) (title string, err error) {
	hostPrefix = t.hostPrefix(f, cluster, hostPrefix)
	taken := slices.Clip(t.inUse)
	// The cluster's range must avoid a given range of services too.
	if service.Ok() {
		taken = append(taken, named{what: "service network", rng: service.Value})
	}
	cluster, err = t.clusterRange(f, cluster, hostPrefix, taken)
	if err != nil {
		return "", err
	}
	if int64(cluster.Value.Bits()) > hostPrefix.Value {
		return "", param.Bad("host-prefix"+f.suffix, "", "/%d is larger than the whole range %s", hostPrefix.Value, cluster.Value)
	}
	t.Put("clusterCIDR"+f.suffix, cluster, "")
	t.Put("hostPrefix"+f.suffix, hostPrefix, "")

	wide, narrow := int(hostPrefix.Value)-cluster.Value.Bits(), f.bits-int(hostPrefix.Value)
	nodes := param.Power(wide)
	taken, further := t.further(cluster.Value, hostPrefix.Value, taken)
	nodes += further
	usable := addresses(netip.PrefixFrom(cluster.Value.Addr(), int(hostPrefix.Value)))
	own := max(usable-t.Reserved.Value, 0)
	t.Figure("clusterCIDR"+f.suffix, cluster.Value.String(), "", "")
	t.Figure("hostPrefix"+f.suffix, hostPrefix.Value, "", "")
	t.Figure("nodes"+f.suffix, shownPower(nodes, wide), "", "each with a subnet of its own")
	t.Figure("addressesPerNode"+f.suffix, shownPower(usable, narrow), "", "for pods")
	t.Figure("podsPerNode"+f.suffix, shownPower(own, narrow), "", fmt.Sprintf("largest maxPods with %d addresses left for the node's own pods", t.Reserved.Value))
	t.Step("nodes = 2^(hostPrefix - prefix of the cluster's range)", fmt.Sprintf("2^(%d - %d) = %s", hostPrefix.Value, cluster.Value.Bits(), textPower(nodes, wide)), "R15", "openshift-cidr")
	if f.bits == 32 {
		t.Step("addresses for pods = 2^(32 - hostPrefix) - 2", fmt.Sprintf("2^(32 - %d) - 2 = %s", hostPrefix.Value, textPower(usable, narrow)), "R15")
	}
	t.sizes(f, nodes, own, cluster.Value, hostPrefix.Value)

	service, err = t.serviceRange(f, service, append(taken, named{what: "cluster network", rng: cluster.Value}))
	if err != nil {
		return "", err
	}
	if f.bits == 32 {
		t.Correct("R15", "the defaults allow 1024 nodes with a /23 each", "10.128.0.0/14 with a /23 gives 2^(23-14) = 512 nodes; 1024 need a /13", "the 513th node gets no subnet")
	}
	t.inUse = append(t.inUse, named{"cluster network", cluster.Value, true}, named{"service network", service.Value, true})
	t.clusterNetwork = append(t.clusterNetwork, podRange{cluster.Value.String(), hostPrefix.Value})
	for _, in := range t.ClusterCIDRs {
		if in.Value != cluster.Value && in.Value.Addr().Is4() == cluster.Value.Addr().Is4() {
			t.inUse = append(t.inUse, named{"cluster network", in.Value, true})
			t.clusterNetwork = append(t.clusterNetwork, podRange{in.Value.String(), hostPrefix.Value})
		}
	}
	t.serviceNetwork = append(t.serviceNetwork, service.Value.String())
	return fmt.Sprintf("%s with a /%d for each node: %s nodes x %s pod addresses", cluster.Value, hostPrefix.Value, textPower(nodes, wide), textPower(usable, narrow)), nil
}

// further adds the other ranges of pods of a family to taken, and returns their number of subnets.
func (t *subnetTuner) further(cluster netip.Prefix, hostPrefix int64, taken []named) (also []named, nodes int64) {
	for _, in := range t.ClusterCIDRs {
		if in.Value != cluster && in.Value.Addr().Is4() == cluster.Addr().Is4() {
			taken = append(taken, named{what: "cluster network", rng: in.Value})
			nodes += int64(min(ceiling.NodeRanges(ceiling.Range{Prefix: in.Value, PerNode: int(hostPrefix)}), 1<<61))
		}
	}
	return taken, nodes
}

// hostPrefix returns the size of each node's subnet: as given, or the smallest that holds the pods.
func (t *subnetTuner) hostPrefix(f family, cluster param.In[netip.Prefix], given param.In[int64]) param.In[int64] {
	if given.Ok() || !t.PodsPerNode.Ok() || f.bits == 128 {
		return given.Or(f.hostPrefix, "as "+platformName(t.Platform.Value)+" has it")
	}
	want := t.PodsPerNode.Value + t.Reserved.Value
	prefix := int64(ceiling.HostPrefix(netip.IPv4Unspecified(), want))
	t.Step("hostPrefix = the largest with 2^(32 - hostPrefix) - 2 - reserved >= pods per node",
		fmt.Sprintf("2^(32 - %d) - 2 - %d = %s >= %s", prefix, t.Reserved.Value, param.Grouped(param.Power(int(32-prefix))-2-t.Reserved.Value), param.Grouped(t.PodsPerNode.Value)), "D3")
	if cluster.Ok() && int64(cluster.Value.Bits()) > prefix {
		t.Find(answer.Finding{Grade: answer.Cannot, What: "pods per node in " + cluster.Value.String(), Now: param.Grouped(param.Power(f.bits - cluster.Value.Bits())), Wanted: param.Grouped(want), Cost: "not even one node's pods fit into the range", Remedy: "a larger range"})
		prefix = int64(cluster.Value.Bits())
	}
	return param.Given(prefix, "from podsPerNode")
}

// clusterRange returns the cluster's range: as given, or one that holds the nodes.
func (t *subnetTuner) clusterRange(f family, given param.In[netip.Prefix], hostPrefix param.In[int64], taken []named) (param.In[netip.Prefix], error) {
	if given.Ok() {
		return given, nil
	}
	// Without a number of nodes the customary range is used.
	if !t.Nodes.Ok() {
		return param.Given(netip.MustParsePrefix(f.cluster), "default: as is customary on "+platformName(t.Platform.Value)), nil
	}
	want := grown(t.Nodes.Value, t.Growth.Value)
	length := int(hostPrefix.Value) - bits.Len64(uint64(want-1))
	t.Step("prefix of the cluster's range = hostPrefix - log2(nodes with headroom, rounded up to a power of two)",
		fmt.Sprintf("%d - log2(%s) = %d", hostPrefix.Value, param.Grouped(param.Power(bits.Len64(uint64(want-1)))), length), "D3")
	if f.bits == 128 {
		// A range smaller than the customary one saves nothing.
		if custom := netip.MustParsePrefix(f.cluster); length >= custom.Bits() {
			return param.Given(custom, "default: as is customary"), nil
		}
	}
	rng, ok := freeRange(f.pools, length, taken)
	if !ok {
		return given, param.Bad("nodes", "fewer nodes or pods per node, fewer ranges to avoid, or several clusters",
			"%s nodes with a /%d each need a /%d, and no private range has one free", param.Grouped(want), hostPrefix.Value, length)
	}
	return param.Given(rng, "from nodes and hostPrefix"), nil
}

// UsualRange returns the platform's customary range if it holds an answer's and is free: plans change little.
func (p *Subnet) UsualRange(answer *answer.Answer) (in param.In[netip.Prefix], ok bool) {
	four, _ := families(p.Platform.Value)
	text, _ := answer.Result("clusterCIDR").(string)
	rng, err := netip.ParsePrefix(text)
	if err != nil || four.cluster == "" {
		return in, false
	}
	usual := netip.MustParsePrefix(four.cluster)
	if slices.ContainsFunc(p.taken(false), func(other named) bool { return other.rng.Overlaps(usual) }) {
		return in, false
	}
	return param.Given(usual, "default: as is customary on "+platformName(p.Platform.Value)+", and enough"), rng.Bits() > usual.Bits()
}

// freeRange returns the first range of a length in the pools that overlaps no taken one.
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
			// Continue behind the larger of the two, so that no taken range is visited twice.
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

// sizes compares the wanted sizes with those of the ranges.
func (t *subnetTuner) sizes(f family, nodes, own int64, cluster netip.Prefix, hostPrefix int64) {
	if t.Nodes.Ok() {
		want := grown(t.Nodes.Value, t.Growth.Value)
		if f.bits == 32 && nodes >= t.Nodes.Value {
			t.Figure("nodesLeft", nodes-t.Nodes.Value, "", "room for growth")
		}
		t.Check(want <= nodes, answer.Finding{Grade: answer.Cannot, What: "nodes in " + cluster.String(), Now: textPower(nodes, 62), Wanted: param.Grouped(want),
			Cost: "a node without a subnet starts no pods", Remedy: fmt.Sprintf("a /%d for the cluster, or a larger hostPrefix number", hostPrefix-int64(bits.Len64(uint64(want-1))))})
	}
	if t.PodsPerNode.Ok() && f.bits == 32 {
		need := ceiling.HostPrefix(cluster.Addr(), t.PodsPerNode.Value+t.Reserved.Value)
		t.Check(own >= t.PodsPerNode.Value, answer.Finding{Grade: answer.Cannot, What: fmt.Sprintf("pods per node in a /%d", hostPrefix), Now: param.Grouped(own), Wanted: param.Grouped(t.PodsPerNode.Value), Cost: "pods wait for an address that does not come", Remedy: fmt.Sprintf("hostPrefix %d", need)})
	}
	const most = 16 // of the allocator of kube-controller-manager
	if f.bits == 128 && t.Platform.Value == param.Kubernetes && int(hostPrefix)-cluster.Bits() > most {
		t.Cite("k8s-nodeipam")
		t.Find(answer.Finding{Grade: answer.Cannot, What: "IPv6 node subnets in " + cluster.String(), Now: fmt.Sprintf("hostPrefix - prefix = %d", int(hostPrefix)-cluster.Bits()), Wanted: fmt.Sprintf("at most %d", most),
			Cost: "kube-controller-manager refuses to start its allocator", Remedy: fmt.Sprintf("a /%d for the cluster", int(hostPrefix)-most)})
	}
}

// serviceRange returns the services' range: as given, the customary one, or a free one.
func (t *subnetTuner) serviceRange(f family, given param.In[netip.Prefix], taken []named) (param.In[netip.Prefix], error) {
	if !given.Ok() {
		custom := netip.MustParsePrefix(f.service)
		need := f.bits - 1
		if t.Services.Ok() {
			need = f.bits - bits.Len64(uint64(grown(t.Services.Value, t.Growth.Value)+3))
		}
		clear := !slices.ContainsFunc(taken, func(t named) bool { return t.rng.Overlaps(custom) })
		if need >= custom.Bits() && clear {
			given = param.Given(custom, "default: "+f.serviceFrom)
		} else {
			pools := append([]string{"172.16.0.0/12"}, f.pools...)
			if f.bits == 128 {
				pools = f.pools
			}
			// As large as is customary, except for kubeadm's /12, for which few private ranges have room.
			rng, ok := freeRange(pools, min(need, max(custom.Bits(), f.bits-16)), taken)
			if !ok {
				return given, param.Bad("services", "", "%s services need a /%d, and no private range has one free", param.Grouped(t.Services.Value), need)
			}
			given = param.Given(rng, "from services, clear of the other ranges")
		}
	}
	t.Put("serviceCIDR"+f.suffix, given, "")
	wide := f.bits - given.Value.Bits()
	all := param.Power(wide)
	usable := addresses(given.Value)
	t.Figure("serviceCIDR"+f.suffix, given.Value.String(), "", "")
	t.Figure("services"+f.suffix, shownPower(usable, wide), "", fmt.Sprintf("of %s addresses; the API server's own and the DNS service take one each of them", textPower(all, wide)))
	t.Step("addresses for services = 2^(bits - prefix), less the first and in IPv4 the last", fmt.Sprintf("2^(%d - %d) = %s, %s usable", f.bits, given.Value.Bits(), textPower(all, wide), textPower(usable, wide)), "R15", "k8s-services")
	if t.Services.Ok() && usable-2 < grown(t.Services.Value, t.Growth.Value) {
		t.Find(answer.Finding{Grade: answer.Cannot, What: "services in " + given.Value.String(), Now: textPower(usable, wide), Wanted: param.Grouped(grown(t.Services.Value, t.Growth.Value) + 2), Cost: "services without an address are refused", Remedy: "a larger range"})
	}
	if given.Value.Bits() < f.largestService {
		t.Find(answer.Finding{Grade: answer.Change, What: "service network " + given.Value.String(), Now: fmt.Sprintf("/%d", given.Value.Bits()), Wanted: fmt.Sprintf("/%d or smaller", f.largestService), Cost: "API servers before 1.34 refuse to start with it", Remedy: "a smaller range"})
	}
	return given, nil
}

func (t *subnetTuner) conflicts() {
	found := false
	for i, x := range t.inUse {
		for _, y := range t.inUse[:i] {
			if (x.ours || y.ours) && x.rng.Overlaps(y.rng) {
				found = true
				t.Find(answer.Finding{Grade: answer.Cannot, What: fmt.Sprintf("%s %s and %s %s", y.what, y.rng, x.what, x.rng), Now: "overlap", Wanted: "apart",
					Cost: "addresses in both are reached by one of the two only", Remedy: "move the one that is chosen freely"})
			}
		}
	}
	if !found {
		var ours, others []string
		for _, n := range t.inUse {
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
		t.Find(answer.Finding{Grade: answer.OK, What: what})
	}
	t.Cite("openshift-cidr")
}

func (t *subnetTuner) fixedForEver() {
	if t.Platform.Value == param.OpenShift {
		t.Warn("choose before installing: hostPrefix and the services' range cannot be changed afterwards; with OVN-Kubernetes the cluster's range can be widened, with the same hostPrefix (R16, openshift-cidr)")
		return
	}
	t.Cite("k8s-services")
	t.Warn("choose before installing: the size of the nodes' subnets cannot be changed while nodes have theirs; since Kubernetes 1.33 more ranges for services can be added (ServiceCIDR)")
}

// readMaxPods compares the kubelets' limit, as read from a cluster, with the subnets.
func (t *subnetTuner) readMaxPods() {
	own, known := t.Result("podsPerNode").(int64)
	maxPods := t.Cluster.mostMaxPods()
	if !maxPods.Ok() || !known {
		return
	}
	t.Put("maxPods", maxPods, "")
	t.Check(maxPods.Value <= own, answer.Finding{Grade: answer.Change, What: "maxPods of the nodes against their addresses", Now: param.Grouped(maxPods.Value), Wanted: "at most " + param.Grouped(own), Cost: "pods beyond the addresses stay in ContainerCreating", Remedy: "a lower maxPods, or new nodes with larger subnets"})
}

func grown(n int64, share param.Share) int64 {
	g := int64(float64(n)*float64(1+share) + 0.999999)
	return max(g, n)
}

// addresses returns the number of addresses that a range can assign, at most 2^62.
func addresses(p netip.Prefix) int64 { return int64(min(ceiling.Addresses(p), 1<<62)) }

// shownPower returns a number, or "2^exponent" if it is too large.
func shownPower(n int64, exponent int) any {
	if n >= 1<<53 {
		return fmt.Sprintf("2^%d", exponent)
	}
	return n
}

func textPower(n int64, exponent int) string {
	if text, ok := shownPower(n, exponent).(string); ok {
		return text
	}
	return param.Grouped(n)
}

func platformName(platform string) string {
	if platform == param.OpenShift {
		return "OpenShift"
	}
	return "Kubernetes"
}

func (t *subnetTuner) files() {
	if t.Platform.Value == param.Kubernetes {
		var pods []string
		args := []answer.Mapping{{{"name", "allocate-node-cidrs"}, {"value", "true"}}}
		for _, c := range t.clusterNetwork {
			pods = append(pods, c.cidr)
			name := "node-cidr-mask-size"
			if len(t.clusterNetwork) > 1 {
				name += "-ipv4"
				if strings.Contains(c.cidr, ":") {
					name = "node-cidr-mask-size-ipv6"
				}
			}
			args = append(args, answer.Mapping{{"name", name}, {"value", fmt.Sprint(c.hostPrefix)}})
		}
		t.Cite("k8s-nodeipam")
		t.File("kubeadm-cluster.yaml", answer.Manifest(answer.Mapping{
			{"apiVersion", "kubeadm.k8s.io/v1beta4"}, {"kind", "ClusterConfiguration"},
			{"networking", answer.Mapping{{"podSubnet", strings.Join(pods, ",")}, {"serviceSubnet", strings.Join(t.serviceNetwork, ",")}}},
			{"controllerManager", answer.Mapping{{"extraArgs", args}}},
		}, "Address ranges: before the cluster is made."), "kubeadm init --config")
		return
	}
	var pods, machines []answer.Mapping
	for _, c := range t.clusterNetwork {
		pods = append(pods, answer.Mapping{{"cidr", c.cidr}, {"hostPrefix", c.hostPrefix}})
	}
	for _, m := range t.MachineCIDRs {
		machines = append(machines, answer.Mapping{{"cidr", m.Value.String()}})
	}
	t.File("install-config-networking.yaml", answer.Manifest(answer.Mapping{{"networking", answer.Mapping{
		{"networkType", t.Network.Value}, {"clusterNetwork", pods}, {"serviceNetwork", t.serviceNetwork}, {"machineNetwork", machines},
	}}}, "Part of install-config.yaml: before the cluster is made."), "openshift-install: merge it into install-config.yaml")
	// The old installer supports IPv4 only.
	if first := t.clusterNetwork[0]; len(t.clusterNetwork) == 1 && !strings.Contains(first.cidr, ":") {
		t.Correct("R16", "the section [OSE3:vars] of the inventory", "the group of the installer's playbooks is OSEv3: [OSEv3:vars]", "the variable belongs to a group that no host is in, and the default stays")
		t.File("inventory-openshift3.ini", fmt.Sprintf("# OpenShift 3: before the cluster is made.\n[OSEv3:vars]\nosm_cluster_network_cidr=%s\nosm_host_subnet_length=%d\nopenshift_portal_net=%s\n",
			first.cidr, 32-first.hostPrefix, t.serviceNetwork[0]), "openshift-ansible of OpenShift 3: merge it into the inventory")
	}
}
