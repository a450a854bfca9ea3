package ceiling

import (
	"net/netip"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

func number64(x float64) *float64 { return &x }

// fit is a cluster of which everything is known and well.
func fit() Health {
	no := false
	return Health{
		Checks: map[string]bool{"ping": true, "etcd": true}, Code: 200, ChecksRead: read("/readyz"),
		Nodes: 3, NodesRead: read("nodes"), Pods: 12, PodsRead: read("pods"),
		ClockOffset: number64(0.2), Exempt: &no, User: "someone", Reads: []float64{0.002, 0.003, 0.004}, Clean: "plimsoll clean --lab l",
		Rights: []Right{{Verb: "create", Resource: "pods", Allowed: true}},
	}
}

func TestHealth(t *testing.T) {
	for _, tt := range []struct {
		change   func(*Health)
		severity record.Severity
		what     string
		text     string // part of it
		hint     string // part of it
		stops    bool
		why      string
	}{
		{func(*Health) {}, record.SeverityOK, "nodes", "all 3 are Ready", "", false, "a cluster that is well"},
		{func(h *Health) { h.Code, h.Checks["etcd"] = 500, false }, record.SeverityError, "API server", "etcd failing", "", true, "a check of the server's own fails"},
		{func(h *Health) { h.Code, h.Checks["etcd"] = 500, false }, record.SeverityError, "etcd", "cannot use it", "", true, "and it is etcd's"},
		{func(h *Health) { h.Code, h.Checks = 503, nil }, record.SeverityError, "API server", "/readyz answers 503", "", true, "it does not say why"},
		{func(h *Health) { h.ChecksRead, h.Checks = Source{Why: "forbidden"}, nil }, record.SeverityWarning, "API server", "unknown: forbidden", "", false, "unknown is neither well nor a reason to stop"},
		{func(h *Health) { delete(h.Checks, "etcd") }, record.SeverityWarning, "etcd", "does not report", "", false, "a server that keeps its checks to itself"},
		{func(h *Health) { h.NotReady = []string{"a", "b", "c"} }, record.SeverityError, "nodes", "none of 3 is Ready: a, b, c", "", true, "no node is ready"},
		{func(h *Health) {
			h.BrokenAPIs = []BrokenAPI{{Name: "v1beta1.metrics.k8s.io", Why: "no endpoints"}}
		}, record.SeverityError, "APIs", "v1beta1.metrics.k8s.io (no endpoints) does not answer: until it does, every namespace", "kubectl delete apiservice v1beta1.metrics.k8s.io", false, "namespaces would stay in Terminating"},
		{func(h *Health) {
			h.BrokenAPIs, h.Stays = []BrokenAPI{{Name: "a"}, {Name: "b"}}, "team"
		}, record.SeverityWarning, "APIs", "a, b do not answer", "", false, "a run that removes no namespace"},
		{func(h *Health) { h.NotReady = []string{"a"} }, record.SeverityWarning, "nodes", "1 of 3 are not Ready: a", "", false, "some are"},
		{func(h *Health) { h.Nodes = 0 }, record.SeverityError, "nodes", "there are none", "", true, "no nodes at all"},
		{func(h *Health) { h.NodesRead = Source{Why: "forbidden"} }, record.SeverityWarning, "nodes", "forbidden", "", false, "an ordinary user"},
		{func(h *Health) { h.Cordoned = 1 }, record.SeverityOK, "nodes", "1 of them take no pods", "", false, "cordoned by somebody who knows why"},
		{func(h *Health) { h.Pressure = map[string][]string{"DiskPressure": {"a", "b", "c", "d", "e"}} }, record.SeverityWarning, "nodes", "DiskPressure on a, b, c and 2 more", "evicts", false, "a node that is short of something"},
		{func(h *Health) { h.Unplaced = []string{"x/a"} }, record.SeverityWarning, "pods", "1 pod Pending for more than a minute: x/a", "delete", false, "many of them peg kubelets (D8)"},
		{func(h *Health) { h.Restarting = []string{"x/a", "x/b"} }, record.SeverityWarning, "pods", "2 pods end again and again", "", false, "a crash loop"},
		{func(h *Health) { h.NoImage = []string{"x/a"} }, record.SeverityWarning, "pods", "without their image", "", false, "an image that cannot be had"},
		{func(h *Health) { h.PodsRead = Source{Why: "forbidden"} }, record.SeverityWarning, "pods", "forbidden", "", false, "an ordinary user"},
		{func(h *Health) { h.ClockOffset = number64(-31) }, record.SeverityWarning, "clock", "-31.0 s", "NTP", false, "a clock that is wrong"},
		{func(h *Health) { h.ClockOffset = nil }, record.SeverityWarning, "clock", "does not report", "", false, "no date in an answer"},
		{func(h *Health) { yes := true; h.Exempt = &yes }, record.SeverityWarning, "priority and fairness", "does not apply to someone", "ordinary user", false, "system:masters"},
		{func(h *Health) { h.Exempt = nil }, record.SeverityWarning, "priority and fairness", "unknown", "", false, "not to be found out"},
		{func(h *Health) { h.Reads = []float64{0.1, 0.2, 1.4} }, record.SeverityWarning, "API latency", "200 ms, at most 1.40 s", "", false, "above the Kubernetes objective"},
		{func(h *Health) { h.Leftovers = []Leftover{{Run: "abcd", Namespaces: 2}} }, record.SeverityWarning, "leftovers", "run abcd (2 namespaces)", "plimsoll clean --lab l", false, "a run that was killed"},
		{func(h *Health) { h.Leftovers = []Leftover{{Run: "abcd", Namespaces: 1, Alive: true}} }, record.SeverityWarning, "leftovers", "which is going on", "", false, "or one that is not"},
		{func(h *Health) { h.Rights = append(h.Rights, Right{Verb: "delete", Resource: "pods", Where: "x"}) }, record.SeverityError, "rights", "someone may not delete pods in x", "plimsoll rbac", false, "a right that is missing"},
		{func(h *Health) {
			h.Rights = append(h.Rights, Right{Verb: "list", Resource: "services", Optional: true}, Right{Verb: "get", Resource: "/metrics", Optional: true})
		}, record.SeverityWarning, "rights", "someone may not list services, get /metrics: a run goes on without it", "plimsoll rbac", false, "rights without which a run goes on are one warning"},
		{func(h *Health) {
			h.Rights = append(h.Rights, Right{Verb: "list", Resource: "nodes", Why: "the server said 500"})
		}, record.SeverityWarning, "rights", "whether someone may list nodes is unknown: the server said 500", "", false, "a right that is unknown"},
		{func(h *Health) {
			h.Found = []record.HealthFinding{{Severity: record.SeverityError, What: "workload", Text: "there is no RuntimeClass x"}}
		}, record.SeverityError, "workload", "RuntimeClass x", "", false, "what was found about the workload"},
	} {
		h := fit()
		tt.change(&h)
		list := Judge(h)
		found := false
		for _, f := range list {
			found = found || f.Severity == tt.severity && f.What == tt.what && strings.Contains(f.Text, tt.text) && strings.Contains(f.Hint, tt.hint) && f.Stops == tt.stops
		}
		if !found {
			t.Errorf("%s: want %s of %s with %q, got\n%+v", tt.why, tt.severity, tt.what, tt.text, list)
		}
		if Worst(list) != tt.severity || list[0].Severity != tt.severity {
			t.Errorf("%s: the worst is %s and the first %s, want %s", tt.why, Worst(list), list[0].Severity, tt.severity)
		}
		if len(Stopping(list)) > 0 != tt.stops {
			t.Errorf("%s: stops the load: %v, want %v", tt.why, !tt.stops, tt.stops)
		}
	}
}

func TestPredictedAndFound(t *testing.T) {
	f := cluster(20, 110)
	table := Compute(f)
	none := record.CeilingTable{Unit: "pods/node"}
	f = cluster(20, 500)
	for i := range f.Nodes {
		f.Nodes[i].Ranges, f.Nodes[i].RangesFrom = []Range{{Prefix: netip.MustParsePrefix("10.1.0.0/24")}}, PodCIDRs
	}
	narrow := Compute(f)
	x := number64
	for _, tt := range []struct {
		table   record.CeilingTable
		outcome Outcome
		want    Agreement
		text    string // part of it
		why     string
	}{
		{table, Outcome{Level: x(110), LowestFailing: x(111), Binding: "Too many pods on 20 of 20 nodes"}, AsPredicted, "found 110, bound by the same", "the demo"},
		{table, Outcome{Level: x(110), LowestFailing: x(120), Binding: "Too many pods on 20 of 20 nodes"}, AsPredicted, "found 110", "a coarse resolution"},
		{table, Outcome{Level: x(10), LowestFailing: x(150), Binding: "Too many pods on 20 of 20 nodes"}, AsPredicted, "found that 10 holds and 150 fails, bound by the same; no level between them was tried", "two levels far apart"},
		{table, Outcome{Level: x(110), LowestFailing: x(111), Binding: "NotReady: the probe failed"}, OtherReason, "bound by NotReady", "the same level for another reason"},
		{table, Outcome{Level: x(110), LowestFailing: x(111), Binding: "Insufficient cpu on 12 of 20 nodes", Message: "0/20 nodes are available: 12 Insufficient cpu, 8 Too many pods."}, OtherReason, "bound by Insufficient cpu", "the scheduler names others too, and the first is what binds"},
		{narrow, Outcome{Level: x(253), LowestFailing: x(254), Binding: "FailedCreatePodSandBox on 20 of 20 nodes", Message: "plugin failed: no IP addresses available in range set: *-*"}, AsPredicted, "bound by the same", "the cluster's own words tell what the event's reason does not"},
		{narrow, Outcome{Level: x(253), LowestFailing: x(254), Binding: "FailedCreatePodSandBox on 20 of 20 nodes", Message: "plugin failed: exchange full"}, OtherReason, "bound by FailedCreatePodSandBox", "another trouble with the same event"},
		{table, Outcome{Level: x(90), LowestFailing: x(91), Binding: "OOMKilled on 3 of 20 nodes"}, Earlier, "something else came first", "something that nobody could read beforehand"},
		{table, Outcome{Level: nil, LowestFailing: x(50), Binding: "HTTP 403: no"}, Earlier, "found that 50 pods/node already fails", "the first level fails"},
		{table, Outcome{Level: nil, LowestFailing: x(120), Binding: "Too many pods on 20 of 20 nodes"}, NoneHeld, "bound by Too many pods on 20 of 20 nodes, and no level held", "the first level lies above the ceiling, of which it says nothing"},
		{table, Outcome{Level: nil, LowestFailing: x(120), Binding: "NotReady: the probe failed"}, NoneHeld, "and no level held", "and failed for another reason"},
		{table, Outcome{Level: x(130), LowestFailing: x(131), Binding: "Too many pods on 20 of 20 nodes"}, Beyond, "more than was predicted", "the prediction was wrong"},
		{table, Outcome{Level: x(130), LowestFailing: nil, Binding: ""}, Beyond, "more than was predicted", "and nothing failed"},
		{table, Outcome{Level: x(50), LowestFailing: nil, Binding: ""}, NotReached, "nothing above that was tried", "a search that ended below"},
		{none, Outcome{Level: x(50), LowestFailing: nil, Binding: ""}, NotPredicted, "no hard ceiling is known", "nothing could be read"},
	} {
		p := Predicted(&tt.table, tt.outcome)
		if p == nil || p.Agreement != tt.want || !strings.Contains(p.Text, tt.text) {
			t.Errorf("%s: got %+v, want %s with %q", tt.why, p, tt.want, tt.text)
		}
	}
	if p := Predicted(&table, Outcome{}); p != nil {
		t.Errorf("a run that found nothing: %+v", p)
	}
}
