package advise

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/advise/tune/cluster"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
)

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
