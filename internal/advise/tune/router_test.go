package tune

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/host"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
)

func TestRouterOfTheDocument(t *testing.T) {
	// R3: pages of 8192 bytes fill 1 Gbit/s at 15,259 requests/s.
	a, err := host.TuneRouter(host.Router{Page: param.Given(param.Bytes(8192), "flag")})
	answered(t, a, err)
	wantResult(t, a, "requestsFillingLink", int64(15259))
	correction(t, a, "R7")
	correction(t, a, "R10")
	if f := finding(t, a, "a router at pages of 8 kB"); f.Grade != answer.Advice {
		t.Errorf("%+v", f)
	}
	// R2, at the table's own pages; R4 doubles them.
	for _, tt := range []struct {
		encryption   string
		at1k, at4k   int64
		at1kOnMetal  int64
		betweenOf2k5 int64
	}{{"none", 15435, 11947, 30870, 13691}, {"edge", 7467, 7678, 14934, 7573}, {"passthrough", 25789, 17876, 51578, 21833}, {"reencrypt", 7611, 7395, 15222, 7503}} {
		for page, want := range map[param.Bytes]int64{1000: tt.at1k, 4000: tt.at4k, 2500: tt.betweenOf2k5, 500: tt.at1k} {
			a, err := host.TuneRouter(host.Router{Encryption: param.Given(tt.encryption, "flag"), Page: param.Given(page, "flag")})
			answered(t, a, err)
			wantResult(t, a, "requestsPerRouter", want)
		}
		a, err := host.TuneRouter(host.Router{Encryption: param.Given(tt.encryption, "flag"), Metal: param.Given(true, "flag")})
		answered(t, a, err)
		wantResult(t, a, "requestsPerRouter", tt.at1kOnMetal)
	}
	// R5, R6.
	a, err = host.TuneRouter(host.Router{Static: count(50), Dynamic: count(2000), Routes: count(9000), Domain: param.Given("apps.example.com", "flag")})
	answered(t, a, err)
	wantResult(t, a, "routersForStatic", "5 to 10")
	wantResult(t, a, "routersForDynamic", "2 to 20")
	wantResult(t, a, "shards", int64(5))
	shard := objectOf[readIngress](t, a, "ingresscontroller-shard-4.yaml")
	if shard.Spec.Domain != "shard-4.apps.example.com" || shard.Spec.Routes.MatchLabels["router"] != "shard-4" {
		t.Errorf("%+v", shard)
	}
	// One's own measurement takes the table's place, and the link bounds it.
	a, err = host.TuneRouter(host.Router{Rate: count(100_000), Measured: count(20_000), Use: param.Given[param.Share](0.5, "flag")})
	answered(t, a, err)
	wantResult(t, a, "routers", int64(10))
	a, err = host.TuneRouter(host.Router{Rate: count(10_000), Page: param.Given(param.Bytes(1<<20), "flag")})
	answered(t, a, err)
	wantResult(t, a, "requestsPerRouter", int64(119))
}

func TestRouterBuffersAndConnections(t *testing.T) {
	// R11: the header and what is kept for rewriting must fit.
	a, err := host.TuneRouter(host.Router{Header: param.Given(param.Bytes(64<<10), "flag"), Connections: count(100_000), Memory: param.Given(param.Bytes(1<<30), "flag"), NoFile: count(1_048_576)})
	answered(t, a, err)
	wantResult(t, a, "bufsize", int64(73728))
	if f := finding(t, a, "largest header"); f.Grade != answer.Change {
		t.Errorf("%+v", f)
	}
	if f := finding(t, a, "memory for buffers"); f.Grade != answer.Change {
		t.Errorf("%+v", f)
	}
	object := objectOf[readIngress](t, a, "ingresscontroller-default.yaml")
	if object.Spec.Tuning != (readTuning{MaxConnections: 143_000, Buffer: 73728, Rewrite: 8192}) {
		t.Errorf("%+v", object.Spec.Tuning)
	}
	// A header that fits changes nothing, and no file is written.
	a, err = host.TuneRouter(host.Router{Header: param.Given(param.Bytes(16<<10), "flag")})
	answered(t, a, err)
	if f := finding(t, a, "largest header"); f.Grade != answer.OK || len(a.Files) != 0 {
		t.Errorf("%+v, files %v", f, a.Files)
	}
	// With 20,000 open files at most some 9,900 connections.
	a, err = host.TuneRouter(host.Router{Platform: param.Given(host.HAProxyAlone, "flag"), Connections: count(50_000), NoFile: count(20_000)})
	answered(t, a, err)
	if f := finding(t, a, "open files"); f.Grade != answer.Cannot {
		t.Errorf("%+v", f)
	}
	if n := a.Result("maxconnForNofile").(int64); n < 9900 || n > 10000 || host.HAProxyFiles(n, 1, 2) > 20_000 || host.HAProxyFiles(n+1, 1, 2) <= 20_000 {
		t.Errorf("%d connections for 20000 open files", n)
	}
	a, err = host.TuneRouter(host.Router{Connections: count(5_000_000)})
	answered(t, a, err)
	if f := finding(t, a, "maxConnections"); f.Grade != answer.Cannot {
		t.Errorf("%+v", f)
	}
	// OpenShift 3 has the document's environment variable.
	a, err = host.TuneRouter(host.Router{Platform: param.Given(host.OpenShift3, "flag"), Connections: count(30_000)})
	answered(t, a, err)
	if len(a.Commands) != 1 || !strings.Contains(a.Commands[0].Line, "ROUTER_MAX_CONNECTIONS=43000") {
		t.Errorf("%+v", a.Commands)
	}
}

