package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/target/kubernetes"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

func newCleanCommand(p *Process) *cobra.Command {
	var from clusterFlags
	var run string
	var force, dryRun bool
	var output string
	cmd := &cobra.Command{
		Use:   "clean (--kubeconfig FILE | --lab NAME)",
		Short: "Remove what killed runs left in a cluster",
		Long: `Remove everything from a cluster that has this program's labels and belongs to a
run that has ended. A run that was active in the last minute is kept, unless
--force is given. Labs whose command was killed are removed by every command.`,
		Example: `  plimsoll clean --kubeconfig ~/.kube/config --dry-run
  plimsoll clean --lab default`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := from.check(usagef("give --kubeconfig FILE or --lab NAME; $KUBECONFIG is not read", "which cluster?")); err != nil {
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
			return clean(cmd, p, c, leftovers, run, force, dryRun, output)
		},
	}
	outputFlag(cmd, &output)
	from.add(cmd, "clean")
	flags := cmd.Flags()
	flags.StringVar(&run, "run", "", "remove only what the run with this `id` left")
	flags.BoolVar(&force, "force", false, "also remove what belongs to a run that may still be active")
	flags.BoolVar(&dryRun, "dry-run", false, "only list what would be removed")
	return cmd
}

// cleaned is the document of clean: what was removed, or would be by a dry run,
// and what was left alone since it may be in use.
type cleaned struct {
	DryRun  bool                  `json:"dryRun"`
	Removed []kubernetes.Leftover `json:"removed"`
	Left    []kubernetes.Leftover `json:"left"`
}

func clean(cmd *cobra.Command, p *Process, c *kubernetes.Cluster, leftovers []kubernetes.Leftover, run string, force, dryRun bool, output string) error {
	var ids []string
	out := cleaned{DryRun: dryRun, Removed: []kubernetes.Leftover{}, Left: []kubernetes.Leftover{}}
	say := p.printf
	if output == "json" {
		say = func(string, ...any) {}
	}
	for _, l := range leftovers {
		ids = append(ids, l.Run)
		if run != "" && run != l.Run {
			continue
		}
		what := fmt.Sprintf("run %s: %s", l.Run, strings.Join(append(l.Namespaces, l.Others...), ", "))
		switch {
		case l.Alive && !force:
			out.Left = append(out.Left, l)
			say("left alone, it was active at %s: %s\n", l.LastSign.Local().Format("15:04:05"), what)
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
	if len(out.Removed) == 0 {
		say("nothing to remove\n")
	}
	return nil
}
