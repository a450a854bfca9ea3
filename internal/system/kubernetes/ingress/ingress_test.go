package ingress

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/workloads"
)

func requestFor(t *testing.T, params map[string]string, arms ...plan.Arm) system.Request {
	t.Helper()
	return requestOf(t, Provider{}.Declare(), params, arms...)
}

// requestOf returns a request for the workload of a target that has its name.
func requestOf(t *testing.T, target workload.Target, params map[string]string, arms ...plan.Arm) system.Request {
	t.Helper()
	w, err := workload.Load(workloads.FS(), target.Name, workload.TargetsOf(target))
	if err != nil {
		t.Fatal(err)
	}
	return system.Request{Workload: w, Run: "r", Plan: &plan.Plan{Params: params, Arms: arms, Axis: plan.Axis{Name: axisRate}, Own: &kubernetes.Settings{Images: "registry.example/team"}}}
}

func TestWhatAPlanSays(t *testing.T) {
	for _, tt := range []struct {
		why    string
		params map[string]string
		check  func(*settings) bool
		says   string // of the error
	}{
		{"a service of the run's own", nil, func(s *settings) bool {
			return s.way() == "service" && s.backEndsText() == "2 back ends" && s.least == 1 && s.most == 1 && s.image == "registry.example/team/plimsoll-agent:latest" && s.trust == nil
		}, ""},
		{"bounds of the clients", map[string]string{"clients": "2..8"}, func(s *settings) bool { return s.least == 2 && s.most == 8 }, ""},
		{"bounds in the wrong order", map[string]string{"clients": "8..2"}, nil, "8..2: the second number"},
		{"too many clients", map[string]string{"clients": "1001"}, nil, "at most 1000"},
		{"a URL with a path and a query", map[string]string{"via": "url", "url": "https://[2001:db8::1]/a?b=c", "mark": "x"}, func(s *settings) bool {
			p := s.plan(7)
			r := p.Hosts[0].Requests[0]
			return s.server == "[2001:db8::1]:443" && s.host == "[2001:db8::1]" && r.Path == "/a?b=c" && string(r.Want) == "x" && p.Pace == 7 && s.trust != nil && !s.trust.Any && s.backEndsText() == ""
		}, ""},
		{"a URL without a scheme", map[string]string{"via": "url", "url": "example.com:80"}, nil, "is not the address of a server"},
		{"a URL with a password", map[string]string{"via": "url", "url": "http://u:secret@example.com"}, nil, "without a user"},
		{"a URL that cannot be read, with a password", map[string]string{"via": "url", "url": "http://u:secret@exa mple.com:x"}, nil, "is not the address"},
		{"a URL for another way", map[string]string{"url": "http://example.com"}, nil, "via is service"},
		{"a mark for back ends that have their own", map[string]string{"mark": "x"}, nil, "a mark of their own"},
		{"a gateway without a namespace", map[string]string{"via": "gateway", "gateway": "public"}, nil, "names no gateway"},
		{"a gateway of the run's own", map[string]string{"via": "gateway"}, func(s *settings) bool { return s.way() == "route of gateway (the run's own)" }, ""},
		{"a gateway", map[string]string{"via": "gateway", "gateway": "infra/public"}, func(s *settings) bool { return s.way() == "route of gateway infra/public" }, ""},
		{"an address without a port", map[string]string{"via": "ingress", "address": "192.0.2.1"}, nil, "missing port"},
		{"TLS without a check", map[string]string{"via": "route", "tls": "true", "verify": "false"}, func(s *settings) bool { return s.trust.Any }, ""},
		{"shards of one CPU", map[string]string{"via": "ingress", "shards": "4", "controllerCPU": "1"}, func(s *settings) bool {
			return s.controllerShare() == "250m" && s.way() == "ingress of class (default), 4 shards, by controllers with 1 CPUs"
		}, ""},
		{"shards of a service", map[string]string{"shards": "2"}, nil, "only ingresses are shared"},
		{"fewer classes than shards", map[string]string{"via": "ingress", "shards": "3", "class": "a+b"}, nil, "names other than 3 classes"},
		{"one address of two controllers", map[string]string{"via": "ingress", "shards": "2", "address": "192.0.2.1:80"}, nil, "an address of its own"},
		{"an event of a URL", map[string]string{"via": "url", "url": "http://example.com", "event": "route"}, nil, "changes only routes of its own"},
		{"pods on a node with a client", map[string]string{"via": "pod", "place": "same"}, func(s *settings) bool {
			return s.backEndsText() == "2 back ends on a node with a client" && s.affinity().PodAffinity != nil
		}, ""},
		{"the network of nodes without clients", map[string]string{"via": "host", "place": "other"}, func(s *settings) bool {
			return len(s.affinity().PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 1
		}, ""},
		{"anywhere, better without clients", nil, func(s *settings) bool {
			return len(s.affinity().PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 1
		}, ""},
		{"an event of pods", map[string]string{"via": "pod", "event": "route"}, nil, "the addresses of pods are loaded as they are"},
		{"TLS up to pods", map[string]string{"via": "host", "tls": "true"}, nil, "the addresses of pods are loaded as they are"},
		{"nodes of the clients", map[string]string{"clientNodes": "a=b,c="}, func(s *settings) bool { return maps.Equal(s.nodes, map[string]string{"a": "b", "c": ""}) }, ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			arms, err := read(requestFor(t, tt.params), settingsOf)
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v, want %q", err, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%v shows a password", err)
			}
			if err == nil && !tt.check(arms[""]) {
				t.Errorf("%+v", arms[""])
			}
		})
	}
}

