package storage_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// leavesNoIO fails if there is an fio, a directory or a volume left.
func leavesNoIO(t *testing.T, p *harness.Program, how string) {
	t.Helper()
	processes, files := e2e.InRooms(t, p, "io")
	volumes, err := filepath.Glob(filepath.Join(p.Dir, "*", "plimsoll-io-*"))
	if err != nil || len(processes)+len(files)+len(volumes) > 0 {
		t.Errorf("%s has left: %v %v %v %v", how, processes, files, volumes, err)
	}
}

func TestIORefusesBadInput(t *testing.T) {
	t.Parallel()
	p := e2e.IOProgram(t, suite)
	for name, text := range map[string]string{"none.fio": "[global]\nbs=4k\n", "escape.fio": "[a]\nrw=read\nfilename=/dev/vda\n", "bad.fio": "[a]\nrw=reed\n", "good.fio": "[a]\nrw=read\nsize=1m\n"} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		why  string
		args []string
		want []string
	}{
		{"a pattern that there is not", []string{"--set", "rw=sideways"}, []string{"rw", "sideways", "randread"}},
		{"a size in no unit that is known", []string{"--set", "blockSize=4 pages"}, []string{"blockSize", `"4 pages"`, "512Mi"}},
		{"a block larger than its file", []string{"--set", "blockSize=1MiB", "--set", "size=4KiB"}, []string{"blockSize", "4 KiB", "1 MiB"}},
		{"direct IO of no whole sectors", []string{"--set", "blockSize=1000B"}, []string{"direct=false"}},
		{"a checksum of a part of a block", []string{"--set", "verify=crc", "--set", "size=10000B", "--set", "blockSize=4096B"}, []string{"size", "a multiple of blockSize"}},
		{"a mix of one kind", []string{"--set", "rw=randrw", "--set", "mix=100"}, []string{"mix", "100", "rw=read"}},
		{"an engine that there is not", []string{"--set", "engine=magic"}, []string{"engine", "magic", "libaio"}},
		{"a depth that the engine does not have", []string{"--set", "engine=psync", "--set", "depth=4"}, []string{"depth", "psync", "libaio"}},
		{"a depth on the axis that it does not have", []string{"--axis", "depth", "--levels", "1,2", "--set", "engine=sync"}, []string{"depth", "sync"}},
		{"no volumes", []string{"--levels", "0.5"}, []string{"volumes"}},
		{"more volumes than can be", []string{"--levels", "1000000"}, []string{"volumes", "2000"}},
		{"less than an IO a second for each volume", []string{"--axis", "rate", "--levels", "3", "--set", "volumes=10"}, []string{"rate", "at least 10"}},
		{"a mix that leaves no write", []string{"--axis", "rate", "--levels", "2", "--set", "rw=randrw", "--set", "mix=99"}, []string{"mix", "2 reads and 0 writes"}},
		{"a directory that is not there", []string{"--set", "path=nowhere"}, []string{"path", "nowhere", "no such file"}},
		{"one of two that is not there", []string{"--set", "path=.+nowhere"}, []string{"path", "nowhere"}},
		{"a GlusterFS and something else", []string{"--set", "path=.", "--set", "multiplex=false"}, []string{"multiplex", "leave path out"}},
		{"more storage servers than there can be", []string{"--set", "replica=1000"}, []string{"replica", "at most"}},
		{"an XFS that is too small", []string{"--set", "bricks=xfs", "--set", "brickSize=1MiB"}, []string{"brickSize", "300MiB"}},
		{"a job file that is not there", []string{"--set", "job=nothing.fio"}, []string{"job", "nothing.fio"}},
		{"a job file without a job", []string{"--set", "job=none.fio"}, []string{"job", "none.fio", "no job"}},
		{"a job on a device", []string{"--set", "job=escape.fio"}, []string{"line 3", "own directory"}},
		{"a job that fio refuses", []string{"--set", "job=bad.fio"}, []string{"job", "reed"}},
		{"a job on another axis", []string{"--axis", "rate", "--levels", "100", "--set", "job=good.fio"}, []string{"job", "--axis volumes"}},
		{"a program that is not there", []string{"--set", "fio=/nowhere/fio"}, []string{"/nowhere/fio", "was not found"}},
		{"another program", []string{"--set", "fio=/bin/true"}, []string{"another program"}},
	} {
		got := p.Run(t, append([]string{"sweep", "io-volumes", "--out", "refused"}, c.args...)...)
		if got.Code != process.ExitUsage {
			t.Errorf("%s: exit code %d\n%s", c.why, got.Code, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stderr, want) {
				t.Errorf("%s: %q is missing in\n%s", c.why, want, got.Stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "refused")); err == nil {
		t.Error("a run directory was made")
	}
	leavesNoIO(t, p, "bad input")
}

func TestIOWithoutFio(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	cmd := p.Command("sweep", "io-volumes")
	cmd.Env = append(cmd.Env, "PATH=/nowhere")
	text, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != process.ExitCouldNotRun || !strings.Contains(string(text), "missing for io: fio") || !strings.Contains(string(text), proc.Install("fio")) {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), text)
	}
}

