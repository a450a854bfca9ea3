package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneCephCommand(p *Process) *cobra.Command {
	var params tune.Ceph
	var out tuneOutput
	cmd := &cobra.Command{
		Use:   "ceph --osds N",
		Short: "Placement groups, monitoring and clone limits of a Ceph cluster",
		Long: `Reckon placement groups by the document's formula, 2^round(log2(target x OSDs x
fill / copies)), and by the official calculator, which also knows several pools
(--pool NAME=SHARE, or NAME=SHARE,COPIES), a floor, and a rule about rounding
down. With --clones the limits of clones of one image are looked at too.`,
		Example: `  plimsoll tune ceph --osds 141 --replicas 3
  plimsoll tune ceph --osds 141 --pool vms=80% --pool images=5%
  plimsoll tune ceph --osds 12 --pool archive=50%,6 --write ceph/
  plimsoll tune ceph --osds 141 --clones 1500 -o json`,
		Args: noArguments,
		RunE: out.run(p, func(*cobra.Command, []string) (*tune.Answer, error) {
			return tune.TuneCeph(params)
		}),
	}
	flags := cmd.Flags()
	giveCount(flags, &params.OSDs, "osds", "number of OSDs")
	giveCount(flags, &params.Replicas, "replicas", "copies of each object, or k+m of an erasure-coded pool (default 3)")
	giveCount(flags, &params.Target, "target", "placement groups wanted on each OSD (default 100)")
	giveFlag(flags, &params.Fill, "fill", "share", "share of the cluster that is used at most (default 85%)", tune.ParsePercent)
	giveText(flags, &params.Pool, "pool-name", "name", "name of the only pool")
	giveList(flags, &params.Pools, "pool", "name=share[,copies]", "one of several pools with its share of the data", parseCephPool)
	giveCount(flags, &params.Clones, "clones", "clones of one image")
	giveText(flags, &params.StorageClass, "storage-class", "name", "storage class of the clones")
	out.add(cmd)
	return cmd
}

func parseCephPool(text string) (tune.CephPool, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return tune.CephPool{}, fmt.Errorf("%q: want NAME=SHARE, such as vms=80%%", text)
	}
	share, size, sized := strings.Cut(rest, ",")
	pool := tune.CephPool{Name: name}
	var err error
	if pool.Share, err = tune.ParsePercent(share); err != nil {
		return pool, err
	}
	if sized {
		pool.Size, err = tune.ParseCount(size)
	}
	return pool, err
}
