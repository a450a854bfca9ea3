package router_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// seen counts the requests of a server, by its own count.
type seen struct {
	mu     sync.Mutex
	counts map[string]int
}

// ServeHTTP implements http.Handler.
func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.counts[fmt.Sprintf("%s %s %s %q %s %d", r.Proto, r.Method, r.URL, r.Host, r.Header.Get("X-Token"), len(body))]++
	s.mu.Unlock()
	if r.URL.Path == "/none" {
		http.NotFound(w, r)
	}
}

// all returns the count of each request, without those before a load.
func (s *seen) all() (counts map[string]int, sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.counts {
		sum += n
	}
	return s.counts, sum
}

// A server that is not ours is loaded as its user's list says, and the server's own
// count agrees: plain, by TLS and HTTP/2, by IPv4 and IPv6.
func TestAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	const token = "token-that-nobody-may-see"
	list := "requests:\n- {path: '/a?b=c', weight: 3, headers: {X-Token: " + token + "}}\n- {path: /none, status: 404, host: other.test}\n- {path: /made, method: POST, body: '12345'}\n"
	if err := os.WriteFile(filepath.Join(p.Dir, "urls.yaml"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		why, address, proto string
		args                []string
	}{
		{"plain", "127.0.0.1:0", "HTTP/1.1", nil},
		{"TLS", "127.0.0.1:0", "HTTP/1.1", []string{"--set", "ca=ca.pem"}},
		{"IPv6", "[::1]:0", "HTTP/1.1", []string{"--set", "keepAlive=false"}},
		{"HTTP/2", "127.0.0.1:0", "HTTP/2.0", []string{"--set", "verify=false", "--set", "http=2"}},
	}[:suite.Size(2, 4)] {
		handler := &seen{counts: make(map[string]int)}
		l, err := net.Listen("tcp", tt.address)
		if err != nil {
			t.Logf("%s: not tried: %v", tt.why, err)
			continue
		}
		server := httptest.NewUnstartedServer(handler)
		server.Listener.Close()
		server.Listener = l
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		if server.EnableHTTP2 = tt.proto == "HTTP/2.0"; tt.proto == "HTTP/2.0" || tt.why == "TLS" {
			server.StartTLS()
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if err := os.WriteFile(filepath.Join(p.Dir, "ca.pem"), ca, 0o600); err != nil {
				t.Fatal(err)
			}
		} else {
			server.Start()
		}
		defer server.Close()
		out := strings.ReplaceAll(tt.why, "/", "")
		args := append([]string{"sweep", "http", "--out", out, "--axis", "rate", "--levels", "150", "--hold", "2s", "--set", "urls=urls.yaml", "--set", "server=" + server.URL, "--slo", "errors <= 0%"}, tt.args...)
		if tt.why == "TLS" {
			args[len(args)-3] = "achieved >= 1%" // other.test is not in the certificate
		}
		if got := p.Run(t, args...); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "was not confirmed") {
			t.Errorf("%s, not confirmed: %+v", tt.why, got)
		}
		if _, n := handler.all(); n > 0 {
			t.Errorf("%s: a server that was not confirmed was asked", tt.why)
		}
		got := p.Run(t, append(args, "--yes", "--ignore-health")...)
		// Beside other tests arrivals may wait; what the server counts is right all the same.
		waited := got.Code == process.ExitFail && strings.Contains(got.Stdout, "achievedRate") || got.Code == process.ExitInconclusive || got.Code == process.ExitInvalid
		if got.Code != process.ExitPass && !waited || !strings.Contains(got.Stderr, "POST /made may change") {
			t.Errorf("%s: %+v", tt.why, got)
			continue
		}
		counts, sum := handler.all()
		done, warm, failed, intended := 0, 0, 0, 0
		for _, step := range e2e.ResultIn(t, filepath.Join(p.Dir, out)).Steps { // a hold that does not tell is made again
			done, warm, intended = done+step.Requests.Done, warm+step.Arrivals.WarmUp, intended+step.Requests.Intended
			if tt.why == "TLS" {
				failed += step.Requests.FailedAll()
			}
		}
		if probes := 2; tt.why != "TLS" && (sum < done+warm+probes-1 || sum > done+warm+probes) || failed > intended/2 {
			t.Errorf("%s: the server counts %d requests; %d were done in the hold, %d came before, and %d were tried first", tt.why, sum, done, warm, 2)
		}
		want := fmt.Sprintf("%s GET /a?b=c %q %s 0", tt.proto, strings.TrimPrefix(strings.TrimPrefix(server.URL, "https://"), "http://"), token)
		if n := counts[want]; n < sum*4/10 || n > sum*8/10 {
			t.Errorf("%s: %q is %d of %d, of which it has three fifths by weight: %v", tt.why, want, n, sum, counts)
		}
		if grep := p.Dir + "/" + out; contains(t, grep, token) {
			t.Errorf("%s: the record holds the token", tt.why)
		}
	}
}

