package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

const ms record.Micros = 1000

// told are the documents of events, of a run that began at a whole second.
func told(t *testing.T, c Configuration, steps []result.Step, events ...record.Event) map[string][]map[string]any {
	t.Helper()
	f := newFold()
	f.start = time.Date(2026, 11, 25, 17, 0, 0, 0, time.UTC)
	for _, e := range events {
		if err := f.add(e); err != nil {
			t.Fatal(err)
		}
	}
	jobs := f.all()
	m := maker{Configuration: c, start: f.start, steps: steps}
	m.Metadata = metadata(c.Metadata, &record.Environment{})
	made := make(map[string][]map[string]any)
	for _, job := range c.Jobs {
		of := jobs[job.Name]
		lists := map[string][]any{"jobSummary": {m.summary(job, of)}}
		for _, name := range append(job.Measured, kubeburner.PodLatency) {
			t, _ := kubeburner.MeasureOf(name)
			lists[t.Document+"Measurement"], lists[t.Document+"QuantilesMeasurement"] = m.objects(t, job.Name, of.of(t.Kind)), m.quantiles(t, job.Name, of)
		}
		for metric, items := range lists {
			text, err := json.Marshal(items)
			if err != nil {
				t.Fatal(err)
			}
			var read []map[string]any
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			made[Document{Metric: metric, Job: job.Name}.Name()] = read
		}
	}
	return made
}

func slotOf(name string, sent record.Micros, units int, grouped bool) record.Event {
	return record.Event{T: sent + 5*ms, Step: 1, Body: &record.Slot{Slot: name, Component: "j", Units: units, Grouped: grouped, Iteration: 3, Replica: 2, Intended: sent - ms, Sent: sent, Replied: sent + 5*ms, Outcome: record.SlotCreated}}
}

func news(at record.Micros, object, slot, milestone string) record.Event {
	return record.Event{T: at, Step: 1, Body: &record.Object{Object: object, Slot: slot, Milestone: milestone, Place: "n1"}}
}

// Every pod that was asked for counts: one that is not ready has null, and makes the
// figures null that fall on it. kube-burner leaves it out.
func TestPodsThatAreNotReadyCount(t *testing.T) {
	t.Parallel()
	c := Configuration{UUID: "u", Version: "1", Metadata: map[string]any{"team": "a"}, Jobs: []Job{{Name: "j", Measured: []string{"podLatency"}, Pause: time.Second}}}
	made := told(t, c, []result.Step{{ID: 1, Verdict: slo.Fail, VerdictWhy: "1 of 2"}},
		record.Event{Step: 1, Body: &record.StepEvent{Phase: record.PhaseStart}},
		news(101*ms, "ns/a", "", "Created"), // before the request was answered
		slotOf("ns/a", 100*ms, 1, false), slotOf("ns/b", 110*ms, 1, false),
		news(120*ms, "ns/a", "", "Scheduled"), news(1350*ms+600, "ns/a", "", "Ready"), news(1400*ms, "ns/a", "", "Ready"),
		record.Event{T: 9000 * ms, Step: 1, Body: &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndTimeout}},
		news(9500*ms, "ns/a", "", "Deleted"))
	pods := made["podLatencyMeasurement-j.json"]
	if len(pods) != 2 {
		t.Fatalf("%d pods: %v", len(pods), pods)
	}
	a, b := pods[0], pods[1]
	if a["podReadyLatency"] != 1251.0 || a["schedulingLatency"] != 20.0 || a["initializedLatency"] != nil || a["podName"] != "a" || a["namespace"] != "ns" || a["nodeName"] != "n1" || a["jobIteration"] != 3.0 || a["replica"] != 2.0 || a["timestamp"] != "2026-11-25T17:00:00.1Z" {
		t.Errorf("%v", a)
	}
	if b["podReadyLatency"] != nil || b["podName"] != "b" {
		t.Errorf("a pod of which no news came: %v", b)
	}
	for _, q := range made["podLatencyQuantilesMeasurement-j.json"] {
		if q["quantileName"] == "Ready" && (q["P50"] != 1251.0 || q["min"] != 1251.0 || q["P99"] != nil || q["max"] != nil || q["avg"] != nil) {
			t.Errorf("%v", q)
		}
	}
	s := made["jobSummary-j.json"][0]
	if s["passed"] != false || s["executionErrors"] != "fail: 1 of 2" || s["elapsedTime"] != 9.901 || s["team"] != "a" || s["endTimestamp"] != "2026-11-25T17:00:10Z" {
		t.Errorf("%v", s)
	}
}

