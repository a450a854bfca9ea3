// Package netpol has pods of a load try the connections that its network policies allow.
//
// Such a pod has a container with the agent's role try, or with kube-burner's netpolvalidator, which it stands for: it
// takes orders, calls each of their addresses until it answers, and tells when it did. Orders and results pass through
// the API server into the pod, so that no policy stops them.
package netpol

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// served is the port of the servers that pods call, as in kube-burner.
const served = 8080

// Policy is a network policy that a run is about to ask for.
type Policy struct {
	Name      string // on record
	Namespace string
	Spec      networkingv1.NetworkPolicySpec
}

// SpecOf returns the specification of a document that is a network policy, and whether pods can try it.
func SpecOf(doc map[string]any) (*networkingv1.NetworkPolicySpec, bool) {
	var p networkingv1.NetworkPolicy
	if doc["kind"] != kubeburner.Policies || runtime.DefaultUnstructuredConverter.FromUnstructured(doc, &p) != nil {
		return nil, false
	}
	return &p.Spec, allows(&p.Spec)
}

// allows reports whether a policy allows connections that pods can try: to port 8080, from pods that it selects.
func allows(spec *networkingv1.NetworkPolicySpec) bool {
	return slices.ContainsFunc(spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return opens(rule.Ports) && slices.ContainsFunc(rule.From, selects)
	})
}

func selects(from networkingv1.NetworkPolicyPeer) bool {
	return from.PodSelector != nil || from.NamespaceSelector != nil
}

// opens reports whether the ports of a rule, none for all, contain the served one.
func opens(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		switch {
		case p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP:
			return false
		case p.Port == nil:
			return true
		case p.EndPort != nil:
			return p.Port.IntVal <= served && served <= *p.EndPort
		}
		return p.Port.IntVal == served
	})
}

// pair is a connection between two pods by their addresses.
type pair struct{ from, to string }

// cast holds the pods and namespaces among which policies select.
type cast struct {
	pods       map[string][]corev1.Pod // by namespace, with an address each
	namespaces map[string]labels.Set
}

func castOf(namespaces []corev1.Namespace, pods []corev1.Pod) cast {
	c := cast{make(map[string][]corev1.Pod), make(map[string]labels.Set)}
	for i := range namespaces {
		c.namespaces[namespaces[i].Name] = namespaces[i].Labels
	}
	for _, p := range pods {
		if p.Status.PodIP != "" && p.DeletionTimestamp == nil && !p.Spec.HostNetwork {
			c.pods[p.Namespace] = append(c.pods[p.Namespace], p)
		}
	}
	return c
}

// in returns the names of the namespaces that a selector matches; nil selects the policy's own.
func (c *cast) in(own string, s *metav1.LabelSelector) (list []string, err error) {
	if s == nil {
		return []string{own}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	add := func(name string) {
		if set, known := c.namespaces[name]; known && selector.Matches(set) && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	// With names, as in most policies, not all namespaces are compared.
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Key() == corev1.LabelMetadataName && (r.Operator() == selection.In || r.Operator() == selection.Equals) {
			for _, name := range r.ValuesUnsorted() {
				add(name)
			}
			return list, nil
		}
	}
	for name := range c.namespaces {
		add(name)
	}
	return list, nil
}

// of returns the addresses of the pods that a selector matches in a namespace; nil selects all.
func (c *cast) of(namespace string, s *metav1.LabelSelector) (list []string, err error) {
	selector := labels.Everything()
	if s != nil {
		if selector, err = metav1.LabelSelectorAsSelector(s); err != nil {
			return nil, err
		}
	}
	for i := range c.pods[namespace] {
		if p := &c.pods[namespace][i]; selector.Matches(labels.Set(p.Labels)) {
			list = append(list, p.Status.PodIP)
		}
	}
	return list, nil
}

// pairs returns the connections that a policy allows, each once.
func (c *cast) pairs(p *Policy) (list []pair, err error) {
	servers, err := c.of(p.Namespace, &p.Spec.PodSelector)
	if err != nil {
		return nil, err
	}
	seen := make(map[pair]bool)
	for _, rule := range p.Spec.Ingress {
		if !opens(rule.Ports) {
			continue
		}
		for _, from := range rule.From {
			if !selects(from) {
				continue
			}
			namespaces, err := c.in(p.Namespace, from.NamespaceSelector)
			if err != nil {
				return nil, err
			}
			for _, namespace := range namespaces {
				clients, err := c.of(namespace, from.PodSelector)
				if err != nil {
					return nil, err
				}
				for _, client := range clients {
					for _, server := range servers {
						if is := (pair{client, server}); client != server && !seen[is] {
							seen[is], list = true, append(list, is)
						}
					}
				}
			}
		}
	}
	return list, nil
}

// ordersOf returns the orders by the address of the pod that gets them. A connection that several policies allow is
// tried once.
func ordersOf(policies []Policy, pairs map[string][]pair) map[string][]agent.Order {
	orders, given := make(map[string][]agent.Order), make(map[pair]bool)
	for _, p := range policies {
		to := make(map[string]int) // index of the policy's order, by pod
		for _, is := range pairs[p.Name] {
			if given[is] {
				continue
			}
			given[is] = true
			at, begun := to[is.from]
			if !begun {
				at = len(orders[is.from])
				to[is.from] = at
				orders[is.from] = append(orders[is.from], agent.Order{Ports: []int32{served}, Policy: p.Name})
			}
			orders[is.from][at].Addresses = append(orders[is.from][at].Addresses, is.to)
		}
	}
	return orders
}
