// Package protocol holds what the processes of a lab agree on: the components' names, and the labels
// and annotations of nodes and pods.
package protocol

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/dist"
)

// The components of a lab, by their names for users and on the command line.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	SimulatedNodes    = "simulated-nodes"
	RealNode          = "real-node"  // the first process of a real node, which starts the others
	Containerd        = "containerd" // the system's program
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	Virt              = "virt" // virtual machines, if the lab has them
)

// DefaultMaxPods is the kubelet's default of pods per node.
const DefaultMaxPods = 110

const (
	GuestPrefix = "guest-"  // begins the names of the processes of real guests; a number follows
	GuestMemory = 160 << 20 // the size of a real guest in bytes, whatever its machine asks for
)

// VirtLimitsPath serves how far limits of machines are used up: by source, "use", "limit", "waiting".
const VirtLimitsPath = "/apis/subresources.kubevirt.io/v1/plimsoll-limits"

// RealSelector selects the real node.
const RealSelector = FidelityLabel + "=" + FidelityReal

// WorkerLabel marks every node of a lab as one for workloads, as published configurations select them.
const WorkerLabel = "node-role.kubernetes.io/worker"

// FidelityLabel tells real nodes from simulated ones.
const (
	FidelityLabel     = "plimsoll.dev/fidelity"
	FidelitySimulated = "simulated"                             // a node without a kubelet
	FidelityReal      = "real"                                  // the node with a kubelet
	SimulatedSelector = FidelityLabel + "=" + FidelitySimulated // selects all simulated nodes
	DownAnnotation    = "plimsoll.dev/down"                     // marks a simulated node that is down
)

// StartLatencyAnnotation overrides a pod's start latency: a duration or a distribution.
const StartLatencyAnnotation = "plimsoll.dev/start-latency"

// StartLatencyOf returns the planted time from a pod's binding to Ready. Records repeat it: it depends only
// on the UID, the StartLatencyAnnotation ("" without) and the lab's distribution.
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
	// The hash alone spreads short differences badly over its high bits, which are used here.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return math.Ldexp(float64(x>>11), -53)
}
