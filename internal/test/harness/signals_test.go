package harness

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

var suite = New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// ignoring is set where this test binary runs itself with signals ignored.
const ignoring = "PLIMSOLL_TEST_IGNORING"

// A command ends at a signal, also where the tests were started by something
// that ignores it.
func TestCommandsBeginWithDefaultSignals(t *testing.T) {
	if os.Getenv(ignoring) != "" {
		for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE} {
			command := (&Program{binary: "sleep", Dir: t.TempDir()}).Start(t, "5")
			command.Signal(s)
			command.Wait()
			if status := command.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != s {
				t.Errorf("%v: %v", s, command.cmd.ProcessState)
			}
		}
		return
	}
	for _, tt := range []struct{ why, command string }{
		{"nohup, as in 'nohup make test'", `nohup "$0" "$@"`},
		{"all are ignored", `trap '' HUP INT TERM PIPE; "$0" "$@"`},
		{"none is", `"$0" "$@"`},
	} {
		cmd := exec.Command("sh", "-c", tt.command, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), ignoring+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%s: %v\n%s", tt.why, err, out)
		}
	}
}
