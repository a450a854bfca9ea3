package e2e

import (
	"bytes"
	"cmp"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

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
