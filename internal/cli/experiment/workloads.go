package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
	"plimsoll.dev/plimsoll/workloads"
)

func newWorkloadsCommand(p *process.Process) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "workloads",
		Short: "Workloads: list, show, export",
	}, newWorkloadsListCommand(p), newWorkloadsShowCommand(p), newWorkloadsExportCommand(p))
}

func newWorkloadsListCommand(p *process.Process) *cobra.Command {
	return process.Shows(p, &cobra.Command{
		Use:   "list",
		Short: "List the built-in workloads",
		Args:  process.NoArguments,
	}, func(*cobra.Command, []string) ([]workloadView, error) {
		list, err := workload.List(workloads.FS(), process.Targets())
		views := []workloadView{}
		for _, w := range list {
			views = append(views, viewOf(w))
		}
		return views, err
	}, func(w io.Writer, views []workloadView) error {
		for _, v := range views {
			fmt.Fprintf(w, "%s\t%s\n", v.Name, v.Help)
		}
		return nil
	})
}

func newWorkloadsShowCommand(p *process.Process) *cobra.Command {
	var f experimentFlags
	cmd := process.Shows(p, &cobra.Command{
		Use:   "show WORKLOAD",
		Short: "Show a workload's axes, parameters and goals",
		Long: `Show a workload's axes, parameters and goals. The goals of a kube-burner configuration
are its thresholds, with the variables of --set, --user-data and the environment.`,
		Args: process.ExactlyOne("workload"),
	}, func(cmd *cobra.Command, args []string) (workloadView, error) {
		x := f.experiment(cmd, args[0])
		if x.err != nil {
			return workloadView{}, x.err
		}
		w, err := x.loadWorkload()
		if err != nil {
			return workloadView{}, err
		}
		if name, given := process.FirstChanged(cmd, "set", "user-data"); given && !w.AsItIs {
			return workloadView{}, process.Usagef("leave it out", "--%s is for kube-burner configurations, and %s is a workload", name, w.Name)
		}
		if err := x.variables(p, w); err != nil {
			p.Logf("note: the thresholds are unknown: %v\n", err)
		}
		if len(x.plan.Goals) > 0 {
			w.Goals = x.plan.Goals
		}
		return viewOf(w), nil
	}, func(w io.Writer, v workloadView) error {
		v.show(w)
		return nil
	})
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "variable of a kube-burner configuration as `k=v`; may be repeated")
	f.addUserData(cmd)
	return cmd
}

// workloadView is the document of 'workloads show'.
type workloadView struct {
	Name    string           `json:"name"`
	Help    string           `json:"help"`
	Target  string           `json:"target"`
	Axes    []axisView       `json:"axes"`
	Params  []workload.Param `json:"params"`
	Goals   []goalView       `json:"goals"` // the headline first
	Metrics []record.Metric  `json:"metrics"`
	Guards  []guardView      `json:"guards"`
}

// axisView is an axis, with what holds where an experiment says nothing.
type axisView struct {
	Name       string     `json:"name"`
	Unit       string     `json:"unit"`
	Help       string     `json:"help"`
	Loop       string     `json:"loop"`
	From       float64    `json:"from"`
	Step       float64    `json:"step"`
	Max        float64    `json:"max"`
	Resolution float64    `json:"resolution"`
	Hold       float64    `json:"hold"`    // seconds
	Primary    string     `json:"primary"` // decides comparisons
	Goals      []goalView `json:"goals"`
	Milestones []string   `json:"milestones"`
}

type goalView struct {
	Name string   `json:"name"`
	SLO  []string `json:"slo"`
}

type guardView struct {
	Name    string `json:"name"`
	Help    string `json:"help"`
	Percent bool   `json:"percent"` // its bound is a percentage
}

