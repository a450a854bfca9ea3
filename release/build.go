package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

//go:embed install.sh
var installer string

// build is the program for one platform.
type build struct {
	source, os, arch, ldflags string
	program                   string // where it goes
}

// builtAgent is the agent that a program for Linux holds.
const builtAgent = "internal/lab/image/built/agent"

// run compiles the program, and before it the agent that it holds, which images alone run.
func (b build) run() error {
	agent := filepath.Join(b.source, builtAgent)
	if b.os != "linux" {
		if err := os.RemoveAll(agent); err != nil {
			return err
		}
	} else if err := b.compile("-s -w", agent, "./agent"); err != nil {
		return err
	}
	return b.compile(b.ldflags, b.program, ".")
}

// compile compiles a package of the source for the platform.
func (b build) compile(ldflags, out, what string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags", ldflags, "-o", out, what)
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+b.os, "GOARCH="+b.arch)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// judged has the program judge a record, by an emulator if it is of another platform. The error says why
// it cannot run here.
func (b build) judged(record string) (said, by string, err error) {
	command := []string{b.program, "analyze", filepath.Join(b.source, record)}
	if b.os != runtime.GOOS || b.arch != runtime.GOARCH {
		by = map[string]string{"linux/amd64": "qemu-x86_64-static", "linux/arm64": "qemu-aarch64-static", "windows/amd64": "wine"}[b.os+"/"+b.arch]
		if by == "" {
			return "", "", errors.New("nothing here runs it")
		}
		command = append([]string{by}, command...)
	}
	said, err = text(command[0], command[1:]...)
	return strings.ReplaceAll(said, "\r", ""), by, err
}

// write writes the archive and the bill of materials to files that begin with path. All
// times in them are made.
func (b build) write(path string, completions []file, made time.Time) error {
	program, err := os.ReadFile(b.program)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	licences, err := licencesOf(info.Deps)
	if err != nil {
		return err
	}
	name := "plimsoll"
	if b.os == "windows" {
		name += ".exe"
	}
	files := []file{{name, program, 0o755}}
	if b.os == "linux" { // 'plimsoll image --from' makes images of it
		agent, err := os.ReadFile(filepath.Join(b.source, builtAgent))
		if err != nil {
			return err
		}
		files = append(files, file{"agent", agent, 0o755})
	}
	files = append(files, file{"THIRD-PARTY-LICENCES.txt", licences, 0o644})
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(b.source, name))
		if err != nil {
			return err
		}
		files = append(files, file{name, text, 0o644})
	}
	files = append(files, completions...)
	materials, err := billOf(info, program, made)
	if err != nil {
		return err
	}
	for _, f := range append(files, file{"the bill of materials", materials, 0}) {
		if err := namesNoBuilder(f.name, f.data); err != nil {
			return err
		}
	}
	archive, err := archived(filepath.Base(path), files, made)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %.1f MiB, unpacked program %.1f MiB\n", filepath.Base(path), mib(archive), mib(program))
	if mib(archive) > mostArchive {
		return fmt.Errorf("the archive has %.1f MiB, and at most %d are meant", mib(archive), mostArchive)
	}
	return errors.Join(os.WriteFile(path+".tar.gz", archive, 0o644), os.WriteFile(path+".cdx.json", materials, 0o644))
}

// completions returns what shells complete, which a program of any platform prints.
func (b build) completions() (files []file, err error) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, err := text(b.program, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/plimsoll." + shell, []byte(out + "\n"), 0o644})
	}
	return append(files, file{"completions/kubectl_complete-plimsoll", []byte(kubectlCompletes), 0o755}), nil
}

// mostArchive bounds an archive, in MiB.
const mostArchive = 60

func mib(data []byte) float64 { return float64(len(data)) / (1 << 20) }

