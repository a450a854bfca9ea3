package labs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

func newCleanCommand(p *process.Process) *cobra.Command {
	c := &cleaner{p: p}
	cmd := &cobra.Command{
		Use:   "clean [--kubeconfig FILE | --lab NAME | --in-cluster]",
		Short: "Remove what killed runs left on this machine or in a cluster",
		Long: `Remove what killed runs of any target left on this machine: directories, private
labs and control groups. What may be in use is left alone.

With a cluster, also remove everything from it that has this program's labels and
belongs to a run that has ended, and put back the settings that it has changed. That
a run of this machine is dead is known at once. One from elsewhere counts as dead a
minute after its last sign of life: --wait waits for that, --force does not.

The next run of a target removes what its killed runs left on this machine, and
'lab down' that of all targets. Every command that uses labs removes those whose
command was killed.`,
		Example: `  plimsoll clean --dry-run
  plimsoll clean --kubeconfig ~/.kube/config --dry-run
  plimsoll clean --lab default`,
		Args: process.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := kubernetes.CheckNamespace(c.namespace); err != nil {
				return process.Usagef("", "--namespace: %w", err)
			}
			c.out = cleaned{DryRun: c.dryRun, Removed: []any{}, Left: []any{}}
			named := c.from != process.ClusterFlags{}
			if named || c.force || c.wait {
				if err := c.from.Check(process.Usagef(p.OrInCluster("give --kubeconfig FILE or --lab NAME; $KUBECONFIG is not read"), "which cluster?")); err != nil {
					return err
				}
			}
			steps := []func(context.Context) error{c.cleanHost, c.cleanCluster}
			if !named {
				steps = steps[:1]
			}
			if c.dryRun {
				slices.Reverse(steps) // naming a lab removes those of dead commands
			}
			for _, step := range steps {
				if err := step(cmd.Context()); err != nil {
					return c.unfinished(err)
				}
			}
			if err := c.end(); err != nil || named {
				return err
			}
			p.Logf("%s.\n", p.OrInCluster("A cluster is looked at with --kubeconfig FILE or --lab NAME"))
			return nil
		},
	}
	process.OutputFlag(cmd, &c.output)
	c.from.Add(cmd, "clean")
	flags := cmd.Flags()
	flags.StringVar(&c.namespace, "namespace", "", "look only into the namespace of this `name`, which stays, as a user who sees no other")
	flags.StringVar(&c.run, "run", "", "remove only what the run with this `id` left")
	flags.BoolVar(&c.force, "force", false, "also remove from the cluster what belongs to a run that may still be active")
	flags.BoolVar(&c.wait, "wait", false, "wait until runs from elsewhere count as dead")
	flags.BoolVar(&c.dryRun, "dry-run", false, "only list what would be removed")
	return cmd
}

// cleaned is the document of clean: what was removed, or would be by a dry run,
// and what was left alone since it may be in use. Each is a system.Leftover of this
// machine or a sweep.Leftover of the cluster.
type cleaned struct {
	DryRun  bool  `json:"dryRun"`
	Removed []any `json:"removed"`
	Left    []any `json:"left"`
}

// cleaner removes what killed runs have left.
type cleaner struct {
	p                   *process.Process
	from                process.ClusterFlags
	run, output         string
	namespace           string
	force, wait, dryRun bool

	out  cleaned
	runs []string // that have left something
}

// unfinished returns an error after which it is unknown what is left, with what to do
// then.
func (c *cleaner) unfinished(err error) error {
	if c.dryRun || process.ExitCode(err) != process.ExitCouldNotRun {
		return err
	}
	again := process.CommandLine([]string{"clean"})
	if of := c.settings(); of.Named() != nil {
		again = process.CleanCommand(of)
	}
	return &system.UnableError{Err: err, Hint: "what is left is unknown; this looks again and goes on: " + again}
}

// settings name the cluster.
func (c *cleaner) settings() *kubernetes.Settings {
	return &kubernetes.Settings{LabName: c.from.Lab, Kubeconfig: c.from.Kubeconfig, Context: c.from.Context, InCluster: c.from.InCluster, Namespace: c.namespace}
}

