package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

func TestUsageOfOurselves(t *testing.T) {
	ring.Long(t, "it measures processor time")
	before, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
	}
	block := make([]byte, 32<<20)
	for i := range block {
		block[i] = byte(i)
	}
	after, err := Read(os.Getpid())
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
	ring.Long(t, "it measures processor time")
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Skip("no shell: ", err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		u, err := Read(cmd.Process.Pid)
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
	if _, err := Read(1 << 30); err == nil {
		t.Error("a process that cannot exist has a usage")
	}
}
