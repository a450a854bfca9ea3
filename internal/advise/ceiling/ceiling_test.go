package ceiling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// read is a source of facts that are known.
func read(from string) Source { return Source{From: from} }

// cluster is a cluster of equal nodes of which everything is known.
func cluster(nodes int, maxPods int64) Facts {
	f := Facts{
		Axis:     Axis{Name: "pods-per-node", Unit: "pods/node"},
		AllNodes: nodes, NodesRead: read("nodes"), PodsRead: read("pods"),
		Namespaces: Fact{Source: read("namespaces"), Value: 4}, Services: Fact{Source: read("services"), Value: 1}, ServicesTaken: 1,
		ServiceAddresses: Ranges{List: []Range{{Prefix: netip.MustParsePrefix("172.30.0.0/16")}}, Source: read("servicecidrs")},
		PodAddresses:     Ranges{Source: Source{Why: "nobody tells"}},
	}
	for i := range nodes {
		f.Nodes = append(f.Nodes, Node{
			Name:        fmt.Sprintf("n%d", i),
			Allocatable: Amounts{Pods: maxPods, CPU: 56_000, Memory: 512 << 30}, Requested: Amounts{},
		})
	}
	return f
}

// heavy is the document's workload: a database, an application and the
// database's service in each iteration, all in one namespace.
func heavy() *Load {
	pod := Pod{Containers: 1, ServiceLinks: true, Requests: Amounts{}}
	return &Load{Workload: "node-density-heavy", Entries: []Entry{
		{Resource: "deployments.apps", Copies: 1, Every: 1, Pods: 1, Pod: pod},
		{Resource: "deployments.apps", Copies: 1, Every: 1, Pods: 1, Pod: pod},
		{Resource: "services", Copies: 1, Every: 1, ClusterIP: true, LinkBytes: 350},
	}}
}

// row finds a ceiling by its name.
func row(t *testing.T, table record.CeilingTable, name string) record.Ceiling {
	t.Helper()
	i := slices.IndexFunc(table.Ceilings, func(c record.Ceiling) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no ceiling %s", name)
	}
	return table.Ceilings[i]
}

// said is a ceiling in short, to compare with.
func said(c record.Ceiling) string {
	text := string(c.Class)
	if c.Level != nil {
		text += " " + levelText(*c.Level)
	}
	if c.Binds {
		text += " binds"
	}
	return text
}

// The documents' arithmetic of addresses.
func TestAddressesOfRanges(t *testing.T) {
	for _, tt := range []struct {
		prefix string
		want   float64
		why    string
	}{
		{"10.128.0.0/23", 510, "the default part of a node (R15)"},
		{"10.128.0.0/22", 1022, "room for 500 pods and the node's own (D3)"},
		{"10.128.0.0/20", 4094, "room for 2500 pods (D3)"},
		{"10.42.0.0/24", 254, "the default of other networks"},
		{"172.30.0.0/16", 65534, "65,536 addresses for services (R15), less two"},
		{"10.0.0.0/31", 0, "neither address of two is left"},
		{"10.0.0.0/32", 0, "one address is the network's own"},
		{"fd00::/112", 65535, "there is no broadcast in the sixth version"},
	} {
		if got := Addresses(netip.MustParsePrefix(tt.prefix)); got != tt.want {
			t.Errorf("%s has %g addresses, want %g: %s", tt.prefix, got, tt.want, tt.why)
		}
	}
	for _, tt := range []struct {
		prefix  string
		perNode int
		want    float64
		why     string
	}{
		{"10.128.0.0/14", 23, 512, "the usual default, which is half of what the document says (R15)"},
		{"10.128.0.0/13", 23, 1024, "what 1024 nodes need"},
		{"10.128.0.0/10", 23, 8192, "the largest of the document (R16)"},
		{"10.128.0.0/14", 13, 0, "a part larger than the whole"},
	} {
		if got := NodeRanges(Range{Prefix: netip.MustParsePrefix(tt.prefix), PerNode: tt.perNode}); got != tt.want {
			t.Errorf("%s in parts of /%d is for %g nodes, want %g: %s", tt.prefix, tt.perNode, got, tt.want, tt.why)
		}
	}
}

