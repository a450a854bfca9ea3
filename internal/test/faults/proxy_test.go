package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// client returns a plain client by a kubeconfig.
func client(t *testing.T, kubeconfig string, change func(*rest.Config)) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0
	if change != nil {
		change(config)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newNamespace makes a namespace of the test's own.
func newNamespace(t *testing.T, kubeconfig string) string {
	t.Helper()
	namespace, err := client(t, kubeconfig, nil).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// Each fault is what a client sees, by both encodings and both versions of HTTP,
// and the proxy knows what has passed.
func TestFaultsAreMade(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it plants faults before a real API server")
	p := suite.Lab(t, "--nodes", "1")
	ways := map[string]func(*rest.Config){
		"JSON, HTTP/1.1": func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} },
		"protobuf, HTTP/2": func(c *rest.Config) {
			c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
		},
	}
	namespace := newNamespace(t, p.Kubeconfig)
	n := 0
	for _, tt := range []struct {
		why   string
		do    Fault
		made  bool                 // the API server has carried the request out
		check func(err error) bool // nil: the client waits for an answer until it gives up
	}{
		{"nothing", Fault{}, true, func(err error) bool { return err == nil }},
		{"a server's error", Status(500), false, apierrors.IsInternalError},
		{"unavailable", Status(503), false, apierrors.IsServiceUnavailable},
		{"its own timeout, after the fact", StatusAfter(504), true, apierrors.IsTimeout},
		{"too many, with a pause, after which client-go asks again", Busy(time.Second), true, func(err error) bool { return err == nil }},
		{"a conflict", Status(409), false, apierrors.IsConflict},
		{"reset before", ResetBefore(), false, func(err error) bool { return err != nil }},
		{"reset after", ResetAfter(), true, func(err error) bool { return err != nil }},
		{"slow", SlowBody(time.Second), true, func(err error) bool { return err == nil }},
		{"stalled", StalledBody(), true, nil},
		{"a black hole", BlackHole(), false, nil},
		{"cut for a second", NetworkCut(time.Second), true, func(err error) bool { return err == nil }},
		{"cut for long", NetworkCut(time.Hour), true, nil},
		{"an expired certificate", ExpiredCertificate(), false, func(err error) bool { return err != nil && strings.Contains(err.Error(), "expired") }},
	} {
		for way, change := range ways {
			n++
			name := fmt.Sprintf("fault-%d", n)
			t.Run(tt.why+" "+way, func(t *testing.T) {
				t.Parallel()
				plan := Plan{Rules: []Rule{{On: Creates("configmaps"), Do: tt.do, Most: 1}}}
				if tt.do == (Fault{}) {
					plan.Rules = nil
				}
				if tt.do.Kind == expired {
					plan.Rules[0].On = All()
				}
				proxy := Start(t, p.Kubeconfig, plan)
				ctx, check := t.Context(), tt.check
				if check == nil {
					ctx = secondAfter(t, proxy, tt.do)
					check = func(err error) bool { return errors.Is(err, context.Canceled) }
				}
				_, err := client(t, proxy.Kubeconfig, change).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(name), metav1.CreateOptions{})
				if !check(err) {
					t.Errorf("the client has seen %v", err)
				}
				counts := proxy.Counts()
				if tt.do.Code != 0 && counts.Answered("create", "configmaps", tt.do.Code) != 1 {
					t.Errorf("answers %v", counts.Answers)
				}
				if tt.do.Kind != "" && counts.Faults[tt.do.name()] != 1 {
					t.Errorf("faults %v", counts.Faults)
				}
				proxy.Restore()
				made := func() bool {
					_, err := client(t, p.Kubeconfig, nil).CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
					return err == nil
				}
				if tt.made {
					harness.Await(t, "the request to be carried out, and its answer to pass the proxy", func() bool {
						got := proxy.Counts().Created["configmaps"]
						return made() && len(got) == 1 && got[0] == namespace+"/"+name
					})
				} else if got := proxy.Counts().Created["configmaps"]; made() || len(got) != 0 {
					t.Errorf("it was created: %v", got)
				}
			})
		}
	}
}

// secondAfter returns a context that ends a second after a proxy has made a fault.
func secondAfter(t *testing.T, p *Proxy, fault Fault) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for p.Counts().Faults[fault.name()] == 0 {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
		time.AfterFunc(time.Second, cancel)
	}()
	return ctx
}

