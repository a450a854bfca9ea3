package record

import (
	"path/filepath"
	"testing"
)

// Runs that begin in the same second have directories of their own.
func TestNewDirectoriesDoNotCollide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs", "20261127-120000-a")
	made := make(chan Dir, 8)
	for range cap(made) {
		go func() {
			dir, err := NewDir(path)
			if err != nil {
				t.Error(err)
			}
			made <- dir
		}()
	}
	seen := make(map[Dir]bool)
	for range cap(made) {
		seen[<-made] = true
	}
	if len(seen) != cap(made) || !seen[Dir(path)] || !seen[Dir(path+"-2")] || !seen[Dir(path+"-8")] {
		t.Errorf("made %v", seen)
	}
}
