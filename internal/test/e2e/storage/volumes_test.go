package storage_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/system/storage/volumes"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// volumesProgram returns the built program, where there is a GlusterFS.
func volumesProgram(t *testing.T) *harness.Program {
	t.Helper()
	harness.Able(t, gluster.Check(true))
	return suite.Program(t)
}

// leavesNoVolumes says that nothing of a GlusterFS is left: no process, mount,
// directory or loop device.
func leavesNoVolumes(t *testing.T, p *harness.Program) {
	t.Helper()
	p.LeavesNoProcess(t)
	if pids := e2e.Glusters(p); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
	dirs, err := filepath.Glob(filepath.Join(p.State, "plimsoll", "volumes", "*"))
	if err != nil || len(dirs) > 0 {
		t.Errorf("directories are left: %v, %v", dirs, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), p.State) {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, loop := range loops {
		if text, err := os.ReadFile(loop); err == nil && strings.Contains(string(text), p.State) {
			t.Errorf("%s is left: %s", loop, text)
		}
	}
}

// The ladder with multiplexing and without, side by side.
func TestVolumes(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	results := make(map[string]result.Result)
	t.Run("ladders", func(t *testing.T) {
		for _, multiplex := range []string{"true", "false"} {
			t.Run(multiplex, func(t *testing.T) {
				t.Parallel()
				p := volumesProgram(t)
				got := p.Run(t, "sweep", "gluster-volumes", "--levels", "5,10", "--hold", "500ms", "--set", "multiplex="+multiplex, "--out", "ladder")
				if got.Code != process.ExitPass {
					t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
				}
				leavesNoVolumes(t, p)
				r := p.Result(t, "ladder")
				mu.Lock()
				defer mu.Unlock()
				results[multiplex] = r
			})
		}
	})
	if len(results) < 2 {
		t.Skip("the ladders were not made")
	}
	last := func(multiplex string) result.Step { return results[multiplex].Steps[1] }
	for multiplex, want := range map[string]float64{"true": 1, "false": 10} {
		step := last(multiplex)
		// The one that a process detaches itself from may be seen beside it.
		if n := step.Metrics["bricks processes"]; n < want || n > want+1 {
			t.Errorf("multiplex %s: %g processes serve 10 bricks, want %g: %v", multiplex, n, want, step.Metrics)
		}
		if n := step.Metrics["bricks ports"]; n != want {
			t.Errorf("multiplex %s: bricks listen on %g ports, want %g", multiplex, n, want)
		}
		if step.Objects.Ready != 10 || step.Latency["Started"].N != 5 {
			t.Errorf("multiplex %s: %+v, %+v", multiplex, step.Objects, step.Latency)
		}
	}
	on, off := last("true").Resources["bricks"].PeakPSSBytes, last("false").Resources["bricks"].PeakPSSBytes
	if 2*on > off || on < 10<<20 {
		t.Errorf("10 bricks take %d MiB with multiplexing and %d MiB without", on>>20, off>>20)
	}
}

// Mounted, written to, on XFS, with replicas: each has its milestones.
func TestVolumesOfReplicas(t *testing.T) {
	suite.Long(t, "two servers are brought up")
	t.Parallel()
	p := volumesProgram(t)
	got := p.Run(t, "sweep", "gluster-volumes", "--levels", "3", "--hold", "1s", "--out", "one",
		"--set", "replica=2", "--set", "bricks=xfs", "--set", "brickSize=1Gi", "--set", "mount=true", "--set", "write=64Ki", "--set", "distinctOptions=2")
	if got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	step := p.Result(t, "one").Steps[0]
	for _, milestone := range []string{"Created", "Started", "Mounted", "Written", "Ready"} {
		if l := step.Latency[milestone]; l.N != 3 || l.Censored > 0 {
			t.Errorf("%s: %+v", milestone, l)
		}
	}
	if n := step.Metrics["bricks processes"]; n != 4 {
		t.Errorf("%g processes serve bricks of two kinds on two servers", n)
	}
	leavesNoVolumes(t, p)
}

// What goes wrong ends in a breach that says what it was.
func TestVolumesThatFail(t *testing.T) {
	suite.Long(t, "failures are waited for")
	t.Parallel()
	for _, c := range []struct {
		name, reason, message string
		args                  []string
		do                    func(t *testing.T, p *harness.Program)
	}{
		{"a full disk", "NoSpace", "no space left on device", []string{"--set", "bricks=xfs", "--set", "brickSize=300Mi", "--set", "mount=true", "--set", "write=100Mi"}, nil},
		{"a brick that dies", "BrickDown", "its brick on storage server 1 is down", []string{"--set", "multiplex=false", "--hold", "4s"}, func(t *testing.T, p *harness.Program) {
			kill(t, syscall.SIGKILL, e2e.Glusters(p, "glusterfsd", "volume-2."))
		}},
		{"a mount that hangs", "MountHung", "did not answer", []string{"--set", "mount=true", "--set", "write=4Ki", "--set", "patience=3s", "--hold", "8s"}, func(t *testing.T, p *harness.Program) {
			kill(t, syscall.SIGSTOP, e2e.Glusters(p, "--process-name fuse", "/volume-2"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := volumesProgram(t)
			run := p.Start(t, append([]string{"sweep", "gluster-volumes", "--levels", "4", "--hold", "1s", "--out", "one"}, c.args...)...)
			if c.do != nil {
				harness.Await(t, "the hold", func() bool {
					return p.Count("one", func(e record.Event) bool {
						s, ok := e.Body.(*record.StepEvent)
						return ok && s.Phase == record.PhaseReached
					}) > 0
				})
				c.do(t, p)
			}
			got := run.Wait()
			step := p.Result(t, "one").Steps[0]
			if got.Code != process.ExitFail || len(step.Reasons) == 0 || step.Reasons[0].Reason != c.reason || !strings.Contains(step.Reasons[0].Message, c.message) {
				t.Errorf("exit code %d, reasons %+v\n%s%s", got.Code, step.Reasons, got.Stdout, got.Stderr)
			}
			leavesNoVolumes(t, p)
		})
	}
}

func kill(t *testing.T, signal syscall.Signal, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Error("there is no such process")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Error(err)
		}
	}
}

// However a run ends, nothing of it is left.
func TestVolumesAreRemoved(t *testing.T) {
	t.Parallel()
	args := []string{"sweep", "gluster-volumes", "--levels", "50", "--out", "cut", "--set", "mount=true", "--set", "bricks=xfs", "--set", "brickSize=1Gi"}
	for name, end := range map[string]func(t *testing.T, p *harness.Program, run *harness.Started){
		"interrupt": func(t *testing.T, p *harness.Program, run *harness.Started) {
			run.Signal(os.Interrupt)
			if got := run.Wait(); got.Code != 130 {
				t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
			}
		},
		"kill": func(t *testing.T, p *harness.Program, run *harness.Started) {
			e2e.SparesAlive(t, p, "volumes", volumes.Name)
			run.Kill()
			harness.Await(t, "the end of all processes", func() bool { return len(e2e.Glusters(p)) == 0 })
			e2e.Cleans(t, p, "run [0-9a-z]+ of target volumes, on this machine: .*/volumes/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "kill" {
				suite.Long(t, "a GlusterFS is brought up for it")
			}
			t.Parallel()
			p := volumesProgram(t)
			run := p.Start(t, args...)
			harness.Await(t, "three mounts", func() bool { return len(e2e.Glusters(p, "--process-name fuse")) >= 3 })
			end(t, p, run)
			leavesNoVolumes(t, p)
		})
	}
}

