package judge

import (
	"maps"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// declared are metrics of each fold, and of a ratio, as a target may have them.
func declared() []record.Metric {
	of := func(name, source, value string, fold record.FoldKind) record.Metric {
		return record.Metric{Name: name, Of: record.Fold{Source: source, Value: value, Fold: fold}}
	}
	per := func(m record.Metric, source, value string, fold record.FoldKind) record.Metric {
		m.Per = &record.Fold{Source: source, Value: value, Fold: fold}
		return m
	}
	return append(record.UseOf("p", "p"),
		record.AchievedRate(""),
		of("last", "gauge", "v", record.FoldLast), of("most", "gauge", "v", record.FoldMost), of("growth", "gauge", "v", record.FoldGrowth),
		of("difference", "gauge", "v", record.FoldDifference), of("mean", "gauge", "v", record.FoldMean), of("per second", "gauge", "v", record.FoldPerSecond),
		of("memory, mean", "p", record.ValueMemory, record.FoldMean), of("done a second", record.SourceStep, record.ValueDone, record.FoldPerSecond),
		per(of("done per CPU second", record.SourceStep, record.ValueDone, record.FoldLast), "p", record.ValueCPU, record.FoldDifference),
		per(of("memory per CPU second", "p", record.ValueMemory, record.FoldMost), "p", record.ValueCPU, record.FoldDifference),
		of("of no source", "none", "v", record.FoldLast), of("of no value", "gauge", "none", record.FoldMost),
		per(of("by nothing", "gauge", "v", record.FoldLast), "gauge", "none", record.FoldLast),
	)
}

// readAt puts samples on record: v is the time, a CPU is half in use, and memory
// grows by a byte a second.
func (s *script) readAt(seconds float64) {
	s.at(seconds)
	s.put(&record.Reading{Source: "gauge", Values: map[string]float64{"v": seconds}})
	s.put(&record.Reading{Source: "p", Values: map[string]float64{"cpuSeconds": seconds / 2, "rssBytes": 1e9, "pssBytes": 100 + seconds}})
}

// A metric is what its target declares: no name of one stands in this package.
func TestMetricsOfAStream(t *testing.T) {
	for _, c := range []struct {
		why    string
		ending record.Ending
		want   map[string]float64
	}{
		{"held from 10 to 20 s", record.EndHeld, map[string]float64{
			"last": 25, "most": 25, "growth": 20, "difference": 20, "mean": 15.5, "per second": 1, "memory, mean": 115.5,
			"done a second": 100, "done per CPU second": 200, "memory per CPU second": 25,
		}},
		{"cut", record.EndInterrupted, map[string]float64{"most": 25, "growth": 20, "done a second": 100}},
	} {
		s := oneOfMany(t)
		s.spec.Kind = record.ObjectKind{There: "Responded", Metrics: declared()}
		s.Builder = NewBuilder(s.spec)
		s.begin(100, func(b *record.StepEvent) { b.Open, b.Hold = true, 10e6 })
		for i := 5; i <= 25; i++ {
			s.readAt(float64(i))
			if i == 10 {
				s.put(&record.StepEvent{Phase: record.PhaseReached})
			}
			if i > 10 && i <= 20 {
				s.put(&record.Window{From: s.now - 1e6, To: s.now, Intended: 100, Sent: 100, Done: 100, Answered: 100})
			}
		}
		step := s.end(c.ending)
		if !maps.Equal(step.Metrics, c.want) {
			t.Errorf("%s: %v, want %v", c.why, step.Metrics, c.want)
		}
	}
}

// Of a load that is there once, all of the step counts.
func TestMetricsOfObjects(t *testing.T) {
	s := oneOfMany(t)
	s.spec.Kind.Metrics = declared()
	s.Builder = NewBuilder(s.spec)
	s.begin(2, func(b *record.StepEvent) { b.Hold = 2e6 })
	s.readAt(1)
	s.made("a b", 0.5)
	s.readAt(2)
	s.put(&record.StepEvent{Phase: record.PhaseReached})
	s.readAt(5)
	step := s.end(record.EndHeld)
	want := map[string]float64{
		"last": 5, "most": 5, "growth": 4, "difference": 4, "mean": 2.666667, "per second": 1, "memory, mean": 102.6667,
		"done a second": 1, "done per CPU second": 1, "memory per CPU second": 52.5,
	}
	if !maps.Equal(step.Metrics, want) || step.Verdict != slo.Pass {
		t.Errorf("%v, want %v (%s: %s)", step.Metrics, want, step.Verdict, step.VerdictWhy)
	}
}
