package lab

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"plimsoll.dev/plimsoll/internal/text/dist"
)

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

// simulatedNodesRules are the rights of the process that plays the kubelets.
func simulatedNodesRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"create", "get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "list", "watch", "update", "delete"}},
	}
}
