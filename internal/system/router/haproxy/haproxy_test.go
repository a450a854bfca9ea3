package haproxy

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct{ why, text, version, tls string }{
		{"Debian 12's", "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\nStatus: x\nBuilt with OpenSSL version : OpenSSL 3.0.22\nRunning on OpenSSL version : OpenSSL 3.0.19 27 Jan 2026\n", "2.6.12-1+deb12u4", "OpenSSL 3.0.19 27 Jan 2026"},
		{"an old one", "HA-Proxy version 1.8.28 2021/04/12\nRunning on OpenSSL version : OpenSSL 1.0.2k-fips  26 Jan 2017\n", "1.8.28", "OpenSSL 1.0.2k-fips  26 Jan 2017"},
		{"a newer one with another library", "HAProxy version 3.2.0 2025/05/28\nRunning on SSL library version : AWS-LC 1.50\n", "3.2.0", "AWS-LC 1.50"},
		{"one without TLS", "HAProxy version 2.8.1\n", "2.8.1", ""},
	} {
		if found := versionText.FindStringSubmatch(c.text); len(found) != 3 || found[1] != c.version || found[2] != c.tls {
			t.Errorf("%s: %q", c.why, found)
		}
	}
	if versionText.MatchString("nginx version: nginx/1.22\n") {
		t.Error("another program is taken for HAProxy")
	}
	if _, err := Find(context.Background(), "/nowhere/haproxy"); err == nil || !strings.Contains(err.Error(), "/nowhere/haproxy was not found") {
		t.Errorf("a path that is not there: %v", err)
	}
}

func TestFigures(t *testing.T) {
	info, err := parseInfo("Name: HAProxy\nPid: 42\nMaxconn: 20\nCurrConns: 7\nnode: a: b\n\n")
	if err != nil || info.PID != 42 || info.Values["Maxconn"] != 20 || info.Values["CurrConns"] != 7 || len(info.Values) != 3 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := parseInfo("Unknown command\n"); err == nil {
		t.Error("what tells no process is taken for figures")
	}
	totals, err := parseStat("# pxname,svname,qcur,stot,dreq,dresp,ereq,econ,wretr,wredis,status,qtime,ctime,rtime,ttime,\n" +
		"public,FRONTEND,,100,2,0,3,,,,OPEN,,,,,\n" +
		"be_0,s0,1,30,,0,,1,2,0,UP,10,1,20,31,\n" +
		"be_0,s1,0,10,,0,,0,0,0,DOWN 1/2,50,1,60,111,\n" +
		"be_0,BACKEND,4,40,0,1,,5,6,7,UP,20,1,30,51,\n" +
		"be_sni,fe_sni,0,1000,,0,,0,0,0,no check,0,0,900,900,\n")
	want := Totals{Queue: 4, Retries: 6, Moved: 7, Denied: 3, Refused: 3, Unserved: 5, Down: 1, QueueTime: 0.02, ConnectTime: 0.001, ServerTime: 0.03, AllTime: 0.051}
	if err != nil || totals != want {
		t.Errorf("%+v, %v, want %+v", totals, err, want)
	}
}

