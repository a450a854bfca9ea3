package load_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Several requests at once on a connection of HTTP/2, against Go's own server, whose
// own counts are the witness.
func TestManyStreams(t *testing.T) {
	suite.Long(t, "a load of many streams")
	for _, tt := range []struct {
		why         string
		most        uint32 // streams that the server takes
		connections int    // and how many at once are expected on each
		each        int
		page        int
		does        func(n int, w http.ResponseWriter, r *http.Request) // with the n-th request
		failed      string                                              // of every fiftieth, "" for none
	}{
		{"each connection has ten under way", 250, 2, 10, 1000, nil, ""},
		// It refuses what comes before it has said so.
		{"the server takes three", 3, 2, 3, 1000, nil, ""},
		{"pages that are longer than a frame", 250, 1, 10, 100_000, nil, ""},
		{"a request that hangs leaves the others alone", 250, 1, 10, 1000, func(_ int, _ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // reset by the client
		}, record.FailedTimeout},
		{"a stream that is reset does, too", 250, 1, 10, 1000, func(int, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, load.FailedReset},
		{"another status", 250, 1, 10, 1000, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "status 503"},
	} {
		var mu sync.Mutex
		count, faults := 0, 0
		under, most := make(map[string]int), make(map[string]int)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			count++
			n := count
			fault := tt.does != nil && n%50 == 0
			if fault {
				// Not counted as under way: that the client has ended one is seen
				// here after the next has begun.
				faults++
				mu.Unlock()
				tt.does(n, w, r)
				return
			}
			under[r.RemoteAddr]++
			most[r.RemoteAddr] = max(most[r.RemoteAddr], under[r.RemoteAddr])
			mu.Unlock()
			defer func() {
				mu.Lock()
				under[r.RemoteAddr]--
				mu.Unlock()
			}()
			time.Sleep(5 * time.Millisecond)
			_, _ = w.Write(make([]byte, tt.page))
		}))
		server.EnableHTTP2 = true
		server.Config.ErrorLog = nil
		if err := http2.ConfigureServer(server.Config, &http2.Server{MaxConcurrentStreams: tt.most}); err != nil {
			t.Fatal(err)
		}
		server.TLS = server.Config.TLSConfig
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		clock := record.StartClock(time.Now)
		g := load.New(load.Plan{
			Address: server.Listener.Addr().String(), TLS: &tls.Config{RootCAs: roots}, HTTP2: true, Streams: 10,
			Hosts: []load.Host{{Name: "example.com", Weight: 1}}, Method: "GET", Path: "/", Size: int64(tt.page),
		}, clock.Now, 1)
		sum := record.Window{Failed: make(map[string]int)}
		schedule := streams.Schedule{Value: float64(tt.connections), Begin: clock.Now(), Hold: 600 * time.Millisecond, Window: 200 * time.Millisecond, Timeout: 300 * time.Millisecond}
		if err := g.Run(context.Background(), schedule, func(w *record.Window) {
			sum.Intended, sum.Done, sum.Lost, sum.Retried = sum.Intended+w.Intended, sum.Done+w.Done, sum.Lost+w.Lost, sum.Retried+w.Retried
			for kind, n := range w.Failed {
				sum.Failed[kind] += n
			}
		}); err != nil {
			t.Fatal(err)
		}
		server.Close()
		mu.Lock()
		if sum.Intended != count || sum.Done != count-faults || sum.Lost > 0 || sum.Retried > 0 != (tt.most < 10) {
			t.Errorf("%s: %+v, where the server had %d requests, of which it failed %d", tt.why, sum, count, faults)
		}
		if tt.failed != "" && (faults == 0 || sum.Failed[tt.failed] != faults || len(sum.Failed) != 1) {
			t.Errorf("%s: failed %v, want %d times %q", tt.why, sum.Failed, faults, tt.failed)
		}
		if len(most) != tt.connections || g.Counts().Opened != int64(tt.connections) {
			t.Errorf("%s: %d connections were opened, and the server saw %v", tt.why, g.Counts().Opened, most)
		}
		for from, n := range most {
			if n != tt.each {
				t.Errorf("%s: %d requests at once on %s, want %d", tt.why, n, from, tt.each)
			}
		}
		mu.Unlock()
	}
}
