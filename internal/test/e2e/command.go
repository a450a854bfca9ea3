package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/screen"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Main runs the tests of one area and returns the exit code. It appends /usr/sbin to
// the path, because a user's path does not lead to the programs there that read the
// files that Plimsoll writes.
func Main(m *testing.M, suite *harness.Suite, getenv func(string) string, stderr io.Writer) int {
	if err := os.Setenv("PATH", getenv("PATH")+":/usr/sbin"); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	process.Quieten()
	return suite.Run(m, stderr)
}

// InMemory returns a process in memory. It can reach no cluster and start no lab,
// because its executable does not exist. It reports a twentieth of the time that passes
// as the CPU time that it used.
func InMemory(t *testing.T, env map[string]string, args ...string) process.Process {
	t.Helper()
	state, began := t.TempDir(), time.Now()
	return process.Process{
		Args:       args,
		Executable: filepath.Join(state, "no-such-program"),
		LookupEnv: func(key string) (string, bool) {
			v, ok := env[key]
			if !ok && key == "XDG_STATE_HOME" {
				return state, true
			}
			return v, ok
		},
		Stdin: strings.NewReader(""), Stdout: io.Discard,
		Console: screen.Console{Stderr: io.Discard, Width: func() int { return 0 }, Now: time.Now},
		Signals: make(chan os.Signal),
		Random:  strings.NewReader(strings.Repeat("plimsoll", 30)),
		Used: func() (record.Reading, error) {
			return record.Reading{Source: usage.SourceSelf, Values: map[string]float64{"cpuSeconds": time.Since(began).Seconds() / 20, "rssBytes": 1 << 26}}, nil
		},
		Prefer: func(bool) (string, func()) { return "it is simulated", func() {} },
	}
}

// Command runs a whole command in this process and returns what its user sees.
func Command(t *testing.T, env map[string]string, args ...string) harness.Outcome {
	t.Helper()
	p := InMemory(t, env, args...)
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	code := cli.Main(p)
	return harness.Outcome{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

// Transcript runs a whole command in this process and returns it as Shown does.
func Transcript(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return Shown(dir, args, Command(t, nil, args...))
}

// Shown returns the line of a command that has ended, what it printed, and its exit code
// unless that is 0. It writes DIR for dir, unless that is "".
func Shown(dir string, args []string, got harness.Outcome) string {
	text := "$ " + process.CommandLine(args) + "\n" + got.Stdout + WithoutWaiting(got.Stderr)
	if got.Code != 0 {
		text += fmt.Sprintf("exit code %d\n", got.Code)
	}
	if dir == "" {
		return text
	}
	return strings.ReplaceAll(text, dir, "DIR")
}

var waiting = regexp.MustCompile(`(?m)^.* \.\.\.\n`)

// WithoutWaiting removes the lines that a command prints while it waits, because these
// depend on what else the machine does.
func WithoutWaiting(stderr string) string { return waiting.ReplaceAllString(stderr, "") }

// KeptRecord copies a record of testdata/records of the area records, and returns the
// copy's directory.
func KeptRecord(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../records/testdata/records", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// documentedFile matches a file of a page: its name in code, and a fenced block.
var documentedFile = regexp.MustCompile("(?m)^`([a-z-]+/[a-z.-]+)`:\n\n```yaml\n((?s:.*?))```")

// DocumentedFiles writes the files that a page shows into a directory, and returns it.
func DocumentedFiles(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	found := documentedFile.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatalf("%s shows no files", page)
	}
	for _, m := range found {
		path := filepath.Join(dir, m[1])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(m[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// OnVirtualClock runs a test in a bubble of synctest: there a run on the simulated
// target takes no time, and other load on the machine changes no measurement. The clock
// goes on from one command to the next.
func OnVirtualClock(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	// What reads and writes objects.parquet keeps coders in a sync.Pool, and in
	// them channels, which no one outside of the bubble may use. The second
	// collection of garbage leaves nothing in a pool.
	defer runtime.GC()
	defer runtime.GC()
	synctest.Test(t, test)
}

// Measured runs a command on a virtual clock. It returns the directory of the command's
// record, which the suite keeps if the test fails.
func Measured(t *testing.T, suite *harness.Suite, args ...string) (dir string, got harness.Outcome) {
	t.Helper()
	synctest.Wait() // it panics where the clock is real
	dir = filepath.Join(t.TempDir(), "run")
	t.Cleanup(func() {
		if t.Failed() {
			if _, err := suite.Keep(t, dir); err != nil {
				t.Log(err)
			}
		}
	})
	return dir, Command(t, nil, append(args, "--out", dir)...)
}

// ResultIn reads the result that a run has left in a directory.
func ResultIn(t *testing.T, dir string) result.Result {
	t.Helper()
	var r result.Result
	if err := record.Dir(dir).ReadJSON(record.ResultFile, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// LineIn reads the load line and the lowest failing level of a search from its directory; 0: none.
func LineIn(t *testing.T, dir string) (line, fails float64) {
	t.Helper()
	if l := ResultIn(t, dir).LoadLine; l != nil {
		line, fails = *cmp.Or(l.Level, new(float64)), *cmp.Or(l.LowestFailing, new(float64))
	}
	return line, fails
}

// Trigger is a stream that calls Then when it has first got the text On.
type Trigger struct {
	On   string
	Then func()

	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (w *Trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(p)
	if w.Then != nil && strings.Contains(w.text.String(), w.On) {
		w.Then()
		w.Then = nil
	}
	return n, err
}

// String returns the text so far.
func (w *Trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// Sealed makes a directory with a result.json of this text, as a run writes it: with its sum.
func Sealed(t *testing.T, dir, text string) {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := record.Dir(dir).WriteResult(result, nil); err != nil {
		t.Fatal(err)
	}
}
