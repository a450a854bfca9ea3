package analyze

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

func TestParseUnschedulable(t *testing.T) {
	for _, tt := range []struct {
		message string
		want    string
		of      int
		why     string
	}{
		{"0/20 nodes are available: 20 Too many pods.", "20 Too many pods", 20, "nothing about making room"},
		{"0/20 nodes are available: 20 Too many pods. preemption: 0/20 nodes are available: 20 No preemption victims found for incoming pod.", "20 Too many pods", 20, "preemption was tried"},
		{"0/20 nodes are available: 20 Too many pods. no new claims to deallocate, preemption: 0/20 nodes are available: 20 No preemption victims found for incoming pod.", "20 Too many pods", 20, "claims were looked at before preemption"},
		{"0/20 nodes are available: 20 Too many pods. preemption: not eligible due to preemptionPolicy=Never..", "20 Too many pods", 20, "preemption is not allowed"},
		{"0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu. no new claims to deallocate, preemption: 0/5 nodes are available: 1 Preemption is not helpful for scheduling, 4 No preemption victims found for incoming pod.", "4 Insufficient cpu, 1 node(s) had untolerated taint(s)", 5, "the one for the most nodes comes first"},
		{"0/5 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 4 Insufficient memory. preemption: ...", "4 Insufficient memory, 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }", 5, "before 1.35 the taint was named"},
		{"0/3 nodes are available: 3 Insufficient cpu, 3 Insufficient memory.", "3 Insufficient cpu, 3 Insufficient memory", 3, "a node may lack several things: the scheduler's order stays"},
		{"0/21 nodes are available: 1 Insufficient example.com/gpu, 12 Insufficient cpu, 8 Too many pods.", "12 Insufficient cpu, 8 Too many pods, 1 Insufficient example.com/gpu", 21, "resources have points in their names"},
		{"0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints (missing required label).", "2 node(s) didn't match pod topology spread constraints (missing required label)", 2, "parentheses"},
		{"0/2 nodes are available: 2 node(s) said no, and meant it.", "2 node(s) said no, and meant it", 2, "a comma within a plugin's reason"},
		{"0/2 nodes are available: 2 node(s) said no", "2 node(s) said no", 2, "without its full stop"},
		{`0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`, "", 0, "a reason for the pod, not for nodes"},
		{"0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", "", 0, "another one"},
		{"no nodes available to schedule pods", "", 0, "a cluster without nodes"},
		{"3/3 nodes are available: 3 Too many pods.", "", 0, "no such message"},
		{"0/99999999999999999999 nodes are available: 3 Too many pods.", "", 0, "no such number of nodes"},
		{"0/3 nodes are available: 99999999999999999999 Too many pods.", "", 0, "no such count"},
		{"0/3 nodes are available: -3 Too many pods.", "", 0, "no such count either"},
		{"0/3 nodes are available: ", "", 0, "no reason"},
		{"", "", 0, "no message"},
	} {
		counts, of := parseUnschedulable(tt.message)
		var words []string
		for _, c := range counts {
			words = append(words, fmt.Sprintf("%d %s", c.nodes, c.reason))
		}
		if got := strings.Join(words, ", "); got != tt.want || of != tt.of {
			t.Errorf("%s: %q of %d, want %q of %d", tt.why, got, of, tt.want, tt.of)
		}
	}
}

// Any message that is put together as the scheduler puts it together is taken
// apart again.
func TestParseUnschedulableTakesApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	known := []string{"Too many pods", "Insufficient cpu", "Insufficient nvidia.com/gpu", "node(s) had untolerated taint(s)", "node(s) didn't match Pod's node affinity/selector", "node(s) were unschedulable"}
	after := []string{"", " preemption: 0/7 nodes are available: 7 No preemption victims found for incoming pod.", " no new claims to deallocate, preemption: 0/7 nodes are available: 7 Preemption is not helpful for scheduling."}
	for range 500 {
		want := map[string]int{}
		for range 1 + rng.IntN(4) {
			want[known[rng.IntN(len(known))]] = 1 + rng.IntN(5000)
		}
		var parts []string
		for reason, n := range want {
			parts = append(parts, fmt.Sprintf("%v %v", n, reason))
		}
		slices.Sort(parts)
		message := fmt.Sprintf("0/5000 nodes are available: %s.%s", strings.Join(parts, ", "), after[rng.IntN(len(after))])
		counts, of := parseUnschedulable(message)
		if of != 5000 || len(counts) != len(want) {
			t.Fatalf("%q: %v of %d", message, counts, of)
		}
		for i, c := range counts {
			if want[c.reason] != c.nodes || i > 0 && counts[i-1].nodes < c.nodes {
				t.Fatalf("%q: %v", message, counts)
			}
		}
	}
}

