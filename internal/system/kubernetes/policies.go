package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
)

// policiesSettle suffices for kube-burner's netpolvalidator, which looks each second.
const policiesSettle = 2500 * time.Millisecond

// openPolicies prepares the measurement of network policies, if there is one.
func (t *Target) openPolicies() {
	if !slices.ContainsFunc(t.Load.Beside, func(o *described.Objects) bool { return o.Calls((*described.Probe).OfPolicies) }) {
		return
	}
	trial := &netpol.Trial{
		Clock: t.Clock,
		Forward: func(namespace, pod string) (netpol.Forward, error) {
			return t.Client.Forward(namespace, pod, agent.TryPort)
		},
		List: func(ctx context.Context) ([]corev1.Namespace, []corev1.Pod, error) {
			ours := metav1.ListOptions{LabelSelector: api.LabelRun + "=" + t.Load.RunID}
			namespaces, err := t.Client.Typed.CoreV1().Namespaces().List(ctx, ours)
			if err != nil {
				return nil, nil, fmt.Errorf("list the namespaces of the run, for its network policies: %w", t.Client.Unreachable(err))
			}
			pods, err := t.Client.Typed.CoreV1().Pods(t.Load.Namespace).List(ctx, ours)
			if err != nil {
				return nil, nil, fmt.Errorf("list the pods of the run, for its network policies: %w", t.Client.Unreachable(err))
			}
			return namespaces.Items, pods.Items, nil
		},
		Settle: policiesSettle,
		Note:   func(text string) { t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: text}) },
	}
	t.sender.Policies, t.Load.Connections = trial, trial.Allowed
}
