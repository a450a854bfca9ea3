package telemetry

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestShedStartupKeepsTheProgramRunning(t *testing.T) {
	ShedStartup()
	if cpus, _, err := Machine(); err != nil || cpus < 1 {
		t.Errorf("after shedding: %d CPUs, %v", cpus, err)
	}
}

func TestMachineCountsWork(t *testing.T) {
	cpus, before, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	if cpus < 1 || before <= 0 {
		t.Errorf("%d CPUs, busy for %g s", cpus, before)
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
	}
	_, after, err := Machine()
	if err != nil || after-before < 0.1 || after-before > 100*float64(cpus) {
		t.Errorf("200 ms of work count as %g s, %v", after-before, err)
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
		{"what is in use is not known", "1000", "", "", 0, false},
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