// One namespace fails above 450 pods per node on 26 nodes, by 5850 services
// (D16): the limit of 5000 is met at 385 already.
func TestServicesOfOneNamespace(t *testing.T) {
	f := cluster(26, 2500)
	f.Load = heavy()
	c := row(t, Compute(f), "testedServicesPerNamespace")
	if said(c) != "advisory 384.61" || *c.Total != 10_000 {
		t.Errorf("5000 services allow %s, in all %v pods; want 5000 iterations of 2 pods on 26 nodes", said(c), *c.Total)
	}
	services := f.Load.within("", objects("services"))
	if got := services(26 * 450 / 2); got != 5850 {
		t.Errorf("450 pods on each of 26 nodes take %d services, want 5850", got)
	}
	// The variables of so many services are what breaks.
	if c := row(t, Compute(f), "serviceLinks"); c.Class != record.CeilingAdvisory || *c.Level < 400 || *c.Level > 500 {
		t.Errorf("the environment allows %s: want it to be full between 400 and 450 or a little above, as seen", said(c))
	}
	// The remedy: namespaced iterations.
	f.Load.PerNamespace = 1000
	for _, name := range []string{"testedServicesPerNamespace", "serviceLinks"} {
		if c := row(t, Compute(f), name); c.Class != record.CeilingUnbound {
			t.Errorf("with 1000 iterations in a namespace %s is %s, want unbound", name, said(c))
		}
	}
}

