// Package advise has the commands that advise and run nothing: tune computes
// settings, and lint finds mistakes in files.
package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/ceph"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/advise/tune/virt"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Commands returns the commands that advise and run nothing.
func Commands(p *process.Process) []*cobra.Command {
	return []*cobra.Command{newTuneCommand(p), newLintCommand(p)}
}

func newTuneCommand(p *process.Process) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "tune",
		Short: "Compute settings: subnets, kubelets, hosts, Ceph, virtual machines, routers, networks",
		Long: `Compute the settings that a size or a load needs, from published rules. Each
answer shows its inputs and where they came from, the formula with its numbers,
its sources, where a source is wrong and what the right reading gives, and the
files and commands that apply it. Nothing is changed.

--write DIR writes the files. The exit code is 1 when something that was asked
for cannot be had.`,
		Example: `  plimsoll tune subnet --nodes 26 --pods-per-node 2500
  plimsoll tune ceph --osds 141 --replicas 3
  plimsoll tune host --bundle node7/ -o json`,
	}, newTuneSubnetCommand(p), newTuneKubeletCommand(p), newTuneHostCommand(p), newTuneCephCommand(p), newTuneVirtCommand(p),
		newTuneRouterCommand(p), newTuneNetworkCommand(p), newTunePlanCommand(p))
}

// tuneOutput holds the flags of all calculators: the format, and where files go.
type tuneOutput struct {
	format, dir string
	force       bool
}

func (o *tuneOutput) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "table", strings.Join(answer.Formats(), ", "))
	flags.StringVar(&o.dir, "write", "", "write the files to this `directory`")
	flags.BoolVar(&o.force, "force", false, "with --write: also over files that exist")
}

// check finds mistakes before anything is read or computed.
func (o *tuneOutput) check() error {
	if o.format == "text" { // as other commands call it
		o.format = "table"
	}
	if !slices.Contains(answer.Formats(), o.format) {
		return process.Usagef(nearest.Hint(o.format, answer.Formats(), ""), "-o %q: want %s", o.format, strings.Join(answer.Formats(), ", "))
	}
	if o.force && o.dir == "" {
		return process.Usagef("add --write DIR", "--force without --write")
	}
	return nil
}

// show prints an answer and writes its files.
func (o *tuneOutput) show(p *process.Process, a *answer.Answer) error {
	width := 0
	if p.StderrTerminal {
		width = p.Width()
	}
	out, err := answer.Render(a, o.format, width)
	if err != nil {
		return err
	}
	if o.dir != "" && a.Impossible() {
		p.Logf("nothing was written: a finding says that this is impossible\n")
	} else if o.dir != "" {
		paths, err := answer.Write(o.dir, a.Files, o.force)
		if errors.Is(err, fs.ErrExist) {
			return process.Usagef("--force writes over it; nothing was written", "--write: %w", err)
		}
		if err != nil {
			return err
		}
		for _, path := range paths {
			p.Logf("wrote %s\n", path)
		}
	}
	p.Printf("%s", out)
	if a.Impossible() {
		return process.ExitError(process.ExitFail)
	}
	return nil
}

// tuneUsage makes usage errors of parameters that make no sense, all of them.
func tuneUsage(err error) error {
	list := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		list = all.Unwrap()
	}
	var lines []string
	hint := ""
	for _, e := range list {
		var param *param.Error
		if !errors.As(e, &param) {
			return err
		}
		lines = append(lines, fmt.Sprintf("--%s: %s", param.Name, param.Message))
		hint = cmp.Or(hint, param.Hint)
	}
	return process.Usagef(hint, "%s", strings.Join(lines, "\n"))
}

// tuneCommand makes a calculator's command of its description and parameters.
func tuneCommand(p *process.Process, cmd *cobra.Command, params any, calculate func(ctx context.Context) (*answer.Answer, error)) *cobra.Command {
	var out tuneOutput
	if cmd.Args == nil {
		cmd.Args = process.NoArguments
	}
	given := settings.AddFlags(cmd.Flags(), params, func(settings.Field) bool { return true })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if err := given.Fill(params); err != nil {
			return err
		}
		a, err := calculate(cmd.Context())
		if err != nil {
			return tuneUsage(err)
		}
		return out.show(p, a)
	}
	out.add(cmd)
	return cmd
}

// facts is a source that a calculator can read.
type facts[T any] interface {
	add(cmd *cobra.Command)
	read(ctx context.Context, p *process.Process) (T, error)
}

// tuneReading returns a calculator that reads something first, if flags say where.
func tuneReading[T any](p *process.Process, cmd *cobra.Command, params any, into *T, from facts[T], calculate func() (*answer.Answer, error)) *cobra.Command {
	cmd = tuneCommand(p, cmd, params, func(ctx context.Context) (_ *answer.Answer, err error) {
		if *into, err = from.read(ctx, p); err != nil {
			return nil, err
		}
		return calculate()
	})
	from.add(cmd)
	return cmd
}

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

Given a cluster (--kubeconfig, --lab or --in-cluster), its nodes, their subnets and
maxPods are read, and nothing is changed.`,
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
saves them. The cost of the overlay comes from --run DIR, a record of the workload
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