func (c *cleaner) say(format string, args ...any) {
	if c.output != "json" {
		c.p.Printf(format, args...)
	}
}

// concerns notes a run that has left something, and reports whether that is asked
// for.
func (c *cleaner) concerns(run string) bool {
	if run != "" && !slices.Contains(c.runs, run) {
		c.runs = append(c.runs, run)
	}
	return c.run == "" || c.run == run
}

// removed tells of what was removed, or would be.
func (c *cleaner) removed(what string, leftover any) {
	verb := "removed"
	if c.dryRun {
		verb = "would remove"
	}
	c.say("%s %s\n", verb, what)
	c.out.Removed = append(c.out.Removed, leftover)
}

// cleanHost removes what is on this machine.
func (c *cleaner) cleanHost(ctx context.Context) error {
	found := c.p.WaitFor("looking for what runs have left on this machine")
	list, err := c.p.SweepHost(ctx, func(run string) bool { return !c.dryRun && (c.run == "" || c.run == run) })
	found()
	for _, l := range list {
		switch {
		case !c.concerns(l.Run):
		case l.Alive:
			c.say("left alone, %s: %s\n", cmp.Or(l.Why, "it is going on"), l.What())
			c.out.Left = append(c.out.Left, l)
		default:
			c.removed(l.What(), l)
		}
	}
	return err
}

// leftovers returns the leftovers of a cluster, after the wait that the user asked for.
func (c *cleaner) leftovers(ctx context.Context, of *kubernetes.Cluster) ([]sweep.Leftover, error) {
	for what := "looking for what runs have left"; ; what = "waiting for runs to give no further sign of life" {
		found := c.p.WaitFor(what)
		list, err := of.Leftovers(ctx, false, c.namespace)
		awaited := c.wait && !c.force && slices.ContainsFunc(list, func(l sweep.Leftover) bool {
			return l.Alive && !l.Here && (c.run == "" || c.run == l.Run)
		})
		if err == nil && awaited {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		found()
		if err != nil || !awaited {
			return list, err
		}
	}
}

// cleanCluster removes what is in the cluster.
func (c *cleaner) cleanCluster(ctx context.Context) error {
	cluster, _, err := c.from.Connect(ctx, c.p)
	if err != nil {
		return err
	}
	defer cluster.Close()
	list, err := c.leftovers(ctx, cluster)
	if err != nil {
		return err
	}
	at := func(t time.Time) string { return t.Local().Format("15:04:05") }
	for _, l := range list {
		if !c.concerns(l.Run) {
			continue
		}
		what := fmt.Sprintf("run %s: %s", l.Run, l.What())
		if l.Alive && !c.force {
			c.out.Left = append(c.out.Left, l)
			if l.Here {
				c.say("left alone, it is going on: %s\n", what)
				continue
			}
			command := process.CleanCommand(c.settings())
			c.say("left alone, it gave a sign of life at %s: %s\n", at(l.LastSign), what)
			c.say("Without another sign it counts as dead from %s on (--wait waits for that); if it is dead, this removes it now: %s --run %s --force\n", at(l.DeadFrom()), command, l.Run)
			continue
		}
		if !c.dryRun {
			c.p.Logf("removing %s\n", what)
			removed := c.p.WaitFor("waiting for the end of what run " + l.Run + " has left")
			err := cluster.Clean(ctx, l)
			if removed(); err != nil {
				return fmt.Errorf("clean: %w", err)
			}
		}
		c.removed(what, l)
	}
	return nil
}

// end says what there is to say in the end.
func (c *cleaner) end() error {
	if c.run != "" && !slices.Contains(c.runs, c.run) {
		return process.Usagef(nearest.Hint(c.run, c.runs, "there is: "+strings.Join(c.runs, ", ")), "run %s left nothing here", c.run)
	}
	if c.output == "json" {
		return process.PrintJSON(c.p, c.out)
	}
	if len(c.out.Removed)+len(c.out.Left) == 0 {
		c.say("nothing to remove\n")
	}
	return nil
}
