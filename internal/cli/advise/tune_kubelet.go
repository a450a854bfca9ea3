package advise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func newTuneKubeletCommand(p *process.Process) *cobra.Command {
	var params cluster.Kubelet
	var runs []string
	cmd := tuneReading(p, &cobra.Command{
		Use:   "kubelet --max-pods N",
		Short: "Kubelets of a pool: pods, request rates, reserved resources, PIDs",
		Long: `Compute the kubelets' settings for a number of pods on each node, as one
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
	}, &params, &params.Cluster, &tuneCluster{}, func() (*answer.Answer, error) {
		if err := addMeasured(&params.Costs, runs); err != nil {
			return nil, err
		}
		return cluster.TuneKubelet(params)
	})
	addRuns(cmd, &runs)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "pods-per-node" { // as the other calculators call it
			name = "max-pods"
		}
		return pflag.NormalizedName(name)
	})
	return cmd
}

// addRuns adds the flag that names recorded runs.
func addRuns(cmd *cobra.Command, runs *[]string) {
	cmd.Flags().StringArrayVar(runs, "run", nil, "read what components used from this run `directory`")
}

// addMeasured adds what components used in recorded runs.
func addMeasured(costs *[]cluster.ComponentCost, runs []string) error {
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
func measuredCosts(path string) ([]cluster.ComponentCost, error) {
	var result result.Result
	err := record.Dir(path).ReadJSON(record.ResultFile, &result)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, process.Usagef("'plimsoll analyze DIR' writes it for a run that was cut", "--run: there is no %s", record.Dir(path).Path(record.ResultFile))
	}
	if err != nil {
		return nil, process.Usagef("'plimsoll analyze DIR' writes it again", "--run: %w", err)
	}
	var costs []cluster.ComponentCost
	for _, s := range result.Steps {
		if s.PerPlace == nil || s.Seconds <= 0 || s.PerPlace.Max < 1 || s.Verdict == slo.Invalid {
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
			costs = append(costs, cluster.ComponentCost{
				Name: source, Pods: s.PerPlace.Max, Cores: u.CPUSeconds / s.Seconds, Memory: param.Bytes(u.PeakMemory()),
				From: fmt.Sprintf("step %d of %s%s", s.ID, path, verdict),
			})
		}
	}
	if len(costs) == 0 {
		return nil, process.Usagef("run on a real node: --lab-real-node", "--run %s: no step says what a kubelet or container runtime used: its nodes were simulated", path)
	}
	return costs, nil
}

// nodeComponent reports whether a source of samples is what a node reserves for.
// The shims, one for each pod, are in the runtime's control group, and not in
// the pods'.
func nodeComponent(source string) bool {
	return slices.Contains([]string{"kubelet", "containerd", "containerd-shims", "crio", "kube-proxy"}, source)
}

// tuneCluster is the cluster that a calculator reads from, if any.
type tuneCluster struct{ process.ClusterFlags }

func (c *tuneCluster) add(cmd *cobra.Command) { c.ClusterFlags.Add(cmd, "read") }

// read gets what the calculators use of a cluster, with two requests that
// change nothing. Without a cluster the facts are empty.
func (c *tuneCluster) read(ctx context.Context, p *process.Process) (cluster.Facts, error) {
	var facts cluster.Facts
	if c.ClusterFlags == (process.ClusterFlags{}) {
		return facts, nil
	}
	if err := c.Check(process.Usagef("add --kubeconfig FILE", "--context %s without the kubeconfig that it is in", c.Context)); err != nil {
		return facts, err
	}
	connected, _, err := c.Connect(ctx, p)
	if err != nil {
		return facts, err
	}
	defer connected.Close()
	client := connected.Typed()
	facts.From = "cluster " + connected.Server
	if c.Lab != "" {
		facts.From = "lab " + c.Lab
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return cluster.Facts{}, fmt.Errorf("read the nodes of %s: %w", facts.From, err)
	}
	for i := range nodes.Items {
		facts.Nodes = append(facts.Nodes, nodeFacts(&nodes.Items[i]))
	}
	facts.Network, err = openShiftNetwork(ctx, client.CoreV1().RESTClient())
	if err != nil {
		return cluster.Facts{}, fmt.Errorf("read the network configuration of %s: %w", facts.From, err)
	}
	return facts, nil
}

func nodeFacts(n *corev1.Node) cluster.NodeFacts {
	facts := cluster.NodeFacts{
		Name: n.Name, Worker: true,
		MaxPods: n.Status.Allocatable.Pods().Value(),
		Cores:   float64(n.Status.Capacity.Cpu().MilliValue()) / 1000,
		Memory:  param.Bytes(n.Status.Capacity.Memory().Value()),
	}
	for _, t := range n.Spec.Taints {
		if t.Key == "node-role.kubernetes.io/control-plane" || t.Key == "node-role.kubernetes.io/master" {
			facts.Worker = false
		}
	}
	for _, text := range n.Spec.PodCIDRs {
		if rng, err := netip.ParsePrefix(text); err == nil {
			facts.PodCIDRs = append(facts.PodCIDRs, rng.Masked())
		}
	}
	return facts
}

// openShiftNetwork reads the ranges that an OpenShift cluster was made with;
// nil on any other.
func openShiftNetwork(ctx context.Context, client rest.Interface) (*cluster.NetworkFacts, error) {
	data, err := client.Get().AbsPath("/apis/config.openshift.io/v1/networks/cluster").DoRaw(ctx)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var object struct {
		Spec struct {
			NetworkType    string   `json:"networkType"`
			ServiceNetwork []string `json:"serviceNetwork"`
			ClusterNetwork []struct {
				CIDR       string `json:"cidr"`
				HostPrefix int64  `json:"hostPrefix"`
			} `json:"clusterNetwork"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	facts := &cluster.NetworkFacts{Type: object.Spec.NetworkType}
	for _, c := range object.Spec.ClusterNetwork {
		rng, err := param.ParsePrefix(c.CIDR)
		if err != nil {
			return nil, err
		}
		facts.Cluster, facts.Prefixes = append(facts.Cluster, rng), append(facts.Prefixes, c.HostPrefix)
	}
	for _, text := range object.Spec.ServiceNetwork {
		rng, err := param.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		facts.Service = append(facts.Service, rng)
	}
	return facts, nil
}
