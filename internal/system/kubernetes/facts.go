package kubernetes

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/record/upgrade"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
)

// declaredFacts are the facts that a cluster or a lab can have.
func declaredFacts() []record.Fact {
	all := lab.Spec{Shape: lab.Shape{TimeScale: 1, RealNode: true}}
	return slices.Concat(upgrade.ClusterFacts("", 0, 0, nil), upgrade.NodeFacts(false), labFacts(all), []record.Fact{imagesFrom("")})
}

// placesOf describes nodes.
func placesOf(nodes []*corev1.Node, inLab bool) *record.Places {
	places := &record.Places{Place: record.Noun{One: "node", Many: "nodes"}, Facts: upgrade.NodeFacts(inLab)}
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

// labFacts are what a lab was made with that its cluster does not show.
func labFacts(s lab.Spec) []record.Fact {
	l := upgrade.Lab{StartLatency: s.StartLatency.String(), Virt: s.Virt, RealGuests: s.RealGuests, RealNode: s.RealNode, PodCIDRPrefix: s.PodCIDRPrefix}
	if s.HasVirt() {
		l.TimeScale = s.TimeScale
	}
	return l.Facts()
}
