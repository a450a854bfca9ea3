package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
)

func TestVirtOfTheDocument(t *testing.T) {
	// V35: 3000 machines need four virt-api pods.
	a, err := virt.Tune(virt.Virt{VMs: count(3000)})
	answered(t, a, err)
	wantResult(t, a, "virtAPIReplicas", int64(4))
	correction(t, a, "V35")
	// V34, with the defaults of the version.
	for _, tt := range []struct {
		version string
		perGiB  int64
		patch   bool
		written bool
	}{{"0.44", 800, true, true}, {"0.53", 800, false, true}, {"1.3", 800, false, true}, {"v1.4.0", 150, false, false}, {"1.7", 150, false, false}} {
		a, err := virt.Tune(virt.Virt{VMs: count(3000), Nodes: count(100), KubeVirt: param.Given(tt.version, "flag")})
		answered(t, a, err)
		wantResult(t, a, "parallelMigrationsPerCluster", int64(20))
		wantResult(t, a, "parallelOutboundMigrationsPerNode", int64(4))
		wantResult(t, a, "progressTimeout", int64(150))
		wantResult(t, a, "completionTimeoutPerGiB", tt.perGiB)
		wantResult(t, a, "completionTimeoutPerGiBDocument", int64(800))
		text := fileOf(t, a, "hyperconverged.yaml")
		if got := strings.Contains(text, "jsonpatch"); got != tt.patch {
			t.Errorf("KubeVirt %s: a patch of virt-api %v, want %v", tt.version, got, tt.patch)
		}
		if got := strings.Contains(text, "completionTimeoutPerGiB: 800"); got != tt.written {
			t.Errorf("KubeVirt %s: the timeout is written %v, want %v", tt.version, got, tt.written)
		}
	}
	// V2: 30 machines and 214 pods of each node, and a machine is a pod too.
	classes := []virt.VMClass{{Name: "rhel", Count: 1500, Cores: 1, Memory: 4e9, Migration: 14 * time.Second}, {Name: "windows", Count: 500, Cores: 1, Memory: 4e9, Migration: 12 * time.Second}, {Name: "fedora", Count: 1000, Cores: 0.1, Memory: 256 << 20, Migration: 23 * time.Second}}
	a, err = virt.Tune(virt.Virt{Classes: classes, Nodes: count(100), Pods: count(21400), Cores: param.Given(40.0, "flag"), Memory: param.Given(param.Bytes(384<<30), "flag")})
	answered(t, a, err)
	wantResult(t, a, "vmsPerNode", int64(30))
	wantResult(t, a, "podsPerNode", int64(214))
	wantResult(t, a, "allPodsPerNode", int64(260))
	wantResult(t, a, "coresPerNode", 21.0)
	wantResult(t, a, "ioThreadsPerNode", int64(30))
	if f := finding(t, a, "pods of a node"); f.Grade != answer.Change || !strings.Contains(f.Remedy, "--max-pods 500") {
		t.Errorf("%+v", f)
	}
	// V26, at both ends.
	for vms, want := range map[int64]float64{100: 102, 1000: 1065} {
		a, err := virt.Tune(virt.Virt{VMs: count(vms)})
		answered(t, a, err)
		wantResult(t, a, "bootStorm", want)
	}
	// V30.
	shape, err := virt.ParseDataset("300x8x20Mi")
	if err != nil {
		t.Fatal(err)
	}
	a, err = virt.Tune(virt.Virt{Dataset: param.Given(shape, "flag"), Disk: param.Given(param.Bytes(40<<30), "flag")})
	answered(t, a, err)
	wantResult(t, a, "datasetBytes", int64(48000<<20))
	if f := finding(t, a, "data set on its disk"); f.Grade != answer.Cannot || f.Now != "46.88 GiB" {
		t.Errorf("%+v", f)
	}
	correction(t, a, "V30")
	if len(a.Files) != 0 {
		t.Errorf("a data set has files %v", a.Files)
	}
	// V41.
	a, err = virt.Tune(virt.Virt{VMs: count(10_000), Nodes: count(400), Pods: count(300_000)})
	answered(t, a, err)
	wantResult(t, a, "clusters", int64(3))
	for why, p := range map[string]virt.Virt{
		"nothing":                     {},
		"classes that do not add up":  {VMs: count(5), Classes: []virt.VMClass{{Name: "a", Count: 4, Cores: 1, Memory: 1, Migration: 0}}},
		"no version":                  {VMs: count(5), KubeVirt: param.Given("new", "flag")},
		"a bulk that took no time":    {Clones: count(5), CloneReadings: []virt.CloneReading{{Bulk: 10, Seconds: 0, From: ""}}},
		"a class named for the shell": {Classes: []virt.VMClass{{Name: "a b", Count: 4, Cores: 1, Memory: 1, Migration: 0}}},
	} {
		if _, err := virt.Tune(p); err == nil {
			t.Errorf("%s was taken", why)
		}
	}
}

