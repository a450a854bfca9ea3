package cli

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneSubnetCommand(p *Process) *cobra.Command {
	var params tune.Subnet
	var from tuneCluster
	cmd := tuneCommand(p, &cobra.Command{
		Use:   "subnet",
		Short: "Address ranges of a cluster: nodes, pods per node, services",
		Long: `Compute how many nodes, pods per node and services address ranges allow, or which
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
	}, params.Params(), func(ctx context.Context) (_ *tune.Answer, err error) {
		if params.Cluster, err = from.read(ctx, p); err != nil {
			return nil, err
		}
		return tune.TuneSubnet(params)
	})
	from.add(cmd, "read")
	return cmd
}
