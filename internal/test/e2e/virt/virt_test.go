package virt_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Virtual machines are loaded on the APIs that a private lab plays: what was
// planted is found again, in the time that is played.
func TestVirtualMachines(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	tests := []struct {
		why, args  string
		milestones []string
		// What is planted of the milestone that counts, in the time that is
		// played, at the median: at least so many seconds.
		atLeast float64
	}{
		{"machines boot in turns and answer by SSH", "vm-boot-storm --levels 10 --lab-virt bootShare=1s,bootTime=20s", []string{"Accepted", "Scheduling", "LauncherScheduled", "LauncherReady", "Scheduled", "Running", "SSHAnswered"}, 25},
		{"machines are restarted: a new life each", "vm-restart --levels 5 --lab-virt shutdown=20s,bootTime=20s", []string{"Accepted", "Running", "SSHAnswered"}, 40},
		{"migrations wait for the limit of two from a node and five in all", "vm-migration --levels 10 --lab-virt migrateFedora=40s", []string{"Admitted", "Moving", "Migrated"}, 40},
		{"clones of a golden image", "vm-deploy --axis machines --levels 5 --lab-virt cloneTime=40s --set run=true", []string{"CloneStarted", "Cloned"}, 40},
		{"machines are taken through their life", "vm-lifecycle --levels 4 --lab-virt shutdown=20s,migrateFedora=40s", []string{"Running", "Resized", "Restarted", "Snapshotted", "Migrated", "Removed"}, 80},
		{"machines and pods side by side", "density-mix --levels 8", []string{"Created", "Scheduled", "Ready"}, 0},
	}
	for _, tt := range tests[:suite.Size(1, len(tests))] {
		words := strings.Fields(tt.args)
		got := p.RunTo(t, words[0], append([]string{"sweep", "--lab-nodes", "3", "--lab-time-scale", "20", "--hold", "1s"}, words...)...)
		r := p.Result(t, words[0])
		if got.Code != process.ExitPass || len(r.Steps) == 0 {
			t.Errorf("%s: exit code %d\n%s%s", tt.why, got.Code, got.Stdout, got.Stderr)
			continue
		}
		s := r.Steps[len(r.Steps)-1]
		for _, m := range tt.milestones {
			if l := s.Latency[m]; l.N == 0 || l.Censored > 0 {
				t.Errorf("%s: %s: %+v", tt.why, m, l)
			}
		}
		there := s.Latency[tt.milestones[len(tt.milestones)-1]]
		if r.Fidelity.TimeScale != 20 || r.Fidelity.Guests != record.Simulated || there.P50 == nil || *there.P50*20 < tt.atLeast {
			t.Errorf("%s: %+v, fidelity %+v", tt.why, there, r.Fidelity)
		}
		if !strings.Contains(got.Stdout, "Times as they would be, 20 times as long") || !strings.Contains(got.Stdout, "Simulated: nodes, containers, guests") {
			t.Errorf("%s: it is not said what was played:\n%s", tt.why, got.Stdout)
		}
	}
	p.LeavesNoProcess(t)
}

