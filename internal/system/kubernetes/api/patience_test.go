package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// failsFirst is a server whose first answers are fail's, and the following ones
// those of an API server that has an object of run1.
func failsFirst(t *testing.T, times int64, fail http.HandlerFunc) (*Client, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= times {
			fail(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusConflict)
			w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`))
			return
		}
		w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"x","labels":{"` + LabelRun + `":"run1"}}}`))
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &asked
}

func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}

func answers(code int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
	}
}

// What passes is waited out, whoever asks: the API's own types as well as requests
// that are made here.
func TestWhatPassesIsWaitedOut(t *testing.T) {
	ring.Long(t, "it waits for pauses of seconds")
	t.Parallel()
	for _, tt := range []struct {
		why   string
		fail  http.HandlerFunc
		least time.Duration
	}{
		{"the server's own trouble", answers(500, ""), 0},
		{"not ready", answers(503, ""), 0},
		{"busy, and says when to come again", answers(429, "1"), time.Second},
		{"a proxy gave up", answers(504, ""), 0},
		{"a connection that is reset", reset, 0},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			c, asked := failsFirst(t, 2, tt.fail)
			begin := time.Now()
			if _, err := c.Typed.CoreV1().Namespaces().Get(context.Background(), "x", metav1.GetOptions{}); err != nil {
				t.Errorf("by the API's types: %v", err)
			}
			if took := time.Since(begin); took < tt.least {
				t.Errorf("it was asked again after %v", took)
			}
			if n := asked.Load(); n != 3 {
				t.Errorf("it was asked %d times, want 3", n)
			}
			c, _ = failsFirst(t, 2, tt.fail)
			if r, err := c.Call(context.Background(), http.MethodGet, "/x", nil); err != nil || r.Code != 200 {
				t.Errorf("by a request: %d, %v", r.Code, err)
			}
			c, _ = failsFirst(t, 1, tt.fail)
			if r, err := c.Try(context.Background(), http.MethodGet, "/x", nil, "", nil, new(bytes.Buffer)); err == nil && r.Code == 200 {
				t.Error("a single attempt was made again")
			}
		})
	}
}

// A creation whose answer was lost is settled by the name.
func TestALostCreationIsSettled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, run string
		ours     bool
	}{
		{"it is the run's own", "run1", true},
		{"it is another's", "run2", false},
	} {
		c, _ := failsFirst(t, 1, reset)
		namespaces := c.Typed.CoreV1().Namespaces()
		_, err := namespaces.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
		err = Settle(err, tt.run, func() (metav1.Object, error) { return namespaces.Get(context.Background(), "x", metav1.GetOptions{}) })
		if tt.ours && err != nil || !tt.ours && !apierrors.IsAlreadyExists(err) {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// A creation that another writer overtook, over the use of a quota perhaps, is made
// again; that its name is taken is an answer.
func TestACreationThatWasOvertakenIsMadeAgain(t *testing.T) {
	t.Parallel()
	c, asked := failsFirst(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
	})
	for n, create := range []func() error{
		func() error {
			_, err := c.Typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{}, metav1.CreateOptions{})
			return err
		},
		func() error {
			r, err := c.Do(t.Context(), http.MethodPost, "/api/v1/namespaces", nil, "", nil, new(bytes.Buffer))
			return cmp.Or(err, r.Err())
		},
	} {
		asked.Store(0)
		if err := create(); !apierrors.IsAlreadyExists(err) || asked.Load() != 2 {
			t.Errorf("%d: asked %d times: %v", n, asked.Load(), err)
		}
	}
	asked.Store(0)
	if r, err := c.Do(t.Context(), http.MethodPost, PodPath("a/b")+"/eviction", nil, "", nil, new(bytes.Buffer)); err != nil || r.Code != http.StatusConflict || asked.Load() != 1 {
		t.Errorf("an eviction, asked %d times: %d, %v", asked.Load(), r.Code, err)
	}
}

// Patience ends: by its bound, with the caller, and at once where nothing changes
// by waiting.
func TestPatienceEnds(t *testing.T) {
	ring.Long(t, "it waits for pauses of seconds")
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	c, _ := failsFirst(t, 1<<40, silent)
	c.Patience = 300 * time.Millisecond
	_, err := c.Typed.CoreV1().Namespaces().Get(context.Background(), "x", metav1.GetOptions{})
	var unreachable *UnreachableError
	if !errors.As(c.Unreachable(err), &unreachable) || !strings.Contains(err.Error(), "no answer for 300ms") {
		t.Errorf("a server that never answers: %v", err)
	}
	c, asked := failsFirst(t, 1<<40, answers(503, "1"))
	c.Patience = 1500 * time.Millisecond
	_, err = c.Typed.CoreV1().Namespaces().Get(context.Background(), "x", metav1.GetOptions{})
	if n := asked.Load(); !apierrors.IsServiceUnavailable(err) || n > 3 {
		t.Errorf("a server that is never ready, asked %d times: %v", n, err)
	}
	c, _ = failsFirst(t, 1<<40, silent)
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("a signal")) })
	begin := time.Now()
	if _, err = c.Call(ctx, http.MethodGet, "/x", nil); err == nil || err.Error() != "a signal" || time.Since(begin) > time.Second {
		t.Errorf("a caller that gave up, after %v: %v", time.Since(begin), err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	if c, err = NewClient(&rest.Config{Host: "http://" + nobody}, "test"); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	if _, err = c.Call(context.Background(), http.MethodGet, "/x", nil); err == nil || time.Since(begin) > time.Second {
		t.Errorf("nobody there, after %v: %v", time.Since(begin), err)
	}
}
