package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
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
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	p.Env = append(p.Env, "TEAM=x", "ITERATIONS=99")
	writeFiles(t, p.Dir, map[string]string{"data.yml": "ITERATIONS: 3\nUNUSED: {a: b}\n"})
	got := p.RunTo(t, "r", "run", "mixed.yml", "--user-data", "data.yml", "--lab", p.Lab)
	r := p.Result(t, "r")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 3 { // beside other tests
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
	}); n != 1 { // global.gc
		t.Errorf("%d settings were noted, want 1: %s", n, got.Stdout)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// Its indexer has the documents written: of pods from those jobs that have some.
	dirs, err := filepath.Glob(filepath.Join(p.Dir, "collected-metrics-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%v, %v: %s", dirs, err, got.Stdout)
	}
	made := documentsIn(t, dirs[0])
	for name, n := range map[string]int{"jobSummary.json": 3, "podLatencyMeasurement-pods.json": 6, "podLatencyMeasurement-more.json": 2, "podLatencyQuantilesMeasurement-pods.json": 6, "podLatencyQuantilesMeasurement-more.json": 6} {
		if len(made[name]) != n {
			t.Errorf("%s has %d documents, want %d", name, len(made[name]), n)
		}
		delete(made, name)
	}
	if len(made) > 0 {
		t.Errorf("also written: %v", made)
	}
	// They are made of the record alone, too.
	if code := p.Run(t, "analyze", "r", "--documents", "again").Code; code != got.Code {
		t.Errorf("analyze ends with %d", code)
	}
	for name := range documentsIn(t, filepath.Join(p.Dir, "again")) {
		one, _ := os.ReadFile(filepath.Join(dirs[0], name))
		other, _ := os.ReadFile(filepath.Join(p.Dir, "again", name))
		if !bytes.Equal(one, other) {
			t.Errorf("%s of the record is\n%s\nand was\n%s", name, other, one)
		}
	}
	// What was run is run again without the variables' sources.
	again := p.Run(t, "run", filepath.Join("r", record.ExperimentFile), "--dry-run", "--allow", p.Dir)
	if again.Code != process.ExitPass || !strings.Contains(again.Stdout, "along jobs: 1 2 3 jobs") {
		t.Errorf("%+v", again)
	}
}

// burnerKeys are the keys of the documents that kube-burner 2.7.3 writes of a run on a
// cluster, with the types of their values; those of quantiles are the same for all.
var burnerKeys = map[string]string{
	"podLatencyMeasurement":            "timestamp:time schedulingLatency:whole initializedLatency:whole containersReadyLatency:whole podReadyLatency:whole containersStartedLatency:whole readyToStartContainersLatency:whole metricName:text uuid:text jobName:text jobIteration:whole replica:whole namespace:text podName:text nodeName:text metadata:object",
	"vmiLatencyMeasurement":            "timestamp:time podCreatedLatency:whole podScheduledLatency:whole podInitializedLatency:whole podContainersReadyLatency:whole podReadyLatency:whole podReadyToStartContainersLatency:whole vmiCreatedLatency:whole vmiPendingLatency:whole vmiSchedulingLatency:whole vmiScheduledLatency:whole vmiRunningLatency:whole vmReadyLatency:whole metricName:text uuid:text namespace:text vmName:text vmiName:text nodeName:text jobName:text metadata:object jobIteration:whole replica:whole",
	"jobLatencyMeasurement":            "timestamp:time startTimeLatency:whole completionLatency:whole metricName:text uuid:text jobName:text jobIteration:whole replica:whole namespace:text k8sJobName:text metadata:object",
	"dvLatencyMeasurement":             "timestamp:time dvBoundLatency:whole dvRunningLatency:whole dvReadyLatency:whole metricName:text uuid:text namespace:text dvName:text jobName:text jobIteration:whole replica:whole metadata:object",
	"pvcLatencyMeasurement":            "timestamp:time pendingLatency:whole bindingLatency:whole lostLatency:whole resizeLatency:whole pvcName:text size:text storageClass:text metricName:text uuid:text jobName:text jobIteration:whole replica:whole namespace:text metadata:object",
	"volumeSnapshotLatencyMeasurement": "timestamp:time vsReadyLatency:whole vsName:text metricName:text uuid:text jobName:text jobIteration:whole replica:whole namespace:text metadata:object",
	"vmimLatencyMeasurement":           "timestamp:time pendingLatency:whole schedulingLatency:whole scheduledLatency:whole preparingTargetLatency:whole targetReadyLatency:whole runningLatency:whole succeededLatency:whole vmimName:text vmiName:text metricName:text uuid:text jobName:text jobIteration:whole replica:whole namespace:text metadata:object",
	"nodeLatencyMeasurement":           "timestamp:time nodeMemoryPressureLatency:whole nodeDiskPressureLatency:whole nodePIDPressureLatency:whole nodeReadyLatency:whole nodeName:text labels:object metricName:text uuid:text jobName:text metadata:object",
	"netpolLatencyMeasurement":         "timestamp:time minReady:whole ready:whole netpol:text metricName:text uuid:text jobName:text namespace:text metadata:object",
	"svcLatencyMeasurement":            "timestamp:time ready:whole service:text type:text metricName:text uuid:text jobName:text namespace:text metadata:object",
	"jobSummary":                       "elapsedTime:number endTimestamp:time jobConfig:object k8sVersion:text metricName:text passed:bool timestamp:time totalNodes:whole uuid:text version:text",
}

// burnerQuantiles are the keys of quantiles.
const burnerQuantiles = "quantileName:text uuid:text P99:whole P95:whole P50:whole min:whole max:whole avg:whole timestamp:time metricName:text jobName:text metadata:object"

// keysOf returns the keys of a metric's documents.
func keysOf(metric string) []string {
	if strings.HasSuffix(metric, "QuantilesMeasurement") {
		return strings.Fields(burnerQuantiles)
	}
	return strings.Fields(burnerKeys[metric])
}