// R9: the interrupts on one CPU and HAProxy on the next, of the NIC's node.
func TestRouterPinsToTheNUMANode(t *testing.T) {
	facts := host.Facts{
		From: "bundle x", NUMA: map[int]string{0: "0-3", 1: "4-7"},
		Interfaces: []host.Interface{{Name: "eth0", Up: true, Physical: true, Speed: 1e9, NUMANode: 0}, {Name: "eth1", Up: true, Physical: true, Speed: 25e9, NUMANode: 1}},
		Interrupts: []host.Interrupt{{Number: "30", Interface: "eth0"}, {Number: "31", Interface: "eth1"}},
	}
	a, err := host.TuneRouter(host.Router{Platform: param.Given(host.HAProxyAlone, "flag"), Threads: count(2), Facts: &facts})
	answered(t, a, err)
	wantResult(t, a, "interruptCPU", int64(4))
	if text := fileOf(t, a, "haproxy-global.cfg"); !strings.Contains(text, "cpu-map auto:1/1-2 5-6\n") {
		t.Errorf("%s", text)
	}
	if len(a.Commands) != 1 || a.Commands[0].Line != "echo 4 > /proc/irq/31/smp_affinity_list" {
		t.Errorf("%+v", a.Commands)
	}
	// Too few CPUs there.
	a, err = host.TuneRouter(host.Router{Platform: param.Given(host.HAProxyAlone, "flag"), Threads: count(4), Facts: &facts})
	answered(t, a, err)
	if strings.Contains(fileOf(t, a, "haproxy-global.cfg"), "cpu-map") || !strings.Contains(strings.Join(a.Warnings, " "), "nothing is pinned") {
		t.Errorf("%q", a.Warnings)
	}
}

// HAProxy reads the file, and asks for the open files that are computed.
func TestHAProxyTakesTheFile(t *testing.T) {
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		if haproxy, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Skip("haproxy is not installed here")
		}
	}
	// A short path: sockets have a bound.
	dir, err := os.MkdirTemp("", "ha")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rest := write("rest.cfg", "defaults\n  mode http\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\nfrontend a\n  bind unix@"+dir+"/a\n  default_backend b\nfrontend c\n  bind unix@"+dir+"/c\n  default_backend b\nbackend b\n  server s 127.0.0.1:1\n")
	needs := regexp.MustCompile(`FD limit to (\d+)`)
	for i, p := range []host.Router{
		{Connections: count(10_000)},
		{Connections: count(3_000), Threads: count(4), Header: param.Given(param.Bytes(40_000), "flag")},
		{Connections: count(3_000), Threads: count(2), CPUs: param.Given("0-1", "flag")},
		{Connections: count(3_000), Threads: count(1), CPUs: param.Given("0", "flag")},
		{Connections: count(3_000), Threads: count(8)},
		{Connections: count(3_000), Threads: count(8), CPUs: param.Given("0-3", "flag")},
		{Connections: count(3_000), Threads: count(2), CPUs: param.Given("0-3", "flag")},
	} {
		p.Platform = param.Given(host.HAProxyAlone, "flag")
		a, err := host.TuneRouter(p)
		answered(t, a, err)
		global := write(fmt.Sprintf("global%d.cfg", i), fileOf(t, a, "haproxy-global.cfg"))
		if out, err := exec.Command(haproxy, "-c", "-f", global, "-f", rest).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") || strings.Contains(string(out), "ALERT") {
			t.Errorf("haproxy -c: %v\n%s\n%s", err, out, fileOf(t, a, "haproxy-global.cfg"))
		}
		// It refuses to start with fewer, and says how many it wants.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		out, _ := exec.CommandContext(ctx, "sh", "-c", `ulimit -n 200 && exec "$0" -db -f "$1" -f "$2"`, haproxy, global, rest).CombinedOutput()
		m := needs.FindStringSubmatch(string(out))
		if m == nil {
			t.Logf("this HAProxy does not say how many open files it wants: %s", out)
			continue
		}
		if got, _ := strconv.ParseInt(m[1], 10, 64); got != a.Result("openFiles").(int64) {
			t.Errorf("HAProxy wants %s open files, want %v (%+v)", m[1], a.Result("openFiles"), p)
		}
	}
}

// A map of one CPU for each thread wants as many of both.
func TestRouterMapsThreadsToCPUs(t *testing.T) {
	for cpus, want := range map[string]string{"0-7": "cpu-map auto:1/1-8 0-7\n", "0-3": "cpu-map 1/1-8 0-3\n"} {
		a, err := host.TuneRouter(host.Router{Platform: param.Given(host.HAProxyAlone, "flag"), Threads: count(8), CPUs: param.Given(cpus, "flag")})
		answered(t, a, err)
		if text := fileOf(t, a, "haproxy-global.cfg"); !strings.Contains(text, want) {
			t.Errorf("%s: %s", cpus, text)
		}
	}
}
