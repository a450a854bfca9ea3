package lint

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// addressRange is a range of addresses that a configuration names.
type addressRange struct {
	what   string // clusterNetwork, serviceNetwork ...
	prefix netip.Prefix
	at     place
}

// clusterNetwork is what nodes get their pods' subnets from.
type clusterNetwork struct {
	prefix     netip.Prefix
	hostPrefix int
	at         place
}

// addresses is how many addresses the subnet of a node has for pods.
func (c clusterNetwork) addresses() int64 {
	hostBits := c.prefix.Addr().BitLen() - c.hostPrefix
	if hostBits >= 62 {
		return 1 << 62
	}
	return 1<<hostBits - 2
}

// nodes is how many nodes get a subnet.
func (c clusterNetwork) nodes() int64 {
	if d := c.hostPrefix - c.prefix.Bits(); d < 62 {
		return 1 << d
	}
	return 1 << 62
}

// installConfig looks at the networks of an installation.
func (l *linter) installConfig(d *doc, root *node) {
	networking := root.Get("networking")
	l.clusterNetworks(d, networking, "networking")
	var nodes int64
	known := false
	for _, pool := range itemsOf(root.Get("compute")) {
		if n, ok := replicasOf(pool); ok {
			nodes += n
			known = true
		}
	}
	if n, ok := replicasOf(root.Get("controlPlane")); ok {
		nodes += n
	}
	for _, c := range l.clusters {
		if c.at.text == d.text && known && nodes > c.nodes() && len(itemsOf(networking.Get("clusterNetwork"))) == 1 {
			l.report("subnet", c.at, fmt.Sprintf("widen the cluster network, or narrow the subnets: a /%d has room for %d nodes",
				max(0, c.hostPrefix-bits.Len64(uint64(nodes-1))), nodes),
				fmt.Sprintf("%s in subnets of /%d is enough for %d nodes, and there are %d", c.prefix, c.hostPrefix, c.nodes(), nodes))
		}
	}
}

func replicasOf(pool *node) (int64, bool) {
	if pool == nil || pool.Get("replicas") == nil {
		return 0, false
	}
	n, ok := pool.Get("replicas").Value().(int64)
	return n, ok && n >= 0
}

// clusterNetworks reads clusterNetwork, serviceNetwork and machineNetwork.
func (l *linter) clusterNetworks(d *doc, networking *node, path string) {
	if networking == nil {
		return
	}
	var ranges []addressRange
	for i, c := range itemsOf(networking.Get("clusterNetwork")) {
		inner := strictyaml.Index(strictyaml.Key(path, "clusterNetwork"), i)
		cidr := c.Get("cidr")
		prefix, ok := l.cidr(d, cidr, strictyaml.Key(inner, "cidr"), "clusterNetwork", &ranges)
		if !ok {
			continue
		}
		network := clusterNetwork{prefix: prefix, hostPrefix: 23, at: d.at(cidr, strictyaml.Key(inner, "cidr"))}
		if prefix.Addr().Is6() {
			network.hostPrefix = 64
		}
		if host := c.Get("hostPrefix"); host != nil {
			v, isInt := host.Value().(int64)
			at := d.at(host, strictyaml.Key(inner, "hostPrefix"))
			network.at = at
			switch {
			case !isInt:
				continue // its type is told of elsewhere
			case v < int64(prefix.Bits()):
				l.report("subnet", at, fmt.Sprintf("write a number from %d to %d", prefix.Bits(), prefix.Addr().BitLen()-2),
					fmt.Sprintf("a node's subnet of /%d is larger than the whole cluster network %s", v, prefix))
				continue
			case v > int64(prefix.Addr().BitLen()-2):
				l.report("subnet", at, "write at most "+strconv.Itoa(prefix.Addr().BitLen()-2), fmt.Sprintf("a node's subnet of /%d has no address for pods", v))
				continue
			}
			network.hostPrefix = int(v)
		}
		l.clusters = append(l.clusters, network)
	}
	for i, s := range itemsOf(networking.Get("serviceNetwork")) {
		l.cidr(d, s, strictyaml.Index(strictyaml.Key(path, "serviceNetwork"), i), "serviceNetwork", &ranges)
	}
	for i, m := range itemsOf(networking.Get("machineNetwork")) {
		l.cidr(d, m.Get("cidr"), strictyaml.Key(strictyaml.Index(strictyaml.Key(path, "machineNetwork"), i), "cidr"), "machineNetwork", &ranges)
	}
	l.overlaps(ranges)
}

