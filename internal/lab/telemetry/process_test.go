package telemetry

import (
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestShedStartupKeepsTheProgramRunning(t *testing.T) {
	ShedStartup()
	if v := Reading().Values; v["cpus"] < 1 {
		t.Errorf("after shedding: %v", v)
	}
}

func TestMachineCountsWork(t *testing.T) {
	before := Reading().Values
	if before["cpus"] < 1 || before["cpuSeconds"] <= 0 || before["memoryBytes"] <= before["memoryUsedBytes"] {
		t.Errorf("%v", before)
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
	}
	if worked := Reading().Values["cpuSeconds"] - before["cpuSeconds"]; worked < 0.05 || worked > 100*before["cpus"] {
		t.Errorf("200 ms of work count as %g s", worked)
	}
}

// What the kernel tells of the machine is read, and what it does not tell is left out.
func TestReadingOfTheMachine(t *testing.T) {
	all := map[string]string{
		"proc/stat":            "cpu  1000 100 500 9000 30 20 40 10 0 0\ncpu0 500 50 250 4500 15 10 20 5 0 0\ncpu1 500 50 250 4500 15 10 20 5 0 0\n",
		"proc/meminfo":         "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n",
		"proc/pressure/cpu":    "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"proc/pressure/memory": "some avg10=1.50 avg60=0.00 avg300=0.00 total=750000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		"proc/pressure/io":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		// A loop device stands on a drive, whose figures have the same again.
		"proc/diskstats":         "   7       0 loop0 1 0 100 1 1 0 100 1 0 1 2 0 0 0 0 0 0\n 254       0 vda 1 0 8 1 1 0 4 1 0 1 2 0 0 0 0 0 0\n",
		"sys/block/vda/device/x": "", "sys/block/loop0/size": "",
	}
	for _, c := range []struct {
		why     string
		without string
		want    map[string]float64
	}{
		{"all of it", "none", map[string]float64{
			"cpus": 2, "cpuSeconds": 16.7, "interruptSeconds": 0.6, "memoryBytes": 1024000, "memoryUsedBytes": 614400,
			"cpuPressureSeconds": 2.5, "memoryPressureSeconds": 0.75, "ioPressureSeconds": 1e-6, "ioBytes": 6144,
		}},
		{"a kernel without pressure", "proc/pressure", map[string]float64{
			"cpus": 2, "cpuSeconds": 16.7, "interruptSeconds": 0.6, "memoryBytes": 1024000, "memoryUsedBytes": 614400, "ioBytes": 6144,
		}},
		{"nothing", "proc/", map[string]float64{}},
	} {
		dir := t.TempDir()
		for name, text := range all {
			if strings.HasPrefix(name, c.without) {
				continue
			}
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "proc"), 0o700); err != nil {
			t.Fatal(err)
		}
		got := readingIn(filepath.Join(dir, "proc"), filepath.Join(dir, "sys")).Values
		same := maps.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if !same {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

// What a limit leaves counts files that the kernel takes back first.
func TestWhatALimitLeaves(t *testing.T) {
	for _, c := range []struct {
		why, limit, used, stat string
		left                   int64
		ok                     bool
	}{
		{"all that is used is in use", "1000", "400", "anon 400\n", 600, true},
		{"files that were not used lately are left", "1000", "900", "anon 100\ninactive_file 700\nactive_file 100\n", 800, true},
		{"it is used up", "1000", "1100", "inactive_file 0\n", 0, true},
		{"without a limit", "max", "900", "", 0, false},
		{"what is in use is unknown", "1000", "", "", 0, false},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"max": c.limit, "current": c.used, "stat": c.stat} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if left, ok := leftIn(dir, "max", "current", "stat", "inactive_file "); ok != c.ok || ok && left != c.left {
			t.Errorf("%s: %d, %v", c.why, left, ok)
		}
	}
}
