package simnode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// apiServer serves the player: pods and events in memory, behind a client's
// transport, so that it works within testing/synctest.
type apiServer struct {
	t       *testing.T
	mu      sync.Mutex
	began   time.Time
	version int
	pods    map[string]*corev1.Pod
	log     []string // what changed, with the time since began
	events  []corev1.Event
	slow    time.Duration     // how long a write takes
	fail    []int             // status codes of the next writes, 0 for none
	watched func(corev1.Pod)  // gets changed pods, or nil
	before  func(*corev1.Pod) // what happens to a pod just before its next write, once
}

func newAPIServer(t *testing.T) *apiServer {
	return &apiServer{t: t, began: time.Now(), version: 100, pods: map[string]*corev1.Pod{}}
}

func (a *apiServer) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: a, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// put stores a pod in a new version and returns it as the server has it.
func (a *apiServer) put(pod *corev1.Pod) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	pod = pod.DeepCopy()
	pod.ResourceVersion = strconv.Itoa(a.version)
	a.pods[pod.Name] = pod
	return pod.DeepCopy()
}

func (a *apiServer) note(format string, args ...any) {
	a.log = append(a.log, fmt.Sprintf("%v ", time.Since(a.began))+fmt.Sprintf(format, args...))
}

func reply(code int, body any) *http.Response {
	data, _ := json.Marshal(body)
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(bytes.NewReader(data)),
	}
}

func refuse(code int, reason metav1.StatusReason) *http.Response {
	return reply(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code)})
}

func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces ns pods name status
	if a.slow > 0 && r.Method != http.MethodGet {
		time.Sleep(a.slow)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(parts) < 6 || parts[4] != "pods" {
		if len(parts) == 5 && parts[4] == "events" {
			var event corev1.Event
			if err := json.Unmarshal(body, &event); err != nil {
				a.t.Error(err)
			}
			a.events = append(a.events, event)
			return reply(201, event), nil
		}
		return refuse(404, metav1.StatusReasonNotFound), nil
	}
	name := parts[5]
	if a.before != nil && r.Method != http.MethodGet {
		change := a.before
		a.before = nil
		if pod := a.pods[name]; pod != nil {
			a.version++
			change(pod)
			pod.ResourceVersion = strconv.Itoa(a.version)
		}
	}
	pod := a.pods[name]
	if len(a.fail) > 0 && r.Method != http.MethodGet {
		code := a.fail[0]
		a.fail = a.fail[1:]
		if code != 0 {
			a.note("%s refused", name)
			return refuse(code, metav1.StatusReasonInternalError), nil
		}
	}
	if pod == nil {
		return refuse(404, metav1.StatusReasonNotFound), nil
	}
	switch r.Method {
	case http.MethodGet:
		return reply(200, pod), nil
	case http.MethodDelete:
		var options metav1.DeleteOptions
		json.Unmarshal(body, &options)
		if options.Preconditions == nil || *options.Preconditions.UID != pod.UID {
			return refuse(409, metav1.StatusReasonConflict), nil
		}
		a.note("%s deleted", name)
		delete(a.pods, name)
		return reply(200, pod), nil
	case http.MethodPut:
		var written corev1.Pod
		if err := json.Unmarshal(body, &written); err != nil {
			a.t.Error(err)
		}
		if written.ResourceVersion != pod.ResourceVersion {
			a.note("%s conflict", name)
			return refuse(409, metav1.StatusReasonConflict), nil
		}
		a.version++
		written.ResourceVersion = strconv.Itoa(a.version)
		a.pods[name] = &written
		a.note("%s %s", name, summary(&written))
		if a.watched != nil {
			a.watched(written)
		}
		return reply(200, &written), nil
	}
	return refuse(405, metav1.StatusReasonMethodNotAllowed), nil
}

