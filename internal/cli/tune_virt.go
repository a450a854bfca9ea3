package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneVirtCommand(p *Process) *cobra.Command {
	var params tune.Virt
	var out tuneOutput
	var from tuneCluster
	cmd := &cobra.Command{
		Use:   "virt",
		Short: "Virtual machines: density, virt-api, live migration, clones",
		Long: `Reckon for virtual machines: what each node holds, virt-api's replicas, limits of
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
		Args: noArguments,
		RunE: out.run(p, func(cmd *cobra.Command, _ []string) (*tune.Answer, error) {
			facts, err := from.read(cmd.Context(), p)
			if err != nil {
				return nil, err
			}
			facts.Virt(&params)
			return tune.TuneVirt(params)
		}),
	}
	flags := cmd.Flags()
	giveOneOf(flags, &params.Platform, "platform", "what the cluster is", tune.OpenShift, tune.Kubernetes)
	giveCount(flags, &params.VMs, "vms", "virtual machines")
	giveList(flags, &params.Classes, "class", "name=count,cores,memory[,time]", "machines of one kind, with the time of a migration", parseVMClass)
	giveCount(flags, &params.Nodes, "nodes", "nodes that they are on")
	giveCount(flags, &params.Pods, "pods", "other pods")
	giveCount(flags, &params.OwnPods, "own-pods", "pods of each node's own (default 16)")
	giveCount(flags, &params.MaxPods, "max-pods", "maxPods of the nodes (default 250)")
	giveFlag(flags, &params.Cores, "cores", "CPU", "CPU of a node", tune.ParseCores)
	giveFlag(flags, &params.Memory, "memory", "bytes", "memory of a node", tune.ParseBytes)
	giveFlag(flags, &params.Overhead, "overhead", "bytes", "memory of a machine's pod besides the machine's (default 256Mi)", tune.ParseBytes)
	giveCount(flags, &params.Disks, "disks", "disks of each machine with dedicatedIOThread")
	giveCount(flags, &params.PerAPI, "per-api", "machines for each virt-api pod (default 750)")
	giveText(flags, &params.KubeVirt, "kubevirt", "version", "KubeVirt's version, such as 1.3 (default 1.4)")
	giveCount(flags, &params.ParallelCluster, "parallel", "migrations at a time (default 20)")
	giveCount(flags, &params.ParallelNode, "parallel-node", "migrations from a node at a time (default 4)")
	giveCount(flags, &params.Migrate, "migrate", "machines to migrate")
	giveCount(flags, &params.Drain, "drain", "nodes that those are on")
	giveFlag(flags, &params.MigrationTime, "migration-time", "time", "of one migration (default 17.2s)", tune.ParseDelay)
	giveCount(flags, &params.MaxUnavailable, "max-unavailable", "nodes that are drained at a time (default 10)")
	giveFlag(flags, &params.Reboot, "reboot", "time", "of one node (default 8m45s)", tune.ParseDelay)
	giveFlag(flags, &params.Observed, "observed", "time", "that such a migration took before", tune.ParseDelay)
	giveFlag(flags, &params.Link, "link", "speed", "of a node, for migrations", tune.ParseRate)
	giveFlag(flags, &params.VMMemory, "vm-memory", "bytes", "memory of a machine, for migrations", tune.ParseBytes)
	giveCount(flags, &params.Zones, "zones", "pools to drain one after the other")
	giveCount(flags, &params.Clones, "clones", "clones of one image")
	giveCount(flags, &params.CloneWorkers, "clone-workers", "calls of the provisioner at a time (default 10)")
	giveFlag(flags, &params.CloneLock, "clone-lock", "time", "that a clone holds the image", tune.ParseDelay)
	giveFlag(flags, &params.CloneWork, "clone-work", "time", "that a clone takes beside others (default 1s)", tune.ParseDelay)
	giveFlag(flags, &params.CloneBulk, "clone-bulk", "time", "that a bulk costs besides its clones (default 2s)", tune.ParseDelay)
	giveFlag(flags, &params.ClonePenalty, "clone-penalty", "share", "by which each clone that waits beyond the workers slows the others, such as 0.2%", tune.ParsePercent)
	giveFlag(flags, &params.Flatten, "flatten", "time", "that flattening one image takes (default: from measured bulks above 250)", tune.ParseDelay)
	giveList(flags, &params.CloneReadings, "clone-measured", "bulk=time", "how long a bulk of clones took", parseCloneReading)
	giveFlag(flags, &params.Dataset, "dataset", "DxFxsize", "directories x files x size of each machine's data set", tune.ParseDataset)
	giveFlag(flags, &params.Disk, "disk", "bytes", "size of the data set's disk", tune.ParseBytes)
	from.add(cmd, "read")
	out.add(cmd)
	return cmd
}

func parseVMClass(text string) (c tune.VMClass, err error) {
	name, rest, ok := strings.Cut(text, "=")
	parts := strings.Split(rest, ",")
	if !ok || len(parts) < 3 || len(parts) > 4 {
		return c, fmt.Errorf("%q: want NAME=COUNT,CORES,MEMORY or NAME=COUNT,CORES,MEMORY,TIME, such as rhel=1500,1,4Gi,14s", text)
	}
	c.Name = name
	if c.Count, err = tune.ParseCount(parts[0]); err != nil {
		return c, err
	}
	if c.Cores, err = tune.ParseCores(parts[1]); err != nil {
		return c, err
	}
	if c.Memory, err = tune.ParseBytes(parts[2]); err != nil {
		return c, err
	}
	if len(parts) == 4 {
		c.Migration, err = tune.ParseDelay(parts[3])
	}
	return c, err
}

func parseCloneReading(text string) (r tune.CloneReading, err error) {
	bulk, took, ok := strings.Cut(text, "=")
	if !ok {
		return r, fmt.Errorf("%q: want BULK=TIME, such as 100=5m", text)
	}
	n, err := tune.ParseCount(bulk)
	if err != nil {
		return r, err
	}
	d, err := tune.ParseDelay(took)
	return tune.CloneReading{Bulk: int(n), Seconds: d.Seconds(), From: "flag --clone-measured"}, err
}
