package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

const (
	host  = `"start": "2030-01-02T03:04:05Z", "host": {"os": "Linux", "kernel": "6.1", "cpus": 2, "memoryBytes": 8589934592, "cgroupVersion": "2", "runtimes": {"program TLS": "3.0"}}`
	nodes = `"cluster": {"server": "v1.36.3", "nodesSkipped": 1, "nodes": [
		{"name": "b", "pods": 12, "cpuMillis": 1500, "memoryBytes": 1073741824, "kernel": "k", "osImage": "o", "kubelet": "v1.36.3", "runtime": "r", "fidelity": "real"},
		{"name": "a", "pods": 12, "cpuMillis": 1500, "memoryBytes": 1073741824, "kernel": "k", "osImage": "o", "kubelet": "v1.36.3", "runtime": "r", "fidelity": "real"}]}, "clockOffset": -0.36`
	shared = `"isolation": {"split": "priority", "notes": ["the load generator and observer run at nice -10", "A has one", "B has the other"]}`
)

func TestEnvironmentsFromBefore(t *testing.T) {
	const machine = "host:cpus 2, host:memory 8 GiB, kernel 6.1, cgroup 2"
	const isolation = "isolation priority, isolation:priority the load generator and observer run at nice -10, isolation:placement A has one; B has the other"
	const cluster = "kubernetes v1.36.3, nodes 2, nodes-skipped 1, clock -0.4 s"
	for _, tt := range []struct {
		why, environment, plan string
		want                   string
		elsewhere              bool
		places                 string
	}{
		{"a target on this machine", `{` + host + `, "target": {"kind": "router"}, ` + shared + `}`, "",
			machine + ", " + isolation + ", runtime:program-TLS 3.0", false, ""},
		{"what is not on record is no fact", `{"host": {}, "target": {"kind": "router"}}`, "", "", false, ""},
		{"a cluster elsewhere, whose machine is another", `{` + host + `, "target": {"kind": "cluster"}, ` + nodes + `}`, "target: {kubeconfig: k}",
			strings.NewReplacer("kernel", "host:kernel", "cgroup", "host:cgroup").Replace(machine) + ", runtime:program-TLS 3.0, " + cluster, true, "2 from a to b: 12 1.5 1073741824 v1.36.3 r o k"},
		{"a lab, by its plan", `{` + host + `, "target": {"kind": "lab"}, ` + nodes + `}`,
			"target:\n  lab: {nodes: 2, startLatency: 'constant:1000ms', virt: {import: 2s, burst: '5'}, timeScale: 5.0, realGuests: 1, realNode: true, podCIDRPrefix: 24}",
			machine + ", runtime:program-TLS 3.0, " + cluster + ", lab-start-latency constant:1s, lab-virt scale 5, burst=5,import=2s, 1 real guests, pod-range /24", false,
			"2 from a to b: 12 1.5 1073741824 v1.36.3 r o"},
		{"one of today", `{"target": {"kind": "router"}, "facts": [{"name": "x", "value": "1", "unit": "s", "bearing": "noted"}]}`, "target: {lab: {}}", "x 1 s", false, ""},
	} {
		dir := record.Dir(t.TempDir())
		for name, text := range map[string]string{record.EnvironmentFile: tt.environment, record.ExperimentFile: tt.plan} {
			if err := dir.WriteFile(name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		e, err := Environment(dir)
		if err != nil {
			t.Fatalf("%s: %v", tt.why, err)
		}
		var got []string
		for _, f := range e.Facts {
			got = append(got, f.Name+" "+f.Text())
			if refuses := f.Bearing == record.Refuses; strings.HasPrefix(f.Name, "host:") && refuses == tt.elsewhere {
				t.Errorf("%s: %s %s", tt.why, f.Name, f.Bearing)
			}
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.why, text, tt.want)
		}
		places := ""
		if e.Places != nil && len(e.Places.Rows) == 1 {
			r := e.Places.Rows[0]
			places = fmt.Sprintf("%d from %s to %s: %s", r.Count, r.First, r.Last, strings.Join(r.Values, " "))
		}
		if places != tt.places || e.Elsewhere != tt.elsewhere || e.Upgraded != strings.Contains(tt.environment, "host") {
			t.Errorf("%s: places %q, elsewhere %v, upgraded %v", tt.why, places, e.Elsewhere, e.Upgraded)
		}
	}
}