// The annotation is a text that holds JSON that holds a text that holds JSON:
// the document's is not.
func TestVirtAPIPatchIsJSON(t *testing.T) {
	a, err := virt.Tune(virt.Virt{VMs: count(3000), KubeVirt: param.Given("0.44", "flag")})
	answered(t, a, err)
	object := objectOf[map[string]any](t, a, "hyperconverged.yaml")
	var outer []struct {
		Op, Path string
		Value    []kubevirt.CustomizeComponentsPatch
	}
	if err := json.Unmarshal([]byte(object.Metadata.Annotations["kubevirt.kubevirt.io/jsonpatch"]), &outer); err != nil {
		t.Fatal(err)
	}
	if len(outer) != 1 || outer[0].Op != "add" || outer[0].Path != "/spec/customizeComponents/patches" || outer[0].Value[0].ResourceName != "virt-api" {
		t.Errorf("%+v", outer)
	}
	var inner []struct {
		Op, Path string
		Value    int
	}
	if err := json.Unmarshal([]byte(outer[0].Value[0].Patch), &inner); err != nil || len(inner) != 1 || inner[0].Value != 4 || inner[0].Path != "/spec/replicas" {
		t.Errorf("%v %+v", err, inner)
	}
	a, err = virt.Tune(virt.Virt{VMs: count(3000), KubeVirt: param.Given("0.44", "flag"), Platform: param.Given(param.Kubernetes, "flag")})
	answered(t, a, err)
	var upstream kubevirt.KubeVirt
	if err := k8syaml.UnmarshalStrict([]byte(fileOf(t, a, "kubevirt.yaml")), &upstream); err != nil {
		t.Fatal(err)
	}
	migrations := upstream.Spec.Configuration.MigrationConfiguration
	if patches := upstream.Spec.CustomizeComponents.Patches; len(patches) != 1 || patches[0].Patch != outer[0].Value[0].Patch || *migrations.ParallelMigrationsPerCluster != 20 {
		t.Errorf("%+v", upstream)
	}
}

func TestMigration(t *testing.T) {
	// V38: 1000 machines of 34 nodes, 10 at a time.
	a, err := virt.Tune(virt.Virt{VMs: count(3000), Nodes: count(100), Migrate: count(1000)})
	answered(t, a, err)
	wantResult(t, a, "rebootRounds", int64(4))
	wantResult(t, a, "migrationTimeExpected", 7080.0) // the document's 118 min
	wantResult(t, a, "totalTimeExpected", 9180.0)     // and 35 min (V38)
	correction(t, a, "V36")
	moving := a.Result("migrationTime").(float64)
	if moving < 1000*17.2/20 || moving > 1.1*1000*17.2/20 {
		t.Errorf("%v s for 1000 migrations of 17.2 s, 20 at a time", moving)
	}
	// V37's average.
	if !strings.Contains(strings.Join(inputsOf(a), "\n"), "migrationTime 17.2s") {
		t.Errorf("%q", inputsOf(a))
	}
	// One's own measurement takes the document's place.
	a, err = virt.Tune(virt.Virt{Migrate: count(500), Drain: count(10), Observed: param.Given(30*time.Minute, "flag")})
	answered(t, a, err)
	wantResult(t, a, "migrationTimeExpected", 1800.0)
	// A link that is too slow for the timeout.
	a, err = virt.Tune(virt.Virt{VMs: count(10), Link: param.Given(param.Rate(100e6), "flag"), VMMemory: param.Given(param.Bytes(64<<30), "flag")})
	answered(t, a, err)
	if f := finding(t, a, "time of a copy"); f.Grade != answer.Change {
		t.Errorf("%+v", f)
	}
}

