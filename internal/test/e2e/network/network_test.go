package network_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// networkProgram returns the built program, where paths can be built.
func networkProgram(t *testing.T) *harness.Program {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Able(t, errors.New("root alone may make network namespaces"))
	}
	return suite.Program(t)
}

// Each path carries every request, and the result names what carries it.
func TestNetworkPathsCarryWhatIsSent(t *testing.T) {
	t.Parallel()
	p := networkProgram(t)
	for _, path := range []string{"direct", "vxlan", "bridge", "routed", "ovs", "wireguard", "ipsec"}[:suite.Size(2, 7)] {
		got := p.Run(t, "sweep", "network-path", "--axis", "streams", "--levels", "1", "--repeat", "1", "--hold", "1s", "--out", path,
			"--set", "size=20000", "--set", "path="+path, "--set", "gso=off", "--set", "tso=off", "--set", "gro=off", "--slo", "errors <= 0%")
		if got.Code != process.ExitPass && got.Code != process.ExitInvalid { // beside other tests
			t.Errorf("%s: %+v", path, got)
			continue
		}
		s := p.Result(t, path).Steps[0]
		if s.Requests.Done < 20 || s.Requests.Done != s.Requests.Intended {
			t.Errorf("%s: %+v", path, s.Requests)
		}
		m := s.Metrics
		if m["wireBytesPerByte"] < 0.5 || m["packets"] < float64(s.Requests.Done) { // counted some moments apart
			t.Errorf("%s: no packets have crossed: %v", path, m)
		}
		if program := slices.Contains([]string{"ovs", "wireguard", "ipsec"}, path); program != (m["pathCPUPer1000"] > 0) || program != strings.Contains(got.Stdout, "is carried in user space, by ") {
			t.Errorf("%s: not told what carries it: %v\n%s", path, m, got.Stdout)
		}
		// Each is read after the one before, beside other tests some milliseconds.
		if m["cpuPer1000"] < 0.8*(m["clientCPUPer1000"]+m["serverCPUPer1000"]+m["pathCPUPer1000"]) || m["clientCPUPer1000"] <= 0 || m["serverCPUPer1000"] <= 0 {
			t.Errorf("%s: the CPU time of the parts is not within that of all: %v", path, m)
		}
	}
	if left, _ := e2e.InRooms(t, p, "networks"); len(left) > 0 {
		t.Errorf("what still runs: %v", left)
	}
}

// A link that carries no more than a rate is found, to 3%, and named. With offloads off
// each packet crosses by itself, so that the headers that a path adds to a packet follow
// from bytes and packets: 66 bytes of Ethernet, IPv4 and TCP with its times. An answer that an edge
// of the 3 s cuts is a 188th of all bytes, and 7 bytes of each packet.
func TestMeasuredANetworkLinksRate(t *testing.T) {
	p := networkProgram(t)
	suite.Measures(t)
	s := bulkStep(t, p, "r", "link", "linkRate=50Mbit", "gso=off", "tso=off", "gro=off")
	// Of each frame of 1514 bytes 1448 are the answer's.
	if rate := s.Metrics["throughput"] * 1e3 * 1514 / 1448; math.Abs(rate-50) > 1.5 {
		t.Errorf("the link carried %.1f Mbit/s, want 50", rate)
	}
	const request, answer = 67, 67 + 100000
	m := s.Metrics
	bytes := m["throughput"] * 1e9 / 8 // of answers, a second
	if header := ((m["wireBytesPerByte"]-1)*bytes - request*bytes/answer) / m["packets"]; math.Abs(header-66) > 10 {
		t.Errorf("%.1f bytes of headers for each packet, want 66: %v", header, m)
	}
}

// A program that carries packets is named as what
// bound a step.
func TestMeasuredWhatBindsANetworkPath(t *testing.T) {
	p := networkProgram(t)
	suite.Measures(t)
	suite.Long(t, "a measurement of its own")
	bulkStep(t, p, "c", "carriers", "path=wireguard", "gso=off", "tso=off", "gro=off")
}

