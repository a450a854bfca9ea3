package component

import (
	"strings"
	"testing"
)

// The kubelet's own validation refuses what it would refuse at its start, and nothing in a
// configuration that it takes.
func TestKubeletFaults(t *testing.T) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	for _, tt := range []struct{ config, want, why string }{
		{"maxPods: 250\n", "", "a configuration that the kubelet takes"},
		{"containerLogMaxFiles: 1\n", "containerLogMaxFiles must be greater than 1", "one log file"},
		{"evictionHard: {memory.available: 100Zi}\n", "quantities must match", "a threshold that is not a quantity"},
		{"evictionHard: {memory.avail: 100Mi}\n", "unsupported eviction signal memory.avail", "a signal that does not exist"},
		{"evictionSoft: {memory.available: 1Gi}\n", "grace period must be specified", "a soft threshold without a grace period"},
		{"topologyManagerPolicy: numa\n", "topologyManagerPolicy", "a policy that does not exist"},
		{"shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s\n", "must be <= shutdownGracePeriod", "critical pods that take longer than all"},
		{"maxPods: lots\n", "", "a wrong type is left to the schema"},
	} {
		faults := KubeletFaults([]byte(head + tt.config))
		if got := strings.Join(faults, "\n"); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