func TestCeilings(t *testing.T) {
	bare := func(requests Amounts) *Load {
		return &Load{Workload: "w", Entries: []Entry{{Resource: Pods, Copies: 1, Every: 1, Pods: 1, Pod: Pod{Containers: 1, Requests: requests}}}}
	}
	of := func(nodes int, maxPods int64, change func(*Facts)) Facts {
		f := cluster(nodes, maxPods)
		f.Load = bare(nil)
		if change != nil {
			change(&f)
		}
		return f
	}
	ranges := func(prefix string) func(*Facts) {
		return func(f *Facts) {
			for i := range f.Nodes {
				f.Nodes[i].Ranges, f.Nodes[i].RangesFrom = []Range{{Prefix: netip.MustParsePrefix(prefix)}}, PodCIDRs
			}
		}
	}
	both := func(changes ...func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			for _, change := range changes {
				change(f)
			}
		}
	}
	simulated := func(f *Facts) {
		for i := range f.Nodes {
			f.Nodes[i].Simulated = true
		}
	}
	for _, tt := range []struct {
		facts  Facts
		name   string
		want   string
		reason string // part of it
		note   string // part of it
		why    string
	}{
		{of(20, 110, nil), "allocatablePods", "hard 110 binds", "Too many pods on 20 of 20 nodes", "", "the demo's shape"},
		{of(20, 110, func(f *Facts) { f.AllNodes = 23 }), "allocatablePods", "hard 110 binds", "Too many pods on 20 of 23 nodes", "", "the scheduler counts the nodes too that the workload cannot land on"},
		{of(3, 15, func(f *Facts) { f.Nodes[0].Allocatable[Pods] = 30 }), "allocatablePods", "hard 20 binds", "", "15 to 30 on a node", "a level is an average"},
		{of(3, 15, func(f *Facts) { f.Nodes[0].Standing, f.Nodes[0].Static, f.Nodes[0].Daemons = 5, 2, 3 }), "allocatablePods", "hard 15 binds", "", "5 pods stand there, 2 of them static and 3 of DaemonSets", "what stands there counts in the level and takes a place"},
		{of(3, 15, func(f *Facts) { f.Pending = 6 }), "allocatablePods", "hard 15 binds", "", "6 more wait", "so do pods that wait for one of these nodes"},
		{of(2, 15, func(f *Facts) { f.Nodes[0].Standing = 20 }), "allocatablePods", "hard 17.5 binds", "", "", "a node that is over full has no room, not less than none"},
		{of(2, 15, func(f *Facts) { f.PodsRead = Source{Why: "not allowed"} }), "allocatablePods", "hard 15 binds", "", "what stands there is unknown: not allowed", "the level counts what stands there, so it is known all the same"},
		{of(2, 15, func(f *Facts) { f.NodesRead, f.Nodes = Source{Why: "not allowed"}, nil }), "allocatablePods", "unknown", "", "not allowed", "unknown is never unlimited"},

		{of(2, 500, func(f *Facts) { f.Load = bare(Amounts{CPU: 1000}) }), "allocatableCPU", "hard 56 binds", "Insufficient cpu on 2 of 2 nodes", "", "56 cores hold 56 pods of one"},
		{of(2, 500, func(f *Facts) { f.Load = bare(Amounts{CPU: 30_000}) }), "allocatableCPU", "hard 1 binds", "", "", "what is left of a node that is too small for a pod is lost"},
		{of(2, 500, func(f *Facts) { f.Load = bare(Amounts{CPU: 1000}); f.Nodes[0].Requested[CPU] = 6_500 }), "allocatableCPU", "hard 52.5 binds", "", "", "what is requested already is taken, and not counted as pods of the level where it stands for none"},
		{of(2, 500, func(f *Facts) { f.Load = bare(Amounts{Memory: 256 << 30}) }), "allocatableMemory", "hard 2 binds", "Insufficient memory", "", "memory binds in the same way"},
		{of(2, 500, func(f *Facts) {
			f.Load = bare(Amounts{"nvidia.com/gpu": 1})
			f.Nodes[0].Allocatable["nvidia.com/gpu"] = 4
		}), "allocatable:nvidia.com/gpu", "hard 2 binds", "Insufficient nvidia.com/gpu", "", "any resource that is requested"},
		{of(2, 500, nil), "allocatableCPU", "unbound", "", "request none", "pods without a request never run out of CPU"},
		{of(2, 500, func(f *Facts) { f.Load = bare(Amounts{CPU: 1000}); f.PodsRead = Source{Why: "not allowed"} }), "allocatableCPU", "unknown", "", "not allowed", "without what is requested already there is no figure"},
		{of(2, 40, func(f *Facts) {
			f.Load = bare(Amounts{CPU: 1000})
			f.Nodes[0].Allocatable[Pods], f.Nodes[1].Allocatable[CPU] = 10, 10_000
		}), "nodeResources", "hard 10 binds", "Insufficient cpu on 1 of 2 nodes", "1 nodes are full by cpu; 1 nodes are full by pods", "one node is full by pods, the other by CPU: 10 and 10, where each alone allows more"},
		{of(2, 500, func(f *Facts) {
			f.Load.Entries = append(f.Load.Entries, Entry{Resource: Pods, Copies: 1, Every: 1, Pods: 1, Pod: Pod{Requests: Amounts{CPU: 28_000}, Containers: 1}})
		}), "allocatableCPU", "hard 4 binds", "", "", "of two pods in an iteration one takes half a node: 4 of these, and 4 that take none"},

		{of(2, 2500, ranges("10.128.0.0/23")), "podAddressesPerNode", "hard 509 binds", "no IP addresses available", "510 addresses", "a /23 has 510 addresses, and the gateway takes one"},
		{of(2, 2500, ranges("10.128.0.0/22")), "podAddressesPerNode", "hard 1021 binds", "", "", "a /22"},
		{of(2, 2500, ranges("10.128.0.0/20")), "podAddressesPerNode", "hard 4093", "", "", "a /20 has room for 2500 pods"},
		{of(2, 2500, both(ranges("10.128.0.0/23"), func(f *Facts) { f.Nodes[0].Standing, f.Nodes[0].HostNetwork = 10, 4 })), "podAddressesPerNode", "hard 511 binds", "", "", "pods of the host's network stand there and take no address"},
		{of(2, 2500, both(ranges("10.128.0.0/23"), func(f *Facts) { f.Load.Entries[0].Pod.HostNetwork = true })), "podAddressesPerNode", "unbound", "", "", "pods of the host's network need no address"},
		{of(2, 2500, both(ranges("10.128.0.0/24"), simulated)), "podAddressesPerNode", "notEnforced 253", "", "past the end", "simulated nodes do not keep it"},
		{of(2, 2500, simulated), "podAddressesPerNode", "unknown", "", "without looking at the end", "and mostly have none"},
		{of(2, 2500, both(ranges("10.128.0.0/23"), func(f *Facts) { f.OwnAddresses = "calico-node" })), "podAddressesPerNode", "unknown", "", "calico-node", "a plug-in that takes no notice of the nodes' ranges"},
		{of(2, 2500, nil), "podAddressesPerNode", "unknown", "", "network plug-in", "no range of its own: unknown, not unlimited"},
		{of(2, 2500, func(f *Facts) {
			f.PodAddresses = Ranges{List: []Range{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), PerNode: 23}}, Source: read("network")}
		}), "podAddressesPerNode", "hard 509 binds", "", "", "the prefix of a node's part says it where the nodes do not"},
		{of(2, 2500, func(f *Facts) {
			f.PodAddresses = Ranges{List: []Range{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), PerNode: 23}}, Source: read("network")}
		}), "nodeRanges", "unbound", "", "10.128.0.0/14 in parts of a /23", "the network bounds the number of nodes"},
		{of(2, 2500, func(f *Facts) {
			f.PodAddresses = Ranges{List: []Range{{Prefix: netip.MustParsePrefix("10.0.0.0/24")}}, Source: read("network")}
			f.Addresses = 54
		}), "podAddresses", "hard 100 binds", "", "", "where nodes have no parts, the whole is shared: 254 less 54"},
		{of(2, 2500, func(f *Facts) { f.Nodes[0].Bridge, f.Nodes[1].Bridge = true, true }), "bridgePorts", "hard 1023 binds", "exchange full", "", "a Linux bridge has 1023 ports"},
		{of(2, 2500, func(f *Facts) { f.Nodes[0].Bridge = true }), "bridgePorts", "unknown", "", "1 of 2 nodes", "of some only"},
		{of(2, 2500, nil), "bridgePorts", "unknown", "", "1023", "the API does not tell"},

		{of(26, 2500, func(f *Facts) {
			f.Load = heavy()
			f.ServiceAddresses.List[0].Prefix = netip.MustParsePrefix("10.0.0.0/24")
		}), "serviceAddresses", "hard 19.46 binds", "range is full", "10.0.0.0/24", "the API server's own default: 253 services"},
		{of(26, 2500, func(f *Facts) { f.Load = heavy() }), "serviceAddresses", "hard 5041", "", "", "65,534 addresses, one taken: 65,533 iterations"},
		{of(26, 2500, nil), "serviceAddresses", "unbound", "", "makes no services", "pods alone take none"},
		{of(26, 2500, func(f *Facts) { f.Load = heavy(); f.ServiceAddresses = Ranges{Source: Source{Why: "an old API"}} }), "serviceAddresses", "unknown", "", "an old API", "the range is unknown"},
		{of(26, 2500, func(f *Facts) { f.Load = heavy(); f.Services = Fact{Source: Source{Why: "not allowed"}} }), "serviceAddresses", "unknown", "", "not allowed", "how many are taken is unknown"},

		{of(3, 500, func(f *Facts) { f.Quotas = []Quota{{Name: "q", Hard: Amounts{"pods": 20}, From: "q.yml"}} }), "quota:q:pods", "hard 6.66 binds", "exceeded quota: q", "", "20 pods on 3 nodes"},
		{of(3, 500, func(f *Facts) {
			f.Quotas = []Quota{{Name: "q", Hard: Amounts{"pods": 20}}}
			f.Load.PerNamespace = 20
		}), "quota:q:pods", "unbound", "", "", "a namespace never gets more than the quota allows"},
		{of(3, 500, func(f *Facts) {
			f.Load = bare(Amounts{CPU: 100})
			f.Quotas = []Quota{{Name: "q", Hard: Amounts{"requests.cpu": 2000}, Used: Amounts{"requests.cpu": 500}}}
		}), "quota:q:requests.cpu", "hard 5 binds", "exceeded quota: q", "", "1.5 cores are left for 15 pods"},
		{of(3, 500, func(f *Facts) { f.Quotas = []Quota{{Name: "q", Hard: Amounts{"requests.cpu": 2000}}} }), "quota:q:requests.cpu", "hard 0 binds", "must specify requests.cpu", "", "a quota on CPU refuses pods that do not say theirs"},
		{of(3, 500, func(f *Facts) { f.Quotas = []Quota{{Name: "q", Hard: Amounts{"pods": 20}, Scoped: true}} }), "quota:q:pods", "unknown", "", "scopes", "a quota by scopes"},
		{of(3, 500, func(f *Facts) { f.Quotas = []Quota{{Name: "q", Hard: Amounts{"requests.storage": 20}}} }), "quota:q:requests.storage", "unknown", "", "not looked at", "what is not counted is unknown"},
		{of(3, 500, func(f *Facts) {
			f.Load = heavy()
			f.Quotas = []Quota{{Name: "q", Hard: Amounts{"count/deployments.apps": 9}}}
		}), "quota:q:count/deployments.apps", "hard 2.66 binds", "", "", "9 deployments are 4 iterations of 2 pods"},
		{of(3, 500, func(f *Facts) {
			f.Load.Entries[0].Namespace = "there"
			f.Quotas = []Quota{{Name: "q", Namespace: "there", Hard: Amounts{"pods": 9}, Used: Amounts{"pods": 3}}}
		}), "quota:q:pods", "hard 2 binds", "", "", "a namespace that was there before has used some of its own"},
		{of(3, 500, func(f *Facts) { f.QuotasWhy = "those of x: not allowed" }), "quotas", "unknown", "", "not allowed", "quotas that may not be read"},

		{of(26, 2500, func(f *Facts) { f.Load = heavy() }), "testedDeploymentsPerNamespace", "advisory 76.92", "", "", "2000 deployments, two of them for an iteration"},
		{of(2, 5000, nil), "testedPodsPerNamespace", "advisory 1500", "", "", "3000 pods in the one namespace"},
		{of(2, 5000, nil), "testedPods", "advisory 75000", "", "", "150,000 pods"},
		{of(2, 5000, func(f *Facts) { f.Pods = 50_000 }), "testedPods", "advisory 50000", "", "", "less those that are elsewhere"},
		{of(2, 5000, nil), "testedContainers", "advisory 150000", "", "", "300,000 containers"},
		{of(2, 5000, func(f *Facts) { f.Load = heavy() }), "testedServices", "advisory 9999", "", "", "10,000 services, one there: 9999 iterations of two pods on two nodes"},
		{of(2, 5000, func(f *Facts) { f.Load.PerNamespace = 1 }), "testedNamespaces", "advisory 4998", "", "", "10,000 namespaces, 4 there"},
		{of(2, 5000, func(f *Facts) { f.Namespaces = Fact{Source: Source{Why: "not allowed"}} }), "testedNamespaces", "unknown", "", "not allowed", "unknown"},
		{of(2, 5000, nil), "testedPodsPerNode", "advisory 110", "", "", "110 pods of a node"},
		{of(2, 5000, func(f *Facts) { f.Nodes[0].Allocatable[CPU], f.Nodes[1].Allocatable[CPU] = 4000, 4000 }), "testedPodsPerNode", "advisory 40", "", "", "10 for each core, where there are few"},
		{of(2, 5000, nil), "testedPodsPerNodeOpenShift", "advisory 500", "", "", "the published maximum (D1)"},
		{of(2, 5000, nil), "shownPodsPerNode", "advisory 2500", "", "", "what was shown (D5)"},
		{of(2, 5000, func(f *Facts) { f.OpenShift = true }), "defaultPodsPerNode", "advisory 250", "", "", "OpenShift's default (D1)"},
		{of(2, 5000, nil), "testedNodes", "unbound", "", "", "pods do not make nodes"},

		{of(2, 250, func(f *Facts) {
			f.Nodes[0].MaxPods = Fact{500, read("configz")}
			f.Nodes[1].MaxPods = Fact{500, read("configz")}
		}), "kubeletMaxPods", "hard 500", "", "podsPerCore", "allocatable is less than maxPods"},
		{of(2, 250, func(f *Facts) { f.Nodes[0].MaxPods.Why = "not allowed" }), "kubeletMaxPods", "unknown", "", "not allowed", "a kubelet that may not be asked"},
	} {
		c := row(t, Compute(tt.facts), tt.name)
		if said(c) != tt.want || !strings.Contains(c.Reason, tt.reason) || !strings.Contains(c.Note, tt.note) {
			t.Errorf("%s (%s):\n got %s, reason %q, note %q\nwant %s, reason %q, note %q", tt.name, tt.why, said(c), c.Reason, c.Note, tt.want, tt.reason, tt.note)
		}
	}
}