func TestVolumesRefuseBadInput(t *testing.T) {
	t.Parallel()
	p := volumesProgram(t)
	for _, c := range []struct {
		why  string
		args []string
		want []string
	}{
		{"a file on what is not mounted", []string{"--set", "write=1Ki"}, []string{"write", "mount=true"}},
		{"a size in no unit that is known", []string{"--set", "write=4 pages", "--set", "mount=true"}, []string{"write", "pages"}},
		{"an XFS that is too small", []string{"--set", "bricks=xfs", "--set", "brickSize=1Mi"}, []string{"brickSize", "300Mi"}},
		{"an option without its value", []string{"--set", "options=performance.io-cache"}, []string{"options", "performance.io-cache", "for example"}},
		{"more servers than there are addresses", []string{"--set", "replica=1000"}, []string{"replica", "253"}},
		{"no patience", []string{"--set", "patience=0s"}, []string{"patience"}},
	} {
		got := p.Run(t, append([]string{"sweep", "gluster-volumes", "--levels", "1", "--out", "refused"}, c.args...)...)
		if got.Code != process.ExitUsage {
			t.Errorf("%s: exit code %d\n%s", c.why, got.Code, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stderr, want) {
				t.Errorf("%s: %q is missing in\n%s", c.why, want, got.Stderr)
			}
		}
	}
}