// A short run has what every run has, and its parts add up.
func TestMeasuredIO(t *testing.T) {
	quiet := suite.Measures(t)
	p := e2e.IOProgram(t, suite)
	got := p.Run(t, "sweep", "io-volumes", "--out", "one", "--axis", "rate", "--levels", "400", "--hold", "2s", "--set", "volumes=2", "--set", "rw=randrw",
		"--set", "size=4MiB", "--set", "verify=crc", "--set", "path=.", "--slo", "Complete p99 <= 1s", "--slo", "achieved >= 99%", "--slo", "errors <= 0%")
	// What takes less than a millisecond may owe a tenth of it to our own delay.
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid {
		quiet.Needed(t)
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	step := p.Result(t, "one").Steps[0]
	r := step.Requests
	if r.Intended != r.Sent+r.Dropped || r.Sent != r.Done || r.Done < 700 || r.Done > 1700 || len(r.ByPlace) != 2 {
		quiet.Needed(t)
		t.Errorf("of 400 a second over 2 s: %+v", r)
	}
	if l := step.Latency["Complete"]; l.P99 == nil || *l.P99 <= 0 || l.N != r.Intended {
		t.Errorf("%+v of %d", l, r.Intended)
	}
	for _, name := range []string{"throughput", "drive alone", "share of the drive"} {
		unsteady := name != "throughput" && strings.Contains(got.Stdout, "drive alone and share of the drive are unknown") // as drives of virtual machines may be
		if step.Metrics[name] <= 0 && !unsteady {
			t.Errorf("%s is not among the metrics: %v", name, step.Metrics)
		}
	}
	if _, ok := step.Metrics["link alone"]; ok {
		t.Errorf("a link to this machine's own directory is measured: %v", step.Metrics)
	}
	if step.Resources["fio processes"].CPUSeconds <= 0 || step.Resources[usage.SourceSelf].CPUSeconds <= 0 {
		t.Errorf("what fio and this program used is unknown: %v", step.Resources)
	}
	sides := make(map[string]int)
	p.Count("one", func(e record.Event) bool {
		if w, ok := e.Body.(*record.Window); ok {
			sides[w.Component] += w.Done
		}
		return false
	})
	if sides["read"] == 0 || sides["write"] == 0 {
		t.Errorf("reads and writes are components: %v", sides)
	}
	if env := p.Environment(t, "one"); env.Value("runtime:fio") == "" || env.Value("filesystem") == "" || env.Kind == nil || env.Kind.There != "Complete" {
		t.Errorf("%+v", env)
	}
	leavesNoIO(t, p, "the run")
}

// Each operation on small files is a component, and all of them are due alike.
func TestMeasuredSmallFiles(t *testing.T) {
	quiet := suite.Measures(t)
	p := suite.Program(t)
	got := p.Run(t, "sweep", "small-files", "--out", "small", "--axis", "rate", "--levels", "200", "--hold", "2s", "--set", "volumes=2", "--set", "path=.", "--set", "files=20",
		"--slo", "Complete p99 <= 10s", "--slo", "achieved >= 99%", "--slo", "errors <= 0%")
	// What takes less than a millisecond may owe a tenth of it to our own delay.
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid {
		quiet.Needed(t)
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	sides := make(map[string]int)
	p.Count("small", func(e record.Event) bool {
		if w, ok := e.Body.(*record.Window); ok && !w.WarmUp {
			sides[w.Component] += w.Done
		}
		return false
	})
	for _, name := range []string{fio.Create, fio.Stat, fio.Read, fio.Delete} {
		if n := sides[name]; n < 70 || n > 130 {
			quiet.Needed(t)
			t.Errorf("of 100 there were %d of %s", n, name)
		}
	}
	for _, args := range [][]string{{"--axis", "rate", "--levels", "0.5"}, {"--set", "size=5MiB"}, {"--set", "files=1"}, {"--set", "path=nowhere"}} {
		if got := p.Run(t, append([]string{"sweep", "small-files", "--out", "refused"}, args...)...); got.Code != process.ExitUsage {
			t.Errorf("%v: exit code %d\n%s", args, got.Code, got.Stderr)
		}
	}
	leavesNoIO(t, p, "the run")
}

// What goes wrong is a breach that says what it was.
func TestIOBreaches(t *testing.T) {
	t.Parallel()
	p := e2e.IOProgram(t, suite)
	small := filepath.Join(p.Dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	full := []string{"--set", "path=small", "--set", "direct=false", "--set", "rw=write", "--set", "engine=psync", "--set", "blockSize=64KiB", "--set", "size=64MiB"}
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=8m"); err != nil {
		full = nil // it takes root
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	file := func() string {
		list, _ := filepath.Glob(filepath.Join(p.Dir, "plimsoll-io-*", "volume-1", fio.FileName))
		if len(list) == 0 {
			return ""
		}
		return list[0]
	}
	for i, c := range []struct {
		why, kind string
		args      []string
		under     func(t *testing.T)
	}{
		{"a disk that is full", fio.FailedFull, full, nil},
		{"an fio that is killed", fio.FailedKilled, []string{"--set", "path=.", "--set", "rate=100", "--set", "size=1MiB"}, func(t *testing.T) {
			processes, _ := e2e.InRooms(t, p, "io")
			for _, link := range processes {
				if text, err := os.ReadFile(filepath.Join(filepath.Dir(strings.Fields(link)[0]), "comm")); err == nil && strings.TrimSpace(string(text)) == "fio" {
					if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(strings.Fields(link)[0]))); err == nil {
						_ = unix.Kill(pid, unix.SIGKILL)
					}
				}
			}
		}},
		{"data that changes under it", fio.FailedVerify, []string{"--set", "path=.", "--set", "rate=300", "--set", "size=1MiB", "--set", "verify=crc"}, func(t *testing.T) {
			if err := os.WriteFile(file(), make([]byte, 1<<20), 0o600); err != nil {
				t.Error(err)
			}
		}},
	} {
		if c.args == nil || i >= suite.Size(1, 3) { // the others are in the long tests
			continue
		}
		out := strings.ReplaceAll(c.kind, " ", "-")
		s := p.Start(t, append([]string{"sweep", "io-volumes", "--levels", "1", "--hold", strconv.Itoa(suite.Size(1, 2)) + "s", "--set", "drive=false", "--out", out}, c.args...)...)
		if c.under != nil {
			harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, out) > 0 })
			c.under(t)
		}
		got := s.Wait()
		result := p.Result(t, out)
		if got.Code != process.ExitFail || len(result.Steps) != 1 || result.Steps[0].Requests.Failed[c.kind] == 0 {
			t.Errorf("%s: exit code %d, %+v\n%s", c.why, got.Code, result.Steps, got.Stderr)
		}
		if !strings.Contains(got.Stdout+got.Stderr, c.kind) {
			t.Errorf("%s: %q is not told:\n%s%s", c.why, c.kind, got.Stdout, got.Stderr)
		}
	}
	leavesNoIO(t, p, "what broke")
}