// workingJobs is a configuration whose jobs wait for more than pods, and work on what an
// earlier one has made: they read it, change it in each way that there is, and delete it.
var workingJobs = map[string]string{
	"work.yml": `jobs:
- name: make
  jobIterations: 2
  qps: 500
  burst: 10
  podWait: true
  namespace: make
  objects:
  - {objectTemplate: templates/cm.yml, replicas: 3}
  - objectTemplate: templates/deployment.yml
    inputVars: {pods: 2}
    waitOptions: {customStatusPaths: [{key: '(.conditions.[] | select(.type == "Available")).status', value: "True"}, {key: .readyReplicas, value: "2"}]}
  - {objectTemplate: templates/pod.yml, replicas: 2, inputVars: {n: 1}, waitOptions: {kind: Pod, labelSelector: {kube-burner.io/job: make}, customStatusPaths: [{key: .phase, value: Running}]}}
- {name: read, jobType: read, jobIterations: 2, qps: 500, burst: 10, objects: [{kind: ConfigMap, labelSelector: {kube-burner.io/job: make}}]}
- name: patch
  jobType: patch
  jobIterations: 2
  qps: 500
  burst: 10
  objects:
  - {kind: ConfigMap, labelSelector: {kube-burner.io/job: make}, objectTemplate: templates/merge.yml, patchType: merge, inputVars: {to: x}}
  - {kind: ConfigMap, labelSelector: {kube-burner.io/job: make}, objectTemplate: templates/json.yml, patchType: json}
  - {kind: ConfigMap, labelSelector: {kube-burner.io/job: make}, objectTemplate: templates/apply.yml, patchType: apply}
  - {kind: Deployment, apiVersion: apps/v1, labelSelector: {kube-burner.io/job: make}, objectTemplate: templates/merge.yml, patchType: application/strategic-merge-patch+json, inputVars: {to: y}}
- {name: remove, jobType: delete, qps: 500, burst: 10, objects: [{kind: Deployment, apiVersion: apps/v1, labelSelector: {kube-burner.io/job: make}}, {kind: Pod, labelSelector: {kube-burner.io/job: make, kube-burner.io/index: "2"}}]}
- {name: patched, jobType: read, qps: 500, burst: 10, objects: [{kind: ConfigMap, labelSelector: {patched: x-1}}]}
- {name: again, jobIterations: 2, qps: 500, burst: 10, namespace: again, churnConfig: {cycles: 2, percent: 50, mode: objects}, objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}, {objectTemplate: templates/cm.yml, churn: false}]}
`,
	"templates/merge.yml": "metadata: {labels: {patched: '{{.to}}-{{.Iteration}}'}}\n",
	"templates/json.yml":  `[{"op": "add", "path": "/data/replica", "value": "{{.Replica}}"}]`,
	"templates/apply.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {applied: 'yes'}}\n",
	"never.yml": `jobs:
- {name: nothing, jobType: read, objects: [{kind: ConfigMap, labelSelector: {no: such}}]}
- name: never
  qps: 500
  burst: 10
  namespace: never
  maxWaitTimeout: 200ms
  objects:
  - {objectTemplate: templates/pod.yml, inputVars: {n: 1}, waitOptions: {customStatusPaths: [{key: .phase, value: Gone}]}}
  - {objectTemplate: templates/deployment.yml, inputVars: {pods: 1}, waitOptions: {customStatusPaths: [{key: .observedGeneration | keys, value: x}]}}
`,
	"others.yml": "jobs:\n- name: a\n  jobType: delete\n  objects: [{kind: Namespace, labelSelector: {kubernetes.io/metadata.name: default}}]\n",
}

// Jobs wait for what their options say, and work on what earlier ones have made: all of
// it is accounted for, what is deleted is not missed, and nothing of others is touched.
func TestJobsThatWorkOnObjects(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, workingJobs)
	got := p.RunTo(t, "r", "sweep", "./work.yml", "--axis", "jobs", "--levels", "1,2,3,4,5,6", "--set", "TEAM=x", "--lab", p.Lab, "--hold", "50ms")
	r := p.Result(t, "r")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 6 { // beside other tests
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct{ requests, pods int }{{12, 8}, {12, 8}, {40, 8}, {6, 0}, {6, 0}, {8, 4}} {
		s := r.Steps[i]
		if s.APIRequests.N != want.requests || s.APIRequests.Failed != 0 || s.Objects.Intended != want.pods || s.Objects.Ready != want.pods {
			t.Errorf("job %d: %d requests, %d failed, %d of %d pods ready; want %+v: %s", i+1, s.APIRequests.N, s.APIRequests.Failed, s.Objects.Ready, s.Objects.Intended, want, got.Stdout)
		}
	}
	got = p.RunTo(t, "never", "run", "never.yml", "--lab", p.Lab)
	for _, text := range []string{"job nothing: its labels select no ConfigMap", "job never: 1 object of Pod not ready after 200ms: never-0/p-0-1: .phase is Running, not Gone", `the jq expression ".observedGeneration | keys" fails`} {
		reasons := ""
		for _, s := range p.Result(t, "never").Steps {
			reasons += fmt.Sprint(s.Reasons)
		}
		if got.Code == process.ExitPass || !strings.Contains(reasons, text) {
			t.Errorf("%q is not in %s of %+v", text, reasons, got)
		}
	}
	got = p.Run(t, "run", "others.yml", "--lab", p.Lab, "--out", "others")
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "others.yml:4:") || !strings.Contains(got.Stderr, "1 object of others matched before anything was made, such as Namespace default") {
		t.Errorf("%+v", got)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Namespaces churn with all that is in them, and each pod is accounted for.
func TestNamespacesThatChurn(t *testing.T) {
	suite.Long(t, "it waits for the ends of namespaces")
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, map[string]string{"spaces.yml": `jobs:
- name: spaces
  jobIterations: 4
  qps: 500
  burst: 10
  namespace: spaces
  maxWaitTimeout: 4s # a namespace needs longer for its end
  churnConfig: {cycles: 3, percent: 50, deleteDelay: 10ms, delay: 10ms}
  objects:
  - {objectTemplate: templates/cm.yml}
  - {objectTemplate: templates/deployment.yml, inputVars: {pods: 2}, waitOptions: {forCondition: Available}}
- {name: fewer, jobType: delete, qps: 500, burst: 10, objects: [{kind: Namespace, labelSelector: {kube-burner.io/job: spaces}}]}
- {name: more, jobIterations: 4, qps: 500, burst: 10, namespace: more, objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]}
`})
	got := p.RunTo(t, "r", "run", "spaces.yml", "--lab", p.Lab)
	r := p.Result(t, "r")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 3 {
		t.Fatalf("%+v", got)
	}
	// 4 iterations of 2 requests, 3 cycles of 2 namespaces and 2 iterations, 4 namespaces.
	for i, want := range []struct{ requests, pods int }{{8 + 3*(2+4), 8 + 3*4}, {4, 0}, {4, 4}} {
		s := r.Steps[i]
		if s.APIRequests.N != want.requests || s.APIRequests.Failed != 0 || s.Objects.Intended != want.pods || s.Objects.Ready != want.pods {
			t.Errorf("job %d: %d requests, %d failed, %d of %d pods ready; want %+v: %s", i+1, s.APIRequests.N, s.APIRequests.Failed, s.Objects.Ready, s.Objects.Intended, want, got.Stdout)
		}
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// burnerConfigKeys lists the keys of jobConfig for a job that states nothing but what the
// first of kubeBurner's does.
const burnerConfigKeys = "burst churnConfig cleanup errorOnVerify gc iterationsPerNamespace jobIterations jobPause jobType maxWaitTimeout metricsClosing name namespace namespacedIterations preLoadImages preLoadPeriod qps verifyObjects waitForDeletion waitWhenFinished"

// documentsIn reads the documents of a directory, each of which must have the keys and
// types that kube-burner's have; what was not reached is null.
func documentsIn(t *testing.T, dir string) map[string][]map[string]any {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]map[string]any)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var list []map[string]any
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
		all[f.Name()] = list
		metric, _, _ := strings.Cut(strings.TrimSuffix(f.Name(), ".json"), "-")
		for _, d := range list {
			for _, want := range keysOf(metric) {
				key, typ, _ := strings.Cut(want, ":")
				if value, there := d[key]; !there || !isOf(typ, value) {
					t.Errorf("%s: %s is %v, want %s", f.Name(), key, value, typ)
				}
			}
			if len(d) > len(keysOf(metric)) && d["executionErrors"] == nil {
				t.Errorf("%s has further keys: %v", f.Name(), d)
			}
			if config, ok := d["jobConfig"].(map[string]any); ok && config["name"] == "config" {
				if got := strings.Join(slices.Sorted(maps.Keys(config)), " "); got != burnerConfigKeys {
					t.Errorf("jobConfig has %s", got)
				}
			}
		}
	}
	return all
}

