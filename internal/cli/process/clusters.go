package process

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
)

// ClusterFlags name a cluster, or none.
type ClusterFlags struct {
	Kubeconfig, Context, Lab string
}

// Add adds the flags, to do with the cluster what verb says.
func (c *ClusterFlags) Add(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", verb+" the cluster of this kubeconfig `file`")
	flags.StringVar(&c.Context, "context", "", "the kubeconfig's context, by default its current one")
	flags.StringVar(&c.Lab, "lab", "", verb+" the lab of this `name`")
}

// Check refuses two clusters, and with missing none.
func (c *ClusterFlags) Check(missing error) error {
	switch {
	case c.Lab != "" && c.Kubeconfig != "":
		return Usagef("keep one of them", "--lab and --kubeconfig both name a cluster")
	case c.Lab == "" && c.Kubeconfig == "":
		return missing
	}
	return nil
}

// Connect opens a connection to the cluster; l is its lab if that was
// named, else nil.
func (c *ClusterFlags) Connect(ctx context.Context, p *Process) (connected *kubernetes.Cluster, l *lab.Lab, err error) {
	kubeconfig := c.Kubeconfig
	if c.Lab != "" {
		if l, err = kubernetes.OpenLab(ctx, p.Host(), c.Lab); err != nil {
			return nil, nil, err
		}
		kubeconfig = l.Kubeconfig()
	}
	connected, err = kubernetes.Connect(kubeconfig, c.Context, p.Host())
	return connected, l, err
}
