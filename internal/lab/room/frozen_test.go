package room

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// A file system that is frozen keeps no removal waiting, and the removal is made
// once it answers.
func TestAFrozenFileSystemIsLeft(t *testing.T) {
	ring.Long(t, "it freezes a file system")
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"truncate", "-s", "16M", image}, {"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, at}} {
		if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system to freeze: %v: %s", err, text)
		}
	}
	defer unix.Unmount(at, 0)
	inner := filepath.Join(at, "made", "by-a-run")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("fsfreeze", "--freeze", at).CombinedOutput(); err != nil {
		t.Skipf("it cannot be frozen: %v: %s", err, text)
	}
	err := removeWithin(filepath.Join(at, "made"), 300*time.Millisecond)
	text, thawed := exec.Command("fsfreeze", "--unfreeze", at).CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("the removal from a frozen file system: %v", err)
	}
	if thawed != nil {
		t.Fatalf("unfreeze: %v: %s", thawed, text)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(at, "made")); os.IsNotExist(err) {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it is still there")
		}
	}
}
