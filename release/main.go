// Release writes dist/: an archive of the program for each platform, with a bill of its
// materials, checksums and an installer. It builds the commit that is checked out, in a
// clone of its own, so that two builds of a commit have the same bytes.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"
	clonePrefix  = "plimsoll-release-"
	// judgedRecord is judged by the programs of all platforms that run here.
	judgedRecord = "internal/test/e2e/records/testdata/records/pods-density"
)

func main() {
	out := flag.String("out", "dist", "directory of the release; files of an earlier one are replaced")
	platforms := flag.String("platforms", allPlatforms, "what it is for, as OS/ARCH separated by commas")
	ldflags := flag.String("ldflags", "-s -w", "flags of the linker")
	address := flag.String("url", "https://plimsoll.dev/releases", "where the releases will lie, each in a directory of its version: for the manifest of krew")
	flag.Parse()
	if err := release(*out, strings.Split(*platforms, ","), *ldflags, *address); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds each platform in a clone of the commit and writes the files.
func release(out string, platforms []string, ldflags, address string) error {
	changes, err := text("git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("a release is of a commit: commit or remove these changes first:\n%s", changes)
	}
	date, err := text("git", "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	made, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return fmt.Errorf("date of the commit: %w", err)
	}
	if err := emptied(out); err != nil {
		return err
	}
	clone, err := os.MkdirTemp("", clonePrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(clone)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		<-interrupted
		_ = os.RemoveAll(clone)
		os.Exit(130)
	}()
	source := filepath.Join(clone, "plimsoll")
	if _, err := text("git", "clone", "-q", "--shared", ".", source); err != nil {
		return err
	}
	own := build{source: source, os: runtime.GOOS, arch: runtime.GOARCH, ldflags: ldflags, program: filepath.Join(clone, "own")}
	fmt.Fprintln(os.Stderr, "building for this machine ...")
	if err := own.run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	completions, err := own.completions()
	if err != nil {
		return err
	}
	said, err := text(own.program, "version", "-o", "json")
	if err != nil {
		return err
	}
	var of struct{ Version string }
	if err := json.Unmarshal([]byte(said), &of); err != nil {
		return fmt.Errorf("version of the program: %w", err)
	}
	tags, err := text("git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if err := checkTags(strings.Fields(tags), of.Version); err != nil {
		return err
	}
	want, _, err := own.judged(judgedRecord)
	if err != nil {
		return err
	}
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%q is not a platform: write OS/ARCH, such as linux/arm64", platform)
		}
		name := fmt.Sprintf("plimsoll_%s_%s_%s", of.Version, goos, goarch)
		fmt.Fprintln(os.Stderr, "building", name, "...")
		b := build{source: source, os: goos, arch: goarch, ldflags: ldflags, program: filepath.Join(clone, name)}
		if err := b.run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		switch got, by, err := b.judged(judgedRecord); {
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s: only built: %.300v\n", name, err)
		case got != want:
			return fmt.Errorf("%s judges %s otherwise than the program of this machine:\n%s", name, judgedRecord, got)
		default:
			fmt.Fprintln(os.Stderr, strings.TrimSpace(name+": judged a record as this machine's program does "+by))
		}
		if err := b.write(filepath.Join(out, name), completions, made.UTC()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "install.sh"), []byte(installer), 0o755); err != nil {
		return err
	}
	plugin, err := manifest(out, of.Version, strings.TrimSuffix(address, "/")+"/v"+of.Version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "plimsoll.yaml"), plugin, 0o644); err != nil {
		return err
	}
	return writeChecksums(out)
}

// checkTags refuses a commit whose tag is not the version that the program prints.
func checkTags(tags []string, version string) error {
	for _, tag := range tags {
		if tag != "v"+version {
			return fmt.Errorf("the commit has the tag %s, and the program prints %s: the tag of a release is v and its semantic version, here v%[2]s; or change Version in internal/cli/process", tag, version)
		}
	}
	return nil
}

// text returns the output of a command, and its messages as an error.
func text(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
