package local

import (
	"strings"
	"testing"
)

func TestFileSystems(t *testing.T) {
	dir := t.TempDir()
	one := FileSystem(dir).Value
	if kind, drive, ok := strings.Cut(one, " on "); !ok || kind == "" || drive == "" {
		t.Errorf("%q", one)
	}
	if two := FileSystem(dir, "/proc", dir+"/none").Value; two != one+", proc on proc" {
		t.Errorf("%q", two)
	}
	if FileSystem().Value != "" {
		t.Error("no directory is on a file system")
	}
}
