package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
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

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/test/ring"
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

// The builder's directories and private keys are refused.
func TestBuildersAreNotNamed(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home directory")
	}
	const head = "-----BEGIN EC PRIVATE KEY-----\n"
	for what, text := range map[string]string{
		"home directory": "... " + home + "/go/pkg/mod/x.go ...",
		"a private key":  head + strings.Repeat("MHcCAQEE", 8),
	} {
		if err := namesNoBuilder("program", []byte(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := namesNoBuilder("program", []byte("plain; "+head+"%s")); err != nil {
		t.Error(err)
	}
}

// The manifest of krew has the fields of its Plugin (v1alpha2), and the digests and files of the archives.
func TestKrewManifest(t *testing.T) {
	dir := t.TempDir()
	for _, platform := range []string{"darwin_arm64", "linux_amd64", "windows_amd64"} {
		if err := os.WriteFile(filepath.Join(dir, "plimsoll_0.1.0_"+platform+".tar.gz"), []byte(platform), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := manifest(dir, "0.1.0", "https://example.test/v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, Homepage, Description string
			ShortDescription               string `yaml:"shortDescription"`
			Platforms                      []struct {
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
				Selector         struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &plugin, yaml.Strict()); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "plimsoll" || s.Version != "v0.1.0" || s.ShortDescription == "" || len(s.ShortDescription) > 50 {
		t.Errorf("%+v", plugin)
	}
	if len(s.Platforms) != 3 {
		t.Fatalf("%d platforms", len(s.Platforms))
	}
	for _, p := range s.Platforms {
		name := p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]
		folder, program := "plimsoll_0.1.0_"+name, "plimsoll"
		if strings.HasPrefix(name, "windows") {
			program += ".exe"
		}
		if p.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(name))) || p.URI != "https://example.test/v0.1.0/"+folder+".tar.gz" || p.Bin != program || p.Files[0].From != folder+"/"+program {
			t.Errorf("%+v", p)
		}
	}
}

// The tag of a release is its semantic version.
func TestTags(t *testing.T) {
	for _, tt := range []struct {
		why  string
		tags []string
		ok   bool
	}{
		{"no tag", nil, true},
		{"the version", []string{"v0.1.0"}, true},
		{"not semantic", []string{"release-1"}, false},
		{"without v", []string{"0.1.0"}, false},
		{"another version", []string{"v0.2.0"}, false},
		{"one of two", []string{"v0.1.0", "nightly"}, false},
	} {
		if err := checkTags(tt.tags, "0.1.0"); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "v0.1.0") {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// Two builds of a commit in different directories have the same bytes, and name neither. Of the program
// that is in all images: the whole one takes minutes.
func TestTwoBuildsHaveTheSameBytes(t *testing.T) {
	ring.Long(t, "compiles a program twice")
	var programs, bills [2][]byte
	for i := range programs {
		source := filepath.Join(t.TempDir(), strings.Repeat("deep/", i)+"source")
		if _, err := text("git", "clone", "-q", "--shared", "..", source); err != nil {
			t.Fatal(err)
		}
		b := build{source: source, os: "linux", arch: "arm64", program: filepath.Join(t.TempDir(), "agent")}
		if err := b.compile("-s -w", b.program, "./agent"); err != nil {
			t.Fatal(err)
		}
		var err error
		if programs[i], err = os.ReadFile(b.program); err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(b.program)
		if err != nil {
			t.Fatal(err)
		}
		if bills[i], err = billOf(info, programs[i], made()); err != nil {
			t.Fatal(err)
		}
		if err := namesNoBuilder("agent", programs[i]); err != nil || bytes.Contains(programs[i], []byte(source)) {
			t.Errorf("the program names %s (%v)", source, err)
		}
		said, err := text("go", "version", "-m", b.program)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(said) {
			if f := strings.Fields(line); f[0] == "dep" && !bytes.Contains(bills[i], []byte(`"pkg:golang/`+f[1]+"@"+f[2]+`"`)) {
				t.Errorf("the bill lacks %s %s", f[1], f[2])
			}
		}
		if got, want := bytes.Count(bills[i], []byte(`"purl"`)), strings.Count(said, "\tdep\t"); got != want || want == 0 {
			t.Errorf("the bill lists %d modules, go version -m %d", got, want)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) || !bytes.Equal(bills[0], bills[1]) {
		t.Error("two builds of a commit differ")
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
