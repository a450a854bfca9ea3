package realnode

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// tree is a made-up system: control groups of either version, and processes.
type tree struct {
	t       *testing.T
	root    string
	unified bool
}

func (f tree) hierarchy() hierarchy {
	if f.unified {
		return hierarchy{unified: f.root + "/cgroup"}
	}
	return hierarchy{mounts: map[string]string{"cpuacct": f.root + "/cpuacct", "memory": f.root + "/memory"}}
}

func (f tree) write(path, text string) {
	f.t.Helper()
	path = filepath.Join(f.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// group sets what a control group has used, in microseconds and bytes.
func (f tree) group(g string, micros, own, shared int64) {
	f.t.Helper()
	if f.unified {
		f.write("cgroup/"+g+"/cpu.stat", fmt.Sprintf("usage_usec %d\nuser_usec 0\n", micros))
		f.write("cgroup/"+g+"/memory.stat", fmt.Sprintf("anon %d\nfile 999999\nkernel 5\nshmem %d\n", own, shared))
		return
	}
	f.write("cpuacct/"+g+"/cpuacct.usage", fmt.Sprintf("%d\n", micros*1000))
	f.write("memory/"+g+"/memory.stat", fmt.Sprintf("cache 999999\nrss 1\nshmem 1\ntotal_cache 9\ntotal_rss %d\ntotal_shmem %d\n", own, shared))
}

// proc is its view of processes.
func (f tree) proc() procfs.FS {
	f.t.Helper()
	if err := os.MkdirAll(f.root+"/proc", 0o700); err != nil {
		f.t.Fatal(err)
	}
	fs, err := procfs.NewFS(f.root + "/proc")
	if err != nil {
		f.t.Fatal(err)
	}
	return fs
}

// processes sets which processes a control group holds.
func (f tree) processes(g string, pids ...int) {
	var b strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&b, pid)
	}
	for _, top := range []string{"cgroup", "cpuacct"} {
		if f.unified == (top == "cgroup") {
			f.write(top+"/"+g+"/cgroup.procs", b.String())
		}
	}
}

// process makes a process whose threads have used so many nanoseconds.
func (f tree) process(pid int, name string, pages int, nanos ...int64) {
	dir := "proc/" + strconv.Itoa(pid)
	f.write(dir+"/comm", name+"\n")
	f.write(dir+"/statm", fmt.Sprintf("9999 %d 3 4 0 5 0\n", pages))
	for i, n := range nanos {
		f.write(fmt.Sprintf("%s/task/%d/schedstat", dir, pid+i), fmt.Sprintf("%d 5 7\n", n))
	}
}

func (f tree) remove(path string) {
	for _, top := range []string{"", "cgroup", "cpuacct", "memory"} {
		if err := os.RemoveAll(filepath.Join(f.root, top, path)); err != nil {
			f.t.Fatal(err)
		}
	}
}

const meterDir = "/state/labs/a"

func podGroup(class, uid string) string {
	return filepath.Join(group(meterDir), "kubepods", class, "pod"+uid)
}

