package bench

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// What it costs to compare two recorded experiments of ten runs each, with
// their distributions, and to write the page: time, and memory at its most.
func BenchmarkCompare(b *testing.B) {
	p := suite.Program(b)
	for _, objects := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			one, other := recorded(b, "one", objects/10, 1), recorded(b, "other", objects/10, 1.02)
			for b.Loop() {
				cmd := p.Command("compare", string(one), string(other), "--out", filepath.Join(b.TempDir(), "out"))
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				begin := time.Now()
				if err := cmd.Run(); err != nil || !bytes.Contains(out.Bytes(), []byte("other is equivalent to one")) {
					b.Fatalf("compare: %v\n%s", err, out.Bytes())
				}
				b.ReportMetric(time.Since(begin).Seconds(), "s/compare")
				b.ReportMetric(cmd.ProcessState.UserTime().Seconds()+cmd.ProcessState.SystemTime().Seconds(), "cpu-s")
				b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "peak-MiB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// recorded leaves an experiment that was never made in a directory: ten runs
// of as many objects each, of two components, each with every milestone of a
// pod at a time of its own. Factor is how much longer it takes.
func recorded(b *testing.B, name string, objects int, factor float64) record.Dir {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	milestones := []string{"Created", "Scheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready", "Deleted"}
	const runs = 10
	dir, err := record.CreateDir(filepath.Join(b.TempDir(), name))
	must(err)
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	p := plan.Plan{
		Schema: plan.Schema, Name: name, Workload: "node-density-heavy", Pace: plan.Pace{Max: true}, StepTimeout: plan.Duration(time.Hour), Seed: 1,
		Axis: plan.Axis{Name: "pods-per-node", Levels: []float64{500, 500, 500, 500, 500, 500, 500, 500, 500, 500}}, Goals: strictyaml.Ordered[[]string]{{Key: "ready", Value: []string{"all Ready"}}},
		Primary: &plan.Primary{Metric: "ContainersStarted p50", Margin: "5%", Alpha: 0.05},
		AsRun:   &plan.AsRun{ID: name, Kind: plan.Sweep, Command: "plimsoll sweep", Version: "0.1.0", Started: start.Format(time.RFC3339), Unit: "pods/node", Milestones: milestones, Arrived: "Ready"},
	}
	text, err := p.Marshal()
	must(err)
	must(dir.WriteFile(record.ExperimentFile, text))
	must(dir.WriteFile(record.HistoryFile, nil))
	must(dir.WriteJSON(record.EnvironmentFile, record.Environment{Start: start, Kind: &record.ObjectKind{There: "Ready"}, Target: record.TargetNaming{Kind: "cluster", Name: "c"}, Facts: []record.Fact{{Name: "kubernetes", Value: "v1.36.3", Bearing: record.Refuses}}}))

	rows, err := record.NewObjectWriter(dir, milestones)
	must(err)
	rng := rand.New(rand.NewPCG(1, uint64(1000*factor)))
	r := result.Result{Schema: result.Schema, Experiment: name, Workload: p.Workload, Kind: "sweep", Verdict: slo.Pass, Arrived: "Ready", Version: "0.1.0"}
	now := int64(0)
	for step := 1; step <= runs; step++ {
		times := make(map[string][]float64)
		run := factor * math.Exp(0.005*rng.NormFloat64())
		for i := range objects {
			now += int64(2000 * rng.ExpFloat64())
			component, slow := "app", 1.0
			if i%2 == 1 {
				component, slow = "database", 3
			}
			row := record.ObjectRow{
				Slot: fmt.Sprintf("heavy-1f0c9a42-%d/%s-%d", i/1000, component, i), Step: int64(step), Level: 500, Component: component, Place: fmt.Sprintf("node-%04d", rng.IntN(200)),
				Iteration: int64(i / 2), Intended: now, Sent: now, Zero: now, Replied: now + 5000 + rng.Int64N(3000), Code: 201, Outcome: "created", There: true, Milestones: make(map[string]int64),
			}
			at := row.Replied
			for _, m := range milestones[:7] {
				at += int64(5e5 * run * slow * math.Exp(0.5*rng.NormFloat64()))
				row.Milestones[m] = at
				times[m] = append(times[m], float64(at-now)/1e6)
			}
			rows.Add(row)
		}
		s := result.Step{
			ID: step, StepPlan: record.StepPlan{Level: 500, Purpose: record.PurposeSweep, FromEmpty: true, FullHold: true}, LevelReached: 500, Verdict: slo.Pass, Pace: "max",
			Objects: result.Objects{Intended: objects, Created: objects, Ready: objects}, Latency: result.Latencies{},
		}
		for m, values := range times {
			sample := stats.NewSample(values, 0)
			at := func(q float64) *float64 { v := sample.Quantile(q); return &v }
			mean := sample.Mean()
			s.Latency[m] = result.Latency{N: objects, P50: at(.5), P90: at(.9), P95: at(.95), P99: at(.99), Max: at(1), Mean: &mean}
		}
		r.Steps = append(r.Steps, s)
		now += 60e6
	}
	must(rows.Close())
	must(dir.WriteResult(r, nil))
	return dir
}
