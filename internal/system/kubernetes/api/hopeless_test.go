package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/system"
)

// asked are ways to ask an API server: by its own types and by requests made here.
func asked() map[string]func(context.Context, *Client) error {
	return map[string]func(context.Context, *Client) error{
		"by the API's types": func(ctx context.Context, c *Client) error {
			_, err := c.Typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{}, metav1.CreateOptions{})
			return err
		},
		"by a request": func(ctx context.Context, c *Client) error {
			r, err := c.Do(ctx, http.MethodPost, "/api/v1/namespaces", nil, "", []byte("{}"), new(bytes.Buffer))
			if err == nil {
				err = r.Err()
			}
			return err
		},
	}
}

// loginBy is a configuration that logs in by a shell script, and counts its runs in a
// file.
func loginBy(t *testing.T, host, script string) (config *rest.Config, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	program, count := filepath.Join(dir, "login"), filepath.Join(dir, "runs")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho >> "+count+"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	config = &rest.Config{Host: host, ExecProvider: &clientcmdapi.ExecConfig{Command: program, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	return config, func() int {
		text, _ := os.ReadFile(count)
		return bytes.Count(text, []byte("\n"))
	}
}

const credentials = `echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"}}'
`

// A login program that fails runs once, however many requests wait for it, and the error
// has its exit code.
func TestAFailedLoginIsReportedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ why, script, wants string }{
		{"it fails", "exit 3\n", "failed with exit code 3"},
		{"it prints something else", "echo hello\n", "decoding stdout"},
		{"it prints nothing", "exit 0\n", "plugin returned version"},
		{"it is ended by a signal", "kill -9 $$\n", "failed with exit code -1"},
	} {
		for how, ask := range asked() {
			config, runs := loginBy(t, "https://127.0.0.1:1", tt.script)
			c, err := NewClient(config, "test")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					err := c.Unreachable(ask(t.Context(), c))
					var failed *LoginError
					var unreachable *UnreachableError
					var unable *system.UnableError
					if !errors.As(err, &failed) || !errors.As(err, &unreachable) || !errors.As(err, &unable) || !strings.Contains(unable.Hint, config.ExecProvider.Command) ||
						!strings.Contains(err.Error(), "log in by "+config.ExecProvider.Command+": ") || !strings.Contains(err.Error(), tt.wants) {
						t.Errorf("%s, %s: %v, want %q", tt.why, how, err, tt.wants)
					}
				})
			}
			wg.Wait()
			if n := runs(); n != 1 {
				t.Errorf("%s, %s: it was run %d times", tt.why, how, n)
			}
		}
	}
}

// A login program that does not end keeps nobody longer than a request may take.
func TestALoginThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	config, _ := loginBy(t, "https://127.0.0.1:1", "")
	pipe, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer hold.Close()
	script := fmt.Sprintf("#!/bin/sh\nread x < /proc/%d/fd/%d\n", os.Getpid(), pipe.Fd())
	if err := os.WriteFile(config.ExecProvider.Command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	c.Patience = 200 * time.Millisecond
	for how, ask := range asked() {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := ask(ctx, c)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", how, err)
		}
	}
	for how, ask := range asked() {
		if err := ask(t.Context(), c); err == nil || !strings.Contains(err.Error(), "log in by "+config.ExecProvider.Command+": it has not ended") {
			t.Errorf("%s, after its patience: %v", how, err)
		}
	}
}

// A login that was renewed before, and fails, is tried again: its server may be back.
func TestALoginThatFailsLaterIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	defer server.Close()
	config, runs := loginBy(t, server.URL, "[ $(wc -l < $(dirname $0)/runs) -le 1 ] || exit 3\n"+credentials)
	config.TLSClientConfig.Insecure = true
	c, err := NewClient(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), http.MethodGet, "/version", nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.Try(t.Context(), http.MethodGet, "/version", nil, "", nil, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), "exit code 3") || c.hopeless(err) {
			t.Errorf("it is not tried again: %v", err)
		}
	}
	if n := runs(); n != 2 {
		t.Errorf("it was run %d times within its pause", n)
	}
}

// A proxy that is not there, or refuses, is named at once.
func TestAProxyIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	listener.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer refuses.Close()
	for _, tt := range []struct{ why, proxy, wants string }{
		{"nobody is there", "http://user:secret@" + nobody, "connection refused"},
		{"nobody is there, for SOCKS", "socks5://" + nobody, "connection refused"},
		{"it refuses", refuses.URL, "Proxy Authentication Required"},
		{"it speaks another protocol", strings.Replace(refuses.URL, "http", "https", 1), "first record does not look like a TLS handshake"},
	} {
		for how, ask := range asked() {
			at, err := url.Parse(tt.proxy)
			if err != nil {
				t.Fatal(err)
			}
			c, err := NewClient(&rest.Config{Host: "https://cluster.example", Proxy: http.ProxyURL(at)}, "test")
			if err != nil {
				t.Fatal(err)
			}
			c.Patience = time.Hour
			err = c.Unreachable(ask(t.Context(), c))
			var unable *system.UnableError
			if !errors.As(err, &unable) || !strings.Contains(unable.Hint, at.Redacted()) || !strings.Contains(err.Error(), "through the proxy "+at.Redacted()+": ") || !strings.Contains(err.Error(), tt.wants) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: %v, want %q", tt.why, how, err, tt.wants)
			}
		}
	}
}