func useOf(t *testing.T, uses []Use, part string) Use {
	t.Helper()
	i := slices.IndexFunc(uses, func(u Use) bool { return u.Part == part })
	if i < 0 {
		t.Fatalf("nothing is told of %s: %+v", part, uses)
	}
	return uses[i]
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestMeter(t *testing.T) {
	for _, unified := range []bool{false, true} {
		t.Run(fmt.Sprintf("version 2: %t", unified), func(t *testing.T) {
			f := tree{t, t.TempDir(), unified}
			m := newMeter(meterDir, f.hierarchy(), f.proc())
			components := map[string]string{"a": "postgresql", "b": "application"}
			read := func() []Use {
				t.Helper()
				uses, err := m.Read(func(uid string) string { return components[uid] })
				if err != nil {
					t.Fatal(err)
				}
				return uses
			}
			shims := systemGroup(meterDir, partShims)
			f.group(group(meterDir), 9_000_000, 1000, 24)
			f.group(group(meterDir)+"/kubepods", 5_000_000, 500, 12)
			f.group(systemGroup(meterDir, partKubelet), 1_500_000, 700, 0)
			f.group(shims, 400_000, 8<<20, 0)
			f.processes(shims, 10, 11, 12)
			f.process(10, "containerd-shim", 100, 50e6, 30e6) // 0.08 s by two threads
			f.process(11, "containerd-shim", 100, 20e6)
			f.process(12, "runc:[2:INIT]", 3, 7e6)
			f.group(podGroup("besteffort", "a"), 2_000_000, 100, 40)
			f.group(podGroup("", "b"), 300_000, 30, 0)
			f.group(podGroup("burstable", "c"), 50_000, 3, 0)
			uses := read()
			for _, c := range []struct {
				part      string
				cpu       float64
				memory    int64
				processes int
				why       string
			}{
				{PartWhole, 9, 1024, 0, "memory that is shared cannot be dropped either"},
				{partPods, 5, 512, 0, "pods in all"},
				{partKubelet, 1.5, 700, 0, "the kubelet"},
				{PartRuntime, 0.3, 3 * int64(os.Getpagesize()), 1, "what the group used and its shims did not"},
				{partShims, 0.1, 8<<20 - 3*int64(os.Getpagesize()), 2, "the shims' threads"},
				{"pods/postgresql", 2, 140, 1, "a pod of a known component"},
				{"pods/application", 0.3, 30, 1, "a pod with guaranteed resources"},
			} {
				u := useOf(t, uses, c.part)
				if !near(u.CPUSeconds, c.cpu) || u.RSSBytes != c.memory || u.Processes != c.processes {
					t.Errorf("%s: %s used %g s, %d B, by %d; want %g, %d, %d", c.why, c.part, u.CPUSeconds, u.RSSBytes, u.Processes, c.cpu, c.memory, c.processes)
				}
			}
			if slices.ContainsFunc(uses, func(u Use) bool { return u.Part == partOther || u.Part == partProxy }) {
				t.Errorf("a pod whose component may still be told, or a part that is not there, is told: %+v", uses)
			}

			// A pod goes: what it used stays, what it held goes with it. A shim
			// goes, and what it used does not become the runtime's.
			f.remove(podGroup("besteffort", "a"))
			f.group(podGroup("", "b"), 400_000, 50, 0)
			f.group(shims, 420_000, 4<<20, 0)
			f.processes(shims, 10)
			uses = read()
			if u := useOf(t, uses, "pods/postgresql"); !near(u.CPUSeconds, 2) || u.RSSBytes != 0 || u.Processes != 0 {
				t.Errorf("after its pod has gone: %+v", u)
			}
			if u := useOf(t, uses, "pods/application"); !near(u.CPUSeconds, 0.4) || u.RSSBytes != 50 {
				t.Errorf("a pod that went on: %+v", u)
			}
			if u := useOf(t, uses, PartRuntime); !near(u.CPUSeconds, 0.32) || u.RSSBytes != 0 {
				t.Errorf("the runtime after a shim has gone: %+v", u)
			}

			// A component that hears of a pod late counts what it used before; one that nobody
			// knows belongs to another after some readings.
			f.group(podGroup("besteffort", "d"), 1_000_000, 9, 0)
			read()
			components["d"] = "postgresql"
			if u := useOf(t, read(), "pods/postgresql"); !near(u.CPUSeconds, 3) || u.RSSBytes != 9 {
				t.Errorf("a component that was told late: %+v", u)
			}
			if u := useOf(t, read(), partOther); !near(u.CPUSeconds, 0.05) || u.Processes != 1 {
				t.Errorf("a pod that nobody knows: %+v", u)
			}
		})
	}
}

// No counter goes back, whatever becomes of processes.
func TestCountersOnlyRise(t *testing.T) {
	f := tree{t, t.TempDir(), true}
	m := newMeter(meterDir, f.hierarchy(), f.proc())
	shims := systemGroup(meterDir, partShims)
	before := map[string]float64{}
	for i := range 40 {
		f.group(shims, int64(i*30_000), 1, 0)
		var pids []int
		for pid := 100 + i/2; pid < 100+i; pid++ {
			pids = append(pids, pid)
			f.process(pid, "containerd-shim", 1, int64(i-(pid-100))*100_000)
		}
		f.processes(shims, pids...)
		uses, err := m.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range uses {
			if u.CPUSeconds < before[u.Part]-1e-9 {
				t.Fatalf("reading %d: %s goes from %g s to %g s", i, u.Part, before[u.Part], u.CPUSeconds)
			}
			before[u.Part] = u.CPUSeconds
		}
	}
}

func TestWhatIsNoControlGroupIsAnError(t *testing.T) {
	f := tree{t, t.TempDir(), true}
	f.group(systemGroup(meterDir, partKubelet), 1, 1, 1)
	f.write("cgroup/"+systemGroup(meterDir, partKubelet)+"/memory.stat", "anon many\nshmem 1\n")
	m := newMeter(meterDir, f.hierarchy(), f.proc())
	if _, err := m.Read(nil); err == nil || !strings.Contains(err.Error(), partKubelet) {
		t.Errorf("memory that is no number: %v", err)
	}
	f.remove(systemGroup(meterDir, partKubelet))
	if uses, err := m.Read(nil); err != nil || len(uses) != 0 {
		t.Errorf("a node that is not there uses %+v, %v", uses, err)
	}
}

// The cost of a reading: 250 pods of two components.
func BenchmarkMeter(b *testing.B) {
	dir := os.Getenv("PLIMSOLL_METER_DIR") // of a lab that is up; else a made-up one
	if dir == "" {
		b.Skip("PLIMSOLL_METER_DIR names no lab with a real node")
	}
	m, err := NewMeter(dir)
	if err != nil {
		b.Fatal(err)
	}
	pods := 0
	for b.Loop() {
		uses, err := m.Read(func(string) string { return "all" })
		if err != nil {
			b.Fatal(err)
		}
		for _, u := range uses {
			if u.Part == "pods/all" {
				pods = u.Processes
			}
		}
	}
	b.ReportMetric(float64(pods), "pods")
}
