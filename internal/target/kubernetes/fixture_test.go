package kubernetes

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/record"
)

// sinkOf collects events.
type sinkOf struct {
	mu     sync.Mutex
	events []record.Event
}

// Events are those that came so far.
func (s *sinkOf) Events() []record.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Append implements record.Sink.
func (s *sinkOf) Append(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// runOn is a run on an API server that answers as handler says, and what it puts
// on record.
func runOn(t *testing.T, handler http.HandlerFunc) (*shared, *sinkOf) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := newClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	sink := &sinkOf{}
	return &shared{client: c, load: &PreparedWorkload{RunID: "run1"}, sink: sink, clock: record.StartClock(time.Now), step: func() int { return 1 }}, sink
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
