package objects

import "testing"

func TestNetworks(t *testing.T)  { networks().check(t) }
func TestPodLimits(t *testing.T) { podLimits().check(t) }

// networks hold the networks of an installation.
func networks() table {
	return table{"a.install", []row{
		{
			why:   "two subnets of /23 are enough for two nodes, and three are asked for",
			fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 2}]\ncontrolPlane: {replicas: 1}\n",
			want:  `a.install:3:39: error: 10.128.0.0/22 in subnets of /23 is enough for 2 nodes, and there are 3 [subnet]`,
			but:   "two nodes fit",
			near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 1}]\ncontrolPlane: {replicas: 1}\n",
		},
		{
			but:  "a second network brings more subnets, and unknown workers are not judged",
			near: "-- a.install --\nnetworking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\n  - {cidr: 10.136.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 3}]\n-- b.install --\nnetworking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/24, hostPrefix: 24}\ncontrolPlane: {replicas: 3}\n",
		},
		{
			why:   "a node's subnet is larger than the network",
			fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 13}\n",
			want:  `a.install:3:39: error: a node's subnet of /13 is larger than the whole cluster network 10.128.0.0/14 [subnet]`,
			but:   "one node may have all of it",
			near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 14}\n",
		},
		{
			why:   "a subnet of /31 has no address for pods",
			fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 31}\n",
			want:  `a.install:3:39: error: a node's subnet of /31 has no address for pods [subnet]`,
			but:   "a /30 has two, and IPv6 counts to 126",
			near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 30}\n  - {cidr: \"fd01::/48\", hostPrefix: 126}\n",
		},
		{
			why:   "an address of three numbers is none",
			fires: "networking:\n  serviceNetwork: [172.30.0/16]\n",
			want:  `a.install:2:20: error: serviceNetwork is no range of addresses: "172.30.0/16" [subnet]`,
			but:   "a script fills in the range",
			near:  "networking:\n  serviceNetwork: [172.30.0.0/16, \"${RANGE}\"]\n",
		},
		{
			why:   "bits are set behind the length",
			fires: "networking:\n  machineNetwork: [{cidr: 192.168.1.1/24}]\n",
			want:  `a.install:2:27: error: machineNetwork 192.168.1.1/24 has bits set behind its /24 [subnet]`,
			but:   "the address begins its range; one of /32 is its own",
			near:  "networking:\n  machineNetwork: [{cidr: 192.168.1.0/24}, {cidr: 192.168.2.1/32}]\n",
		},
		{
			why:   "one range holds the other: packets go to the wrong one",
			fires: "networking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n  serviceNetwork: [10.131.255.0/24]\n",
			want:  `a.install:3:20: error: serviceNetwork 10.131.255.0/24 overlaps with clusterNetwork 10.128.0.0/14 on line 2 [subnet-overlap]`,
			but:   "the next range begins right behind it",
			near:  "networking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n  serviceNetwork: [10.132.0.0/24]\n",
		},
		{
			why:   "the range that stands later is the one to move",
			fires: "networking:\n  serviceNetwork: [10.131.255.0/24]\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n",
			want:  `a.install:3:27: error: clusterNetwork 10.128.0.0/14 overlaps with serviceNetwork 10.131.255.0/24 on line 2 [subnet-overlap]`,
			but:   "two configurations are two clusters",
			near:  "-- a.install --\nnetworking:\n  serviceNetwork: [10.131.255.0/24]\n-- b.install --\nnetworking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n",
		},
		{
			why:   "the object Network of a cluster has the same networks",
			fires: "-- b.yaml --\napiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.31.0.1/16]\n-- a.yaml --\napiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.30.0.1/16]\n",
			want: `b.yaml:5:20: error: serviceNetwork 172.31.0.1/16 has bits set behind its /16 [subnet]
a.yaml:5:20: error: serviceNetwork 172.30.0.1/16 has bits set behind its /16 [subnet]`,
			but:  "a Network of another group is something else",
			near: "-- a.yaml --\napiVersion: example.com/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.30.0.1/16]\n",
		},
	}}
}

// podLimits hold the pods per node, and the addresses of its subnet.
func podLimits() table {
	kubelet := func(pods, networks string) string {
		text := "-- a.yaml --\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: " + pods + "\n"
		if networks != "" {
			text += "-- b.install --\nnetworking:\n  clusterNetwork: [" + networks + "]\n"
		}
		return text
	}
	return table{"a.yaml", []row{
		{
			why:   "511 pods do not get an address in a /23",
			fires: kubelet("511", "{cidr: 10.128.0.0/14, hostPrefix: 23}"),
			want:  `a.yaml:3:10: error: maxPods is 511, and a node's subnet of /23 has 510 addresses (in b.install:2) [pods-above-subnet]`,
			but:   "494 pods and 16 addresses of the node's own fit",
			near:  kubelet("494", "{cidr: 10.128.0.0/14}"),
		},
		{
			why:   "the node itself uses some of the addresses",
			fires: kubelet("495", "{cidr: 10.128.0.0/14, hostPrefix: 23}"),
			want:  `a.yaml:3:10: warning: maxPods is 495, and of the 510 addresses of a node's subnet of /23 the node itself uses some (in b.install:2) [pods-above-subnet]`,
			but:   "a /22 has room for more",
			near:  kubelet("1006", "{cidr: 10.128.0.0/14, hostPrefix: 22}"),
		},
		{
			why:   "with two families the smaller subnet binds",
			fires: kubelet("255", "{cidr: \"fd01::/48\", hostPrefix: 64}, {cidr: 10.128.0.0/14, hostPrefix: 24}"),
			want:  `a.yaml:3:10: error: maxPods is 255, and a node's subnet of /24 has 254 addresses (in b.install:2) [pods-above-subnet]`,
			but:   "IPv6 alone has addresses for all",
			near:  kubelet("255", "{cidr: \"fd01::/48\", hostPrefix: 64}"),
		},
		{
			why:   "no network is given: a note says that nothing was checked",
			fires: kubelet("495", ""),
			want:  `a.yaml:3:10: note: no cluster network is among the files: whether a node's subnet has 495 addresses was not checked (a /23, the default, has 510) [pods-above-subnet]`,
			but:   "494 fit into the default",
			near:  kubelet("494", ""),
		},
	}}
}
