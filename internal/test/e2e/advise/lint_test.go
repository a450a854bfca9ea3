package advise_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/lint"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// configurations are files to look at, by their names.
func configurations(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	kubeletConfigText = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata:\n  name: set-max-pods\nspec:\n  machineConfigPoolSelector:\n    matchLabels:\n      custom-kubelet: enabled\n  kubeletConfig:\n    maxPods: 500\n"
	labelText         = "oc label machineconfigpool worker custom-kubelet=enable\n"
)

func TestLint(t *testing.T) {
	dir := configurations(t, map[string]string{
		"kubelet.yaml": kubeletConfigText, "label.sh": labelText, "good.sh": "oc label mcp worker a=b\n", "broken.yaml": "a: [\n",
		"unknown.bin": "nothing\n", "empty.yaml": "\n", "binary.yaml": "a\x00b", "many/one.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
		"many/.hidden.yaml": "a: [\n", "many/deep/two.sh": "ceph osd pool set rbd pg_autoscaler_mode off\n", "w/workload.yaml": "schema: plimsoll/workload/v1\nname: w\ntarget: simulated\n",
		"plan.yaml": "schema: plimsoll/experiment/v1\nworkload: simulated\naxis: {levels: [5]}\n", "typo.yaml": "schema: plimsoll/experiment/v1\nworkload: simulated\naxis: {levls: [5]}\n",
		"slo.yaml": "schema: plimsoll/experiment/v1\nworkload: simulated\naxis: {levels: [5]}\ngoals: {a: [errors < 101%]}\n", "none.yaml": "schema: plimsoll/experiment/v1\nworkload: simulatd\n",
	})
	at := func(names ...string) (paths []string) {
		for _, n := range names {
			if strings.HasPrefix(n, "-") {
				paths = append(paths, n)
				continue
			}
			paths = append(paths, filepath.Join(dir, n))
		}
		return paths
	}
	for _, c := range []struct {
		why    string
		args   []string
		code   int
		stdout []string // what it holds
		stderr []string
	}{
		{"two files that do not fit together", at("kubelet.yaml", "label.sh"), process.ExitFail, []string{"kubelet.yaml:8:23: error: ", "[kubeletconfig-selector]", "why: ", "source: V17", "(--fix does it)"}, []string{"1 error, 0 warnings in 2 files; --fix can fix 1"}},
		{"one of them alone cannot be judged", at("kubelet.yaml"), process.ExitPass, []string{": note: no MachineConfigPool"}, []string{"nothing found in 1 checked file"}},
		{"nothing to find", at("good.sh"), process.ExitPass, nil, []string{"nothing found in 1 checked file"}},
		{"YAML that is none", at("broken.yaml", "label.sh"), process.ExitUsage, []string{"broken.yaml:1:4: unreadable: not valid YAML"}, nil},
		{"no text", at("binary.yaml"), process.ExitUsage, []string{"unreadable: not a text file"}, nil},
		{"nothing that is known", at("unknown.bin"), process.ExitUsage, []string{"note: not checked: lint does not know this kind of file"}, []string{"no file was checked"}},
		{"one that is unknown beside one that is", at("unknown.bin", "good.sh"), process.ExitPass, []string{"note: not checked"}, nil},
		{"an empty file", at("empty.yaml"), process.ExitUsage, []string{"note: not checked: the file is empty"}, []string{"no file was checked"}},
		{"a directory", at("many"), process.ExitUsage, nil, []string{"many is a directory", "-R"}},
		{"a directory with its files, hidden ones left out", at("-R", "many"), process.ExitFail, []string{filepath.Join("deep", "two.sh") + ":1:23"}, nil},
		{"a workload, with the keys that are missing", at("w/workload.yaml"), process.ExitFail, []string{"workload.yaml:1:1: error: help: is missing [own-file]", "workload.yaml:1:1: error: axes: is missing"}, nil},
		{"a plan that would run", at("plan.yaml"), process.ExitPass, nil, []string{"nothing found in 1 checked file"}},
		{"a plan with a typo", at("typo.yaml"), process.ExitFail, []string{`typo.yaml:3:8: error: axis: unknown key "levls"`, `fix: did you mean "levels"?`}, nil},
		{"a plan with a goal that means nothing", at("slo.yaml"), process.ExitFail, []string{"slo.yaml:4:13: error: goals.a[0]: objective", "not a share"}, nil},
		{"a plan of a workload that there is not", at("none.yaml"), process.ExitFail, []string{`none.yaml:1: error: there is no workload "simulatd"`, `did you mean "simulated"?`}, nil},
		{"a file that is not there", at("kubelt.yaml"), process.ExitUsage, nil, []string{"kubelt.yaml does not exist", "did you mean \"kubelet.yaml\"?"}},
		{"no file", nil, process.ExitUsage, nil, []string{"none was given"}},
		{"a rule that is left out", at("--ignore=ceph-pool-key", "-R", "many"), process.ExitPass, nil, nil},
		{"a rule that there is not", at("--ignore=ceph-pool-keys", "good.sh"), process.ExitUsage, nil, []string{"did you mean \"ceph-pool-key\"?"}},
		{"a dry run of nothing", at("--dry-run", "good.sh"), process.ExitUsage, nil, []string{"--dry-run belongs to --fix"}},
		{"all rules", []string{"--list"}, process.ExitPass, []string{"kubeletconfig-selector", "V17", "why: "}, nil},
		{"a format that there is not", at("-o", "xml", "good.sh"), process.ExitUsage, nil, nil},
	} {
		args := c.args
		for i, a := range args { // "-o xml" stands apart
			if filepath.Base(a) == "xml" {
				args[i] = "xml"
			}
		}
		out := e2e.Command(t, nil, append([]string{"lint"}, args...)...)
		if out.Code != c.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", c.why, out.Code, c.code, out.Stdout, out.Stderr)
		}
		for _, want := range c.stdout {
			if !strings.Contains(out.Stdout, want) {
				t.Errorf("%s: printed %q, which lacks %q", c.why, out.Stdout, want)
			}
		}
		for _, want := range c.stderr {
			if !strings.Contains(out.Stderr, want) {
				t.Errorf("%s: said %q, which lacks %q", c.why, out.Stderr, want)
			}
		}
	}
}

