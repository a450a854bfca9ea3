// Package cluster answers: which ranges of addresses and which settings of its
// kubelets does a cluster need?
package cluster

import (
	"net/netip"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

// Facts holds what was read of a cluster; the zero value knows nothing.
type Facts struct {
	// From says where they were read, such as "cluster https://10.0.0.1:6443".
	From  string
	Nodes []NodeFacts
	// Network is OpenShift's own description of its ranges, where there is one.
	Network *NetworkFacts
}

// NodeFacts are one node's.
type NodeFacts struct {
	Name string
	// Worker is false of nodes that take control-plane work only.
	Worker   bool
	PodCIDRs []netip.Prefix
	MaxPods  int64 // allocatable pods
	Cores    float64
	Memory   param.Bytes
}

// NetworkFacts are the ranges of an OpenShift cluster.
type NetworkFacts struct {
	Type     string
	Cluster  []netip.Prefix
	Prefixes []int64 // host prefixes, one for each of Cluster
	Service  []netip.Prefix
}

// Platform is what the cluster was seen to be.
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

func (f Facts) nodes() param.In[int64] { return param.ReadFrom(int64(len(f.Nodes)), f.From) }

// workers are the nodes that take a user's pods.
func (f Facts) workers() []NodeFacts {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n NodeFacts) bool { return !n.Worker })
}

// WorkerCount is how many nodes take a user's pods.
func (f Facts) WorkerCount() param.In[int64] { return param.ReadFrom(int64(len(f.workers())), f.From) }

// hostPrefix is the prefix length of the nodes' subnets of a family.
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

// smallest is the worker with the least memory: what holds for it holds for all.
func (f Facts) smallest() (least NodeFacts) {
	for _, n := range f.workers() {
		if n.Memory > 0 && (least.Memory == 0 || n.Memory < least.Memory) {
			least = n
		}
	}
	return least
}

// Memory is that of the smallest worker.
func (f Facts) Memory() param.In[param.Bytes] {
	n := f.smallest()
	return param.ReadFrom(n.Memory, "node "+n.Name)
}

// Cores are those of the worker with the least memory.
func (f Facts) Cores() param.In[float64] {
	n := f.smallest()
	return param.ReadFrom(n.Cores, "node "+n.Name)
}

// LeastMaxPods is the least that a worker takes, mostMaxPods the most that any
// node does.
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

// ranges are some of OpenShift's own; there are none elsewhere.
func (f Facts) ranges(of func(*NetworkFacts) []netip.Prefix) (out []param.In[netip.Prefix]) {
	if f.Network != nil {
		for _, c := range of(f.Network) {
			out = append(out, param.ReadFrom(c, f.From))
		}
	}
	return out
}