// However a run ends, nothing of it goes on, and the next command removes what
// is left.
func TestIOLeavesNothing(t *testing.T) {
	t.Parallel()
	p := e2e.IOProgram(t, suite)
	if err := os.Mkdir(filepath.Join(p.Dir, "mount"), 0o700); err != nil {
		t.Fatal(err)
	}
	args := func(out string) []string {
		return []string{"sweep", "io-volumes", "--levels", "2", "--hold", "1m", "--set", "path=mount", "--set", "rate=200", "--set", "size=1MiB", "--set", "drive=false", "--out", out}
	}
	under := func(out string) *harness.Started {
		s := p.Start(t, args(out)...)
		harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, out) > 0 })
		if processes, files := e2e.InRooms(t, p, "io"); len(processes) < 2 || len(files) != 1 {
			t.Fatalf("under load there are %v %v", processes, files)
		}
		return s
	}
	if suite.Size(0, 1) > 0 {
		s := under("interrupted")
		s.Signal(os.Interrupt)
		if got := s.Wait(); got.Code != 130 {
			t.Errorf("Ctrl-C: exit code %d\n%s", got.Code, got.Stderr)
		}
		leavesNoIO(t, p, "Ctrl-C")
	}
	s := under("killed")
	s.Kill()
	harness.Await(t, "no process", func() bool { processes, _ := e2e.InRooms(t, p, "io"); return len(processes) == 0 })
	e2e.Cleans(t, p, "run [0-9a-z]+ of target io, on this machine: .*/mount/plimsoll-io-.*/io/")
	leavesNoIO(t, p, "SIGKILL and the next command")
}