// playing is a Player at work on one simulated node.
func playing(t *testing.T, a *apiServer, latency dist.Dist) *Player {
	t.Helper()
	p := NewPlayer(a.client(), latency, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	p.ctx = ctx
	running.Go(func() { p.events.run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	p.SetNode(newNode(0, 110, 0, metav1.Now()), false)
	return p
}

func constant(d time.Duration) dist.Dist { return dist.Dist{Shape: dist.Constant, A: d} }

func annotated(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{protocol.StartLatencyAnnotation: value} }
}

func TestPodsStartWhenPlanted(t *testing.T) {
	const network = "pod Pending network initialized main:ContainerCreating"
	const ready = "pod Running network initialized containersReady ready main:Running"
	for _, tt := range []struct {
		latency dist.Dist
		pod     *corev1.Pod
		before  func(a *apiServer, p *Player)
		after   func(a *apiServer, p *Player) // 700 ms later
		want    []string
		left    int // pods that something is left to do for
		why     string
	}{
		{latency: dist.Dist{}, pod: boundPod(), want: []string{"0s " + ready}, why: "nothing planted"},
		{latency: constant(time.Second), pod: boundPod(), want: []string{"500ms " + network, "1s " + ready}, why: "the lab's latency"},
		{latency: constant(time.Second), pod: boundPod(annotated("3s")), want: []string{"1.5s " + network, "3s " + ready}, why: "the pod's own"},
		{latency: constant(time.Second), pod: boundPod(annotated("0s")), want: []string{"0s " + ready}, why: "none for this pod"},
		{latency: constant(time.Second), pod: boundPod(annotated("soon")), left: 1, why: "an annotation that means nothing is not taken for nothing"},
		{latency: constant(time.Second), pod: boundPod(annotated("soon")), after: func(a *apiServer, p *Player) {
			p.seeOne(a.put(boundPod(annotated("2s"))))
		}, want: []string{"1s " + network, "2s " + ready}, why: "an annotation that was corrected"},
		{latency: constant(time.Second), pod: boundPod(), before: func(a *apiServer, p *Player) { a.fail = []int{0, 500, 503} },
			want: []string{"500ms " + network, "1s pod refused", "1.05s pod refused", "1.15s " + ready}, why: "a server that fails is asked again, ever later"},
		{latency: constant(time.Second), pod: boundPod(), before: func(a *apiServer, p *Player) {
			a.before = func(pod *corev1.Pod) { pod.Labels = map[string]string{"changed": "meanwhile"} }
		}, want: []string{"500ms pod conflict", "500ms " + network, "1s " + ready}, why: "somebody changed the pod meanwhile"},
		{latency: constant(time.Second), pod: boundPod(), before: func(a *apiServer, p *Player) {
			a.before = func(pod *corev1.Pod) { pod.UID = "another" }
		}, want: []string{"500ms pod conflict"}, why: "another pod of the same name is not ours to report on"},
		{latency: constant(time.Second), pod: boundPod(), before: func(a *apiServer, p *Player) { delete(a.pods, "pod") }, why: "it is gone without news"},
		{latency: constant(time.Second), pod: boundPod(), after: func(a *apiServer, p *Player) {
			p.forget(a.pods["pod"])
			delete(a.pods, "pod")
		}, want: []string{"500ms " + network}, why: "it went while it was starting"},
		{latency: constant(time.Second), pod: boundPod(), after: func(a *apiServer, p *Player) {
			pod := a.pods["pod"].DeepCopy()
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			p.seeOne(a.put(pod))
		}, want: []string{"500ms " + network, "700ms pod deleted"}, why: "deleted while it was starting"},
		{latency: constant(time.Second), pod: boundPod(), after: func(a *apiServer, p *Player) {
			p.seeAll([]corev1.Pod{*a.pods["pod"]})
		}, want: []string{"500ms " + network, "1s " + ready}, why: "a gap in the watch changes nothing for those that are still there"},
		{latency: constant(time.Second), pod: boundPod(), after: func(a *apiServer, p *Player) { p.seeAll(nil) },
			want: []string{"500ms " + network}, why: "gone during a gap in the watch"},
		{latency: constant(time.Second), pod: boundPod(), after: func(a *apiServer, p *Player) {
			p.seeOne(boundPod()) // version 1, long overtaken
		}, want: []string{"500ms " + network, "1s " + ready}, why: "old news"},
		{latency: constant(time.Second), pod: boundPod(func(p *corev1.Pod) { reach(p, sandbox, place{host: "h", pod: "p"}, metav1.Now()) }),
			want: []string{"1s " + ready}, why: "a process that was restarted goes on, and does not report again"},
		{latency: constant(time.Second), pod: boundPod(func(p *corev1.Pod) { reach(p, started, place{host: "h", pod: "p"}, metav1.Now()) }),
			why: "it runs already"},
		{latency: dist.Dist{}, pod: boundPod(func(p *corev1.Pod) { p.Spec.NodeName = "real" }), before: func(a *apiServer, p *Player) {
			p.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}, false)
		}, why: "a kubelet looks after it"},
		{latency: dist.Dist{}, pod: boundPod(func(p *corev1.Pod) { p.Spec.NodeName = NodeName(5) }), why: "its node is unknown yet"},
		{latency: dist.Dist{}, pod: boundPod(func(p *corev1.Pod) { p.Spec.NodeName = NodeName(5) }), after: func(a *apiServer, p *Player) {
			p.SetNode(newNode(5, 110, 0, metav1.Now()), false)
		}, want: []string{"700ms " + ready}, why: "its node came to be known"},
		{latency: dist.Dist{}, pod: boundPod(withGate), after: func(a *apiServer, p *Player) {
			pod := a.pods["pod"].DeepCopy()
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue})
			p.seeOne(a.put(pod))
		}, want: []string{"0s pod Running network initialized containersReady main:Running", "700ms " + ready}, why: "a readiness gate that is opened later"},
		{latency: dist.Dist{}, pod: boundPod(func(p *corev1.Pod) { p.ResourceVersion = "x" }), why: "a version that is no number is no crash"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPIServer(t)
				p := playing(t, a, tt.latency)
				pod := tt.pod
				if pod.ResourceVersion == "1" {
					pod = a.put(pod)
				}
				if tt.before != nil {
					tt.before(a, p)
				}
				p.seeOne(pod)
				time.Sleep(700 * time.Millisecond)
				synctest.Wait()
				if tt.after != nil {
					tt.after(a, p)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if !slices.Equal(a.log, tt.want) {
					t.Errorf("\n%s\nwant\n%s", strings.Join(a.log, "\n"), strings.Join(tt.want, "\n"))
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				if len(p.plays) != tt.left {
					t.Errorf("%d pods are held on to, want %d", len(p.plays), tt.left)
				}
				for uid, known := range p.plays {
					if known.timer != nil {
						t.Errorf("pod %s is still scheduled", uid)
					}
				}
			})
		})
	}
}

