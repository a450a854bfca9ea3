package tune

import (
	"net/netip"
)

// ClusterFacts are what was read of a cluster. The zero ClusterFacts know
// nothing.
type ClusterFacts struct {
	// From says where they were read, such as "cluster https://10.0.0.1:6443".
	From  string
	Nodes []NodeFacts
	// Network is OpenShift's own description of its ranges, where there is one.
	Network *NetworkFacts
	// Pods are all that are not over.
	Pods int64
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
	Pods     int64 // that are not over
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
	var list []NodeFacts
	for _, n := range f.Nodes {
		if n.Worker {
			list = append(list, n)
		}
	}
	return list
}

// Subnet fills in what was not given otherwise.
func (f ClusterFacts) Subnet(p *Subnet) {
	if !f.Known() {
		return
	}
	if !p.Nodes.Ok() && len(f.Nodes) > 0 {
		p.Nodes = Given(int64(len(f.Nodes)), "read from "+f.From)
	}
	most := int64(0)
	for _, n := range f.Nodes {
		most = max(most, n.MaxPods)
		if n.MaxPods == most && most > 0 {
			p.MaxPods = Given(most, "read from node "+n.Name)
		}
	}
	if f.Network != nil {
		if !p.Platform.Ok() {
			p.Platform = Given(OpenShift, "read from "+f.From)
		}
		if !p.Network.Ok() && (f.Network.Type == OVNKubernetes || f.Network.Type == OpenShiftSDN) {
			p.Network = Given(f.Network.Type, "read from "+f.From)
		}
		if len(p.ClusterCIDRs) == 0 {
			for i, c := range f.Network.Cluster {
				four, six := byFamily(p.ClusterCIDRs)
				if c.Addr().Is4() && !four.Ok() {
					p.ClusterCIDRs = append(p.ClusterCIDRs, Given(c, "read from "+f.From))
					p.HostPrefix = p.HostPrefix.orRead(f.Network.Prefixes[i], f.From)
				} else if !c.Addr().Is4() && !six.Ok() {
					p.ClusterCIDRs = append(p.ClusterCIDRs, Given(c, "read from "+f.From))
					p.HostPrefix6 = p.HostPrefix6.orRead(f.Network.Prefixes[i], f.From)
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
	if !p.Platform.Ok() {
		p.Platform = Given(Kubernetes, "read from "+f.From+", which is no OpenShift")
	}
	for _, n := range f.Nodes {
		for _, c := range n.PodCIDRs {
			from := "node " + n.Name
			if c.Addr().Is4() {
				p.HostPrefix = p.HostPrefix.orRead(int64(c.Bits()), from)
			} else {
				p.HostPrefix6 = p.HostPrefix6.orRead(int64(c.Bits()), from)
			}
		}
	}
}

// orRead is the parameter, or what was read.
func (in In[T]) orRead(value T, from string) In[T] {
	if in.Ok() {
		return in
	}
	return Given(value, "read from "+from)
}

// Kubelet fills in what was not given otherwise.
func (f ClusterFacts) Kubelet(p *Kubelet) {
	if !f.Known() {
		return
	}
	workers := f.Workers()
	if f.Network == nil && !p.Platform.Ok() {
		p.Platform = Given(Kubernetes, "read from "+f.From+", which is no OpenShift")
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
	if f.Network == nil && !p.Platform.Ok() {
		p.Platform = Given(Kubernetes, "read from "+f.From+", which is no OpenShift")
	}
	var k Kubelet
	f.Kubelet(&k)
	for _, in := range []struct{ into, from *In[int64] }{{&p.Nodes, &k.Nodes}, {&p.MaxPods, &k.NowMaxPods}} {
		if !in.into.Ok() {
			*in.into = *in.from
		}
	}
	if !p.Cores.Ok() {
		p.Cores = k.Cores
	}
	if !p.Memory.Ok() {
		p.Memory = k.Memory
	}
}
