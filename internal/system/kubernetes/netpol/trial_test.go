package netpol

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/record"
)

// program is one that pods run: it takes orders once, and tells what it has reached.
type program struct {
	mu      sync.Mutex
	orders  map[string][]agent.Order
	results map[string][]agent.Connection
	broken  bool
}

func (p *program) reach(from, to string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[from] = append(p.results[from], agent.Connection{Address: to, Port: served, At: at})
}

// forward returns the way to a pod by its name, "p-I" in namespace "n-N".
func (p *program) forward(t *testing.T) func(namespace, pod string) (Forward, error) {
	return func(namespace, pod string) (Forward, error) {
		address := strings.TrimPrefix(namespace, "n-") + "." + strings.TrimPrefix(pod, "p-")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			p.mu.Lock()
			defer p.mu.Unlock()
			switch {
			case p.broken:
				http.Error(w, "no", http.StatusInternalServerError)
			case q.URL.Path == "/check" && q.Method == http.MethodPost:
				var list []agent.Order
				if err := json.NewDecoder(q.Body).Decode(&list); err != nil {
					t.Error(err)
				}
				p.orders[address] = list
			case q.URL.Path == "/results":
				list := p.results[address]
				if list == nil {
					list = []agent.Connection{}
				}
				json.NewEncoder(w).Encode(list)
			default:
				t.Errorf("%s %s", q.Method, q.URL)
			}
		}))
		t.Cleanup(server.Close)
		return dialer(server.Listener.Addr().String()), nil
	}
}

func listing(namespaces []corev1.Namespace, pods []corev1.Pod) func(context.Context) ([]corev1.Namespace, []corev1.Pod, error) {
	return func(context.Context) ([]corev1.Namespace, []corev1.Pod, error) { return namespaces, pods, nil }
}

type dialer string

func (d dialer) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", string(d))
}
func (dialer) Close() {}

// trial returns a trial of policies a, b, ..., begun at 0 s, and the clock's setter. Each is a specification.
func trial(t *testing.T, specs ...string) (tr *Trial, p *program, start time.Time, set func(time.Duration)) {
	start = time.Unix(1e9, 0)
	now := start
	var mu sync.Mutex
	p = &program{orders: make(map[string][]agent.Order), results: make(map[string][]agent.Connection)}
	namespaces, pods := world()
	tr = &Trial{Forward: p.forward(t), List: listing(namespaces, pods), Note: func(string) {}, Clock: record.StartClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	})}
	var policies []Policy
	for i, spec := range specs {
		policies = append(policies, Policy{Name: string(rune('a' + i)), Namespace: "n-0", Spec: specOf(t, spec)})
	}
	if err := tr.Begin(t.Context(), policies); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr, p, start, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = start.Add(d)
	}
}

// fromOne allows what pod 1 of the other namespace calls, fromBoth what both do.
const (
	fromOne  = "podSelector: {matchLabels: {num: '1'}}\ningress: [{from: [{namespaceSelector: {matchLabels: {odd: 'true'}}, podSelector: {matchLabels: {num: '1'}}}]}]"
	fromBoth = "podSelector: {matchLabels: {num: '1'}}\ningress: [{from: [{namespaceSelector: {matchLabels: {odd: 'true'}}}]}]"
)

