package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// standIn is the shortest of programs for Linux, which does nothing.
func standIn(t *testing.T) []byte {
	t.Helper()
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64,
	}
	data, err := binary.Append(nil, binary.LittleEndian, h)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// program is a stand-in for this program, for builds without the agent.
func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plimsoll")
	if err := os.WriteFile(file, standIn(t), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// The reference of a file of Traefik's image tells its version.
func TestTraefikImageTellsItsVersion(t *testing.T) {
	image, err := Traefik(program(t))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/traefik"}) || config.Config.User != noRoot {
		t.Errorf("%+v, %v", config, err)
	}
	file := filepath.Join(t.TempDir(), "traefik.tar")
	if err := Save(image, TraefikReference("3.6.12"), file); err != nil {
		t.Fatal(err)
	}
	if reference, err := Reference(file); err != nil || reference != "localhost/plimsoll-traefik:3.6.12" {
		t.Errorf("%q, %v", reference, err)
	}
	if _, err := Reference(file + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := Reference(program(t)); err == nil {
		t.Error("a program is taken for an image")
	}
}

func TestAgentImageHoldsTheProgramAndItsRole(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Config.Entrypoint) == 0 || config.Config.Entrypoint[0] != "/agent" || strings.Join(config.Config.Cmd, " ") != "pause" || config.OS != "linux" {
		t.Errorf("the image is run as %v %v on %s", config.Config.Entrypoint, config.Config.Cmd, config.OS)
	}
	content := mutate.Extract(image)
	defer content.Close()
	found := false
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "agent" {
			found = true
			data, err := io.ReadAll(r)
			if err != nil || h.Mode&0o111 == 0 || !HasAgent() && !bytes.Equal(data, standIn(t)) {
				t.Errorf("the program has mode %o and %d bytes, %v", h.Mode, len(data), err)
			}
		}
	}
	if !found {
		t.Error("there is no program in it")
	}
}

func TestTheSameProgramMakesTheSameImage(t *testing.T) {
	file := program(t)
	for name, make := range map[string]func(string) (v1.Image, error){"agent": Agent, "self": Self} {
		first, err1 := make(file)
		second, err2 := make(file)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		a, err1 := first.Digest()
		b, err2 := second.Digest()
		if err := errors.Join(err1, err2); err != nil || a != b {
			t.Errorf("%s: digests %s and %s, %v", name, a, b, err)
		}
	}
}

// A cluster that admits no root and no write to the root file system runs the program.
func TestImageOfThisProgram(t *testing.T) {
	image, err := Self(program(t))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if got := strings.Join(c.Entrypoint, " "); got != "/plimsoll" || len(c.Cmd) > 0 || c.User != "65532:0" || c.WorkingDir != "/data" || !slices.Contains(c.Env, "XDG_STATE_HOME=/data") {
		t.Errorf("the image is run as %s by %q: %+v", got, c.User, c)
	}
	content := mutate.Extract(image)
	defer content.Close()
	var files []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if h.Name == "plimsoll" && (err != nil || h.Mode&0o111 != 0o111 || !bytes.Equal(data, standIn(t))) {
			t.Errorf("the program has mode %o and %d bytes, %v", h.Mode, len(data), err)
		}
		files = append(files, strings.TrimSuffix(h.Name, "/"))
	}
	if slices.Sort(files); !slices.Equal(files, []string{"data", "plimsoll"}) {
		t.Errorf("the image holds %q", files)
	}
	if _, err := Self(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("an image was made of a program that does not exist")
	}
}