func FuzzFigures(f *testing.F) {
	f.Add("# pxname,svname,qcur,\na,FRONTEND,1,\n")
	f.Add("Pid: 3\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parseStat(text)
		_, _ = parseInfo(text)
		_ = said(text)
	})
}

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hosts := []string{"a.x.test", "b.x.test", "c.y.test", "localhost"}
	pair, err := MakeCertificate(hosts, rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	if names := pair.Leaf.DNSNames; !slices.Equal(names, []string{"*.x.test", "*.y.test", "localhost"}) {
		t.Errorf("it is for %v", names)
	}
	issued, err := pair.Issue(1, "a.b.x.test", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own, err := ReadCertificate(issued, []string{"a.b.x.test"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: Roots(pair), CurrentTime: now, DNSName: "a.b.x.test"}); err != nil {
		t.Errorf("a certificate of a route: %v", err)
	}
	for _, c := range []struct {
		why   string
		hosts []string
		at    time.Time
		want  string
	}{
		{"its own hosts", hosts, now, ""},
		{"another host", []string{"a.z.test"}, now, "a.z.test"},
		{"a host two levels down", []string{"a.b.x.test"}, now, "a.b.x.test"},
		{"before its time", hosts, now.AddDate(-1, 0, 0), "not valid before"},
		{"after its time", hosts, now.AddDate(1, 0, 0), "valid until"},
	} {
		_, err := ReadCertificate(pair.PEM, c.hosts, c.at)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	var many []string
	for i := range mostDomains + 1 {
		many = append(many, "a."+strings.Repeat("b", i+1)+".test")
	}
	if _, err := MakeCertificate(many, rand.Reader, now); err == nil {
		t.Error("a certificate for too many domains was made")
	}
}

// Every configuration that there can be is one that HAProxy takes, and has what
// it was asked for.
func TestConfigurations(t *testing.T) {
	b, err := Find(context.Background(), "")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	pair, err := MakeCertificate([]string{"a.x.test"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "c.pem"), pair.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	bools := []bool{false, true}
	for _, termination := range []Termination{None, Edge, Passthrough, Reencrypt} {
		for _, exact := range bools {
			for _, more := range bools {
				c := Config{
					Termination: termination, Plain: "127.64.0.1:18080", Secure: "127.64.0.1:18443", Routes: []Route{{Host: "a.x.test", Termination: termination}, {Host: "b.x.test", Termination: termination}},
					Servers: []string{"127.64.0.2:1"}, Secured: []string{"127.64.0.2:2"}, Services: []int{1}, Heavy: exact, Redirects: more, OfferHTTP2: !more,
					Certificate: "c.pem", ServerCA: "c.pem", Threads: 2, Maxconn: 100, Bufsize: 32768, Maxrewrite: 8192, TLSVersion: "TLSv1.3", Exact: exact,
					Resumption: !more, Cookies: more, HTTP2: more, ServerHTTP2: more,
				}
				if more {
					c.Servers, c.Secured = append(c.Servers, "127.64.0.3:1"), append(c.Secured, "127.64.0.3:2")
					c.Services, c.ServerMaxconn, c.Spares, c.CPUs = []int{1, 3}, 5, 1, []int{0, 1}
					c.Routes = append(c.Routes, Route{Host: "c.x.test", Termination: Edge, Certificate: "c.pem"})
				}
				if err := Check(context.Background(), b, dir, c, proc.How{}); err != nil {
					t.Errorf("%s, exact %v, more %v: %v", termination, exact, more, err)
				}
				files, err := c.files()
				if err != nil {
					t.Fatal(err)
				}
				text := strings.ReplaceAll(string(files[configFile]), " weight 1 send-proxy", " send-proxy")
				if redirected := strings.Count(string(files[redirectMap]), " 1\n"); redirected > 0 != more || more && redirected < 1 {
					t.Errorf("%s, exact %v, more %v: %d hosts are redirected", termination, exact, more, redirected)
				}
				if list := string(files[certificates]); (list == "c.pem c.x.test\n") != more {
					t.Errorf("%s, exact %v, more %v: the list of certificates is %q", termination, exact, more, list)
				}
				for want, there := range map[string]bool{
					"maxconn 100\n": true, "backend " + c.Backend(3): more, "backend be_edge_2": more, "check inter 5s": more, "cpu-map auto:1/1-2 0 1": more, "no-tls-tickets": more,
					"map_reg(": !exact, "verify required": termination == Reencrypt, "send-proxy": true,
					"balance roundrobin": more, "balance random": !more && termination != Passthrough, " weight 85": more, " weight 256": more || exact, " weight 1": !more && !exact,
					"alpn h2,http/1.1": more || termination == Reencrypt, "SameSite=None": more,
				} {
					if strings.Contains(text, want) != there {
						t.Errorf("%s, exact %v, more %v: %q stands there: %v", termination, exact, more, want, !there)
					}
				}
			}
		}
	}
}

func TestNamesAreNoPatterns(t *testing.T) {
	c := Config{Routes: []Route{{Host: "a.x.test", Termination: None}}}
	for exact, want := range map[bool]string{false: `^a\.x\.test\.?(:[0-9]+)?(/.*)?$ be_http_0` + "\n", true: "a.x.test be_http_0\n"} {
		c.Exact = exact
		files, err := c.files()
		if got := string(files[httpMap]); err != nil || got != want {
			t.Errorf("exact %v: %q, %v", exact, got, err)
		}
	}
}

// What a template may not have HAProxy do is refused before HAProxy reads it, however
// it is written.
func TestTemplatesHoldWhatIsAllowed(t *testing.T) {
	const base = "global\n    maxconn 10\n    stats socket {{.StatsSocket}} mode 600 level admin expose-fd listeners\ndefaults\n    mode http\n    timeout client 1s\nfrontend f\n    bind {{.Plain}}\n"
	for _, c := range []struct{ why, more, fails string }{
		{"nothing else", "", ""},
		{"what routers have", "    http-request set-header X-A \"%[req.hdr(host),lower]\" if { path_beg /a }\n    use_backend %[base,map_reg(http.map)]\nbackend b\n    balance random\n    option forwardfor\n    server s {{index .Servers 0}} check inter 5s weight 3\n", ""},
		{"code", "global\n    lua-load /tmp/x.lua\n", "loads no code"},
		{"code by a name with quotation marks", "global\n    \"lua-load\" /tmp/x.lua\n", "loads no code"},
		{"code by a name with a backslash", "global\n    lua\\-load /tmp/x.lua\n", "loads no code"},
		{"code by a name with a number", "global\n    l\\x75a-load /tmp/x.lua\n", "by its number"},
		{"code for each thread", "global\n    lua-load-per-thread /tmp/x.lua\n", "loads no code"},
		{"code that is called", "    http-request lua.x\n", "may not follow http-request"},
		{"a program beside it", "program p\n    command touch /tmp/x\n", "runs no other program"},
		{"a program that checks servers", "global\n    external-check\n", "runs no other program"},
		{"a program that checks servers, by an option", "    option external-check\n", "may not follow option"},
		{"whom it runs as", "global\n    user root\n", "as whom HAProxy runs"},
		{"a process of its own", "global\n    daemon\n", "starts and ends HAProxy"},
		{"a file of its process number", "global\n    pidfile /etc/x\n", "pidfile"},
		{"a log to a socket", "    log /dev/log local0\n", "no log"},
		{"a socket elsewhere", "    bind unix@/run/x.sock\n", "the address"},
		{"a socket for commands elsewhere", "global\n    stats socket /run/x.sock level admin\n", "the address"},
		{"every interface", "    bind :80\n", "the address"},
		{"another server", "backend b\n    server s 192.0.2.1:80\n", "the address"},
		{"another service of this machine", "backend b\n    server s 127.0.0.1:2375\n", "the address"},
		{"a check elsewhere", "backend b\n    http-check connect addr 192.0.2.1 port 80\n", "may not follow http-check"},
		{"a certificate elsewhere", "    bind {{.Secure}} ssl crt /etc/ssl/private/x.pem\n", "own directory"},
		{"a file above", "    bind {{.Secure}} ssl crt ../x.pem\n", "own directory"},
		{"a page from a file", "    http-request return file /etc/shadow\n", "own directory"},
		{"an error page from a file", "    errorfile 503 /etc/shadow\n", "may not have"},
		{"a list from a file", "    acl a src -f /etc/shadow\n", "own directory"},
		{"a map from a file", "    use_backend %[base,map_reg(/etc/shadow)]\n", "own directory"},
		{"the environment, by a function", "    http-request set-header X %[env(HOME)]\n", "function env"},
		{"the environment, by a variable", "    http-request set-header X \"${HOME}\"\n", "no environment"},
		{"a state of servers", "    load-server-state-from-file global\n", "may not have"},
		{"a filter with a configuration", "    filter spoe config /etc/x\n", "may not have"},
		{"other routers", "peers p\n", "nobody but its clients"},
		{"a log in memory with a file", "ring r\n    backing-file /etc/x\n", "may not have"},
		{"a condition", ".if 1\n", "may not have"},
		{"more text than there may be", `{{range .Backends}}{{range $.Backends}}{{printf "%1000000d" 1}}{{end}}{{end}}`, "more than 268435456 bytes"},
		{"itself", "{{.Files}}", "Files"},
	} {
		config := Config{Plain: "127.65.1.1:4001", Secure: "127.65.1.1:4002", Servers: []string{"127.65.1.10:4003"}, Secured: []string{"127.65.1.10:4004"}, Routes: make([]Route, 20)}
		config.Template = base + c.more
		err := write(t.TempDir(), config, false)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q", c.why, err, c.fails)
		}
	}
	// What a workload of a user's own lets a parameter be is looked at, too.
	if err := write(t.TempDir(), Config{TLSVersion: "TLSv1.3\n    lua-load /tmp/x.lua"}, true); err == nil || !strings.Contains(err.Error(), "loads no code") {
		t.Errorf("a line within a value: %v", err)
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("global\n maxconn 1\nfrontend a\n http-request return file x\n")
	f.Fuzz(func(_ *testing.T, text string) { _ = Config{}.allow(text) })
}