// isOf reports whether a value of JSON is of a type.
func isOf(typ string, value any) bool {
	switch v := value.(type) {
	case nil:
		return typ == "whole"
	case float64:
		return typ == "number" || typ == "whole" && v == math.Trunc(v)
	case bool:
		return typ == "bool"
	case map[string]any:
		return typ == "object"
	case string:
		_, err := time.Parse(time.RFC3339Nano, v)
		return typ == "text" || typ == "time" && err == nil
	}
	return false
}

// kube-burner's own command has its flags, its documents and its exit codes.
func TestKubeBurnerInit(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, map[string]string{
		"bound.yml":    "global:\n  measurements:\n  - {name: podLatency, thresholds: [{conditionType: Ready, metric: P99, threshold: 1us}]}\njobs:\n- {name: more, qps: 100, burst: 9, namespace: 'b-{{ .SUFFIX }}', objects: [{objectTemplate: templates/pod.yml, replicas: 2, inputVars: {n: 1}}]}\n",
		"metadata.yml": "team: a\nbuild: 7\n",
	})
	var documents atomic.Int64
	search := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		if _, password, _ := q.BasicAuth(); password == "sw0rdf1sh" && q.URL.Path == "/_bulk" {
			documents.Add(int64(bytes.Count(body, []byte(`{"index":{"_index":"runs",`))))
		}
		io.WriteString(w, `{"errors":false,"items":[]}`)
	}))
	t.Cleanup(search.Close)
	got := p.RunTo(t, "r", "kube-burner", "init", "-c", "bound.yml", "--lab", p.Lab, "--uuid", "mine", "--user-metadata", "metadata.yml", "--metrics-directory", filepath.Join(p.Dir, "elsewhere"), "--skip-log-file", "--set", "SUFFIX=x", "--es-server", "http://me:sw0rdf1sh@"+search.Listener.Addr().String(), "--es-index", "runs")
	if documents.Load() != 9 { // 2 pods, 6 milestones, 1 job
		t.Errorf("%d documents were sent: %+v", documents.Load(), got)
	}
	for _, name := range []string{record.ExperimentFile, "kube-burner.json", record.ResultFile, record.ReportFile} {
		if text, err := os.ReadFile(filepath.Join(p.Dir, "r", name)); err != nil || bytes.Contains(text, []byte("sw0rdf1sh")) {
			t.Errorf("%s has the password, or is not there: %v", name, err)
		}
	}
	made := documentsIn(t, filepath.Join(p.Dir, "elsewhere"))
	s := made["jobSummary.json"]
	if got.Code != 4 && !strings.Contains(got.Stdout, "invalid") || len(s) != 1 || s[0]["passed"] != false || s[0]["uuid"] != "mine" || s[0]["team"] != "a" || s[0]["build"] != 7.0 {
		t.Errorf("%+v: %v", got, s)
	}
	if pods := made["podLatencyMeasurement-more.json"]; len(pods) != 2 || pods[1]["replica"] != 2.0 || pods[0]["namespace"] != "b-x-0" {
		t.Errorf("%v", pods)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A run that reaches its timeout ends with kube-burner's code, and keeps what it has
// measured: kube-burner's own loses the pods that were not ready.
func TestKubeBurnerInitThatTakesTooLong(t *testing.T) {
	suite.Long(t, "it waits for a timeout")
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...) // 45 places
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, map[string]string{"full.yml": "global: {measurements: [{name: podLatency}]}\njobs:\n- {name: more, qps: 500, burst: 99, namespace: full, objects: [{objectTemplate: templates/pod.yml, replicas: 60, inputVars: {n: 1}}]}\n"})
	got := p.RunTo(t, "r", "kube-burner", "init", "-c", "full.yml", "--lab", p.Lab, "--local-indexing", "--metrics-directory", "m", "--timeout", "4s", "--allow-missing")
	made := documentsIn(t, filepath.Join(p.Dir, "m"))
	ready := 0
	for _, pod := range made["podLatencyMeasurement-more.json"] {
		if pod["podReadyLatency"] != nil {
			ready++
		}
	}
	if n := len(made["podLatencyMeasurement-more.json"]); got.Code != 2 || n != 60 || ready != 45 {
		t.Errorf("%d of %d pods are ready, want 45 of 60: %+v", ready, n, got)
	}
	for _, q := range made["podLatencyQuantilesMeasurement-more.json"] {
		if q["quantileName"] == "Ready" && (q["P99"] != nil || q["P50"] == nil || q["avg"] != nil) {
			t.Errorf("%v", q)
		}
	}
}

