package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
)

// big leaves a run of n objects in a directory, in steps, each milestone with
// a delay of its own: the worst that a table of objects can be to pack.
func big(t testing.TB, n, steps int) record.Dir {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	order := []string{"Created", "Scheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready", "Deleted"}
	rows, err := record.NewObjectWriter(dir, order)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	r := result.Result{Schema: result.Schema, ObjectKind: pods(), Experiment: "big", Workload: "node-density", Kind: "sweep", Verdict: slo.Pass, Arrived: "Ready"}
	now := int64(0)
	each := n / steps
	for step := 1; step <= steps; step++ {
		begin := now
		latency := result.Latencies{}
		for i := range each {
			now += int64(5000 * rng.ExpFloat64())
			row := record.ObjectRow{
				Slot: fmt.Sprintf("node-density-1f0c9a42-%d/node-density-%d-1", i/1000, i), Step: int64(step), Level: float64(step), Component: "node-density",
				Place: fmt.Sprintf("node-%04d", rng.IntN(1000)), Iteration: int64(i), Intended: now, Sent: now, Zero: now, Replied: now + 5000 + rng.Int64N(3000), Code: 201, Outcome: "created", There: true, PlantedDelay: rng.Int64N(1e6),
			}
			row.Milestones = map[string]int64{}
			at := row.Replied
			for _, m := range order[:7] {
				at += int64(5e4 * math.Exp(rng.NormFloat64()))
				row.Milestones[m] = at
			}
			rows.Add(row)
		}
		for _, m := range order[:7] {
			latency[m] = result.Latency{N: each}
		}
		now += 10e6
		wall := func(t int64) string {
			return start.Add(time.Duration(t) * time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
		}
		r.Steps = append(r.Steps, result.Step{ID: step, StepPlan: record.StepPlan{Level: float64(step), Purpose: record.PurposeSweep, FromEmpty: true}, LevelReached: float64(step), Verdict: slo.Pass,
			Start: wall(begin), End: wall(now), Seconds: float64(now-begin) / 1e6, Objects: result.Objects{Intended: each, Created: each, Ready: each}, Latency: latency})
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteResult(r, nil); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteJSON(record.EnvironmentFile, record.Environment{Start: start, Kind: &r.ObjectKind}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A page stays small, however large the run.
func TestPagesStaySmall(t *testing.T) {
	for _, tt := range []struct {
		n, steps int
		packed   bool
	}{{100_000, 40, true}, {200_000, 4, false}} {
		dir := big(t, tt.n, tt.steps)
		if err := WriteFile(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir.Path(record.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1_500_000 {
			t.Errorf("%d objects in %d steps make a page of %d bytes", tt.n, tt.steps, info.Size())
		}
		in := read(t, dir)
		data, err := chart.Of(in.Recorded)
		p := data.Objects
		if err != nil || (p != nil) != tt.packed {
			t.Errorf("%d objects are in the page: %v, want %v (%v)", tt.n, p != nil, tt.packed, err)
		}
		if p != nil {
			t.Logf("%d objects in %d steps: %d bytes, times in %d µs, short %v", tt.n, tt.steps, info.Size(), p.Unit, p.Short)
		}
	}
}

// BenchmarkWriteFile measures a report of 100,000 objects: time, and peak memory.
func BenchmarkWriteFile(b *testing.B) {
	dir := big(b, 100_000, 5)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if err := WriteFile(dir); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapSys-before.HeapSys)/(1<<20), "MiB-more")
	if info, err := os.Stat(dir.Path(record.ReportFile)); err == nil {
		b.ReportMetric(float64(info.Size()), "page-bytes")
	}
}

// BenchmarkOpen measures how long a browser takes to open the report of 100,000
// objects, until everything in it is drawn.
func BenchmarkOpen(b *testing.B) {
	ctx := newBrowser(b)
	dir := big(b, 100_000, 5)
	if err := WriteFile(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := chromedp.Do(ctx, chromedp.Navigate("file://"+dir.Path(record.ReportFile))); err != nil {
			b.Fatal(err)
		}
		drawn, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(document.documentElement.dataset.drawn ? performance.now() : -1))))`, chromedp.EvalAwaitPromise))
		if err != nil || drawn < 0 {
			b.Fatal("not drawn", err)
		}
		b.ReportMetric(drawn, "ms-till-drawn")
	}
}
