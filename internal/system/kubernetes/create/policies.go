package create

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
)

// policies returns the network policies of a slot that pods can try.
func (m *Maker) policies(s kubeburner.Slot) (list []netpol.Policy, err error) {
	docs, err := m.template.Render(m.vars(s))
	for _, doc := range docs {
		if spec, tried := netpol.SpecOf(doc); tried {
			u := unstructured.Unstructured{Object: doc}
			namespace := cmp.Or(u.GetNamespace(), s.Namespace)
			list = append(list, netpol.Policy{Name: api.ObjectName(namespace, u.GetName()), Namespace: namespace, Spec: *spec})
		}
	}
	return list, err
}

// try has the pods of earlier jobs try what the policies of a job are to allow, before it makes them.
func (x *Script) try(ctx context.Context, next *part) error {
	if x.sender.Policies == nil || !x.pacing.config.Jobs[next.job].MeasuresPolicies() {
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
	return x.sender.Policies.Begin(ctx, list)
}
