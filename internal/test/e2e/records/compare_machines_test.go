package records_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// What a target that runs on this machine can do depends on the machine: records
// from two machines are not compared unless it is said that the machine is what is
// compared: by the name of what differs, or for all of the machine at once. Another
// version of a program is no other machine.
func TestRecordsOfDifferentMachinesAreNotCompared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, of          string
		name, is, values string // a fact of the environment, and what it is there
	}{
		{"another number of processors", "router-rate", "host:cpus", "64", "2 against 64"},
		{"another kernel", "router-rate", "kernel", "5.10", "6.1.0-test against 5.10"},
		{"another placement", "facts-router", "isolation:placement", "HAProxy, its servers and the generator share all processors", ""},
		{"another program", "router-rate", "runtime:haproxy", "3.0.1", "2.6.12-1+deb12u4 against 3.0.1"},
		{"the processors of volumes", "volumes", "host:cpus", "64", "2 against 64"},
		{"the memory of IO", "io", "host:memory", "8589934592", "23.5 GiB against 8 GiB"},
		{"the control groups of small files", "small-files", "cgroup", "2", "hybrid against 2"},
		{"the processors of what is simulated, whose times pass on this machine", "simulated-stream", "host:cpus", "64", "2 against 64"},
		{"the processors of a lab", "pods-rate", "host:cpus", "64", "2 against 64"},
		{"another file system", "facts-io", "filesystem", "xfs on /dev/vda", "ext4 on /dev/vda against xfs on /dev/vda"},
		{"another kernel below what is simulated", "facts-stream", "kernel", "5.10", "6.1.0-test against 5.10"},
		{"the control groups of a lab", "facts-pods", "cgroup", "2", "hybrid against 2"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			a, b := filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")
			for _, dir := range []string{a, b} {
				if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/records", tt.of))); err != nil {
					t.Fatal(err)
				}
				if got := e2e.Command(t, nil, "analyze", dir); got.Stdout == "" {
					t.Fatal(got.Stderr)
				}
			}
			there := record.Dir(b)
			plan, err := there.ReadFile(record.ExperimentFile)
			if err == nil {
				err = there.WriteFile(record.ExperimentFile, bytes.Replace(plan, []byte("\n  id: "), []byte("\n  id: b"), 1)) // it is another run
			}
			if err != nil {
				t.Fatal(err)
			}
			same := e2e.Command(t, nil, "compare", a, b)
			if strings.Contains(same.Stdout, "may cause any other difference") {
				t.Fatalf("the same machine:\n%s", same.Stdout)
			}
			e, err := there.Environment()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(e.Facts, func(f record.Fact) bool { return f.Name == tt.name })
			e.Facts[i].Value = tt.is
			if err := there.WriteJSON(record.EnvironmentFile, e); err != nil {
				t.Fatal(err)
			}
			got := e2e.Command(t, nil, "compare", a, b)
			for _, part := range []string{tt.name + " (" + tt.values, "may cause any other difference", "--arm-is " + tt.name} {
				if got.Code != process.ExitInconclusive || !strings.Contains(got.Stdout, part) {
					t.Errorf("exit code %d, without %q:\n%s%s", got.Code, part, got.Stdout, got.Stderr)
				}
			}
			machine := e2e.Command(t, nil, "compare", a, b, "--arm-is", "machine")
			if allowed := !strings.HasPrefix(tt.name, "runtime:"); (machine.Code == same.Code && strings.Contains(machine.Stdout, "the arm")) != allowed || !strings.Contains(machine.Stdout, tt.name) {
				t.Errorf("the machine is the arm: exit code %d, that of the same machine was %d:\n%s%s", machine.Code, same.Code, machine.Stdout, machine.Stderr)
			}
			if arm := e2e.Command(t, nil, "compare", a, b, "--arm-is", tt.name); arm.Code != same.Code || strings.Contains(arm.Stdout, "prevents a verdict") {
				t.Errorf("it is the arm: exit code %d, that of the same machine was %d:\n%s%s", arm.Code, same.Code, arm.Stdout, arm.Stderr)
			}
		})
	}
}