// After a fault every brick comes back, and every volume holds what was written.
func TestGlusterRestart(t *testing.T) {
	suite.Long(t, "bricks are waited for")
	t.Parallel()
	for _, c := range []struct {
		fault, multiplex string
		hit              int // of 3 bricks
	}{{"kill", "true", 3}, {"kill", "false", 1}, {"reboot", "false", 3}, {"restart", "true", 3}} {
		t.Run(c.fault+c.multiplex, func(t *testing.T) {
			t.Parallel()
			p := volumesProgram(t)
			got := p.Run(t, "sweep", "gluster-restart", "--levels", "3", "--set", "fault="+c.fault, "--set", "multiplex="+c.multiplex, "--out", "one")
			if got.Code != process.ExitPass {
				t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
			}
			step := p.Result(t, "one").Steps[0]
			for _, milestone := range []string{"Back", "Verified", "Recovered"} {
				if l := step.Latency[milestone]; l.N != c.hit || l.Censored > 0 {
					t.Errorf("%s: %+v, want %d", milestone, l, c.hit)
				}
			}
			leavesNoVolumes(t, p)
		})
	}
}

// Volumes are deleted, and made and deleted by a schedule.
func TestVolumesAreDeleted(t *testing.T) {
	suite.Long(t, "it takes a minute")
	t.Parallel()
	p := volumesProgram(t)
	got := p.Run(t, "sweep", "gluster-volumes", "--axis", "deletions", "--levels", "3", "--set", "mount=true", "--set", "deleteAfter=1s", "--out", "deleted")
	if l := p.Result(t, "deleted").Steps[0].Latency["Deleted"]; got.Code != process.ExitPass || l.N != 3 || l.Censored > 0 {
		t.Errorf("exit code %d, %+v\n%s", got.Code, l, got.Stderr)
	}
	// Whether it keeps up is GlusterFS's own matter: with multiplexing a brick that
	// is started while another is stopped may not be served.
	got = p.RunTo(t, "churned", "sweep", "gluster-volumes", "--axis", "rate", "--levels", "0.5", "--hold", "20s", "--life", "3s", "--set", "multiplex=false")
	gone := p.Count("churned", func(e record.Event) bool {
		o, ok := e.Body.(*record.Object)
		return ok && o.Milestone == "Deleted"
	})
	if got.Code != process.ExitPass && got.Code != process.ExitFail || gone < 5 {
		t.Errorf("exit code %d, %d deleted\n%s%s", got.Code, gone, got.Stdout, got.Stderr)
	}
	leavesNoVolumes(t, p)
}

// A search goes on until something breaks, and says what: open files, where it is
// what was predicted, too, and the disk.
func TestLimitOfVolumes(t *testing.T) {
	suite.Long(t, "two load lines are searched for")
	t.Parallel()
	for _, c := range []struct {
		name, reason, message string
		predicted             int // 0 for what does not bind first by any figure
		within                []string
		args                  []string
	}{
		{"open files", "StartFailed", "files open", 7, []string{"setpriv", "--bounding-set=-sys_resource", "prlimit", "--nofile=2000:2000"}, nil},
		{"disk", "NoSpace", "file system is full", 0, nil, []string{"--set", "bricks=xfs", "--set", "brickSize=300Mi", "--set", "mount=true", "--set", "write=40Mi"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := volumesProgram(t)
			cmd := p.Command(append([]string{"limit", "gluster-volumes", "--from", "3", "--step", "3", "--max", "20", "--resolution", "1", "--confirm", "1", "--hold", "300ms", "--out", "one"}, c.args...)...)
			if len(c.within) > 0 {
				path, err := exec.LookPath(c.within[0])
				if err != nil {
					t.Skip(err)
				}
				cmd.Args = slices.Concat(c.within, []string{cmd.Path}, cmd.Args[1:])
				cmd.Path = path
			}
			said, err := cmd.CombinedOutput()
			r := p.Result(t, "one")
			if err != nil || r.LoadLine == nil || r.LoadLine.LowestFailing == nil || !strings.Contains(r.LoadLine.Binding, c.reason) || !strings.Contains(r.LoadLine.Binding, c.message) {
				t.Fatalf("%v: %+v\n%s", err, r.LoadLine, said)
			}
			if x := r.Prediction; c.predicted > 0 && (x == nil || x.Level == nil || int(*x.Level) != c.predicted || *r.LoadLine.Level != *x.Level) {
				t.Errorf("predicted and found: %+v, want %d\n%s", x, c.predicted, said)
			}
			leavesNoVolumes(t, p)
		})
	}
}

