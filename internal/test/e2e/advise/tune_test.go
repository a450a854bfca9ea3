package advise_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// tuned runs a calculator with -o json and returns its answer.
func tuned(t *testing.T, code int, args ...string) answer.Answer {
	t.Helper()
	got := e2e.Command(t, nil, append(append([]string{"tune"}, args...), "-o", "json")...)
	if got.Code != code {
		t.Fatalf("tune %s: exit code %d, want %d\n%s", strings.Join(args, " "), got.Code, code, got.Stderr)
	}
	var a answer.Answer
	if err := json.Unmarshal([]byte(got.Stdout), &a); err != nil {
		t.Fatalf("tune %s: %v\n%s", strings.Join(args, " "), err, got.Stdout)
	}
	if a.Schema != answer.Schema {
		t.Errorf("schema %q", a.Schema)
	}
	return a
}

// The figures of the documents, by whole commands.
func TestTuneFigures(t *testing.T) {
	for _, tt := range []struct {
		args string
		want map[string]any
	}{
		{"ceph --osds 141 --replicas 3", map[string]any{"pgNum": 4096.0}},
		{"host --rtt 0.208ms --link 50Gbit", map[string]any{"bufferBytes": 1300000.0, "bufferBytesDocument": 10905190.0}},
		{"host --rtt 0.208ms --link 2x25GbE", map[string]any{"bufferBytes": 1300000.0}},
		{"host --packet 512Ki", map[string]any{"packetMaximumBytes": 5242880.0, "packetDefaultBytes": 2097152.0}},
		{"subnet --cluster-cidr 10.128.0.0/10 --host-prefix 23", map[string]any{"nodes": 8192.0, "addressesPerNode": 510.0}},
		{"subnet --nodes 26 --pods-per-node 2,500", map[string]any{"hostPrefix": 20.0, "clusterCIDR": "10.128.0.0/15"}},
		{"virt --vms 3000", map[string]any{"virtAPIReplicas": 4.0}},
		{"virt --class rhel=1500,1,4G --class windows=500,1,4G --class fedora=1000,100m,256Mi --nodes 100 --pods 21,400", map[string]any{"vmsPerNode": 30.0, "podsPerNode": 214.0}},
		{"virt --dataset 300x8x20Mi", map[string]any{"datasetBytes": 48000.0 * 1024 * 1024}},
		{"kubelet --max-pods 500 --even-spread", map[string]any{"maxPods": 500.0, "kubeAPIQPS": 100.0, "kubeAPIBurst": 200.0, "nodeStatusMaxImages": -1.0}},
		{"router --page 8192", map[string]any{"requestsFillingLink": 15259.0}},
		{"network --overlay vxlan", map[string]any{"podMTU": 1450.0}},
		{"plan --vms 3000 --pods 21400 --nodes 100", map[string]any{"maxPods": 500.0, "hostPrefix": 22.0, "virtAPIReplicas": 4.0}},
		{"plan 3000 VMs and 21,400 pods on 100 nodes", map[string]any{"maxPods": 500.0, "hostPrefix": 22.0, "virtAPIReplicas": 4.0}},
		{"plan 2500 pods per node on 26 nodes", map[string]any{"maxPods": 2500.0, "hostPrefix": 20.0, "allPods": 65000.0}},
		{"plan --pods-per-node 2500 --nodes 26", map[string]any{"maxPods": 2500.0, "hostPrefix": 20.0, "allPods": 65000.0}},
	} {
		a := tuned(t, process.ExitPass, strings.Fields(tt.args)...)
		for name, want := range tt.want {
			if got := a.Result(name); got != want {
				t.Errorf("tune %s: %s = %v, want %v", tt.args, name, got, want)
			}
		}
		for _, in := range a.Inputs {
			if strings.HasPrefix(in.From, "flag --") && !strings.Contains(tt.args, strings.TrimPrefix(in.From, "flag ")) {
				t.Errorf("tune %s: %s comes from %q, which was not given", tt.args, in.Name, in.From)
			}
		}
		// As YAML it is the same.
		var fromYAML, fromJSON any
		asYAML := e2e.Command(t, nil, append(append([]string{"tune"}, strings.Fields(tt.args)...), "-o", "yaml")...)
		if data, err := k8syaml.ToJSON([]byte(asYAML.Stdout)); err != nil || json.Unmarshal(data, &fromYAML) != nil {
			t.Errorf("tune %s -o yaml: %v", tt.args, err)
		}
		if data, err := json.Marshal(a); err != nil || json.Unmarshal(data, &fromJSON) != nil || !reflect.DeepEqual(fromYAML, fromJSON) {
			t.Errorf("tune %s: YAML and JSON differ", tt.args)
		}
		if got := e2e.Command(t, nil, append([]string{"tune"}, strings.Fields(tt.args)...)...); got.Code != 0 || got.Stderr != "" || !strings.Contains(got.Stdout, "Sources") {
			t.Errorf("tune %s: exit code %d\n%s", tt.args, got.Code, got.Stderr)
		}
	}
}