// What is planted is when others see it: the time that a quick write takes is
// part of the latency, not added to it. What a busy machine adds is not hidden.
func TestWritesAreAllowedFor(t *testing.T) {
	for _, tt := range []struct {
		slow, first, later time.Duration
		why                string
	}{
		{0, 0, 0, "writes that take no time"},
		{4 * time.Millisecond, 4 * time.Millisecond, 0, "quick ones; of the first pod's nothing is known"},
		{40 * time.Millisecond, 40 * time.Millisecond, 40*time.Millisecond - mostAhead, "those of a busy machine"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newAPIServer(t)
			a.slow = tt.slow
			p := playing(t, a, constant(time.Second))
			late := func(i int) time.Duration {
				pod := boundPod(func(p *corev1.Pod) { p.Name = fmt.Sprint("pod-", i); p.UID = types.UID(p.Name) })
				began := time.Now()
				var took time.Duration
				a.watched = func(pod corev1.Pod) {
					if isTrue(&pod, corev1.PodReady) {
						took = time.Since(began)
					}
				}
				p.seeOne(a.put(pod))
				time.Sleep(2 * time.Second)
				synctest.Wait()
				return took - time.Second
			}
			if got := late(0); got != tt.first {
				t.Errorf("%s: the first pod is late by %v, want %v", tt.why, got, tt.first)
			}
			for i := 1; i < 20; i++ {
				late(i)
			}
			if got := late(20); got != tt.later {
				t.Errorf("%s: later ones are late by %v, want %v", tt.why, got, tt.later)
			}
		})
	}
}