// otherObjects are configurations with measurements of something else than pods.
var otherObjects = map[string]string{
	"machines.yml": "global: {measurements: [{name: vmiLatency, thresholds: [{conditionType: VMIRunning, metric: P99, threshold: 5m}, {conditionType: PodPodScheduled, metric: Max, threshold: 5m}]}]}\njobs:\n- {name: m, qps: 20, burst: 20, jobIterations: 3, namespace: m, objects: [{objectTemplate: vm.yml, replicas: 2}]}\n",
	"disks.yml":    "global: {measurements: [{name: dataVolumeLatency}]}\njobs:\n- {name: d, qps: 20, burst: 20, jobIterations: 2, namespace: d, objects: [{objectTemplate: dv.yml, replicas: 2}]}\n",
	"all.yml":      "global: {measurements: [{name: podLatency, thresholds: [{conditionType: Ready, metric: P99, threshold: 5m}]}, {name: vmiLatency}, {name: dataVolumeLatency, thresholds: [{conditionType: Ready, metric: P99, threshold: 5m}]}]}\njobs:\n- {name: a, qps: 20, burst: 20, jobIterations: 3, namespace: a, objects: [{objectTemplate: vm.yml}, {objectTemplate: dv.yml, replicas: 2}], measurements: [{name: jobLatency}]}\n- {name: b, qps: 20, burst: 20, jobIterations: 2, namespace: b, objects: [{objectTemplate: job.yml}], measurements: [{name: jobLatency}]}\n",
	"vmityped.yml": "global: {measurements: [{name: vmiLatency, thresholds: [{conditionType: VMIRuning, metric: P99, threshold: 5m}]}]}\njobs:\n- {name: m, objects: [{objectTemplate: vm.yml}]}\n",
	"jobs.yml":     "global: {measurements: [{name: jobLatency, thresholds: [{conditionType: Complete, metric: P50, threshold: 5m}]}]}\njobs:\n- {name: j, qps: 20, burst: 20, jobIterations: 4, namespace: j, objects: [{objectTemplate: job.yml, replicas: 2}]}\n",
	"claims.yml":   "global: {measurements: [{name: pvcLatency}, {name: nodeLatency}]}\njobs:\n- {name: c, qps: 20, burst: 20, jobIterations: 2, namespace: c, objects: [{objectTemplate: claim.yml}]}\n",
	"moves.yml":    "jobs:\n- {name: some, qps: 20, burst: 20, namespace: mv, objects: [{objectTemplate: vm.yml, replicas: 2}]}\n- {name: mv, jobType: kubevirt, qps: 20, burst: 20, objects: [{kubeVirtOp: migrate, labelSelector: {kube-burner.io/job: some}}], measurements: [{name: vmimLatency}]}\n",
	"claim.yml": "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: 'plimsoll-{{.UUID}}-{{.Iteration}}'}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}\n---\n" +
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\nspec: {storageClassName: '', volumeName: 'plimsoll-{{.UUID}}-{{.Iteration}}', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
	"job.yml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: 'job-{{.Iteration}}-{{.Replica}}'}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: pause}]}}}\n",
	"vm.yml":  "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: 'vm-{{.Iteration}}-{{.Replica}}'}\nspec:\n  runStrategy: Always\n  template:\n    spec:\n      domain: {devices: {disks: [{name: d, disk: {bus: virtio}}]}, resources: {requests: {memory: 64Mi}}}\n      volumes: [{name: d, containerDisk: {image: fedora}}]\n",
	"dv.yml":  "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: 'dv-{{.Iteration}}-{{.Replica}}'}\nspec: {source: {blank: {}}, storage: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n",
}

// Of machines, disks and jobs a configuration's own measurement is made.
func TestKubeBurnerMeasuresOtherObjects(t *testing.T) {
	suite.Long(t, "it starts labs of its own")
	t.Parallel()
	p := suite.Program(t)
	writeFiles(t, p.Dir, otherObjects)
	for _, tt := range []struct {
		config, metric, job, there string
		objects, quantiles, files  int
	}{
		{"machines.yml", "vmiLatency", "m", "vmReadyLatency", 6, 11, 3},
		{"disks.yml", "dvLatency", "d", "dvReadyLatency", 4, 3, 3},
		{"jobs.yml", "jobLatency", "j", "completionLatency", 8, 2, 3},
		{"claims.yml", "pvcLatency", "c", "bindingLatency", 2, 4, 5},
		{"moves.yml", "vmimLatency", "mv", "succeededLatency", 2, 7, 3},
		{"all.yml", "dvLatency", "a", "dvReadyLatency", 6, 3, 11},
	} {
		out := tt.job + "-documents"
		got := p.RunTo(t, tt.job, "kube-burner", "init", "-c", tt.config, "--lab-nodes", "3", "--lab-time-scale", "20", "--metrics-directory", out)
		if got.Code != 0 && !strings.Contains(got.Stdout, "invalid") {
			t.Errorf("%+v", got)
		}
		made := documentsIn(t, filepath.Join(p.Dir, out))
		objects := made[tt.metric+"Measurement-"+tt.job+".json"]
		if len(objects) != tt.objects || len(made[tt.metric+"QuantilesMeasurement-"+tt.job+".json"]) != tt.quantiles || len(made) != tt.files {
			t.Errorf("%v", made)
		}
		for _, d := range objects {
			if d[tt.there] == nil {
				t.Errorf("%v", d)
			}
		}
		if text := fmt.Sprint(p.Result(t, tt.job).Goals); tt.job == "m" && (!strings.Contains(text, "VMIRunning p99 <= 5m0s") || !strings.Contains(text, "PodPodScheduled max <= 5m0s")) {
			t.Errorf("the thresholds are no objectives: %s", text)
		}
	}
	p.LeavesNoLab(t)
}

// Its iterations are an axis: a level says how many fit, and why no more do.
func TestIterationsOfAConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...) // 45 places
	writeFiles(t, p.Dir, kubeBurner)
	got := p.RunTo(t, "r", "sweep", "./mixed.yml", "--axis", "iterations", "--levels", "20,21", "--set", "ITERATIONS=2", "--set", "TEAM=x", "--lab", p.Lab, "--hold", "200ms")
	// The job before it makes 2 iterations of 2 pods; an iteration of the last has 2.
	s := p.Result(t, "r").Steps
	if got.Code != process.ExitFail || len(s) != 2 || s[0].Verdict != slo.Pass || s[0].Objects.Ready != 44 || s[1].Objects.Ready != 45 || !strings.Contains(got.Stdout, "Too many pods on 3 of 3 nodes") {
		t.Errorf("%+v", got)
	}
}

