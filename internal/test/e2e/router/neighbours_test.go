package router_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// neighbourVariable has this test binary keep a processor busy, and do nothing else.
const neighbourVariable = "PLIMSOLL_TEST_NEIGHBOUR"

// TestBusyNeighbour is no test: it is what other programs on the machine do.
func TestBusyNeighbour(t *testing.T) {
	suite.Long(t, "it keeps the processors busy")
	if os.Getenv(neighbourVariable) == "" {
		t.Skip("it keeps a processor busy for another test")
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
	}
}

// What is measured beside programs that take the processors is no limit of the
// target: a time that is too long says nothing, and what holds all the same holds.
func TestBusyNeighboursAreNoLimit(t *testing.T) {
	suite.Long(t, "it keeps all processors busy")
	_, noRouter := haproxy.Find(t.Context(), "")
	for range 4 * runtime.NumCPU() {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBusyNeighbour$")
		cmd.Env = append(os.Environ(), neighbourVariable+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context has killed it
	}
	rate := []string{"--axis", "rate", "--levels", "200"}
	io := append([]string{"io-volumes", "--set", "path=.", "--set", "size=4MiB", "--set", "drive=false", "--set", "rw=randrw"}, rate...)
	// A step may also be invalid because its generator was late, which the neighbours explain as well.
	const explained, inSpite = ": slow results in this step come from the busy machine", ": this step passed anyway"
	for _, tt := range []struct {
		why   string
		needs error // nil: its programs are there
		args  []string
		code  int
		says  string
	}{
		{"router, too slow", noRouter, append([]string{"router", "--slo", "Response p99 <= 1ms"}, rate...), process.ExitInvalid, explained},
		{"router, fast enough", noRouter, []string{"router", "--levels", "4", "--slo", "Response p99 <= 20s"}, process.ExitPass, inSpite},
		{"io, too slow", nil, append([]string{"--slo", "Complete p99 <= 1us"}, io...), process.ExitInvalid, explained},
		{"io, fast enough", nil, append([]string{"--slo", "Complete p99 <= 20s"}, io...), process.ExitPass, inSpite},
	} {
		t.Run(tt.why, func(t *testing.T) {
			harness.Able(t, tt.needs)
			p := suite.Program(t)
			if strings.HasPrefix(tt.why, "io") {
				p = e2e.IOProgram(t, suite)
			}
			got := p.Start(t, append([]string{"sweep", "--repeat", "1", "--hold", "3s", "--out", "r"}, tt.args...)...).Wait()
			if got.Code != tt.code || !strings.Contains(got.Stdout, "other programs used ") || !strings.Contains(got.Stdout, tt.says) {
				t.Errorf("exit code %d, want %d, and %q in\n%s%s", got.Code, tt.code, tt.says, got.Stdout, got.Stderr)
			}
		})
	}
}
