package room

import (
	"os"
	"path/filepath"
	"slices"
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
	other := t.TempDir()
	for _, c := range []struct {
		dry, there bool
		left       int
		why        string
	}{
		{true, true, 2, "a look removes nothing"},
		{false, false, 2, "what a dead run has left goes"},
		{false, false, 1, "then nothing of it is left"},
	} {
		list, err := Sweep(state, "rooms", func(string) bool { return !c.dry }, func(string) ([]string, error) { return []string{other}, nil })
		if err != nil || len(list) != c.left {
			t.Fatalf("%s: %+v, %v", c.why, list, err)
		}
		for _, l := range list {
			if l.Alive != (l.Run == "alive") || !l.Alive && (l.Run != "de-ad" || !slices.Equal(l.Things, []string{other, dead.Dir})) {
				t.Errorf("%s: %+v", c.why, l)
			}
		}
		for _, dir := range []string{dead.Dir, other} {
			if _, err := os.Stat(dir); (err == nil) != c.there {
				t.Errorf("%s: %s: %v", c.why, dir, err)
			}
		}
	}
	if _, err := os.Stat(alive.Dir); err != nil || strings.Contains(filepath.Base(dead.Dir), "/ad") {
		t.Errorf("the room of a run that is alive: %v", err)
	}
	if err := alive.Remove(); err != nil {
		t.Error(err)
	}
}
