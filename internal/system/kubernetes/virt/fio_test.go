package virt

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// Rates of machines add up, and their latencies are one distribution: a quantile
// of it is no mean of theirs.
func TestSumOfIO(t *testing.T) {
	report := func(text string) fio.Report {
		r, err := fio.ParseReport([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	got := make(map[string]float64)
	sumOf(map[string]fio.Report{
		"a/vm-0": report(`{"jobs":[{"jobname":"io","job_runtime":10000,"read":{"lat_ns":{"bins":{"100000":98,"200000":2}}}}]}`),
		"a/vm-1": report(`{"jobs":[{"jobname":"io","job_runtime":20000,"read":{"lat_ns":{"bins":{"100000":60,"9000000":40}}}}]}`),
	}, "", got)
	for name, want := range map[string]float64{"readRate": 15, "read p50": 0.0001, "read p99": 0.009} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("nothing was written, and there is %v", got)
	}
}