// glusterLeft returns the processes of GlusterFS and of machines that work below the
// program's state directory.
func glusterLeft(p *harness.Program) (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), p.State+"/") && !strings.Contains(string(line), "sweep") {
			list = append(list, file)
		}
	}
	return list
}

// Volumes of a GlusterFS of the run's own, which leaves nothing however it ends.
func TestIOOnGluster(t *testing.T) {
	suite.Long(t, "GlusterFS is brought up three times")
	t.Parallel()
	p := e2e.GlusterProgram(t, suite)
	args := func(hold, out string, more ...string) []string {
		return append([]string{"sweep", "io-volumes", "--axis", "rate", "--levels", "100", "--hold", hold, "--set", "volumes=2", "--set", "size=1MiB", "--set", "rw=randrw", "--set", "verify=crc",
			"--slo", "errors <= 20%", "--out", out}, more...) // a busy machine drops some
	}
	got := p.Run(t, args("2s", "one")...)
	result := p.Result(t, "one")
	if got.Code != process.ExitPass && got.Code != process.ExitInvalid || len(result.Steps) != 1 || result.Steps[0].Requests.Done < 150 { // by what other tests do
		t.Fatalf("exit code %d, %+v\n%s", got.Code, result.Steps, got.Stderr)
	}
	if u := result.Steps[0].Resources; u["bricks"].PeakRSSBytes <= 0 || u["mounts"].PeakRSSBytes <= 0 {
		t.Errorf("what GlusterFS used is unknown: %v", u)
	}
	// 100 IOs of 4 KiB a second.
	if m := result.Steps[0].Metrics; m["link alone"] <= 0.01 || m["share of the link"] <= 0 || m["share of the link"] > 100*0.0034/m["link alone"]*1.2 {
		t.Errorf("what the link carries is unknown: %v", m)
	}
	leavesNoIO(t, p, "the run")
	s := p.Start(t, args("1m", "interrupted", "--set", "drive=false")...)
	harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, "interrupted") > 0 })
	s.Signal(os.Interrupt)
	if got := s.Wait(); got.Code != 130 {
		t.Errorf("Ctrl-C: exit code %d\n%s", got.Code, got.Stderr)
	}
	if left := glusterLeft(p); len(left) > 0 {
		t.Errorf("Ctrl-C has left: %v", left)
	}
	leavesNoIO(t, p, "Ctrl-C")
	s = p.Start(t, args("1m", "killed", "--set", "drive=false")...)
	harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, "killed") > 0 })
	s.Kill()
	harness.Await(t, "no process", func() bool { return len(glusterLeft(p)) == 0 })
	if got := p.Run(t, "lab", "down", "--all"); got.Code != process.ExitPass {
		t.Errorf("lab down: exit code %d\n%s", got.Code, got.Stderr)
	}
	leavesNoIO(t, p, "SIGKILL and lab down")
}