func inputsOf(a *answer.Answer) (list []string) {
	for _, in := range a.Inputs {
		list = append(list, in.Name+" "+fmt.Sprint(in.Value)+in.Unit)
	}
	return list
}

func TestZones(t *testing.T) {
	// V31 to V33: each pool selects its own zone.
	a, err := virt.Tune(virt.Virt{VMs: count(1000), Zones: count(3)})
	answered(t, a, err)
	for _, zone := range []string{"zone-0", "zone-1", "zone-2"} {
		pool := objectOf[readPool](t, a, "machineconfigpool-"+zone+".yaml")
		e := pool.Spec.MachineConfigSelector.MatchExpressions
		if _, ok := pool.Spec.NodeSelector.MatchLabels["node-role.kubernetes.io/"+zone]; !ok || len(e) != 1 || strings.Join(e[0].Values, ",") != "worker,"+zone || pool.Spec.MaxUnavailable != 10 || pool.Metadata.Name != zone {
			t.Errorf("%+v", pool)
		}
	}
	correction(t, a, "V32")
	correction(t, a, "V33")
	text := fileOf(t, a, "machineconfig-drain-zone-0.yaml")
	if strings.Contains(text, "filesystem") || strings.Contains(text, "networkd") || !strings.Contains(text, "version: 3.") {
		t.Errorf("%s", text)
	}
}

func TestCloneModel(t *testing.T) {
	// Without timeouts the lock makes clones serial: closed forms.
	m := virt.CloneModel{Workers: 10, Lock: 2, Work: 0}
	if got := m.BulkTime(100, 0); got != 200 {
		t.Errorf("100 clones of 2 s: %v", got)
	}
	m.Work = 5
	if got := m.BulkTime(1, 0); got != 7 {
		t.Errorf("one clone: %v", got)
	}
	if got := m.BulkTime(5, 0); got != 5*2+5 {
		t.Errorf("5 clones: %v", got)
	}
	// Two workers that spend 2 s at the lock and 5 s after it: two clones every 7 s.
	if got := (virt.CloneModel{Workers: 2, Lock: 2, Work: 5}).BulkTime(4, 0); got != 16 {
		t.Errorf("two workers: %v", got)
	}
	// Past 250 each clone flattens.
	m = virt.CloneModel{Workers: 10, Lock: 1, FlattenAfter: 250, Flatten: 20}
	if got := m.BulkTime(10, 245); got != 5+5*21 {
		t.Errorf("flattening: %v", got)
	}
	// Each clone that waits beyond the workers slows the one that holds the image.
	m = virt.CloneModel{Workers: 10, Lock: 1, Penalty: 0.1}
	if got := m.BulkTime(12, 0); math.Abs(got-(1.2+1.1+10)) > 1e-9 {
		t.Errorf("a penalty of 10%%: %v", got)
	}
	// The lock is the bound, whatever else.
	random := rand.New(rand.NewPCG(13, 14))
	for range 300 {
		m := virt.CloneModel{Workers: 1 + random.IntN(12), Lock: random.Float64() * 5, Work: random.Float64() * 5, Penalty: random.Float64() * 0.1, Bulk: random.Float64() * 5}
		n := 1 + random.IntN(120)
		got := m.BulkTime(n, 0)
		if got < float64(n)*m.Lock+m.Work+m.Bulk-1e-9 || math.IsNaN(got) {
			t.Fatalf("%+v: %d clones in %v s", m, n, got)
		}
		one, two := m.Total(n, n), m.Total(n, max(1, n/2))
		if one < float64(n)*m.Lock || two < float64(n)*m.Lock {
			t.Fatalf("%+v: %v, %v", m, one, two)
		}
	}
}