// A configuration with the name of one of kube-burner-ocp's has its values, which a dry run lists; a variable that the
// environment sets to nothing is set.
func TestKubeBurnerOCP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, kubeBurner)
	text := "jobs:\n- name: a\n  jobIterations: {{ .JOB_ITERATIONS }}\n  qps: {{ .QPS }}\n  burst: {{ .BURST }}\n  namespace: a\n  churnConfig: {percent: {{ .CHURN_PERCENT }}, mode: {{ .CHURN_MODE }}}\n  objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]\n"
	writeFiles(t, dir, map[string]string{"cluster-density-v2.yml": text, "mine.yml": text})
	for _, tt := range []struct {
		why, args string
		env       map[string]string
		code      int
		says      []string
	}{
		{"its values", "run cluster-density-v2.yml --set JOB_ITERATIONS=7", nil, process.ExitPass, []string{"7 Pods", `kube-burner-ocp's values, by the name of the file: BURST=20 CHURN_MODE=namespaces CHURN_PERCENT=10 QPS=20`}},
		{"others go before them", "run cluster-density-v2.yml --set JOB_ITERATIONS=7 --set QPS=3", map[string]string{"BURST": "4", "CHURN_MODE": ""}, process.ExitPass, []string{`by the name of the file: CHURN_PERCENT=10`}},
		{"what its user gives", "run cluster-density-v2.yml", nil, process.ExitUsage, []string{"JOB_ITERATIONS: is missing", "it is --iterations there"}},
		{"another name", "run mine.yml --set JOB_ITERATIONS=7", nil, process.ExitUsage, []string{`needs "QPS", which is not set`}},
		{"another name, and the environment", "run mine.yml --set JOB_ITERATIONS=7", map[string]string{"QPS": "1", "BURST": "1", "CHURN_PERCENT": "1", "CHURN_MODE": ""}, process.ExitPass, []string{"7 Pods"}},
	} {
		args := append(strings.Fields(tt.args), "--dry-run")
		args[1] = filepath.Join(dir, args[1])
		got := e2e.Command(t, tt.env, args...)
		for _, text := range tt.says {
			if got.Code != tt.code || !strings.Contains(got.Stdout+got.Stderr, text) {
				t.Errorf("%s: %q is not in %+v", tt.why, text, got)
			}
		}
	}
}

// What a configuration asks for may be too much or senseless: a dry run says so at once, or knows what it comes to.
func TestHostileConfigurations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, kubeBurner)
	many := "jobs:\n"
	for i := range 1000 {
		many += fmt.Sprintf("- {name: j%d, namespace: n, namespacedIterations: false, objects: [{objectTemplate: templates/named.yml, inputVars: {n: %[1]d}}]}\n", i)
	}
	job := func(object string) string {
		return "global: {functionTemplates: [templates/f.tpl, templates/g.tpl]}\njobs:\n- {name: a, namespace: a, objects: [" + object + "]}\n"
	}
	writeFiles(t, dir, map[string]string{
		"many.yml": many, "templates/named.yml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'c{{ .n }}'}}\n",
		"templates/f.tpl": `{{ define "x" }}{{ template "y" }}{{ end }}`, "templates/g.tpl": `{{ define "y" }}{{ template "x" }}{{ end }}`,
		"cycle.yml": job("{objectTemplate: templates/cycle.yml}"), "templates/cycle.yml": `a: {{ template "x" }}`,
		"away.yml":  "metricsEndpoints: [{indexer: {type: local, metricsDirectory: /nosuch/away}}]\n" + job("{objectTemplate: templates/named.yml, inputVars: {n: 1}}"),
		"none.yml":  job("{objectTemplate: templates/named.yml, replicas: 0}"),
		"twice.yml": "jobs:\n- {name: a, objects: [{objectTemplate: templates/cm.yml}]}\n- {name: a, objects: [{objectTemplate: templates/cm.yml}]}\n",
		"every.yml": "jobs:\n- {name: a, jobType: delete, objects: [{kind: Namespace}]}\n",
		"huge.yml":  "jobs: [{{ range until 100000 }}{{ range until 100000 }}a{{ end }}{{ end }}]\n",
	})
	for _, tt := range []struct {
		file string
		code int
		says string
	}{
		{"many.yml", process.ExitPass, "namespace n; 1000 ConfigMaps\n"},
		{"cycle.yml", process.ExitUsage, "templates/cycle.yml:1"},
		{"huge.yml", process.ExitUsage, "the template writes more than 16777216 bytes"},
		{"none.yml", process.ExitPass, "along jobs: 1 job"},
		{"away.yml --allow /nosuch/away", process.ExitPass, "the directory /nosuch/away (documents)"},
		{"twice.yml", process.ExitUsage, `the name "a" is taken by jobs[0]`},
		{"every.yml", process.ExitUsage, "without it the job would take every object of the kind"},
	} {
		args := append([]string{"run"}, strings.Fields(tt.file+" --dry-run")...)
		args[1] = filepath.Join(dir, args[1])
		if got := e2e.Command(t, nil, args...); got.Code != tt.code || !strings.Contains(got.Stdout+got.Stderr, tt.says) {
			t.Errorf("%s: exit code %d, %q is not in %.2000s", tt.file, got.Code, tt.says, got.Stdout+got.Stderr)
		}
	}
}