// Events of watches are what the rules make of them.
func TestEventsAreFaulted(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it plants faults before a real API server")
	p := suite.Lab(t, "--nodes", "1")
	direct := client(t, p.Kubeconfig, nil)
	for _, change := range []func(*rest.Config){
		func(c *rest.Config) { c.NextProtos = []string{"http/1.1"} },
		func(c *rest.Config) { c.ContentType = "application/vnd.kubernetes.protobuf" },
	} {
		for _, tt := range []struct {
			why  string
			do   Fault
			want string        // of the three objects, the second is hit
			late time.Duration // at least, for all
		}{
			{"nothing", Fault{Kind: late}, "a b c", 0},
			{"duplicated", Duplicate(), "a b b c", 0},
			{"swapped", Swap(), "a c b", 0},
			{"dropped", Drop(), "a c", 0},
			{"late", Late(time.Second), "a b c", time.Second},
			{"cut", Cut(), "a broken", 0},
			{"gone", Gone(), "a gone", 0},
			{"garbage", Garbage(), "a broken", 0},
			{"oversized", Oversized(), "a broken", 0},
			{"hanging", Hang(), "a", 0},
		} {
			t.Run(tt.why, func(t *testing.T) {
				proxy := Start(t, p.Kubeconfig, Plan{Rules: []Rule{{On: Match{Verb: "watch", Resource: "configmaps", Event: "ADDED"}, Do: tt.do, Nth: 2}}})
				namespace := newNamespace(t, p.Kubeconfig)
				w, err := client(t, proxy.Kubeconfig, change).CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				begun := time.Now()
				for _, name := range strings.Fields("a b c") {
					if _, err := direct.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap(name), metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if got := seen(w, len(strings.Fields(tt.want))); got != tt.want || time.Since(begun) < tt.late {
					t.Errorf("the client has seen %q after %v, want %q", got, time.Since(begun), tt.want)
				}
				if tt.do.Kind != hang {
					return
				}
				harness.Await(t, "the event at which the watch hangs", func() bool { return proxy.Counts().Faults[tt.do.name()] > 0 })
				select {
				case e := <-w.ResultChan():
					t.Errorf("a watch that hangs gives %+v", e)
				case <-time.After(100 * time.Millisecond):
				}
			})
		}
	}
}

// seen returns the first events of a watch, as many as asked.
func seen(w watch.Interface, most int) string {
	var got []string
	for len(got) < most {
		e, open := <-w.ResultChan()
		object, isMap := e.Object.(*corev1.ConfigMap)
		status, _ := e.Object.(*metav1.Status)
		switch {
		case !open:
			return strings.Join(append(got, "broken"), " ")
		case isMap:
			got = append(got, object.Name)
		case status != nil && status.Reason == metav1.StatusReasonExpired:
			got = append(got, "gone")
		default:
			got = append(got, "broken")
		}
	}
	return strings.Join(got, " ")
}

// What a seed draws of the nth that matches does not depend on anything else, and
// the bounds of a rule hold.
func TestRulesDrawFromTheirSeed(t *testing.T) {
	start := time.Unix(0, 0)
	draw := func(r Rule, seed uint64) (hit string) {
		d := &drawn{Rule: r, seed: seed}
		for i := range 1000 {
			if d.hits(start.Add(time.Duration(i) * time.Millisecond)) {
				hit += fmt.Sprint(i, " ")
			}
		}
		return hit
	}
	rule := Rule{Do: Status(503), Share: 0.05}
	if a, b := draw(rule, 1), draw(rule, 1); a != b || a == draw(rule, 2) {
		t.Errorf("seed 1 has drawn %s, then %s", a, b)
	}
	if n := len(strings.Fields(draw(rule, 1))); n < 30 || n > 70 {
		t.Errorf("%d of 1000 were hit, for 5%%", n)
	}
	if got := draw(Rule{Nth: 3}, 1); got != "2 " {
		t.Errorf("the third: %s", got)
	}
	if got := draw(Rule{Most: 2, From: 10 * time.Millisecond}, 1); got != "10 11 " {
		t.Errorf("two from 10 ms: %s", got)
	}
	if got := draw(Rule{Until: 2 * time.Millisecond}, 1); got != "0 1 " {
		t.Errorf("until 2 ms: %s", got)
	}
	if got, want := (Rule{On: Creates("pods"), Do: Busy(time.Second), Share: 0.05, Until: time.Minute}).String(), "429 with Retry-After (1s) on 5% of create pods, from 0s until 1m0s"; got != want {
		t.Errorf("a rule is %q, want %q", got, want)
	}
}
