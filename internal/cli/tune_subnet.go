package cli

import (
	"net/netip"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneSubnetCommand(p *Process) *cobra.Command {
	var params tune.Subnet
	var clusterCIDRs, serviceCIDRs []netip.Prefix
	var dual bool
	var out tuneOutput
	var from tuneCluster
	cmd := &cobra.Command{
		Use:   "subnet",
		Short: "Address ranges of a cluster: nodes, pods per node, services",
		Long: `Reckon how many nodes, pods per node and services address ranges allow, or which
ranges a number of nodes and pods needs; what is given decides. Both together
are held against each other. Ranges that overlap are found, with the machine
network (--machine-cidr), ranges to avoid (--avoid) and those that the network
plug-in uses itself.

Given a cluster (--kubeconfig or --lab), its nodes, their subnets and maxPods are
read, and nothing is changed.`,
		Example: `  plimsoll tune subnet --cluster-cidr 10.128.0.0/10 --host-prefix 23
  plimsoll tune subnet --nodes 26 --pods-per-node 2500
  plimsoll tune subnet --nodes 400 --growth 50% --machine-cidr 10.0.0.0/8 --write ranges/
  plimsoll tune subnet --platform kubernetes --cluster-cidr 10.244.0.0/16 --cluster-cidr fd00:10:244::/56
  plimsoll tune subnet --lab default`,
		Args: noArguments,
		RunE: out.run(p, func(cmd *cobra.Command, _ []string) (*tune.Answer, error) {
			for _, c := range clusterCIDRs {
				params.ClusterCIDRs = append(params.ClusterCIDRs, tune.Given(c, "flag --cluster-cidr"))
			}
			for _, c := range serviceCIDRs {
				params.ServiceCIDRs = append(params.ServiceCIDRs, tune.Given(c, "flag --service-cidr"))
			}
			if dual {
				params.DualStack = tune.Given(true, "flag --dual-stack")
			}
			facts, err := from.read(cmd.Context(), p)
			if err != nil {
				return nil, err
			}
			facts.Subnet(&params)
			return tune.TuneSubnet(params)
		}),
	}
	flags := cmd.Flags()
	giveOneOf(flags, &params.Platform, "platform", "what the cluster is", tune.OpenShift, tune.Kubernetes)
	giveOneOf(flags, &params.Network, "network", "OpenShift's network plug-in", tune.OVNKubernetes, tune.OpenShiftSDN)
	giveList(flags, &clusterCIDRs, "cluster-cidr", "CIDR", "range of the pods; once for each family", tune.ParsePrefix)
	giveCount(flags, &params.HostPrefix, "host-prefix", "prefix length of each node's subnet (default 23, Kubernetes 24)")
	giveCount(flags, &params.HostPrefix6, "host-prefix6", "the same of IPv6 (default 64)")
	giveList(flags, &serviceCIDRs, "service-cidr", "CIDR", "range of the services; once for each family", tune.ParsePrefix)
	giveCount(flags, &params.Nodes, "nodes", "number of nodes")
	giveCount(flags, &params.PodsPerNode, "pods-per-node", "pods of each node")
	giveCount(flags, &params.Services, "services", "number of services")
	giveFlag(flags, &params.Growth, "growth", "share", "headroom for more nodes and services, such as 50%", tune.ParsePercent)
	giveCount(flags, &params.Reserved, "reserved", "addresses of each node for its own pods (default 16)")
	giveList(flags, &params.MachineCIDRs, "machine-cidr", "CIDR", "range of the machines", tune.ParsePrefix)
	giveList(flags, &params.Avoid, "avoid", "CIDR", "range that is in use elsewhere", tune.ParsePrefix)
	flags.BoolVar(&dual, "dual-stack", false, "ranges of IPv4 and IPv6")
	from.add(cmd, "read")
	out.add(cmd)
	return cmd
}