func TestSavedAndPushedImagesAreTheSame(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.tar")
	if err := Save(image, AgentReference, file); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(AgentReference)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := saved.ConfigName(); err != nil || got != want {
		t.Errorf("saved as %s, %v; want %s", got, err, want)
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/plimsoll-agent:test"
	if err := Push(t.Context(), image, reference, Registry{Insecure: true}); err != nil {
		t.Fatal(err)
	}
	pushed, err := name.ParseReference(reference, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(pushed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pulled.ConfigName(); err != nil || got != want {
		t.Errorf("pushed as %s, %v; want %s", got, err, want)
	}
}

func TestBadReferences(t *testing.T) {
	image, err := Agent(program(t))
	if err != nil {
		t.Fatal(err)
	}
	var bad *ReferenceError
	if err := Save(image, "Not A Name", filepath.Join(t.TempDir(), "x")); !errors.As(err, &bad) {
		t.Errorf("save: %v", err)
	}
	if err := Push(t.Context(), image, "Not A Name", Registry{}); !errors.As(err, &bad) {
		t.Errorf("push: %v", err)
	}
	if _, err := Agent(filepath.Join(t.TempDir(), "nothing")); err == nil && !HasAgent() {
		t.Error("an image was made of a program that is not there")
	}
}

// The root holds what the server needs, wherever the distribution has put it.
func TestRootOfPostgreSQL(t *testing.T) {
	var b bytes.Buffer
	w := newRootWriter(&b, postgreSQL())
	for _, c := range []struct {
		name string
		want string // in the root, "" for what is left out
		why  string
	}{
		{"./usr/lib/postgresql/15/bin/postgres", "usr/lib/postgresql/15/bin/postgres", "the server"},
		{"./usr/lib/postgresql/15/bin/pg_upgrade", "", "a tool"},
		{"./usr/lib/postgresql/15/lib/plpgsql.so", "usr/lib/postgresql/15/lib/plpgsql.so", "a language that every database gets"},
		{"./usr/lib/postgresql/15/lib/llvmjit.so", "", "the compiler of queries"},
		{"./usr/share/postgresql/15/postgres.bki", "usr/share/postgresql/15/postgres.bki", "what databases are made from"},
		{"./usr/share/postgresql/15/man/man1/initdb.1.gz", "", "a manual"},
		{"./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6", "a library before the merge of /usr"},
		{"./usr/lib/aarch64-linux-gnu/libssl.so.3", "usr/lib/aarch64-linux-gnu/libssl.so.3", "a library of another machine"},
		{"./usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", "", "a large library that nothing loads"},
		{"./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2", "the loader"},
		{"./bin/dash", "usr/bin/dash", "a shell"},
		{"./usr/bin/perl", "", "another language"},
		{"./etc/passwd", "", "accounts of the system"},
	} {
		if err := w.add(&tar.Header{Name: c.name, Typeflag: tar.TypeReg, Mode: 0o644}, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
		if got := w.seen[c.want]; c.want != "" && !got || c.want == "" && w.seen[rootName(c.name)] {
			t.Errorf("%s (%s): in the root are %v", c.name, c.why, w.seen)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	links := make(map[string]string)
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		links[h.Name] = h.Linkname
	}
	if links["postgresql"] != "usr/lib/postgresql/15" || links["lib"] != "usr/lib" || links["bin"] != "usr/bin" {
		t.Errorf("links %v", links)
	}
	var none *NoPackagesError
	if err := newRootWriter(io.Discard, postgreSQL()).finish(); !errors.As(err, &none) {
		t.Errorf("without a server: %v", err)
	}
}

// That of fio holds the program, and what it loads.
func TestRootOfFio(t *testing.T) {
	w := newRootWriter(io.Discard, fio())
	for name, want := range map[string]bool{
		"./usr/bin/fio": true, "./usr/bin/fio-genzipf": false, "./usr/lib/x86_64-linux-gnu/librados.so.2": true,
		"./usr/lib/x86_64-linux-gnu/ceph/libceph-common.so.2": true, "./usr/lib/x86_64-linux-gnu/gconv/UTF-16.so": false,
	} {
		if err := w.add(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}, strings.NewReader("")); err != nil || w.seen[rootName(name)] != want {
			t.Errorf("%s: %v, %v", name, w.seen, err)
		}
	}
	if err := w.finish(); err != nil {
		t.Error(err)
	}
}

// What a registry is called becomes a part of an image's name, and nothing else.
func TestImagesInARegistry(t *testing.T) {
	for _, c := range []struct{ registry, want, why string }{
		{"registry.example:5000/team/", "registry.example:5000/team/plimsoll-agent:latest", "as it is said in an example"},
		{"../x", "", "a way up"},
		{"registry.example/../x", "", "one further on"},
		{"registry.example/./x", "", "where it is"},
		{"/etc/x", "", "a path from the root"},
		{"registry.example//x", "", "a part without a name"},
		{"http://user:hunter22@registry.example/x", "", "a password"},
		{"user:hunter22@registry.example/x", "", "a password without a scheme"},
		{"registry.example/x@sha256:" + strings.Repeat("0", 64), "", "a digest, which another image would not have"},
		{"registry.example/\x1b[31m", "", "a sequence for a terminal"},
		{"registry.example/a\nb", "", "two lines"},
	} {
		got, err := At(c.registry, AgentReference)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %q, %v, want %q", c.why, got, err, c.want)
		}
	}
}

// Packages are archives: what they are called, or link to, leads nowhere on this
// machine, and no device or right of root's gets into what is made of them.
func TestPackagesLeadNowhere(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	var b bytes.Buffer
	root, w := cpio{}, newRootWriter(&b, postgreSQL())
	for _, h := range []tar.Header{
		{Name: "../../../" + outside + "/boot/vmlinuz-1", Typeflag: tar.TypeReg},
		{Name: outside + "/lib/x86_64-linux-gnu/libz.so.1", Typeflag: tar.TypeReg},
		{Name: "../../boot/vmlinuz-1", Typeflag: tar.TypeReg},
		{Name: "/bin/busybox", Typeflag: tar.TypeReg, Mode: 0o6755},
		{Name: "bin/dash", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5},
		{Name: "bin/sh", Typeflag: tar.TypeReg, Mode: 0o4755},
		{Name: "usr/lib/x86_64-linux-gnu/libc.so.6", Typeflag: tar.TypeBlock, Devmajor: 8},
		{Name: "lib/x86_64-linux-gnu/libm.so.6", Typeflag: tar.TypeSymlink, Linkname: "../../../../etc/shadow"},
		{Name: "usr/lib/postgresql/15/bin/postgres", Typeflag: tar.TypeFifo},
	} {
		if err := errors.Join(root.take(dir, &h, strings.NewReader("kept")), w.add(&h, strings.NewReader(""))); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
	}
	if err := w.tar.Close(); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{dir: GuestKernel, outside: ""} {
		if list, err := filepath.Glob(at + "/*"); err != nil || strings.Join(list, " ") != strings.TrimSuffix(filepath.Join(at, want), at) {
			t.Errorf("there is %q, %v", list, err)
		}
	}
	// Of a link stays the name beside it, and no path.
	if text := root.String(); strings.Contains(text, "etc/shadow") || strings.Contains(text, "..") {
		t.Errorf("the root of a guest has %q", text)
	}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.IsAbs(h.Name) || strings.Contains(h.Name, "..") || h.Mode&^0o777 != 0 || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeSymlink {
			t.Errorf("the image of a database has %s: %c, mode %o", h.Name, h.Typeflag, h.Mode)
		}
	}
}