// What was planted as the limit is named as what bound, and nothing is where
// nothing bound.
func TestWhatBoundVirtualMachines(t *testing.T) {
	suite.Long(t, "finds which limit held virtual machines up")
	p := suite.Program(t)
	tests := []struct {
		why, args, bound string
		slowAfter        int // 0: they do not slow down
	}{
		{"the cluster's limit of migrations", "vm-migration 20 20 all Migrated within 3s --lab-nodes 6 --set parallelMigrations=3 --set outboundMigrations=10", "parallelMigrationsPerCluster", 0},
		{"that of each node", "vm-migration 20 20 all Migrated within 3s --lab-nodes 3 --set parallelMigrations=30 --set outboundMigrations=1", "parallelOutboundMigrationsPerNode", 0},
		{"no limit: a migration takes that long", "vm-migration 10 10 all Migrated within 1s --lab-nodes 3 --set parallelMigrations=30 --set outboundMigrations=30 --lab-virt migrateFedora=60s", "", 0},
		{"virt-controller's client", "vm-boot-storm 5 60 all SSHAnswered within 5s --set controllerQPS=5 --set controllerBurst=10", "controllerQPS", 0},
		{"the lock of an image, and its flattening from the 250th clone on", "vm-deploy 5 400 all Cloned within 20s --axis machines --lab-virt cloneLock=1s,cloneContention=0", "cloneLock", 250},
		{"the provisioner's workers", "vm-deploy 20 40 all Cloned within 3s --axis machines --lab-virt cloneLock=0s,cloneTime=40s", "cloneWorkers", 0},
	}
	for i, tt := range tests {
		out := fmt.Sprint("r", i)
		w := strings.Fields(tt.args)
		objective := strings.Join(w[3:7], " ")
		args := append([]string{"limit", w[0], "--lab-time-scale", w[1], "--from", w[2], "--max", w[2], "--confirm", "1", "--slo", objective}, w[7:]...)
		got := p.RunTo(t, out, args...)
		r := p.Result(t, out)
		if got.Code != process.ExitFail || r.LoadLine == nil || r.Steps[0].Bottleneck == nil {
			t.Errorf("%s: exit code %d\n%s%s", tt.why, got.Code, got.Stdout, got.Stderr)
			continue
		}
		b, bound := r.Steps[0].Bottleneck, ""
		if i := slices.IndexFunc(b.Bounds, func(b result.BoundShare) bool { return b.Held }); i >= 0 {
			bound = b.Bounds[i].Name
			if !strings.HasPrefix(r.LoadLine.Binding, b.Bounds[i].What) || !strings.Contains(got.Stdout, "Bound in step 1: "+b.Bounds[i].What) {
				t.Errorf("%s: %q is not what is told: %q\n%s", tt.why, bound, r.LoadLine.Binding, got.Stdout)
			}
		}
		if bound != tt.bound {
			t.Errorf("%s: %q bound of %+v", tt.why, bound, b.Bounds)
		}
		after := 0
		if b.Slowdown != nil {
			after = b.Slowdown.After
		}
		if after < tt.slowAfter*9/10 || after > tt.slowAfter*11/10 {
			t.Errorf("%s: slowed down after %d: %+v", tt.why, after, b.Slowdown)
		}
	}
}

// The way on which machines are called changes when they are heard by no more than
// its resolution; both say what it was.
func TestWaysToMachines(t *testing.T) {
	t.Parallel()
	suite.Long(t, "two labs boot machines")
	p := suite.Program(t)
	for _, way := range []string{"host", "portforward"} {
		got := p.RunTo(t, way, "sweep", "vm-boot-storm", "--lab-nodes", "2", "--lab-time-scale", "20", "--hold", "1s", "--levels", "10", "--lab-virt", "bootShare=0s,bootTime=40s", "--set", "sshFrom="+way)
		r := p.Result(t, way)
		if got.Code != process.ExitPass || len(r.Steps) != 1 {
			t.Fatalf("%s: exit code %d\n%s%s", way, got.Code, got.Stdout, got.Stderr)
		}
		s := r.Steps[0]
		running, answered := s.Latency["Running"].P50, s.Latency["SSHAnswered"].P50
		if running == nil || answered == nil || *answered-*running < 1.5 || *answered-*running > 3.5 {
			t.Errorf("%s: guests boot for 2 s, Running %+v, SSHAnswered %+v", way, s.Latency["Running"], s.Latency["SSHAnswered"])
		}
		calls := 0
		for _, d := range s.Durations {
			if d.Source == "machines" && (d.Name == "call that was answered" || d.Name == "answer seen late by at most") {
				calls += int(d.N)
			}
		}
		if calls != 20 {
			t.Errorf("%s: 10 machines and %d figures of their calls: %+v", way, calls, s.Durations)
		}
	}
	if got := p.Run(t, "sweep", "vm-boot-storm", "--levels", "1", "--set", "sshFrom=pod"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "host, portforward") {
		t.Errorf("from a pod: exit code %d\n%s", got.Code, got.Stderr)
	}
	p.LeavesNoProcess(t)
}

