// Package protocol has what the processes of a lab agree on: how they are called, and what
// is written on its nodes and pods. It knows none of them.
package protocol

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/dist"
)

// The components of a lab, under the names by which the program starts
// them and by which users know them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	SimulatedNodes    = "simulated-nodes"
	RealNode          = "real-node"  // the first process of a real node, which keeps the others
	Containerd        = "containerd" // the system's program, not one compiled in
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	Virt              = "virt" // virtual machines, where a lab has them
)

// DefaultMaxPods is what a Spec's MaxPods stand for that are 0: the kubelet's own
// default.
const DefaultMaxPods = 110

const (
	// GuestPrefix begins the names of the processes of real guests, which then
	// have a number.
	GuestPrefix = "guest-"
	// GuestMemory is that of a real guest in bytes, whatever its machine asks for.
	GuestMemory = 160 << 20
)

// VirtLimitsPath is where a lab's API server answers how far what can hold
// virtual machines up is used up: by source, "use", "limit" and "waiting".
const VirtLimitsPath = "/apis/subresources.kubevirt.io/v1/plimsoll-limits"

// RealSelector selects the real node.
const RealSelector = FidelityLabel + "=" + FidelityReal

// What marks a simulated node.
const (
	// FidelityLabel tells real nodes from simulated ones.
	FidelityLabel = "plimsoll.dev/fidelity"
	// FidelitySimulated is its value on a node without a kubelet.
	FidelitySimulated = "simulated"
	// FidelityReal is its value on the node with a kubelet.
	FidelityReal = "real"
	// DownAnnotation on a simulated node says that it is down: nothing tells of
	// it that it is well.
	DownAnnotation = "plimsoll.dev/down"
	// SimulatedSelector selects all simulated nodes.
	SimulatedSelector = FidelityLabel + "=" + FidelitySimulated
)

// StartLatencyAnnotation on a pod plants that pod's own start latency: a
// duration such as "1.2s", or a distribution as the command line takes it. It
// overrides the lab's.
const StartLatencyAnnotation = "plimsoll.dev/start-latency"

// StartLatencyOf is the start latency planted for one pod: the time from its
// being bound to a node until it is Ready. It depends on nothing but the pod's
// UID, the value of its StartLatencyAnnotation ("" if it has none) and the
// lab's distribution, so that it can be computed again from a record.
// The error is an annotation that is neither a duration nor a distribution.
func StartLatencyOf(uid, annotation string, labDefault dist.Dist) (time.Duration, error) {
	d := labDefault
	if annotation != "" {
		var err error
		d, err = parseStartLatency(annotation)
		if err != nil {
			return 0, fmt.Errorf("annotation %s: %w", StartLatencyAnnotation, err)
		}
	}
	return d.At(quantileOf(uid)), nil
}

func parseStartLatency(annotation string) (dist.Dist, error) {
	if strings.Contains(annotation, ":") {
		return dist.Parse(annotation)
	}
	latency, err := time.ParseDuration(annotation)
	switch {
	case err != nil:
		return dist.Dist{}, fmt.Errorf("%q is neither a duration such as 1.2s nor %s", annotation, dist.Grammar)
	case latency < 0:
		return dist.Dist{}, fmt.Errorf("%q is negative", annotation)
	}
	return dist.Dist{Shape: dist.Constant, A: latency}, nil
}

// quantileOf maps a UID to [0, 1), evenly over many UIDs.
func quantileOf(uid string) float64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	// The hash alone spreads short differences badly over its high bits,
	// which are the ones used.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return math.Ldexp(float64(x>>11), -53)
}