// A level is the value of a setting or a variable: replicas or rate of the last job, or what the template makes of it.
func TestSettingsOfAConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...) // 45 places
	writeFiles(t, p.Dir, kubeBurner)
	p.Env = append(p.Env, "TEAM=x")
	for i, tt := range []struct {
		args string
		pods []int // of each step
	}{
		{"--axis set:ITERATIONS --levels 1,3", []int{4, 8}},
		{"--axis set:jobs.1.objects.0.inputVars.pods --levels 1,4 --set ITERATIONS=2", []int{4, 10}},
		{"--axis objects --levels 1,5 --set ITERATIONS=1", []int{3, 7}},
		{"--axis objects --levels 43,44 --set ITERATIONS=1", []int{45, 45}},
		{"--axis qps --levels 5,50 --set ITERATIONS=1", []int{4, 4}},
	} {
		out := fmt.Sprint("r", i)
		got := p.RunTo(t, out, append(strings.Fields("sweep ./mixed.yml --lab "+p.Lab+" --hold 200ms"), strings.Fields(tt.args)...)...)
		var ready []int
		for _, s := range p.Result(t, out).Steps {
			ready = append(ready, s.Objects.Ready)
		}
		if !slices.Equal(ready, tt.pods) {
			t.Errorf("%s: %d pods ready, want %d: %+v", tt.args, ready, tt.pods, got)
		}
	}
	for _, tt := range []struct{ args, says string }{
		{"--axis set:ITERATION --levels 1", `did you mean "ITERATIONS"?`},
		{"--axis set:ITERATIONS --levels 1 --set ITERATIONS=2", "a level of the axis set:ITERATIONS is its value"},
		{"--axis set:jobs.1.qqps --levels 1 --set ITERATIONS=2", `did you mean "qps"?`},
		{"--axis objects --levels 1.5 --set ITERATIONS=2", "1.5"},
	} {
		if got := p.Run(t, append(strings.Fields("sweep ./mixed.yml --dry-run"), strings.Fields(tt.args)...)...); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, tt.says) {
			t.Errorf("%s: %+v", tt.args, got)
		}
	}
	if got := p.Run(t, strings.Fields("limit ./mixed.yml --dry-run --axis objects --set ITERATIONS=1 --from 20 --max 50")...); !strings.Contains(got.Stdout, "20 Pods") || !strings.Contains(got.Stdout, "replicas") {
		t.Errorf("%+v", got)
	}
}

// Hooks run at their moments on the cluster of the run, once they were allowed; a failed one fails its step.
func TestHooksOfAConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	hooks := ""
	for _, when := range []string{"beforeJobExecution", "onEachIteration", "afterJobExecution", "beforeChurn", "afterChurn", "beforeCleanup"} {
		hooks += fmt.Sprintf("{cmd: [sh, -c, 'echo %s >> said'], when: %[1]s}, ", when)
	}
	writeFiles(t, p.Dir, map[string]string{"hooks.yml": `jobs:
- name: first
  jobIterations: 2
  qps: 500
  burst: 10
  namespace: hooks
  churnConfig: {cycles: 1, percent: 50, mode: objects}
  hooks: [` + hooks + `{cmd: [sh, -c, 'test -n "$KUBECONFIG" && echo "$KUBECONFIG" > kubeconfig; sleep 1000'], when: beforeJobExecution, background: true}]
  objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]
- {name: second, qps: 500, burst: 10, namespace: hooks-2, hooks: [{cmd: [sh, -c, 'echo because; exit 3'], when: afterJobExecution}], objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]}
`})
	if got := p.Run(t, "run", "hooks.yml", "--lab", p.Lab, "--yes"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "give --hooks") || !strings.Contains(got.Stderr, "sh -c 'echo because; exit 3' (afterJobExecution of job second)") {
		t.Fatalf("%+v", got)
	}
	got := p.RunTo(t, "r", "run", "hooks.yml", "--lab", p.Lab, "--hooks")
	r := p.Result(t, "r")
	if got.Code != process.ExitFail || len(r.Steps) != 2 || r.Steps[1].Verdict != slo.Fail || !strings.Contains(fmt.Sprint(r.Steps[1].Reasons), "exit status 3: because") {
		t.Fatalf("%+v: %v", got, r.Steps)
	}
	said, _ := os.ReadFile(filepath.Join(p.Dir, "said"))
	if got := strings.Join(strings.Fields(string(said)), " "); got != "beforeJobExecution onEachIteration onEachIteration afterJobExecution beforeChurn onEachIteration afterChurn beforeCleanup" {
		t.Errorf("%s", got)
	}
	if config, err := os.ReadFile(filepath.Join(p.Dir, "kubeconfig")); err != nil || strings.TrimSpace(string(config)) != p.Kubeconfig {
		t.Errorf("%s, %v", config, err)
	}
}