// Pods that a controller makes count from their own creation, those that it never made
// count too, and one that took the place of another stands beside it.
func TestPodsOfControllers(t *testing.T) {
	t.Parallel()
	c := Configuration{Jobs: []Job{{Name: "j"}}}
	made := told(t, c, nil, slotOf("ns/d", 0, 3, true),
		news(200*ms, "ns/d-x", "ns/d", "Created"), news(700*ms, "ns/d-x", "ns/d", "Ready"), news(800*ms, "ns/d-x", "ns/d", "Deleted"),
		news(900*ms, "ns/d-x", "ns/d", "Created"), news(950*ms, "ns/d-x", "ns/d", "Ready"),
		news(0, "other/pod", "", "Ready"))
	pods := made["podLatencyMeasurement-j.json"]
	if len(pods) != 2 || pods[0]["podReadyLatency"] != 500.0 || pods[1]["podReadyLatency"] != 50.0 {
		t.Errorf("%v", pods)
	}
	for _, q := range made["podLatencyQuantilesMeasurement-j.json"] {
		if q["quantileName"] == "Ready" && (q["P50"] != 500.0 || q["P99"] != nil) { // of three
			t.Errorf("%v", q)
		}
	}
}

// Churn makes objects of names that were deleted: each life counts from its own request,
// also where the answer to the second is there before the news of the deletion.
func TestNamesThatChurnMakesAgain(t *testing.T) {
	t.Parallel()
	made := told(t, Configuration{Jobs: []Job{{Name: "j"}}}, nil, slotOf("ns/a", 0, 1, false), news(10*ms, "ns/a", "", "Created"), news(40*ms, "ns/a", "", "Ready"),
		slotOf("ns/a", 5000*ms, 1, false), news(5001*ms, "ns/a", "", "Deleted"), news(5002*ms, "ns/a", "", "Created"), news(5030*ms, "ns/a", "", "Ready"),
		slotOf("ns/a", 9000*ms, 1, false))
	pods := made["podLatencyMeasurement-j.json"]
	if len(pods) != 2 || pods[0]["podReadyLatency"] != 40.0 || pods[1]["podReadyLatency"] != 30.0 {
		t.Errorf("%v", pods)
	}
	for _, q := range made["podLatencyQuantilesMeasurement-j.json"] {
		if q["quantileName"] == "Ready" && (q["P50"] != 40.0 || q["P99"] != nil) { // of three that were asked for
			t.Errorf("%v", q)
		}
	}
}

// A target that was emptied begins again: names come again.
func TestNamesThatComeAgain(t *testing.T) {
	t.Parallel()
	made := told(t, Configuration{Jobs: []Job{{Name: "j"}}}, nil, slotOf("ns/a", 0, 1, false), news(10*ms, "ns/a", "", "Ready"),
		record.Event{Body: &record.StepEvent{Phase: record.PhaseReset}},
		slotOf("ns/a", 5000*ms, 1, false), news(5030*ms, "ns/a", "", "Ready"))
	pods := made["podLatencyMeasurement-j.json"]
	if len(pods) != 2 || pods[0]["podReadyLatency"] != 10.0 || pods[1]["podReadyLatency"] != 30.0 {
		t.Errorf("%v", pods)
	}
}