// A pod that started publishes what kubelets publish of each container.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPIServer(t)
		p := playing(t, a, constant(time.Second))
		p.seeOne(a.put(boundPod(withInit)))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		var got []string
		names := map[string]bool{}
		for _, e := range a.events {
			got = append(got, fmt.Sprintf("%s %s %v", e.InvolvedObject.FieldPath, e.Reason, e.FirstTimestamp.Sub(a.began.Truncate(time.Second))))
			if names[e.Name] || e.Type != corev1.EventTypeNormal || e.InvolvedObject.UID != "uid" || e.InvolvedObject.Kind != "Pod" || e.Source.Host != NodeName(0) || e.Source.Component != "kubelet" {
				t.Errorf("event %+v", e)
			}
			names[e.Name] = true
		}
		want := []string{
			"spec.initContainers{init} Pulled 0s", "spec.initContainers{init} Created 0s", "spec.initContainers{init} Started 0s",
			"spec.containers{main} Pulled 1s", "spec.containers{main} Created 1s", "spec.containers{main} Started 1s",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		a.events = nil
		p.seeOne(a.put(boundPod(annotated("soon"), func(p *corev1.Pod) { p.Name, p.UID = "bad", "bad" })))
		synctest.Wait()
		if len(a.events) != 1 || a.events[0].Type != corev1.EventTypeWarning || a.events[0].Reason != "InvalidStartLatency" || !strings.Contains(a.events[0].Message, `"soon"`) {
			t.Errorf("of an annotation that means nothing: %+v", a.events)
		}

		a.events = nil
		p.seeOne(a.put(boundPod(withInit, annotated("constant:0s"), func(p *corev1.Pod) { p.Name, p.UID = "atonce", "atonce" })))
		synctest.Wait()
		if len(a.events) != len(want) {
			t.Errorf("of a pod that starts at once with an init container: %d events, want %d", len(a.events), len(want))
		}
	})
}

func TestAddressesOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPIServer(t)
		p := playing(t, a, dist.Dist{})
		p.seeAll([]corev1.Pod{*a.put(boundPod(func(p *corev1.Pod) {
			p.Name, p.UID, p.Status.PodIP = "old", "old", "10.128.0.7"
			reach(p, started, place{host: "h", pod: "p"}, metav1.Now())
		}))})
		for _, name := range []string{"one", "two"} {
			p.seeOne(a.put(boundPod(func(p *corev1.Pod) { p.Name, p.UID = name, types.UID(name) })))
			synctest.Wait()
		}
		p.seeOne(a.put(boundPod(func(p *corev1.Pod) { p.Name, p.UID, p.Spec.HostNetwork = "host", "host", true })))
		synctest.Wait()
		for name, want := range map[string]string{"one": "10.128.0.8", "two": "10.128.0.9", "host": nodeAddress(0)} {
			if s := a.pods[name].Status; s.PodIP != want || s.HostIP != nodeAddress(0) {
				t.Errorf("%s has %s on %s, want %s on %s", name, s.PodIP, s.HostIP, want, nodeAddress(0))
			}
		}
	})
}

// views collects what follow tells.
type views struct {
	mu  sync.Mutex
	got []string
}

