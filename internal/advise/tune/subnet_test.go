package tune

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func ranges(texts ...string) (list []param.In[netip.Prefix]) {
	for _, s := range texts {
		list = append(list, param.Given(netip.MustParsePrefix(s), "flag"))
	}
	return list
}

func TestSubnetFigures(t *testing.T) {
	// R16: 10.128.0.0/10 gives 8192 nodes with 510 addresses each.
	a, err := cluster.TuneSubnet(cluster.Subnet{ClusterCIDRs: ranges("10.128.0.0/10"), HostPrefix: count(23)})
	answered(t, a, err)
	wantResult(t, a, "nodes", int64(8192))
	wantResult(t, a, "addressesPerNode", int64(510))
	wantResult(t, a, "podsPerNode", int64(494))
	wantResult(t, a, "serviceCIDR", "172.30.0.0/16")
	wantResult(t, a, "services", int64(65534)) // R15's 65,536, less the first and the last
	if c := correction(t, a, "R15"); !strings.Contains(c.Right, "512 nodes") || !strings.Contains(c.Right, "/13") {
		t.Errorf("%+v", c)
	}
	inventory := fileOf(t, a, "inventory-openshift3.ini")
	for _, part := range []string{"[OSEv3:vars]", "osm_cluster_network_cidr=10.128.0.0/10", "osm_host_subnet_length=9"} {
		if !strings.Contains(inventory, part) {
			t.Errorf("the inventory lacks %q:\n%s", part, inventory)
		}
	}

	// R15: the defaults give 512, and 1024 nodes need a /13.
	a, err = cluster.TuneSubnet(cluster.Subnet{})
	answered(t, a, err)
	wantResult(t, a, "nodes", int64(512))
	a, err = cluster.TuneSubnet(cluster.Subnet{Nodes: count(1024)})
	answered(t, a, err)
	wantResult(t, a, "clusterCIDR", "10.128.0.0/13")

	// D3: 500 pods need a /22, since a /23 has 510 and 16 are the node's own.
	a, err = cluster.TuneSubnet(cluster.Subnet{PodsPerNode: count(500)})
	answered(t, a, err)
	wantResult(t, a, "hostPrefix", int64(22))
	// D3: 2500 pods on 26 nodes need a /20 each.
	a, err = cluster.TuneSubnet(cluster.Subnet{Nodes: count(26), PodsPerNode: count(2500)})
	answered(t, a, err)
	wantResult(t, a, "hostPrefix", int64(20))
	wantResult(t, a, "clusterCIDR", "10.128.0.0/15")
	wantResult(t, a, "nodesLeft", int64(6))
	if a.Impossible() {
		t.Errorf("%+v", a.Findings)
	}
	if !strings.Contains(fileOf(t, a, "install-config-networking.yaml"), "hostPrefix: 20") {
		t.Error("install-config lacks the hostPrefix")
	}
}