// What cannot be there says so before any load.
func TestClusterWithoutVirtualMachines(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	got := p.Run(t, "sweep", "vm-boot-storm", "--lab", p.Lab, "--levels", "5")
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "VirtualMachine") || !strings.Contains(got.Stderr, "kubevirt.io/v1") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
}

// The first machines of a lab run where QEMU is installed. What they use is on
// record, and they go with the lab, also when the command is killed.
func TestRealGuests(t *testing.T) {
	t.Parallel()
	suite.Long(t, "guests boot by emulation")
	p := suite.Program(t)
	needQEMU(t)
	p.Env = append(p.Env, "PLIMSOLL_PASSWORD="+e2e.Planted)
	args := []string{"sweep", "vm-boot-storm", "--lab-nodes", "2", "--lab-real-guests", "1", "--levels", "2"}
	got := p.RunTo(t, "boot", append(args, "--hold", "6s")...)
	r := p.Result(t, "boot")
	if got.Code != process.ExitPass || len(r.Steps) == 0 || r.Steps[0].Objects.Ready != 2 || r.Steps[0].Resources["guest-1"].PeakRSSBytes == 0 {
		t.Errorf("exit code %d, steps %+v\n%s%s", got.Code, r.Steps, got.Stdout, got.Stderr)
	}
	if notes := strings.Join(r.Fidelity.Notes, "\n"); !strings.Contains(notes, "the first 1 to start have a real guest") {
		t.Errorf("it is not said which machines were real:\n%s", notes)
	}
	p.LeavesNoProcess(t)
	s := p.Start(t, append(args, "--hold", "60s", "--out", "killed")...)
	harness.Await(t, "a guest", func() bool { return guestOf(p) })
	hasNoRights(t, p)
	s.Kill()
	harness.Await(t, "its end", func() bool { return !guestOf(p) })
}

// IO in guests is measured in them, and never made up where none runs.
func TestIOInGuests(t *testing.T) {
	t.Parallel()
	suite.Long(t, "guests boot by emulation and do IO")
	p := suite.Program(t)
	needQEMU(t)
	_, err := fio.Find(t.Context(), "")
	harness.Able(t, err)
	args := []string{"sweep", "vm-io", "--lab-nodes", "2", "--lab-real-guests", "1", "--levels", "1"}
	got := p.RunTo(t, "io", append(args, "--set", "machinesPerNode=1", "--set", "iops=200", "--set", "size=16Mi", "--set", "settle=1", "--set", "runtime=5", "--set", "sshFrom=portforward")...)
	r := p.Result(t, "io")
	if got.Code != process.ExitPass || len(r.Steps) == 0 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if m := r.Steps[0].Metrics; m["read rate"] < 150 || m["read rate"] > 250 || m["read p50"] <= 0 || m["read p99"] < m["read p50"] {
		t.Errorf("at 200 IOs per second the guest reported %v", m)
	}
	// The key that its machines show is theirs alone: how OpenSSH's files begin.
	e2e.HoldsNothing(t, filepath.Join(p.Dir, "io"), "PRIVATE KEY", "b3BlbnNzaC1rZXktdjE")
	got = p.Run(t, args...)
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "--lab-real-guests 15") {
		t.Errorf("machines that are played: exit code %d\n%s", got.Code, got.Stderr)
	}
	p.LeavesNoProcess(t)
}