// At a rate, pods stand for their life, and what stays is made for a whole step.
func TestCeilingsOfARate(t *testing.T) {
	f := cluster(10, 300)
	f.Axis = Axis{Name: "rate", Unit: "pods/s", Life: 30 * time.Second, Span: 90 * time.Second}
	f.Load = heavy()
	f.ServiceAddresses.List[0].Prefix = netip.MustParsePrefix("10.0.0.0/24")
	table := Compute(f)
	for name, want := range map[string]string{
		"allocatablePods":  "hard 100",        // 3000 pods, each for 30 s
		"serviceAddresses": "hard 5.62 binds", // 253 services in 90 s, with two pods each
		"testedChurn":      "advisory 20",     // pods a second
		"testedPods":       "advisory 5000",   // 150,000 pods, each for 30 s
		"testedServices":   "advisory 222.2",  // 9999 services in 90 s, with two pods each
	} {
		if got := said(row(t, table, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if len(table.Notes) == 0 || !strings.Contains(table.Notes[0], "30s") {
		t.Errorf("notes %q: want the time that pods stay", table.Notes)
	}
}

// An axis other than pods gets no level.
func TestCeilingsOfAnotherAxis(t *testing.T) {
	f := cluster(3, 15)
	f.Axis = Axis{Name: "volumes", Unit: "volumes", Foreign: true}
	table := Compute(f)
	if b := table.Binding(); b != nil {
		t.Errorf("%+v binds", b)
	}
	if c := row(t, table, "allocatablePods"); c.Class != record.CeilingUnknown || c.Level != nil || *c.Total != 45 || !strings.Contains(c.Note, "which level of volumes") {
		t.Errorf("allocatable pods %+v", c)
	}
}

// Whatever the facts, the ceiling that binds is the lowest of the known hard
// ones, and for pods of one size on nodes as different as may be it is where
// filling the nodes pod by pod ends.
func TestBindingIsTheLowest(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		f := cluster(1+draw.IntN(6), 1)
		request := Amounts{}
		if draw.IntN(2) == 0 {
			request[CPU] = 1 + draw.Int64N(400)
		}
		if draw.IntN(3) == 0 {
			request[Memory] = 1 + draw.Int64N(1<<20)
		}
		per := 1 + draw.Int64N(3)
		f.Load = &Load{Workload: "w", PerNamespace: draw.Int64N(3) * 7, Entries: []Entry{
			{Resource: Pods, Copies: per, Every: 1, Pods: 1, Pod: Pod{Requests: request, Containers: 1}},
			{Resource: "services", Copies: 1, Every: draw.Int64N(3), ClusterIP: true},
		}}
		f.ServiceAddresses.List[0].Prefix = netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 24+draw.IntN(6))
		if draw.IntN(3) == 0 {
			f.Quotas = []Quota{{Name: "q", Hard: Amounts{"pods": draw.Int64N(60)}}}
		}
		if draw.IntN(4) == 0 {
			f.Pending = draw.IntN(5)
		}
		for n := range f.Nodes {
			node := &f.Nodes[n]
			node.Allocatable = Amounts{Pods: draw.Int64N(30), CPU: draw.Int64N(4000), Memory: draw.Int64N(8 << 20)}
			node.Standing = draw.IntN(5)
			node.Requested = Amounts{CPU: draw.Int64N(500)}
			if draw.IntN(2) == 0 {
				node.Ranges = []Range{{Prefix: netip.PrefixFrom(netip.MustParseAddr("10.1.0.0"), 24+draw.IntN(5))}}
			}
		}
		table := Compute(f)
		b := table.Binding()
		lowest := math.Inf(1)
		for _, c := range table.Ceilings {
			if c.Class == record.CeilingHard && c.Level != nil {
				lowest = min(lowest, *c.Level)
			}
			if (c.Class == record.CeilingUnknown || c.Class == record.CeilingUnbound) && c.Level != nil {
				t.Fatalf("case %d: %s is %s and has a level", i, c.Name, c.Class)
			}
		}
		if b == nil || *b.Level != lowest {
			t.Fatalf("case %d: %v binds, the lowest is %g", i, b, lowest)
		}
		want := fill(f)
		if got := *b.Total; got != want {
			t.Fatalf("case %d: %s binds at %g pods, filling pod by pod ends at %g\n%+v", i, b.Name, got, want, f)
		}
	}
}

// fill is the slow twin of Compute for pods of one size: it adds iterations one
// by one until something is full.
func fill(f Facts) float64 {
	pod := f.Load.Entries[0].Pod
	others := float64(f.Pending)
	room := 0 // places on nodes, found pod by pod
	for _, n := range f.Nodes {
		others += float64(n.Standing)
		used, pods := Amounts{CPU: n.Requested[CPU], Memory: n.Requested[Memory]}, int64(n.Standing)
		for {
			fits := pods < n.Allocatable[Pods]
			for _, name := range []string{CPU, Memory} {
				fits = fits && (pod.Requests[name] == 0 || used[name]+pod.Requests[name] <= n.Allocatable[name])
			}
			if !fits {
				break
			}
			pods++
			room++
			for _, name := range []string{CPU, Memory} {
				used[name] += pod.Requests[name]
			}
		}
	}
	// Addresses are a ceiling where every node has a range.
	addresses := math.Inf(1)
	if !slices.ContainsFunc(f.Nodes, func(n Node) bool { return len(n.Ranges) == 0 }) {
		addresses = 0
		for _, n := range f.Nodes {
			addresses += max(0, Addresses(n.Ranges[0].Prefix)-1-float64(n.Standing))
		}
	}
	services := Addresses(f.ServiceAddresses.List[0].Prefix) - 1
	for made := int64(1); ; made++ {
		pods := f.Load.Entries[0].Copies * made
		taken := int64(0)
		first := int64(0) // pods of the first namespace
		for i := range made {
			if every := f.Load.Entries[1].Every; every == 0 && i == 0 || every > 0 && i%every == 0 {
				taken++
			}
			if per := f.Load.PerNamespace; per == 0 || i < per {
				first += f.Load.Entries[0].Copies
			}
		}
		full := pods+int64(f.Pending) > int64(room) || float64(pods) > addresses || float64(taken) > services
		for _, q := range f.Quotas {
			full = full || first > q.Hard["pods"]
		}
		if full {
			return others + float64(f.Load.Entries[0].Copies*(made-1))
		}
		if made > 10_000 {
			return math.Inf(1)
		}
	}
}

// A row of a table without a workload is one of bare pods, and says where a
// workload would matter.
func TestWithoutAWorkload(t *testing.T) {
	table := Compute(cluster(3, 15))
	if c := row(t, table, "allocatablePods"); said(c) != "hard 15 binds" || table.Workload != "" {
		t.Errorf("pods: %s", said(c))
	}
	if c := row(t, table, "allocatableCPU"); c.Class != record.CeilingUnbound || !strings.Contains(c.Note, "depends") || *c.Left != 3*56 {
		t.Errorf("CPU: %+v", c)
	}
}
