package report

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/analyze"
)

func TestOverheadInWords(t *testing.T) {
	slope := func(v, lo, hi float64, from string) analyze.Slope {
		return analyze.Slope{Interval: analyze.Interval{Value: &v, Lo: &lo, Hi: &hi}, From: from, Points: 9}
	}
	o := &analyze.Overhead{Steps: 4, Pods: 30, Costs: []analyze.PodCost{
		{Source: "kubelet", Memory: slope(1<<20, -1024, 1<<21, analyze.FromSteps), Start: slope(0.043, 0.018, 0.068, analyze.FromSteps), Stand: slope(0.0015, -0.0002, 0.003, analyze.FromSteps)},
		{Source: "runtime", Memory: analyze.Slope{Unknown: "nobody saw it"}, Start: slope(0.065, 0.04, 0.09, analyze.FromSteps), Stand: analyze.Slope{Unknown: "there is 1 level"}},
	}}
	var b bytes.Buffer
	p := &printer{w: &b}
	p.overhead(o)
	for _, part := range []string{
		"by 30 starts in 4 steps",
		"kubelet  1 MiB [-1 KiB, 2 MiB]  43 ms [18 ms, 68 ms]  1.5 [-0.2, 3]",
		"runtime  unknown                65 ms [40 ms, 90 ms]  unknown",
		"memory of runtime is not known: nobody saw it", "CPU while it stands of runtime is not known: there is 1 level", "one that holds 0 shows no cost",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("it lacks %q:\n%s", part, b.String())
		}
	}
	if strings.Contains(b.String(), "there is a law") {
		t.Errorf("nothing here is told by levels:\n%s", b.String())
	}
	b.Reset()
	none := analyze.Slope{Unknown: "3 pods started"}
	p.overhead(&analyze.Overhead{Costs: []analyze.PodCost{{Source: "kubelet", Memory: none, Start: none, Stand: none}}})
	if got := b.String(); !strings.Contains(got, "is not known:\n") || !strings.Contains(got, "memory is not known: 3 pods started") || strings.Contains(got, "kubelet") {
		t.Errorf("where nothing is known it says\n%s", got)
	}
	b.Reset()
	if p.overhead(nil); b.Len() > 0 || p.err != nil {
		t.Errorf("without a real node it says %q, %v", b.String(), p.err)
	}
}
