package lint

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
)

// addressRange is a range of addresses that a configuration names.
type addressRange struct {
	what   string // clusterNetwork, serviceNetwork ...
	prefix netip.Prefix
	at     place
}

// checkInstallConfig looks at the networks of an installation.
func checkInstallConfig(out *report, root value) {
	networking := root.get("networking")
	before := len(out.clusters)
	checkClusterNetworks(out, networking)
	var nodes int64
	known := false
	for _, pool := range root.get("compute").items() {
		if n, ok := pool.get("replicas").integer(); ok && n >= 0 {
			nodes += n
			known = true
		}
	}
	if n, ok := root.get("controlPlane", "replicas").integer(); ok && n >= 0 {
		nodes += n
	}
	for _, c := range out.clusters[before:] {
		if known && nodes > c.nodes() && len(networking.get("clusterNetwork").items()) == 1 {
			out.find("subnet", c.at, fmt.Sprintf("widen the cluster network, or narrow the subnets: a /%d has room for %d nodes",
				max(0, c.hostPrefix-bits.Len64(uint64(nodes-1))), nodes),
				fmt.Sprintf("%s in subnets of /%d is enough for %d nodes, and there are %d", c.prefix, c.hostPrefix, c.nodes(), nodes))
		}
	}
}

// checkClusterNetworks reads clusterNetwork, serviceNetwork and machineNetwork.
func checkClusterNetworks(out *report, networking value) {
	var ranges []addressRange
	read := func(v value, what string) (netip.Prefix, bool) {
		if v.text() == "" || hasHole(v.text()) {
			return netip.Prefix{}, false
		}
		prefix, ok := readPrefix(out, v.at(), v.text(), what, v.replace)
		if ok {
			ranges = append(ranges, addressRange{what, prefix, v.at()})
		}
		return prefix, ok
	}
	for _, c := range networking.get("clusterNetwork").items() {
		cidr, host := c.get("cidr"), c.get("hostPrefix")
		prefix, ok := read(cidr, "clusterNetwork")
		if !ok {
			continue
		}
		network := clusterNetwork{prefix: prefix, hostPrefix: 23, at: cidr.at()}
		if prefix.Addr().Is6() {
			network.hostPrefix = 64
		}
		if host.node != nil {
			n, isInt := host.integer()
			network.at, network.hostPrefix = host.at(), int(n)
			most := prefix.Addr().BitLen() - 2
			switch {
			case !isInt:
				continue // its type is told of elsewhere
			case n < int64(prefix.Bits()):
				out.find("subnet", host.at(), fmt.Sprintf("write a number from %d to %d", prefix.Bits(), most),
					fmt.Sprintf("a node's subnet of /%d is larger than the whole cluster network %s", n, prefix))
				continue
			case n > int64(most):
				out.find("subnet", host.at(), fmt.Sprintf("write at most %d", most), fmt.Sprintf("a node's subnet of /%d has no address for pods", n))
				continue
			}
		}
		out.clusters = append(out.clusters, network)
	}
	for _, s := range networking.get("serviceNetwork").items() {
		read(s, "serviceNetwork")
	}
	for _, m := range networking.get("machineNetwork").items() {
		read(m.get("cidr"), "machineNetwork")
	}
	checkOverlaps(out, ranges)
}

// readPrefix reads a range of addresses that is written in CIDR notation.
func readPrefix(out *report, at place, text, what string, replace func(string) []edit) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		out.find("subnet", at, "write an address and a length, such as 10.128.0.0/14", fmt.Sprintf("%s is no range of addresses: %q", what, text))
		return netip.Prefix{}, false
	}
	if prefix != prefix.Masked() {
		out.find("subnet", at, fmt.Sprintf("write %s, which is the range that holds this address", prefix.Masked()),
			fmt.Sprintf("%s %s has bits set behind its /%d", what, text, prefix.Bits()), replace(prefix.Masked().String())...)
	}
	return prefix.Masked(), true
}

// checkOverlaps holds the ranges of one configuration against each other.
func checkOverlaps(out *report, ranges []addressRange) {
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
			out.find("subnet-overlap", a.at, "move one of the two", fmt.Sprintf("%s %s overlaps with %s %s on line %d", a.what, a.prefix, b.what, b.prefix, fileLine(b.at)))
		}
		stack = append(stack, r)
	}
}

// acrossSubnets holds the pods that nodes are to take against the
// addresses that they have.
func acrossSubnets(out *report) {
	if len(out.clusters) == 0 {
		// The default of a /23 is enough for what most ask for.
		standard := clusterNetwork{prefix: netip.MustParsePrefix("10.128.0.0/14"), hostPrefix: 23}.addresses()
		for _, p := range out.maxPods {
			if p.maxPods > standard-ceiling.ReservedAddresses {
				out.note("pods-above-subnet", p.at, "no cluster network is among the files: whether a node's subnet has %d addresses was not checked (a /23, the default, has %d)", p.maxPods, standard)
			}
		}
		return
	}
	// Nodes get subnets of one size; with two families the smaller one binds.
	least := slices.MinFunc(out.clusters, func(a, b clusterNetwork) int { return cmp.Compare(a.addresses(), b.addresses()) })
	for _, p := range out.maxPods {
		where, room := seen(p.at, least.at), least.addresses()
		fix := fmt.Sprintf("lower maxPods to %d, or install with hostPrefix %d", max(1, room-ceiling.ReservedAddresses), ceiling.HostPrefix(least.prefix.Addr(), p.maxPods+ceiling.ReservedAddresses))
		if p.maxPods > room {
			out.find("pods-above-subnet", p.at, fix, fmt.Sprintf("maxPods is %d, and a node's subnet of /%d has %d addresses (%s)", p.maxPods, least.hostPrefix, room, where))
		} else if p.maxPods+ceiling.ReservedAddresses > room {
			out.findAs(Warning, "pods-above-subnet", p.at, fix,
				fmt.Sprintf("maxPods is %d, and of the %d addresses of a node's subnet of /%d the node itself uses some (%s)", p.maxPods, room, least.hostPrefix, where))
		}
	}
}