func viewOf(w *workload.Workload) workloadView {
	goals := func(list strictyaml.Ordered[[]string]) []goalView {
		views := []goalView{}
		for _, g := range list {
			views = append(views, goalView{g.Key, g.Value})
		}
		return views
	}
	v := workloadView{
		Name: w.Name, Help: w.Help, Target: w.Target.Name, Axes: []axisView{}, Params: append([]workload.Param{}, w.Params...), Goals: goals(w.Goals),
		Metrics: append([]record.Metric{}, w.KindOn("").Metrics...), Guards: []guardView{},
	}
	for _, a := range w.Axes {
		own := w.Goals
		if len(a.Goals) > 0 {
			own = a.Goals
		}
		v.Axes = append(v.Axes, axisView{
			Name: a.Name, Unit: a.Unit, Help: a.Help, Loop: string(a.Loop), From: a.Default.From, Step: a.Default.Step, Max: a.Default.Max, Resolution: a.Default.Resolution,
			Hold: cmp.Or(a.Hold, w.Hold).Seconds(), Primary: cmp.Or(a.Primary, w.Primary), Goals: goals(own), Milestones: w.KindOn(a.Name).Names(),
		})
	}
	for _, m := range w.KindOn("").Measures {
		v.Guards = append(v.Guards, guardView{m.Name, m.Help, m.Percent})
	}
	return v
}

// show prints a workload for people.
func (v workloadView) show(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\naxes (--axis NAME):\n", v.Name, v.Help)
	for _, a := range v.Axes {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", a.Name, a.Unit, a.Help)
		fmt.Fprintf(w, "  \t\tby default --from %g --step %g --max %g --resolution %g --hold %s\n", a.From, a.Step, a.Max, a.Resolution, time.Duration(a.Hold*float64(time.Second)))
	}
	fmt.Fprintf(w, "\nparameters (--set NAME=VALUE):\n")
	for _, param := range v.Params {
		standard := ""
		if param.Default != "" {
			standard = "default " + param.Default
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", param.Name, param.Type, standard, param.Help)
	}
	fmt.Fprintf(w, "\ngoals, the headline first:\n")
	for i, a := range v.Axes {
		along := ""
		switch {
		case i == 0 && len(v.Axes) > 1:
			along = "along " + a.Name
		case i > 0:
			along = "along " + a.Name
			if reflect.DeepEqual(a.Goals, v.Axes[0].Goals) {
				fmt.Fprintf(w, "  the same\t\t%s\n", along)
				continue
			}
		}
		for _, g := range a.Goals {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", g.Name, strings.Join(g.SLO, "; "), along)
		}
	}
	fmt.Fprintf(w, "\n")
	for i, a := range v.Axes {
		switch {
		case i == 0:
			fmt.Fprintf(w, "milestones: %s\n", strings.Join(a.Milestones, ", "))
		case !slices.Equal(a.Milestones, v.Axes[0].Milestones):
			fmt.Fprintf(w, "milestones along %s: %s\n", a.Name, strings.Join(a.Milestones, ", "))
		}
	}
	if len(v.Metrics) > 0 {
		fmt.Fprintf(w, "\nmetrics, besides quantiles of milestones (ab --metric NAME):\n")
		for _, m := range v.Metrics {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", m.Name, m.Unit, m.Help)
		}
	}
	if len(v.Guards) > 0 {
		fmt.Fprintf(w, "\nguards (--guard NAME=BOUND):\n")
	}
	for _, m := range v.Guards {
		unit := "a number"
		if m.Percent {
			unit = "a percentage"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", m.Name, unit, m.Help)
	}
}

func newWorkloadsExportCommand(p *process.Process) *cobra.Command {
	return &cobra.Command{
		Use:   "export WORKLOAD DIR",
		Short: "Write a workload's files, to read or change them",
		Long: `Write a workload's files into a new directory. The directory is then a workload
itself ('plimsoll limit ./DIR'). kube-burner can run its configuration too.`,
		Args: process.ExactlyTwo("export takes a workload and a directory", "plimsoll workloads export node-density my-density"),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := process.LoadWorkload(args[0])
			if err != nil {
				return err
			}
			err = w.Export(args[1])
			if errors.Is(err, fs.ErrExist) {
				return process.Usagef("name a directory that does not exist yet", "%w", err)
			}
			if err != nil {
				return err
			}
			p.Printf("%s is in %s\n", w.Name, args[1])
			return nil
		},
	}
}
