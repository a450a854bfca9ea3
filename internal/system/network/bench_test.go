package network

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// benchSpan holds how many seconds a generator runs, in turn with the other, benchRounds
// times.
const (
	benchSpan   = 3
	benchRounds = 7

	yardstickPort = "5201"
)

// yield holds a client's bits or requests per second, and those for each second of its
// processor.
type yield struct{ perSecond, perCPUSecond float64 }

// ours loads a path with our generator.
func ours(b *testing.B, n *network, address string, connections float64, bits bool) yield {
	undo, err := cpu.Keep(n.clientCPUs)
	if err != nil {
		b.Fatal(err)
	}
	defer undo()
	clock := record.StartClock(time.Now)
	g := load.New(n.load(address, n.client.EnterNetwork), clock.Now, 1)
	before, err := proc.Read(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	done := 0
	schedule := streams.Schedule{Value: connections, Begin: clock.Now(), Hold: benchSpan * time.Second, Window: time.Second, Timeout: 10 * time.Second}
	if err := g.Run(context.Background(), schedule, func(w *record.Window) {
		if done += w.Done; w.FailedAll() > 0 {
			b.Errorf("%d failed: %v", w.FailedAll(), w.Failed)
		}
	}); err != nil {
		b.Fatal(err)
	}
	after, err := proc.Read(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	what := float64(done)
	if bits {
		what *= 8 * float64(n.size)
	}
	return yield{what / benchSpan, what / (after.CPUSeconds - before.CPUSeconds)}
}

// theirs runs the server and the client of a yardstick, each on the processors of its
// side, and reads by a pattern what the client came to.
func theirs(b *testing.B, n *network, pattern string, server, client []string, perSecond bool) yield {
	serves, err := n.server.Start(n.server.Command(server[0], server[1:]...), proc.How{Name: server[0], CPUs: n.serverCPUs})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		serves.KillAll()
		<-serves.Done()
	}()
	// It does not say when it listens: from then on nobody else can.
	err = serves.Await(context.Background(), 10*time.Second, func() error {
		return n.server.InNetwork(func() error {
			l, err := net.Listen("tcp", ":"+yardstickPort)
			if err != nil {
				return nil
			}
			l.Close()
			return errors.New("it does not listen")
		})
	})
	if err != nil {
		b.Fatal(err)
	}
	var out strings.Builder
	cmd := n.client.Command("/bin/bash", "-c", "TIMEFORMAT='cpu %U %S'; time "+strings.Join(client, " "))
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := n.client.Start(cmd, proc.How{Name: client[0], CPUs: n.clientCPUs})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		b.Fatalf("%v: %v\n%s", client, err, out.String())
	}
	find := func(pattern string) float64 {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(out.String(), -1)
		if len(all) == 0 {
			b.Fatalf("%s does not tell %s:\n%s", client[0], pattern, out.String())
		}
		x, err := strconv.ParseFloat(all[len(all)-1][1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	what, used := find(pattern), find(`cpu (\S+) \S+`)+find(`cpu \S+ (\S+)`)
	if perSecond {
		return yield{what, what * benchSpan / used}
	}
	return yield{what / benchSpan, what / used}
}

// BenchmarkYardsticks measures the generator, with its server, beside iperf3 and
// sockperf with theirs, on one path and from the same processors, in turns: the machine
// is never quite the same. Ratios are medians of neighbours, above 1 where ours is more.
func BenchmarkYardsticks(b *testing.B) {
	for _, x := range []struct {
		name, yardstick string
		size            int
		connections     float64
		pattern         string
		server, client  string
		perSecond       bool
	}{
		{"bulk", "iperf3", 1 << 20, 1, `"bits_per_second":\s*(\S+),`, "iperf3 -s -p PORT", "iperf3 -c ADDRESS -p PORT -R -J -t 3", true},
		{"bulk-4", "iperf3", 1 << 20, 4, `"bits_per_second":\s*(\S+),`, "iperf3 -s -p PORT", "iperf3 -c ADDRESS -p PORT -R -J -t 3 -P 4", true},
		{"requests", "sockperf", 64, 1, `ReceivedMessages=(\d+)`, "sockperf server --tcp -i ADDRESS -p PORT", "sockperf ping-pong --tcp -i ADDRESS -p PORT -m 64 -t 3", false},
	} {
		b.Run(x.name, func(b *testing.B) {
			if _, err := exec.LookPath(x.yardstick); err != nil {
				harness.Able(b, &proc.MissingError{For: "yardsticks", What: []string{x.yardstick}, Packages: []string{x.yardstick}})
			}
			cpus, err := proc.Processors(0)
			if err != nil {
				b.Fatal(err)
			}
			half := max(len(cpus)/2, 1)
			n := built(b, settings{kind: kindNamed("direct"), mtu: 1500, queues: 1, size: x.size, clientCPUs: cpus[:half], serverCPUs: cpus[len(cpus)-half:]})
			n.executable = suite.Binary(b)
			address, err := n.serve(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			words := func(text string) []string {
				return strings.Fields(strings.NewReplacer("ADDRESS", n.at.String(), "PORT", yardstickPort).Replace(text))
			}
			for b.Loop() {
				var own, other []yield
				var rates, costs []float64
				for round := range benchRounds {
					var y, t yield
					turns := []func(){
						func() { y = ours(b, n, address, x.connections, x.perSecond) },
						func() { t = theirs(b, n, x.pattern, words(x.server), words(x.client), x.perSecond) },
					}
					turns[round%2]()
					turns[1-round%2]()
					own, other = append(own, y), append(other, t)
					rates, costs = append(rates, y.perSecond/t.perSecond), append(costs, y.perCPUSecond/t.perCPUSecond)
				}
				middle := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
				b.ReportMetric(middle(rates), "ours/"+x.yardstick)
				b.ReportMetric(middle(costs), "ours/"+x.yardstick+"-by-cpu")
				for name, list := range map[string][]yield{"ours": own, x.yardstick: other} {
					slices.SortFunc(list, func(a, b yield) int { return int(a.perSecond - b.perSecond) })
					b.ReportMetric(list[len(list)/2].perSecond, name+"/s")
					b.ReportMetric(list[len(list)/2].perCPUSecond, name+"/cpu-s")
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
