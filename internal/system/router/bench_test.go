package router

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/workloads"
)

// suite is the tests of this package that need the program.
var suite = harness.New(os.Getenv)

// running starts a router by parameters, until the test ends.
func running(t testing.TB, given map[string]string) *deployment {
	t.Helper()
	binary := suite.Binary(t) // which the servers are a part of
	installed, err := haproxy.Find(context.Background(), "")
	harness.Able(t, err)
	w, err := workload.Load(workloads.FS(), "router", func(string) (workload.Target, error) { return Provider{}.Declare(), nil })
	if err != nil {
		t.Fatal(err)
	}
	params, err := w.Resolve(given)
	if err != nil {
		t.Fatal(err)
	}
	l, err := readLimits()
	if err != nil {
		t.Fatal(err)
	}
	one, err := settingsOf(params, l)
	if err != nil {
		t.Fatal(err)
	}
	one.binary = installed
	dir, err := os.MkdirTemp("", "plimsoll-router-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = errors.Join(os.Chmod(dir, 0o755), haproxy.Prepare(dir, proc.Least()))
	}
	if err != nil {
		t.Fatal(err)
	}
	tied := proc.NewTie()
	s := &deployment{settings: one, dir: dir, tied: tied, host: system.Host{Executable: binary, Random: rand.Reader, Now: time.Now}}
	t.Cleanup(func() {
		var all []*proc.Process
		for _, x := range s.servers {
			if x.process != nil {
				all = append(all, x.process)
			}
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if !p.Ended() { // the tie would end it only with the run
				t.Errorf("a server is left, process %d", p.PID())
			}
		}
		tied.Close()
	})
	if err := s.start(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// yield holds what a generator achieved.
type yield struct {
	requests, rate, cpu float64
	p50, p99            time.Duration
}

func (y yield) report(b *testing.B, name string) {
	b.ReportMetric(y.requests/y.cpu, name+"-req/cpu-s")
	b.ReportMetric(y.rate, name+"-req/s")
	if y.p50 > 0 {
		b.ReportMetric(float64(y.p50.Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(y.p99.Microseconds()), name+"-p99-us")
	}
}

// middle is the yield with the median of requests per CPU second.
func middle(list []yield) yield {
	slices.SortFunc(list, func(a, b yield) int { return cmp.Compare(a.requests/a.cpu, b.requests/b.cpu) })
	return list[len(list)/2]
}

// benchSpan holds how long a generator runs, in turn with the others, benchRounds times.
const (
	benchSpan   = 2 * time.Second
	benchRounds = 10
)

// paired reports the ratio of neighbours: its geometric mean, with the interval at
// 95% by Student's t of the logarithms.
func paired(b *testing.B, name string, ratios []float64) {
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		logs[i] = math.Log(r)
	}
	mean, deviation := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
	b.ReportMetric(math.Exp(mean), name)
	b.ReportMetric(math.Exp(mean-half), name+"-from")
	b.ReportMetric(math.Exp(mean+half), name+"-to")
}

// ours loads the router with our generator.
func ours(b *testing.B, s *deployment, connections float64) yield {
	undo, err := cpu.Keep(s.placement.generator)
	if err != nil {
		b.Fatal(err)
	}
	defer undo()
	clock := record.StartClock(time.Now)
	g := load.New(s.load(), clock.Now, 1)
	before, err := proc.Read(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	sum := record.NewCounts()
	done := 0
	schedule := streams.Schedule{Value: connections, Begin: clock.Now(), Hold: benchSpan, Window: time.Second, Timeout: 10 * time.Second}
	if err := g.Run(context.Background(), schedule, func(w *record.Window) {
		done += w.Done
		if h, err := w.Histograms[load.Response].Counts(); err == nil {
			sum.Merge(h)
		}
		if n := w.FailedAll(); n > 0 {
			b.Errorf("%d failed: %v", n, w.Failed)
		}
	}); err != nil {
		b.Fatal(err)
	}
	after, err := proc.Read(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	micros := func(q float64) time.Duration { return time.Duration(sum.ValueAtPercentile(q)) * time.Microsecond }
	return yield{float64(done), float64(done) / benchSpan.Seconds(), after.CPUSeconds - before.CPUSeconds, micros(50), micros(99)}
}

// theirs loads the router with another program, kept to the same processors, and
// reads how many requests it made by a pattern.
func theirs(b *testing.B, s *deployment, requests string, command ...string) yield {
	path, err := exec.LookPath(command[0])
	if err != nil {
		b.Logf("%s is not installed: apt-get install wrk nghttp2-client", command[0])
		return yield{cpu: 1}
	}
	cmd := exec.Command(path, command[1:]...)
	text := new(output)
	cmd.Stdout, cmd.Stderr = text, text
	p, err := proc.Start(cmd, s.how(command[0], s.placement.generator))
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	err = p.Wait()
	took := time.Since(began)
	if err != nil {
		b.Fatalf("%v: %v\n%s", command, err, text)
	}
	find := func(pattern string) string {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(string(*text)); m != nil {
			return m[1]
		}
		return ""
	}
	n, err := strconv.ParseFloat(find(requests), 64)
	if err != nil {
		b.Fatalf("%s does not tell its requests:\n%s", command[0], text)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	y := yield{requests: n, rate: n / took.Seconds(), cpu: float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9}
	y.p50, _ = time.ParseDuration(find(`50%\s+(\S+)`))
	y.p99, _ = time.ParseDuration(find(`99%\s+(\S+)`))
	return y
}

type output []byte

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) { *o = append(*o, p...); return len(p), nil }

// BenchmarkYardsticks measures the generator beside wrk and h2load on one
// router, from the same processors, in turns: the machine is never quite the same.
// Ratios are of requests for each CPU second of the generator, above 1 where ours
// gets more out of one.
func BenchmarkYardsticks(b *testing.B) {
	const connections = 40
	n := strconv.Itoa(connections)
	for _, x := range []struct {
		name   string
		params map[string]string
		asked  string // of h2load, which wants a number of requests
		more   []string
	}{
		{"plain", map[string]string{"termination": "none"}, "100000", []string{"--h1"}},
		{"tls", map[string]string{"termination": "edge"}, "60000", []string{"--h1"}},
		{"tls-bulk", map[string]string{"termination": "edge", "pageSize": "1MiB"}, "1500", []string{"--h1"}},
		{"handshakes", map[string]string{"termination": "edge", "keepAlive": "false", "resumption": "false"}, "3000", []string{"--h1", "-H", "Connection: close"}},
		{"http2", map[string]string{"termination": "edge", "http": "2"}, "40000", nil},
	} {
		b.Run(x.name, func(b *testing.B) {
			x.params["routes"] = "1"
			s := running(b, x.params)
			host := s.hosts[0].Name
			for range b.N {
				var own, wrk, h2load []yield
				var toWrk, toH2load []float64
				address, scheme := s.router.Secure, "https"
				if x.name == "plain" {
					address, scheme = s.router.Plain, "http"
				}
				for round := range benchRounds {
					var y, w, h yield
					turns := []func(){
						func() { y = ours(b, s, connections) },
						func() {
							h = theirs(b, s, `(\d+) succeeded`, append([]string{"h2load", "-t1", "-c" + n, "-n" + x.asked, "--connect-to=" + address, scheme + "://" + host + "/"}, x.more...)...)
						},
					}
					if x.name == "plain" {
						turns = append(turns, func() {
							w = theirs(b, s, `(\d+) requests in`, "wrk", "-t1", "-c"+n, "-d"+benchSpan.String(), "--latency", "-H", "Host: "+host, "http://"+address+"/")
						})
					}
					for k := range turns { // each goes first as often as the others
						turns[(k+round)%len(turns)]()
					}
					own, h2load, toH2load = append(own, y), append(h2load, h), append(toH2load, y.requests/y.cpu*h.cpu/h.requests)
					if w.requests > 0 {
						wrk, toWrk = append(wrk, w), append(toWrk, y.requests/y.cpu*w.cpu/w.requests)
					}
				}
				middle(own).report(b, "ours")
				middle(h2load).report(b, "h2load")
				paired(b, "ours/h2load", toH2load)
				if len(wrk) > 0 {
					middle(wrk).report(b, "wrk")
					paired(b, "ours/wrk", toWrk)
				}
			}
		})
	}
}
