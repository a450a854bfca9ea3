package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// sinkOf collects events.
type sinkOf struct {
	mu     sync.Mutex
	events []record.Event
}

func (s *sinkOf) Append(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// targetOn is a target whose API server answers as handler says.
func targetOn(t *testing.T, handler http.HandlerFunc) *Target {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := newClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	common := &shared{client: c, load: &PreparedWorkload{RunID: "run1"}, sink: &sinkOf{}, clock: record.StartClock(time.Now), step: func() int { return 1 }}
	watch, err := newObserver(common, &ageing{shared: common}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	holdings := newHoldings(common)
	holdings.spaces["ns"] = true
	return &Target{shared: common, watch: watch, sender: &sender{shared: common, pods: watch.pods, holdings: holdings}}
}

// An axis that nobody knows is refused before anything is asked of the cluster.
func TestUnknownAxis(t *testing.T) {
	on := targetOn(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, axis := range []string{"", "vms"} {
		_, err := (&Cluster{client: on.client}).Open(t.Context(), PreparedWorkload{Axis: axis}, on.sink, on.clock, on.step, nil)
		var mistake *target.MistakeError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), fmt.Sprintf("%q, only along at-once, bulk, iterations, objects, pods-per-node, rate", axis)) {
			t.Errorf("axis %q: %v", axis, err)
		}
	}
	for axis, span := range map[string]time.Duration{observe.AxisPodsPerNode: time.Second, observe.AxisRate: 0} {
		on.load.Axis = axis
		if _, err := on.Raise(t.Context(), target.Level{Value: 1, Span: span}); err == nil || !strings.Contains(err.Error(), "span") {
			t.Errorf("axis %s with a span of %v: %v", axis, span, err)
		}
	}
}

// answer writes an object or a status as the API server encodes it.
func answer(t *testing.T, w http.ResponseWriter, code int, object interface {
	Marshal() ([]byte, error)
}) {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", protobufType)
	w.WriteHeader(code)
	// An envelope whose second field is the object.
	body := append([]byte("k8s\x00"), 0x12)
	n := len(raw)
	for n >= 0x80 {
		body = append(body, byte(n)|0x80)
		n >>= 7
	}
	body = append(body, byte(n))
	w.Write(append(body, raw...))
}

func podNamed(name, run string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u", Labels: map[string]string{LabelRun: run}}}
}

func TestCreateThroughTrouble(t *testing.T) {
	m := &manifest{path: "/api/v1/namespaces/ns/pods", namespace: "ns", name: "a", kind: "Pod", slot: "ns/a", units: 1, body: []byte("x"), contentType: protobufType}
	hangUp := func(w http.ResponseWriter) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	for _, tt := range []struct {
		why string
		// posts answers the n-th POST, from 1; get answers every GET.
		posts func(t *testing.T, n int, w http.ResponseWriter)
		get   func(t *testing.T, w http.ResponseWriter)
		want  record.Slot // Outcome, Code, Retries, Throttled
	}{
		{
			why:   "it succeeds at once",
			posts: func(t *testing.T, n int, w http.ResponseWriter) { answer(t, w, 201, podNamed("a", "run1")) },
			want:  record.Slot{Outcome: record.SlotCreated, Code: 201},
		},
		{
			why: "429 with Retry-After is waited out and counted",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				if n <= 2 {
					w.Header().Set("Retry-After", "0")
					w.Header().Set("X-Kubernetes-PF-PriorityLevel-UID", "uid-1")
					w.WriteHeader(429)
					io.WriteString(w, "Too many requests, please try again later.\n")
					return
				}
				answer(t, w, 201, podNamed("a", "run1"))
			},
			want: record.Slot{Outcome: record.SlotCreated, Code: 201, Retries: 2, Throttled: 2, TroubleCode: 429, Trouble: "HTTP 429: Too many requests, please try again later. (priority level workload-low)"},
		},
		{
			why: "a 429 is told of before other troubles, by the UID of a level that was made since",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				switch n {
				case 1:
					w.WriteHeader(500)
				case 2:
					w.Header().Set("X-Kubernetes-PF-PriorityLevel-UID", "uid-2")
					w.WriteHeader(429)
				default:
					answer(t, w, 201, podNamed("a", "run1"))
				}
			},
			want: record.Slot{Outcome: record.SlotCreated, Code: 201, Retries: 2, Throttled: 1, TroubleCode: 429, Trouble: "HTTP 429:  (priority level uid-2)"},
		},
		{
			why: "the server's own trouble passes",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				if n == 1 {
					w.WriteHeader(503)
					return
				}
				answer(t, w, 201, podNamed("a", "run1"))
			},
			want: record.Slot{Outcome: record.SlotCreated, Code: 201, Retries: 1, TroubleCode: 503, Trouble: "HTTP 503: "},
		},
		{
			why: "a refusal is final",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				w.WriteHeader(403)
				io.WriteString(w, "exceeded quota")
			},
			want: record.Slot{Outcome: record.SlotFailed, Code: 403},
		},
		{
			why: "an answer that never came is settled: the second attempt finds our own object",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				if n == 1 {
					hangUp(w)
					return
				}
				w.WriteHeader(409)
			},
			get:  func(t *testing.T, w http.ResponseWriter) { answer(t, w, 200, podNamed("a", "run1")) },
			want: record.Slot{Outcome: record.SlotCreated, Code: 201, Retries: 1},
		},
		{
			why: "an answer that never came is settled: the name is somebody else's",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				if n == 1 {
					hangUp(w)
					return
				}
				w.WriteHeader(409)
			},
			get:  func(t *testing.T, w http.ResponseWriter) { answer(t, w, 200, podNamed("a", "another")) },
			want: record.Slot{Outcome: record.SlotFailed, Code: 409, Retries: 1},
		},
		{
			why:   "a conflict at the first attempt is somebody else's object",
			posts: func(t *testing.T, n int, w http.ResponseWriter) { w.WriteHeader(409) },
			get:   func(t *testing.T, w http.ResponseWriter) { t.Error("asked for an object that cannot be ours") },
			want:  record.Slot{Outcome: record.SlotFailed, Code: 409},
		},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var posts atomic.Int64
			target := targetOn(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					tt.get(t, w)
					return
				}
				io.Copy(io.Discard, r.Body)
				tt.posts(t, int(posts.Add(1)), w)
			})
			target.sender.levels = map[string]string{"uid-1": "workload-low"}
			got := target.sender.create(context.Background(), m, "")
			if got.Outcome != tt.want.Outcome || got.Code != tt.want.Code || got.Retries != tt.want.Retries || got.Throttled != tt.want.Throttled {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if tt.want.Trouble != "" && (got.Trouble != tt.want.Trouble || got.TroubleCode != tt.want.TroubleCode) {
				t.Errorf("trouble %d %q, want %d %q", got.TroubleCode, got.Trouble, tt.want.TroubleCode, tt.want.Trouble)
			}
			if (got.Throttled > 0) != (got.ThrottledAt > 0) {
				t.Errorf("%d answers of 429, the first at %d", got.Throttled, got.ThrottledAt)
			}
			if (got.Retries > 0) != (got.Trouble != "") {
				t.Errorf("%d further attempts for %q", got.Retries, got.Trouble)
			}
			if (got.Outcome == record.SlotCreated) != (got.Error == "") {
				t.Errorf("outcome %s with the error %q", got.Outcome, got.Error)
			}
		})
	}
}

