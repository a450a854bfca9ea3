package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/target/kubernetes"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

func newCleanCommand(p *Process) *cobra.Command {
	var from clusterFlags
	var run string
	var force, wait, dryRun bool
	var output string
	cmd := &cobra.Command{
		Use:   "clean (--kubeconfig FILE | --lab NAME)",
		Short: "Remove what killed runs left in a cluster",
		Long: `Remove everything from a cluster that has this program's labels and belongs to a
run that has ended, and put back the settings that it has changed. That a run of this machine is dead is known at once. One from
elsewhere counts as dead a minute after its last sign of life: --wait waits for
that, --force does not. Labs whose command was killed are removed by every
command, and so is what killed runs of other targets left on this machine by this
one, by 'lab down' and by the next run.`,
		Example: `  plimsoll clean --kubeconfig ~/.kube/config --dry-run
  plimsoll clean --lab default`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := from.check(usagef("give --kubeconfig FILE or --lab NAME; $KUBECONFIG is not read", "which cluster?")); err != nil {
				return err
			}
			if err := p.sweepHost(); err != nil {
				return err
			}
			c, _, err := from.connect(cmd.Context(), p)
			if err != nil {
				return err
			}
			defer c.Close()
			found := p.waitFor("looking for what runs have left")
			leftovers, err := c.Leftovers(cmd.Context(), false)
			found()
			if err != nil {
				return err
			}
			for wait && !force && slices.ContainsFunc(leftovers, func(l sweep.Leftover) bool {
				return l.Alive && !l.Here && (run == "" || run == l.Run)
			}) {
				waited := p.waitFor("waiting for runs to give no further sign of life")
				select {
				case <-time.After(time.Second):
				case <-cmd.Context().Done():
					waited()
					return context.Cause(cmd.Context())
				}
				leftovers, err = c.Leftovers(cmd.Context(), false)
				waited()
				if err != nil {
					return err
				}
			}
			return clean(cmd, p, c, leftovers, run, force, dryRun, cleanCommand(plan.Target{LabName: from.lab, Kubeconfig: from.kubeconfig, Context: from.context}), output)
		},
	}
	outputFlag(cmd, &output)
	from.add(cmd, "clean")
	flags := cmd.Flags()
	flags.StringVar(&run, "run", "", "remove only what the run with this `id` left")
	flags.BoolVar(&force, "force", false, "also remove what belongs to a run that may still be active")
	flags.BoolVar(&wait, "wait", false, "wait until runs from elsewhere count as dead")
	flags.BoolVar(&dryRun, "dry-run", false, "only list what would be removed")
	return cmd
}

// cleaned is the document of clean: what was removed, or would be by a dry run,
// and what was left alone since it may be in use.
type cleaned struct {
	DryRun  bool             `json:"dryRun"`
	Removed []sweep.Leftover `json:"removed"`
	Left    []sweep.Leftover `json:"left"`
}

func clean(cmd *cobra.Command, p *Process, c *kubernetes.Cluster, leftovers []sweep.Leftover, run string, force, dryRun bool, command, output string) error {
	var ids []string
	out := cleaned{DryRun: dryRun, Removed: []sweep.Leftover{}, Left: []sweep.Leftover{}}
	say := p.printf
	if output == "json" {
		say = func(string, ...any) {}
	}
	for _, l := range leftovers {
		ids = append(ids, l.Run)
		if run != "" && run != l.Run {
			continue
		}
		what := fmt.Sprintf("run %s: %s", l.Run, l.What())
		at := func(t time.Time) string { return t.Local().Format("15:04:05") }
		switch {
		case l.Alive && l.Here && !force:
			say("left alone, it is going on: %s\n", what)
			out.Left = append(out.Left, l)
		case l.Alive && !force:
			say("left alone, it gave a sign of life at %s: %s\n", at(l.LastSign), what)
			say("Without another sign it counts as dead from %s on (--wait waits for that); if it is dead, this removes it now: %s --run %s --force\n", at(l.DeadFrom()), command, l.Run)
			out.Left = append(out.Left, l)
		case dryRun:
			say("would remove %s\n", what)
			out.Removed = append(out.Removed, l)
		default:
			p.logf("removing %s\n", what)
			if err := c.Clean(cmd.Context(), l); err != nil {
				return fmt.Errorf("clean: %w", err)
			}
			say("removed %s\n", what)
			out.Removed = append(out.Removed, l)
		}
	}
	if run != "" && !slices.Contains(ids, run) {
		return usagef(nearest.Hint(run, ids, "there is: "+strings.Join(ids, ", ")), "run %s left nothing here", run)
	}
	if output == "json" {
		return printJSON(p, out)
	}
	if len(out.Removed) == 0 && len(out.Left) == 0 {
		say("nothing to remove\n")
	}
	return nil
}