func TestSubnetAgainstWhatIsAsked(t *testing.T) {
	for _, tt := range []struct {
		why, what string
		p         cluster.Subnet
		grade     answer.Grade
	}{
		{"more nodes than subnets", "nodes in", cluster.Subnet{ClusterCIDRs: ranges("10.128.0.0/20"), Nodes: count(100)}, answer.Cannot},
		{"headroom counts", "nodes in", cluster.Subnet{Nodes: count(400), Growth: param.Given[param.Share](0.5, "flag"), ClusterCIDRs: ranges("10.128.0.0/14")}, answer.Cannot},
		{"without headroom they fit", "nodes in", cluster.Subnet{Nodes: count(400), ClusterCIDRs: ranges("10.128.0.0/14")}, answer.OK},
		{"a /23 is too small for 500", "pods per node in a /23", cluster.Subnet{HostPrefix: count(23), PodsPerNode: count(500)}, answer.Cannot},
		{"494 is the most", "pods per node in a /23", cluster.Subnet{HostPrefix: count(23), PodsPerNode: count(494)}, answer.OK},
		{"495 is one too many", "pods per node in a /23", cluster.Subnet{HostPrefix: count(23), PodsPerNode: count(495)}, answer.Cannot},
		{"pods and machines", "machine network 10.128.0.0/16 and cluster network", cluster.Subnet{MachineCIDRs: ranges("10.128.0.0/16")}, answer.Cannot},
		{"OVN's own range", "OVN-Kubernetes join subnet", cluster.Subnet{ClusterCIDRs: ranges("100.64.0.0/14")}, answer.Cannot},
		{"services in the pods' range", "cluster network 10.0.0.0/8 and service network", cluster.Subnet{ClusterCIDRs: ranges("10.0.0.0/8"), ServiceCIDRs: ranges("10.96.0.0/16")}, answer.Cannot},
		{"services do not fit", "services in", cluster.Subnet{ServiceCIDRs: ranges("172.30.0.0/24"), Services: count(300)}, answer.Cannot},
		{"254 services, two of them the cluster's", "cluster network", cluster.Subnet{ServiceCIDRs: ranges("172.30.0.0/24"), Services: count(252)}, answer.OK},
		{"kubelets that allow more than there are addresses", "maxPods of the nodes", cluster.Subnet{Cluster: cluster.Facts{Nodes: []cluster.NodeFacts{{Name: "a", MaxPods: 500}}}}, answer.Change},
		{"an IPv6 range too wide for kube-controller-manager", "IPv6 node subnets", cluster.Subnet{Platform: param.Given(param.Kubernetes, "flag"), ClusterCIDRs: ranges("fd00::/40")}, answer.Cannot},
	} {
		a, err := cluster.TuneSubnet(tt.p)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		answered(t, a, nil)
		if f := finding(t, a, tt.what); f.Grade != tt.grade {
			t.Errorf("%s: %+v", tt.why, f)
		}
		if a.Impossible() != (tt.grade == answer.Cannot) {
			t.Errorf("%s: impossible %v", tt.why, a.Impossible())
		}
	}
	for why, p := range map[string]cluster.Subnet{
		"no private range has room":        {Nodes: count(100000), PodsPerNode: count(2500)},
		"two ranges of one family":         {Platform: param.Given(param.Kubernetes, "flag"), ClusterCIDRs: ranges("10.0.0.0/14", "10.4.0.0/14")},
		"every address there is":           {ClusterCIDRs: ranges("0.0.0.0/0")},
		"loopback":                         {ClusterCIDRs: ranges("127.0.0.0/8")},
		"multicast":                        {ServiceCIDRs: ranges("224.0.0.0/4")},
		"a subnet larger than the range":   {ClusterCIDRs: ranges("10.128.0.0/24"), HostPrefix: count(23)},
		"no nodes":                         {Nodes: count(0)},
		"Kubernetes without any size":      {Platform: param.Given(param.Kubernetes, "flag")},
		"no room beside what is in use":    {Nodes: count(60000), Avoid: ranges("10.0.0.0/8")},
		"a service range nobody has space": {Services: count(900_000_000)},
	} {
		if a, err := cluster.TuneSubnet(p); err == nil {
			t.Errorf("%s was taken: %s", why, a.Title)
		}
	}
}

// OpenShift takes several ranges of one family, and one host prefix serves
// whichever family there is.
func TestSubnetSeveralRanges(t *testing.T) {
	a, err := cluster.TuneSubnet(cluster.Subnet{ClusterCIDRs: ranges("10.0.0.0/14", "10.4.0.0/15"), Nodes: count(700)})
	answered(t, a, err)
	wantResult(t, a, "nodes", int64(512+256))
	if text := fileOf(t, a, "install-config-networking.yaml"); a.Impossible() || !strings.Contains(text, "cidr: 10.4.0.0/15\n    hostPrefix: 23\n") || strings.Index(text, "10.0.0.0/14") > strings.Index(text, "10.4.0.0/15") {
		t.Errorf("%+v\n%s", a.Findings, text)
	}
	a, err = cluster.TuneSubnet(cluster.Subnet{ClusterCIDRs: ranges("fd01::/48"), HostPrefix: count(64)})
	answered(t, a, err)
	wantResult(t, a, "nodes6", int64(65536))
}

