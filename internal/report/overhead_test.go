package report

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

func TestOverheadInWords(t *testing.T) {
	slope := func(v, lo, hi float64, from string) result.Slope {
		return result.Slope{Interval: result.Interval{Value: &v, Lo: &lo, Hi: &hi}, From: from, Points: 9}
	}
	o := &result.Overhead{Steps: 4, Objects: 30, Costs: []result.ObjectCost{
		{Source: "kubelet", Memory: slope(1<<20, -1024, 1<<21, result.FromSteps), Start: slope(0.043, 0.018, 0.068, result.FromSteps), Stand: slope(0.0015, -0.0002, 0.003, result.FromSteps)},
		{Source: "runtime", Memory: result.Slope{Unknown: "nobody saw it"}, Start: slope(0.065, 0.04, 0.09, result.FromSteps), Stand: result.Slope{Unknown: "there is 1 level"}},
	}}
	var b bytes.Buffer
	says := func(o *result.Overhead) {
		t.Helper()
		b.Reset()
		if err := Text(&b, result.Result{ObjectKind: pods(), Overhead: o}, "d", false); err != nil {
			t.Fatal(err)
		}
	}
	says(o)
	for _, part := range []string{
		"Cost of one more pod, from 30 starts in 4 steps", "a pod is the average",
		"kubelet  1 MiB [-1 KiB, 2 MiB]  43 ms [18 ms, 68 ms]  1.5 [-0.2, 3]",
		"runtime  unknown                65 ms [40 ms, 90 ms]  unknown",
		"memory of runtime is unknown: nobody saw it", "CPU while it runs of runtime is unknown: there is 1 level", "one that includes 0 shows no cost",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("it lacks %q:\n%s", part, b.String())
		}
	}
	if strings.Contains(b.String(), "there is a law") {
		t.Errorf("nothing here is told by levels:\n%s", b.String())
	}
	none := result.Slope{Unknown: "3 pods started"}
	says(&result.Overhead{Costs: []result.ObjectCost{{Source: "kubelet", Memory: none, Start: none, Stand: none}}})
	if got := b.String(); !strings.Contains(got, "is unknown:\n") || !strings.Contains(got, "memory is unknown: 3 pods started") || strings.Contains(got, "kubelet") {
		t.Errorf("where nothing is known it says\n%s", got)
	}
	if says(nil); strings.Contains(b.String(), "ost of one more") {
		t.Errorf("without a real node it says %q", b.String())
	}
}
