package tune

import (
	"net/netip"
	"slices"
)

// ClusterFacts are what was read of a cluster. The zero ClusterFacts know
// nothing.
type ClusterFacts struct {
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
	Memory   Bytes
}

// NetworkFacts are the ranges of an OpenShift cluster.
type NetworkFacts struct {
	Type     string
	Cluster  []netip.Prefix
	Prefixes []int64 // host prefixes, one for each of Cluster
	Service  []netip.Prefix
}

func (f ClusterFacts) platform() (in In[string]) {
	switch {
	case f.From == "":
		return in
	case f.Network != nil:
		return readFrom(OpenShift, f.From)
	}
	return readFrom(Kubernetes, f.From+", which is no OpenShift")
}

func (f ClusterFacts) networkType() (in In[string]) {
	if f.Network != nil && slices.Contains([]string{OVNKubernetes, OpenShiftSDN}, f.Network.Type) {
		in = readFrom(f.Network.Type, f.From)
	}
	return in
}

func (f ClusterFacts) nodes() In[int64] { return readFrom(int64(len(f.Nodes)), f.From) }

// workers are the nodes that take a user's pods.
func (f ClusterFacts) workers() []NodeFacts {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n NodeFacts) bool { return !n.Worker })
}

func (f ClusterFacts) workerCount() In[int64] { return readFrom(int64(len(f.workers())), f.From) }

// hostPrefix is the prefix length of the nodes' subnets of a family.
func (f ClusterFacts) hostPrefix(four bool) (in In[int64]) {
	if f.Network != nil {
		for i, c := range f.Network.Cluster {
			if c.Addr().Is4() == four {
				return readFrom(f.Network.Prefixes[i], f.From)
			}
		}
	}
	for _, n := range f.Nodes {
		for _, c := range n.PodCIDRs {
			if c.Addr().Is4() == four {
				return readFrom(int64(c.Bits()), "node "+n.Name)
			}
		}
	}
	return in
}

// smallest is the worker with the least memory: what holds for it holds for all.
func (f ClusterFacts) smallest() (least NodeFacts) {
	for _, n := range f.workers() {
		if n.Memory > 0 && (least.Memory == 0 || n.Memory < least.Memory) {
			least = n
		}
	}
	return least
}

func (f ClusterFacts) memory() In[Bytes] {
	n := f.smallest()
	return readFrom(n.Memory, "node "+n.Name)
}

func (f ClusterFacts) cores() In[float64] {
	n := f.smallest()
	return readFrom(n.Cores, "node "+n.Name)
}

// leastMaxPods is the least that a worker takes, mostMaxPods the most that any
// node does.
func (f ClusterFacts) leastMaxPods() (in In[int64]) {
	for _, n := range f.workers() {
		if n.MaxPods > 0 && (!in.Ok() || n.MaxPods < in.Value) {
			in = readFrom(n.MaxPods, "node "+n.Name)
		}
	}
	return in
}

func (f ClusterFacts) mostMaxPods() (in In[int64]) {
	for _, n := range f.Nodes {
		if n.MaxPods > in.Value {
			in = readFrom(n.MaxPods, "node "+n.Name)
		}
	}
	return in
}

// clusterCIDRs and serviceCIDRs are OpenShift's own; both are empty elsewhere.
func (f ClusterFacts) clusterCIDRs() (out []In[netip.Prefix]) {
	if f.Network != nil {
		for _, c := range f.Network.Cluster {
			out = append(out, readFrom(c, f.From))
		}
	}
	return out
}

func (f ClusterFacts) serviceCIDRs() (out []In[netip.Prefix]) {
	if f.Network != nil {
		for _, c := range f.Network.Service {
			out = append(out, readFrom(c, f.From))
		}
	}
	return out
}