// Whoever speaks another protocol than an API server is not asked again.
func TestAnotherProtocolIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	c, err := NewClient(&rest.Config{Host: strings.Replace(plain.URL, "http", "https", 1)}, "test")
	if err != nil {
		t.Fatal(err)
	}
	c.Patience = time.Hour
	if _, err := c.Call(t.Context(), http.MethodGet, "/version", nil); err == nil || !strings.Contains(err.Error(), "HTTP response to HTTPS client") {
		t.Errorf("%v", err)
	}
}

// A webhook for which nobody answers is named at once, with its configuration where the
// user may read that; one whose service has endpoints is asked again.
func TestAWebhookWithoutEndpointsIsNamed(t *testing.T) {
	t.Parallel()
	const (
		timeout = `failed to call webhook: Post \"https://hook.team.svc:443/?timeout=10s\": context deadline exceeded`
		refused = `failed to call webhook: Post \"https://hook.team.svc:443/?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused`
		none    = `failed to call webhook: Post \"https://hook.team.svc:443/?timeout=10s\": no endpoints available for service \"hook\"`
	)
	service := `{"items":[{"metadata":{"name":"team-hooks"},"webhooks":[{"name":"other"},{"name":"hook.team.example","clientConfig":{"service":{"namespace":"team","name":"hook"}}}]}]}`
	address := `{"items":[{"metadata":{"name":"team-hooks"},"webhooks":[{"name":"hook.team.example","clientConfig":{"url":"https://127.0.0.1:1"}}]}]}`
	const (
		empty    = `{"items":[]}`
		ready    = `{"items":[{"endpoints":[{"conditions":{"ready":false}},{"conditions":{"ready":true}}]}]}`
		notReady = `{"items":[{"endpoints":[{"conditions":{"ready":false}}]}]}`
	)
	for _, tt := range []struct {
		why, says                       string
		validating, mutating, endpoints string // "" is forbidden
		wants, remedy                   string // "" is that it is tried again
	}{
		{"no endpoints, and it shows as a timeout", timeout, service, empty, empty, "webhook hook.team.example of validatingwebhookconfiguration/team-hooks, which the API server asks before it takes this request: its service team/hook has no endpoints", "kubectl delete validatingwebhookconfiguration/team-hooks"},
		{"none that is ready, of one that mutates", timeout, empty, service, notReady, "webhook hook.team.example of mutatingwebhookconfiguration/team-hooks, which the API server asks before it takes this request: its service team/hook has no endpoints", "kubectl delete mutatingwebhookconfiguration/team-hooks"},
		{"the server says so to a user who sees nothing", none, "", "", "", `nobody answers for webhook hook.team.example, which the API server asks before it takes this request: no endpoints available for service "hook"`, "remove its configuration"},
		{"refused, and the endpoints are not to be seen", refused, service, empty, "", "of validatingwebhookconfiguration/team-hooks, which the API server asks before it takes this request: dial tcp 10.0.0.1:443: connect: connection refused", "kubectl delete"},
		{"an address that refuses", refused, address, empty, "", "of validatingwebhookconfiguration/team-hooks, which the API server asks before it takes this request: dial tcp 10.0.0.1:443: connect: connection refused", "kubectl delete"},
		{"it is slow", timeout, service, empty, ready, "", ""},
		{"it is being replaced", refused, service, empty, ready, "", ""},
		{"a timeout that nobody can look into", timeout, "", "", "", "", ""},
	} {
		for how, ask := range asked() {
			var posts atomic.Int64
			c := answering(t, func(w http.ResponseWriter, r *http.Request) {
				body := map[string]string{"validatingwebhookconfigurations": tt.validating, "mutatingwebhookconfigurations": tt.mutating, "endpointslices": tt.endpoints}[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
				code := http.StatusOK
				switch {
				case r.Method == http.MethodPost && posts.Add(1) > 1:
					code, body = http.StatusCreated, `{"kind":"Namespace","apiVersion":"v1"}`
				case r.Method == http.MethodPost:
					code, body = http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"Internal error occurred: failed calling webhook \"hook.team.example\": `+tt.says+`"}`
				case body == "":
					code, body = http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				w.Write([]byte(body))
			})
			err := c.Unreachable(ask(t.Context(), c))
			var unable *system.UnableError
			var unreachable *UnreachableError
			switch {
			case tt.wants == "" && (err != nil || posts.Load() != 2):
				t.Errorf("%s, %s: asked %d times: %v", tt.why, how, posts.Load(), err)
			case tt.wants != "" && (posts.Load() != 1 || !errors.As(err, &unable) || errors.As(err, &unreachable) || !strings.Contains(err.Error(), tt.wants) || !strings.Contains(unable.Hint, tt.remedy)):
				t.Errorf("%s, %s: asked %d times: %v, want %q with %q", tt.why, how, posts.Load(), err, tt.wants, tt.remedy)
			}
		}
	}
}

// answering is a client of a server that answers so.
func answering(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
