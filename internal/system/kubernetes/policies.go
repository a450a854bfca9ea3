package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
)

// openBefore is enough for pods to tell of connections that nothing denies: kube-burner's netpolvalidator looks each
// second. These measure no policy.
const openBefore = 2500 * time.Millisecond

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
		Note: func(text string) { t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: text}) },
	}
	t.sender.Policies, t.Load.Connections = trial, trial.Allowed
	t.sender.Try = func(ctx context.Context, policies []netpol.Policy) error {
		ours := metav1.ListOptions{LabelSelector: api.LabelRun + "=" + t.Load.RunID}
		namespaces, err := t.Client.Typed.CoreV1().Namespaces().List(ctx, ours)
		if err != nil {
			return fmt.Errorf("list the namespaces of the run, for its network policies: %w", t.Client.Unreachable(err))
		}
		pods, err := t.Client.Typed.CoreV1().Pods(t.Load.Namespace).List(ctx, ours)
		if err != nil {
			return fmt.Errorf("list the pods of the run, for its network policies: %w", t.Client.Unreachable(err))
		}
		if err := trial.Begin(ctx, policies, namespaces.Items, pods.Items); err != nil {
			return err
		}
		if !api.Sleep(ctx, openBefore) {
			return context.Cause(ctx)
		}
		return nil
	}
}