func TestCloneBulks(t *testing.T) {
	// Small bulks cost their overhead, large ones the penalty: the best is in
	// between, and here the document's.
	a, err := virt.Tune(virt.Virt{Clones: count(800), CloneLock: param.Given(time.Second, "flag"), CloneBulk: param.Given(10*time.Second, "flag"), ClonePenalty: param.Given[param.Share](0.002, "flag"), Flatten: param.Given(time.Nanosecond, "flag")})
	answered(t, a, err)
	bulk, best, all := a.Result("bulk").(int64), a.Result("cloneTime").(float64), a.Result("cloneTimeAtOnce").(float64)
	if bulk != 100 || best >= all {
		t.Errorf("bulks of %d in %v s, all at once in %v s", bulk, best, all)
	}
	wantResult(t, a, "goldenImages", int64(4))
	wantResult(t, a, "bulkDocument", int64(100))
	if f := finding(t, a, "cloneStrategy"); f.Grade != answer.Advice {
		t.Errorf("%+v", f)
	}
	// Flattening that outweighs everything is said to.
	a, err = virt.Tune(virt.Virt{Clones: count(800), CloneLock: param.Given(3*time.Second, "flag"), Flatten: param.Given(20*time.Second, "flag")})
	answered(t, a, err)
	if f := finding(t, a, "flattening"); f.Grade != answer.Change || !strings.Contains(f.Remedy, "4 golden images") {
		t.Errorf("%+v", f)
	}
	// With nothing measured nothing is made up.
	a, err = virt.Tune(virt.Virt{Clones: count(800)})
	answered(t, a, err)
	if a.Result("bulk") != nil || !strings.Contains(strings.Join(a.Warnings, " "), "--clone-lock") {
		t.Errorf("%v %q", a.Results, a.Warnings)
	}
	a, err = virt.Tune(virt.Virt{Clones: count(300), CloneReadings: []virt.CloneReading{{Bulk: 10, Seconds: 45, From: "x"}, {Bulk: 100, Seconds: 360, From: "x"}}})
	answered(t, a, err)
	if a.Result("cloneLock") == nil || a.Result("bulkOverhead") == nil || a.Result("cloneFlatten") != nil {
		t.Errorf("%v", a.Results)
	}
	// Bulks beyond where flattening begins tell how long it takes, and the
	// smaller ones the rest.
	planted := virt.CloneModel{Workers: 10, Lock: 2.5, Work: 1, Bulk: 20, FlattenAfter: ceph.CloneSoftLimit, Flatten: 9}
	var readings []virt.CloneReading
	for _, bulk := range []int{10, 100, 300, 400} {
		readings = append(readings, virt.CloneReading{Bulk: bulk, Seconds: planted.BulkTime(bulk, 0), From: "x"})
	}
	a, err = virt.Tune(virt.Virt{Clones: count(800), CloneReadings: readings})
	answered(t, a, err)
	if flatten, _ := a.Result("cloneFlatten").(float64); math.Abs(flatten-9) > 0.1 {
		t.Errorf("a flattening takes %v s, planted were 9", flatten)
	}
	if lock, _ := a.Result("cloneLock").(float64); math.Abs(lock-2.5) > 0.05 {
		t.Errorf("a clone holds the image for %v s, planted were 2.5", lock)
	}
	if strings.Contains(strings.Join(a.Warnings, " "), "misses a reading") {
		t.Errorf("%q", a.Warnings)
	}
	// A time of flattening that the readings belie is said to.
	a, err = virt.Tune(virt.Virt{Clones: count(800), CloneReadings: readings, Flatten: param.Given(90*time.Second, "flag")})
	answered(t, a, err)
	if a.Result("cloneFlatten") != nil || !strings.Contains(strings.Join(a.Warnings, " "), "misses a reading") {
		t.Errorf("%q", a.Warnings)
	}
}

func FuzzParseDataset(f *testing.F) {
	f.Add("300x8x20Mi")
	f.Add("1x1x1")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := virt.ParseDataset(s); err == nil && d.Bytes() < 0 {
			t.Errorf("%q: %v", s, d.Bytes())
		}
	})
}

// What is as it should be is no change, and what cannot be is refused.
func TestVirtOfFewMachines(t *testing.T) {
	a, err := virt.Tune(virt.Virt{VMs: count(100), KubeVirt: param.Given("0.40", "flag")})
	answered(t, a, err)
	if f := finding(t, a, "virt-api replicas"); f.Grade != answer.OK {
		t.Errorf("%+v", f)
	}
	finding(t, a, "defaults of newer hyperconverged operators")
	if _, err := virt.Tune(virt.Virt{VMs: count(100), Migrate: count(200)}); err == nil {
		t.Error("200 of 100 machines were taken")
	}
}
