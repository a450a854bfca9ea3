package router_test

import (
	"crypto/rand"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/router"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// routerLinks returns the links to routers that this machine has.
func routerLinks(t *testing.T) (names []string) {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, "plr") {
			names = append(names, l.Name)
		}
	}
	return names
}

func TestRouterRefusesBadInput(t *testing.T) {
	t.Parallel()
	p := e2e.RouterProgram(t, suite)
	other, err := haproxy.MakeCertificate([]string{"www.example.com"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	two, err := haproxy.MakeCertificate([]string{"x.router.plimsoll.test"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	swapped := string(two.PEM[:strings.Index(string(two.PEM), "-----BEGIN PRIVATE")]) + string(other.PEM[strings.Index(string(other.PEM), "-----BEGIN PRIVATE"):])
	for name, text := range map[string]string{
		"other.pem": string(other.PEM), "swapped.pem": swapped, "hosts": "www.example.com 2\nwww.example.com\n", "weights": "www.example.com -1\n",
		"bad.cfg": "global\n    maxcon {{.Maxconn}}\n", "worse.cfg": "{{.Nothing}}",
	} {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		why  string
		args []string
		want []string
	}{
		{"an empty page", []string{"--set", "pageSize=0B"}, []string{"pageSize", "at least 1 B"}},
		{"a size in no unit that is known", []string{"--set", "pageSize=4 pages"}, []string{"pageSize", `"4 pages"`, "512Mi"}},
		{"a termination that there is not", []string{"--set", "termination=edgy"}, []string{"termination", "edgy", "edge"}},
		{"more connections than open files allow", []string{"--set", "maxconn=900000000"}, []string{"maxconn", "open files", "at most", "ulimit"}},
		{"more clients than that", []string{"--levels", "900000000"}, []string{"900000000 connections", "open files"}},
		{"a certificate for other hosts", []string{"--set", "termination=edge", "--set", "certificate=other.pem"}, []string{"certificate", "route-0.router.plimsoll.test", "*.example.com"}},
		{"a certificate with another one's key", []string{"--set", "termination=edge", "--set", "certificate=swapped.pem"}, []string{"certificate", "does not match"}},
		{"a certificate that is not there", []string{"--set", "certificate=none.pem"}, []string{"certificate", "none.pem"}},
		{"a host twice", []string{"--set", "hosts=hosts"}, []string{"hosts:2", "line 1"}},
		{"a weight below 0", []string{"--set", "hosts=weights"}, []string{"weights:1", `"-1"`}},
		{"a template that HAProxy refuses", []string{"--set", "template=bad.cfg"}, []string{"template", "maxcon"}},
		{"a template with a field that there is not", []string{"--set", "template=worse.cfg"}, []string{"Nothing"}},
		{"a program that is not there", []string{"--set", "haproxy=/nowhere/haproxy"}, []string{"/nowhere/haproxy", "was not found"}},
		{"another program", []string{"--set", "haproxy=/bin/true"}, []string{"another program"}},
		{"a processor that there is not", []string{"--set", "pinning=900"}, []string{"pinning", `"900"`}},
		{"a killed server without another one", []string{"--set", "event=kill-server"}, []string{"servers=2"}},
		{"other servers that no page tells apart", []string{"--set", "event=route-change", "--set", "pageSize=8B"}, []string{"event", "pageSize=12B"}},
		{"half a header that HAProxy does not read", []string{"--set", "idle=5", "--set", "termination=passthrough"}, []string{"idle", "termination=none"}},
		{"more idle connections than open files allow", []string{"--set", "idle=900000000"}, []string{"idle", "open files"}},
		{"more churn than can be", []string{"--set", "churn=5000"}, []string{"churn", "at most 1000"}},
		{"a link without a unit", []string{"--set", "link=100"}, []string{"link", "no unit", "50Gbit"}},
		{"a link that is too fast to be made", []string{"--set", "link=100Gbit"}, []string{"link", "30 Gbit/s"}},
		{"an nginx that is to compute", []string{"--set", "backend=nginx", "--set", "service=constant:5ms"}, []string{"backend", "service"}},
		{"a route by the runtime API that reloads take back", []string{"--set", "event=route-runtime", "--set", "churn=5", "--set", "churnBy=reload"}, []string{"churnBy", "route-reload"}},
		{"more idle connections than open files allow, as a level", []string{"--axis", "idle", "--levels", "900000000"}, []string{"idle", "open files"}},
		{"names for an axis that makes them up", []string{"--axis", "routes", "--levels", "10", "--set", "hosts=hosts"}, []string{"hosts", "the axis routes"}},
		{"more routes than can be", []string{"--axis", "routes", "--levels", "30000"}, []string{"routes", "20000"}},
		{"a termination that there is not, beside one", []string{"--set", "termination=edge+pasthrough"}, []string{"termination", `"pasthrough" is not one of none, edge`}},
		{"a service of no weight", []string{"--set", "weights=3+0"}, []string{"weights", "1 to 256"}},
		{"a buffer that rewriting fills", []string{"--set", "bufsize=8192"}, []string{"bufsize", "8192"}},
	} {
		got := p.Run(t, append([]string{"sweep", "router", "--out", "refused"}, c.args...)...)
		if got.Code != process.ExitUsage {
			t.Errorf("%s: exit code %d\n%s", c.why, got.Code, got.Stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Stderr, want) {
				t.Errorf("%s: %q is missing in\n%s", c.why, want, got.Stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "refused")); err == nil {
		t.Error("a run directory was made")
	}
	if processes, files := e2e.InRooms(t, p, "routers"); len(processes)+len(files) > 0 {
		t.Errorf("left: %v %v", processes, files)
	}
}

// A goal may be about what is changed under load: each step of the axis routes adds
// one by a reload, and tells once how long it took until it answered.
func TestRoutesAreAnAxis(t *testing.T) {
	t.Parallel()
	p := e2e.RouterProgram(t, suite)
	got := p.RunTo(t, "r", "sweep", "router", "--axis", "routes", "--levels", "5,20", "--hold", "4s", "--set", "clients=1", "--set", "termination=none+edge+reencrypt", "--set", "certificates=each", "--set", "retry=browser",
		"--slo", "Changed max <= 1h", "--slo", "errors <= 0%")
	r := p.Result(t, "r")
	if len(r.Steps) != 2 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for _, s := range r.Steps {
		took := s.Latency["Changed"]
		if took.N != 1 || took.Max == nil || math.Abs(*took.Max-s.Metrics["change"]) > 0.01**took.Max || s.Requests.FailedAll() > 0 {
			t.Errorf("step %d, %s: %+v, metrics %v, failed %v", s.ID, s.Verdict, took, s.Metrics, s.Requests.Failed)
		}
	}
}

// A result names what bound a stream, for each cause that can be planted.
func TestMeasuredRouterBounds(t *testing.T) {
	quiet := suite.Measures(t)
	p := e2e.RouterProgram(t, suite)
	for i, c := range []struct {
		bound string
		args  []string
		code  []int
	}{
		{"maxconn", []string{"--levels", "40", "--set", "maxconn=8", "--set", "keepAlive=false", "--set", "service=constant:20ms"}, []int{process.ExitPass, process.ExitFail}},
		{"server queue", []string{"--levels", "40", "--set", "serverMaxconn=1", "--set", "routes=1", "--set", "service=constant:5ms"}, []int{process.ExitFail}},
		{"servers", []string{"--axis", "rate", "--levels", "500", "--set", "service=constant:20ms", "--set", "workers=2", "--set", "connections=40"}, []int{process.ExitFail}},
		{"generator", []string{"--axis", "rate", "--levels", "3000", "--set", "generatorWork=1ms"}, []int{process.ExitInvalid}},
	} {
		if i >= suite.Size(1, 4) {
			break // the others are in the long tests
		}
		out := strings.ReplaceAll(c.bound, " ", "-")
		got := p.Run(t, append([]string{"sweep", "router", "--repeat", "1", "--hold", "3s", "--out", out}, c.args...)...)
		result := p.Result(t, out)
		if len(result.Steps) != 1 || result.Steps[0].Bottleneck == nil {
			t.Fatalf("%s: %+v\n%s", c.bound, result.Steps, got.Stderr)
		}
		first := ""
		for _, b := range result.Steps[0].Bottleneck.Bounds {
			if b.Held && first == "" {
				first = b.Name
			}
		}
		if b := result.Steps[0].Bottleneck.Bounds[0]; c.bound == "maxconn" && (b.Waiting == nil || *b.Waiting < 1) {
			quiet.Needed(t)
			t.Errorf("of 40 clients, for which there are 8 places, none waited: %+v", b)
		}
		if first != c.bound {
			quiet.Needed(t)
			t.Errorf("%s was planted, found is %q: %+v", c.bound, first, result.Steps[0].Bottleneck.Bounds)
		}
		if !slices.Contains(c.code, got.Code) {
			quiet.Needed(t)
			t.Errorf("%s: exit code %d\n%s%s", c.bound, got.Code, got.Stdout, got.Stderr)
		}
	}
}

// A search says what bound the rate that it found.
func TestMeasuredRouterLine(t *testing.T) {
	suite.Long(t, "a search takes a minute")
	quiet := suite.Measures(t)
	p := e2e.RouterProgram(t, suite)
	// Ten workers, each busy for 10 ms: a little less than 1000 requests a second.
	got := p.RunTo(t, "line", "limit", "router", "--axis", "rate", "--hold", "4s", "--from", "400", "--step", "400", "--resolution", "100", "--confirm", "2",
		"--set", "service=constant:10ms", "--set", "workers=10")
	line := p.Result(t, "line").LoadLine
	if got.Code != process.ExitPass || line.Level == nil || *line.Level < 600 || *line.Level > 1000 || !strings.HasPrefix(line.Binding, "the servers: ") {
		quiet.Needed(t)
		t.Errorf("exit code %d, %+v\n%s", got.Code, line, got.Stdout)
	}
}

// A short run has what every run has.
func TestMeasuredRouter(t *testing.T) {
	quiet := suite.Measures(t)
	p := e2e.RouterProgram(t, suite)
	got := p.RunTo(t, "one", "sweep", "router", "--levels", "4", "--repeat", "1", "--hold", "2s", "--set", "termination=edge")
	if got.Code != process.ExitPass {
		quiet.Needed(t)
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	step := p.Result(t, "one").Steps[0]
	if u := step.Resources["haproxy"]; step.Metrics["requestsPerCPUSecond"] < 100 || u.CPUSeconds <= 0 {
		t.Errorf("%v, %+v", step.Metrics, u)
	}
	for _, source := range []string{"haproxy/thread-1", "backend", usage.SourceSelf} {
		if step.Resources[source].CPUSeconds <= 0 {
			t.Errorf("what %s used is unknown: %v", source, step.Resources)
		}
	}
	if l := step.Latency["Response"]; l.P99 == nil || *l.P99 <= 0 || l.N != step.Requests.Intended {
		t.Errorf("%+v", l)
	}
	env := p.Environment(t, "one")
	if env.Value("runtime:haproxy") == "" || env.Value("runtime:haproxy-TLS") == "" || env.Value("isolation:placement") == "" || env.Value("host:cpus") == "" || env.Kind == nil || env.Kind.There != "Response" || env.Target.Kind != router.Name {
		t.Errorf("%+v", env)
	}
	figures := p.Count("one", func(e record.Event) bool {
		r, ok := e.Body.(*record.Reading)
		return ok && r.Source == "haproxy figures" && r.Values["currConns"] >= 4
	})
	if figures == 0 {
		t.Error("what HAProxy tells of itself is not on record")
	}
	if processes, files := e2e.InRooms(t, p, "routers"); len(processes)+len(files) > 0 {
		t.Errorf("left: %v %v", processes, files)
	}
}

// However a run ends, nothing of it goes on, and the next command removes what
// is left.
func TestRouterLeavesNothing(t *testing.T) {
	t.Parallel()
	p := e2e.RouterProgram(t, suite)
	args := []string{"sweep", "router", "--levels", "4", "--hold", "1m"}
	if os.Getuid() == 0 {
		args = append(args, "--set", "link=1Gbit")
	}
	before := routerLinks(t)
	var work []string // directories of HAProxy's elsewhere
	under := func(out string) *harness.Started {
		s := p.Start(t, append(args, "--out", out)...)
		harness.Await(t, "requests on record", func() bool { return e2e.Windows(p, out) > 0 })
		processes, files := e2e.InRooms(t, p, "routers")
		if len(processes) < 2 || len(files) != 1 {
			t.Fatalf("under load there are %v %v", processes, files)
		}
		if dir := "/run/plimsoll-router-" + filepath.Base(files[0]); os.Getuid() == 0 {
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("root's HAProxy: %v", err)
			}
			work = append(work, dir)
		}
		return s
	}
	s := under("interrupted")
	s.Signal(os.Interrupt)
	if got := s.Wait(); got.Code != 130 {
		t.Errorf("Ctrl-C: exit code %d\n%s", got.Code, got.Stderr)
	}
	if processes, files := e2e.InRooms(t, p, "routers"); len(processes)+len(files) > 0 {
		t.Errorf("Ctrl-C has left: %v %v", processes, files)
	}
	s = under("killed")
	made := routerLinks(t)
	e2e.SparesAlive(t, p, "routers", router.Name)
	s.Kill()
	harness.Await(t, "no link", func() bool {
		return !slices.ContainsFunc(routerLinks(t), func(l string) bool { return slices.Contains(made, l) && !slices.Contains(before, l) })
	})
	harness.Await(t, "no process", func() bool { processes, _ := e2e.InRooms(t, p, "routers"); return len(processes) == 0 })
	e2e.Cleans(t, p, "run [0-9a-z]+ of target router, on this machine: .*/routers/")
	if _, files := e2e.InRooms(t, p, "routers"); len(files) > 0 {
		t.Errorf("SIGKILL and the next command have left: %v", files)
	}
	if got := p.Run(t, "sweep", "router", "--levels", "1", "--repeat", "1", "--hold", "1s", "--out", "next"); got.Code != process.ExitPass && got.Code != process.ExitInvalid {
		t.Errorf("the next command: exit code %d\n%s", got.Code, got.Stderr)
	}
	if processes, files := e2e.InRooms(t, p, "routers"); len(processes)+len(files) > 0 {
		t.Errorf("SIGKILL and the next command have left: %v %v", processes, files)
	}
	for _, dir := range work {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("it was left: %s: %v", dir, err)
		}
	}
}
