package kubernetes

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// OpenShift's querier is found by its route, asked by the kubeconfig's token, and known
// by who signs the certificates of routes.
func TestThePrometheusOfOpenShift(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why        string
		config     rest.Config
		given      metrics.Access
		missing    string // what is not there
		token, err string
	}{
		{"by the kubeconfig's token", rest.Config{BearerToken: "of-the-user"}, metrics.Access{}, "", "of-the-user", ""},
		{"by one of a file", rest.Config{BearerTokenFile: token}, metrics.Access{}, "", "of-a-file", ""},
		{"by the user's own", rest.Config{BearerToken: "of-the-user"}, metrics.Access{Token: "given"}, "", "given", ""},
		{"by none", rest.Config{}, metrics.Access{}, "", "", "the kubeconfig has no token"},
		{"no OpenShift", rest.Config{BearerToken: "x"}, metrics.Access{}, "routes", "", "get route openshift-monitoring/thanos-querier"},
		{"any certificate", rest.Config{BearerToken: "of-the-user"}, metrics.Access{Insecure: true}, "configmaps", "of-the-user", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			var asked string
			querier := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Header.Get("Authorization")
				_, _ = io.WriteString(w, "{}")
			}))
			defer querier.Close()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Header.Get("Accept") != "application/json" || c.missing != "" && strings.Contains(r.URL.Path, c.missing):
					w.WriteHeader(http.StatusNotFound)
				case r.URL.Path == "/apis/route.openshift.io/v1/namespaces/openshift-monitoring/routes/thanos-querier":
					_, _ = io.WriteString(w, `{"kind":"Route","spec":{"host":"`+strings.TrimPrefix(querier.URL, "https://")+`"}}`)
				case r.URL.Path == "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert":
					_, _ = io.WriteString(w, `{"kind":"ConfigMap","data":{"ca-bundle.crt":"`+strings.ReplaceAll(certificate(querier), "\n", `\n`)+`"}}`)
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer server.Close()
			c.config.Host = server.URL
			client, err := api.NewClient(&c.config, "test")
			if err != nil {
				t.Fatal(err)
			}
			s := &session{cluster: &Cluster{client: client}}
			address, access, err := s.Prometheus(t.Context(), c.given)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			transport, err := access.Transport()
			if err != nil {
				t.Fatal(err)
			}
			answer, err := (&http.Client{Transport: transport}).Get(address + "/api/v1/query")
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if asked != "Bearer "+c.token {
				t.Errorf("asked as %q, want %q", asked, c.token)
			}
		})
	}
}

// certificate returns a server's certificate, in PEM.
func certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