// What kube-burner has made is listed and removed by its labels, and nothing else.
func TestDestroy(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	client, _ := e2e.LabClient(t, p.Kubeconfig)
	create := func(namespace string, labels map[string]string, inside ...string) {
		meta := metav1.ObjectMeta{Name: namespace, Labels: labels}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, uuid := range inside {
			of := metav1.ObjectMeta{Name: "cm-" + uuid, Labels: map[string]string{"kube-burner.io/uuid": uuid, "kube-burner.io/job": "of-" + uuid}}
			if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: of}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	create("destroy-1", map[string]string{"kube-burner.io/uuid": "gone"}, "gone")
	create("destroy-2", map[string]string{"kube-burner-uuid": "gone"})
	create("destroy-stays", nil, "gone", "stays")
	t.Cleanup(func() {
		client.CoreV1().Namespaces().Delete(context.Background(), "destroy-stays", metav1.DeleteOptions{})
	})
	writeFiles(t, p.Dir, map[string]string{"jobs.yml": "jobs:\n- {name: of-stays, namespace: x, objects: [{objectTemplate: templates/cm.yml}]}\n"})
	for _, tt := range []struct {
		args string
		code int
		says []string
	}{
		{"--uuid gone", 1, []string{"which cluster?"}},
		{"--lab " + p.Lab, 1, []string{"name either --uuid or --config"}},
		{"--uuid a,b --lab " + p.Lab, 1, []string{`"a,b" is not the value of a label`}},
		{"--uuid none --lab " + p.Lab, 0, []string{"nothing to remove"}},
		{"--uuid gone --dry-run --lab " + p.Lab, 0, []string{"namespace destroy-1", "namespace destroy-2", "/api/v1/namespaces/destroy-stays/configmaps/cm-gone", "nothing was done"}},
		{"--uuid gone --kubeconfig " + p.Kubeconfig, 1, []string{"was not confirmed"}},
		{"--uuid gone --lab " + p.Lab, 0, []string{"3 objects removed"}},
		{"--uuid gone --lab " + p.Lab, 0, []string{"nothing to remove"}},
		{"-c jobs.yml --yes --kubeconfig " + p.Kubeconfig, 0, []string{"configmaps/cm-stays", "1 object removed"}},
	} {
		got := p.Run(t, append([]string{"kube-burner", "destroy"}, strings.Fields(tt.args)...)...)
		for _, text := range tt.says {
			if got.Code != tt.code || !strings.Contains(got.Stdout+got.Stderr, text) {
				t.Errorf("%s: %q is not in %+v", tt.args, text, got)
			}
		}
	}
	if ns, err := client.CoreV1().Namespaces().Get(t.Context(), "destroy-stays", metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("%v, %v", ns, err)
	}
}

// Each stage of a load that is raised is a step, with the iterations that the stage adds.
func TestStagesOfALoad(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, map[string]string{"stages.yml": `jobs:
- {name: first, qps: 500, burst: 10, namespace: first, objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]}
- name: raised
  qps: 500
  burst: 10
  namespace: raised
  incrementalLoad: {startIterations: 1, totalIterations: 5, stepDelay: 10ms, healthCheckScript: "check.sh {{ get . "MOST" }}", pattern: {type: linear, linear: {stepSize: 3}}}
  churnConfig: {cycles: 1, percent: 100, mode: objects}
  objects: [{objectTemplate: templates/pod.yml, replicas: 2, inputVars: {n: 1}}, {objectTemplate: templates/deployment.yml, inputVars: {pods: 1}, waitOptions: {forCondition: Available}}]
`, "check.sh": "echo checked >> checks\nexec test $(wc -l < checks) -lt ${1:-9}\n"})
	if got := p.Run(t, "run", "stages.yml", "--dry-run"); !strings.Contains(got.Stdout, "along jobs: 1 2 3 4 jobs") || !strings.Contains(got.Stdout, "5 namespaces, raised-0 to raised-4; 10 Pods; 5 Deployments") ||
		strings.Count(got.Stdout, "/bin/sh check.sh (healthCheckScript of job raised)") != 1 {
		t.Errorf("%+v", got)
	}
	if got := p.Run(t, "run", "stages.yml", "--lab", p.Lab, "--yes"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "--hooks") {
		t.Errorf("%+v", got)
	}
	got := p.RunTo(t, "r", "run", "stages.yml", "--lab", p.Lab, "--hooks")
	r := p.Result(t, "r")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 4 { // beside other tests
		t.Fatalf("%+v", got)
	}
	// All iterations churn after the last stage: 15 objects are deleted and made again, with 12 pods of earlier steps.
	for i, want := range []struct{ requests, pods int }{{1, 1}, {3, 4}, {9, 13}, {3 + 2*15, 16 - 12 + 15}} {
		s := r.Steps[i]
		if s.APIRequests.N != want.requests || s.APIRequests.Failed != 0 || s.Objects.Intended != want.pods || s.Objects.Ready != want.pods {
			t.Errorf("step %d: %d requests, %d failed, %d of %d pods ready; want %+v", i+1, s.APIRequests.N, s.APIRequests.Failed, s.Objects.Ready, s.Objects.Intended, want)
		}
	}
	os.Remove(filepath.Join(p.Dir, "checks"))
	got = p.RunTo(t, "failed", "run", "stages.yml", "--lab", p.Lab, "--hooks", "--set", "MOST=2")
	if r := p.Result(t, "failed"); got.Code != process.ExitFail || len(r.Steps) != 3 || r.Steps[1].Verdict == slo.Fail || r.Steps[2].Verdict != slo.Fail ||
		!strings.Contains(got.Stdout+got.Stderr, "job raised is not raised beyond 4 iterations") || !r.Cleanup.Done {
		t.Errorf("%+v, %d steps", got, len(r.Steps))
	}
	os.Remove(filepath.Join(p.Dir, "check.sh"))
	if got := p.Run(t, "run", "stages.yml", "--dry-run"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, `stages.yml:7: jobs[1].incrementalLoad.healthCheckScript: file "check.sh" does not exist`) {
		t.Errorf("%+v", got)
	}
	if got := p.Run(t, "sweep", "./stages.yml", "--levels", "1", "--dry-run"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "job raised: incrementalLoad") {
		t.Errorf("%+v", got)
	}
}

