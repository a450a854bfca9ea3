package kubernetes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

func placesOf(nodes []*corev1.Node, inLab bool) *record.Places {
	places := &record.Places{Place: record.Noun{One: "node", Many: "nodes"}, Facts: nodeFacts(inLab)}
	for _, n := range slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) }) {
		info, can := n.Status.NodeInfo, n.Status.Allocatable
		values := []string{
			strconv.FormatInt(can.Pods().Value(), 10), strconv.FormatFloat(can.Cpu().AsApproximateFloat64(), 'g', -1, 64), strconv.FormatInt(can.Memory().Value(), 10),
			info.KubeletVersion, info.ContainerRuntimeVersion, info.OSImage, info.KernelVersion,
		}
		places.Add(n.Name, follow.FidelityOf(n), values[:len(places.Facts)]...)
	}
	return places
}

func labFacts(s lab.Spec) []record.Fact {
	list := []record.Fact{{Name: "lab-start-latency", What: "start latency of the lab's pods", Value: cmp.Or(s.StartLatency.String(), "none"), Bearing: record.Refuses}}
	if s.HasVirt() {
		said := fmt.Sprintf("scale %g", s.TimeScale)
		var planted []string
		for _, key := range slices.Sorted(maps.Keys(s.Virt)) {
			planted = append(planted, key+"="+s.Virt[key])
		}
		if len(planted) > 0 {
			said += ", " + strings.Join(planted, ",")
		}
		if s.RealGuests > 0 {
			said += fmt.Sprintf(", %d real guests", s.RealGuests)
		}
		list = append(list, record.Fact{Name: "lab-virt", What: "what is planted in the lab's virtual machines, and their scale of time", Value: said, Bearing: record.Refuses})
	}
	if s.RealNode {
		value := "default"
		if s.PodCIDRPrefix != 0 {
			value = fmt.Sprintf("/%d", s.PodCIDRPrefix)
		}
		list = append(list, record.Fact{Name: "pod-range", What: "prefix length of the pod addresses of the lab's real node", Value: value, Bearing: record.Refuses})
	}
	return list
}

// clusterFacts returns a cluster's facts. clockOffset is its clock less ours in seconds, nil where unknown.
func clusterFacts(server string, nodes, skipped int, clockOffset *float64) []record.Fact {
	clock := ""
	if clockOffset != nil {
		clock = fmt.Sprintf("%+.1f", *clockOffset)
	}
	return []record.Fact{
		{Name: "kubernetes", What: "version of the API server", Value: server, Bearing: record.Refuses},
		{Name: "nodes", What: "nodes that take the workload", Value: strconv.Itoa(nodes), Bearing: record.Refuses},
		{Name: "nodes-skipped", What: "nodes that do not take the workload", Value: strconv.Itoa(skipped), Bearing: record.Noted},
		// Latencies are of one clock, whatever the other says.
		{Name: "clock", What: "server's clock less plimsoll's, to within 1 s", Value: clock, Unit: "s", Within: "1", Bearing: record.Noted},
	}
}

// nodeFacts declares the facts of nodes. The kernel of a lab's nodes is a fact of the machine.
func nodeFacts(inLab bool) []record.Fact {
	list := []record.Fact{
		{Name: "node-shape:pods", What: "allocatable pods", Unit: "pods", Bearing: record.Refuses},
		{Name: "node-shape:cpus", What: "allocatable processors", Unit: "CPUs", Bearing: record.Refuses},
		// Firmware and kernel reserve a varying part.
		{Name: "node-shape:memory", What: "allocatable memory", Unit: "B", Within: "2%", Bearing: record.Refuses},
		{Name: "kubelet", What: "version of the kubelet", Bearing: record.Refuses},
		{Name: "runtime", What: "container runtime", Bearing: record.Refuses},
		{Name: "os", What: "operating system", Bearing: record.Refuses},
	}
	if !inLab {
		list = append(list, record.Fact{Name: "kernel", What: "kernel of the node", Bearing: record.Refuses})
	}
	return list
}
