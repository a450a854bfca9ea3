package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// kubeBurner is a configuration in kube-burner's format with three jobs, of which the
// first makes no pods, and what its templates need of the format: variables by name and
// by look-up, whole numbers, the environment, and a key that stands twice.
var kubeBurner = map[string]string{
	"mixed.yml": `global:
  gc: true
  measurements:
  - name: podLatency
    thresholds: [{conditionType: Ready, metric: Avg, threshold: 30s}, {conditionType: PodScheduled, metric: P99, threshold: 1m}]
metricsEndpoints:
- indexer: {type: local}
jobs:
- {name: config, jobIterations: 2, qps: 100, burst: 10, namespace: mixed-config, jobPause: 10ms, objects: [{objectTemplate: templates/cm.yml, replicas: 3}]}
- name: pods
  jobIterations: {{ .ITERATIONS }}
  qps: {{ get . "QPS" | default 200 }}
  burst: 20
  podWait: true
  preLoadImages: true
  namespace: mixed-pods
  iterationsPerNamespace: 2
  objects:
  - {objectTemplate: templates/deployment.yml, replicas: 1, inputVars: {pods: 2}}
- {name: more, jobIterations: 1, qps: 200, burst: 20, namespace: mixed-more, objects: [{objectTemplate: templates/pod.yml, replicas: 2, inputVars: {n: 3}}]}
`,
	"templates/cm.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'cm-{{.Iteration}}-{{.Replica}}'}\ndata: {team: '{{ env \"TEAM\" }}'}\n",
	"templates/deployment.yml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: 'd-{{.Iteration}}-{{.Replica}}'}
spec:
  replicas: {{ .pods }}
  selector: {matchLabels: {name: 'd-{{.Iteration}}-{{.Replica}}'}}
  template: {metadata: {labels: {name: 'd-{{.Iteration}}-{{.Replica}}'}}, spec: {containers: [{name: c, image: pause}]}}
`,
	"templates/pod.yml": `apiVersion: v1
kind: Pod
metadata: {name: 'p-{{.Iteration}}-{{.Replica}}'}
spec:
  containers:
  - name: c
    image: one
    image: pause
    env: [{{ range $i := until .n }}{name: 'V{{ $i }}', value: '{{ $i }}'},{{ end }}]
`,
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A configuration runs as it stands: a step for each job, with all objects accounted
// for, its thresholds as objectives, and nothing left.
func TestAConfigurationRunsAsItStands(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, smallLab...)
	writeFiles(t, p.Dir, kubeBurner)
	p.Env = append(p.Env, "TEAM=x", "ITERATIONS=99")
	writeFiles(t, p.Dir, map[string]string{"data.yml": "ITERATIONS: 3\nUNUSED: {a: b}\n"})
	got := p.RunTo(t, "r", "run", "mixed.yml", "--user-data", "data.yml", "--lab", p.Lab)
	r := p.Result(t, "r")
	if got.Code != process.ExitHeld && got.Code != process.ExitInvalid || len(r.Steps) != 3 { // beside other tests
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct{ requests, pods int }{{6, 0}, {3, 6}, {2, 8}} {
		s := r.Steps[i]
		if s.APIRequests.N != want.requests || s.Objects.Intended != want.pods || s.Objects.Ready != want.pods || s.Verdict != slo.Pass && s.Verdict != slo.Invalid {
			t.Errorf("job %d: %d requests, %d of %d pods ready, %s; want %+v", i+1, s.APIRequests.N, s.Objects.Ready, s.Objects.Intended, s.Verdict, want)
		}
	}
	if text := fmt.Sprint(r.Goals); !strings.Contains(text, "Ready mean <= 30s") || !strings.Contains(text, "Scheduled p99 <= 1m0s") {
		t.Errorf("the thresholds are no objectives: %s", text)
	}
	if n := p.Count("r", func(e record.Event) bool {
		note, is := e.Body.(*record.Note)
		return is && note.Warning == record.WarningConfig
	}); n != 2 { // global.gc, jobs[1].preLoadImages
		t.Errorf("%d settings were noted, want 2: %s", n, got.Stdout)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// What was run is run again without the variables' sources.
	again := p.Run(t, "run", filepath.Join("r", record.ExperimentFile), "--dry-run", "--allow", p.Dir)
	if again.Code != process.ExitHeld || !strings.Contains(again.Stdout, "along jobs: 1 2 3 jobs") {
		t.Errorf("%+v", again)
	}
}

// Its iterations are an axis: a level says how many fit, and why no more do.
func TestIterationsOfAConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, smallLab...) // 45 places
	writeFiles(t, p.Dir, kubeBurner)
	got := p.RunTo(t, "r", "sweep", "./mixed.yml", "--axis", "iterations", "--levels", "20,21", "--set", "ITERATIONS=2", "--set", "TEAM=x", "--lab", p.Lab, "--hold", "200ms")
	// The job before it makes 2 iterations of 2 pods; an iteration of the last has 2.
	s := p.Result(t, "r").Steps
	if got.Code != process.ExitBreached || len(s) != 2 || s[0].Verdict != slo.Pass || s[0].Objects.Ready != 44 || s[1].Objects.Ready != 45 || !strings.Contains(got.Stdout, "Too many pods on 3 of 3 nodes") {
		t.Errorf("%+v", got)
	}
}

// What is wrong with a configuration, or is not served, ends a run before any load.
func TestConfigurationsThatCannotRun(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, map[string]string{
		"churn.yml":    "jobs:\n- name: a\n  churnConfig: {cycles: 1, percent: 50}\n  hooks: [{cmd: [touch, done], when: beforeJobExecution}]\n  objects: [{objectTemplate: templates/cm.yml}]\n",
		"outside.yml":  "jobs:\n- name: a\n  objects: [{objectTemplate: ../../etc/passwd}]\n",
		"typo.yml":     "jobs:\n- name: a\n  jobIteration: 3\n",
		"data.yml":     "ITERATIONS: [1\n",
		"workload.yml": "schema: plimsoll/experiment/v1\nworkload: node-density\n",
	})
	for _, tt := range []struct {
		why, args string
		says      []string
	}{
		{"a variable that is not set", "run mixed.yml", []string{`mixed.yml:11:`, `the template needs "ITERATIONS", which is not set`}},
		{"a variable that it does not ask for", "run mixed.yml --set ITERATION=3", []string{`did you mean "ITERATIONS"?`}},
		{"a text where a number is wanted", "run mixed.yml --set ITERATIONS=few", []string{"mixed.yml:11", "jobIterations"}},
		{"what is not served, all of it", "run churn.yml", []string{"churn.yml:3:", "churnConfig: is not served yet", "churn.yml:4:", "hooks: is not served yet"}},
		{"a template elsewhere", "run outside.yml", []string{"outside.yml:3:", "lies outside the configuration's directory"}},
		{"a key that is none", "run typo.yml", []string{`typo.yml:3:3:`, `did you mean "jobIterations"?`}},
		{"user data that is no YAML", "run mixed.yml --user-data data.yml", []string{"data.yml:1:"}},
		{"user data that is not there", "run mixed.yml --user-data dato.yml", []string{"there is no file dato.yml", "data.yml"}},
		{"user data of a workload", "sweep node-density --levels 1 --user-data data.yml", []string{"--user-data is for kube-burner configurations"}},
	} {
		got := p.Run(t, strings.Fields(tt.args)...)
		if got.Code != process.ExitUsage {
			t.Errorf("%s: %+v", tt.why, got)
		}
		for _, text := range tt.says {
			if !strings.Contains(got.Stderr, text) {
				t.Errorf("%s: %q is not in %s", tt.why, text, got.Stderr)
			}
		}
	}
	p.LeavesNoLab(t)
	if _, err := os.Stat(filepath.Join(p.Dir, "done")); err == nil {
		t.Error("a hook was run")
	}
}
