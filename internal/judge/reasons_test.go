package judge

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

func TestNormalise(t *testing.T) {
	for _, tt := range []struct {
		message, object, want, why string
	}{
		{`Back-off restarting failed container app in pod web-17_ns-3(0f8fad5b-d9cb-469f-a165-70867728950e)`, "ns-3/web-17", `Back-off restarting failed container app in pod NAME_NAMESPACE(*)`, "names and the UID"},
		{`back-off 1m20s restarting failed container=app pod=web-17_ns-3(0f8fad5b-d9cb-469f-a165-70867728950e)`, "ns-3/web-17", `back-off * restarting failed container=app pod=NAME_NAMESPACE(*)`, "the time until the next try differs"},
		{`back-off 2.5s restarting`, "ns/a-1", `back-off * restarting`, "the time of a young one"},
		{`Readiness probe failed: Get "http://10.88.3.17:8080/": dial tcp 10.88.3.17:8080: connect: connection refused`, "ns/a-1", `Readiness probe failed: Get "http://*/": dial tcp *: connect: connection refused`, "addresses with their ports"},
		{`failed to setup network for sandbox "3f0c1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6": no addresses in 10.0.0.1-10.0.0.254`, "ns/a-1", `failed to setup network for sandbox "*": no addresses in *-*`, "the sandbox and the range"},
		{`pod web-1 waits for web-10 and web-1-x and xweb-1, not for web-1.`, "ns/web-1", `pod NAME waits for web-10 and web-1-x and xweb-1, not for NAME.`, "longer names are other names"},
		{"7: 7 7-7 77 7", "ns/7", "NAME: NAME 7-7 77 NAME", "a name of one digit"},
		{"777 77", "ns/77", "777 NAME", "a name that begins within itself"},
		{`pods "pause-1" is forbidden: exceeded quota: few, in quota/pause-1 of "quota"`, "quota/pause-1", `pods "NAME" is forbidden: exceeded quota: few, in NAMESPACE/NAME of "NAMESPACE"`, "a name that is a word of the message, too"},
		{"pod=web_apps(x) of web", "apps/web", "pod=NAME_NAMESPACE(x) of web", "a word is a name where it is written like one"},
		{"node-1 in node-1", "node-1/node-1", "NAME in NAME", "a namespace of the same name"},
		{"  the container is out of memory \n", "ns/a-1", "the container is out of memory", "stray spaces"},
		{"lookup web-1.ns.svc.cluster.local: no such host", "ns/web-1", "lookup NAME.NAMESPACE.svc.cluster.local: no such host", "a point ends a name, as in the name of a host"},
		{"version 1.2.3", "ns/a-1", "version 1.2.3", "three numbers are no address"},
		{"x", "", "x", "no object"},
		{"x", "a", "x", "an object without a namespace, such as a node"},
		{"x/ y", "/", "x/ y", "no name at all"},
		{"näme x1 ü", "ns/x1", "näme NAME ü", "letters of more than a byte"},
	} {
		if got := normalise(tt.message, tt.object); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.why, got, tt.want)
		}
	}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// What is normal has no UID left and no spaces around it, stays as it is, and
// a name that it does not have changes nothing.
func FuzzNormalise(f *testing.F) {
	f.Add("back-off 10s restarting failed container=app pod=web-1_ns(0f8fad5b-d9cb-469f-a165-70867728950e)", "ns", "web-1")
	f.Add("dial tcp 10.0.0.1:80", "a", "a")
	f.Add("aaaa", "aa", "a")
	f.Fuzz(func(t *testing.T, message, namespace, name string) {
		got := normalise(message, namespace+"/"+name)
		if uuid.MatchString(got) || strings.TrimSpace(got) != got {
			t.Errorf("normalise(%q) = %q", message, got)
		}
		if strings.Contains(namespace+name, "/") {
			return
		}
		if !strings.Contains(message, namespace) && !strings.Contains(message, name) && got != normalise(message, "") {
			t.Errorf("normalise(%q, %q, %q) = %q, without them %q", message, namespace, name, got, normalise(message, ""))
		}
	})
}

// Two objects of which the same is told fall into one group, whatever their
// names.
func TestNormaliseMakesEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	letter := func() byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[rng.IntN(36)] }
	word := func() string {
		b := []byte{letter()}
		for range rng.IntN(12) {
			b = append(b, letter(), '-', letter())
		}
		return string(b)
	}
	for range 2000 {
		a, b := normalised("s1"+word(), "n1"+word()), normalised("s1"+word(), "n1"+word())
		if a != b {
			t.Fatalf("%q and %q", a, b)
		}
	}
}

