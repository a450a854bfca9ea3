package io

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// A file system with volumes that goes, or becomes read only, is reported.
func TestFileSystemsThatGo(t *testing.T) {
	mounted := t.TempDir()
	if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mount a file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(mounted, unix.MNT_DETACH) })
	base, err := os.MkdirTemp(mounted, volumesPrefix)
	if err != nil {
		t.Fatal(err)
	}
	_, list := (&directories{bases: []string{base}}).places()
	look := func(why string, want record.PlaceState) {
		t.Helper()
		if p := list[0].Look(); p.State != want {
			t.Errorf("%s: %+v, want %q", why, p, want)
		}
	}
	if list[0].Name != mounted {
		t.Errorf("it is called %q", list[0].Name)
	}
	look("as it was", "")
	if err := unix.Mount("", mounted, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	look("read only", record.PlaceNotReady)
	if err := unix.Unmount(mounted, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	look("unmounted", record.PlaceGone)
}
