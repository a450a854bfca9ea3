package create

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

const (
	readyMachine   = `{"kind":"VirtualMachine","metadata":{"uid":"u","namespace":"ns","name":"vm"},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	stoppedMachine = `{"kind":"VirtualMachine","metadata":{"uid":"u","namespace":"ns","name":"vm"},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
)

// askedOf makes the request of a kubevirt job to a machine that the run has made.
func askedOf(t *testing.T, o kubeburner.Object, handler http.HandlerFunc) (*part, *Sender, *kubetest.Sink, record.Slot) {
	t.Helper()
	common, sink := kubetest.RunOn(t, handler)
	sender := senderOf(t, common)
	sender.holdings.fill("ns/vm", 1, nil)
	job := &kubeburner.Job{Name: "j", JobType: kubeburner.KubeVirt, Objects: []kubeburner.Object{o}}
	machines := &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}, Scope: meta.RESTScopeNamespace}
	p := &part{to: 1, chooses: &Maker{job: job, ids: prepared.Identity{UUID: "id", Run: "run1"}, chooses: &choice{kind: "VirtualMachine", resource: machines}},
		chosen: &chosen{there: make(map[string]target), leaving: make(map[string]bool), before: make(map[string]string)}}
	if err := p.chosen.Changed(0, api.EventAdded, []byte(readyMachine)); err != nil {
		t.Fatal(err)
	}
	slots, err := p.askings(t.Context(), sender)
	if err != nil || len(slots) != 1 {
		t.Fatalf("%d requests, %v", len(slots), err)
	}
	return p, sender, sink, sender.Send(t.Context(), slots[0])
}

// Operations call what KubeVirt serves, with the options of the configuration.
func TestCallsOfMachines(t *testing.T) {
	const machines = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachines/vm/"
	const instances = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm/"
	vars := func(of ...any) map[string]any {
		made := make(map[string]any)
		for i := 0; i < len(of); i += 2 {
			made[of[i].(string)] = of[i+1]
		}
		return made
	}
	disk := func(kind, cache, source string) string {
		return `{"disk":{` + cache + `"` + kind + `":{"bus":"scsi"},"serial":"v"},"name":"v","volumeSource":{` + source + `"hotpluggable":true`
	}
	for _, tt := range []struct {
		why, op, want string
		vars          map[string]any
		disks         bool // DataVolumes are there
	}{
		{"a start", "start", "PUT " + machines + "start {}", nil, false},
		{"a start that pauses", "start", `PUT ` + machines + `start {"paused":true}`, vars("startPaused", true), false},
		{"a stop", "stop", "PUT " + machines + "stop {}", nil, false},
		{"a stop at once", "stop", `PUT ` + machines + `stop {"gracePeriod":0}`, vars("force", true), false},
		{"a restart at once", "restart", `PUT ` + machines + `restart {"gracePeriodSeconds":0}`, vars("force", true), false},
		{"a pause", "pause", "PUT " + instances + "pause {}", nil, false},
		{"its end", "unpause", "PUT " + instances + "unpause {}", nil, false},
		{"a claim", "add-volume", "PUT " + instances + "addvolume " + disk("disk", "", `"persistentVolumeClaim":{"claimName":"v",`) + "}}}", vars("volumeName", "v"), false},
		{"a disk of the machine", "add-volume", "PUT " + machines + "addvolume " + disk("lun", `"cache":"none",`, `"dataVolume":{`) + `,"name":"v"}}}`, vars("volumeName", "v", "persist", true, "diskType", "lun", "cache", "none"), true},
		{"its removal", "remove-volume", `PUT ` + instances + `removevolume {"name":"v"}`, vars("volumeName", "v"), false},
		{"a migration with the labels of the run", "migrate", `POST /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstancemigrations {"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceMigration","metadata":{"labels":{"app.kubernetes.io/managed-by":"plimsoll","kube-burner.io/group":"0","kube-burner.io/index":"0","kube-burner.io/job":"j","kube-burner.io/job-iteration":"0","kube-burner.io/replica":"1","kube-burner.io/runid":"run1","kube-burner.io/uuid":"id","plimsoll.dev/run":"run1"},"name":"vm-j-0","namespace":"ns"},"spec":{"vmiName":"vm"}}`, nil, false},
	} {
		got := ""
		_, _, _, slot := askedOf(t, kubeburner.Object{KubeVirtOp: tt.op, InputVars: tt.vars}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && !tt.disks {
				w.WriteHeader(http.StatusNotFound)
			}
			if r.Method != http.MethodGet {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.URL.Path + " " + string(body)
				w.WriteHeader(http.StatusAccepted)
			}
		})
		if got != tt.want || slot.Outcome != record.SlotCreated {
			t.Errorf("%s: %+v\n got %s\nwant %s", tt.why, slot, got, tt.want)
		}
	}
}