// cidr reads a range of addresses.
func (l *linter) cidr(d *doc, n *node, path, what string, ranges *[]addressRange) (netip.Prefix, bool) {
	if textOf(n) == "" || hasHole(textOf(n)) {
		return netip.Prefix{}, false
	}
	at := d.at(n, path)
	prefix, ok := l.prefix(at, n.Text(), what, func(fresh string) []edit { return d.replaceScalar(n, fresh) })
	if ok {
		*ranges = append(*ranges, addressRange{what, prefix, at})
	}
	return prefix, ok
}

// prefix reads a range of addresses that is written in CIDR notation.
func (l *linter) prefix(at place, text, what string, replace func(string) []edit) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		l.report("subnet", at, "write an address and a length, such as 10.128.0.0/14", fmt.Sprintf("%s is no range of addresses: %q", what, text))
		return netip.Prefix{}, false
	}
	if prefix != prefix.Masked() {
		l.report("subnet", at, fmt.Sprintf("write %s, which is the range that holds this address", prefix.Masked()),
			fmt.Sprintf("%s %s has bits set behind its /%d", what, text, prefix.Bits()), replace(prefix.Masked().String())...)
	}
	return prefix.Masked(), true
}

// overlaps holds the ranges of one configuration against each other.
func (l *linter) overlaps(ranges []addressRange) {
	// Two ranges of CIDR notation are apart, or one holds the other: in this
	// order those that hold a range are on the stack.
	sorted := slices.Clone(ranges)
	slices.SortStableFunc(sorted, func(a, b addressRange) int {
		return cmp.Or(a.prefix.Addr().Compare(b.prefix.Addr()), a.prefix.Bits()-b.prefix.Bits())
	})
	var stack []addressRange
	for _, r := range sorted {
		for len(stack) > 0 && !stack[len(stack)-1].prefix.Overlaps(r.prefix) {
			stack = stack[:len(stack)-1]
		}
		if len(stack) > 0 {
			a, b := r, stack[len(stack)-1]
			if a.at.line < b.at.line {
				a, b = b, a
			}
			l.report("subnet-overlap", a.at, "move one of the two", fmt.Sprintf("%s %s overlaps with %s %s on line %d", a.what, a.prefix, b.what, b.prefix, fileLine(b.at)))
		}
		stack = append(stack, r)
	}
}

// reservedPods are the addresses that the node's own pods need (D3).
const reservedPods = 16

// podsAgainstSubnets holds the pods that nodes are to take against the
// addresses that they have.
func (l *linter) podsAgainstSubnets() {
	if len(l.clusters) == 0 {
		// The default of a /23 is enough for what most ask for.
		for _, p := range l.maxPods {
			if standard := (clusterNetwork{prefix: netip.MustParsePrefix(defaultClusterCIDR), hostPrefix: 23}); p.maxPods > standard.addresses()-reservedPods {
				l.note("pods-above-subnet", p.at, "no cluster network is among the files: whether a node's subnet has %d addresses was not checked (a /23, the default, has %d)", p.maxPods, standard.addresses())
			}
		}
		return
	}
	// Nodes get subnets of one size; with two families the smaller one binds.
	least := l.clusters[0]
	for _, c := range l.clusters[1:] {
		if c.addresses() < least.addresses() {
			least = c
		}
	}
	for _, p := range l.maxPods {
		where := seen(p.at, least.at)
		if p.maxPods > least.addresses() {
			l.report("pods-above-subnet", p.at, fmt.Sprintf("lower maxPods to %d, or install with hostPrefix %d", max(1, least.addresses()-reservedPods), largestHostPrefix(least, p.maxPods+reservedPods)),
				fmt.Sprintf("maxPods is %d, and a node's subnet of /%d has %d addresses (%s)", p.maxPods, least.hostPrefix, least.addresses(), where))
		} else if p.maxPods+reservedPods > least.addresses() {
			l.reportAs(Warning, "pods-above-subnet", p.at, fmt.Sprintf("lower maxPods to %d, or install with hostPrefix %d", max(1, least.addresses()-reservedPods), largestHostPrefix(least, p.maxPods+reservedPods)),
				fmt.Sprintf("maxPods is %d, and of the %d addresses of a node's subnet of /%d the node itself uses some (%s)", p.maxPods, least.addresses(), least.hostPrefix, where))
		}
	}
}

// largestHostPrefix is the narrowest subnet with room for so many pods.
func largestHostPrefix(c clusterNetwork, pods int64) int {
	for p := c.prefix.Addr().BitLen() - 2; p > 0; p-- {
		if (clusterNetwork{prefix: c.prefix, hostPrefix: p}).addresses() >= pods {
			return p
		}
	}
	return 0
}