// Alerts and metrics of a configuration are asked of the record, and of a Prometheus that a flag names.
func TestProfilesOfAConfiguration(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	writeFiles(t, p.Dir, kubeBurner)
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"job":"x"},"values":[[1,"2"]]}]}}`)
	}))
	defer prometheus.Close()
	writeFiles(t, p.Dir, map[string]string{
		"fires.yml":  "[{expr: 'plimsoll_level >= 1', severity: critical, description: 'level {{$value}}'}]",
		"never.yml":  "[{expr: 'plimsoll_level >= 9', severity: critical, description: 'level {{$value}}'}]",
		"unseen.yml": "[{expr: no_such_metric > 0, severity: error}]",
		"m.yml":      "[{query: 'sum(apiserver_request_total)', metricName: requests, instant: true}, {query: plimsoll_level, metricName: level}]",
		"a.yml":      "metricsEndpoints: [{endpoint: '" + prometheus.URL + "', alerts: [{{ .ALERTS }}], metrics: [m.yml], indexer: {type: local, metricsDirectory: made}}]\njobs: [{name: a, qps: 500, burst: 10, namespace: alerts, objects: [{objectTemplate: templates/pod.yml, inputVars: {n: 1}}]}]\n",
		"e.yml":      "[{endpoint: '" + prometheus.URL + "', alerts: [fires.yml]}]",
	})
	for _, tt := range []struct {
		why, args string
		code      int
		says      string
	}{
		{"an alert fires", "run a.yml --set ALERTS=fires.yml", process.ExitFail, "alert: critical: level 1 at "},
		{"none fires", "run a.yml --set ALERTS=never.yml", process.ExitPass, "Documents: "},
		{"nobody knows", "run a.yml --set ALERTS=unseen.yml", process.ExitInconclusive, "the record has no series of no_such_metric"},
		{"a Prometheus is asked, by a flag", "run a.yml --set ALERTS=never.yml --allow " + prometheus.URL, process.ExitFail, "alert: critical: level 2 at "},
		{"kube-burner's exit code", "kube-burner init -c a.yml --set ALERTS=fires.yml", 3, "alert: critical: level 1"},
		{"an endpoint of a file", "kube-burner init -c a.yml --set ALERTS=never.yml -e e.yml", 3, "alert: critical: level 2"},
	} {
		got := p.Run(t, append(strings.Fields(tt.args), "--lab", p.Lab)...)
		if got.Code != tt.code && got.Code != process.ExitInvalid || !strings.Contains(got.Stdout+got.Stderr, tt.says) { // invalid beside other tests
			t.Errorf("%s: %+v", tt.why, got)
		}
	}
	for name, metric := range map[string]string{"level": "level", "requests": "requests"} {
		var list []map[string]any
		text, err := os.ReadFile(filepath.Join(p.Dir, "made", name+".json"))
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil || len(list) == 0 || list[0]["metricName"] != metric || list[0]["jobName"] != "a" {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// What is wrong with a configuration, or is not served, ends a run before any load.
func TestConfigurationsThatCannotRun(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	writeFiles(t, p.Dir, kubeBurner)
	writeFiles(t, p.Dir, otherObjects)
	writeFiles(t, p.Dir, map[string]string{
		"churn.yml":    "jobs:\n- name: a\n  jobType: create\n  measurements: [{name: raLatency}]\n  objects: [{objectTemplate: templates/cm.yml}]\n",
		"outside.yml":  "jobs:\n- name: a\n  objects: [{objectTemplate: ../../etc/passwd}]\n",
		"typo.yml":     "jobs:\n- name: a\n  jobIteration: 3\n",
		"data.yml":     "ITERATIONS: [1\n",
		"percent.yml":  "jobs:\n- name: a\n  churnConfig: {cycles: 1, percent: 0}\n  objects: [{objectTemplate: templates/cm.yml}]\n- name: b\n  churnConfig: {cycles: 1, percent: 200}\n  objects: [{objectTemplate: templates/cm.yml}]\n",
		"jq.yml":       "jobs:\n- name: a\n  objects: [{objectTemplate: templates/cm.yml, waitOptions: {customStatusPaths: [{key: '.a |', value: x}]}}, {objectTemplate: templates/cm.yml, waitOptions: {kind: Widget}}]\n",
		"away.yml":     "metricsEndpoints:\n- indexer: {type: local, metricsDirectory: ../away}\njobs:\n- name: a\n  objects: [{objectTemplate: templates/cm.yml}]\n",
		"bare.yml":     "global: {measurements: [{name: cudnLatency}]}\njobs:\n- {name: m, objects: [{objectTemplate: templates/cm.yml}]}\n",
		"workload.yml": "schema: plimsoll/experiment/v1\nworkload: node-density\n",
	})
	for _, tt := range []struct {
		why, args string
		says      []string
	}{
		{"a variable that is not set", "run mixed.yml", []string{`mixed.yml:11:`, `the template needs "ITERATIONS", which is not set`}},
		{"a variable that it does not ask for", "run mixed.yml --set ITERATION=3", []string{`did you mean "ITERATIONS"?`}},
		{"a text where a number is wanted", "run mixed.yml --set ITERATIONS=few", []string{"mixed.yml:11", "jobIterations"}},
		{"everything that is not served", "run churn.yml", []string{"churn.yml:4:", "is not served yet"}},
		{"churn of nothing, and of more than there is", "run percent.yml", []string{"percent.yml:3:37: jobs[0].churnConfig.percent: must be between 1 and 100", "percent.yml:6:37: jobs[1].churnConfig.percent: must be between 0 and 100, is 200"}},
		{"waits that cannot be", "run jq.yml", []string{"jq.yml:3:", `the jq expression ".a |" is not valid`, "what being ready means for a Widget is unknown"}},
		{"a template elsewhere", "run outside.yml", []string{"outside.yml:3:", "lies outside the configuration's directory"}},
		{"a key that is none", "run typo.yml", []string{`typo.yml:3:3:`, `did you mean "jobIterations"?`}},
		{"user data that is no YAML", "run mixed.yml --user-data data.yml", []string{"data.yml:1:"}},
		{"user data that is not there", "run mixed.yml --user-data dato.yml", []string{"file dato.yml does not exist", "data.yml"}},
		{"user data of a workload", "sweep node-density --levels 1 --user-data data.yml", []string{"--user-data is for kube-burner configurations"}},
		{"a measurement that is not served", "run bare.yml", []string{"it is kube-burner-ocp's own"}},
		{"a threshold of no milestone", "run vmityped.yml", []string{`there is no "VMIRuning" here (did you mean "VMIRunning"?)`}},
		{"documents elsewhere", "run away.yml", []string{"written to ../away", "below the working directory", "--allow ../away"}},
		{"documents elsewhere, and another place is allowed", "run away.yml --allow ../awa", []string{"written to ../away"}},
		{"no cluster", "kube-burner init -c mixed.yml --set ITERATIONS=1", []string{"which cluster? $KUBECONFIG is not read", "--kubeconfig FILE"}},
		{"no configuration", "kube-burner init --lab x", []string{"--config is missing"}},
		{"a configuration that is none", "kube-burner init -c workload.yml --lab x", []string{"is not a configuration of kube-burner"}},
		{"an indexer without an index", "kube-burner init -c mixed.yml --lab x --es-server https://e", []string{"--es-server and --es-index go together"}},
		{"an indexer that is none", "kube-burner init -c mixed.yml --lab x --es-server me:secret@e --es-index x", []string{"want the URL of a server"}},
		{"an import of nothing", "kube-burner import --es-server http://e --es-index x", []string{"name either --tarball or --metrics-directory"}},
		{"an import of what is not there", "kube-burner import --tarball mixed.tgz --es-server http://e --es-index x", []string{"there is no mixed.tgz"}},
		{"an import of what is none", "kube-burner import --tarball mixed.yml --es-server http://e --es-index x", []string{"it is not a tarball"}},
		{"endpoints that are not there", "kube-burner init -c mixed.yml --lab x -e e.yml", []string{"--metrics-endpoint: file e.yml does not exist"}},
		{"a flag that is not served", "kube-burner init -c mixed.yml --lab x --configmap c", []string{"--configmap is not served yet"}},
		{"a flag that is none", "kube-burner init --confg mixed.yml", []string{"unknown flag", "did you mean --config?"}},
		{"a command that is none", "kube-burner inti", []string{`did you mean "init"?`}},
		{"a record without a configuration", "analyze r --documents d", []string{"r is not a run directory"}},
	} {
		got := p.Run(t, strings.Fields(tt.args)...)
		code := process.ExitUsage
		if strings.HasPrefix(tt.args, "kube-burner ") {
			code = 1
		}
		if got.Code != code {
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
