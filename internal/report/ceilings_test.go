package report

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// checkFacts is a cluster of which most is known, in the shape of the document's
// (26 workers), with a workload of two pods and a service.
func checkFacts() ceiling.Facts {
	read := ceiling.Source{From: "the API"}
	f := ceiling.Facts{
		Axis: ceiling.Axis{Name: "pods-per-node", Unit: "pods/node"}, AllNodes: 31, NodesRead: read, PodsRead: read,
		Pods: 700, Addresses: 500, Containers: 900, Namespaces: ceiling.Fact{Value: 70, Source: read}, Services: ceiling.Fact{Value: 90, Source: read}, ServicesTaken: 90,
		ServiceAddresses: ceiling.Ranges{List: []ceiling.Range{{Prefix: netip.MustParsePrefix("172.30.0.0/16")}}, Source: ceiling.Source{From: "servicecidrs.networking.k8s.io"}},
		PodAddresses:     ceiling.Ranges{List: []ceiling.Range{{Prefix: netip.MustParsePrefix("10.128.0.0/14"), PerNode: 23}}, Source: ceiling.Source{From: "networks.config.openshift.io cluster"}},
		OpenShift:        true,
		Load: &ceiling.Load{Workload: "node-density-heavy", Entries: []ceiling.Entry{
			{Resource: "deployments.apps", Copies: 2, Every: 1, Pods: 1, Pod: ceiling.Pod{Containers: 1, ServiceLinks: true, Requests: ceiling.Amounts{ceiling.CPU: 50}}},
			{Resource: "services", Copies: 1, Every: 1, ClusterIP: true, LinkBytes: 350},
		}},
	}
	for i := range 26 {
		f.Nodes = append(f.Nodes, ceiling.Node{
			Name: fmt.Sprint("worker-", i), Allocatable: ceiling.Amounts{ceiling.Pods: 2500, ceiling.CPU: 111_500, ceiling.Memory: 500 << 30},
			Requested: ceiling.Amounts{ceiling.CPU: 1800, ceiling.Memory: 6 << 30}, Standing: 18, Static: 1, Daemons: 15, HostNetwork: 7,
			MaxPods: ceiling.Fact{Value: 2500, Source: ceiling.Source{From: "configz of a kubelet of each kind of node"}},
		})
	}
	return f
}

func TestCheckText(t *testing.T) {
	target := ceiling.CheckTarget{Kind: "cluster", Name: "prod", Server: "https://api.example.com:6443", Version: "v1.36.3"}
	rate := checkFacts()
	rate.Axis = ceiling.Axis{Name: "rate", Unit: "pods/s", Life: 30 * time.Second, Span: 90 * time.Second}
	nothing := ceiling.Facts{Axis: ceiling.Axis{Name: "pods-per-node", Unit: "pods/node"}}
	for _, why := range []*string{&nothing.NodesRead.Why, &nothing.PodsRead.Why, &nothing.Namespaces.Why, &nothing.Services.Why, &nothing.ServiceAddresses.Why, &nothing.PodAddresses.Why} {
		*why = `this user may not read it: nodes is forbidden: User "x" cannot list`
	}
	hostile := checkFacts()
	hostile.Load.Workload = "a\x1b[31mb"
	for name, c := range map[string]ceiling.Check{
		"fit": {Target: target, Table: ceiling.Compute(checkFacts()), Findings: []record.HealthFinding{
			{Severity: record.SeverityWarning, What: "leftovers", Text: "there is something of run 0badcafe (2 namespaces)", Hint: "plimsoll clean --kubeconfig prod.yaml"},
			{Severity: record.SeverityOK, What: "API server", Text: "ready, 45 checks passed"},
		}},
		"rate":    {Target: ceiling.CheckTarget{Kind: "lab", Private: true, Server: "https://127.0.0.1:1"}, Table: ceiling.Compute(rate), Findings: []record.HealthFinding{{Severity: record.SeverityOK, What: "nodes", Text: "all 31 are Ready"}}},
		"nothing": {Target: target, Table: ceiling.Compute(nothing), Findings: []record.HealthFinding{{Severity: record.SeverityError, What: "rights", Text: "x may not create pods"}}},
		"hostile": {Target: target, Table: ceiling.Compute(hostile), Findings: []record.HealthFinding{{Severity: record.SeverityWarning, What: "pods", Text: "1 pod: \x1b[2Jx"}}},
	} {
		var out bytes.Buffer
		c.Kind = observe.Pods()
		if err := text.Write(&out, view.Check(c)); err != nil {
			t.Fatal(err)
		}
		if name == "hostile" {
			// What a cluster says does not steer the terminal.
			if strings.Contains(out.String(), "\x1b") {
				t.Errorf("the text steers the terminal: %q", out.String())
			}
			continue
		}
		golden.Check(t, *update, "check-"+name+".txt", out.Bytes())
	}
}
