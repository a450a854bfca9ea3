package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// releaseIn writes a release for these architectures of Linux, and for another system.
func releaseIn(t *testing.T, archs ...string) string {
	t.Helper()
	dir, sums := t.TempDir(), ""
	for _, platform := range append([]string{"darwin_arm64"}, archs...) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for _, program := range []string{"plimsoll", "agent"} {
			data := append(standIn(t), (program + platform)...)
			if err := w.WriteHeader(&tar.Header{Name: "plimsoll_1_" + platform + "/" + program, Mode: 0o755, Size: int64(len(data))}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		file := "plimsoll_1_" + platform + ".tar.gz"
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(b.Bytes()), file)
		if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A release makes one index with an image for each architecture of Linux. A file carries it to a registry
// with a certificate authority of its own, behind a proxy, unchanged.
func TestAnIndexOfAReleaseReachesARegistry(t *testing.T) {
	dir := releaseIn(t, "linux_amd64", "linux_arm64")
	index, err := SelfOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := one.ConfigFile(); err != nil || c.Architecture != m.Platform.Architecture || c.OS != "linux" || c.Config.User != noRoot {
			t.Errorf("%s: %+v, %v", m.Platform, c, err)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("platforms %s", got)
	}
	agents, err := AgentOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := agents.Digest(); err != nil || d == want {
		t.Errorf("the agent's index has the digest %s, %v", d, err)
	}

	file := filepath.Join(t.TempDir(), "a file.tar")
	if err := Save(index, SelfReference, file); err != nil {
		t.Fatal(err)
	}
	saved, done, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if len(saved) != 1 || saved[0].Reference != SelfReference {
		t.Fatalf("saved %+v", saved)
	}

	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	var passed atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		to, err := net.Dial("tcp", server.Listener.Addr().String())
		if r.Method != http.MethodConnect || err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(to, from); to.Close() }()
		_, _ = io.Copy(from, to)
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	const reference = "example.com:5000/team/plimsoll:1" // the server's certificate is for it
	to := Registry{Proxy: http.ProxyURL(at)}
	if err := Push(t.Context(), saved[0].Made, reference, to); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without its authority: %v", err)
	}
	to.Authority = []byte("no PEM")
	if err := Push(t.Context(), saved[0].Made, reference, to); err == nil || !strings.Contains(err.Error(), "not a PEM file") {
		t.Errorf("with no certificate: %v", err)
	}
	to.Authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := Push(t.Context(), saved[0].Made, reference, to); err != nil {
		t.Fatal(err)
	}
	if passed.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
	pushed, err := name.ParseReference(strings.Replace(reference, "example.com:5000", server.Listener.Addr().String(), 1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(pushed, remote.WithTransport(server.Client().Transport))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := got.Digest(); err != nil || d != want {
		t.Errorf("the registry has %s, %v; want %s", d, err, want)
	}
}

// A registry that takes nothing, or goes away half way, is an error with its cause.
func TestAPushThatFailsSaysWhy(t *testing.T) {
	ring.Long(t, "waits while the client tries again")
	index, err := SelfOf(releaseIn(t, "linux_amd64"))
	if err != nil {
		t.Fatal(err)
	}
	takes := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	for _, tt := range []struct {
		why, says string
		answer    http.HandlerFunc
	}{
		{"refused", "DENIED", func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"errors": [{"code": "DENIED", "message": "no room for you"}]}`)
				return
			}
			takes.ServeHTTP(w, r)
		}},
		{"cut half way", "EOF", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch || r.Method == http.MethodPut {
				panic(http.ErrAbortHandler)
			}
			takes.ServeHTTP(w, r)
		}},
	} {
		server := httptest.NewServer(tt.answer)
		err := Push(t.Context(), index, strings.TrimPrefix(server.URL, "http://")+"/plimsoll:1", Registry{Insecure: true})
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.says)
		}
		server.Close()
	}
}

func TestDamagedReleasesAndFiles(t *testing.T) {
	damage := func(change func(dir string)) string {
		dir := releaseIn(t, "linux_amd64")
		change(dir)
		return dir
	}
	const archive = "plimsoll_1_linux_amd64.tar.gz"
	write := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ why, dir, says string }{
		{"no release", t.TempDir(), "is not the directory of a release"},
		{"a cut archive", damage(func(dir string) {
			text, _ := os.ReadFile(filepath.Join(dir, archive))
			write(filepath.Join(dir, archive), text[:len(text)/2])
		}), "is damaged"},
		{"no archive", damage(func(dir string) { os.Remove(filepath.Join(dir, archive)) }), "no such file"},
		{"no Linux", releaseIn(t), "has no program for Linux"},
	} {
		if _, err := SelfOf(tt.dir); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.says)
		}
	}

	index, err := SelfOf(releaseIn(t, "linux_amd64"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := Self(program(t))
	if err != nil {
		t.Fatal(err)
	}
	for what, made := range map[string]Made{"an index": index, "an image": v1.Image(one)} {
		file := filepath.Join(t.TempDir(), "it.tar")
		if err := Save(made, SelfReference, file); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if list, done, err := Read(file); err != nil || len(list) != 1 {
			t.Errorf("%s: %v, %v", what, list, err)
		} else {
			done()
		}
		for size := 1; size < len(whole); size += 211 {
			write(file, whole[:size])
			if _, _, err := Read(file); err == nil {
				t.Errorf("%s: its first %d of %d bytes are read without an error", what, size, len(whole))
			}
		}
		write(file, whole[:len(whole)-2048])
		if _, _, err := Read(file); err == nil || !strings.Contains(err.Error(), "the archive is cut") {
			t.Errorf("%s that is cut: %v", what, err)
		}
	}
}
