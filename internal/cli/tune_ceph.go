package cli

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
)

func newTuneCephCommand(p *Process) *cobra.Command {
	var params tune.Ceph
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
	}, params.Params(), func(context.Context) (*tune.Answer, error) { return tune.TuneCeph(params) })
}
