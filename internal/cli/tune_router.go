package cli

import (
	"context"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneRouterCommand(p *Process) *cobra.Command {
	var params tune.Router
	var host tuneHostFacts
	cmd := tuneCommand(p, &cobra.Command{
		Use:   "router",
		Short: "HAProxy routers: how many, connections, buffers, pinning",
		Long: `Compute HAProxy routers: how many a rate of requests or a number of routes needs,
maxconn with the open files and memory that it takes, the buffer for a header,
and CPUs to pin to. What one router does is the document's table, or what yours
was measured to do (--measured). CPUs of the NIC's NUMA node are read from this
host (--live) or a saved one (--bundle).`,
		Example: `  plimsoll tune router --rate 100000 --encryption edge --page 4k
  plimsoll tune router --rate 100000 --measured 22000 --connections 200000 --nofile 1048576 --memory 8Gi
  plimsoll tune router --header 64Ki --platform haproxy --threads 4 --cpus 0-3 --write router/
  plimsoll tune router --routes 9000 --domain apps.example.com -o json`,
	}, params.Params(), func(ctx context.Context) (_ *tune.Answer, err error) {
		if params.Facts, err = host.read(ctx, p); err != nil {
			return nil, err
		}
		return tune.TuneRouter(params)
	})
	host.add(cmd)
	return cmd
}

func newTuneNetworkCommand(p *Process) *cobra.Command {
	var params tune.Network
	var host tuneHostFacts
	cmd := tuneCommand(p, &cobra.Command{
		Use:   "network",
		Short: "Network of nodes: MTU of overlays, offloads, queues, interrupts",
		Long: `Compute the network between nodes: the MTU that an overlay leaves for pods, what
headers cost at the link's speed with and without jumbo frames, and how many
networks there can be. Of a node that is read, this one (--live) or a saved one
(--bundle), offloads, queues and interrupts are held against its NUMA node, and a
script for what differs is written. A bundle holds what ethtool -k and -l print
in ethtool/NAME.features and .channels; plimsoll tune host --collect-script
saves them.`,
		Example: `  plimsoll tune network --overlay vxlan --mtu 1500 --link 10Gbit
  plimsoll tune network --mtu 9000 --link 2x25GbE --ipsec --write network/
  plimsoll tune network --live`,
	}, params.Params(), func(ctx context.Context) (_ *tune.Answer, err error) {
		if params.Facts, err = host.read(ctx, p); err != nil {
			return nil, err
		}
		return tune.TuneNetwork(params)
	})
	host.add(cmd)
	return cmd
}
