package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
)

// A check shows how the cluster is, its ceilings with limits in their unit, and what binds
// first.
func TestCheck(t *testing.T) {
	hard := record.Ceiling{Name: "allocatablePods", What: "pods that nodes take", Class: record.CeilingHard, Level: new(110.0), Total: new(220.0), Limit: new(220.0), Used: new(4.0), Left: new(216.0), Unit: "pods", Binds: true, Reason: "the scheduler finds no node."}
	list := []record.Ceiling{
		{Name: "tested", What: "pods of a node that are tested", Class: record.CeilingAdvisory, Level: new(100.0), From: "Kubernetes 1.35", Unit: "pods"},
		hard,
		{Name: "memory", What: "memory of nodes", Class: record.CeilingNotEnforced, Level: new(150.0), Limit: new(float64(8 << 30)), Unit: "bytes", Note: "pods ask for nothing"},
		{Name: "watches", What: "watches", Class: record.CeilingAdvisory, Level: new(9000.0), Unit: "watches"},
		{Name: "cpu", What: "processors of nodes", Class: record.CeilingUnbound, Limit: new(16.0), Used: new(1.5), Unit: "cores"},
		{Name: "revision", What: "revisions", Class: record.CeilingUnbound, Limit: new(float64(1 << 60)), Unit: "revisions"},
		{Name: "pids", What: "processes of a node", Class: record.CeilingUnknown, Note: "the right to read it is missing"},
	}
	check := ceiling.Check{
		Target:   ceiling.CheckTarget{Kind: "cluster", Name: "prod", Server: "https://api", Version: "v1.35"},
		Findings: []record.HealthFinding{{Severity: record.SeverityOK, What: "API server", Text: "it is ready"}, {Severity: record.SeverityWarning, What: "nodes", Text: "1 node is cordoned", Places: []string{"n2"}, Hint: "kubectl uncordon n2"}},
		Table:    record.CeilingTable{Axis: "pods-per-node", Unit: "pods/node", Places: new(2), AllPlaces: new(3), Others: new(4), Ceilings: list, Notes: []string{"one node is cordoned"}},
		Kind:     pods(),
	}
	want := lines("cluster prod at https://api: Kubernetes v1.35", "",
		"ok|API server|it is ready", "warning|nodes|1 node is cordoned (n2)", "||hint: kubectl uncordon n2",
		"Ceilings of pods that ask for nothing along pods-per-node, on 2 of 3 nodes (4 other pods):",
		"|pods/node|pods in all|limit|used|left|kind| ceiling",
		"|100|-|-|-|-|advisory| pods of a node that are tested [Kubernetes 1.35]",
		">|110|220|220|4|216|hard| pods that nodes take",
		"|150|-|8 GiB|-|-|not enforced| memory of nodes: pods ask for nothing",
		"     and 1 far above (-o json lists them)",
		"Never reached by this workload:", "  processors of nodes: 16, used 1.5 cores", "  revisions: 2^53 or more",
		"Not known:", "  processes of a node: the right to read it is missing",
		"Binds first: 110 pods/node (220 pods in all), by the pods that nodes take. Beyond it: the scheduler finds no node.",
		"Untested above 100 pods/node (pods of a node that are tested; Kubernetes 1.35).",
		"note: one node is cordoned")
	checkSections(t, []section{{"a cluster", Check(check), want}})

	of := func(change func(*ceilings)) []Section {
		c := ceilings{record.CeilingTable{Workload: "streams", Axis: "rate", Unit: "requests/s", Ceilings: []record.Ceiling{{What: "files", Class: record.CeilingAdvisory, Level: new(500.0), From: "the kernel", Unit: "files"}}}, record.ObjectKind{Object: record.Noun{One: "request", Many: "requests"}, Place: record.Noun{One: "backend", Many: "backends"}}}
		change(&c)
		return ceilingSections(c)
	}
	const head = "|requests/s|limit|used|left|kind| ceiling\n|500|-|-|-|advisory| files [the kernel]"
	const end = "Binds first: unknown, no hard ceiling could be read.\nUntested above 500 requests/s (files; the kernel)."
	checkSections(t, []section{
		{"none is known", of(func(c *ceilings) { c.Ceilings = nil }), "Ceilings of streams along rate: none is known before a load."},
		{"no places", of(func(c *ceilings) {}), lines("Ceilings of streams along rate:", head, end)},
		{"the places are unknown", of(func(c *ceilings) { c.Ceilings[0].Total = new(900.0) }), lines("Ceilings of streams along rate, on unknown backends:",
			"|requests/s|requests in all|limit|used|left|kind| ceiling", "|500|900|-|-|-|advisory| files [the kernel]", end)},
		{"nothing else stands there", of(func(c *ceilings) { c.Places, c.AllPlaces, c.Others = new(2), new(2), new(0) })[:1], lines("Ceilings of streams along rate, on 2 of 2 backends (no other requests):",
			"|requests/s|requests in all|limit|used|left|kind| ceiling", "|500|-|-|-|-|advisory| files [the kernel]")},
		{"what stands there is unknown", of(func(c *ceilings) { c.Places, c.AllPlaces = new(2), new(2) })[:1], lines("Ceilings of streams along rate, on 2 of 2 backends (other requests unknown):",
			"|requests/s|requests in all|limit|used|left|kind| ceiling", "|500|-|-|-|-|advisory| files [the kernel]")},
		{"a rate has no number in all", []Section{bindsFirst(ceilings{record.CeilingTable{Unit: "pods/s", Ceilings: []record.Ceiling{{What: "limit", Binds: true, Level: new(50.0), Total: new(50.0), Reason: "pods wait"}}}, pods()})}, "Binds first: 50 pods/s, by the limit. Beyond it: pods wait."},
	})
}

// A check names what it looked at.
func TestChecked(t *testing.T) {
	for _, c := range []struct {
		of   ceiling.CheckTarget
		want string
	}{
		{ceiling.CheckTarget{Kind: "lab", Name: "lab", Private: true, Version: "v1.35"}, "a private lab: Kubernetes v1.35"},
		{ceiling.CheckTarget{Kind: "lab", Name: "l1"}, "lab l1"},
		{ceiling.CheckTarget{Kind: "cluster", Name: "cluster", Server: "https://api"}, "cluster at https://api"},
		{ceiling.CheckTarget{Kind: "router", Version: "HAProxy 3.2"}, "router HAProxy 3.2"},
	} {
		if got := checked(ceiling.Check{Target: c.of}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
