package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// KeepVariable names the environment variable that holds the directory in which
// tests that fail keep what shows why; "" for plimsoll-failed in the system's
// directory of temporary files.
const KeepVariable = "PLIMSOLL_KEEP"

// Files that a test which failed keeps beside what was in its directory.
const (
	commandsFile = "commands.txt" // its commands, with what they printed
	againFile    = "again.txt"    // the command that runs the test again
)

// keep copies what a test that failed has left, and says where it is: the
// directory that its commands ran in, which holds their records, the logs of its
// labs, and its commands. It does nothing for a test that has not failed.
func (p *Program) keep(t testing.TB) {
	t.Helper()
	if !t.Failed() || p.kept {
		return
	}
	p.kept = true
	p.mu.Lock()
	commands := p.commands.String()
	p.mu.Unlock()
	to, err := p.suite.Keep(t, p.Dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(to, commandsFile), []byte(commands), 0o644)
	}
	if err == nil {
		err = copyFiles(filepath.Join(to, "state"), p.State, func(path string) bool { return strings.HasSuffix(path, ".log") })
	}
	if err != nil {
		t.Logf("what it left is not kept whole: %v", err)
	}
}

// Keep copies a directory of a test that failed to where such are kept, says
// where that is and how the test is run again, and returns it.
func (s *Suite) Keep(t testing.TB, dir string) (string, error) {
	t.Helper()
	root := s.getenv(KeepVariable)
	if root == "" {
		root = filepath.Join(os.TempDir(), "plimsoll-failed")
	}
	to := filepath.Join(root, strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	again := s.again(t)
	t.Logf("what it left is in %s; to run it again: %s", to, again)
	if err := os.WriteFile(filepath.Join(to, againFile), []byte(again+"\n"), 0o644); err != nil {
		return "", err
	}
	return to, copyFiles(filepath.Join(to, "dir"), dir, func(string) bool { return true })
}

// again returns the command that runs a test by itself, from the repository's root.
func (s *Suite) again(t testing.TB) string {
	pkg, _ := os.Getwd() // go test runs each package's tests in its directory
	if at := strings.LastIndex(pkg, "/internal/"); at >= 0 {
		pkg = "." + pkg[at:]
	}
	line := ""
	for _, name := range []string{ring.Variable, MeasureVariable} {
		if s.getenv(name) != "" {
			line += name + "=1 "
		}
	}
	root, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("make build && %s%s=$PWD/bin/plimsoll go test -count=1 -run '^%s$' %s", line, BinaryVariable, root, pkg)
}

// copyFiles copies the regular files of a directory that which accepts. It skips
// those that go meanwhile.
func copyFiles(to, from string, which func(path string) bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() || !which(path) {
			return err
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		file := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644)
	})
}
