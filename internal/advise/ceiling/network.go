package ceiling

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

// Range is a range of addresses. Each node gets a part with the prefix length PerNode; 0 is none.
type Range struct {
	Prefix  netip.Prefix
	PerNode int
}

// Ranges holds ranges with their source.
type Ranges struct {
	List []Range
	Source
}

const gateway = 1 // address of a node's range, which the node itself takes

func (f *Facts) simulated() bool {
	return len(f.Nodes) > 0 && !slices.ContainsFunc(f.Nodes, func(n Node) bool { return !n.Simulated })
}

func addressed(e Entry) int64 {
	if e.Pod.HostNetwork {
		return 0
	}
	return e.Pods
}

// noSandbox is the reason of events about pods that cannot join the network.
const noSandbox = "FailedCreatePodSandBox"

// noSandbox returns it as a result does, with the plug-in's own words.
func (f *Facts) noSandbox(why string) string {
	return fmt.Sprintf("%s (%s)", onNodes(noSandbox, len(f.Nodes), len(f.Nodes)), why)
}

// PodCIDRs names the field where most clusters keep the nodes' ranges.
const PodCIDRs = "spec.podCIDRs of the nodes"

// podRanges is about the nodes' own ranges.
func (c *computation) podRanges() {
	row := record.Ceiling{
		Name: "podAddressesPerNode", What: "pod addresses of the nodes", Class: record.CeilingHard, Unit: "addresses",
		Reason: c.f.noSandbox("no IP addresses available in range set"), Sign: "no IP addresses available",
	}
	if !c.f.NodesRead.Known() {
		c.unknown(row, c.f.NodesRead.Why)
		return
	}
	if len(c.f.Nodes) == 0 {
		return
	}
	if name := c.f.OwnAddresses; name != "" {
		c.unknown(row, name+" gives out addresses in its own way, whatever ranges the nodes have")
		return
	}
	var limit, used, room float64
	var note string
	for _, n := range c.f.Nodes {
		ranges := n.Ranges
		row.From = n.RangesFrom
		if len(ranges) == 0 {
			for _, r := range c.f.PodAddresses.List {
				if r.PerNode > 0 && r.PerNode <= r.Prefix.Addr().BitLen() {
					ranges = append(ranges, Range{Prefix: netip.PrefixFrom(r.Prefix.Addr(), r.PerNode)})
				}
			}
			row.From = c.f.PodAddresses.From
		}
		if row.From != PodCIDRs {
			// Each plug-in has its own words.
			row.Reason, row.Sign = c.f.noSandbox("no address left in the node's range"), noSandbox
		}
		if len(ranges) == 0 {
			row.From = ""
			why := "the nodes have no range of their own: the network plug-in gives out addresses in its own way"
			if c.f.simulated() {
				why = "the nodes have no range of their own, and none is kept: the simulation gives out addresses without looking at the end of a range"
			}
			c.unknown(row, why)
			return
		}
		// A pod takes one address of each family.
		can := math.Inf(1)
		for _, r := range ranges {
			if one := max(0, Addresses(r.Prefix)-gateway); one < can {
				can = one
				note = fmt.Sprintf("a /%d has %.0f addresses, of which the gateway takes one", r.Prefix.Bits(), Addresses(r.Prefix))
			}
		}
		taken := float64(n.Standing - n.HostNetwork)
		limit, used, room = limit+can, used+taken, room+max(0, can-taken)
	}
	row.Note = note
	c.addresses(row, limit, used, room)
}

// addresses adds a row of addresses that the workload's pods need.
func (c *computation) addresses(row record.Ceiling, limit, used, room float64) {
	row.Limit = figure(limit)
	if !c.f.PodsRead.Known() {
		c.unknown(row, "how many are taken is unknown: "+c.f.PodsRead.Why)
		return
	}
	row.Used = figure(used)
	if c.f.simulated() {
		row.Class = record.CeilingNotEnforced
		row.Reason, row.Sign = "", ""
		row.Note = sentences(row.Note, "simulated nodes give out addresses past the end")
	}
	allowed := unbounded
	if room < math.Exp2(52) {
		allowed = most(int64(max(0, room)), func(i int64) int64 { return c.load.sum(i, addressed) })
	}
	c.add(row, allowed, false)
}

