package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTunePlanCommand(p *Process) *cobra.Command {
	var params tune.Plan
	var out tuneOutput
	var runs []string
	cmd := &cobra.Command{
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
		Args: cobra.ArbitraryArgs,
		RunE: out.run(p, func(cmd *cobra.Command, args []string) (*tune.Answer, error) {
			if len(args) > 0 {
				if err := takeTarget(&params, strings.Join(args, " ")); err != nil {
					return nil, err
				}
			}
			if err := addMeasured(&params.Costs, runs); err != nil {
				return nil, err
			}
			return tune.TunePlan(params)
		}),
	}
	flags := cmd.Flags()
	giveOneOf(flags, &params.Platform, "platform", "what the cluster is", tune.OpenShift, tune.Kubernetes)
	giveCount(flags, &params.Nodes, "nodes", "nodes that take pods")
	giveCount(flags, &params.OtherNodes, "other-nodes", "nodes of the control plane and infrastructure (default 3)")
	giveCount(flags, &params.PodsPerNode, "pods-per-node", "all pods of each node")
	giveCount(flags, &params.Pods, "pods", "users' pods over all nodes")
	giveCount(flags, &params.VMs, "vms", "virtual machines")
	giveList(flags, &params.Classes, "class", "name=count,cores,memory[,time]", "machines of one kind, with the time of a migration", parseVMClass)
	giveCount(flags, &params.MaxPods, "max-pods", "maxPods of the nodes (default the next that was tested)")
	giveFlag(flags, &params.Growth, "growth", "share", "headroom for more nodes, such as 50%", tune.ParsePercent)
	giveCount(flags, &params.PodsPerIteration, "pods-per-iteration", "of the load (default 2)")
	giveCount(flags, &params.ServicesPerIteration, "services-per-iteration", "of the load (default 1)")
	giveCount(flags, &params.OSDs, "osds", "OSDs of a Ceph cluster")
	giveCount(flags, &params.Replicas, "replicas", "copies in Ceph (default 3)")
	giveFlag(flags, &params.RTT, "rtt", "time", "round trip between the hosts", tune.ParseDelay)
	giveFlag(flags, &params.Link, "link", "speed", "of the nodes' link", tune.ParseRate)
	giveCount(flags, &params.MTU, "mtu", "MTU of the nodes' link (default 1500)")
	giveFlag(flags, &params.Cores, "cores", "CPU", "CPU of a node", tune.ParseCores)
	giveFlag(flags, &params.Memory, "memory", "bytes", "memory of a node", tune.ParseBytes)
	giveCount(flags, &params.MaxUnavailable, "max-unavailable", "nodes that reboot at a time (default 1, with 100 nodes and more 10)")
	giveList(flags, &params.MachineCIDRs, "machine-cidr", "CIDR", "range of the machines", tune.ParsePrefix)
	giveList(flags, &params.Avoid, "avoid", "CIDR", "range that is in use elsewhere", tune.ParsePrefix)
	giveList(flags, &params.Costs, "measured", "name@pods=cores,memory", "what a component of the node used", parseCost)
	flags.StringArrayVar(&runs, "run", nil, "read what components used from this run `directory`")
	giveText(flags, &params.KubeVirt, "kubevirt", "version", "KubeVirt's version (default 1.4)")
	out.add(cmd)
	return cmd
}

// takeTarget adds what a target says to what the flags say. They may not both
// say the same.
func takeTarget(params *tune.Plan, text string) error {
	target, err := tune.ParseTarget(text)
	if err != nil {
		return usagef("", "%w", err)
	}
	for _, t := range []struct {
		flag string
		said tune.In[int64]
		to   *tune.In[int64]
	}{
		{"vms", target.VMs, &params.VMs}, {"pods", target.Pods, &params.Pods}, {"pods-per-node", target.PodsPerNode, &params.PodsPerNode},
		{"nodes", target.Nodes, &params.Nodes}, {"osds", target.OSDs, &params.OSDs},
	} {
		if !t.said.Ok() {
			continue
		}
		if t.to.Ok() {
			return usagef("keep one of them", "--%s and the target %q both say how many", t.flag, text)
		}
		*t.to = t.said
	}
	return nil
}
