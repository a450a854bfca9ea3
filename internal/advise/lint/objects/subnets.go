package objects

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

type addressRange struct {
	what   string // clusterNetwork, serviceNetwork ...
	prefix netip.Prefix
	at     reading.Place
}

// CheckInstallConfig looks at the networks of an installation.
func CheckInstallConfig(out *report.Report, root reading.Value) {
	networking := root.Get("networking")
	before := len(out.Clusters)
	checkClusterNetworks(out, networking)
	var nodes int64
	known := false
	for _, pool := range root.Get("compute").Items() {
		if n, ok := pool.Get("replicas").Integer(); ok && n >= 0 {
			nodes += n
			known = true
		}
	}
	if n, ok := root.Get("controlPlane", "replicas").Integer(); ok && n >= 0 {
		nodes += n
	}
	for _, c := range out.Clusters[before:] {
		if known && nodes > c.Nodes() && len(networking.Get("clusterNetwork").Items()) == 1 {
			out.Find("subnet", c.At, fmt.Sprintf("widen the cluster network, or narrow the subnets: a /%d has room for %d nodes",
				max(0, c.HostPrefix-bits.Len64(uint64(nodes-1))), nodes),
				fmt.Sprintf("%s in subnets of /%d is enough for %d nodes, and there are %d", c.Prefix, c.HostPrefix, c.Nodes(), nodes))
		}
	}
}

func checkClusterNetworks(out *report.Report, networking reading.Value) {
	var ranges []addressRange
	read := func(v reading.Value, what string) (netip.Prefix, bool) {
		if v.Text() == "" || reading.HasHole(v.Text()) {
			return netip.Prefix{}, false
		}
		prefix, ok := readPrefix(out, v.At(), v.Text(), what, v.Replace)
		if ok {
			ranges = append(ranges, addressRange{what, prefix, v.At()})
		}
		return prefix, ok
	}
	for _, c := range networking.Get("clusterNetwork").Items() {
		cidr, host := c.Get("cidr"), c.Get("hostPrefix")
		prefix, ok := read(cidr, "clusterNetwork")
		if !ok {
			continue
		}
		network := report.ClusterNetwork{Prefix: prefix, HostPrefix: 23, At: cidr.At()}
		if prefix.Addr().Is6() {
			network.HostPrefix = 64
		}
		if host.Node != nil {
			n, isInt := host.Integer()
			network.At, network.HostPrefix = host.At(), int(n)
			most := prefix.Addr().BitLen() - 2
			switch {
			case !isInt:
				continue // Fits reports the type
			case n < int64(prefix.Bits()):
				out.Find("subnet", host.At(), fmt.Sprintf("write a number from %d to %d", prefix.Bits(), most),
					fmt.Sprintf("a node's subnet of /%d is larger than the whole cluster network %s", n, prefix))
				continue
			case n > int64(most):
				out.Find("subnet", host.At(), fmt.Sprintf("write at most %d", most), fmt.Sprintf("a node's subnet of /%d has no address for pods", n))
				continue
			}
		}
		out.Clusters = append(out.Clusters, network)
	}
	for _, s := range networking.Get("serviceNetwork").Items() {
		read(s, "serviceNetwork")
	}
	for _, m := range networking.Get("machineNetwork").Items() {
		read(m.Get("cidr"), "machineNetwork")
	}
	checkOverlaps(out, ranges)
}

func readPrefix(out *report.Report, at reading.Place, text, what string, replace func(string) []reading.Edit) (netip.Prefix, bool) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		out.Find("subnet", at, "write an address and a length, such as 10.128.0.0/14", fmt.Sprintf("%s is not a range of addresses: %q", what, text))
		return netip.Prefix{}, false
	}
	if prefix != prefix.Masked() {
		out.Find("subnet", at, fmt.Sprintf("write %s, which is the range that holds this address", prefix.Masked()),
			fmt.Sprintf("%s %s has bits set behind its /%d", what, text, prefix.Bits()), replace(prefix.Masked().String())...)
	}
	return prefix.Masked(), true
}

func checkOverlaps(out *report.Report, ranges []addressRange) {
	// CIDR ranges are apart or nested. In this order the stack holds those around the current one.
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
			if a.at.Line < b.at.Line {
				a, b = b, a
			}
			out.Find("subnet-overlap", a.at, "move one of the two", fmt.Sprintf("%s %s overlaps with %s %s on line %d", a.what, a.prefix, b.what, b.prefix, reading.FileLine(b.at)))
		}
		stack = append(stack, r)
	}
}

// AcrossSubnets compares the pods that nodes are to take with their addresses.
func AcrossSubnets(out *report.Report) {
	if len(out.Clusters) == 0 {
		// The default, a /23, suffices for most.
		standard := report.ClusterNetwork{Prefix: netip.MustParsePrefix("10.128.0.0/14"), HostPrefix: 23}.Addresses()
		for _, p := range out.MaxPods {
			if p.MaxPods > standard-ceiling.ReservedAddresses {
				out.Note("pods-above-subnet", p.At, "no cluster network is among the files: whether a node's subnet has %d addresses was not checked (a /23, the default, has %d)", p.MaxPods, standard)
			}
		}
		return
	}
	// Nodes get subnets of one size; with two families the smaller one binds.
	least := slices.MinFunc(out.Clusters, func(a, b report.ClusterNetwork) int { return cmp.Compare(a.Addresses(), b.Addresses()) })
	for _, p := range out.MaxPods {
		where, room := reading.Seen(p.At, least.At), least.Addresses()
		fix := fmt.Sprintf("lower maxPods to %d, or install with hostPrefix %d", max(1, room-ceiling.ReservedAddresses), ceiling.HostPrefix(least.Prefix.Addr(), p.MaxPods+ceiling.ReservedAddresses))
		if p.MaxPods > room {
			out.Find("pods-above-subnet", p.At, fix, fmt.Sprintf("maxPods is %d, and a node's subnet of /%d has %d addresses (%s)", p.MaxPods, least.HostPrefix, room, where))
		} else if p.MaxPods+ceiling.ReservedAddresses > room {
			out.FindAs(report.Warning, "pods-above-subnet", p.At, fix,
				fmt.Sprintf("maxPods is %d, and of the %d addresses of a node's subnet of /%d the node itself uses some (%s)", p.MaxPods, room, least.HostPrefix, where))
		}
	}
}
