package advise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
)

// tuneNode is a cluster's node that is read by a pod on it.
type tuneNode struct {
	process.ClusterFlags
	name, namespace, image string
	yes                    bool
}

func (n *tuneNode) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.name, "node", "", "read this `node` of a cluster, by a pod that is removed again")
	flags.StringVar(&n.Kubeconfig, "kubeconfig", "", "with --node: the cluster's kubeconfig `file`")
	flags.StringVar(&n.Context, "context", "", "with --node: the kubeconfig's context, by default its current one")
	flags.StringVar(&n.Lab, "lab", "", "with --node: the lab's `name`")
	flags.StringVar(&n.namespace, "namespace", "default", "with --node: the pod's `namespace`, which must admit privileged pods")
	flags.StringVar(&n.image, "node-image", "", "with --node: the pod's `image`: any will do, the node's own programs run (default "+nodeImage+")")
	flags.BoolVar(&n.yes, "yes", false, "with --node: make the pod in a cluster that is not a lab")
}

// nodeImage is on nearly every node already, or some version of it is.
const nodeImage = "registry.k8s.io/pause:3.10"

// given reports whether anything was said of a node.
func (n *tuneNode) given() bool {
	return n.ClusterFlags != process.ClusterFlags{} || n.name != "" || n.yes || n.image != ""
}

// read reads a node.
func (n *tuneNode) read(ctx context.Context, p *process.Process, interval time.Duration) (*host.Facts, error) {
	if n.name == "" {
		return nil, process.Usagef("add --node NAME", "a cluster without the node in it that is to be read")
	}
	if err := n.Check(process.Usagef("add --kubeconfig FILE or --lab NAME", "--node %s of which cluster?", n.name)); err != nil {
		return nil, err
	}
	connected, where, err := n.Connect(ctx, p)
	if err != nil {
		return nil, err
	}
	defer connected.Close()
	if where == nil {
		if where, err = connected.LabOf(ctx, p.Host()); err != nil {
			return nil, err
		}
		if where == nil {
			if err := n.confirm(ctx, p, connected); err != nil {
				return nil, err
			}
		}
	}
	standard := nodeImage
	if where != nil {
		standard = image.AgentReference
	}
	interval = cmp.Or(interval, 10*time.Second)
	line := p.Waiting()
	line.Show("reading node " + n.name + " for " + interval.String())
	defer line.End()
	printed, err := connected.RunOnNode(ctx, kubernetes.NodeScript{
		Node: n.name, Namespace: n.namespace, Image: cmp.Or(n.image, standard), Timeout: 2 * time.Minute, Runs: interval + time.Minute,
		// Logs hold lines of text: the archive goes through them as such.
		Script: `sh -c "$1" collect "$2" | gzip -c | base64`, Args: []string{host.CollectScript(), fmt.Sprintf("%g", interval.Seconds())},
	})
	if err != nil {
		return nil, nodeUsage(n, err)
	}
	archive, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(printed)), ""))
	if err != nil {
		return nil, fmt.Errorf("node %s: its pod did not print an archive: %w: %.400q", n.name, err, printed)
	}
	root, err := host.OpenBundle(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.name, err)
	}
	facts, err := host.ReadFacts(root, "node "+n.name)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.name, err)
	}
	return &facts, nil
}

// nodeUsage makes usage errors of what the user can fix.
func nodeUsage(n *tuneNode, err error) error {
	var script *kubernetes.NodeScriptError
	const otherwise = "or save the node by hand: 'plimsoll tune host --help' says how"
	switch {
	case apierrors.IsForbidden(err):
		return process.Usagef("--namespace NAME, one that admits privileged pods, "+otherwise, "--node: %w", err)
	case apierrors.IsNotFound(err), errors.As(err, &script) && (strings.Contains(script.Reason, "no such node") || strings.Contains(script.Reason, "simulated")):
		return process.Usagef("", "--node: %w", err)
	case errors.As(err, &script):
		return fmt.Errorf("--node: %w (--node-image IMAGE takes one that the node can pull, %s)", err, otherwise)
	}
	return err
}

// confirm asks whether a pod may be made in a cluster that is not a lab of ours.
func (n *tuneNode) confirm(ctx context.Context, p *process.Process, c *kubernetes.Cluster) error {
	if n.yes {
		return nil
	}
	return p.Confirm(ctx, fmt.Sprintf("%s at %s", c.Context, c.Server), "is not a lab of this program",
		fmt.Sprintf("This is not a lab. Make a privileged pod on node %s, and remove it again?", n.name))
}
