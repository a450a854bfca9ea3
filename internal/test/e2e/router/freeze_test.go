package router_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// haproxies returns the processes of a program's HAProxy.
func haproxies(t *testing.T, p *harness.Program) (pids []int) {
	t.Helper()
	processes, _ := e2e.InRooms(t, p, "routers")
	for _, line := range processes {
		dir := filepath.Dir(strings.Fields(line)[0])
		if text, err := os.ReadFile(filepath.Join(dir, "comm")); err == nil && strings.TrimSpace(string(text)) == "haproxy" {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// bricks returns the processes that serve a program's volumes.
func bricks(_ *testing.T, p *harness.Program) []int { return e2e.Glusters(p, "glusterfsd") }

// What is loaded stands still for 3 s of a hold of 8 s. Each load of requests finds it,
// by a schedule and in a closed loop.
func TestMeasuredAFreezeInEveryLoad(t *testing.T) {
	suite.Measures(t)
	small := []string{"--set", "volumes=1", "--set", "size=16MiB", "--set", "drive=false"}
	for _, tt := range []struct {
		workload     string
		program      func(*testing.T, *harness.Suite) *harness.Program
		servers      func(*testing.T, *harness.Program) []int
		open, closed []string
	}{
		{"router", e2e.RouterProgram, haproxies, []string{"--axis", "rate", "--levels", "200"}, []string{"--levels", "4"}},
		{"io-volumes", e2e.GlusterProgram, bricks, append([]string{"--axis", "rate", "--levels", "200"}, small...), append([]string{"--levels", "1"}, small[2:]...)},
		{"small-files", e2e.GlusterProgram, bricks, []string{"--axis", "rate", "--levels", "200"}, []string{"--axis", "workers", "--levels", "2"}},
	} {
		t.Run(tt.workload, func(t *testing.T) {
			p := tt.program(t, suite)
			for _, loop := range []string{"open", "closed"} {
				args := tt.open
				if loop == "closed" {
					args = tt.closed
				}
				out := tt.workload + "-" + loop
				s := p.Start(t, append([]string{"sweep", tt.workload, "--repeat", "1", "--hold", "8s", "--out", out}, args...)...)
				harness.Await(t, "a window on record", func() bool { return e2e.Windows(p, out) >= 4 })
				pids := tt.servers(t, p)
				if len(pids) == 0 {
					t.Fatalf("%s: nothing serves", out)
				}
				for _, pid := range pids {
					_ = unix.Kill(pid, unix.SIGSTOP)
				}
				time.Sleep(3 * time.Second) // the fault itself
				for _, pid := range pids {
					_ = unix.Kill(pid, unix.SIGCONT)
				}
				got := s.Wait()
				step := p.Result(t, out).Steps[0]
				if got.Code != process.ExitFail {
					t.Errorf("%s: exit code %d\n%s%s", out, got.Code, got.Stdout, got.Stderr)
				}
				latency := step.Latency
				if loop == "closed" {
					stood := 0.0
					for _, x := range step.Requests.Stalls {
						stood = max(stood, x.Seconds)
					}
					if latency = step.Requests.Corrected; stood < 2 || stood > 4 {
						t.Errorf("%s: stalls %+v\n%s", out, step.Requests.Stalls, got.Stdout)
					}
				}
				worst := 0.0
				for _, x := range latency {
					if x.P99 != nil {
						worst = max(worst, *x.P99)
					}
				}
				if worst < 2 || worst > 4 {
					t.Errorf("%s: p99 is %.3f s\n%s", out, worst, got.Stdout)
				}
			}
		})
	}
}