func FuzzParseUnschedulable(f *testing.F) {
	f.Add("0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu. preemption: x")
	f.Add("0/2 nodes are available: 2 a, b, 3 c. no new claims to deallocate, preemption: y")
	f.Add("0/0 nodes are available: .")
	f.Fuzz(func(t *testing.T, message string) {
		counts, of := parseUnschedulable(message)
		if len(counts) == 0 && of != 0 {
			t.Errorf("%q: no reasons, but %d nodes", message, of)
		}
		for i, c := range counts {
			if c.reason == "" || c.nodes < 0 || i > 0 && c.nodes > counts[i-1].nodes {
				t.Errorf("%q: %v", message, counts)
			}
			if !strings.Contains(message, c.reason) {
				t.Errorf("%q: the reason %q is not in it", message, c.reason)
			}
		}
	})
}

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
		{"a: a a-a aa a", "ns/a", "NAME: NAME a-a aa NAME", "a name of one letter"},
		{"aaa aa", "ns/aa", "aaa NAME", "a name that begins within itself"},
		{"node-1 in node-1", "node-1/node-1", "NAME in NAME", "a namespace of the same name"},
		{"  the container is out of memory \n", "ns/a-1", "the container is out of memory", "stray spaces"},
		{"lookup web.ns-3.svc.cluster.local: no such host", "ns-3/web", "lookup NAME.NAMESPACE.svc.cluster.local: no such host", "a point ends a name, as in the name of a host"},
		{"version 1.2.3", "ns/a-1", "version 1.2.3", "three numbers are no address"},
		{"x", "", "x", "no object"},
		{"x", "a", "x", "an object without a namespace, such as a node"},
		{"x/ y", "/", "x/ y", "no name at all"},
		{"näme x ü", "ns/x", "näme NAME ü", "letters of more than a byte"},
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
		a, b := normalised("s"+word(), "n"+word()), normalised("s"+word(), "n"+word())
		if a != b {
			t.Fatalf("%q and %q", a, b)
		}
	}
}

func normalised(namespace, name string) string {
	text := strings.NewReplacer("$N", name, "$S", namespace).Replace(`ERROR: <$N_$S(0f8fad5b-d9cb-469f-a165-70867728950e)> "$S/$N": $N, $S!`)
	return normalise(text, namespace+"/"+name)
}

// What kept objects from getting there, grouped and counted.
func TestReasons(t *testing.T) {
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
				s.put(warning("a", "FailedCreatePodSandBox", "no address for a"))
				s.put(warning("b", "FailedCreatePodSandBox", "no address for b"))
				s.put(warning("b", "FailedMount", "no volume"))
				for range 5 {
					s.put(&record.KubeEvent{Object: "ns/a", Type: "Normal", Reason: "Pulled"})
				}
			},
			"2 FailedCreatePodSandBox on 1 of 20", "no address for NAME", "FailedCreatePodSandBox on 1 of 20 nodes",
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
			"1 NotReady", "no reason was told", "NotReady: no reason was told",
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
			again := s.end(record.EndTimeout, func(b *record.Step) { b.Places = 20 })
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
		if got := binding(c.Reasons); got != tt.binding {
			t.Errorf("%s: bound by %q, want %q", tt.why, got, tt.binding)
		}
	}
	if got := binding(nil); got != "" {
		t.Errorf("bound by %q, without any reason", got)
	}
}

// Warnings of one kind that name ever more objects do not fill the memory.
func TestWarningsAreBounded(t *testing.T) {
	s := newScript(t)
	s.begin(1)
	for i := range maxEventObjects + 10 {
		s.Add(record.Event{Step: 1, Body: &record.KubeEvent{Object: "ns/" + strconv.Itoa(i), Type: "Warning", Reason: "R", Message: "m"}})
	}
	g := s.current.events[eventKey{"R", "m"}]
	if g.count != maxEventObjects+10 || len(g.objects) != maxEventObjects {
		t.Errorf("%d warnings about %d objects", g.count, len(g.objects))
	}
}
