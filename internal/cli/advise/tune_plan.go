package advise

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
)

func newTunePlanCommand(p *process.Process) *cobra.Command {
	var params tune.Plan
	var runs, target []string
	cmd := tuneCommand(p, &cobra.Command{
		Use:   "plan TARGET | --nodes N (--pods-per-node N | --pods N | --vms N)",
		Short: "One plan for a whole cluster: ceilings, settings, their order and files",
		Long: `Put the calculators together for a target: every ceiling, every setting that must
change, in the order to apply them, and which can only be chosen at installation.
--write DIR writes PLAN.md and the files of each stage in a directory of its own.

TARGET says in words what the flags --vms, --pods, --pods-per-node, --nodes and
--osds say as well: "3000 VMs and 21,400 pods on 100 nodes".
--pods counts users' pods over all nodes; --pods-per-node counts all pods of a
node, its own included. What an overlay costs is not planned but to be measured.`,
		Example: `  plimsoll tune plan "3000 VMs and 21,400 pods on 100 nodes"
  plimsoll tune plan --pods-per-node 2500 --nodes 26 --cores 112 --memory 512Gi --write plan/
  plimsoll tune plan --vms 3000 --pods 21400 --nodes 100 --osds 141 --rtt 0.208ms --link 2x25GbE --mtu 9000 -o yaml`,
		Args: func(_ *cobra.Command, args []string) error { target = args; return nil },
	}, &params, func(context.Context) (*answer.Answer, error) {
		if len(target) > 0 {
			if err := takeTarget(&params, strings.Join(target, " ")); err != nil {
				return nil, err
			}
		}
		if err := addMeasured(&params.Costs, runs); err != nil {
			return nil, err
		}
		return tune.TunePlan(params)
	})
	addRuns(cmd, &runs)
	return cmd
}

// takeTarget adds what a target says to what the flags say. They may not both
// say the same.
func takeTarget(params *tune.Plan, text string) error {
	target, err := tune.ParseTarget(text)
	if err != nil {
		return process.Usagef("", "%w", err)
	}
	for _, t := range []struct {
		flag string
		said param.In[int64]
		to   *param.In[int64]
	}{
		{"vms", target.VMs, &params.VMs}, {"pods", target.Pods, &params.Pods}, {"pods-per-node", target.PodsPerNode, &params.PodsPerNode},
		{"nodes", target.Nodes, &params.Nodes}, {"osds", target.OSDs, &params.OSDs},
	} {
		if !t.said.Ok() {
			continue
		}
		if t.to.Ok() {
			return process.Usagef("keep one of them", "--%s and the target %q both say how many", t.flag, text)
		}
		*t.to = t.said
	}
	return nil
}