// A policy counts when pods tell that they have made one and all of its connections, by this program's clock.
func TestTrial(t *testing.T) {
	t.Parallel()
	const s = record.Micros(1e6)
	for _, tt := range []struct {
		why      string
		specs    []string
		asked    []time.Duration          // for each policy
		reached  map[string]time.Duration // by the client, when it reached pod 1 of n-0
		skew     time.Duration            // of the pods' clocks
		policy   string
		one, all record.Micros
		says     string
	}{
		{"the first and the last connection", []string{fromBoth}, []time.Duration{time.Second}, map[string]time.Duration{"1.1": 2 * time.Second, "1.2": 3 * time.Second}, 0, "a", 2 * s, 3 * s, ""},
		{"one of two is not all", []string{fromBoth}, []time.Duration{time.Second}, map[string]time.Duration{"1.2": 3 * time.Second}, 0, "a", 3 * s, 0, ""},
		{"none", []string{fromBoth}, []time.Duration{time.Second}, nil, 0, "a", 0, 0, ""},
		{"a clock that is fast counts by the question", []string{fromOne}, []time.Duration{time.Second}, map[string]time.Duration{"1.1": 2 * time.Second}, time.Hour, "a", 10 * s, 10 * s, ""},
		{"and never before the request", []string{fromOne}, []time.Duration{time.Second}, map[string]time.Duration{"1.1": 2 * time.Second}, -time.Hour, "a", s, s, ""},
		{"what an earlier policy opened counts at once", []string{fromOne, fromBoth}, []time.Duration{time.Second, 20 * time.Second}, map[string]time.Duration{"1.1": 2 * time.Second}, 0, "b", 20 * s, 0, ""},
		{"what nothing had allowed measures nothing", []string{fromOne}, []time.Duration{20 * time.Second}, map[string]time.Duration{"1.1": 2 * time.Second}, 0, "a", 0, 0, "1.1 reached 0.1 before any policy allowed it"},
		{"no pods to try", []string{strings.Replace(fromOne, "'true'", "other", 1)}, []time.Duration{time.Second}, nil, 0, "a", 0, 0, "no connection between the pods"},
	} {
		tr, p, start, set := trial(t, tt.specs...)
		tr.Close() // this test asks by itself
		c := castOf(world())
		for from, at := range tt.reached {
			p.reach(from, "0.1", start.Add(at+tt.skew))
			p.reach(from, "9.9", start.Add(at)) // of nobody's
		}
		for i, at := range tt.asked {
			if set(at); at < 10*time.Second {
				tr.Ask(string(rune('a' + i)))
			}
		}
		set(10 * time.Second)
		for _, pod := range c.pods["n-1"] {
			if orders := p.orders[pod.Status.PodIP]; orders != nil {
				tr.hear(t.Context(), &client{namespace: "n-1", name: pod.Name, address: pod.Status.PodIP, orders: orders}, 1)
			}
		}
		for i, at := range tt.asked {
			if set(at); at >= 10*time.Second {
				tr.Ask(string(rune('a' + i)))
			}
		}
		for all, want := range map[bool]record.Micros{false: tt.one, true: tt.all} {
			tr.mu.Lock()
			got, ok, err := tr.reached(tt.policy, all)
			tr.mu.Unlock()
			if ok != (want > 0) || ok && got != want || (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: all %v: %v, %v, %v, want %v %q", tt.why, all, got, ok, err, want, tt.says)
			}
		}
	}
}

// A trial goes on by itself: whoever waits for a policy hears of its connections.
func TestATrialHears(t *testing.T) {
	t.Parallel()
	tr, p, start, set := trial(t, fromOne)
	if got := p.orders["1.1"]; len(p.orders) != 1 || len(got) != 1 || got[0].Policy != "a" || len(got[0].Addresses) != 1 {
		t.Errorf("%v", p.orders)
	}
	set(time.Second)
	tr.Ask("a")
	set(2 * time.Second)
	p.reach("1.1", "0.1", start.Add(2*time.Second))
	if at, err := tr.Allowed(t.Context(), "a", true); err != nil || at != 2e6 {
		t.Errorf("%v, %v", at, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.Allowed(ended, "unknown", true); err == nil {
		t.Error("a policy that is unknown was allowed")
	}
}

// Pods without the program end the run before its policies, and so do those with orders of another job.
func TestPodsThatTakeNoOrders(t *testing.T) {
	t.Parallel()
	tr, p, _, _ := trial(t, fromOne)
	namespaces, pods := world()
	again := func() string {
		tr.List = listing(namespaces, pods)
		err := tr.Begin(t.Context(), []Policy{{Name: "a", Namespace: "n-0", Spec: specOf(t, fromBoth)}})
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if got := again(); !strings.Contains(got, "pod n-1/p-1 has its orders already") {
		t.Error(got)
	}
	p.broken = true
	for i := range pods {
		pods[i].UID += "-new"
	}
	if got := again(); !strings.Contains(got, "at its port 9001: 500") {
		t.Error(got)
	}
	var none *Trial
	none.Ask("a")
	none.Close()
}
