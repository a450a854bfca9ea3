package room

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A room of a run that is dead is removed, that of one alive is not.
func TestRoomsOfDeadRunsAreRemoved(t *testing.T) {
	state := t.TempDir()
	alive, err := Make(state, "rooms", "alive")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := Make(state, "rooms", "de/ad")
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the kernel does
	var told []string
	if err := RemoveDead(state, "rooms", func(dir string) error { told = append(told, dir); return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.Dir); err == nil || len(told) != 1 || told[0] != dead.Dir {
		t.Errorf("the room of a dead run is still there, or was removed unasked: %v", told)
	}
	if _, err := os.Stat(alive.Dir); err != nil || strings.Contains(filepath.Base(dead.Dir), "/ad") {
		t.Errorf("the room of a run that is alive: %v", err)
	}
	if err := alive.Remove(); err != nil {
		t.Error(err)
	}
}
