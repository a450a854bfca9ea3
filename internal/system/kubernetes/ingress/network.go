package ingress

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab"
)

// network says how packets go, as far as that is known.
type network struct{ plugIn, encapsulation, mtu string }

// networkOf finds the network plug-in by the annotations that each one gives to its nodes.
func networkOf(nodes []corev1.Node) network {
	const flannel = "flannel.alpha.coreos.com/backend-type"
	var plugIns, encapsulations []string
	for _, n := range nodes {
		for _, known := range []struct{ annotation, plugIn, encapsulation string }{
			{flannel, "flannel", n.Annotations[flannel]},
			{"k8s.ovn.org/node-subnets", "OVN-Kubernetes", "geneve"},
			{"projectcalico.org/IPv4VXLANTunnelAddr", "Calico", "vxlan"},
			{"projectcalico.org/IPv4IPIPTunnelAddr", "Calico", "ipip"},
			{"projectcalico.org/IPv4WireguardInterfaceAddr", "Calico", "wireguard"},
			{"projectcalico.org/IPv4Address", "Calico", ""},
			{lab.BridgeAnnotation, "bridge", "none"},
		} {
			if _, has := n.Annotations[known.annotation]; has {
				plugIns, encapsulations = append(plugIns, known.plugIn), append(encapsulations, known.encapsulation)
			}
		}
	}
	return network{plugIn: joined(plugIns), encapsulation: joined(encapsulations)}
}

func joined(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.DeleteFunc(slices.Compact(list), func(text string) bool { return text == "" }), ", ")
}

const mostLooked = 8 // clients that look at packets: they do so one after the other

// mtu asks the clients how large their packets to the servers are.
func (i *instance) mtu(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	var list []string
	for _, arm := range slices.Sorted(maps.Keys(i.Arms)) {
		for _, c := range i.fleet.Clients[:min(len(i.fleet.Clients), mostLooked)] {
			if p, err := c.Path(ctx, i.Arms[arm].server); err == nil { // else it is unknown
				list = append(list, fmt.Sprintf("%d (segments of %d)", p.MTU, p.Segment))
			}
		}
	}
	return joined(list)
}