// bulkStep returns a step of large answers that was bound by what has that name.
func bulkStep(t *testing.T, p *harness.Program, out, bound string, set ...string) result.Step {
	t.Helper()
	args := []string{"sweep", "network-path", "--axis", "streams", "--levels", "2", "--repeat", "1", "--hold", "3s", "--out", out, "--set", "pattern=bulk", "--set", "size=100000", "--slo", "errors <= 0%"}
	for _, x := range set {
		args = append(args, "--set", x)
	}
	got := p.Run(t, args...)
	if got.Code != process.ExitPass {
		t.Fatalf("%+v", got)
	}
	s := p.Result(t, out).Steps[0]
	if b := s.Bottleneck.Bound(); b == nil || b.Name != bound {
		t.Errorf("%v: bound by %+v, want the %s", set, b, bound)
	}
	return s
}

// What is planted in one arm is found by a comparison with the plain path, and named: a
// time of the server by the latency of answers, the rate of a link, to 3%, by the share
// of it that is in use, and loss by the segments that were sent again. Loads are closed
// loops, whose latencies a busy machine does not change by as much.
func TestWhatIsPlantedInANetworkPathIsFound(t *testing.T) {
	suite.Long(t, "three comparisons of real loads")
	p := networkProgram(t)
	within := func(x, lo, hi float64) bool { return x > lo && x < hi }
	for i, tt := range []struct {
		plant, metric, level string
		args                 []string
		found                func(x float64, s result.Step) bool // of the planted path
		plain                func(x float64, s result.Step) bool
	}{
		{"serviceTime=constant:20ms", "Response p50", "1", nil,
			func(x float64, _ result.Step) bool { return within(x, 0.020, 0.023) },
			func(x float64, _ result.Step) bool { return x < 0.01 }},
		// Two connections share the link: of each frame of 1514 bytes 1448 are theirs.
		{"linkRate=50Mbit", "Response p50", "2", []string{"--set", "pattern=bulk", "--set", "size=100000"},
			func(x float64, s result.Step) bool {
				most := slices.MaxFunc(s.Bottleneck.Bounds, func(a, b result.BoundShare) int { return cmp.Compare(a.Share, b.Share) })
				return within(2*8*100000/x/1e6*1514/1448, 48.5, 51.5) && most.Name == "link" && most.Share > 0.7
			},
			func(x float64, _ result.Step) bool { return x < 0.02 }},
		{"loss=2%", "throughput", "1", []string{"--set", "pattern=bulk"},
			func(_ float64, s result.Step) bool { return within(againOf(s), 0.015, 0.08) },
			func(_ float64, s result.Step) bool { return againOf(s) < 0.01 }},
	} {
		out := fmt.Sprint("planted", i)
		got := p.Run(t, append([]string{"ab", "network-path", "--axis", "streams", "--level", tt.level, "--arm", "plain:", "--arm", "planted:" + tt.plant, "--metric", tt.metric, "--repeat", "4", "--hold", "2s",
			"--out", out, "--set", "gso=off", "--set", "tso=off", "--slo", "errors <= 50%"}, tt.args...)...)
		r := p.Result(t, out)
		l := r.Comparison.Levels[0]
		if got.Code != process.ExitFail || l.Verdict != "worse" || !strings.Contains(got.Stdout, "at saturation") {
			t.Errorf("%s: exit code %d: %s", tt.plant, got.Code, r.Why)
		}
		for _, s := range r.Steps {
			x, ok := s.Metrics[tt.metric]
			if l := s.Latency["Response"]; !ok && l.P50 != nil {
				x = *l.P50
			}
			of := tt.plain
			if s.Arm == "planted" {
				of = tt.found
			}
			if !of(x, s) {
				t.Errorf("%s: step %d of the %s path has a %s of %g: %+v, %+v", tt.plant, s.ID, s.Arm, tt.metric, x, s.Metrics, s.Bottleneck)
			}
		}
	}
}

