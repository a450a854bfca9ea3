package advise

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
	"plimsoll.dev/plimsoll/internal/cli/process"
)

func newTuneSubnetCommand(p *process.Process) *cobra.Command {
	var params cluster.Subnet
	return tuneReading(p, &cobra.Command{
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
	}, &params, &params.Cluster, &tuneCluster{}, func() (*answer.Answer, error) { return cluster.TuneSubnet(params) })
}

func newTuneCephCommand(p *process.Process) *cobra.Command {
	var params ceph.Ceph
	return tuneCommand(p, &cobra.Command{
		Use:   "ceph --osds N",
		Short: "Placement groups, monitoring and clone limits of a Ceph cluster",
		Long: `Compute placement groups by the document's formula, 2^round(log2(target x OSDs x
fill / copies)), and by the official calculator, which also knows several pools
(--pool NAME=SHARE, or NAME=SHARE,COPIES), a floor, and a rule about rounding
down. With --clones the limits of clones of one image are looked at too.`,
		Example: `  plimsoll tune ceph --osds 141 --replicas 3
  plimsoll tune ceph --osds 141 --pool vms=80% --pool images=5%
  plimsoll tune ceph --osds 12 --pool archive=50%,6 --write ceph/
  plimsoll tune ceph --osds 141 --clones 1500 -o json`,
	}, &params, func(context.Context) (*answer.Answer, error) { return ceph.Tune(params) })
}

func newTuneVirtCommand(p *process.Process) *cobra.Command {
	var params virt.Virt
	return tuneReading(p, &cobra.Command{
		Use:   "virt",
		Short: "Virtual machines: density, virt-api, live migration, clones",
		Long: `Compute for virtual machines: what each node holds, virt-api's replicas, limits of
live migration with their defaults by version, the time of a migration with its
drains and reboots (--migrate), the best size of bulks of clones (--clones, from
a model of a lock on the image, workers and flattening, calibrated from bulks
that were measured), a data set against its disk (--dataset), and when to take
several clusters.

Times of migrations are given twice: what the migrations themselves explain, and
what the document saw, or what --observed says of an earlier one.`,
		Example: `  plimsoll tune virt --vms 3000
  plimsoll tune virt --class rhel=1500,1,4G,14s --class windows=500,1,4G,12s --class fedora=1000,100m,256Mi,23s --nodes 100 --pods 21400 --cores 40 --memory 384Gi
  plimsoll tune virt --vms 3000 --nodes 100 --migrate 1000 --zones 3 --write zones/
  plimsoll tune virt --clones 800 --clone-measured 10=45s --clone-measured 100=5m --clone-measured 400=40m
  plimsoll tune virt --dataset 300x8x20Mi --disk 40Gi`,
	}, &params, &params.Cluster, &tuneCluster{}, func() (*answer.Answer, error) { return virt.Tune(params) })
}

func newTuneRouterCommand(p *process.Process) *cobra.Command {
	var params host.Router
	var run string
	cmd := tuneReading(p, &cobra.Command{
		Use:   "router",
		Short: "HAProxy routers: how many, connections, buffers, pinning",
		Long: `Compute HAProxy routers: how many a rate of requests or a number of routes needs,
maxconn with the open files and memory that it takes, the buffer for a header,
and CPUs to pin to. What one router does is the document's table, or what yours
was measured to do: --measured, or --run DIR, a recorded run of the workload router
or a cell of a grid, which also tells encryption and page size. CPUs of the NIC's NUMA node are read from this
host (--live) or a saved one (--bundle).`,
		Example: `  plimsoll tune router --rate 100000 --encryption edge --page 4k
  plimsoll tune router --rate 100000 --measured 22000 --connections 200000 --nofile 1048576 --memory 8Gi
  plimsoll tune router --rate 100000 --run plimsoll-runs/20261121-101500-router --link 10Gbit
  plimsoll tune router --header 64Ki --platform haproxy --threads 4 --cpus 0-3 --write router/
  plimsoll tune router --routes 9000 --domain apps.example.com -o json`,
	}, &params, &params.Facts, &tuneHostFacts{}, func() (*answer.Answer, error) {
		if run != "" {
			if err := measuredRouter(&params, run); err != nil {
				return nil, err
			}
		}
		return host.TuneRouter(params)
	})
	cmd.Flags().StringVar(&run, "run", "", "read what one router was measured to do from this run `directory`")
	return cmd
}

func newTuneNetworkCommand(p *process.Process) *cobra.Command {
	var params host.Network
	var run string
	cmd := tuneReading(p, &cobra.Command{
		Use:   "network",
		Short: "Network of nodes: MTU of overlays, offloads, queues, interrupts",
		Long: `Compute the network between nodes: the MTU that an overlay leaves for pods, what
headers cost at the link's speed with and without jumbo frames, and how many
networks there can be. Of a node that is read, this one (--live) or a saved one
(--bundle), offloads, queues and interrupts are held against its NUMA node, and a
script for what differs is written. A bundle holds what ethtool -k and -l print
in ethtool/NAME.features and .channels; plimsoll tune host --collect-script
saves them. What the overlay costs is told from --run DIR, a record of the workload
network-path that compared it with a direct path.`,
		Example: `  plimsoll tune network --overlay vxlan --mtu 1500 --link 10Gbit
  plimsoll tune network --mtu 9000 --link 2x25GbE --ipsec --write network/
  plimsoll tune network --link 10Gbit --run plimsoll-runs/20261121-101500-network-path
  plimsoll tune network --live`,
	}, &params, &params.Facts, &tuneHostFacts{}, func() (*answer.Answer, error) {
		if run != "" {
			if err := measuredPaths(&params, run); err != nil {
				return nil, err
			}
		}
		return host.TuneNetwork(params)
	})
	cmd.Flags().StringVar(&run, "run", "", "read what paths were measured to cost from this run `directory`")
	return cmd
}
