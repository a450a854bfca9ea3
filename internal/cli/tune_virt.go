package cli

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneVirtCommand(p *Process) *cobra.Command {
	var params tune.Virt
	var from tuneCluster
	cmd := tuneCommand(p, &cobra.Command{
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
	}, params.Params(), func(ctx context.Context) (_ *tune.Answer, err error) {
		if params.Cluster, err = from.read(ctx, p); err != nil {
			return nil, err
		}
		return tune.TuneVirt(params)
	})
	from.add(cmd, "read")
	return cmd
}