// Machines do IO while they are migrated, which is measured before they move and
// while they do, and the slowdown that is planted is found.
func TestMigrationUnderIO(t *testing.T) {
	t.Parallel()
	suite.Long(t, "guests boot by emulation and do IO")
	p := suite.Program(t)
	needQEMU(t)
	_, err := fio.Find(t.Context(), "")
	harness.Able(t, err)
	args := []string{"ab", "vm-migration", "--lab-nodes", "2", "--lab-real-guests", "1", "--lab-virt", "migrateFedora=8s,migrateUnderIO=1", "--arm", "idle:guestIOPS=0", "--arm", "loaded:guestIOPS=100", "--set", "guestDisk=16Mi"}
	got := p.RunTo(t, "moved", append(args, "--level", "1", "--repeat", "1", "--hold", "1s")...)
	r := p.Result(t, "moved")
	if len(r.Steps) != 2 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, s := range r.Steps {
		moved, metrics := s.Latency["Migrated"], s.Metrics
		loaded := s.Arm == "loaded"
		if moved.P50 == nil || *moved.P50 < 8 || (*moved.P50 >= 16) != loaded {
			t.Errorf("%s: a migration takes 8 s, twice as long with IO: %+v", s.Arm, moved)
		}
		for _, phase := range []string{"before", "moving"} {
			if rate := metrics["read rate "+phase]; loaded && (rate < 50 || rate > 150 || metrics["write p99 "+phase] <= 0) || !loaded && rate > 0 {
				t.Errorf("%s: with 100 reads and writes per second: %v", s.Arm, metrics)
			}
		}
	}
	got = p.Run(t, append(args, "--level", "2")...)
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "--lab-real-guests 2") {
		t.Errorf("machines that are played: exit code %d\n%s", got.Code, got.Stderr)
	}
	p.LeavesNoProcess(t)
}

// Without QEMU no lab with real guests begins, and the error says how to get it.
func TestRealGuestsWithoutQEMU(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	for _, args := range []string{"sweep vm-boot-storm --lab-nodes 2 --lab-real-guests 1 --levels 2", "lab up guests --virt --real-guests 1"} {
		cmd := p.Command(strings.Fields(args)...)
		cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
		out, _ := cmd.CombinedOutput() // the code tells
		if cmd.ProcessState.ExitCode() != process.ExitCouldNotRun || !strings.Contains(string(out), "missing for real guests: qemu-system-x86_64") || !strings.Contains(string(out), "apt-get install --no-install-recommends qemu-system-x86") {
			t.Errorf("%s: exit code %d\n%s", args, cmd.ProcessState.ExitCode(), out)
		}
	}
	p.LeavesNoLab(t)
	p.LeavesNoProcess(t)
}

func needQEMU(t *testing.T) {
	t.Helper()
	for _, n := range lab.Needs() {
		if n.For == "real guests" {
			_, err := n.Find(t.Context(), "")
			harness.Able(t, err)
		}
	}
}

// guestOf reports whether a guest of a program's labs runs.
func guestOf(p *harness.Program) bool {
	out, _ := exec.Command("pgrep", "-f", "qemu-system-x86_64 -name guest-.*"+p.State).Output()
	return len(out) > 0
}

// hasNoRights asks the kernel whom a guest runs as, and what it sees of the environment.
func hasNoRights(t *testing.T, p *harness.Program) {
	t.Helper()
	if os.Geteuid() != 0 {
		return // all runs as this user
	}
	out, _ := exec.Command("pgrep", "-f", "qemu-system-x86_64 -name guest-.*"+p.State).Output()
	dir := filepath.Join("/proc", strings.Fields(string(out) + " none")[0])
	status, err := os.ReadFile(dir + "/status")
	for _, want := range []string{"CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n", "NoNewPrivs:\t1\n", fmt.Sprintf("Uid:\t%d\t", proc.Least().ID)} {
		if err != nil || !strings.Contains(string(status), want) {
			t.Errorf("a guest without %q: %v\n%s", want, err, status)
		}
	}
	if environ := e2e.EnvironOf(dir); environ == "" || strings.Contains(environ, e2e.Planted) {
		t.Errorf("the environment of a guest is %q", environ)
	}
}

