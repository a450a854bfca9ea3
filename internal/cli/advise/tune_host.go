package advise

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/cli/process"
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
