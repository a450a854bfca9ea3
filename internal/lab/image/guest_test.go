package image

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The kernel reads the first root of a guest as an archive of headers of a fixed
// width, each file at a multiple of four bytes, with its directories before it.
func TestGuestRoot(t *testing.T) {
	dir := t.TempDir()
	var root cpio
	for _, f := range []struct{ name, link, content string }{
		{"./boot/vmlinuz-6.1.0-1-cloud-amd64", "", "kernel"},
		{"./bin/busybox", "", "shell"},
		{"./usr/share/doc/busybox", "", "no program"},
		{"./lib/modules/6.1.0/kernel/drivers/virtio/virtio.ko", "", "module"},
		{"./lib/modules/6.1.0/kernel/sound/sound.ko", "", "not needed"},
		{"./lib/x86_64-linux-gnu/libz.so.1.2", "", "library"},
		{"./lib/x86_64-linux-gnu/libz.so.1", "libz.so.1.2", ""},
	} {
		h := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Linkname: f.link}
		if f.link != "" {
			h.Typeflag = tar.TypeSymlink
		}
		if err := root.take(dir, h, strings.NewReader(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for text := root.Bytes(); len(text) > 0; {
		field := func(n int) int {
			v, err := strconv.ParseUint(string(text[6+8*n:14+8*n]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		size, name := field(6), string(bytes.TrimRight(text[110:110+field(11)], "\x00"))
		begin := (110 + field(11) + 3) &^ 3
		if field(1)&0o170000 != 0o040000 {
			got[name] = string(text[begin : begin+size])
			if above := filepath.Dir(name); got[above] != "a directory" {
				t.Errorf("%s comes before its directory", name)
			}
		} else {
			got[name] = "a directory"
		}
		text = text[(begin+size+3)&^3:]
	}
	at := -1
	for i, name := range guestModules() {
		if name == "virtio" {
			at = i
		}
	}
	for name, want := range map[string]string{"bin/busybox": "shell", "lib/libz.so.1.2": "library", "lib/libz.so.1": "libz.so.1.2", "modules/0" + strconv.Itoa(at) + ".ko": "module"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if kernel, err := os.ReadFile(filepath.Join(dir, GuestKernel)); len(got) != 7 || err != nil || string(kernel) != "kernel" {
		t.Errorf("the root holds %v; kernel %q, %v", got, kernel, err)
	}
}
