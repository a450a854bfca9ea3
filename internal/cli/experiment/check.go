package experiment

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/workloads"
)

func newCheckCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var f experimentFlags
	cmd := process.Shows(p, &cobra.Command{
		Use:   "check [WORKLOAD]",
		Short: "Is this cluster fit to be loaded, and how far at most? Reads only",
		Long: `Look at a cluster without loading it: its health, and the limits that a workload
will reach, in the unit of its axis. The limit that is reached first is marked,
with the message of the failure. Without a workload, pods without requests are
assumed.

The cluster is named by --kubeconfig, --lab or --in-cluster, or is a lab of the shape
that --lab-nodes and the like say. It only reads, so it need not be confirmed. What this user may not
read is shown as unknown. Beyond a hard ceiling objects fail. An advisory ceiling is a
limit that is published as tested, or an estimate.

The exit code is 1 if something was found that would make a load fail or a result
useless.`,
		Example: `  plimsoll check node-density --lab-nodes 20 --lab-max-pods 110
  plimsoll check node-density --kubeconfig ~/.kube/config --set cpuRequest=100m
  plimsoll check --lab default`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return process.ExactlyOne("workload")(cmd, args)
		},
	}, func(cmd *cobra.Command, args []string) (found ceiling.Check, err error) {
		r, err := f.checker(p, cmd, args)
		if err == nil {
			err = said(p, r.plan.Own, f.own.Names())
		}
		if err != nil {
			return found, err
		}
		r.p, r.stop = p, stop
		found, err = r.check(stop.Soft)
		if err == nil && found.ExitCode != process.ExitPass {
			err = process.ExitError(found.ExitCode)
		}
		return found, err
	}, func(_ io.Writer, found ceiling.Check) error { return text.Write(p.Text(), view.Check(found)) })
	f.addOwn(cmd, func(settings.Field) bool { return true })
	flags := cmd.Flags()
	f.addPlan(flags, "axis", lifeFlag)
	flags.StringArrayVar(&f.set, "set", nil, "parameter of the workload as `k=v`; may be repeated")
	f.addUserData(cmd)
	return cmd
}

// checker returns the runner that examines the target of the flags, for a workload if one is given.
func (f *experimentFlags) checker(p *process.Process, cmd *cobra.Command, args []string) (*runner, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	} else if flag, given := process.FirstChanged(cmd, "axis", "set", lifeFlag); given {
		return nil, process.Usagef("for example 'plimsoll check node-density'", "--%s needs a workload", flag)
	}
	x := f.experiment(cmd, name)
	x.plan.Kind = plan.Limit
	if x.err != nil {
		return nil, x.err
	}
	if name == "" {
		x.target = process.Clusters()
		if err := x.plan.ValidateTarget(x.target); err != nil {
			return nil, x.planError(err)
		}
		return &runner{plan: x.plan}, nil
	}
	w, err := x.loadWorkload()
	if err != nil {
		return nil, err
	}
	if err := x.variables(p, w); err != nil {
		return nil, err
	}
	x.plan.Default(w)
	if err := x.plan.Hide(w, p.Secrets); err != nil {
		return nil, err
	}
	x.plan.Seed = 1 // nothing is drawn
	if err := x.plan.Validate(w); err != nil {
		return nil, x.planError(err)
	}
	return &runner{plan: x.plan, workload: w}, nil
}

// unsaid are a target's own settings that bring up a system of this machine where none is
// named.
type unsaid interface {
	// Unsaid says which flags name one.
	Unsaid() string
}

// said refuses a look at what nobody has named: the system that would be brought up for it
// is no other's.
func said(p *process.Process, own settings.Own, named bool) error {
	if by, is := own.(unsaid); is && !named {
		return process.Usagef(p.OrInCluster(by.Unsaid()), "no cluster or lab is named")
	}
	return nil
}

// check looks at the target and takes down what it brought up for that.
func (r *runner) check(ctx context.Context) (found ceiling.Check, err error) {
	provider, request, err := r.request()
	if err != nil {
		return found, err
	}
	request.ToRead = true
	session, err := provider.Open(ctx, request)
	if err != nil {
		return found, err
	}
	defer func() {
		if closeErr := session.Close(); err == nil {
			err = closeErr
		}
	}()
	looked := r.p.WaitFor("looking at the target")
	survey, err := session.Survey(ctx, true)
	looked()
	if err != nil {
		return found, err
	}
	found = ceiling.Check{
		Schema: ceiling.CheckSchema, Version: process.Version,
		Target:   ceiling.CheckTarget{Kind: survey.Target.Kind, Name: survey.Target.Name, Private: survey.Target.Private, Server: survey.Server, Version: survey.Version},
		Severity: ceiling.Worst(survey.Findings), Findings: survey.Findings,
	}
	if found.Kind = provider.Declare().Kind; len(survey.Tables) > 0 {
		found.Table = survey.Tables[0]
	} else if r.workload != nil {
		axis, err := r.workload.Axis(r.plan.Axis.Name)
		if err != nil {
			return found, err
		}
		found.Table = record.CeilingTable{Workload: r.workload.Name, Axis: axis.Name, Unit: axis.Unit, Ceilings: []record.Ceiling{}, Notes: []string{}}
	}
	if found.Severity == record.SeverityError {
		found.ExitCode = process.ExitFail
	}
	if b := found.Table.Binding(); b != nil {
		found.Binding = &b.Name
	}
	return found, nil
}

