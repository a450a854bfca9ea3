package flock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A second holder is refused, two shared ones are not, and the end of the first lets the second in.
func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Exclusive(first); err != nil {
		t.Fatal(err)
	}
	if err := Exclusive(second); !errors.Is(err, ErrHeld) {
		t.Errorf("exclusive beside exclusive: %v, want %v", err, ErrHeld)
	}
	if err := Shared(second); !errors.Is(err, ErrHeld) {
		t.Errorf("shared beside exclusive: %v, want %v", err, ErrHeld)
	}
	first.Close()
	if err := errors.Join(Shared(second), Shared(open())); err != nil {
		t.Errorf("two that share: %v", err)
	}
	if err := Exclusive(open()); !errors.Is(err, ErrHeld) {
		t.Errorf("exclusive beside shared: %v, want %v", err, ErrHeld)
	}
}