// Files are written whole, in place of those of an earlier run; what else lies there stays.
func TestFilesAndTarball(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := Place{Directory: "m", Tarball: "m.tgz"}
	list := []Document{{"jobSummary", "", []any{map[string]int{"a": 1}}}}
	for range 2 {
		if n, err := Write(dir, to, list); n != 2 || err != nil {
			t.Fatal(n, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "m", "jobSummary.json"))
	if err != nil || strings.TrimSpace(string(text)) != `[{"a":1}]` {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := Read(record.Dir(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run of another kind: %v", err)
	}
}

// A job's name comes from a record, and a place from a configuration: both may be
// somebody else's. Nothing is written outside of the directory that the documents are for,
// and no other file makes room for a tarball.
func TestNamesOfSomebodyElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	if err := errors.Join(os.MkdirAll(below, 0o700), os.Symlink(dir, filepath.Join(below, "link")), os.WriteFile(filepath.Join(below, "notes"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ why, directory, tarball, job string }{
		{"a job leads out", "m", "", "x/../../../../name"},
		{"a job leads to another directory", "m", "", "x/name"},
		{"a directory leads out", "../m", "", "j"},
		{"a directory is absolute", filepath.Join(dir, "m"), "", "j"},
		{"a directory is a link", "link", "", "j"},
		{"a tarball leads out", "m", "../m.tgz", "j"},
		{"a tarball is absolute", "m", filepath.Join(dir, "m.tgz"), "j"},
		{"a tarball lies behind a link", "m", "link/m.tgz", "j"},
		{"a tarball has the name of another file", "m", "notes", "j"},
	} {
		to := Place{Directory: tt.directory, Tarball: tt.tarball}
		if n, err := Write(below, to, []Document{{"jobSummary", "", []any{1}}, {"podLatencyMeasurement", tt.job, []any{1}}}); err == nil {
			t.Errorf("%s: %d files were written", tt.why, n)
		}
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		left = append(left, strings.TrimPrefix(path, dir))
		return err
	})
	if got := strings.Join(left, " "); err != nil || got != " /a /a/b /a/b/link /a/b/notes" {
		t.Errorf("there is now %s, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(below, "notes")); string(text) != "mine" {
		t.Error(string(text), err)
	}
	// The user may name any directory.
	if n, err := Write(below, Place{Directory: filepath.Join(below, "link"), Named: true}, []Document{{"jobSummary", "", []any{1}}}); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// Machines have the names of their documents.
func TestDocumentsOfMachines(t *testing.T) {
	t.Parallel()
	made := told(t, Configuration{Jobs: []Job{{Name: "j", Measured: []string{"vmiLatency"}}}}, nil, slotOf("VirtualMachine/ns/vm", 0, 1, false),
		news(20*ms, "VirtualMachine/ns/vm", "", "VMICreated"), news(30*ms, "VirtualMachine/ns/vm", "", "PodPodScheduled"), news(400*ms, "VirtualMachine/ns/vm", "", "VMIRunning"), news(500*ms, "VirtualMachine/ns/vm", "", "VMReady"))
	d := made["vmiLatencyMeasurement-j.json"][0]
	if d["vmName"] != "vm" || d["vmiName"] != "vm" || d["vmiCreatedLatency"] != 20.0 || d["podScheduledLatency"] != 30.0 || d["vmiRunningLatency"] != 400.0 || d["vmReadyLatency"] != 500.0 || d["podReadyLatency"] != nil {
		t.Errorf("%v", d)
	}
	var names []string
	for _, q := range made["vmiLatencyQuantilesMeasurement-j.json"] {
		names = append(names, q["quantileName"].(string))
	}
	// Those of kube-burner 2.7.3.
	if got := strings.Join(names, " "); got != "PodCreated PodPodScheduled PodInitialized PodContainersReady PodPodReadyToStartContainers VMICreated VMIPending VMIScheduling VMIScheduled VMIRunning VMReady" {
		t.Error(got)
	}
	if s := made["jobSummary-j.json"][0]; s["endTimestamp"] != "2026-11-25T17:00:00.5Z" {
		t.Errorf("a job ends when its last machine is ready: %v", s)
	}
}

// Each measurement of a job has the documents of its own kind of objects, which may have the same names.
func TestDocumentsOfSeveralMeasurements(t *testing.T) {
	t.Parallel()
	made := told(t, Configuration{Jobs: []Job{{Name: "j", Measured: []string{"podLatency", "dataVolumeLatency", "jobLatency"}}}}, nil,
		slotOf("ns/a", 0, 1, false), slotOf("DataVolume/ns/a", 0, 1, false), slotOf("DataVolume/ns/b", 0, 1, false), slotOf("Job/ns/a", 0, 1, false),
		news(20*ms, "ns/a", "", "Ready"), news(30*ms, "DataVolume/ns/a", "", "DVReady"), news(40*ms, "Job/ns/a", "", "JobStartTime"), news(700*ms, "Job/ns/a", "", "JobComplete"),
		record.Event{T: 9000 * ms, Step: 1, Body: &record.StepEvent{Phase: record.PhaseEnd}})
	for _, tt := range []struct {
		metric, name, key string
		want              []any // of its objects
		quantile          string
		p50               any
	}{
		{"podLatency", "podName", "podReadyLatency", []any{20.0}, "Ready", 20.0},
		{"dvLatency", "dvName", "dvReadyLatency", []any{30.0, nil}, "Ready", 30.0},
		{"jobLatency", "k8sJobName", "completionLatency", []any{700.0}, "Complete", 700.0},
	} {
		var got []any
		for _, d := range made[tt.metric+"Measurement-j.json"] {
			if got = append(got, d[tt.key]); d["namespace"] != "ns" || d[tt.name] == nil {
				t.Errorf("%v", d)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.metric, got, tt.want)
		}
		for _, q := range made[tt.metric+"QuantilesMeasurement-j.json"] {
			if q["quantileName"] == tt.quantile && q["P50"] != tt.p50 {
				t.Errorf("%v", q)
			}
		}
	}
	if s := made["jobSummary-j.json"][0]; s["endTimestamp"] != "2026-11-25T17:00:09Z" {
		t.Errorf("a volume was never ready: %v", s)
	}
}

// Claims tell their size and class, and how long a change of their size took: the time of claims without one is unknown.
func TestDocumentsOfClaims(t *testing.T) {
	t.Parallel()
	told := func(at record.Micros, object, milestone string, values ...string) record.Event {
		e := news(at, object, "", milestone)
		e.Body.(*record.Object).Labels = values
		return e
	}
	made := measuredBy(t, "pvcLatency", slotOf("PersistentVolumeClaim/ns/a", 0, 1, false), slotOf("PersistentVolumeClaim/ns/b", 0, 1, false), slotOf("PersistentVolumeClaim/ns/c", 0, 1, false),
		told(20*ms, "PersistentVolumeClaim/ns/a", "Created", "1Gi", "fast"), told(20*ms, "PersistentVolumeClaim/ns/b", "Created", "1Gi", ""),
		news(30*ms, "PersistentVolumeClaim/ns/a", "", "PVCPending"), news(40*ms, "PersistentVolumeClaim/ns/a", "", "PVCBound"), news(50*ms, "PersistentVolumeClaim/ns/b", "", "PVCLost"),
		told(5000*ms, "Resize/ns/a", "PVCResizing", "2Gi"), news(5700*ms, "Resize/ns/a", "", "PVCResized"), told(6000*ms, "Resize/ns/stranger", "PVCResizing", "2Gi"))
	a, b := made["pvcLatencyMeasurement-j.json"][0], made["pvcLatencyMeasurement-j.json"][1]
	if a["pvcName"] != "a" || a["size"] != "1Gi" || a["storageClass"] != "fast" || a["pendingLatency"] != 30.0 || a["bindingLatency"] != 40.0 || a["resizeLatency"] != 700.0 || a["resizedCapacity"] != "2Gi" || a["lostLatency"] != nil {
		t.Errorf("%v", a)
	}
	if _, has := b["resizedCapacity"]; has || b["storageClass"] != "unknown" || b["lostLatency"] != 50.0 || b["resizeLatency"] != nil || b["bindingLatency"] != nil {
		t.Errorf("%v", b)
	}
	for _, q := range made["pvcLatencyQuantilesMeasurement-j.json"] {
		want := map[string][2]any{"Pending": {nil, nil}, "Bound": {nil, nil}, "Lost": {50.0, 50.0}, "Resize": {700.0, 700.0}}[q["quantileName"].(string)]
		if q["P50"] != want[0] || q["P99"] != want[1] {
			t.Errorf("%v", q)
		}
	}
}

// A migration tells its machine, and its phases have kube-burner's keys. A snapshot has one latency.
func TestDocumentsOfMigrationsAndSnapshots(t *testing.T) {
	t.Parallel()
	moved := news(20*ms, "VirtualMachineInstanceMigration/ns/m", "", "VMIMPending")
	moved.Body.(*record.Object).Labels = []string{"vm"}
	made := measuredBy(t, "vmimLatency", slotOf("VirtualMachineInstanceMigration/ns/m", 0, 1, false), moved, news(90*ms, "VirtualMachineInstanceMigration/ns/m", "", "VMIMPreparingTarget"), news(100*ms, "VirtualMachineInstanceMigration/ns/m", "", "VMIMSucceeded"))
	if d := made["vmimLatencyMeasurement-j.json"][0]; d["vmimName"] != "m" || d["vmiName"] != "vm" || d["pendingLatency"] != 20.0 || d["preparingTargetLatency"] != 90.0 || d["succeededLatency"] != 100.0 || d["runningLatency"] != nil {
		t.Errorf("%v", d)
	}
	made = measuredBy(t, "volumeSnapshotLatency", slotOf("VolumeSnapshot/ns/s", 0, 1, false), news(70*ms, "VolumeSnapshot/ns/s", "", "VSReady"))
	if d := made["volumeSnapshotLatencyMeasurement-j.json"][0]; d["vsName"] != "s" || d["vsReadyLatency"] != 70.0 {
		t.Errorf("%v", d)
	}
}

// measuredBy returns the documents of a job with one measurement.
func measuredBy(t *testing.T, measured string, events ...record.Event) map[string][]map[string]any {
	t.Helper()
	return told(t, Configuration{Jobs: []Job{{Name: "j", Measured: []string{measured}}}}, nil, events...)
}

// Nodes have the server's times, from their creation or from an earlier condition on, in each job.
func TestDocumentsOfNodes(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 25, 16, 0, 0, 0, time.UTC)
	node := func(milestone string, after int64, labels ...string) record.Event {
		return record.Event{T: ms, Body: &record.Object{Object: "Node/n1", Milestone: milestone, Stamp: made.Unix() + after, Labels: labels, Late: true}}
	}
	documents := measuredBy(t, "nodeLatency", node("Created", 0, `{"zone":"a"}`), node("NodeMemoryPressure", 0), node("NodeReady", 31), slotOf("ns/a", 0, 1, false))
	list := documents["nodeLatencyMeasurement-j.json"]
	if len(list) != 1 {
		t.Fatal(documents)
	}
	d := list[0]
	if d["nodeName"] != "n1" || d["timestamp"] != "2026-11-25T16:00:00Z" || d["nodeMemoryPressureLatency"] != 0.0 || d["nodeReadyLatency"] != 31000.0 || d["nodeDiskPressureLatency"] != nil || fmt.Sprint(d["labels"]) != "map[zone:a]" {
		t.Errorf("%v", d)
	}
	for _, key := range []string{"namespace", "jobIteration", "replica"} {
		if _, has := d[key]; has {
			t.Errorf("a node has a %s", key)
		}
	}
	for _, q := range documents["nodeLatencyQuantilesMeasurement-j.json"] {
		if q["quantileName"] == "Ready" && q["P99"] != 31000.0 {
			t.Errorf("%v", q)
		}
	}
	if pods := documents["podLatencyMeasurement-j.json"]; len(pods) != 1 {
		t.Errorf("%v", pods)
	}
}

// A network policy counts from its request, in milliseconds, until one and all of its connections are made.
func TestDocumentsOfPolicies(t *testing.T) {
	t.Parallel()
	made := measuredBy(t, "netpolLatency", slotOf("NetworkPolicy/ns/a", 100*ms, 1, false), news(101*ms, "NetworkPolicy/ns/a", "", "Created"),
		news(101*ms, "NetworkPolicy/ns/a", "", "PolicyCreated"), news(150*ms, "NetworkPolicy/ns/a", "", "PolicyMinReady"), news(1300*ms, "NetworkPolicy/ns/a", "", "PolicyReady"))
	list, q := made["netpolLatencyMeasurement-j.json"], made["netpolLatencyQuantilesMeasurement-j.json"]
	if len(list) != 1 || list[0]["netpol"] != "a" || list[0]["minReady"] != 50.0 || list[0]["ready"] != 1200.0 || list[0]["jobIteration"] != nil {
		t.Errorf("%v", made)
	}
	if len(q) != 2 || q[0]["quantileName"] != "MinReady" || q[1]["quantileName"] != "Ready" || q[1]["P99"] != 1200.0 {
		t.Errorf("%v", q)
	}
}

// A service's answer counts from its endpoints and its address, in nanoseconds. Only those that a load balancer
// serves have a time of that; one that does not answer has null, and kube-burner leaves it out.
func TestDocumentsOfServices(t *testing.T) {
	t.Parallel()
	typed := func(e record.Event, of string) record.Event {
		e.Body.(*record.Object).Labels = []string{of}
		return e
	}
	made := measuredBy(t, "serviceLatency", slotOf("Service/ns/a", 100*ms, 1, false), slotOf("Service/ns/b", 100*ms, 1, false),
		typed(news(101*ms, "Service/ns/a", "", "Created"), "ClusterIP"), typed(news(101*ms, "Service/ns/b", "", "Created"), "LoadBalancer"),
		news(150*ms, "Service/ns/a", "", "ServiceEndpoints"), news(152*ms+7, "Service/ns/a", "", "ServiceReady"),
		news(102*ms, "Service/ns/b", "", "ServiceBalanced"), news(140*ms, "Service/ns/b", "", "ServiceEndpoints"), news(160*ms, "Service/ns/b", "", "ServiceIPAssigned"))
	services := made["svcLatencyMeasurement-j.json"]
	if len(services) != 2 {
		t.Fatalf("%v", made)
	}
	a, b := services[0], services[1]
	if _, there := a["ipAssigned"]; there || a["ready"] != 2007000.0 || a["service"] != "a" || a["type"] != "ClusterIP" || a["namespace"] != "ns" || a["jobIteration"] != nil {
		t.Errorf("%v", a)
	}
	if b["ipAssigned"] != 60e6 || b["ready"] != nil || b["type"] != "LoadBalancer" {
		t.Errorf("%v", b)
	}
	q := made["svcLatencyQuantilesMeasurement-j.json"]
	if len(q) != 2 || q[0]["quantileName"] != "IPAssigned" || q[0]["max"] != 60e6 || q[1]["P50"] != 2007000.0 || q[1]["P99"] != nil {
		t.Errorf("%v", q)
	}
}
