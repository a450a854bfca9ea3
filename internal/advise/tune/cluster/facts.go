// Package cluster computes a cluster's ranges of addresses and the settings of its kubelets.
package cluster

import (
	"net/netip"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Facts holds what was read of a cluster; the zero value knows nothing.
type Facts struct {
	From    string // such as "cluster https://10.0.0.1:6443"
	Nodes   []NodeFacts
	Network *NetworkFacts // of OpenShift, or nil
}

// NodeFacts describes a node.
type NodeFacts struct {
	Name     string
	Worker   bool // it takes a user's pods
	PodCIDRs []netip.Prefix
	MaxPods  int64 // allocatable pods
	Cores    float64
	Memory   param.Bytes
}

// NetworkFacts holds the ranges of an OpenShift cluster.
type NetworkFacts struct {
	Type     string
	Cluster  []netip.Prefix
	Prefixes []int64 // host prefixes, one for each of Cluster
	Service  []netip.Prefix
}

// Platform returns the platform that the cluster was found to be.
func (f Facts) Platform() (in param.In[string]) {
	switch {
	case f.From == "":
		return in
	case f.Network != nil:
		return param.ReadFrom(param.OpenShift, f.From)
	}
	return param.ReadFrom(param.Kubernetes, f.From+", which is not OpenShift")
}

func (f Facts) networkType() (in param.In[string]) {
	if f.Network != nil && slices.Contains([]string{param.OVNKubernetes, param.OpenShiftSDN}, f.Network.Type) {
		in = param.ReadFrom(f.Network.Type, f.From)
	}
	return in
}

func (f Facts) workers() []NodeFacts {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n NodeFacts) bool { return !n.Worker })
}

// WorkerCount returns the number of nodes that take a user's pods.
func (f Facts) WorkerCount() param.In[int64] { return param.ReadFrom(int64(len(f.workers())), f.From) }

// hostPrefix returns the prefix length of the nodes' subnets of a family.
func (f Facts) hostPrefix(four bool) (in param.In[int64]) {
	if f.Network != nil {
		for i, c := range f.Network.Cluster {
			if c.Addr().Is4() == four {
				return param.ReadFrom(f.Network.Prefixes[i], f.From)
			}
		}
	}
	for _, n := range f.Nodes {
		for _, c := range n.PodCIDRs {
			if c.Addr().Is4() == four {
				return param.ReadFrom(int64(c.Bits()), "node "+n.Name)
			}
		}
	}
	return in
}

// smallest returns the worker with the least memory, whose limits hold for all.
func (f Facts) smallest() (least NodeFacts) {
	for _, n := range f.workers() {
		if n.Memory > 0 && (least.Memory == 0 || n.Memory < least.Memory) {
			least = n
		}
	}
	return least
}

// Memory returns the memory of the smallest worker.
func (f Facts) Memory() param.In[param.Bytes] {
	n := f.smallest()
	return param.ReadFrom(n.Memory, "node "+n.Name)
}

// Cores returns the cores of the worker with the least memory.
func (f Facts) Cores() param.In[float64] {
	n := f.smallest()
	return param.ReadFrom(n.Cores, "node "+n.Name)
}

// LeastMaxPods returns the least maxPods of a worker; mostMaxPods returns the most of any node.
func (f Facts) LeastMaxPods() (in param.In[int64]) {
	for _, n := range f.workers() {
		if n.MaxPods > 0 && (!in.Ok() || n.MaxPods < in.Value) {
			in = param.ReadFrom(n.MaxPods, "node "+n.Name)
		}
	}
	return in
}

func (f Facts) mostMaxPods() (in param.In[int64]) {
	for _, n := range f.Nodes {
		if n.MaxPods > in.Value {
			in = param.ReadFrom(n.MaxPods, "node "+n.Name)
		}
	}
	return in
}

// ranges returns some of OpenShift's own ranges, nil elsewhere.
func (f Facts) ranges(of func(*NetworkFacts) []netip.Prefix) (out []param.In[netip.Prefix]) {
	if f.Network != nil {
		for _, c := range of(f.Network) {
			out = append(out, param.ReadFrom(c, f.From))
		}
	}
	return out
}
