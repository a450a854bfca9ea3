package kubernetes

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A service answers, or the relay says why not; a relay that does not listen yet is asked again.
func TestRelayReaches(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.RawQuery != "to=10.0.0.1%3A80&to=%3A30080&within=1s" {
			http.Error(w, "connection refused by "+q.URL.RawQuery, http.StatusGatewayTimeout)
		}
	}))
	t.Cleanup(server.Close)
	var dials atomic.Int32
	r := &relay{namespace: "ns", name: "relay"}
	r.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return nil, net.ErrClosed
		}
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}}
	if err := r.reach(t.Context(), "10.0.0.1:80 :30080", time.Second); err != nil {
		t.Error(err)
	}
	if err := r.reach(t.Context(), "10.0.0.2:80", time.Second); err == nil || !strings.Contains(err.Error(), "no answer within 1s to pod ns/relay: connection refused") {
		t.Error(err)
	}
}
