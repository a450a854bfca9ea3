package cli

import (
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneRouterCommand(p *Process) *cobra.Command {
	var params tune.Router
	var out tuneOutput
	var host tuneHostFacts
	var metal bool
	cmd := &cobra.Command{
		Use:   "router",
		Short: "HAProxy routers: how many, connections, buffers, pinning",
		Long: `Reckon HAProxy routers: how many a rate of requests or a number of routes needs,
maxconn with the open files and memory that it takes, the buffer for a header,
and CPUs to pin to. What one router does is the document's table, or what yours
was measured to do (--measured). CPUs of the NIC's NUMA node are read from this
host (--live) or a saved one (--bundle).`,
		Example: `  plimsoll tune router --rate 100000 --encryption edge --page 4k
  plimsoll tune router --rate 100000 --measured 22000 --connections 200000 --nofile 1048576 --memory 8Gi
  plimsoll tune router --header 64Ki --platform haproxy --threads 4 --cpus 0-3 --write router/
  plimsoll tune router --routes 9000 --domain apps.example.com -o json`,
		Args: noArguments,
		RunE: out.run(p, func(cmd *cobra.Command, _ []string) (_ *tune.Answer, err error) {
			if metal {
				params.Metal = tune.Given(true, "flag --metal")
			}
			if params.Facts, err = host.read(cmd.Context(), p); err != nil {
				return nil, err
			}
			return tune.TuneRouter(params)
		}),
	}
	flags := cmd.Flags()
	giveOneOf(flags, &params.Platform, "platform", "what the router is part of", tune.OpenShift, tune.OpenShift3, tune.HAProxyAlone)
	giveCount(flags, &params.Rate, "rate", "requests per second, over all routers")
	giveOneOf(flags, &params.Encryption, "encryption", "of the routes", tune.Encryptions()...)
	giveFlag(flags, &params.Page, "page", "bytes", "size of an answer, such as 4k (default 1k)", tune.ParseBytes)
	flags.BoolVar(&metal, "metal", false, "bare metal: twice the document's table")
	giveCount(flags, &params.Measured, "measured", "requests per second that one router was measured to do")
	giveFlag(flags, &params.Use, "use", "share", "of what a router can do that is planned for (default 70%)", tune.ParsePercent)
	giveCount(flags, &params.Routes, "routes", "number of routes")
	giveCount(flags, &params.Static, "static", "applications that serve files or cache")
	giveCount(flags, &params.Dynamic, "dynamic", "applications that make their answers")
	giveCount(flags, &params.Connections, "connections", "clients at a time, over all routers")
	giveFlag(flags, &params.Header, "header", "bytes", "largest header of a request or an answer", tune.ParseBytes)
	giveFlag(flags, &params.Memory, "memory", "bytes", "that a router may use", tune.ParseBytes)
	giveCount(flags, &params.NoFile, "nofile", "open files that a router may have (ulimit -Hn)")
	giveCount(flags, &params.Threads, "threads", "threads of HAProxy (default 4, otherwise than on OpenShift 1)")
	giveFlag(flags, &params.Link, "link", "speed", "of a router's NIC (default 1Gbit)", tune.ParseRate)
	giveText(flags, &params.CPUs, "cpus", "list", "CPUs to pin HAProxy to, such as 0-3")
	giveText(flags, &params.Domain, "domain", "name", "domain below which shards get theirs")
	host.add(cmd)
	out.add(cmd)
	return cmd
}

func newTuneNetworkCommand(p *Process) *cobra.Command {
	var params tune.Network
	var out tuneOutput
	var host tuneHostFacts
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Network of nodes: MTU of overlays, offloads, queues, interrupts",
		Long: `Reckon the network between nodes: the MTU that an overlay leaves for pods, what
headers cost at the link's speed with and without jumbo frames, and how many
networks there can be. Of a node that is read, this one (--live) or a saved one
(--bundle), offloads, queues and interrupts are held against its NUMA node, and a
script for what differs is written. A bundle holds what ethtool -k and -l print
in ethtool/NAME.features and .channels; plimsoll tune host --collect-script
saves them.`,
		Example: `  plimsoll tune network --overlay vxlan --mtu 1500 --link 10Gbit
  plimsoll tune network --mtu 9000 --link 2x25GbE --ipsec --write network/
  plimsoll tune network --live`,
		Args: noArguments,
		RunE: out.run(p, func(cmd *cobra.Command, _ []string) (_ *tune.Answer, err error) {
			if params.Facts, err = host.read(cmd.Context(), p); err != nil {
				return nil, err
			}
			return tune.TuneNetwork(params)
		}),
	}
	flags := cmd.Flags()
	giveOneOf(flags, &params.Platform, "platform", "what the cluster is", tune.OpenShift, tune.Kubernetes)
	giveOneOf(flags, &params.Overlay, "overlay", "how pods' packets go between nodes (default geneve)", tune.Overlays()...)
	giveBool(flags, &params.IPsec, "ipsec", "encrypted between nodes by IPsec", false)
	giveBool(flags, &params.IPv6, "ipv6", "the nodes' own addresses are of IPv6", false)
	giveCount(flags, &params.MTU, "mtu", "MTU of the nodes' link (default 1500)")
	giveFlag(flags, &params.Link, "link", "speed", "of the nodes' link (default 10Gbit)", tune.ParseRate)
	giveCount(flags, &params.Networks, "networks", "networks that are to be kept apart")
	host.add(cmd)
	out.add(cmd)
	return cmd
}