func normalised(namespace, name string) string {
	text := strings.NewReplacer("$N", name, "$S", namespace).Replace(`ERROR: <$N_$S(0f8fad5b-d9cb-469f-a165-70867728950e)> "$S/$N": $N, $S!`)
	return normalise(text, namespace+"/"+name)
}

// Why objects were not ready, grouped and counted.
func TestReasons(t *testing.T) {
	pods := observe.Pods()
	const (
		most  = "0/20 nodes are available: 20 Too many pods. preemption: x"
		other = "0/20 nodes are available: 17 Too many pods, 3 Insufficient cpu. preemption: x"
		third = "0/20 nodes are available: 19 Insufficient cpu, 1 Too many pods."
	)
	warning := func(object, reason, message string) *record.KubeEvent {
		return &record.KubeEvent{Object: "ns/" + object, About: "Pod", Type: "Warning", Reason: reason, Message: message, Count: 1}
	}
	unschedulable := func(s *script, message string, names ...string) {
		for _, name := range names {
			s.asked(name)
			s.news(name + " Created")
			s.state(name, "Unschedulable", message)
		}
	}
	troubled := func(s *script, name, node, reason, message string) {
		s.asked(name)
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Created"})
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Scheduled", Node: node})
		if reason != "" {
			s.state(name, reason, message)
		}
	}
	for _, tt := range []struct {
		why     string
		do      func(s *script)
		want    string
		message string // of the first reason
		binding string
	}{
		{
			"the scheduler's counts change from pod to pod, the reason does not",
			func(s *script) {
				unschedulable(s, other, "a")
				unschedulable(s, most, "b", "c")
				unschedulable(s, other, "f")
				unschedulable(s, third, "d", "e")
			},
			"4 Too many pods on 20 of 20, 2 Insufficient cpu on 19 of 20", other, "Too many pods on 20 of 20 nodes",
		},
		{
			"a reason for the pod itself stands as it is",
			func(s *script) {
				unschedulable(s, `0/20 nodes are available: persistentvolumeclaim "p" not found.`, "a")
			},
			"1 Unschedulable", `0/20 nodes are available: persistentvolumeclaim "p" not found.`, `Unschedulable: 0/20 nodes are available: persistentvolumeclaim "p" not found.`,
		},
		{
			"containers' troubles, by the nodes that they are on",
			func(s *script) {
				troubled(s, "a", "n1", "CrashLoopBackOff", "back-off 10s restarting failed container=app pod=a_ns(x)")
				troubled(s, "b", "n2", "CrashLoopBackOff", "back-off 5m0s restarting failed container=app pod=b_ns(x)")
				troubled(s, "c", "n2", "CrashLoopBackOff", "back-off 20s restarting failed container=app pod=c_ns(x)")
				troubled(s, "d", "n2", "OOMKilled", "")
			},
			"3 CrashLoopBackOff on 2 of 20, 1 OOMKilled on 1 of 20", "back-off * restarting failed container=app pod=NAME_NAMESPACE(x)", "CrashLoopBackOff on 2 of 20 nodes",
		},
		{
			"a pod that tells nothing, and a warning that tells of it: the most frequent one",
			func(s *script) {
				troubled(s, "a", "n1", "", "")
				troubled(s, "b", "n1", "NotContainersStarted", "no trouble was told")
				s.put(warning("a", "FailedCreatePodSandBox", `no address for "a"`))
				s.put(warning("b", "FailedCreatePodSandBox", `no address for "b"`))
				s.put(warning("b", "FailedMount", "no volume"))
				for range 5 {
					s.put(&record.KubeEvent{Object: "ns/a", Type: "Normal", Reason: "Pulled"})
				}
			},
			"2 FailedCreatePodSandBox on 1 of 20", `no address for "NAME"`, "FailedCreatePodSandBox on 1 of 20 nodes",
		},
		{
			"containers that are not ready, and a warning that tells why",
			func(s *script) {
				troubled(s, "a", "n1", "ContainersNotReady", "containers with unready status: [app]")
				s.put(warning("a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"))
			},
			"1 Unhealthy on 1 of 20", "Readiness probe failed: HTTP probe failed with statuscode: 503", "Unhealthy on 1 of 20 nodes",
		},
		{
			"a pod's own word comes before a warning",
			func(s *script) {
				troubled(s, "a", "n1", "ImagePullBackOff", "no such image")
				s.put(warning("a", "Failed", "x"))
			},
			"1 ImagePullBackOff on 1 of 20", "no such image", "ImagePullBackOff on 1 of 20 nodes",
		},
		{
			"two warnings as frequent as one another: the first by name",
			func(s *script) {
				troubled(s, "a", "", "", "")
				s.put(warning("a", "B", "y"))
				s.put(warning("a", "A", "z"))
				s.put(warning("a", "A", "y"))
			},
			"1 A", "y", "A: y",
		},
		{
			"a controller's pods have names of their own, and so have the warnings",
			func(s *script) {
				s.asked("d", grouped(2))
				s.news("d-x1/d Created, d-x2/d Created")
				s.put(warning("d-x1", "FailedMount", "no volume for d-x1"))
				s.put(warning("d-x2", "FailedMount", "no volume for d-x2"))
			},
			"2 FailedMount", "no volume for NAME", "FailedMount: no volume for NAME",
		},
		{
			"a request of which no pod came, and a warning of its owner",
			func(s *script) {
				s.asked("d", grouped(2))
				s.put(warning("d", "FailedCreate", "exceeded quota"))
			},
			"2 FailedCreate", "exceeded quota", "FailedCreate: exceeded quota",
		},
		{
			"requests that failed",
			func(s *script) {
				s.asked("a", outcome(record.SlotFailed, 403, `pods "a" is forbidden`))
				s.asked("b", outcome(record.SlotFailed, 403, `pods "b" is forbidden`))
				s.asked("c", outcome(record.SlotFailed, 0, "no such host"))
			},
			"2 HTTP 403, 1 RequestFailed", `pods "NAME" is forbidden`, `HTTP 403: pods "NAME" is forbidden`,
		},
		{
			"no reason at all",
			func(s *script) { s.asked("a"); s.news("a Created") },
			"1 NotReady", "no reason given", "NotReady: no reason given",
		},
		{
			"a reason without a word more",
			func(s *script) { s.asked("a"); s.news("a Created"); s.state("a", "Evicted", "") },
			"1 Evicted", "", "Evicted",
		},
	} {
		var c *Step
		for range 10 { // what maps hold comes in any order
			s := newScript(t)
			s.begin(1)
			tt.do(s)
			again := s.end(record.EndTimeout, func(b *record.StepEvent) { b.Places = 20 })
			if c != nil && !slices.Equal(c.Reasons, again.Reasons) {
				t.Errorf("%s: once %+v, once %+v", tt.why, c.Reasons, again.Reasons)
			}
			c = again
		}
		if got := whyNot(c); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
			continue
		}
		if c.Reasons[0].Message != tt.message {
			t.Errorf("%s: message %q, want %q", tt.why, c.Reasons[0].Message, tt.message)
		}
		if got := binding(&pods, c.Reasons); got != tt.binding {
			t.Errorf("%s: bound by %q, want %q", tt.why, got, tt.binding)
		}
	}
	if got := binding(&record.ObjectKind{}, nil); got != "" {
		t.Errorf("bound by %q, without any reason", got)
	}
}

// Warnings of one kind that name ever more objects do not fill the memory.
func TestWarningsAreBounded(t *testing.T) {
	c := newTroubles(newKnownTroubles(&record.ObjectKind{}), false)
	for i := range maxEventObjects + 10 {
		c.addEvent(0, &record.KubeEvent{Object: "ns/" + strconv.Itoa(i), Type: "Warning", Reason: "R", Message: "m"})
	}
	g := c.warnings[eventKey{"R", "m"}]
	if g.count != maxEventObjects+10 || len(g.objects) != maxEventObjects {
		t.Errorf("%d warnings about %d objects", g.count, len(g.objects))
	}
}

// A reason names its places as far as they are known.
func TestPlacesOfAReason(t *testing.T) {
	node := record.Noun{One: "node", Many: "nodes"}
	for _, tt := range []struct {
		why  string
		r    Reason
		want string
	}{
		{"of as many as were asked", Reason{Nodes: 2, NodesOf: 3}, "on 2 of 3 nodes"},
		{"a level that is no number of nodes", Reason{Nodes: 1}, "on 1 node"},
		{"no place is known", Reason{NodesOf: 3}, ""},
	} {
		if got := tt.r.On(node); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
