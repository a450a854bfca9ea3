package fold

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

func TestSpreadEvenly(t *testing.T) {
	if spreadEvenly([]float64{0, 0, 0}) || !spreadEvenly([]float64{1, 2, 3, 4}) {
		t.Error("waits of nothing are spread, or even ones are not")
	}
}

func TestGarbageCollectionIsNamed(t *testing.T) {
	cpu := func(n uint64, mean float64) result.HistogramSummary {
		return result.HistogramSummary{Source: "kube-apiserver", Name: record.CollectionCPU, N: n, Mean: &mean}
	}
	pause := func(above float64) result.HistogramSummary {
		return result.HistogramSummary{Source: "kube-apiserver", Name: record.CollectionPauses, N: 14, Mean: new(0.02), P99: result.Bucket{Above: above}}
	}
	for _, tt := range []struct {
		why  string
		d    result.HistogramSummary
		want string
	}{
		{"half of its CPU time", cpu(40, 0.1), "kube-apiserver spent 4.0 s of its 8.0 s of CPU time on it, in 40 cycles"},
		{"more than all of its CPU time, which is of another time", cpu(90, 0.1), ""},
		{"a fifth, as is usual", cpu(16, 0.1), ""},
		{"half of next to nothing", cpu(4, 0.1), ""},
		{"pauses that clients notice", pause(0.117), "kube-apiserver was paused by it 14 times, p99 over 117ms"},
		{"pauses of milliseconds", pause(0.01), ""},
	} {
		all := 8.0
		if tt.d.N == 4 {
			all = 0.8
		}
		c := &Measured{Step: result.Step{Durations: []result.HistogramSummary{tt.d}, Resources: map[string]result.Usage{"kube-apiserver": {CPUSeconds: all}}}}
		if got := strings.Join(c.collections(), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
