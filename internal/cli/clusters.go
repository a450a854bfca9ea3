package cli

import (
	"context"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/target/kubernetes"
)

// clusterFlags name a cluster, or none.
type clusterFlags struct {
	kubeconfig, context, lab string
}

// add adds the flags, to do with the cluster what verb says.
func (c *clusterFlags) add(cmd *cobra.Command, verb string) {
	flags := cmd.Flags()
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", verb+" the cluster of this kubeconfig `file`")
	flags.StringVar(&c.context, "context", "", "the kubeconfig's context, by default its current one")
	flags.StringVar(&c.lab, "lab", "", verb+" the lab of this `name`")
}

// check refuses two clusters, and with missing none.
func (c *clusterFlags) check(missing error) error {
	switch {
	case c.lab != "" && c.kubeconfig != "":
		return usagef("keep one of them", "--lab and --kubeconfig both name a cluster")
	case c.lab == "" && c.kubeconfig == "":
		return missing
	}
	return nil
}

// connect opens a connection to the cluster; l is its lab if that was
// named, else nil.
func (c *clusterFlags) connect(ctx context.Context, p *Process) (connected *kubernetes.Cluster, l *lab.Lab, err error) {
	kubeconfig := c.kubeconfig
	if c.lab != "" {
		if l, err = kubernetes.OpenLab(ctx, p.host(), c.lab); err != nil {
			return nil, nil, err
		}
		kubeconfig = l.Kubeconfig()
	}
	connected, err = kubernetes.Connect(kubeconfig, c.context, p.host())
	return connected, l, err
}