// What cannot be had ends with 1, and says so.
func TestTuneOfWhatCannotBeHad(t *testing.T) {
	for _, args := range []string{
		"subnet --cluster-cidr 10.128.0.0/20 --nodes 100", "kubelet --max-pods 500 --host-prefix 23",
		"virt --dataset 300x8x20Mi --disk 40Gi", "router --platform haproxy --connections 50000 --nofile 20000",
	} {
		a := tuned(t, process.ExitFail, strings.Fields(args)...)
		if !a.Impossible() {
			t.Errorf("tune %s: %+v", args, a.Findings)
		}
	}
}

func TestTuneWritesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plan")
	args := []string{"tune", "plan", "--pods-per-node", "2500", "--nodes", "26", "--write", dir}
	got := e2e.Command(t, nil, args...)
	if got.Code != 0 || !strings.Contains(got.Stderr, "wrote "+filepath.Join(dir, "PLAN.md")) {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	for _, name := range []string{"PLAN.md", "1-installation/install-config-networking.yaml", "2-nodes/kubeletconfig-worker.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	// Nothing is written over, and nothing half.
	if err := os.Remove(filepath.Join(dir, "PLAN.md")); err != nil {
		t.Fatal(err)
	}
	got = e2e.Command(t, nil, args...)
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "exists") || !strings.Contains(got.Stderr, "hint: --force") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "PLAN.md")); err == nil {
		t.Error("half of it was written")
	}
	if got = e2e.Command(t, nil, append(args, "--force")...); got.Code != 0 {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
	got = e2e.Command(t, nil, "tune", "ceph", "--osds", "3", "--write", filepath.Join(dir, "PLAN.md"))
	if got.Code != process.ExitCouldNotRun {
		t.Errorf("a directory that is a file: exit code %d\n%s", got.Code, got.Stderr)
	}
}

// Two readings that were saved name the CPU, by a whole command.
func TestTuneHostFromABundle(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	zeros := strings.Repeat(" 00000000", 9)
	write("proc/net/softnet_stat.0", "00001000 00000000 00000001"+zeros+" 00000000\n00001000 00000000 00000001"+zeros+" 00000001\n")
	write("proc/net/softnet_stat.1", "00002000 00000000 00000001"+zeros+" 00000000\n00002000 00000000 00000201"+zeros+" 00000001\n")
	write("proc/sys/net/core/netdev_budget", "300\n")
	a := tuned(t, process.ExitPass, "host", "--bundle", dir, "--interval", "10s")
	found := false
	for _, f := range a.Findings {
		if strings.HasPrefix(f.What, "CPU 1: time_squeeze") {
			found = true
			if f.Now != "+512 in 10s (51.2/s)" || !strings.Contains(f.Remedy, "net.core.netdev_budget to 450") {
				t.Errorf("%+v", f)
			}
		}
		if strings.HasPrefix(f.What, "CPU 0") {
			t.Errorf("%+v", f)
		}
	}
	if !found {
		t.Errorf("CPU 1 is not named: %+v", a.Findings)
	}
	for args, want := range map[string]string{
		"--bundle " + dir + " --node n":   "both name a host",
		"--node n":                        "of which cluster?",
		"--lab l":                         "without the node",
		"--bundle " + dir + "/interval.x": "there is no",
		"--bundle " + dir + "/proc/sys/net/core/netdev_budget": "it is not a tar archive",
		"--interval 3s": "without a host to read",
	} {
		got := e2e.Command(t, nil, append([]string{"tune", "host"}, strings.Fields(args)...)...)
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, want) {
			t.Errorf("tune host %s: %d %s", args, got.Code, got.Stderr)
		}
	}
	got := e2e.Command(t, nil, "tune", "host", "--collect-script")
	if got.Code != 0 || !strings.HasPrefix(got.Stdout, "#!/bin/sh") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stdout)
	}
}

