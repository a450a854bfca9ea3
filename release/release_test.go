package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

func made() time.Time { return time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC) }

// An archive of the same files has the same bytes, with the commit's time and no user.
func TestArchivesAreReproducible(t *testing.T) {
	files := []file{{"plimsoll", []byte("program"), 0o755}, {"completions/plimsoll.bash", []byte("words"), 0o644}}
	first, err := archived("plimsoll_1_linux_amd64", files, made())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := archived("plimsoll_1_linux_amd64", files, made()); err != nil || !bytes.Equal(first, again) {
		t.Errorf("two archives of the same files differ (%v)", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for i := 0; ; i++ {
		h, err := r.Next()
		if err == io.EOF {
			if i != len(files) {
				t.Errorf("%d files, want %d", i, len(files))
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := files[i]; h.Name != "plimsoll_1_linux_amd64/"+want.name || h.Mode != want.mode || !h.ModTime.Equal(made()) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v, want %+v", h, want)
		}
	}
}

// The bill of materials lists the modules of the program's build information, and no others.
func TestTheBillListsTheModulesThatAreLinked(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Skip("the test has no build information")
	}
	text, err := billOf(info, []byte("program"), made())
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		SerialNumber string
		Metadata     struct{ Timestamp string }
		Components   []struct{ Name, Version string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, c := range bill.Components {
		got = append(got, c.Name+" "+c.Version)
	}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the bill lists %q, want %q", got, want)
	}
	if again, _ := billOf(info, []byte("program"), made()); !bytes.Equal(text, again) || bill.Metadata.Timestamp != "2026-11-28T01:02:03Z" || !strings.HasPrefix(bill.SerialNumber, "urn:uuid:") {
		t.Errorf("two bills differ, or have other times than the commit's: %s %s", bill.SerialNumber, bill.Metadata.Timestamp)
	}
}

// A directory with other files is not emptied; stale files of a release are removed.
func TestADirectoryOfOthersIsNotEmptied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptied(dir); err != nil {
		t.Fatal(err)
	}
	write("plimsoll_0.0.1_linux_amd64.tar.gz")
	write("checksums.txt")
	if err := emptied(dir); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("stale files are left: %v", entries)
	}
	write("notes.txt")
	if err := emptied(dir); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("notes.txt is not of a release: %v", err)
	}
}

// The builder's directories are refused.
func TestBuildersAreNotNamed(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	if err := namesNoBuilder([]byte("... " + home + "/go/pkg/mod/x.go ...")); err == nil {
		t.Error("a program with the builder's home directory is taken")
	}
	if err := namesNoBuilder([]byte("plain")); err != nil {
		t.Error(err)
	}
}

// The installer replaces a program only by one whose archive has its checksum.
func TestTheInstallerChecksBeforeItReplaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sh and sha256sum of Linux")
	}
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "a place")
	name := "plimsoll_1_linux_" + runtime.GOARCH
	archive, err := archived(name, []file{{"plimsoll", []byte("#!/bin/sh\necho new\n"), 0o755}}, made())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(from, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(name+".tar.gz", archive)
	put("install.sh", []byte(installer))
	if err := writeChecksums(from); err != nil {
		t.Fatal(err)
	}
	install := func(args ...string) (string, error) {
		out, err := exec.Command("sh", append([]string{filepath.Join(from, "install.sh"), "--to", to}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := install(); err != nil || out != "new\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	old := []byte("#!/bin/sh\necho old\n")
	for _, tt := range []struct {
		why, want string
		spoil     func()
	}{
		{"a damaged archive", "is damaged", func() { put(name+".tar.gz", append(slices.Clone(archive), 0)) }},
		{"an archive that was cut", "is damaged", func() { put(name+".tar.gz", archive[:len(archive)/2]) }},
		{"no archive for this platform", "there is no archive for linux/", func() { put("checksums.txt", []byte(strings.Repeat("0", 64)+"  plimsoll_1_plan9_mips.tar.gz\n")) }},
	} {
		if err := os.WriteFile(filepath.Join(to, "plimsoll"), old, 0o700); err != nil {
			t.Fatal(err)
		}
		tt.spoil()
		out, err := install()
		if left, _ := os.ReadFile(filepath.Join(to, "plimsoll")); err == nil || !strings.Contains(out, tt.want) || !bytes.Equal(left, old) {
			t.Errorf("%s: %v, %q, want %q; the program is now %q", tt.why, err, out, tt.want, left)
		}
	}
	if out, err := install("--form", "x"); err == nil || !strings.Contains(out, "unknown argument --form") {
		t.Errorf("a typo: %v %q", err, out)
	}
}