// againOf returns the share of the segments of answers that were sent again.
func againOf(s result.Step) float64 {
	const segment = 1448
	return s.Metrics["retransmits"] / (s.Metrics["throughput"] * 1e9 / 8 * s.Seconds / segment)
}

// Arms that are the same are seldom better or worse than each other. With 12 pairs at
// an error rate of 5% more than 3 are one chance in 500; docs/network.md has 200.
func TestNetworkPathsThatAreTheSame(t *testing.T) {
	suite.Long(t, "a hundred loads")
	p := networkProgram(t)
	const pairs, most = 12, 3
	if got := p.Run(t, "workloads", "export", "network-path", "short"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(p.Dir, "short", "workload.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "warmUp: 2s", "warmUp: 200ms")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for pair := range pairs {
		out := fmt.Sprint("pair", pair)
		p.Run(t, "ab", "./short", "--axis", "rate", "--level", "1000", "--hold", "600ms", "--slo", "errors <= 50%", "--arm", "a:", "--arm", "b:", "--repeat", "4", "--metric", "cpuPer1000", "--out", out)
		if v := p.Result(t, out).Verdict; v == "better" || v == "worse" {
			differ++
		}
	}
	if differ > most {
		t.Errorf("%d of %d pairs of equal arms are better or worse", differ, pairs)
	}
}

// What cannot be is refused before any load, with what helps.
func TestNetworkPathsThatCannotBe(t *testing.T) {
	t.Parallel()
	p := networkProgram(t)
	for _, tt := range []struct{ set, code, says string }{
		{"mtu=70000", "2", "must be at most 65535, is 70000"},
		{"linkRate=10", "2", "want a speed with a unit"},
		{"serverCPUs=4096", "2", "not one of the processors"},
		{"path=pigeon", "2", "pigeon"},
		{"size=100000000000", "2", "size: must be at most 67108864"},
		{"serviceTime=soon", "2", "serviceTime"},
		{"loss=all", "2", "not a share of packets"},
		{"loss=100%", "2", "not a share of packets"},
		{"window=10", "2", "window: must be at least 2304 B, is 10"},
	} {
		got := p.Run(t, "sweep", "network-path", "--levels", "1", "--set", tt.set, "--out", "refused")
		if fmt.Sprint(got.Code) != tt.code || !strings.Contains(got.Stderr, tt.says) {
			t.Errorf("%s: %+v, want %q", tt.set, got, tt.says)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "refused")); err == nil {
			t.Errorf("%s: a record was begun", tt.set)
		}
	}
	// A kernel without a kind of link says which option it lacks.
	for path, option := range map[string]string{"geneve": "CONFIG_GENEVE", "ipsec": "CONFIG_INET_ESP"} {
		got := p.Run(t, "sweep", "network-path", "--axis", "rate", "--levels", "20", "--repeat", "1", "--hold", "1s", "--set", "path="+path, "--set", "cipher=null", "--out", path, "--slo", "errors <= 0%")
		if got.Code != process.ExitPass && (got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "this kernel has no "+option)) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// A run that is killed leaves its directories at most, and the next command none.
func TestANetworkRunThatIsKilled(t *testing.T) {
	t.Parallel()
	p := networkProgram(t)
	s := p.Start(t, "sweep", "network-path", "--axis", "rate", "--levels", "100", "--repeat", "1", "--hold", "30s", "--out", "killed", "--set", "path=routed")
	harness.Await(t, "load", func() bool {
		return s.Ended() || p.Count("killed", func(e record.Event) bool { _, is := e.Body.(*record.Window); return is }) > 0
	})
	if got := s.Kill(); got.Code == 0 {
		t.Fatalf("it ended before: %+v", got)
	}
	p.LeavesNoProcess(t)
	e2e.Cleans(t, p, "run [0-9a-z]+ of target network, on this machine: .*/networks/")
	if _, files := e2e.InRooms(t, p, "networks"); len(files) > 0 {
		t.Errorf("SIGKILL and the next command have left: %v", files)
	}
}
