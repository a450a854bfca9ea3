package records_test

import (
	"bytes"
	"os"
	"path/filepath"
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
	const cpus, kernel = `"cpus": 2,`, `"kernel": "6.1.0-test"`
	for _, tt := range []struct {
		why, of      string
		was, is      string // in environment.json
		name, values string
	}{
		{"another number of processors", "router-rate", cpus, `"cpus": 64,`, "host:cpus", "2 against 64"},
		{"another kernel", "router-rate", kernel, `"kernel": "5.10"`, "kernel", "6.1.0-test against 5.10"},
		{"another placement", "router-rate", "HAProxy has the processors 1, and the generator and the servers share 0", "HAProxy, its servers and the generator share all processors", "isolation:placement", ""},
		{"another program", "router-rate", `"2.6.12-1+deb12u4"`, `"3.0.1"`, "runtime:haproxy", "2.6.12-1+deb12u4 against 3.0.1"},
		{"the processors of volumes", "volumes", cpus, `"cpus": 64,`, "host:cpus", "2 against 64"},
		{"the memory of IO", "io", `25276510208`, `8589934592`, "host:memory", "23.5 GiB against 8 GiB"},
		{"the control groups of small files", "small-files", `"hybrid"`, `"2"`, "cgroup", "hybrid against 2"},
		{"the processors of what is simulated, whose times pass on this machine", "simulated-stream", cpus, `"cpus": 64,`, "host:cpus", "2 against 64"},
		{"the processors of a lab", "pods-rate", cpus, `"cpus": 64,`, "host:cpus", "2 against 64"},
		{"another file system, as a fact on record", "facts-io", `ext4 on /dev/vda`, `xfs on /dev/vda`, "filesystem", "ext4 on /dev/vda against xfs on /dev/vda"},
		{"another placement, as a fact on record", "facts-router", "HAProxy has the processors 1, and the generator and the servers share 0", "HAProxy, its servers and the generator share all processors", "isolation:placement", ""},
		{"another kernel below what is simulated, as a fact on record", "facts-stream", "6.1.0-test", "5.10", "kernel", "6.1.0-test against 5.10"},
		{"the control groups of a lab, as a fact on record", "facts-pods", `"hybrid"`, `"2"`, "cgroup", "hybrid against 2"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			a, b := filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")
			change := func(dir, file, was, is string) {
				t.Helper()
				path := record.Dir(dir).Path(file)
				text, err := os.ReadFile(path)
				if err != nil || !bytes.Contains(text, []byte(was)) {
					t.Fatalf("%s has no %q: %v", path, was, err)
				}
				if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(was), []byte(is)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{a, b} {
				if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata/records", tt.of))); err != nil {
					t.Fatal(err)
				}
				if got := e2e.Command(t, nil, "analyze", dir); got.Stdout == "" {
					t.Fatal(got.Stderr)
				}
			}
			change(b, record.ExperimentFile, "\n  id: ", "\n  id: b") // it is another run
			same := e2e.Command(t, nil, "compare", a, b)
			if strings.Contains(same.Stdout, "may cause any other difference") {
				t.Fatalf("the same machine:\n%s", same.Stdout)
			}
			change(b, record.EnvironmentFile, tt.was, tt.is)
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
