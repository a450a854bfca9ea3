package advise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// tuneHostFacts is the host that a calculator reads from, if any.
type tuneHostFacts struct {
	live     bool
	bundle   string
	interval time.Duration
	// twice says that counters are to be read twice.
	twice bool
	node  tuneNode
}

func (h *tuneHostFacts) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&h.live, "live", false, "read this host")
	flags.StringVar(&h.bundle, "bundle", "", "read a host that was saved in this `directory` or tar archive")
	h.node.add(cmd)
}

// addTwice adds what belongs to counters.
func (h *tuneHostFacts) addTwice(cmd *cobra.Command) {
	h.twice = true
	cmd.Flags().DurationVar(&h.interval, "interval", 0, "`time` between two readings of softnet_stat (default with --live 10s)")
}

// read reads the host, or nothing.
func (h *tuneHostFacts) read(ctx context.Context, p *process.Process) (*host.Facts, error) {
	switch {
	case h.interval < 0:
		return nil, process.Usagef("for example --interval 10s", "--interval %v: want a time above zero", h.interval)
	case h.live && h.bundle != "":
		return nil, process.Usagef("keep one of them", "--live and --bundle both name a host")
	case (h.live || h.bundle != "") && h.node.given():
		return nil, process.Usagef("keep one of them", "--live or --bundle, and a node of a cluster, both name a host")
	case h.node.given():
		interval := h.interval
		if !h.twice {
			interval = 100 * time.Millisecond // no counters are asked for
		}
		return h.node.read(ctx, p, interval)
	case h.live:
		return h.readLive(ctx, p)
	case h.bundle != "":
		return h.readBundle()
	case h.interval != 0:
		return nil, process.Usagef("add --live, --bundle DIR or --node NAME", "--interval without a host to read")
	}
	return nil, nil
}

func (h *tuneHostFacts) readBundle() (*host.Facts, error) {
	info, err := os.Stat(h.bundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, process.Usagef(nearest.File(h.bundle), "there is no directory or archive %s", h.bundle)
	}
	if err != nil {
		return nil, process.Usagef("", "--bundle: %w", err)
	}
	const hint = "'plimsoll tune host --collect-script' prints a script that makes one"
	root := os.DirFS(h.bundle)
	if !info.IsDir() {
		if root, err = openBundle(h.bundle); err != nil {
			return nil, process.Usagef(hint, "--bundle %s: want a directory or a tar archive: %w", h.bundle, err)
		}
	}
	facts, err := host.ReadFacts(root, "bundle "+h.bundle)
	if err != nil {
		return nil, process.Usagef(hint, "--bundle %s: %w", h.bundle, err)
	}
	facts.Interval = cmp.Or(h.interval, facts.Interval)
	return &facts, nil
}

func openBundle(file string) (fs.FS, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return host.OpenBundle(f)
}

// readLive reads this host, and its softnet_stat once more after a while.
func (h *tuneHostFacts) readLive(ctx context.Context, p *process.Process) (*host.Facts, error) {
	interval := cmp.Or(h.interval, 10*time.Second)
	root := os.DirFS("/")
	facts, err := host.ReadFacts(root, "this host")
	if err != nil {
		return nil, err
	}
	askNICs(ctx, &facts)
	if len(facts.Softnet) == 0 || !h.twice {
		return &facts, nil
	}
	facts.Softnet = facts.Softnet[:1]
	began := p.Now()
	line := p.Waiting()
	line.Show("counting packets for " + interval.String())
	defer line.End()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(interval):
	}
	again, err := host.ReadFacts(root, "this host")
	if err != nil {
		return nil, err
	}
	facts.Interval = p.Now().Sub(began).Round(time.Millisecond)
	facts.Softnet = append(facts.Softnet, again.Softnet[:min(1, len(again.Softnet))]...)
	return &facts, nil
}

// askNICs asks ethtool, where there is one, what this host's physical
// interfaces can do.
func askNICs(ctx context.Context, facts *host.Facts) {
	tool, err := exec.LookPath("ethtool")
	if err != nil {
		return
	}
	for i := range facts.Interfaces {
		n := &facts.Interfaces[i]
		if !n.Physical {
			continue
		}
		if out, err := exec.CommandContext(ctx, tool, "-k", n.Name).Output(); err == nil {
			n.Features, _ = host.ParseFeatures(out)
		}
		if out, err := exec.CommandContext(ctx, tool, "-l", n.Name).Output(); err == nil {
			n.MaxQueues = host.ParseChannels(out)
		}
	}
}

func newTuneHostCommand(p *process.Process) *cobra.Command {
	var params host.Host
	var from tuneHostFacts
	var collect bool
	cmd := tuneReading(p, &cobra.Command{
		Use:   "host",
		Short: "Kernel settings of a host: ARP, socket buffers, receive budget, limits",
		Long: `Compute a host's kernel settings. --rtt and --link give socket buffers by the
bandwidth-delay product, beside the document's formula, which is 8.39 times as
much; --packet gives them by packet size. --pods, --connections and --outgoing
add limits of hosts that run pods.

With --live this host is read, with --bundle a saved one: a directory with the
same relative paths, and two readings proc/net/softnet_stat.0 and .1 with the
time between them in the file interval. What differs from what is wanted is
found, with what it costs; two readings tell which CPU ran out of its budget.

With --node a cluster's node is read by a privileged pod on it, which runs the
node's own shell and is removed again. Without the right to make one, a script
saves the node, and the archive is a bundle:

  plimsoll tune host --collect-script > collect.sh
  oc debug -q node/NAME -- chroot /host sh -s < collect.sh > node.tar

Values are never written lower than they are on the host that was read.`,
		Example: `  plimsoll tune host --rtt 0.208ms --link 50Gbit
  plimsoll tune host --live --rtt 0.208ms --link 50Gbit --write sysctl/
  plimsoll tune host --node worker-7 --kubeconfig prod.kubeconfig --platform openshift
  plimsoll tune host --bundle node7/ --pods 500 --format tuned --format machineconfig --write node7-files/
  plimsoll tune host --packet 512Ki -o json`,
	}, &params, &params.Facts, &from, func() (*answer.Answer, error) { return host.TuneHost(params) })
	calculate := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if collect {
			p.Printf("%s", host.CollectScript())
			return nil
		}
		return calculate(cmd, args)
	}
	cmd.Flags().BoolVar(&collect, "collect-script", false, "print a shell script that saves a host as a bundle")
	from.addTwice(cmd)
	return cmd
}

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
	if err := n.Check(process.Usagef(p.OrInCluster("add --kubeconfig FILE or --lab NAME"), "--node %s of which cluster?", n.name)); err != nil {
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
