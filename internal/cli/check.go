package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/ceiling"
	"plimsoll.dev/plimsoll/internal/cluster"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/workload"
)

func newCheckCommand(p *Process, stop *interrupts) *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "check [WORKLOAD]",
		Short: "Is this cluster fit to be loaded, and how far at most? Looks, and makes nothing",
		Long: `Look at a cluster without loading it: how it is, and which ceilings a workload
will come up against, in the unit of its axis, the one that binds first marked
and named in the words in which it would fail. Without a workload, pods that ask
for nothing are meant.

It only reads. What this user may not read is said to be unknown, and a cluster
need not be confirmed. A hard ceiling is one beyond which what is asked for
fails; an advisory one is a limit that is published as tested, or an estimate.

The exit code is 1 when something was found that would make a load fail or say
nothing.`,
		Example: `  plimsoll check node-density --lab-nodes 20 --lab-max-pods 110
  plimsoll check node-density --kubeconfig ~/.kube/config --set cpu=100m
  plimsoll check --lab default`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactlyOne("workload")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(f.output); err != nil {
				return err
			}
			r, err := f.checker(cmd, args)
			if err != nil {
				return err
			}
			r.p, r.stop = p, stop
			found, err := r.check(stop.soft)
			if err != nil {
				return err
			}
			if f.output == "json" {
				err = printJSON(p, found)
			} else if err = report.Check(p.Stdout, found); err != nil {
				err = fmt.Errorf("print what was found: %w", err)
			}
			if err == nil && found.ExitCode != exitHeld {
				return exitError(found.ExitCode)
			}
			return err
		},
	}
	f.addNamedTarget(cmd, "look at")
	f.addPrivateLab(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.axis, "axis", "", "what would be raised; 'plimsoll workloads show WORKLOAD' lists the axes")
	flags.StringArrayVar(&f.set, "set", nil, "parameter of the workload as `k=v`; may be repeated")
	flags.DurationVar(&f.podLife, "pod-life", 0, "how long after it was Ready a pod would be deleted on an axis of arrivals per second (default the workload's)")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return cmd
}

// checker is what looks at the target that flags name, for the workload that is
// given, if one is.
func (f *experimentFlags) checker(cmd *cobra.Command, args []string) (*runner, error) {
	if len(args) == 0 {
		for _, name := range []string{"axis", "set", "pod-life"} {
			if cmd.Flags().Changed(name) {
				return nil, usagef("for example 'plimsoll check node-density'", "--%s belongs to a workload, and none is given", name)
			}
		}
		x := f.plan(cmd, "")
		if x.err != nil {
			return nil, x.err
		}
		x.plan.DefaultTarget()
		if err := x.plan.ValidateTarget(); err != nil {
			return nil, x.planError(err)
		}
		return &runner{plan: x.plan}, nil
	}
	x := f.plan(cmd, args[0])
	x.plan.Kind = plan.Limit
	if x.err != nil {
		return nil, x.err
	}
	w, err := loadWorkload(args[0])
	if err != nil {
		return nil, err
	}
	x.plan.Default(w)
	x.plan.Seed = 1 // nothing is drawn
	if err := x.plan.Validate(w); err != nil {
		return nil, x.planError(err)
	}
	params, err := w.Resolve(x.plan.Params)
	if err != nil {
		return nil, x.planError(err)
	}
	return &runner{plan: x.plan, workload: w, params: params}, nil
}

// check looks at the target and takes down what it brought up for that.
func (r *runner) check(ctx context.Context) (found ceiling.Check, err error) {
	if err := r.identify(); err != nil {
		return found, err
	}
	var variant cluster.Variant
	if r.workload != nil {
		if variant, err = r.variant(r.params); err != nil {
			return found, err
		}
	}
	if err := r.openToRead(ctx); err != nil {
		return found, err
	}
	defer func() {
		if closeErr := r.closeTarget(); err == nil {
			err = closeErr
		}
	}()
	s, err := r.cluster.Survey(ctx)
	if err != nil {
		return found, err
	}
	look, err := r.look(ctx, s, variant)
	if err != nil {
		return found, err
	}
	s.Kubelets(ctx, look)
	health := s.Health()
	health.Found = look.Findings
	if health.Clean = r.cleanCommand(); r.workload == nil {
		look.Needs = nil // a workload needs them, and there is none
	}
	if err := s.Examine(ctx, &health, look.Needs); err != nil {
		return found, err
	}
	target := r.cluster.Target()
	found = ceiling.Check{
		Schema: ceiling.CheckSchema, Version: version,
		Target:   ceiling.CheckTarget{Kind: target.Kind, Name: target.Name, Private: target.Private, Server: r.cluster.Server, Version: s.Version},
		Findings: ceiling.Judge(health), Table: ceiling.Compute(look.Facts),
	}
	found.Severity = ceiling.Worst(found.Findings)
	if found.Severity == ceiling.Error {
		found.ExitCode = exitBreached
	}
	if b := found.Table.Binding(); b != nil {
		found.Binding = &b.Name
	}
	return found, nil
}

// openToRead opens the target for reading only: a cluster that is named needs
// no confirmation.
func (r *runner) openToRead(ctx context.Context) error {
	t := r.plan.Target
	if t.Kubeconfig == "" {
		return r.openTarget(ctx)
	}
	if err := r.connect(t.Kubeconfig, t.Context); err != nil {
		return err
	}
	_, err := r.isLab(ctx)
	return err
}