// Arms share their clients, and a server that was confirmed.
func TestArmsShareTheirClients(t *testing.T) {
	for _, tt := range []struct {
		why    string
		params map[string]string
		says   string
	}{
		{"back ends may differ", map[string]string{"backEnds": "4"}, ""},
		{"the way may differ", map[string]string{"via": "ingress", "address": "192.0.2.1:80"}, ""},
		{"clients may not", map[string]string{"clients": "2"}, "arms share their clients"},
		{"another server may not be loaded", map[string]string{"via": "url", "url": "http://example.com"}, "arms share their clients"},
	} {
		_, err := read(requestFor(t, nil, plan.Arm{Name: "a"}, plan.Arm{Name: "b", Params: tt.params}), settingsOf)
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.says)
		}
	}
}

// Requests are shared among the ways of all shards, each with a host at an address of its own.
func TestShardsShareRequests(t *testing.T) {
	one := settings{host: "h", server: "192.0.2.1:80", path: "/", mark: "m"}
	s := &site{settings: one}
	if p := s.plan(0); len(p.Hosts) != 1 || p.Hosts[0].Address != "" {
		t.Errorf("one way: %+v", p.Hosts)
	}
	further := one
	further.host, further.server = "shard-1.h", "192.0.2.2:80"
	s.further = []*site{{settings: further}}
	p := s.plan(0)
	if len(p.Hosts) != 2 || p.Hosts[0].Address != "192.0.2.1:80" || p.Hosts[1].Name != "shard-1.h" || p.Hosts[1].Address != "192.0.2.2:80" || p.Hosts[1].Weight != p.Hosts[0].Weight {
		t.Errorf("two ways: %+v", p.Hosts)
	}
}

// The network plug-in is found by what each one notes on its nodes; an annotation of none is unknown.
func TestNetworkPlugIns(t *testing.T) {
	for _, tt := range []struct {
		why         string
		annotations []string // KEY=VALUE of a node each
		want        network
	}{
		{"flannel says how it sends", []string{"flannel.alpha.coreos.com/backend-type=vxlan", "flannel.alpha.coreos.com/backend-type=vxlan"}, network{plugIn: "flannel", encapsulation: "vxlan"}},
		{"Calico by its tunnel's address", []string{"projectcalico.org/IPv4IPIPTunnelAddr=192.0.2.1"}, network{plugIn: "Calico", encapsulation: "ipip"}},
		{"Calico without a tunnel", []string{"projectcalico.org/IPv4Address=192.0.2.1/24"}, network{plugIn: "Calico"}},
		{"OVN-Kubernetes", []string{"k8s.ovn.org/node-subnets={}"}, network{plugIn: "OVN-Kubernetes", encapsulation: "geneve"}},
		{"a lab's real node", []string{"plimsoll.dev/pod-bridge=cni0", "x=y"}, network{plugIn: "bridge", encapsulation: "none"}},
		{"nothing is known", []string{"x=y"}, network{}},
	} {
		var nodes []corev1.Node
		for _, a := range tt.annotations {
			key, value, _ := strings.Cut(a, "=")
			nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}})
		}
		if got := networkOf(nodes); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.why, got, tt.want)
		}
	}
}

// A dry run says what would be made.
func TestOutline(t *testing.T) {
	for _, tt := range []struct {
		params map[string]string
		want   []string // parts, one of each change
	}{
		{map[string]string{"clients": "1..3", "backEndTime": "5ms"}, []string{"namespace plimsoll-r", "image registry.example/team/plimsoll-agent:latest", "2 back ends that work on 1 request at once, for 5ms each", "1 client, at most 3"}},
		{map[string]string{"via": "ingress", "shards": "2", "event": "route-change"}, []string{"namespace", "image ", "2 back ends", "as many others", "ingress of class (default), 2 shards", "2 Traefiks, each with", "1 client"}},
		{map[string]string{"via": "pod"}, []string{"namespace", "image ", "2 back ends", "1 client"}},
		{map[string]string{"via": "gateway"}, []string{"namespace", "image ", "2 back ends", "route of gateway (the run's own)", "1 Traefik, each with a gateway", "definitions of the Gateway API", "1 client"}},
		{map[string]string{"via": "ingress", "class": "mine"}, []string{"namespace", "image ", "2 back ends", "ingress of class mine", "1 client"}},
	} {
		outline, err := Provider{}.Outline(t.Context(), requestFor(t, tt.params))
		if err != nil || !slices.EqualFunc(outline, tt.want, func(c system.Change, part string) bool { return strings.Contains(c.What, part) }) {
			t.Errorf("%v: %+v, %v", tt.params, outline, err)
		}
	}
}

func TestMoreClients(t *testing.T) {
	for _, tt := range []struct {
		why                    string
		clients, due, answered int
		want                   int
	}{
		{"all was answered", 2, 100, 100, 4},
		{"more than was due, of a backlog", 2, 100, 120, 4},
		{"half of it", 2, 100, 50, 8},
		{"a part of it", 1, 6000, 3636, 4},
		{"nothing", 3, 100, 0, 6},
	} {
		if got := more(tt.clients, tt.due, tt.answered); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.why, got, tt.want)
		}
	}
}