// Once the user has stopped the load nothing is tried again, and an attempt
// whose answer is open is settled still.
func TestCreateOfAStoppedLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	target := targetOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(t, w, 200, podNamed("a", "run1"))
			return
		}
		cancel()
		w.WriteHeader(503)
	})
	got := target.sender.create(ctx, &manifest{path: "/api/v1/namespaces/ns/pods", namespace: "ns", name: "a", kind: "Pod", slot: "ns/a", units: 1}, "")
	if got.Outcome != record.SlotCreated || got.Retries != 0 {
		t.Errorf("got %+v, want it settled as created without a further attempt", got)
	}
}

func TestAnswersTellTheirErrors(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Message: "exceeded quota: pods", Code: 403}
	var b bytes.Buffer
	status.SetGroupVersionKind(metav1.Unversioned.WithKind("Status"))
	if err := protobufSerializer.Encode(status, &b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		r    reply
		want string
		why  string
	}{
		{reply{code: 403, body: b.Bytes()}, "exceeded quota: pods", "a status in protobuf"},
		{reply{code: 403, body: []byte(`{"kind":"Status","apiVersion":"v1","message":"no such thing"}`)}, "no such thing", "a status in JSON"},
		{reply{code: 502, body: []byte("<html>Bad Gateway" + strings.Repeat(" ", 1000))}, "HTTP 502: <html>Bad Gateway", "a proxy's page"},
		{reply{code: 200}, "", "success"},
	} {
		err := tt.r.error()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}