// What replaces or removes the pods of a machine is on record, so that they are not missed.
func TestReleasesOfMachines(t *testing.T) {
	for _, tt := range []struct {
		why, op  string
		code     int
		want     string // the events of a release
		restarts bool
	}{
		{"a stop", "stop", 202, "renewed released", false},
		{"a stop that is refused", "stop", 409, "renewed", false},
		{"a restart", "restart", 202, "renewed", true},
		{"a restart that is refused", "restart", 409, "renewed", false},
		{"a pause", "pause", 202, "", false},
	} {
		p, _, sink, _ := askedOf(t, kubeburner.Object{KubeVirtOp: tt.op}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(tt.code) })
		var got []string
		for _, e := range sink.Events() {
			if r, is := e.Body.(*record.Release); is && r.Renewed {
				got = append(got, "renewed")
			} else if is {
				got = append(got, "released")
			}
		}
		if n, _ := p.chosen.rolling(); strings.Join(got, " ") != tt.want || (n == 1) != tt.restarts {
			t.Errorf("%s: %v, %d restarting", tt.why, got, n)
		}
		if !tt.restarts {
			continue
		}
		for _, step := range []struct {
			why, object string
			restarting  int
		}{
			{"the state before", readyMachine, 1},
			{"it is down", stoppedMachine, 1},
			{"it is ready within the same second", readyMachine, 0},
			{"it is ready later", strings.Replace(readyMachine, "00:00:00Z", "00:00:09Z", 1), 0},
		} {
			if err := p.chosen.Changed(0, api.EventModified, []byte(step.object)); err != nil {
				t.Fatal(err)
			}
			if n, _ := p.chosen.rolling(); n != step.restarting {
				t.Errorf("%s: %d restarting", step.why, n)
			}
		}
	}
}

// A stopped machine that is started counts again, and one that runs does not count twice.
func TestStartedMachinesCount(t *testing.T) {
	accepts := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(202) }
	_, _, _, slot := askedOf(t, kubeburner.Object{KubeVirtOp: "start"}, accepts)
	if slot.Units != 0 {
		t.Errorf("a machine that runs counts again: %+v", slot)
	}
	p, sender, _, _ := askedOf(t, kubeburner.Object{KubeVirtOp: "stop"}, accepts)
	p.chooses.job.Objects[0].KubeVirtOp = "start"
	slots, err := p.askings(t.Context(), sender)
	if err != nil {
		t.Fatal(err)
	}
	slot = sender.Send(t.Context(), slots[0])
	if slot.Slot != "ns/vm" || slot.Units != 1 || !slot.Grouped || slots[0].units() != 1 || sender.holdings.Released() != 1 || !sender.holdings.filled("ns/vm") {
		t.Errorf("%+v, %d released", slot, sender.holdings.Released())
	}
}

// What kubevirt jobs bring about is followed: machines of an earlier job, once they are started.
func TestWhatCallsOfMachinesMake(t *testing.T) {
	for _, tt := range []struct {
		op, kind string
		want     bool
	}{
		{"start", machine, true}, {"start", "Pod", true}, {"start", migration, false}, {"start", disk, false},
		{"stop", machine, false}, {"pause", "Pod", false}, {kubeburner.Migrate, migration, true}, {kubeburner.Migrate, machine, false},
	} {
		job := &kubeburner.Job{JobType: kubeburner.KubeVirt, Objects: []kubeburner.Object{{KubeVirtOp: tt.op}}}
		if got := (&Rendering{makers: [][]*Maker{{{job: job}}}}).Makes(tt.kind); got != tt.want {
			t.Errorf("%s makes a %s: %v", tt.op, tt.kind, got)
		}
	}
}

// Two volumes that are added at once overtake each other: such a refusal is tried again, and no other.
func TestOvertakenVolumes(t *testing.T) {
	for op, want := range map[string]record.SlotOutcome{"remove-volume": record.SlotCreated, "pause": record.SlotFailed} {
		n := 0
		_, _, _, slot := askedOf(t, kubeburner.Object{KubeVirtOp: op, InputVars: map[string]any{"volumeName": "v"}}, func(w http.ResponseWriter, r *http.Request) {
			if n++; n < 3 {
				w.WriteHeader(http.StatusUnprocessableEntity)
			}
		})
		if slot.Outcome != want {
			t.Errorf("%s: %d requests, %+v", op, n, slot)
		}
	}
}
