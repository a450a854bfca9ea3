package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune"
	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func newTuneKubeletCommand(p *Process) *cobra.Command {
	var params tune.Kubelet
	var out tuneOutput
	var from tuneCluster
	var runs []string
	cmd := &cobra.Command{
		Use:   "kubelet --max-pods N",
		Short: "Kubelets of a pool: pods, request rates, reserved resources, PIDs",
		Long: `Reckon the kubelets' settings for a number of pods on each node, as one
KubeletConfig with the label that its pool needs, or as the configuration of an
upstream kubelet (--platform kubernetes).

What is reserved for the node's own components follows from what they were
measured to use: --measured NAME@PODS=CORES,MEMORY, at two numbers of pods or
more a line through them, or --run DIR, a recorded run on a real node. Without,
it follows from the size of the node (--cores, --memory) by OpenShift's rule.`,
		Example: `  plimsoll tune kubelet --max-pods 500
  plimsoll tune kubelet --max-pods 2500 --host-prefix 20 --cores 112 --memory 512Gi --nodes 26
  plimsoll tune kubelet --max-pods 500 --measured kubelet@100=0.4,300Mi --measured kubelet@250=0.9,450Mi --measured crio@250=0.7,600Mi
  plimsoll tune kubelet --max-pods 250 --platform kubernetes --run plimsoll-runs/20261121-101500-node-density`,
		Args: noArguments,
		RunE: out.run(p, func(cmd *cobra.Command, _ []string) (*tune.Answer, error) {
			if err := addMeasured(&params.Costs, runs); err != nil {
				return nil, err
			}
			facts, err := from.read(cmd.Context(), p)
			if err != nil {
				return nil, err
			}
			facts.Kubelet(&params)
			return tune.TuneKubelet(params)
		}),
	}
	flags := cmd.Flags()
	giveCount(flags, &params.MaxPods, "max-pods", "pods that a node takes")
	giveOneOf(flags, &params.Platform, "platform", "what the cluster is", tune.OpenShift, tune.Kubernetes)
	giveCount(flags, &params.QPS, "qps", "requests per second to the API server (default 50; above 250 pods 100)")
	giveCount(flags, &params.Burst, "burst", "requests in a burst (default twice --qps)")
	giveBool(flags, &params.EvenSpread, "even-spread", "report all images of a node, so that pods spread evenly", true)
	giveCount(flags, &params.HostPrefix, "host-prefix", "prefix length of each node's subnet")
	giveFlag(flags, &params.Cores, "cores", "CPU", "CPU of a node", tune.ParseCores)
	giveFlag(flags, &params.Memory, "memory", "bytes", "memory of a node", tune.ParseBytes)
	giveList(flags, &params.Costs, "measured", "name@pods=cores,memory", "what a component of the node used", parseCost)
	flags.StringArrayVar(&runs, "run", nil, "read what components used from this run `directory`")
	giveFlag(flags, &params.Headroom, "headroom", "share", "on top of what was measured (default 20%)", tune.ParsePercent)
	giveCount(flags, &params.PIDMax, "pid-max", "kernel.pid_max of the nodes (default 4194304)")
	giveText(flags, &params.Pool, "pool", "name", "MachineConfigPool (default worker)")
	giveText(flags, &params.Label, "label", "key=value", "label of the pool (default custom-kubelet=enabled)")
	giveCount(flags, &params.Nodes, "nodes", "nodes of the pool")
	giveCount(flags, &params.MaxUnavailable, "max-unavailable", "nodes that reboot at a time (default 1)")
	giveFlag(flags, &params.Reboot, "reboot", "time", "drain and reboot of one node (default 10m)", tune.ParseDelay)
	from.add(cmd, "read")
	out.add(cmd)
	return cmd
}

// parseCost reads NAME@PODS=CORES,MEMORY.
func parseCost(text string) (c tune.ComponentCost, err error) {
	name, rest, ok1 := strings.Cut(text, "@")
	pods, rest, ok2 := strings.Cut(rest, "=")
	cores, memory, ok3 := strings.Cut(rest, ",")
	if !ok1 || !ok2 || !ok3 {
		return c, fmt.Errorf("%q: want NAME@PODS=CORES,MEMORY, such as kubelet@250=0.8,450Mi", text)
	}
	n, err := tune.ParseCount(pods)
	if err != nil {
		return c, err
	}
	c = tune.ComponentCost{Name: name, Pods: float64(n), From: "flag --measured"}
	if c.Cores, err = tune.ParseCores(cores); err != nil {
		return c, err
	}
	c.Memory, err = tune.ParseBytes(memory)
	return c, err
}

// addMeasured adds what components used in recorded runs.
func addMeasured(costs *[]tune.ComponentCost, runs []string) error {
	for _, dir := range runs {
		measured, err := measuredCosts(dir)
		if err != nil {
			return err
		}
		*costs = append(*costs, measured...)
	}
	return nil
}

// measuredCosts reads what the components of a real node used in the steps of a
// recorded run.
func measuredCosts(path string) ([]tune.ComponentCost, error) {
	file := record.Dir(path).Path(record.ResultFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("'plimsoll analyze DIR' writes it for a run that was cut", "--run: there is no %s", file)
	}
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	var result judge.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, usagef("'plimsoll analyze DIR' writes it anew", "--run: %s is damaged: %w", file, err)
	}
	var costs []tune.ComponentCost
	for _, s := range result.Steps {
		if s.PerNode == nil || s.Seconds <= 0 || s.PerNode.Max < 1 || s.Verdict == slo.Invalid {
			continue
		}
		verdict := ""
		if s.Verdict != slo.Pass {
			verdict = fmt.Sprintf(" (%s)", s.Verdict)
		}
		for _, source := range slices.Sorted(maps.Keys(s.Resources)) {
			if !nodeComponent(source) {
				continue
			}
			u := s.Resources[source]
			costs = append(costs, tune.ComponentCost{
				Name: source, Pods: s.PerNode.Max, Cores: u.CPUSeconds / s.Seconds, Memory: tune.Bytes(u.PeakRSSBytes),
				From: fmt.Sprintf("step %d of %s%s", s.ID, path, verdict),
			})
		}
	}
	if len(costs) == 0 {
		return nil, usagef("run on a real node: --lab-real-node", "--run %s: no step says what a kubelet or container runtime used: its nodes were simulated", path)
	}
	return costs, nil
}

// nodeComponent reports whether a source of samples is what a node reserves for.
// The shims, one for each pod, are in the runtime's control group, and not in
// the pods'.
func nodeComponent(source string) bool {
	return slices.Contains([]string{"kubelet", "containerd", "containerd-shims", "crio", "kube-proxy"}, source)
}