// cleanCommand is the command that removes what runs have left in the target,
// "" for a private laboratory, where nothing can be left.
func (r *runner) cleanCommand() string {
	t := r.plan.Target
	switch {
	case t.LabName != "":
		return "plimsoll clean --lab " + t.LabName
	case t.Kubeconfig != "" && t.Context != "":
		return commandLine([]string{"clean", "--kubeconfig", t.Kubeconfig, "--context", t.Context})
	case t.Kubeconfig != "":
		return commandLine([]string{"clean", "--kubeconfig", t.Kubeconfig})
	}
	return ""
}

// look is what a survey tells of a rendering of the workload.
func (r *runner) look(ctx context.Context, s *cluster.Survey, v cluster.Variant) (*cluster.Look, error) {
	const podsPerNode = "pods-per-node"
	d := cluster.Demand{Variant: v, RunID: r.id, UUID: r.uuid, Axis: ceiling.Axis{Name: podsPerNode, Unit: "pods/node"}}
	if r.workload != nil {
		d.Workload = r.workload.Name
		axis, err := r.workload.Axis(r.plan.Axis.Name)
		if err != nil {
			return nil, err
		}
		d.Axis = ceiling.Axis{Name: axis.Name, Unit: axis.Unit, Foreign: axis.Name != podsPerNode && axis.Loop != workload.Open}
		if axis.Loop == workload.Open {
			d.Axis.Life = time.Duration(r.plan.Axis.PodLife)
			d.Axis.Span = d.Axis.Life + time.Duration(r.plan.Hold)
		}
	}
	l, err := s.Look(ctx, d)
	return l, r.usage(err)
}

// asked is a level that the user has asked for, and by what.
type asked struct {
	by    string
	level float64
}

// askedIn are the levels that a plan asks for by itself, before what it leaves
// open is filled in.
func (x *experimentCommand) askedIn() (list []asked) {
	name := func(flag string) string {
		if x.file != "" {
			return flag
		}
		return "--" + flag
	}
	a := x.plan.Axis
	if s := a.Search; s != nil {
		if s.From > 0 {
			list = append(list, asked{name("from"), s.From})
		}
		if s.Max > 0 {
			list = append(list, asked{name("max"), s.Max})
		}
	}
	levels := "levels"
	if x.cmd.Flags().Changed("level") {
		levels = "level"
	}
	for _, level := range a.Levels {
		list = append(list, asked{name(levels), level})
	}
	if a.Level != nil {
		list = append(list, asked{name("level"), *a.Level})
	}
	return list
}

// foresight is what was known before any load.
type foresight struct {
	findings []ceiling.Finding
	table    *ceiling.Table
	// real says that some node that takes the load has a kubelet.
	real bool
}

// foresee looks at the target before any load. It warns of what is wrong and of
// levels above a ceiling; an error says that the cluster is not fit to be
// loaded at all.
func (r *runner) foresee(ctx context.Context, plain cluster.Variant, arms map[string]cluster.Variant) error {
	s, err := r.cluster.Survey(ctx)
	if err != nil {
		return err
	}
	for _, f := range ceiling.Vital(s.Health()) {
		if f.Severity != ceiling.OK {
			r.foresight.findings = append(r.foresight.findings, f)
		}
	}
	if stopping := ceiling.Stopping(r.foresight.findings); len(stopping) > 0 && !r.ignoreHealth {
		var texts []string
		for _, f := range stopping {
			texts = append(texts, f.What+": "+f.Text)
		}
		return fmt.Errorf("the cluster is not fit to be loaded: %s ('plimsoll check' says more; --ignore-health loads it all the same)", strings.Join(texts, "; "))
	}
	for _, f := range r.foresight.findings {
		r.p.logf("warning: %s: %s\n", f.What, f.Text)
	}
	variants := map[string]cluster.Variant{"": plain}
	if len(arms) > 0 {
		variants = arms
	}
	for _, arm := range r.armNames(variants) {
		look, err := r.look(ctx, s, variants[arm])
		if err != nil {
			return err
		}
		r.foresight.real = r.foresight.real || slices.ContainsFunc(look.Facts.Nodes, func(n ceiling.Node) bool { return !n.Simulated })
		table := ceiling.Compute(look.Facts)
		table.Arm = arm
		r.warnAbove(&table)
		// Of arms the one counts that comes to its ceiling first.
		was := r.foresight.table
		if was == nil || was.Binding() == nil || table.Binding() != nil && *table.Binding().Level < *was.Binding().Level {
			r.foresight.table = &table
		}
	}
	return nil
}

// armNames are the names of variants in the order of the plan.
func (r *runner) armNames(variants map[string]cluster.Variant) []string {
	if _, plain := variants[""]; plain && len(r.plan.Arms) == 0 {
		return []string{""}
	}
	var names []string
	for _, arm := range r.plan.Arms {
		names = append(names, arm.Name)
	}
	return names
}

// warnAbove warns of levels that the user has asked for and that lie above the
// ceiling that binds first.
func (r *runner) warnAbove(t *ceiling.Table) {
	b := t.Binding()
	if b == nil {
		return
	}
	var above []string
	for _, a := range r.asked {
		if a.level > *b.Level {
			above = append(above, fmt.Sprintf("%s %g", a.by, a.level))
		}
	}
	if len(above) == 0 {
		return
	}
	arm, verb := "", "lies"
	if t.Arm != "" {
		arm = " of arm " + t.Arm
	}
	if len(above) > 1 {
		verb = "lie"
	}
	r.p.logf("warning: %s %s above %s %s, the ceiling%s by the %s: %s\n", strings.Join(above, ", "), verb, report.Number(*b.Level), t.Unit, arm, b.What, b.Reason)
}
