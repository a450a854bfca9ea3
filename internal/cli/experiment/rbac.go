package experiment

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/workloads"
)

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