func TestSubnetDualStack(t *testing.T) {
	a, err := cluster.TuneSubnet(cluster.Subnet{ClusterCIDRs: ranges("10.128.0.0/14", "fd01::/48")})
	answered(t, a, err)
	wantResult(t, a, "nodes", int64(512))
	wantResult(t, a, "nodes6", int64(65536))
	wantResult(t, a, "addressesPerNode6", "2^64")
	wantResult(t, a, "serviceCIDR6", "fd02::/112")
	var config struct {
		Networking struct {
			ClusterNetwork []struct {
				CIDR       string
				HostPrefix int `yaml:"hostPrefix"`
			} `yaml:"clusterNetwork"`
			ServiceNetwork []string `yaml:"serviceNetwork"`
		} `yaml:"networking"`
	}
	if err := yaml.Unmarshal([]byte(fileOf(t, a, "install-config-networking.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	if n := config.Networking; len(n.ClusterNetwork) != 2 || n.ClusterNetwork[1].CIDR != "fd01::/48" || n.ClusterNetwork[1].HostPrefix != 64 || len(n.ServiceNetwork) != 2 {
		t.Errorf("%+v", n)
	}
	// OpenShift 3 knew no IPv6: no inventory.
	for _, f := range a.Files {
		if strings.Contains(f.Path, "inventory") {
			t.Error("an inventory for two families")
		}
	}
	a, err = cluster.TuneSubnet(cluster.Subnet{Platform: param.Given(param.Kubernetes, "flag"), Nodes: count(10), DualStack: param.Given(true, "flag")})
	answered(t, a, err)
	text := fileOf(t, a, "kubeadm-cluster.yaml")
	for _, part := range []string{"kubeadm.k8s.io/v1beta4", "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6", "podSubnet: 10.128.0.0/20,fd00:10:244::/48"} {
		if !strings.Contains(text, part) {
			t.Errorf("the file lacks %q:\n%s", part, text)
		}
	}
}

// What was given decides the direction, and both directions agree.
func TestSubnetBothWaysAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		nodes, pods := int64(1+random.IntN(3000)), int64(1+random.IntN(4000))
		a, err := cluster.TuneSubnet(cluster.Subnet{Nodes: count(nodes), PodsPerNode: count(pods)})
		if err != nil {
			// Only what needs more than the largest private range may fail.
			if size := nodes * (pods + 18); size < 1<<22 {
				t.Fatalf("%d nodes of %d pods: %v", nodes, pods, err)
			}
			continue
		}
		if a.Impossible() {
			t.Fatalf("%d nodes of %d pods: %+v", nodes, pods, a.Findings)
		}
		// The next smaller subnets or range would not do.
		prefix := a.Result("hostPrefix").(int64)
		if smaller := int64(1)<<(32-prefix-1) - 2 - 16; smaller >= pods {
			t.Fatalf("%d pods in a /%d, a /%d would do", pods, prefix, prefix+1)
		}
		if n := a.Result("nodes").(int64); n < nodes || n/2 >= nodes {
			t.Fatalf("%d nodes in %d subnets", nodes, n)
		}
		again, err := cluster.TuneSubnet(cluster.Subnet{ClusterCIDRs: ranges(a.Result("clusterCIDR").(string)), HostPrefix: count(prefix), Nodes: count(nodes), PodsPerNode: count(pods)})
		if err != nil || again.Impossible() {
			t.Fatalf("the other way: %v, %+v", err, again.Findings)
		}
	}
}

func TestSubnetFromACluster(t *testing.T) {
	facts := cluster.Facts{From: "cluster x", Nodes: []cluster.NodeFacts{
		{Name: "a", Worker: true, MaxPods: 250, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}},
		{Name: "b", Worker: true, MaxPods: 110},
	}}
	a, err := cluster.TuneSubnet(cluster.Subnet{Cluster: facts})
	answered(t, a, err)
	wantResult(t, a, "hostPrefix", int64(24))
	if f := finding(t, a, "maxPods of the nodes"); f.Grade != answer.Change || f.Now != "250" {
		t.Errorf("%+v", f)
	}
	for _, in := range a.Inputs {
		if in.Name == "hostPrefix" && in.From != "read from node a" {
			t.Errorf("%+v", in)
		}
	}
	// What the user says counts more.
	p := cluster.Subnet{HostPrefix: count(20), Nodes: count(7), Cluster: facts}
	p.Cases()
	if p.HostPrefix.Value != 20 || p.Nodes.Value != 7 {
		t.Errorf("%+v", p)
	}
	facts.Network = &cluster.NetworkFacts{Type: param.OVNKubernetes, Cluster: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, Prefixes: []int64{22}, Service: []netip.Prefix{netip.MustParsePrefix("172.30.0.0/16")}}
	a, err = cluster.TuneSubnet(cluster.Subnet{Cluster: facts})
	answered(t, a, err)
	wantResult(t, a, "nodes", int64(256))
}
