package ceiling

import (
	"math"
	"net/netip"
)

// Limits that are published as tested or as defaults: by Kubernetes (scalability thresholds, considerations
// for large clusters), by OpenShift (tested cluster maximums), and by the source documents (D2, D16, V2).
const (
	TestedPods        = 150_000 // of a cluster
	TestedContainers  = 300_000
	TestedNamespaces  = 10_000
	TestedServices    = 10_000
	TestedNodes       = 5_000
	OpenShiftNodes    = 2_000
	ShownVMs          = 3_000 // on 100 nodes
	NamespacePods     = 3_000 // of a namespace
	NamespaceServices = 5_000
	NamespaceDeploys  = 2_000
	DefaultMaxPods    = 110 // of a node
	OpenShiftMaxPods  = 250
	TestedMaxPods     = 500  // on OpenShift
	ShownMaxPods      = 2500 // on 26 nodes
	// ReservedAddresses of a node's subnet belong to DaemonSets, the gateway and the management port (D3).
	ReservedAddresses = 16
)

// Addresses returns how many addresses of a range can be assigned.
func Addresses(p netip.Prefix) float64 {
	if !p.IsValid() {
		return 0
	}
	all := math.Exp2(float64(p.Addr().BitLen() - p.Bits()))
	if p.Addr().Is4() {
		return max(0, all-2)
	}
	return max(0, all-1)
}

// NodeRanges returns how many nodes get a part of a range: 2^(perNode - bits), or 0 if none fits.
func NodeRanges(r Range) float64 {
	if r.PerNode < r.Prefix.Bits() || r.PerNode > r.Prefix.Addr().BitLen() {
		return 0
	}
	return math.Exp2(float64(r.PerNode - r.Prefix.Bits()))
}

// HostPrefix returns the longest prefix length of a family whose ranges have so many addresses.
func HostPrefix(family netip.Addr, addresses int64) int {
	bits := family.BitLen()
	for bits > 0 && Addresses(netip.PrefixFrom(family, bits)) < float64(addresses) {
		bits--
	}
	return bits
}
