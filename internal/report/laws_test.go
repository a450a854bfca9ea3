package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// lawful is the result of a sweep in which laws were planted: objects come at
// 150 a second, and each takes 60 KiB of the API server's memory.
func lawful(levels ...float64) result.Result {
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func() float64 { return math.Exp(0.02 * rng.NormFloat64()) }
	r := result.Result{Schema: result.Schema, ObjectKind: pods(), Experiment: "density", Workload: "node-density", Kind: "sweep", Verdict: slo.Pass, Why: "every level held", Arrived: "Ready"}
	in := 0
	for i, level := range levels {
		own := int(20*level) - in
		in += own
		p99 := (1.1 + 0.15*max(0, level-35)) * noise()
		s := stepAt(i+1, level, record.PurposeSweep, slo.Pass, "every objective held", account(in, in, 0, 0), figure(0.3*noise()), figure(p99))
		s.Ending, s.Pace, s.FromEmpty = record.EndHeld, "max", i == 0
		l := s.Latency["Ready"]
		l.N = own
		s.Latency["Ready"] = l
		rate := 150 * noise()
		s.AchievedRate, s.OfferedRate, s.ReachSeconds = &rate, &rate, figure(float64(own)/rate)
		s.Resources = map[string]result.Usage{
			"kube-apiserver": {CPUSeconds: 0.008 * float64(own) * noise(), PeakRSSBytes: int64(400e6 + 61440*float64(in) + 1e6*rng.NormFloat64())},
			"kube-scheduler": {CPUSeconds: 0.05, PeakRSSBytes: int64(140e6 + 1e6*rng.NormFloat64())},
			"plimsoll":       {CPUSeconds: 0.001 * float64(own) * noise(), PeakRSSBytes: int64(70e6 + 8000*float64(in) + 1e5*rng.NormFloat64())},
		}
		r.Steps = append(r.Steps, s)
	}
	r.Laws = findings.LawsOf(result.Spec{Axis: "pods-per-node", Unit: "pods/node", Kind: observe.Pods()}, r.Steps)
	return r
}

// rated is the result of a sweep of arrivals. One step decides nothing.
func rated() result.Result {
	rng := rand.New(rand.NewPCG(5, 6))
	r := result.Result{Schema: result.Schema, ObjectKind: pods(), Experiment: "rate", Workload: "pods", Kind: "sweep", Verdict: slo.Pass, Why: "every level held", Arrived: "Ready"}
	for i, level := range []float64{20, 40, 80, 120, 160, 240, 320} {
		s := stepAt(i+1, level, record.PurposeSweep, slo.Pass, "every objective held", account(int(level)*60, int(level)*60, 0, 0), figure(0.3), figure(1.1))
		s.Open, s.Ending = true, record.EndHeld
		achieved := level / (1 + 0.0005*(level-1) + 3e-5*level*(level-1)) * math.Exp(0.02*rng.NormFloat64())
		s.OfferedRate, s.AchievedRate = figure(level), &achieved
		s.Arrivals = &result.Arrivals{WarmUp: int(level) * 30, Judged: int(level) * 60}
		r.Steps = append(r.Steps, s)
	}
	r.Steps[2].Verdict, r.Steps[2].VerdictWhy = slo.Invalid, "this program was \x1b[31mlate"
	r.Laws = findings.LawsOf(result.Spec{Axis: "rate", Unit: "pods/s", Kind: observe.Pods()}, r.Steps)
	return r
}

func TestTextOfLaws(t *testing.T) {
	for _, c := range []struct {
		name    string
		result  result.Result
		explain bool
	}{
		{"laws", lawful(5, 10, 20, 30, 40, 50, 60), false},
		{"laws-explained", lawful(5, 10, 20, 30, 40, 50, 60), true},
		{"laws-few", lawful(10, 20, 40), false},
		{"laws-rate", rated(), true},
	} {
		var out bytes.Buffer
		if err := Text(&out, c.result, "runs/1", c.explain); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: what is not printable is printed", c.name)
		}
		golden.Check(t, *update, "text-"+c.name+".txt", out.Bytes())
	}
}
