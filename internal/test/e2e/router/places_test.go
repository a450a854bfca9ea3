package router_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A server behind the router, and a brick, that end while the others go on serving
// leave nothing that holds either.
func TestServersThatEnd(t *testing.T) {
	t.Parallel()
	volumes := []string{"--set", "volumes=1", "--set", "size=1MiB", "--set", "drive=false", "--set", "replica=3", "--set", "rate=50", "--slo", "errors < 50%"}
	for _, c := range []struct {
		why     string
		program func(*testing.T, *harness.Suite) *harness.Program
		one     func(*testing.T, *harness.Program) int // process that is killed, 0 for none yet
		args    []string
		code    int
		says    string
	}{
		{"a server behind the router", e2e.RouterProgram, func(t *testing.T, p *harness.Program) int {
			processes, _ := e2e.InRooms(t, p, "routers")
			for _, line := range processes {
				dir := filepath.Dir(strings.Fields(line)[0])
				if text, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(text), "server-1.json") {
					pid, _ := strconv.Atoi(filepath.Base(dir))
					return pid
				}
			}
			return 0
		}, []string{"router", "--levels", "2", "--hold", "4s", "--set", "servers=3", "--slo", "errors < 50%"},
			process.ExitInconclusive, "servers 3, then 2: server-1 ended (signal: killed) in step 1"},
		{"the same, as the event of the step", e2e.RouterProgram, nil,
			[]string{"router", "--levels", "2", "--hold", "3s", "--set", "servers=3", "--set", "event=kill-server", "--slo", "errors < 50%"}, process.ExitPass, ""},
		{"a brick", e2e.GlusterProgram, func(_ *testing.T, p *harness.Program) int {
			return append(e2e.Glusters(p, "glusterfsd"), 0)[0]
		}, append([]string{"io-volumes", "--levels", "1", "--hold", "4s"}, volumes...), process.ExitInconclusive, "has no process for the brick of volume-1 in step 1"},
		{"glusterd", e2e.GlusterProgram, func(_ *testing.T, p *harness.Program) int {
			for _, pid := range e2e.Glusters(p, "--no-daemon") {
				if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); err == nil && strings.TrimSpace(string(text)) == "glusterd" {
					return pid
				}
			}
			return 0
		}, append([]string{"io-volumes", "--levels", "1", "--hold", "4s"}, volumes...), process.ExitInconclusive, "has no glusterd: it ended (signal: killed) in step 1"},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.why == "a brick" || c.why == "glusterd" {
				suite.Long(t, "a GlusterFS of three servers is made")
			}
			p := c.program(t, suite)
			run := p.Start(t, append([]string{"sweep", "--out", "r"}, c.args...)...)
			if c.one != nil {
				harness.Await(t, "the load", func() bool { return e2e.Windows(p, "r") > 0 })
				if pid := c.one(t, p); pid == 0 || unix.Kill(pid, unix.SIGKILL) != nil {
					t.Fatalf("no process to end: %d", pid)
				}
			}
			got := run.Wait()
			r := p.Result(t, "r")
			if got.Code != c.code || !strings.Contains(r.Why, c.says) {
				t.Errorf("exit code %d, want %d: %q, want %q\n%s%s", got.Code, c.code, r.Why, c.says, got.Stdout, got.Stderr)
			}
			if seen := slices.ContainsFunc(r.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachPlace }); seen != (c.says != "") {
				t.Errorf("breaches %+v", r.Breaches)
			}
		})
	}
}