// What components of a real node used is read from a recorded run.
func TestTuneKubeletFromARun(t *testing.T) {
	dir := t.TempDir()
	result := `{"schema": "plimsoll/result/v1", "steps": [
		{"id": 1, "seconds": 10, "perNode": {"nodes": 1, "min": 100, "max": 100}, "resources": {"kubelet": {"cpuSeconds": 4, "peakRSSBytes": 100000000}, "etcd": {"cpuSeconds": 4, "peakRSSBytes": 1}}},
		{"id": 2, "seconds": 10, "perNode": {"nodes": 1, "min": 200, "max": 200}, "resources": {"kubelet": {"cpuSeconds": 6, "peakRSSBytes": 150000000}, "containerd": {"cpuSeconds": 2, "peakRSSBytes": 50000000}, "containerd-shims": {"cpuSeconds": 2, "peakRSSBytes": 50000000}}}]}`
	e2e.Sealed(t, dir, result)
	a := tuned(t, process.ExitPass, "kubelet", "--max-pods", "400", "--platform", "kubernetes", "--run", dir, "--headroom", "0%")
	// kubelet: 0.2 + 0.2 a hundred pods, 50 + 50 MB; containerd and its shims in
	// proportion.
	if cpu, memory := a.Result("kubeReserved.cpu"), a.Result("kubeReserved.memory"); cpu != "1800m" || memory != "430Mi" {
		t.Errorf("%v, %v", cpu, memory)
	}
	e2e.Sealed(t, dir, `{"steps": [{"id": 1, "seconds": 10, "perNode": {"nodes": 10, "max": 5}, "resources": {"etcd": {"cpuSeconds": 4}}}]}`)
	got := e2e.Command(t, nil, "tune", "kubelet", "--max-pods", "400", "--run", dir)
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "simulated") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
}

// A lab's nodes are read, and nothing of it is changed.
func TestTuneReadsALab(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	got := p.Run(t, "tune", "kubelet", "--max-pods", "200", "--lab", p.Lab, "-o", "json")
	var a answer.Answer
	if err := json.Unmarshal([]byte(got.Stdout), &a); err != nil || got.Code != 0 {
		t.Fatalf("%v: %d %s", err, got.Code, got.Stderr)
	}
	var nodes, now bool
	for _, in := range a.Inputs {
		nodes = nodes || in.Name == "platform" && strings.Contains(in.From, "lab "+p.Lab)
	}
	for _, f := range a.Findings {
		now = now || f.What == "maxPods" && strings.HasPrefix(f.Now, "110 (read from node")
	}
	if !nodes || !now {
		t.Errorf("inputs %+v, findings %+v", a.Inputs, a.Findings)
	}
	if got := p.Run(t, "tune", "subnet", "--lab", p.Lab); got.Code != 0 || !strings.Contains(got.Stdout, "lab "+p.Lab) {
		t.Errorf("%d %s", got.Code, got.Stderr)
	}
}

