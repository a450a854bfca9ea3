package router_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Nor does anything of what is sent to a server, or of what it answers.
func TestNoSecretOfAServerIsOnRecord(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session="+e2e.Planted)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "password=%s %s", e2e.Planted, r.URL)
	}))
	defer server.Close()
	list := "requests:\n- {path: '/a?token=" + e2e.Planted + "', headers: {Authorization: Bearer " + e2e.Planted + "}, status: 403}\n- {path: '/b?password=" + e2e.Planted + "', status: 403, method: POST, body: " + e2e.Planted + "}\n"
	if err := os.WriteFile(filepath.Join(p.Dir, "urls.yaml"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--set", "server=" + server.URL, "--set", "urls=urls.yaml", "--out", "run"}, {"--set", "server=" + server.URL, "--set", "urls=urls.yaml", "--dry-run"},
		{"--set", "server=http://me:" + e2e.Planted + "@127.0.0.1:1"}, {"--set", "server=http://127.0.0.1:1/?token=" + e2e.Planted},
	} {
		got := p.Run(t, append([]string{"sweep", "http", "--axis", "rate", "--levels", "20", "--hold", "1s", "--yes"}, args...)...)
		if strings.Contains(got.Stdout+got.Stderr, e2e.Planted) {
			t.Errorf("%v prints %s%s", args, got.Stdout, got.Stderr)
		}
	}
	e2e.HoldsNothing(t, filepath.Join(p.Dir, "run"))
}
