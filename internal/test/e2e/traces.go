package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Steps counts the steps that a run has begun, by its record.
func Steps(p *harness.Program, dir string) int {
	return p.Count(dir, func(e record.Event) bool {
		s, ok := e.Body.(*record.StepEvent)
		return ok && s.Phase == record.PhaseStart
	})
}

// Windows counts the windows of requests on a run's record.
func Windows(p *harness.Program, dir string) int {
	return p.Count(dir, func(e record.Event) bool { _, ok := e.Body.(*record.Window); return ok })
}

// InRooms returns the processes that the program's runs have started in their working
// directories, and those directories, of one kind such as routers or io.
func InRooms(t *testing.T, p *harness.Program, kind string) (processes, files []string) {
	t.Helper()
	// Where they work may lie elsewhere, as the rooms tell.
	in := []string{p.State, p.Dir}
	lists, _ := filepath.Glob(filepath.Join(p.State, "plimsoll", kind, "*", "made"))
	for _, file := range lists {
		text, _ := os.ReadFile(file) // the run may just have ended
		in = append(in, strings.Fields(string(text))...)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		dir, err := os.Readlink(link)
		if err == nil && slices.ContainsFunc(in, func(of string) bool { return strings.HasPrefix(dir+"/", of+"/") && dir != p.Dir }) {
			processes = append(processes, link+" in "+dir)
		}
	}
	files, err := filepath.Glob(filepath.Join(p.State, "plimsoll", kind, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return processes, files
}

// Glusters returns the processes of a program's GlusterFS whose command line has all
// these words. Their numbers are those that the test sees.
func Glusters(p *harness.Program, words ...string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		line := strings.ReplaceAll(string(text), "\x00", " ")
		if err != nil || !strings.Contains(line, p.State) || strings.Contains(line, " component ") {
			continue
		}
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && all {
			pids = append(pids, pid)
		}
	}
	return pids
}

// EnvironOf returns the environment of a process by its directory in /proc. It returns
// "" for a copy of this program that is about to become another program.
func EnvironOf(dir string) string {
	command, _ := os.ReadFile(dir + "/cmdline") // it may just have ended
	if strings.Contains(string(command), "\x00sweep\x00") {
		return ""
	}
	environ, _ := os.ReadFile(dir + "/environ")
	return string(environ)
}

// Cleans runs 'clean' without a cluster after a run was killed: a dry run finds
// things of that run and removes nothing, the next command removes them, and then
// nothing is left to remove. Things are patterns, one for each thing.
func Cleans(t *testing.T, p *harness.Program, things ...string) {
	t.Helper()
	// Control groups are the whole machine's, and other tests kill labs too.
	clean := func(args ...string) (out string, got harness.Outcome) {
		got = p.Run(t, append([]string{"clean"}, args...)...)
		if got.Code != process.ExitPass || !strings.HasSuffix(got.Stderr, "A cluster is looked at with --kubeconfig FILE or --lab NAME.\n") {
			t.Errorf("clean %q: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
		for line := range strings.Lines(got.Stdout) {
			if !regexp.MustCompile(`^\S+ (remove )?/sys/fs/cgroup/`).MatchString(line) {
				out += line
			}
		}
		return out, got
	}
	dry, _ := clean("--dry-run")
	for _, thing := range things {
		if !regexp.MustCompile(`(?m)^would remove .*` + thing).MatchString(dry) {
			t.Errorf("a dry run does not find %s:\n%s", thing, dry)
		}
	}
	if again, _ := clean("--dry-run"); again != dry {
		t.Errorf("a dry run has changed something:\n%sand then\n%s", dry, again)
	}
	if removed, got := clean(); removed != strings.ReplaceAll(dry, "would remove", "removed") {
		t.Errorf("clean: %s%s", got.Stdout, got.Stderr)
	}
	if none, got := clean(); none != "nothing to remove\n" && (none != "" || got.Stdout == "") {
		t.Errorf("a second clean: %s%s", got.Stdout, got.Stderr)
	}
}

// SparesAlive checks that 'clean' reports a run that goes on and leaves it alone.
func SparesAlive(t *testing.T, p *harness.Program, kind, target string) {
	t.Helper()
	_, before := InRooms(t, p, kind)
	left := Ours(p.Cleaned(t))
	if len(left) != 1 || !left[0].Alive || left[0].Target != target || left[0].Run == "" || !slices.Equal(left[0].Things, before) {
		t.Errorf("beside a run in %v: %+v", before, left)
	}
	if _, after := InRooms(t, p, kind); !slices.Equal(before, after) {
		t.Errorf("clean has taken from a run that goes on: %v, %v", before, after)
	}
}

// Ours returns the leftovers without the control groups, which other tests leave too.
func Ours(list []harness.Leftover) []harness.Leftover {
	return slices.DeleteFunc(list, func(l harness.Leftover) bool { return strings.HasPrefix(l.Things[0], "/sys/fs/cgroup/") })
}

// Planted is a part of every secret that a test plants.
const Planted = "s3cr3tly-planted"

// AnyCode lets a command end with any exit code, where that depends on how busy the
// machine is.
const AnyCode = -1

// SaysNothing returns a function that runs a command and checks its exit code, that it
// prints the text says, and that it prints nothing of what was planted.
func SaysNothing(t *testing.T, p *harness.Program) func(code int, says string, args ...string) {
	return func(code int, says string, args ...string) {
		t.Helper()
		got := p.Run(t, args...)
		for _, text := range []string{got.Stdout, got.Stderr} {
			if strings.Contains(text, Planted) || strings.ContainsAny(text, "\x1b\u202e") {
				t.Errorf("%v prints %q", args[:2], text)
			}
		}
		if code != AnyCode && got.Code != code || !strings.Contains(got.Stdout+got.Stderr, says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args[:2], got.Code, code, says, got.Stdout, got.Stderr)
		}
	}
}

// HoldsNothing checks that no file of a run directory holds one of the secrets or the
// planted one, and that only its owner may read it.
func HoldsNothing(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if unzip, _ := zstd.NewReader(bytes.NewReader(data)); strings.HasSuffix(path, ".zst") {
			var text bytes.Buffer
			if _, err := unzip.WriteTo(&text); err != nil {
				return err
			}
			data = text.Bytes()
		}
		for _, secret := range append(secrets, Planted) {
			if i := bytes.Index(data, []byte(secret)); i >= 0 {
				t.Errorf("%s holds a secret: %q", path, data[max(i-80, 0):min(i+80, len(data))])
			}
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Errorf("%s has %d files: %v", dir, files, err)
	}
	type row struct {
		Slot    string `parquet:"slot"`
		Error   string `parquet:"error"`
		Message string `parquet:"message"`
	}
	rows, err := parquet.ReadFile[row](filepath.Join(dir, record.ObjectsFile))
	if text := fmt.Sprint(rows); err != nil || strings.Contains(text, Planted) {
		t.Errorf("%s: %v %s", record.ObjectsFile, err, text)
	}
}