// privateKey matches a key in PEM. The names of PEM blocks alone are in every program that reads keys.
var privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}`)

// namesNoBuilder refuses a file that names the machine or the user that built it, or holds a private key.
func namesNoBuilder(name string, data []byte) error {
	host, _ := os.Hostname()
	home, _ := os.UserHomeDir()
	here, _ := os.Getwd()
	for what, text := range map[string]string{"host": host, "home directory": home + "/go/", "working directory": here + "/", "directory of temporary files": filepath.Join(os.TempDir(), clonePrefix)} {
		if len(text) > 5 && bytes.Contains(data, []byte(text)) {
			return fmt.Errorf("%s names the builder's %s, %q", name, what, text)
		}
	}
	if privateKey.Match(data) {
		return fmt.Errorf("%s holds a private key", name)
	}
	return nil
}

// licenceFile matches the files of a module that its licence asks to hand on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// kubectlCompletes completes the words after "kubectl plimsoll": kubectl calls it by a name of its own.
const kubectlCompletes = "#!/bin/sh\nexec kubectl plimsoll __complete \"$@\"\n"

// manifest returns what krew, kubectl's manager of plugins, installs: the archives of a directory at an
// address, by their digests.
func manifest(dir, version, address string) ([]byte, error) {
	archives, err := filepath.Glob(filepath.Join(dir, "plimsoll_*.tar.gz"))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: plimsoll
spec:
  version: v%s
  homepage: https://plimsoll.dev
  shortDescription: Find how far a cluster can be loaded
  description: |
    Find how far a cluster can be loaded, what breaks first, and whether a change made it better or worse.
    Every command wants the cluster named: --kubeconfig FILE, --lab NAME or --in-cluster.
  platforms:
`, version)
	for _, file := range archives {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		folder := strings.TrimSuffix(filepath.Base(file), ".tar.gz")
		parts := strings.Split(folder, "_")
		os, program := parts[len(parts)-2], "plimsoll"
		if os == "windows" {
			program += ".exe"
		}
		fmt.Fprintf(&b, `  - selector:
      matchLabels: {os: %s, arch: %s}
    uri: %s/%s
    sha256: %x
    bin: %s
    files:
    - {from: %s/%[6]s, to: .}
    - {from: %[7]s/LICENSE, to: .}
`, os, parts[len(parts)-1], address, filepath.Base(file), sha256.Sum256(data), program, folder)
	}
	return b.Bytes(), nil
}

// capital matches letters that the module cache escapes.
var capital = regexp.MustCompile(`[A-Z]`)

// licencesOf returns the licences of all modules, each under the module's name.
func licencesOf(modules []*debug.Module) ([]byte, error) {
	cache, err := text("go", "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		dir := filepath.Join(cache, capital.ReplaceAllStringFunc(m.Path, func(c string) string { return "!" + strings.ToLower(c) })+"@"+m.Version)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		n := 0
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) || e.IsDir() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&all, "==== %s %s: %s\n\n%s\n\n", m.Path, m.Version, e.Name(), bytes.TrimSpace(text))
			n++
		}
		if n == 0 {
			fmt.Fprintf(&all, "==== %s %s: the module has no licence file of its own; see its repository\n\n", m.Path, m.Version)
		}
	}
	return all.Bytes(), nil
}

// ours matches the files of a release.
var ours = regexp.MustCompile(`^(plimsoll_.*\.(tar\.gz|cdx\.json)|checksums\.txt|install\.sh|plimsoll\.yaml)$`)

// emptied makes a directory without files of an earlier release. It refuses one with other
// files.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !ours.MatchString(e.Name()) {
			return fmt.Errorf("%s has %s, which is not of a release: remove it, or give another -out", dir, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}

// writeChecksums writes checksums.txt as sha256sum does, of all other files.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		lines = append(lines, hex.EncodeToString(sum[:])+"  "+e.Name()+"\n")
	}
	slices.Sort(lines)
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644)
}

// file is a file of an archive.
type file struct {
	name string
	data []byte
	mode int64
}

// archived returns a tar.gz with the files in a folder of that name. The same files and time
// give the same bytes.
func archived(folder string, files []file, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		head := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: made, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// billOf returns the program's bill of materials (CycloneDX, JSON): the modules in its build
// information, and no others.
func billOf(info *debug.BuildInfo, program []byte, made time.Time) ([]byte, error) {
	sum := sha256.Sum256(program)
	bill := cyclonedx.NewBOM()
	bill.SerialNumber = serial(sum)
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: made.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "plimsoll", Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: info.Main.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		},
	}
	var components []cyclonedx.Component
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl})
	}
	bill.Components = &components
	var b bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	err := encoder.Encode(bill)
	return b.Bytes(), err
}

// serial returns a UUID (version 8, RFC 9562) made of a digest.
func serial(sum [32]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