// contains reports whether a file below a directory holds a text.
func contains(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var data []byte
			data, err = os.ReadFile(path)
			found = found || strings.Contains(string(data), text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What would load a server wrongly is refused before anything is asked of it, and a
// closed loop keeps to the pace.
func TestAServersBounds(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	handler := &seen{counts: make(map[string]int)}
	server := httptest.NewServer(handler)
	defer server.Close()
	at := "server=" + server.URL
	for _, tt := range []struct {
		why  string
		args []string
		want string
	}{
		{"no server", []string{"--levels", "1"}, "no server is named"},
		{"beyond the pace", []string{"--axis", "rate", "--levels", "500", "--set", at}, "--set maxRate=500"},
		{"HTTP/2 without TLS", []string{"--levels", "1", "--set", at, "--set", "http=2"}, "TLS alone"},
		{"no file", []string{"--levels", "1", "--set", at, "--set", "urls=nowhere.yaml"}, "nowhere.yaml"},
		{"no certificates", []string{"--levels", "1", "--set", "server=https://127.0.0.1:1", "--set", "ca=nowhere.pem"}, "nowhere.pem"},
	} {
		if got := p.Run(t, append([]string{"sweep", "http", "--yes"}, tt.args...)...); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, tt.want) {
			t.Errorf("%s: %+v", tt.why, got)
		}
	}
	if _, n := handler.all(); n > 0 {
		t.Errorf("%d requests were made", n)
	}
	got := p.Run(t, "sweep", "http", "--out", "paced", "--levels", "8", "--hold", "2s", "--set", at, "--set", "maxRate=50", "--yes")
	var step result.Step
	if got.Code == process.ExitPass {
		step = e2e.ResultIn(t, filepath.Join(p.Dir, "paced")).Steps[0]
	}
	if step.Requests == nil || step.Requests.Done < 80 || step.Requests.Done > 108 || !strings.Contains(got.Stdout+got.Stderr, "bound by maxRate") {
		t.Errorf("at 50 requests a second: %+v %+v", step.Requests, got)
	}
}

// A server that ends under the load is asked no further: a guard stops the step, and the
// run ends with that result once the server has not come back.
func TestAServerThatEnds(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	var server *httptest.Server
	var once sync.Once
	answered := atomic.Int64{}
	server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if answered.Add(1) == 500 {
			once.Do(func() { server.Listener.Close(); go server.CloseClientConnections() })
		}
	}))
	defer server.Close()
	got := p.Run(t, "sweep", "http", "--out", "ended", "--axis", "rate", "--levels", "100,150,200", "--hold", "5s", "--set", "server="+server.URL, "--yes")
	r := e2e.ResultIn(t, filepath.Join(p.Dir, "ended"))
	last := r.Steps[len(r.Steps)-1]
	if got.Code != process.ExitFail || last.Level > 100 || !strings.Contains(last.VerdictWhy, "guard:apiErrors") {
		t.Errorf("%d steps, the last of %g: %s (%s); %+v", len(r.Steps), last.Level, last.Verdict, last.VerdictWhy, got)
	}
	if want := "the server does not answer GET "; !strings.Contains(r.Why, want) || !strings.Contains(got.Stdout+got.Stderr, want) {
		t.Errorf("why: %s; %+v", r.Why, got)
	}
}
