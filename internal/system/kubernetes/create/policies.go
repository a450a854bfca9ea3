package create

import (
	"cmp"
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
)

// measures reports whether a network policy is followed: it allows connections that pods can try.
func (m *Maker) measures(doc map[string]any) bool {
	spec, err := policyOf(doc)
	return err == nil && m.job.MeasuresPolicies() && netpol.Allows(spec)
}

func policyOf(doc map[string]any) (*networkingv1.NetworkPolicySpec, error) {
	var p networkingv1.NetworkPolicy
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc, &p)
	return &p.Spec, err
}

// policies returns the network policies of a slot that are followed.
func (m *Maker) policies(s kubeburner.Slot) (list []netpol.Policy, err error) {
	docs, err := m.template.Render(m.vars(s))
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		u := unstructured.Unstructured{Object: doc}
		if u.GetKind() != kubeburner.Policies || !m.measures(doc) {
			continue
		}
		spec, err := policyOf(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.template.Name(), err)
		}
		namespace := cmp.Or(u.GetNamespace(), s.Namespace)
		list = append(list, netpol.Policy{Name: api.ObjectName(namespace, u.GetName()), Namespace: namespace, Spec: *spec})
	}
	return list, nil
}

// try has the pods of earlier jobs try what the policies of a job are to allow, before it makes them.
func (x *Script) try(ctx context.Context, next *part) error {
	if x.sender.Try == nil || !x.pacing.config.Jobs[next.job].MeasuresPolicies() {
		return nil
	}
	var list []netpol.Policy
	for _, s := range next.slots {
		of, err := s.maker.policies(s.Slot)
		if err != nil {
			return err
		}
		list = append(list, of...)
	}
	if len(list) == 0 {
		return nil
	}
	if err := x.awaitDone(ctx); err != nil {
		return err
	}
	return x.sender.Try(ctx, list)
}
