package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// cleans runs 'clean' without a cluster after a run was killed: a dry run finds
// things of that run and removes nothing, the next removes them, and then there
// is nothing to remove. Things are patterns, one for each.
func cleans(t *testing.T, p *harness.Program, things ...string) {
	t.Helper()
	// Control groups are the whole machine's, and other tests kill labs too.
	clean := func(args ...string) (out string, got harness.Outcome) {
		got = p.Run(t, append([]string{"clean"}, args...)...)
		if got.Code != process.ExitHeld || !strings.HasSuffix(got.Stderr, "A cluster is looked at with --kubeconfig FILE or --lab NAME.\n") {
			t.Errorf("clean %q: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
		for line := range strings.Lines(got.Stdout) {
			if !regexp.MustCompile(`^\S+ (remove )?/sys/fs/cgroup/`).MatchString(line) {
				out += line
			}
		}
		return out, got
	}
	dry, _ := clean("--dry-run")
	for _, thing := range things {
		if !regexp.MustCompile(`(?m)^would remove .*` + thing).MatchString(dry) {
			t.Errorf("a dry run does not find %s:\n%s", thing, dry)
		}
	}
	if again, _ := clean("--dry-run"); again != dry {
		t.Errorf("a dry run has changed something:\n%sand then\n%s", dry, again)
	}
	if removed, got := clean(); removed != strings.ReplaceAll(dry, "would remove", "removed") {
		t.Errorf("clean: %s%s", got.Stdout, got.Stderr)
	}
	if none, got := clean(); none != "nothing to remove\n" && (none != "" || got.Stdout == "") {
		t.Errorf("a second clean: %s%s", got.Stdout, got.Stderr)
	}
}

// sparesAlive checks that 'clean' tells of a run that goes on and leaves it alone.
func sparesAlive(t *testing.T, p *harness.Program, kind, target string) {
	t.Helper()
	_, before := inRooms(t, p, kind)
	left := ours(p.Cleaned(t))
	if len(left) != 1 || !left[0].Alive || left[0].Target != target || left[0].Run == "" || !slices.Equal(left[0].Things, before) {
		t.Errorf("beside a run in %v: %+v", before, left)
	}
	if _, after := inRooms(t, p, kind); !slices.Equal(before, after) {
		t.Errorf("clean has taken from a run that goes on: %v, %v", before, after)
	}
}

// ours are those that are not just control groups, which other tests leave too.
func ours(list []harness.Leftover) []harness.Leftover {
	return slices.DeleteFunc(list, func(l harness.Leftover) bool { return strings.HasPrefix(l.Things[0], "/sys/fs/cgroup/") })
}

// A private lab goes with the command that made it, and what is left of it by
// 'clean'.
func TestCleanOfAPrivateLab(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	args := []string{"sweep", "node-density", "--lab-nodes", "1", "--levels", "2", "--hold", "1m", "--out", "r"}
	if os.Geteuid() == 0 {
		args = append(args, "--lab-control-plane-cpus", "1.5")
	}
	run := p.Start(t, args...)
	harness.Await(t, "the load", func() bool {
		return p.Count("r", func(e record.Event) bool { return e.Body.Kind() == record.KindSlot }) > 0
	})
	left := ours(p.Cleaned(t))
	if len(left) != 1 || !left[0].Alive || !strings.HasPrefix(left[0].Things[0], `lab "private-`) {
		t.Errorf("beside a lab whose command runs: %+v", left)
	}
	run.Kill()
	p.LeavesNoProcess(t)
	things := []string{`lab "private-`}
	if os.Geteuid() == 0 {
		things = append(things, "/sys/fs/cgroup/.*plimsoll-")
	}
	cleans(t, p, things...)
	p.LeavesNoLab(t)
}