// What goes wrong with machines ends in a breach that says what it was, and never
// in a hang.
func TestFaultsOfVirtualMachines(t *testing.T) {
	suite.Long(t, "waits for what never comes")
	t.Parallel()
	p := suite.Program(t)
	for _, tt := range []struct{ why, args, reason, known string }{
		{"migrations that make no progress", "vm-migration --levels 4 --lab-virt stuckMigrations=2", "Failed", ""},
		{"clones that never end", "vm-deploy --axis machines --levels 4 --lab-virt stuckClones=2", "CSICloneInProgress", ""},
		{"a pool that is degraded", "vm-zones --levels 1 --lab-virt degradedPool=zone-0", "Degraded", ""},
		{"a node that is lost under machines", "vm-boot-storm --lab-nodes 2 --levels 12 --lab-time-scale 20 --lab-virt lostNode=node-0001,lostAfter=1s,bootTime=2m --guard nodesNotReady=2", "", "node-not-ready"},
	} {
		dir := strings.Fields(tt.args)[0]
		got := p.Run(t, append([]string{"sweep", "--lab-nodes", "3", "--lab-time-scale", "60", "--hold", "1s", "--step-timeout", "15s", "--out", dir}, strings.Fields(tt.args)...)...)
		r := p.Result(t, dir)
		if got.Code != process.ExitFail || len(r.Steps) != 1 {
			t.Errorf("%s: exit code %d\n%s%s", tt.why, got.Code, got.Stdout, got.Stderr)
			continue
		}
		var reasons []string
		for _, reason := range r.Steps[0].Reasons {
			reasons = append(reasons, reason.Reason)
		}
		known := slices.ContainsFunc(r.Diagnosis, func(d result.Diagnosis) bool { return d.Signature == tt.known })
		if tt.reason != "" && !slices.Contains(reasons, tt.reason) || tt.known != "" && !known || r.Steps[0].Objects.NeverReady == 0 {
			t.Errorf("%s: reasons %v, known failures %+v, objects %+v", tt.why, reasons, r.Diagnosis, r.Steps[0].Objects)
		}
	}
	p.LeavesNoProcess(t)
}

// operations is a configuration of kube-burner whose jobs take machines through all that KubeVirt serves.
var operations = map[string]string{
	"life.yml": `jobs:
- {name: machines, jobIterations: 2, qps: 20, burst: 20, namespace: life, objects: [{objectTemplate: vm.yml, inputVars: {run: Always}}, {objectTemplate: claim.yml, wait: false}]}
- {name: stop, jobType: kubevirt, qps: 20, burst: 20, objects: [{kubeVirtOp: stop, labelSelector: {kube-burner.io/job: machines}}]}
- {name: start, jobType: kubevirt, qps: 20, burst: 20, objects: [{kubeVirtOp: start, labelSelector: {kube-burner.io/job: machines}}]}
- {name: restart, jobType: kubevirt, qps: 20, burst: 20, jobIterations: 2, objects: [{kubeVirtOp: restart, labelSelector: {kube-burner.io/job: machines}, inputVars: {force: true}}]}
- {name: pause, jobType: kubevirt, qps: 20, burst: 20, jobIterations: 2, objectWait: true, objects: [{kubeVirtOp: pause, labelSelector: {kube-burner.io/job: machines}}, {kubeVirtOp: unpause, labelSelector: {kube-burner.io/job: machines}}]}
- {name: migrate, jobType: kubevirt, qps: 20, burst: 20, objects: [{kubeVirtOp: migrate, labelSelector: {kube-burner.io/job: machines}}]}
- {name: volumes, jobType: kubevirt, qps: 20, burst: 20, objectWait: true, objects: [{kubeVirtOp: add-volume, labelSelector: {kube-burner.io/job: machines}, inputVars: {volumeName: more, persist: true}}, {kubeVirtOp: remove-volume, labelSelector: {kube-burner.io/job: machines}, inputVars: {volumeName: more, persist: true}}]}
- {name: halted, jobIterations: 2, qps: 20, burst: 20, namespace: halted, objects: [{objectTemplate: vm.yml, wait: false, inputVars: {run: Halted}}]}
- {name: begin, jobType: kubevirt, qps: 20, burst: 20, objects: [{kubeVirtOp: start, labelSelector: {kube-burner.io/job: halted}}]}
- {name: remove, jobType: delete, qps: 20, burst: 20, objects: [{kind: VirtualMachine, apiVersion: kubevirt.io/v1, labelSelector: {kube-burner.io/job: halted}}]}
`,
	"vm.yml": `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: 'vm-{{.Iteration}}'}
spec:
  runStrategy: {{.run}}
  template:
    metadata: {labels: {plimsoll.dev/os: fedora}}
    spec:
      evictionStrategy: LiveMigrate
      terminationGracePeriodSeconds: 0
      domain:
        resources: {requests: {memory: 128Mi, cpu: 100m}}
        devices: {disks: [{name: root, disk: {bus: virtio}}], interfaces: [{name: default, masquerade: {}}]}
      networks: [{name: default, pod: {}}]
      volumes: [{name: root, containerDisk: {image: fedora}}]
`,
	"claim.yml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: more}\nspec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}\n",
}

