// Package kubetest serves tests of the Kubernetes target an API server and a run on it.
package kubetest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Sink collects events.
type Sink struct {
	mu     sync.Mutex
	events []record.Event
}

// Events returns the events so far.
func (s *Sink) Events() []record.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Append implements record.Sink.
func (s *Sink) Append(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// RunOn returns a run on an API server with this handler, and its record.
func RunOn(t *testing.T, handler http.HandlerFunc) (*prepared.Run, *Sink) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := api.NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	sink := &Sink{}
	return &prepared.Run{Client: c, Load: &prepared.Workload{RunID: "run1"}, Sink: sink, Clock: record.StartClock(time.Now), Step: func() int { return 1 }}, sink
}

// Answer writes an object or a status as the API server encodes it.
func Answer(t *testing.T, w http.ResponseWriter, code int, object interface {
	Marshal() ([]byte, error)
}) {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", api.ProtobufType)
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
