package objects

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

func TestNetworks(t *testing.T)  { looks().Check(t, networks()) }
func TestPodLimits(t *testing.T) { looks().Check(t, podLimits()) }

// networks hold the networks of an installation.
func networks() linttest.Table {
	return linttest.Table{File: "a.install", Rows: []linttest.Row{
		{
			Why:   "two subnets of /23 are enough for two nodes, and three are asked for",
			Fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 2}]\ncontrolPlane: {replicas: 1}\n",
			Want:  `a.install:3:39: error: 10.128.0.0/22 in subnets of /23 is enough for 2 nodes, and there are 3 [subnet]`,
			But:   "two nodes fit",
			Near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 1}]\ncontrolPlane: {replicas: 1}\n",
		},
		{
			But:  "a second network brings more subnets, and unknown workers are not judged",
			Near: "-- a.install --\nnetworking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/22, hostPrefix: 23}\n  - {cidr: 10.136.0.0/22, hostPrefix: 23}\ncompute: [{replicas: 3}]\n-- b.install --\nnetworking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/24, hostPrefix: 24}\ncontrolPlane: {replicas: 3}\n",
		},
		{
			Why:   "a node's subnet is larger than the network",
			Fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 13}\n",
			Want:  `a.install:3:39: error: a node's subnet of /13 is larger than the whole cluster network 10.128.0.0/14 [subnet]`,
			But:   "one node may have all of it",
			Near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 14}\n",
		},
		{
			Why:   "a subnet of /31 has no address for pods",
			Fires: "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 31}\n",
			Want:  `a.install:3:39: error: a node's subnet of /31 has no address for pods [subnet]`,
			But:   "a /30 has two, and IPv6 counts to 126",
			Near:  "networking:\n  clusterNetwork:\n  - {cidr: 10.128.0.0/14, hostPrefix: 30}\n  - {cidr: \"fd01::/48\", hostPrefix: 126}\n",
		},
		{
			Why:   "an address of three numbers is none",
			Fires: "networking:\n  serviceNetwork: [172.30.0/16]\n",
			Want:  `a.install:2:20: error: serviceNetwork is not a range of addresses: "172.30.0/16" [subnet]`,
			But:   "a script fills in the range",
			Near:  "networking:\n  serviceNetwork: [172.30.0.0/16, \"${RANGE}\"]\n",
		},
		{
			Why:   "bits are set behind the length",
			Fires: "networking:\n  machineNetwork: [{cidr: 192.168.1.1/24}]\n",
			Want:  `a.install:2:27: error: machineNetwork 192.168.1.1/24 has bits set behind its /24 [subnet]`,
			But:   "the address begins its range; one of /32 is its own",
			Near:  "networking:\n  machineNetwork: [{cidr: 192.168.1.0/24}, {cidr: 192.168.2.1/32}]\n",
		},
		{
			Why:   "one range holds the other: packets go to the wrong one",
			Fires: "networking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n  serviceNetwork: [10.131.255.0/24]\n",
			Want:  `a.install:3:20: error: serviceNetwork 10.131.255.0/24 overlaps with clusterNetwork 10.128.0.0/14 on line 2 [subnet-overlap]`,
			But:   "the next range begins right behind it",
			Near:  "networking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n  serviceNetwork: [10.132.0.0/24]\n",
		},
		{
			Why:   "the range that stands later is the one to move",
			Fires: "networking:\n  serviceNetwork: [10.131.255.0/24]\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n",
			Want:  `a.install:3:27: error: clusterNetwork 10.128.0.0/14 overlaps with serviceNetwork 10.131.255.0/24 on line 2 [subnet-overlap]`,
			But:   "two configurations are two clusters",
			Near:  "-- a.install --\nnetworking:\n  serviceNetwork: [10.131.255.0/24]\n-- b.install --\nnetworking:\n  clusterNetwork: [{cidr: 10.128.0.0/14}]\n",
		},
		{
			Why:   "the object Network of a cluster has the same networks",
			Fires: "-- b.yaml --\napiVersion: operator.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.31.0.1/16]\n-- a.yaml --\napiVersion: config.openshift.io/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.30.0.1/16]\n",
			Want: `b.yaml:5:20: error: serviceNetwork 172.31.0.1/16 has bits set behind its /16 [subnet]
a.yaml:5:20: error: serviceNetwork 172.30.0.1/16 has bits set behind its /16 [subnet]`,
			But:  "a Network of another group is something else",
			Near: "-- a.yaml --\napiVersion: example.com/v1\nkind: Network\nmetadata: {name: cluster}\nspec:\n  serviceNetwork: [172.30.0.1/16]\n",
		},
	}}
}

// podLimits hold the pods per node, and the addresses of its subnet.
func podLimits() linttest.Table {
	kubelet := func(pods, networks string) string {
		text := "-- a.yaml --\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: " + pods + "\n"
		if networks != "" {
			text += "-- b.install --\nnetworking:\n  clusterNetwork: [" + networks + "]\n"
		}
		return text
	}
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "511 pods do not get an address in a /23",
			Fires: kubelet("511", "{cidr: 10.128.0.0/14, hostPrefix: 23}"),
			Want:  `a.yaml:3:10: error: maxPods is 511, and a node's subnet of /23 has 510 addresses (in b.install:2) [pods-above-subnet]`,
			But:   "494 pods and 16 addresses of the node's own fit",
			Near:  kubelet("494", "{cidr: 10.128.0.0/14}"),
		},
		{
			Why:   "the node itself uses some of the addresses",
			Fires: kubelet("495", "{cidr: 10.128.0.0/14, hostPrefix: 23}"),
			Want:  `a.yaml:3:10: warning: maxPods is 495, and of the 510 addresses of a node's subnet of /23 the node itself uses some (in b.install:2) [pods-above-subnet]`,
			But:   "a /22 has room for more",
			Near:  kubelet("1006", "{cidr: 10.128.0.0/14, hostPrefix: 22}"),
		},
		{
			Why:   "with two families the smaller subnet binds",
			Fires: kubelet("255", "{cidr: \"fd01::/48\", hostPrefix: 64}, {cidr: 10.128.0.0/14, hostPrefix: 24}"),
			Want:  `a.yaml:3:10: error: maxPods is 255, and a node's subnet of /24 has 254 addresses (in b.install:2) [pods-above-subnet]`,
			But:   "IPv6 alone has addresses for all",
			Near:  kubelet("255", "{cidr: \"fd01::/48\", hostPrefix: 64}"),
		},
		{
			Why:   "no network is given: a note says that nothing was checked",
			Fires: kubelet("495", ""),
			Want:  `a.yaml:3:10: note: no cluster network is among the files: whether a node's subnet has 495 addresses was not checked (a /23, the default, has 510) [pods-above-subnet]`,
			But:   "494 fit into the default",
			Near:  kubelet("494", ""),
		},
	}}
}