// What a recorded router came to goes into the computation, and only where it is
// known.
func TestTuneRouterFromARecord(t *testing.T) {
	t.Chdir(t.TempDir())
	record := func(params, result string) {
		e2e.Sealed(t, "run", `{"schema": "plimsoll/result/v1", "objectKind": {"object": {}, "there": "Response", "milestones": []}, `+result+`}`)
		for name, text := range map[string]string{
			"run/history.jsonl.zst": "",
			"run/experiment.yaml":   "schema: plimsoll/experiment/v1\nname: r\nworkload: router\nparams: {" + params + "}\naxis: {name: rate}\n",
		} {
			if err := os.MkdirAll("run", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		why, params, result string
		code                int
		want                []string
	}{
		{"a confirmed line", "termination: edge, pageSize: 4KiB", `"verdict": "pass", "loadLine": {"axis": "rate", "level": 20000, "lowestFailing": 20500}`, process.ExitPass, []string{"the load line of run", "edge", "20000 requests/s", "1000000000 / 8 / 20000", "6,250"}},
		{"a line that is not confirmed", "", `"verdict": "inconclusive", "loadLine": {"axis": "rate", "level": 20000}`, process.ExitUsage, []string{"not confirmed"}},
		{"a line that nothing failed above", "", `"verdict": "pass", "loadLine": {"axis": "rate", "level": 20000}`, process.ExitUsage, []string{"not confirmed"}},
		{"a sweep: the best step that HAProxy's processor bound", "termination: none", `"verdict": "fail", "steps": [{"id": 1, "verdict": "pass", "achievedRate": 9000}, {"id": 2, "verdict": "fail", "achievedRate": 8000, "bottleneck": {"bounds": [{"name": "HAProxy", "what": "HAProxy's processor time", "share": 0.95, "held": true}]}}]`, process.ExitPass, []string{"step 2", "HAProxy's processor time (95% of it used)", "8000"}},
		{"a sweep that HAProxy had no work with", "", `"verdict": "pass", "steps": [{"id": 1, "verdict": "pass", "achievedRate": 500, "bottleneck": {"bounds": [{"name": "HAProxy", "what": "HAProxy's processor time", "share": 0.05, "held": false}]}}]`, process.ExitUsage, []string{"no confirmed load line", "follow the schedule"}},
		{"the generator was short", "", `"verdict": "invalid", "steps": [{"id": 1, "verdict": "invalid", "achievedRate": 9000, "atLeast": true, "bottleneck": {"bounds": [{"name": "generator", "what": "the processor of the generator", "share": 0.95, "held": true}]}}]`, process.ExitUsage, []string{"no confirmed load line"}},
	} {
		record(c.params, c.result)
		got := e2e.Command(t, nil, "tune", "router", "--run", "run", "--rate", "100000")
		if got.Code != c.code {
			t.Errorf("%s: %d\n%s%s", c.why, got.Code, got.Stdout, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stdout+got.Stderr, want) {
				t.Errorf("%s: %q is missing in\n%s%s", c.why, want, got.Stdout, got.Stderr)
			}
		}
	}
	if got := e2e.Command(t, nil, "tune", "router", "--run", "nowhere"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "nowhere") {
		t.Errorf("%d %s", got.Code, got.Stderr)
	}
}

// What a record found paths to cost goes into the advice, with the overlay and the MTU
// that it was of.
func TestTuneNetworkFromARecord(t *testing.T) {
	t.Chdir(t.TempDir())
	const cells = `"cells": [{"name": "d", "params": {"path": "direct", "mtu": "9000"}}, {"name": "v", "params": {"path": "vxlan", "mtu": "9000"}}, {"name": "s", "params": {"path": "vxlan", "mtu": "1500"}}], `
	const figure = `"metric": "cpuPer1000", "title": "CPU per 1000 requests", "change": 0.25, "lo": 0.2, "hi": 0.3`
	for _, c := range []struct {
		why, workload, plan, result string
		grid                        bool
		code                        int
		want                        []string
	}{
		{"two arms", "network-path", "params: {mtu: 9000}", `"comparison": {"baseline": "plain", "arms": {"plain": {}, "over": {"path": "vxlan"}}, "levels": [{"level": 2000, "arm": "over", "verdict": "worse", "primary": {` + figure + `}}]}`, false, process.ExitPass,
			[]string{"cost of vxlan at MTU 9000", "CPU per 1000 requests +25.0% (+20.0 to +30.0%), worse", "at 2000 rate", "9000 - 50 = 8950"}},
		{"two figures", "network-path", "params: {mtu: 9000}", `"comparison": {"baseline": "plain", "arms": {"plain": {}, "over": {"path": "vxlan"}}, "levels": [{"level": 2000, "arm": "over", "primary": {` + figure + `}, "metrics": [{"verdict": "worse", "figure": {` + figure + `}}, {"verdict": "equivalent", "figure": {"metric": "Response p50", "change": 0.01}}]}]}`, false, process.ExitPass,
			[]string{"+25.0% (+20.0 to +30.0%), worse; Response p50 +1.0%, equivalent"}},
		{"a grid: the pair whose path differs", "network-path", "vary: {path: [direct, vxlan], mtu: [9000]}", cells + `"pairs": [{"key": "path", "baseline": "d", "arm": "v", "level": 500, "verdict": "worse", "figure": {` + figure + `}}, {"key": "mtu", "baseline": "v", "arm": "s", "verdict": "worse", "figure": {` + figure + `}}]`, true, process.ExitPass,
			[]string{"cost of vxlan at MTU 9000", "at 500 rate"}},
		{"arms of one path", "network-path", "", `"comparison": {"baseline": "on", "arms": {"on": {}, "off": {"gso": "off"}}, "levels": [{"level": 2000, "arm": "off", "verdict": "worse", "primary": {` + figure + `}}]}`, false, process.ExitUsage, []string{"compares no path with a direct one", "--vary path=direct,vxlan"}},
		{"a plain sweep", "network-path", "", `"verdict": "pass"`, false, process.ExitUsage, []string{"compares no path with a direct one"}},
		{"another workload", "router", "", `"verdict": "pass"`, false, process.ExitUsage, []string{"of the workload router"}},
	} {
		if err := os.RemoveAll("run"); err != nil {
			t.Fatal(err)
		}
		history := "run/history.jsonl.zst"
		if c.grid { // each cell has its own
			history = "run/cells/d/history.jsonl.zst"
			if err := os.MkdirAll("run/cells/d", 0o755); err != nil {
				t.Fatal(err)
			}
		}
		e2e.Sealed(t, "run", `{"schema": "plimsoll/result/v1", `+c.result+`}`)
		for name, text := range map[string]string{
			history:               "",
			"run/experiment.yaml": "schema: plimsoll/experiment/v1\nname: r\nworkload: " + c.workload + "\n" + c.plan + "\naxis: {name: rate}\n",
		} {
			if err := os.MkdirAll("run", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := e2e.Command(t, nil, "tune", "network", "--run", "run", "--link", "10Gbit")
		if got.Code != c.code {
			t.Errorf("%s: %d\n%s%s", c.why, got.Code, got.Stdout, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stdout+got.Stderr, want) {
				t.Errorf("%s: %q is missing in\n%s%s", c.why, want, got.Stdout, got.Stderr)
			}
		}
	}
}
