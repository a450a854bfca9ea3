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

func TestBuildsInALine(t *testing.T) {
	for _, tt := range []struct {
		b         Build
		want, why string
	}{
		{Build{Version: "0.1.0", Go: "go1.26", ControlPlane: "1.36.3", Platform: "linux/amd64"}, "plimsoll 0.1.0 (development build), Kubernetes 1.36.3, go1.26, linux/amd64", "a build outside of a checkout"},
		{Build{Version: "0.1.0", Commit: "0123456789abcdef", Date: "2026-11-28T00:00:00Z", Go: "go1.26", ControlPlane: "1.36.3", Platform: "linux/arm64"}, "plimsoll 0.1.0 (commit 0123456789ab of 2026-11-28T00:00:00Z), Kubernetes 1.36.3, go1.26, linux/arm64", "a release"},
		{Build{Version: "0.1.0", Commit: "01", Modified: true, Date: "x", Go: "g", ControlPlane: "k", Platform: "p"}, "plimsoll 0.1.0 (commit 01 with changes of x), Kubernetes k, g, p", "a checkout with changes"},
	} {
		if got := tt.b.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