// podNetwork is about all addresses of the pod network, or the nodes that it has ranges for.
func (c *computation) podNetwork() {
	row := record.Ceiling{Name: "podAddresses", What: "pod addresses in all", Class: record.CeilingHard, Unit: "addresses", From: c.f.PodAddresses.From}
	if !c.f.PodAddresses.Known() || len(c.f.PodAddresses.List) == 0 {
		if !c.f.simulated() { // whose addresses come from no network
			c.unknown(row, c.f.PodAddresses.Why)
		}
		return
	}
	family := c.f.PodAddresses.List[0].Prefix.Addr().Is4()
	var all, ranges float64
	parted := false
	for _, r := range c.f.PodAddresses.List {
		if r.Prefix.Addr().Is4() != family {
			continue
		}
		all += Addresses(r.Prefix)
		ranges += NodeRanges(r)
		parted = parted || r.PerNode > 0
	}
	if parted {
		// A node's range is full before the network is, which then bounds the number of nodes.
		first := c.f.PodAddresses.List[0]
		c.add(record.Ceiling{
			Name: "nodeRanges", What: "nodes that the pod network has ranges for", Class: record.CeilingUnbound, Unit: "nodes", From: c.f.PodAddresses.From,
			Limit: figure(ranges), Used: figure(float64(c.f.AllNodes)),
			Note: fmt.Sprintf("%s in parts of a /%d", first.Prefix, first.PerNode),
		}, unbounded, false)
		return
	}
	row.Reason, row.Sign = c.f.noSandbox("no address left in the pod network"), noSandbox
	c.addresses(row, all, float64(c.f.Addresses), all-float64(c.f.Addresses))
}

// bridgePorts is the most ports of a Linux bridge (BR_PORT_BITS in net/bridge/br_private.h).
const bridgePorts = 1023

// bridges is about the Linux bridges of nodes' pods.
func (c *computation) bridges() {
	var limit, used, room float64
	bridges := 0
	for _, n := range c.f.Nodes {
		if !n.Bridge {
			continue
		}
		bridges++
		taken := float64(n.Standing - n.HostNetwork)
		limit, used, room = limit+bridgePorts, used+taken, room+max(0, bridgePorts-taken)
	}
	row := record.Ceiling{
		Name: "bridgePorts", What: "ports of the nodes' Linux bridges", Class: record.CeilingHard, Unit: "ports",
		Reason: c.f.noSandbox("failed to connect veth to bridge: exchange full"), Sign: "exchange full",
		From: "the Linux kernel: 1023 for each bridge",
	}
	switch {
	case bridges == 0 && (c.f.simulated() || len(c.f.Nodes) == 0):
	case bridges == 0:
		row.From = ""
		c.unknown(row, "the API does not tell what pods hang on; if it is a bridge, it has 1023 ports")
	case bridges < len(c.f.Nodes):
		c.unknown(row, fmt.Sprintf("%d of %d nodes are known to use one, with 1023 ports each", bridges, len(c.f.Nodes)))
	default:
		c.addresses(row, limit, used, room)
	}
}

func clusterIPs(e Entry) int64 {
	if e.ClusterIP {
		return 1
	}
	return 0
}

func (c *computation) services() {
	row := record.Ceiling{
		Name: "serviceAddresses", What: "addresses for services", Class: record.CeilingHard, Unit: "addresses", From: c.f.ServiceAddresses.From,
		Reason: `HTTP 500: Internal error occurred: failed to allocate a serviceIP for Service "NAME": range is full`, Sign: "range is full",
	}
	if !c.f.ServiceAddresses.Known() || len(c.f.ServiceAddresses.List) == 0 {
		c.unknown(row, c.f.ServiceAddresses.Why)
		return
	}
	var all float64
	for _, r := range c.f.ServiceAddresses.List {
		all += Addresses(r.Prefix)
		row.Note = sentences(row.Note, r.Prefix.String())
	}
	row.Limit = figure(all)
	if !c.f.Services.Known() {
		c.unknown(row, "how many are taken is unknown: "+c.f.Services.Why)
		return
	}
	row.Used = figure(float64(c.f.ServicesTaken))
	if !c.load.makes(clusterIPs) {
		row.Note = sentences(row.Note, "the workload makes no services with an address")
	}
	left := all - float64(c.f.ServicesTaken)
	allowed := unbounded
	if left < math.Exp2(52) {
		allowed = most(int64(max(0, left)), func(i int64) int64 { return c.load.sum(i, clusterIPs) })
	}
	c.add(row, allowed, true)
}