// A glusterd that stops answering is a breach, and is not waited for again with
// each command.
func TestVolumesOfAGlusterdThatStalls(t *testing.T) {
	suite.Long(t, "commands run out of patience")
	t.Parallel()
	p := volumesProgram(t)
	run := p.Start(t, "sweep", "gluster-volumes", "--axis", "rate", "--levels", "0.5", "--hold", "20s", "--life", "3s", "--set", "patience=10s", "--out", "one")
	harness.Await(t, "volumes", func() bool {
		return p.Count("one", func(e record.Event) bool {
			o, ok := e.Body.(*record.Object)
			return ok && o.Milestone == "Ready"
		}) > 2
	})
	kill(t, syscall.SIGSTOP, e2e.Glusters(p, "glusterd --volfile"))
	begun := time.Now()
	got := run.Wait()
	step := p.Result(t, "one").Steps[0]
	if got.Code != process.ExitFail || time.Since(begun) > 2*time.Minute || !slices.ContainsFunc(step.Reasons, func(r result.Reason) bool { return strings.Contains(r.Message, "glusterd did not answer") }) {
		t.Errorf("exit code %d after %v, reasons %+v\n%s%s", got.Code, time.Since(begun), step.Reasons, got.Stdout, got.Stderr)
	}
	leavesNoVolumes(t, p)
}

// With multiplexing a hundred volumes take a small part of the memory that they take
// without, and the saving of an arm comes with its interval.
func TestVolumesToAHundred(t *testing.T) {
	suite.Long(t, "it makes some six hundred volumes")
	p := volumesProgram(t)
	slopes := make(map[string]result.Interval)
	for _, multiplex := range []string{"true", "false"} {
		got := p.Run(t, "sweep", "gluster-volumes", "--levels", "10,25,40,55,70,85,100", "--hold", "2s", "--set", "maxBricksPerProcess=70", "--set", "multiplex="+multiplex, "--out", multiplex)
		result := p.Result(t, multiplex)
		if got.Code != process.ExitPass || result.Laws == nil {
			t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		for _, l := range result.Laws.List {
			if l.Name == "bricks memory" && l.Line != nil {
				slopes[multiplex] = l.Line.Slope
			}
		}
	}
	on, off := slopes["true"], slopes["false"]
	if on.Hi == nil || off.Lo == nil || !(3**on.Hi < *off.Lo) {
		t.Errorf("memory of a brick: %+v with multiplexing, %+v without", on, off)
	}
	got := p.Run(t, "ab", "gluster-volumes", "--level", "20", "--repeat", "4", "--hold", "1s", "--arm", "off:multiplex=false", "--arm", "on:multiplex=true", "--out", "arms")
	if c := p.Result(t, "arms").Comparison; got.Code != process.ExitPass || c == nil || p.Result(t, "arms").Verdict != "better" {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	leavesNoVolumes(t, p)
}

// A user who is not root, or lacks GlusterFS, gets an error with the way to get it.
func TestVolumesNeedRoot(t *testing.T) {
	t.Parallel()
	p := volumesProgram(t)
	cmd := p.Command("sweep", "gluster-volumes", "--levels", "1", "--out", filepath.Join(t.TempDir(), "none"))
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME=/nonexistent")
	cmd.Dir = "/"
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run() // its exit code tells
	if cmd.ProcessState.ExitCode() != process.ExitCouldNotRun || !strings.Contains(stderr.String(), "root") {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), stderr.String())
	}
}