// A job that deletes the disks of machines by the labels of these has its way: what makes them again replaces nothing.
func TestDisksThatAJobDeletes(t *testing.T) {
	suite.Long(t, "it runs machines in a lab")
	t.Parallel()
	p := suite.Program(t)
	for name, text := range map[string]string{
		"disks.yml": "global: {measurements: [{name: dataVolumeLatency}]}\njobs:\n" +
			"- {name: machines, jobIterations: 2, qps: 20, burst: 20, namespace: disks, namespacedIterations: false, objects: [{objectTemplate: vm.tpl, wait: false}]}\n" +
			"- {name: delete, jobType: delete, qps: 20, burst: 20, waitForDeletion: false, objects: [{kind: DataVolume, apiVersion: cdi.kubevirt.io/v1beta1, labelSelector: {group: '1'}}]}\n",
		"vm.tpl": "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: 'vm-{{.Iteration}}', labels: {group: '{{.Iteration}}'}}\nspec:\n  runStrategy: Halted\n" +
			"  dataVolumeTemplates: [{metadata: {name: 'disk-{{.Iteration}}'}, spec: {source: {blank: {}}, storage: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}}]\n" +
			"  template: {spec: {domain: {resources: {requests: {memory: 128Mi}}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}, volumes: [{name: root, dataVolume: {name: 'disk-{{.Iteration}}'}}]}}\n",
	} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := p.RunTo(t, "r", "run", "disks.yml", "--lab-virt", "bootTime=1s", "--lab-nodes", "3", "--lab-time-scale", "20")
	r := p.Result(t, "r")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 2 || r.Steps[1].APIRequests.N != 1 || r.Steps[1].Objects.Ready != 2 {
		t.Errorf("exit code %d, %d steps\n%s%s", got.Code, len(r.Steps), got.Stdout, got.Stderr)
	}
	p.LeavesNoProcess(t)
}

// Jobs of kube-burner's type kubevirt take machines through their life: each request is accounted for, each end is
// awaited, and what was stopped on purpose is not missed.
func TestOperationsOnMachines(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	for name, text := range operations {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := p.RunTo(t, "life", "run", "life.yml", "--lab-virt", "shutdown=20s,migrateFedora=20s", "--lab-nodes", "3", "--lab-time-scale", "20")
	r := p.Result(t, "life")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(r.Steps) != 10 { // beside other tests
		t.Fatalf("exit code %d, %d steps\n%s%s", got.Code, len(r.Steps), got.Stdout, got.Stderr)
	}
	for i, want := range []struct{ requests, pods int }{{4, 2}, {2, 0}, {2, 2}, {4, 2}, {8, 2}, {2, 2}, {4, 2}, {2, 2}, {2, 4}, {2, 2}} {
		s := r.Steps[i]
		if s.APIRequests.N != want.requests || s.APIRequests.Failed != 0 || s.Objects.Ready != want.pods {
			t.Errorf("job %d: %d requests, %d failed, %d of %d pods ready; want %+v: %v", i+1, s.APIRequests.N, s.APIRequests.Failed, s.Objects.Ready, s.Objects.Intended, want, s.Reasons)
		}
	}
	p.LeavesNoProcess(t)
}