// Fifty fios at a fixed rate do not get into each other's way: the step is judged.
func TestMeasuredIOOnFiftyVolumes(t *testing.T) {
	suite.Long(t, "fifty volumes are made and mounted")
	quiet := suite.Measures(t)
	p := e2e.GlusterProgram(t, suite)
	got := p.RunTo(t, "fifty", "sweep", "io-volumes", "--axis", "rate", "--levels", "300", "--hold", "5s", "--set", "volumes=50", "--set", "size=1MiB", "--set", "rw=randrw", "--set", "drive=false",
		"--slo", "achieved >= 99%", "--slo", "errors <= 0%")
	step := p.Result(t, "fifty").Steps[0]
	if got.Code != process.ExitPass || len(step.Requests.ByPlace) != 50 || step.Metrics["throughput"] <= 0 || !strings.Contains(got.Stdout, "finish spread") {
		quiet.Needed(t)
		t.Errorf("exit code %d, %+v\n%s%s", got.Code, step.Requests, got.Stdout, got.Stderr)
	}
	leavesNoIO(t, p, "the run")
}

// A mount that hangs is a breach and ends, and so is a brick that dies.
func TestIOOnGlusterThatBreaks(t *testing.T) {
	suite.Long(t, "a mount that hangs is waited for")
	p := e2e.GlusterProgram(t, suite)
	for _, c := range []struct {
		why, kind string
		comm      string // of the process
		signal    unix.Signal
	}{
		{"a mount that hangs", record.FailedTimeout, "glusterfs", unix.SIGSTOP},
		{"a brick that dies", "ENOTCONN", "glusterfsd", unix.SIGKILL},
	} {
		s := p.Start(t, "sweep", "io-volumes", "--levels", "1", "--hold", "8s", "--set", "rate=50", "--set", "size=1MiB", "--set", "drive=false", "--out", c.comm)
		harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, c.comm) > 0 })
		for _, file := range glusterLeft(p) {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
			pid, convErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil && convErr == nil && strings.TrimSpace(string(text)) == c.comm {
				_ = unix.Kill(pid, c.signal)
			}
		}
		got := s.Wait()
		result := p.Result(t, c.comm)
		if got.Code != process.ExitFail || len(result.Steps) != 1 || result.Steps[0].Requests.Failed[c.kind] == 0 {
			t.Errorf("%s: exit code %d, %+v\n%s", c.why, got.Code, result.Steps[0].Requests, got.Stderr)
		}
		if left := glusterLeft(p); len(left) > 0 {
			t.Errorf("%s has left: %v", c.why, left)
		}
		leavesNoIO(t, p, c.why)
	}
}

