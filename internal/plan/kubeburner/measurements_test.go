package kubeburner

import (
	"slices"
	"testing"
	"time"
)

// The same condition of two kinds of objects is two milestones, and each measurement has its own thresholds.
func TestThresholds(t *testing.T) {
	t.Parallel()
	bound := func(condition, metric string) []Threshold {
		return []Threshold{{ConditionType: condition, Metric: metric, Threshold: 5 * time.Second}}
	}
	c := &Config{
		Global: Global{Measurements: []Measurement{
			{Name: "podLatency", Thresholds: slices.Concat(bound("Ready", "P99"), bound("PodScheduled", "Avg"))}, {Name: "dataVolumeLatency", Thresholds: bound("Ready", "Max")}, {Name: "netpolLatency", Thresholds: bound("Ready", "P99")},
		}},
		Jobs: []Job{
			{Measurements: []Measurement{{Name: "vmiLatency", Thresholds: bound("PodPodScheduled", "P50")}, {Name: "podLatency"}}},
			{Measurements: []Measurement{{Name: "jobLatency", Thresholds: bound("Complete", "P95")}, {Name: "pvcLatency", Thresholds: slices.Concat(bound("Resized", "P99"), bound("Lost", "P99"))}, {Name: "vmimLatency", Thresholds: bound("VirtualMachineInstanceMigrationSucceeded", "Max")}}},
		},
	}
	all := c.Thresholds(func(string) bool { return true })
	if want := []string{"Ready p99 <= 5s", "Scheduled mean <= 5s", "DVReady max <= 5s", "PodPodScheduled p50 <= 5s", "JobComplete p95 <= 5s", "PVCResized p99 <= 5s", "VMIMSucceeded max <= 5s"}; !slices.Equal(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
	if disks := c.Thresholds(func(kind string) bool { return kind == "DataVolume" }); !slices.Equal(disks, []string{"DVReady max <= 5s"}) {
		t.Errorf("of disks: %q", disks)
	}
	for job, want := range map[*Job][]string{
		nil:        {"podLatency", "dataVolumeLatency", "netpolLatency", "vmiLatency", "jobLatency", "pvcLatency", "vmimLatency"},
		&c.Jobs[0]: {"podLatency", "dataVolumeLatency", "netpolLatency", "vmiLatency"},
		&c.Jobs[1]: {"podLatency", "dataVolumeLatency", "netpolLatency", "jobLatency", "pvcLatency", "vmimLatency"},
	} {
		if got := c.Measured(job); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
