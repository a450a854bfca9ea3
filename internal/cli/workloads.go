package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/workloads"
)

func newWorkloadsCommand(p *Process) *cobra.Command {
	return group(&cobra.Command{
		Use:   "workloads",
		Short: "Workloads: list, show, export",
	}, newWorkloadsListCommand(p), newWorkloadsShowCommand(p), newWorkloadsExportCommand(p))
}

func newWorkloadsListCommand(p *Process) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the built-in workloads",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			list, err := workload.List(workloads.FS(), targets())
			if err != nil {
				return err
			}
			t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
			for _, w := range list {
				fmt.Fprintf(t, "%s\t%s\n", w.Name, w.Help)
			}
			return t.Flush()
		},
	}
}

func newWorkloadsShowCommand(p *Process) *cobra.Command {
	return &cobra.Command{
		Use:   "show WORKLOAD",
		Short: "Show a workload's axes, parameters and goals",
		Args:  exactlyOne("workload"),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := loadWorkload(args[0])
			if err != nil {
				return err
			}
			p.printf("%s: %s\n\naxes:\n", w.Name, w.Help)
			t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
			for _, a := range w.Axes {
				fmt.Fprintf(t, "  %s\t%s\t%s\n", a.Name, a.Unit, a.Help)
			}
			t.Flush()
			p.printf("\nparameters (--set NAME=VALUE):\n")
			for _, param := range w.Params {
				standard := ""
				if param.Default != "" {
					standard = "default " + param.Default
				}
				fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", param.Name, param.Type, standard, param.Help)
			}
			t.Flush()
			p.printf("\ngoals:\n")
			for _, g := range w.Goals {
				fmt.Fprintf(t, "  %s\t%s\n", g.Key, strings.Join(g.Value, "; "))
			}
			for _, a := range w.Axes {
				for _, g := range a.Goals {
					fmt.Fprintf(t, "  %s\t%s\talong %s\n", g.Key, strings.Join(g.Value, "; "), a.Name)
				}
			}
			t.Flush()
			p.printf("\nmilestones: %s\n", strings.Join(w.Target.Kind.Names(), ", "))
			for _, a := range w.Axes {
				if w.Target.Axes[a.Name].Stream != nil {
					p.printf("milestones along %s: %s\n", a.Name, strings.Join(w.KindOn(a.Name).Names(), ", "))
				}
			}
			if metrics := w.Target.Kind.Metrics; len(metrics) > 0 {
				p.printf("\nmetrics, besides quantiles of milestones (ab --metric NAME):\n")
				for _, m := range metrics {
					fmt.Fprintf(t, "  %s\t%s\t%s\n", m.Name, m.Unit, m.Help)
				}
				t.Flush()
			}
			p.printf("\nguards (--guard NAME=BOUND):\n")
			for _, m := range w.Target.Kind.Measures {
				unit := "a number"
				if m.Percent {
					unit = "a percentage"
				}
				fmt.Fprintf(t, "  %s\t%s\t%s\n", m.Name, unit, m.Help)
			}
			t.Flush()
			return nil
		},
	}
}

func newWorkloadsExportCommand(p *Process) *cobra.Command {
	return &cobra.Command{
		Use:   "export WORKLOAD DIR",
		Short: "Write a workload's files, to read or change them",
		Long: `Write a workload's files into a new directory. The directory is then a workload
itself ('plimsoll limit ./DIR'). kube-burner can run its configuration too.`,
		Args: exactlyTwo("export takes a workload and a directory", "plimsoll workloads export node-density my-density"),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := loadWorkload(args[0])
			if err != nil {
				return err
			}
			err = w.Export(args[1])
			if errors.Is(err, fs.ErrExist) {
				return usagef("name a directory that does not exist yet", "%w", err)
			}
			if err != nil {
				return err
			}
			p.printf("%s is in %s\n", w.Name, args[1])
			return nil
		},
	}
}
