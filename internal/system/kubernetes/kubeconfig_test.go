package kubernetes

import (
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/system"
)

// writeAll writes files below a directory, programs where they begin as a script.
func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!") {
			mode = 0o700
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

const loginScript = `#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "TOKEN"}}'
`

// Relative paths of a kubeconfig lead from its directory, links and other contexts
// aside, and what a user is shown is what is read and run: not what lies under the same
// name where the command was started.
func TestPathsOfAKubeconfigLeadFromItsDirectory(t *testing.T) {
	heard := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r.Header.Get("Authorization")
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir, elsewhere, path := t.TempDir(), t.TempDir(), t.TempDir()
	script := func(token string) string { return strings.ReplaceAll(loginScript, "TOKEN", token) }
	writeAll(t, dir, map[string]string{"ca.pem": ca, "token": "beside", "login": script("beside"), "bin/login": script("beside"), "client.pem": "none", "client.key": "none"})
	writeAll(t, elsewhere, map[string]string{"ca.pem": "another", "token": "elsewhere", "login": script("elsewhere"), "bin/login": script("elsewhere")})
	writeAll(t, path, map[string]string{"login": script("path")})
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	t.Chdir(elsewhere)
	const login = ", apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"
	for _, c := range []struct {
		why, user string
		program   string // that is run, "" for none
		file      string // that is read, "" for none
		sent      string
	}{
		{"a token", "tokenFile: token", "", dir + "/token", "Bearer beside"},
		{"a token by a whole path", "tokenFile: " + elsewhere + "/token", "", elsewhere + "/token", "Bearer elsewhere"},
		{"a program by a path that begins with a dot", "exec: {command: ./login" + login, dir + "/login", "", "Bearer beside"},
		{"a program in a directory", "exec: {command: bin/login" + login, dir + "/bin/login", "", "Bearer beside"},
		{"a program by its name alone is that of PATH", "exec: {command: login" + login, path + "/login", "", "Bearer path"},
	} {
		heard = ""
		writeAll(t, dir, map[string]string{"config": "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}, {name: other, context: {cluster: c, user: other}}]\n" +
			"clusters: [{name: c, cluster: {server: '" + server.URL + "', certificate-authority: ca.pem}}]\nusers: [{name: u, user: {" + c.user + "}}, {name: other, user: {tokenFile: other}}]\n"})
		config := filepath.Join(dir, "config")
		programs, files := (&Settings{Kubeconfig: config}).Brings()
		want := []string{dir + "/ca.pem"}
		if c.file != "" {
			want = append(want, c.file)
			slices.Sort(want)
		}
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || strings.Join(programs, " ") != c.program {
			t.Errorf("%s: shown are the programs %q and the files %q, want %q and %q", c.why, programs, got, c.program, want)
		}
		cluster, err := Connect(config, "", system.Host{})
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if _, err := cluster.client.Call(t.Context(), http.MethodGet, "/version", nil); err != nil || heard != c.sent {
			t.Errorf("%s: sent %q, want %q: %v", c.why, heard, c.sent, err)
		}
		cluster.Close()
	}
}

// What a kubeconfig lacks is named, before anybody is asked anything.
func TestWhatAKubeconfigLacksIsNamed(t *testing.T) {
	for _, c := range []struct{ why, text, context, wants, hint string }{
		{"no file", "", "", "there is no kubeconfig", ""},
		{"another kind of file", "root:x:0:0\n", "", "is not a kubeconfig, which is a YAML document of kind Config", "kubectl config view"},
		{"a file that is no YAML", "a: b\nc: [\n", "", "of kind Config: line 2", "kubectl config view"},
		{"no current context", "contexts: [{name: a, context: {}}]", "", "has no current-context", "there is: a"},
		{"a context that it does not have", "contexts: [{name: a, context: {}}]", "b", `no such context: "b"`, "there is: a"},
		{"a context of an absent cluster", "contexts: [{name: a, context: {cluster: x}}]\nclusters: [{name: real, cluster: {server: 'https://127.0.0.1:1'}}]", "a", `context "a" names the cluster "x", which the file does not have`, "there is: real"},
		{"a context of an absent user", "contexts: [{name: a, context: {cluster: real, user: u}}]\nclusters: [{name: real, cluster: {server: 'https://127.0.0.1:1'}}]", "a", `context "a" names the user "u", which the file does not have`, "the file has none"},
		{"a login program that is not there", "contexts: [{name: a, context: {cluster: real, user: u}}]\nclusters: [{name: real, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {exec: {command: ./absent, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, installHint: get it}}}]", "a", "login program", "get it"},
		{"a certificate that is not there", "contexts: [{name: a, context: {cluster: real}}]\nclusters: [{name: real, cluster: {server: 'https://127.0.0.1:1', certificate-authority: absent}}]", "a", "absent", ""},
	} {
		file := filepath.Join(t.TempDir(), "config")
		if c.text != "" {
			writeAll(t, filepath.Dir(file), map[string]string{"config": c.text})
		}
		_, err := Connect(file, c.context, system.Host{})
		mistake, ok := err.(*system.MistakeError)
		if !ok || !strings.Contains(err.Error(), c.wants) || !strings.Contains(mistake.Hint, c.hint) {
			t.Errorf("%s: %v, want %q with the hint %q", c.why, err, c.wants, c.hint)
		}
	}
}

// The token of a pod's service account expires within an hour: what the kubelet writes in its
// place is sent from then on.
func TestTheServiceAccountOfAPod(t *testing.T) {
	heard := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = r.Header.Get("Authorization")
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	dir := t.TempDir()
	pod := system.Pod{Server: server.URL, Account: dir}
	for _, c := range []struct {
		why         string
		pod         system.Pod
		wants, hint string
	}{
		{"outside of a pod", system.Pod{}, "does not run in a pod", "--kubeconfig FILE"},
		{"a pod without a token", pod, "token", "automountServiceAccountToken"},
	} {
		_, err := (&Settings{InCluster: true}).Connect(system.Host{Pod: c.pod})
		if mistake, ok := err.(*system.MistakeError); !ok || !strings.Contains(err.Error(), c.wants) || !strings.Contains(mistake.Hint, c.hint) {
			t.Errorf("%s: %v, want %q with the hint %q", c.why, err, c.wants, c.hint)
		}
	}
	writeAll(t, dir, map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), "token": "first\n"})
	cluster, err := (&Settings{InCluster: true}).Connect(system.Host{Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if _, err := cluster.client.Call(t.Context(), http.MethodGet, "/version", nil); err != nil || heard != "Bearer first" {
		t.Errorf("sent %q: %v", heard, err)
	}
	if file := cluster.client.Config.BearerTokenFile; file != filepath.Join(dir, "token") || cluster.Server != server.URL || cluster.Naming.Name != "in-cluster" {
		t.Errorf("the token is read again from %q; %s is named %+v", file, cluster.Server, cluster.Naming)
	}
	if l, err := cluster.LabOf(t.Context(), system.Host{}); l != nil || err != nil {
		t.Errorf("a pod's cluster is the lab %v, %v", l, err)
	}
}
