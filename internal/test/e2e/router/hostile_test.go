package router_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// loadHere is a load of this machine, and the facts that say whom its programs run as.
type loadHere struct {
	kind  string
	load  []string
	facts map[string]string // by the name of a process
}

// The programs of others that a load here runs have no rights where this program is
// root, and nothing of its environment: the record says so, and so does the kernel
// while they run.
func TestLoadsHereRunWithoutRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("who is not root runs all as itself")
	}
	p := e2e.IOProgram(t, suite)
	_, err := haproxy.Find(context.Background(), "")
	harness.Able(t, err)
	p.Env = append(p.Env, "PLIMSOLL_PASSWORD="+e2e.Planted)
	rows := []loadHere{
		{"routers", []string{"router", "--levels", "2", "--repeat", "1", "--slo", "Response p50 <= 1h"}, map[string]string{"haproxy": "user:haproxy", "plimsoll": "user:the-servers"}},
		{"io", []string{"io-volumes", "--levels", "1", "--slo", "Complete p50 <= 1h", "--set", "path=.", "--set", "size=1MiB", "--set", "drive=false"}, map[string]string{"fio": "user:fio"}},
	}
	if _, err := exec.LookPath("nginx"); err == nil {
		rows = append(rows, loadHere{"routers", []string{"router", "--levels", "2", "--repeat", "1", "--slo", "Response p50 <= 1h", "--set", "backend=nginx"}, map[string]string{"haproxy": "user:haproxy", "nginx": "user:the-servers"}})
	}
	for i, c := range rows {
		out := fmt.Sprint(c.kind, i)
		s := p.Start(t, append([]string{"sweep", "--hold", "1s", "--out", out}, c.load...)...)
		seen := make(map[string]string) // status by the name of a process
		harness.Await(t, "processes of "+c.kind, func() bool {
			processes, _ := e2e.InRooms(t, p, c.kind)
			for _, process := range processes {
				dir, _, _ := strings.Cut(process, "/cwd in ")
				status, _ := os.ReadFile(dir + "/status") // it may just have ended
				environ := e2e.EnvironOf(dir)
				if strings.Contains(environ, e2e.Planted) {
					t.Errorf("%s: the environment of %s is %q", out, dir, environ)
				}
				// One that is about to become another has the name of neither.
				if name, rest, ok := strings.Cut(strings.TrimPrefix(string(status), "Name:\t"), "\n"); ok && environ != "" && c.facts[name] != "" {
					seen[name] += rest
				}
			}
			return s.Ended() || len(seen) == len(c.facts)
		})
		if got := s.Wait(); got.Code != process.ExitPass && got.Code != process.ExitInvalid {
			t.Fatalf("%s: exit code %d\n%s", c.kind, got.Code, got.Stderr)
		}
		env := p.Environment(t, out)
		for name, status := range seen {
			who := env.Value(c.facts[name])
			_, id, _ := strings.Cut(strings.TrimSuffix(who, ")"), "(")
			for line := range strings.Lines(status) {
				field, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
				want := map[string]string{"Uid": strings.Repeat("\t"+id, 4)[1:], "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "NoNewPrivs": "1"}[field]
				if want != "" && value != want {
					t.Errorf("%s, on record as %q: %s is %q, want %q", name, who, field, value, want)
				}
			}
			if id == "" || id == "0" {
				t.Errorf("%s is on record as %q", name, who)
			}
		}
		for name := range c.facts {
			if seen[name] == "" {
				t.Errorf("no %s ran, but %d others", name, len(seen))
			}
		}
	}
}
