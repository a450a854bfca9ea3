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
				if err := Check(context.Background(), b, dir, c); err != nil {
					t.Errorf("%s, exact %v, more %v: %v", termination, exact, more, err)
				}
				files, err := c.Files()
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
		files, err := c.Files()
		if got := string(files[httpMap]); err != nil || got != want {
			t.Errorf("exact %v: %q, %v", exact, got, err)
		}
	}
}
