package storage_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Nor does anything of what loads on this machine are given, of their environment,
// or of what HAProxy and fio say of it.
func TestNoSecretOfALoadHereIsOnRecord(t *testing.T) {
	t.Parallel()
	p := e2e.IOProgram(t, suite)
	_, err := haproxy.Find(context.Background(), "")
	harness.Able(t, err)
	const named = "token=" + e2e.Planted
	p.Env = []string{"PLIMSOLL_PASSWORD=" + e2e.Planted, "FIO_TOKEN=" + e2e.Planted, "HTTPS_PROXY=http://me:" + e2e.Planted + "@127.0.0.1:1"}
	pair, err := haproxy.MakeCertificate([]string{"route-0.router.plimsoll.test"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("../../../system/router/haproxy/router.cfg.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	template := func(lines string) string {
		return "# password: " + e2e.Planted + "\n{{/* " + named + " */}}" + strings.Replace(string(ours), "    http-request del-header Proxy\n", lines+"    http-request del-header Proxy\n", 1)
	}
	// The key without its marks, of which any line is one too many.
	_, key, _ := strings.Cut(string(pair.PEM), "-----BEGIN PRIVATE KEY-----")
	key, _, _ = strings.Cut(key, "-----END")
	secrets := append(strings.Fields(key), e2e.Planted)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(p.Dir, named), 0o755); err != nil {
		t.Fatal(err)
	}
	write(named+".pem", "password="+e2e.Planted+"\n"+string(pair.PEM), 0o600)
	write("key.pem", key, 0o600)
	write("good.cfg", template("    http-request set-header Authorization \"Bearer "+e2e.Planted+"\"\n"), 0o600)
	write("refused.cfg", template("    http-request set-header Authorization Bearer\\ "+e2e.Planted+" and more\n"), 0o600)
	write("forbidden.cfg", template("    stats auth admin:password="+e2e.Planted+"\n"), 0o600)
	write("broken.cfg", template("    {{ printf `password="+e2e.Planted+"` .Nothing }}\n"), 0o600)
	write("hosts", "www.example.com\nwww.example.com/?"+named+"\n", 0o600)
	write("good.fio", "# password="+e2e.Planted+"\n[reader]\nrw=read\nsize=64k\ntime_based=1\nruntime=1m ; "+named+"\n", 0o600)
	write("value.fio", "[reader]\nrw=read\ndescription="+named+"\n", 0o600)
	write("option.fio", "[reader]\nrw=read\n"+named+"\n", 0o600)
	write("section.fio", "["+named+"]\nrw=read\n", 0o600)
	// Who has no rights may go there, too.
	programs, err := os.MkdirTemp("", "plimsoll-says")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(programs) })
	if err := os.Chmod(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"fio", "haproxy"} {
		// It says its version, and what it knows when it is to do anything.
		write(filepath.Join(programs, "says-"+of), "#!/bin/sh\ncase \"$*\" in *--version*|-v*) exec "+of+" \"$@\";; esac\necho \"password="+e2e.Planted+" "+named+" http://me:"+e2e.Planted+"@h token=$FIO_TOKEN\" >&2\nexit 1\n", 0o755)
	}
	routers := []string{"sweep", "router", "--levels", "2", "--repeat", "1", "--hold", "1s", "--slo", "Response p50 <= 1h", "--set", "termination=edge"}
	jobs := []string{"sweep", "io-volumes", "--levels", "1", "--hold", "1s", "--slo", "Complete p50 <= 1h", "--set", "drive=false"}
	says := func(says string, args ...string) {
		t.Helper()
		got := p.Run(t, args...)
		for _, secret := range secrets {
			if strings.Contains(got.Stdout+got.Stderr, secret) {
				t.Errorf("%v prints %q\n%s%s", args, secret, got.Stdout, got.Stderr)
			}
		}
		if !strings.Contains(got.Stdout+got.Stderr, says) {
			t.Errorf("%v: exit code %d, want %q\n%s%s", args, got.Code, says, got.Stdout, got.Stderr)
		}
	}
	for _, c := range []struct {
		why, says string // says is "" for what goes on
		load      []string
		set       []string
	}{
		{"a certificate's name and key, and what a template has", "", routers, []string{"certificate=" + named + ".pem", "template=good.cfg"}},
		{"a key alone", "certificate", routers, []string{"certificate=key.pem"}},
		{"a line that HAProxy refuses", "refuses", routers, []string{"template=refused.cfg"}},
		{"a line that a template may not have", "auth", routers, []string{"template=forbidden.cfg"}},
		{"a template that cannot be filled in", "Nothing", routers, []string{"template=broken.cfg"}},
		{"a host", "hosts", routers, []string{"hosts=hosts"}},
		{"an HAProxy that says what it knows", "(masked)", routers, []string{"haproxy=" + programs + "/says-haproxy"}},
		{"an HAProxy of that name", "haproxy", routers, []string{"haproxy=/" + named}},
		{"the name of a directory, and a job's comments", "", jobs, []string{"path=./" + named, "job=good.fio"}},
		{"a value that a job may not have", "description", jobs, []string{"path=.", "job=value.fio"}},
		{"an option that a job may not have", "option", jobs, []string{"path=.", "job=option.fio"}},
		{"the name of a job", "name of a job", jobs, []string{"path=.", "job=section.fio"}},
		{"an fio that says what it knows", "(masked)", jobs, []string{"path=.", "fio=" + programs + "/says-fio"}},
		{"a directory that is not there", "no such file", jobs, []string{"path=/nowhere/" + named}},
	} {
		args := c.load
		for _, set := range c.set {
			args = append(args[:len(args):len(args)], "--set", set)
		}
		out := strings.ReplaceAll(c.why, " ", "-")
		if c.says != "" {
			says(c.says, append(args, "--out", out)...)
		} else {
			says("dry run", append(args, "--dry-run")...)
			says("Report: ", append(args, "--out", out)...)
			says("", "analyze", out, "-o", "json")
			e2e.HoldsNothing(t, filepath.Join(p.Dir, out), secrets...)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, out)); err == nil && c.says != "" {
			e2e.HoldsNothing(t, filepath.Join(p.Dir, out), secrets...)
		}
	}
}