func TestLintAsJSON(t *testing.T) {
	dir := configurations(t, map[string]string{"kubelet.yaml": kubeletConfigText, "label.sh": labelText})
	out := e2e.Command(t, nil, "lint", "-o", "json", filepath.Join(dir, "kubelet.yaml"), filepath.Join(dir, "label.sh"))
	var r lint.Result
	if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil || out.Code != process.ExitFail {
		t.Fatalf("exit code %d, %v: %s", out.Code, err, out.Stdout)
	}
	if r.Schema != "plimsoll/lint/v1" || len(r.Findings) != 1 || !r.Findings[0].Fixable || r.Findings[0].Line != 8 || r.Findings[0].Path == "" || r.Notes == nil || r.Problems == nil || r.Recognised != 2 {
		t.Errorf("%+v", r)
	}
	var rules []lint.Rule
	if out := e2e.Command(t, nil, "lint", "--list", "-o", "json"); json.Unmarshal([]byte(out.Stdout), &rules) != nil || len(rules) != len(lint.Rules()) {
		t.Errorf("the list of rules: %s", out.Stdout)
	}
}

func TestLintFix(t *testing.T) {
	dir := configurations(t, map[string]string{"kubelet.yaml": kubeletConfigText, "label.sh": labelText, "left.sh": "ceph osd pool create rbd 3995\n"})
	label, kubelet, left := filepath.Join(dir, "label.sh"), filepath.Join(dir, "kubelet.yaml"), filepath.Join(dir, "left.sh")
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, args := range [][]string{{"--fix", "--dry-run"}, {"--diff"}} {
		out := e2e.Command(t, nil, slices.Concat([]string{"lint"}, args, []string{kubelet, label})...)
		if out.Code != process.ExitFail || !strings.Contains(out.Stdout, "-oc label machineconfigpool worker custom-kubelet=enable\n+oc label machineconfigpool worker custom-kubelet=enabled\n") || !strings.Contains(out.Stderr, "would be fixed") {
			t.Errorf("%v: exit code %d: %s%s", args, out.Code, out.Stdout, out.Stderr)
		}
		if read(label) != labelText {
			t.Fatalf("%v wrote", args)
		}
	}
	out := e2e.Command(t, nil, "lint", "--fix", kubelet, label, left)
	if out.Code != process.ExitFail || !strings.Contains(out.Stdout, "fixed: ") || !strings.Contains(out.Stdout, "[ceph-pg-num]") || read(label) != strings.Replace(labelText, "enable", "enabled", 1) || read(kubelet) != kubeletConfigText {
		t.Errorf("exit code %d: %s%s", out.Code, out.Stdout, out.Stderr)
	}
	if out := e2e.Command(t, nil, "lint", "--fix", kubelet, label); out.Code != process.ExitPass || strings.Contains(out.Stdout, "fixed") {
		t.Errorf("a second time: exit code %d: %s", out.Code, out.Stdout)
	}
	// A file that cannot be written keeps all as they are.
	if os.Getuid() != 0 {
		if err := os.WriteFile(label, []byte(labelText), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
		if out := e2e.Command(t, nil, "lint", "--fix", kubelet, label); out.Code != process.ExitCouldNotRun || read(label) != labelText {
			t.Errorf("a directory that cannot be written: exit code %d: %s", out.Code, out.Stderr)
		}
	}
}

// What tune writes, lint has nothing to say of.
func TestLintOfWhatTuneWrites(t *testing.T) {
	for _, args := range [][]string{
		{"plan", "--pods-per-node", "2500", "--nodes", "26"},
		{"plan", "--vms", "3000", "--pods", "21400", "--nodes", "100", "--osds", "141"},
		{"host", "--rtt", "0.208ms", "--link", "50Gbit"},
		{"kubelet", "--max-pods", "500"},
	} {
		dir := filepath.Join(t.TempDir(), "files")
		if out := e2e.Command(t, nil, slices.Concat([]string{"tune"}, args, []string{"--write", dir})...); out.Code != process.ExitPass {
			t.Errorf("tune %v: exit code %d: %s", args, out.Code, out.Stderr)
			continue
		}
		if out := e2e.Command(t, nil, "lint", "-R", dir); out.Code != process.ExitPass {
			t.Errorf("lint of what tune %v wrote: exit code %d: %s%s", args, out.Code, out.Stdout, out.Stderr)
		}
	}
}

// The built program does the same, from a pipe too.
func TestLintOfAPipe(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	cmd := p.Command("lint", "-")
	cmd.Stdin = strings.NewReader("$ ceph osd pool set rbd pg_autoscaler_mode off\n")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != process.ExitFail || !strings.Contains(string(out), "<stdin>:1:25: error: a pool has no setting pg_autoscaler_mode [ceph-pool-key]") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	cmd = p.Command("lint", "--fix", "-")
	cmd.Stdin = strings.NewReader("a\n")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != process.ExitUsage || !strings.Contains(string(out), "standard input") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// A named pipe that nobody writes to does not keep the program from ending.
func TestLintOfANamedPipeEndsOnASignal(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.Command("lint", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != 143 && code != -1 {
				t.Errorf("exit code %d", code)
			}
			return
		case <-time.After(200 * time.Millisecond): // it may not listen to signals yet
			_ = cmd.Process.Signal(syscall.SIGTERM)
		case <-t.Context().Done():
			_ = cmd.Process.Kill()
		}
	}
}

// A workload's templates are read as a run reads them.
func TestLintReadsAWorkloadsTemplates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	if got := e2e.Command(t, nil, "workloads", "export", "node-density-cni", dir); got.Code != process.ExitPass {
		t.Fatal(got.Stderr)
	}
	description := filepath.Join(dir, "workload.yaml")
	if got := e2e.Command(t, nil, "lint", description); got.Code != process.ExitPass {
		t.Errorf("as it was exported: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	client := filepath.Join(dir, "client.yml")
	text, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(client, []byte(strings.Replace(string(text), "name: client-{{.Iteration}}", "name: client-{{.Iteraton}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	linted, ran := e2e.Command(t, nil, "lint", description), e2e.Command(t, nil, "limit", dir+"/", "--dry-run")
	const found = `client.yml:8:18: `
	const what = `the template needs "Iteraton", which is not set`
	if linted.Code != process.ExitFail || !strings.Contains(linted.Stdout, found+"error: "+what) || !strings.Contains(linted.Stdout, `did you mean "Iteration"?`) {
		t.Errorf("exit code %d:\n%s%s", linted.Code, linted.Stdout, linted.Stderr)
	}
	if ran.Code != process.ExitUsage || !strings.Contains(ran.Stderr, found+what) {
		t.Errorf("run says something else: exit code %d\n%s", ran.Code, ran.Stderr)
	}
}

// An installed HAProxy is asked about its files, and runs nothing that stands in them.
func TestLintAsksHAProxy(t *testing.T) {
	if name, says := reads("haproxy", "-v"); says == "" {
		t.Skip(name)
	}
	dir := t.TempDir()
	config, ran := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "ran")
	if err := os.WriteFile(filepath.Join(dir, "x.lua"), []byte("io.open('"+ran+"', 'w'):close()\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "global\n  nbthread 4\n  cpu-map 1 0\n  lua-load " + filepath.Join(dir, "x.lua") + "\n  maxcon 5\ndefaults\n  mode htp\n  timeout client 5s\n" +
		"frontend public\n  bind :443 ssl crt /nowhere.pem\n  default_backend nosuch\n  http-request deny iff a\nbackend web\n  server a db.example.invalid:80 chek\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := e2e.Command(t, nil, "lint", config)
	for _, want := range []string{"cfg:3:11: warning: cpu-map 1 0", "cfg:5:3: error: unknown keyword 'maxcon'", "cfg:7:3: error: unknown proxy mode 'htp' [haproxy-config]", "cfg:12:3: error: 'http-request deny' expects",
		"not checked by haproxy -c: in 3 lines"} {
		if !strings.Contains(out.Stdout, want) {
			t.Errorf("lacks %q: %s", want, out.Stdout)
		}
	}
	if _, err := os.Stat(ran); err == nil || strings.Contains(out.Stdout, "nowhere.pem") || strings.Count(out.Stdout, "cfg:3:") != 1 {
		t.Errorf("it ran code, read a certificate or found a fault twice: %s", out.Stdout)
	}
	if os.WriteFile(config, []byte("global\ndefaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\nfrontend public\n  bind :80\n  default_backend web\nbackend web\n  server a 192.0.2.1:80\n"), 0o600) != nil {
		t.Fatal("no file")
	}
	if out := e2e.Command(t, nil, "lint", config); out.Code != process.ExitPass || strings.Contains(out.Stdout, "haproxy -c") {
		t.Errorf("a good configuration: %d %s", out.Code, out.Stdout)
	}
}
