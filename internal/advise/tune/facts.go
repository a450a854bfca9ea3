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

// Known reports whether a cluster was read.
func (f ClusterFacts) Known() bool { return f.From != "" }

// Workers are the nodes that take a user's pods.
func (f ClusterFacts) Workers() []NodeFacts {
	return slices.DeleteFunc(slices.Clone(f.Nodes), func(n NodeFacts) bool { return !n.Worker })
}

// Subnet fills in what was not given otherwise.
func (f ClusterFacts) Subnet(p *Subnet) {
	if !f.Known() {
		return
	}
	if len(f.Nodes) > 0 {
		p.Nodes = p.Nodes.orRead(int64(len(f.Nodes)), f.From)
	}
	most := int64(0)
	for _, n := range f.Nodes {
		most = max(most, n.MaxPods)
		if n.MaxPods == most && most > 0 {
			p.MaxPods = Given(most, "read from node "+n.Name)
		}
	}
	if f.Network != nil {
		p.Platform = p.Platform.orRead(OpenShift, f.From)
		if f.Network.Type == OVNKubernetes || f.Network.Type == OpenShiftSDN {
			p.Network = p.Network.orRead(f.Network.Type, f.From)
		}
		if len(p.ClusterCIDRs) == 0 {
			for i, c := range f.Network.Cluster {
				sameFamily := func(in In[netip.Prefix]) bool { return in.Value.Addr().Is4() == c.Addr().Is4() }
				if !slices.ContainsFunc(p.ClusterCIDRs, sameFamily) {
					p.ClusterCIDRs = append(p.ClusterCIDRs, Given(c, "read from "+f.From))
					hostPrefix := p.hostPrefixOf(c)
					*hostPrefix = hostPrefix.orRead(f.Network.Prefixes[i], f.From)
				}
			}
		}
		if len(p.ServiceCIDRs) == 0 {
			for _, c := range f.Network.Service {
				p.ServiceCIDRs = append(p.ServiceCIDRs, Given(c, "read from "+f.From))
			}
		}
		return
	}
	p.Platform = p.Platform.orRead(Kubernetes, f.From+", which is no OpenShift")
	for _, n := range f.Nodes {
		for _, c := range n.PodCIDRs {
			hostPrefix := p.hostPrefixOf(c)
			*hostPrefix = hostPrefix.orRead(int64(c.Bits()), "node "+n.Name)
		}
	}
}

// hostPrefixOf is the parameter for ranges of the same family.
func (p *Subnet) hostPrefixOf(c netip.Prefix) *In[int64] {
	if c.Addr().Is4() {
		return &p.HostPrefix
	}
	return &p.HostPrefix6
}

// orRead is the parameter, or what was read.
func (in In[T]) orRead(value T, from string) In[T] { return in.orThat(Given(value, "read from "+from)) }

// orThat is the parameter, or another.
func (in In[T]) orThat(other In[T]) In[T] {
	if in.Ok() {
		return in
	}
	return other
}

// Kubelet fills in what was not given otherwise.
func (f ClusterFacts) Kubelet(p *Kubelet) {
	if !f.Known() {
		return
	}
	workers := f.Workers()
	if f.Network == nil {
		p.Platform = p.Platform.orRead(Kubernetes, f.From+", which is no OpenShift")
	}
	if len(workers) > 0 {
		p.Nodes = p.Nodes.orRead(int64(len(workers)), f.From)
	}
	// What holds for the smallest node holds for all.
	var smallest, least *NodeFacts
	for i := range workers {
		n := &workers[i]
		if n.Memory > 0 && (smallest == nil || n.Memory < smallest.Memory) {
			smallest = n
		}
		if n.MaxPods > 0 && (least == nil || n.MaxPods < least.MaxPods) {
			least = n
		}
		for _, c := range n.PodCIDRs {
			if c.Addr().Is4() {
				p.HostPrefix = p.HostPrefix.orRead(int64(c.Bits()), "node "+n.Name)
			}
		}
	}
	if smallest != nil {
		p.Memory = p.Memory.orRead(smallest.Memory, "node "+smallest.Name)
		if smallest.Cores > 0 {
			p.Cores = p.Cores.orRead(smallest.Cores, "node "+smallest.Name)
		}
	}
	if least != nil {
		p.NowMaxPods = p.NowMaxPods.orRead(least.MaxPods, "node "+least.Name)
	}
	if f.Network != nil {
		for i, c := range f.Network.Cluster {
			if c.Addr().Is4() {
				p.HostPrefix = p.HostPrefix.orRead(f.Network.Prefixes[i], f.From)
			}
		}
	}
}

// Virt fills in what was not given otherwise.
func (f ClusterFacts) Virt(p *Virt) {
	if !f.Known() {
		return
	}
	if f.Network == nil {
		p.Platform = p.Platform.orRead(Kubernetes, f.From+", which is no OpenShift")
	}
	var k Kubelet
	f.Kubelet(&k)
	p.Nodes, p.MaxPods = p.Nodes.orThat(k.Nodes), p.MaxPods.orThat(k.NowMaxPods)
	p.Cores, p.Memory = p.Cores.orThat(k.Cores), p.Memory.orThat(k.Memory)
}
