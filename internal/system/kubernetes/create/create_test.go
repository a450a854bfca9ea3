package create

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// senderOn creates objects at an API server that answers as handler says.
func senderOn(t *testing.T, handler http.HandlerFunc) *Sender {
	t.Helper()
	common, _ := kubetest.RunOn(t, handler)
	return senderOf(t, common)
}

func senderOf(t *testing.T, common *prepared.Run) *Sender {
	t.Helper()
	watch, err := follow.NewObserver(common, &follow.Ageing{Run: common}, time.Now, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	holdings := NewHoldings(common, nil)
	holdings.spaces["ns"] = true
	return NewSender(common, watch, holdings, nil, nil)
}

// What a configuration makes twice and nobody counts is there, as in kube-burner, if the run has made it.
func TestCreateWhatIsThere(t *testing.T) {
	t.Parallel()
	secret := manifest{path: "/api/v1/namespaces/ns/secrets", namespace: "ns", name: "a", kind: "Secret", slot: "Secret/ns/a"}
	for _, tt := range []struct {
		why, of string
		asItIs  bool
		units   int
		want    record.SlotOutcome
		notes   int
	}{
		{"its own", "run1", true, 0, record.SlotCreated, 1},
		{"somebody else's", "run2", true, 0, record.SlotFailed, 0},
		{"one that counts", "run1", true, 1, record.SlotFailed, 0},
		{"of a workload, whose names are its mistake", "run1", false, 0, record.SlotFailed, 0},
	} {
		common, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				kubetest.Answer(t, w, 200, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", Labels: map[string]string{api.LabelRun: tt.of}}})
				return
			}
			w.WriteHeader(http.StatusConflict)
		})
		common.Load.AsItIs = tt.asItIs
		sender, m := senderOf(t, common), secret
		m.units = tt.units
		for range 2 {
			if got := sender.create(t.Context(), &m, ""); got.Outcome != tt.want || got.Code != http.StatusConflict {
				t.Errorf("%s: %+v", tt.why, got)
			}
		}
		notes := 0
		for _, e := range sink.Events() {
			if _, is := e.Body.(*record.Note); is {
				notes++
			}
		}
		if notes != tt.notes {
			t.Errorf("%s: %d notes", tt.why, notes)
		}
	}
}

func podNamed(name, run string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u", Labels: map[string]string{api.LabelRun: run}}}
}

// Once the user has stopped the load nothing is tried again, and an attempt
// whose answer is open is settled still.
func TestCreateOfAStoppedLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	sender := senderOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			kubetest.Answer(t, w, 200, podNamed("a", "run1"))
			return
		}
		cancel()
		w.WriteHeader(503)
	})
	got := sender.create(ctx, &manifest{path: "/api/v1/namespaces/ns/pods", namespace: "ns", name: "a", kind: "Pod", slot: "ns/a", units: 1}, "")
	if got.Outcome != record.SlotCreated || got.Retries != 0 {
		t.Errorf("got %+v, want it settled as created without a further attempt", got)
	}
}

func TestCreateThroughTrouble(t *testing.T) {
	m := &manifest{path: "/api/v1/namespaces/ns/pods", namespace: "ns", name: "a", kind: "Pod", slot: "ns/a", units: 1, body: []byte("x"), contentType: api.ProtobufType}
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
			posts: func(t *testing.T, n int, w http.ResponseWriter) { kubetest.Answer(t, w, 201, podNamed("a", "run1")) },
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
				kubetest.Answer(t, w, 201, podNamed("a", "run1"))
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
					kubetest.Answer(t, w, 201, podNamed("a", "run1"))
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
				kubetest.Answer(t, w, 201, podNamed("a", "run1"))
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
			why: "who counts a quota's use was overtaken, after an answer that never came: it is tried again",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				switch n {
				case 1:
					hangUp(w)
				case 2:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(409)
					io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"Operation cannot be fulfilled on resourcequotas \"q\""}`)
				default:
					kubetest.Answer(t, w, 201, podNamed("a", "run1"))
				}
			},
			want: record.Slot{Outcome: record.SlotCreated, Code: 201, Retries: 2},
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
			get:  func(t *testing.T, w http.ResponseWriter) { kubetest.Answer(t, w, 200, podNamed("a", "run1")) },
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
			get:  func(t *testing.T, w http.ResponseWriter) { kubetest.Answer(t, w, 200, podNamed("a", "another")) },
			want: record.Slot{Outcome: record.SlotFailed, Code: 409, Retries: 1},
		},
		{
			why: "an answer that never came, and the name is gone before it is asked for: it may have been ours",
			posts: func(t *testing.T, n int, w http.ResponseWriter) {
				if n == 1 {
					hangUp(w)
					return
				}
				w.WriteHeader(409)
			},
			get:  func(t *testing.T, w http.ResponseWriter) { w.WriteHeader(404) },
			want: record.Slot{Outcome: record.SlotUnknown, Retries: 1},
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
			sender := senderOn(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					tt.get(t, w)
					return
				}
				io.Copy(io.Discard, r.Body)
				tt.posts(t, int(posts.Add(1)), w)
			})
			sender.levels = map[string]string{"uid-1": "workload-low"}
			got := sender.create(context.Background(), m, "")
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