// The depth that a search finds is the one that fio's own search by latency_target
// finds, on a volume whose reads take 20 ms each, one after the other: a depth of 9
// keeps within 200 ms but for what a busy machine adds. fio halves and doubles, and
// may end a step above what held.
func TestMeasuredDepthIsFios(t *testing.T) {
	suite.Long(t, "two searches are made")
	quiet := suite.Measures(t)
	p := e2e.GlusterProgram(t, suite)
	tied := proc.NewTie()
	t.Cleanup(tied.Close)
	sys, err := gluster.Open(t.Context(), gluster.Settings{Dir: t.TempDir(), Executable: suite.Binary(t), Tied: tied, Replica: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sys.Close)
	err = sys.Create(t.Context(), "slow", map[string]string{
		"debug.delay-gen": "posix", "delay-gen.delay-duration": "20000", "delay-gen.delay-percentage": "100", "delay-gen.enable": "read", "performance.io-thread-count": "1",
		"performance.io-cache": "off", "performance.read-ahead": "off", "performance.quick-read": "off",
	})
	if err == nil {
		err = sys.Start(t.Context(), "slow", false)
	}
	if err == nil {
		_, err = sys.Client().Mount(t.Context(), "slow")
	}
	if err != nil {
		t.Fatal(err)
	}
	path := sys.Client().Path(sys.Client().Mounted("slow"))
	got := p.RunTo(t, "depth", "limit", "io-volumes", "--axis", "depth", "--from", "2", "--step", "4", "--max", "32", "--resolution", "1", "--confirm", "1", "--hold", "5s", "--slo", "Complete p99 <= 200ms",
		"--set", "path="+path, "--set", "size=1MiB", "--set", "drive=false")
	line := p.Result(t, "depth").LoadLine
	if line == nil || line.Level == nil {
		quiet.Needed(t)
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	text, err := exec.Command("fio", "--name=x", "--directory="+path, "--size=1m", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=libaio", "--thread", "--iodepth=32", "--time_based",
		"--runtime=30", "--latency_target=200ms", "--latency_window=5s", "--latency_percentile=99", "--output-format=json").Output()
	var own struct {
		Jobs []struct {
			Depth int `json:"latency_depth"`
		} `json:"jobs"`
	}
	if err == nil {
		err = json.Unmarshal(text[max(bytes.IndexByte(text, '{'), 0):], &own)
	}
	if err != nil || len(own.Jobs) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	if ours, theirs := *line.Level, float64(own.Jobs[0].Depth); ours < 2 || ours > 11 || ours > 2*theirs || theirs > 3*ours {
		quiet.Needed(t)
		t.Errorf("the search finds a depth of %g, and fio one of %g\n%s", ours, theirs, got.Stdout)
	} else {
		t.Logf("the search finds a depth of %g, and fio one of %g", ours, theirs)
	}
}

// The result has a second load of PostgreSQL's pgbench beside the IO, and it ends with it.
func TestIOBesidePgbench(t *testing.T) {
	suite.Long(t, "a database is made first")
	p := e2e.IOProgram(t, suite)
	args := func(hold, out string) []string {
		return []string{"sweep", "io-volumes", "--axis", "rate", "--levels", "50", "--hold", hold, "--set", "path=.", "--set", "beside=pgbench", "--set", "size=1MiB", "--set", "drive=false",
			"--slo", "errors <= 0%", "--out", out}
	}
	got := p.Run(t, args("3s", "one")...)
	if strings.Contains(got.Stderr, "beside=pgbench") && got.Code == process.ExitCouldNotRun {
		t.Skip(got.Stderr)
	}
	result := p.Result(t, "one")
	if len(result.Steps) != 1 || result.Steps[0].Metrics["transactions"] <= 0 || result.Steps[0].Metrics["transaction latency"] <= 0 {
		t.Fatalf("exit code %d, %+v\n%s", got.Code, result.Steps, got.Stderr)
	}
	databases := func() (list []string) {
		links, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range links {
			if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), "plimsoll-pgbench-"+result.Experiment) {
				list = append(list, file)
			}
		}
		return list
	}
	leavesNoIO(t, p, "the run")
	s := p.Start(t, args("1m", "killed")...)
	harness.Await(t, "IO on record", func() bool { return e2e.Windows(p, "killed") > 0 })
	s.Kill()
	harness.Await(t, "no process", func() bool { processes, _ := e2e.InRooms(t, p, "io"); return len(processes)+len(databases()) == 0 })
	p.Run(t, "lab", "down", "--all")
	leavesNoIO(t, p, "SIGKILL")
}
