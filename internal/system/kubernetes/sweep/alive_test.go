package sweep

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/system"
)

// A run of this user on this machine is alive for as long as its file is
// locked, whatever its signs of life say.
func TestARunIsKnownByItsLock(t *testing.T) {
	dir := t.TempDir()
	host := system.Host{StateDir: func() (string, error) { return dir, nil }, Now: time.Now}
	state := func(run string, want runHere, why string) {
		t.Helper()
		if got := runState(host, run); got != want {
			t.Errorf("%s: %d, want %d", why, got, want)
		}
	}
	state("a", runElsewhere, "a run that nobody here knows")
	state("../a", runElsewhere, "what is no name of a run")
	endA, endB := Hold(host, "a"), Hold(host, "b")
	state("a", runAlive, "a run that goes on")
	endA(false)
	state("a", runDead, "one that has left something")
	endB(true)
	state("b", runElsewhere, "one that has left nothing")
	forgetRun(host, "a")
	state("a", runElsewhere, "one whose leftovers are removed")

	// What died long ago goes with the next run, and what lives stays.
	for _, name := range []string{"old", "young", "alive"} {
		if err := os.WriteFile(filepath.Join(dir, runsDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	endAlive := Hold(host, "alive")
	long := time.Now().Add(-2 * forgetAfter)
	for _, name := range []string{"old", "alive"} {
		if err := os.Chtimes(filepath.Join(dir, runsDir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	Hold(host, "next")(true)
	state("old", runElsewhere, "dead for long")
	state("young", runDead, "dead since today")
	state("alive", runAlive, "a long run")
	endAlive(true)
	if end := Hold(system.Host{StateDir: func() (string, error) { return "", os.ErrNotExist }, Now: time.Now}, "x"); end == nil {
		t.Error("without a state directory it cannot end")
	}
}
