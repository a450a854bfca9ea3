package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestUsageOfOurselves(t *testing.T) {
	before, err := ReadProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
	}
	block := make([]byte, 32<<20)
	for i := range block {
		block[i] = byte(i)
	}
	after, err := ReadProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used := after.CPUSeconds - before.CPUSeconds; used < 0.02 {
		t.Errorf("50 ms of work used %.4f s of CPU", used)
	}
	if after.RSSBytes-before.RSSBytes < 16<<20 || after.PeakBytes < after.RSSBytes {
		t.Errorf("after writing 32 MiB: resident %d to %d, peak %d", before.RSSBytes, after.RSSBytes, after.PeakBytes)
	}
	if block[5] != 5 {
		t.Error("the block is gone")
	}
}

func TestUsageOfAnother(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Skip("no shell: ", err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		u, err := ReadProcess(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if u.CPUSeconds > 0 && u.RSSBytes > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a busy process used %+v", u)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestUsageOfNobody(t *testing.T) {
	if _, err := ReadProcess(1 << 30); err == nil {
		t.Error("a process that cannot exist has a usage")
	}
}

func TestShedStartupKeepsTheProgramRunning(t *testing.T) {
	ShedStartup()
	u, err := ReadProcess(os.Getpid())
	if err != nil || u.RSSBytes == 0 {
		t.Errorf("after shedding: %+v, %v", u, err)
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