func (v *views) add(s string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.got = append(v.got, s)
}
func (v *views) seeOne(p *corev1.Pod) { v.add("one " + p.Name) }
func (v *views) forget(p *corev1.Pod) { v.add("forget " + p.Name) }
func (v *views) seeAll(pods []corev1.Pod) {
	names := ""
	for _, p := range pods {
		names += " " + p.Name
	}
	v.add("all" + names)
}

// script answers each list and watch of pods with what comes next, and then no
// more.
type script struct {
	mu      sync.Mutex
	answers []func() *http.Response
	asked   []string
	began   time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	q := r.URL.Query()
	kind := "list"
	if q.Get("watch") != "" {
		kind = "watch"
	}
	s.asked = append(s.asked, fmt.Sprintf("%v %s %s", time.Since(s.began), kind, q.Get("resourceVersion")))
	if q.Get("fieldSelector") != "spec.nodeName!=" {
		s.asked = append(s.asked, "of "+q.Get("fieldSelector"))
	}
	var answer func() *http.Response
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	if answer == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return answer(), nil
}

// Following pods goes on where a watch broke, at once, and loses nothing.
func TestFollow(t *testing.T) {
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	list := func(version string, pods ...corev1.Pod) func() *http.Response {
		return func() *http.Response {
			return reply(200, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: pods})
		}
	}
	event := func(kind string, object any) string {
		data, _ := json.Marshal(map[string]any{"type": kind, "object": object})
		return string(data) + "\n"
	}
	watch := func(events ...string) func() *http.Response {
		return func() *http.Response {
			r := reply(200, nil)
			r.Body = io.NopCloser(strings.NewReader(strings.Join(events, "")))
			return r
		}
	}
	gone := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: 410}
	down := func() *http.Response { return refuse(503, metav1.StatusReasonServiceUnavailable) }
	for _, tt := range []struct {
		answers []func() *http.Response
		asked   []string
		seen    []string
		why     string
	}{
		{[]func() *http.Response{list("5", pod("a", "3"), pod("b", "5")), watch(event("ADDED", pod("c", "6")), event("MODIFIED", pod("a", "7")), event("DELETED", pod("b", "8")))},
			[]string{"0s list 0", "0s watch 5", "0s watch 8"}, []string{"all a b", "one c", "one a", "forget b"}, "a watch that ends is gone on with at once"},
		{[]func() *http.Response{list("5"), watch(event("BOOKMARK", pod("", "9")))},
			[]string{"0s list 0", "0s watch 5", "0s watch 9"}, []string{"all"}, "a bookmark is where to go on, and no pod"},
		{[]func() *http.Response{list("5"), watch(event("ADDED", pod("a", "6")), event("ERROR", gone)), list("20", pod("b", "12"))},
			[]string{"0s list 0", "0s watch 5", "0s list 6", "0s watch 20"}, []string{"all", "one a", "all b"}, "what was missed is listed, no older than what was seen"},
		{[]func() *http.Response{list("5"), func() *http.Response { return reply(410, gone) }, list("20")},
			[]string{"0s list 0", "0s watch 5", "0s list 5", "0s watch 20"}, []string{"all", "all"}, "a version that is forgotten at the outset"},
		{[]func() *http.Response{down, list("5"), down, watch()},
			[]string{"0s list 0", "100ms list 0", "100ms watch 5", "200ms watch 5", "200ms watch 5"}, []string{"all"}, "a server that is away is asked again after a pause"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: tt.answers, began: time.Now()}
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
				if err != nil {
					t.Fatal(err)
				}
				var v views
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					follow(ctx, client, &v, slog.New(slog.DiscardHandler))
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				cancel()
				<-done
				if !slices.Equal(s.asked, tt.asked) {
					t.Errorf("asked %q, want %q", s.asked, tt.asked)
				}
				if !slices.Equal(v.got, tt.seen) {
					t.Errorf("saw %q, want %q", v.got, tt.seen)
				}
			})
		})
	}
}