// askedIn returns the levels that a plan asks for by itself, before what it leaves
// open is filled in.
func (x *experimentCommand) askedIn() (list []run.Asked) {
	name := func(flag string) string {
		if x.file != "" {
			return flag
		}
		return "--" + flag
	}
	a := x.plan.Axis
	if s := a.Search; s != nil {
		if s.From > 0 {
			list = append(list, run.Asked{By: name("from"), Level: s.From})
		}
		if s.Max > 0 {
			list = append(list, run.Asked{By: name("max"), Level: s.Max})
		}
	}
	levels := "levels"
	if x.cmd.Flags().Changed("level") {
		levels = "level"
	}
	for _, level := range a.Levels {
		list = append(list, run.Asked{By: name(levels), Level: level})
	}
	if a.Level != nil {
		list = append(list, run.Asked{By: name("level"), Level: *a.Level})
	}
	return list
}

// entitled is a provider whose system knows who may do what.
type entitled interface {
	Account(r system.Request, namespace string) (kubernetes.Account, error)
}

func newRBACCommand(p *process.Process) *cobra.Command {
	var f experimentFlags
	var namespace string
	cmd := process.Shows(p, &cobra.Command{
		Use:   "rbac WORKLOAD [--namespace N]",
		Short: "What must a user be allowed to do for a run? Print an account with these rights",
		Long: `Print a service account with its roles and their bindings, as YAML for
'kubectl apply -f -'. It may do exactly what a run of the workload asks for, as
'plimsoll check' looks for it. A comment says what each rule is for. A run goes on
without what is marked optional, and tells less.

Nothing is asked of a cluster. The rights are those that the parameters (--set) and
the axis take. A kind that is not of Kubernetes itself has the name that it has by
convention: 'plimsoll check' on the cluster tells whether that is so. Those
to read metrics are for what --scrape, and the flag that begins with it, ask for.`,
		Example: `  plimsoll rbac node-density | kubectl apply -f -
  plimsoll rbac node-density --namespace team-a | kubectl apply -f -
  plimsoll rbac vm-migration --set parallelMigrations=10
  kubectl create token plimsoll-node-density --duration 8h`,
		Args: process.ExactlyOne("workload"),
	}, func(cmd *cobra.Command, args []string) (kubernetes.Account, error) {
		r, err := f.checker(p, cmd, args)
		if err != nil {
			return kubernetes.Account{}, err
		}
		r.p = p
		return r.account(namespace)
	}, func(w io.Writer, a kubernetes.Account) error {
		_, err := io.WriteString(w, a.Manifest())
		return err
	})
	flags := cmd.Flags()
	flags.StringVar(&namespace, "namespace", "", "namespace that the run is to keep to, as its --namespace says (default those that it makes)")
	f.addPlan(flags, "axis")
	f.addOwn(cmd, func(field settings.Field) bool { return strings.HasPrefix(field.Flag, "scrape-") }, "scrape")
	flags.StringArrayVar(&f.set, "set", nil, "parameter of the workload as `k=v`; may be repeated")
	return cmd
}

// account returns the account with the rights that a run takes.
func (r *runner) account(namespace string) (kubernetes.Account, error) {
	provider, request, err := r.request()
	if err != nil {
		return kubernetes.Account{}, err
	}
	of, ok := provider.(entitled)
	if !ok {
		return kubernetes.Account{}, process.Usagef("those that do: "+strings.Join(entitledWorkloads(), ", "), "%s loads the target %s, which asks no cluster for rights", r.workload.Name, r.workload.Target.Name)
	}
	request.ToRead = true
	return of.Account(request, namespace)
}

// entitledWorkloads returns the built-in workloads whose runs take rights.
func entitledWorkloads() (names []string) {
	list, err := workload.List(workloads.FS(), process.Targets())
	if err != nil {
		return nil
	}
	for _, w := range list {
		if p, err := process.ProviderOf(w.Target.Name); err == nil {
			if _, ok := p.(entitled); ok {
				names = append(names, w.Name)
			}
		}
	}
	return slices.Sorted(slices.Values(names))
}
