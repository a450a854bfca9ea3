package kubeburner

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// The same condition of two kinds of objects is two milestones, and each measurement has its own thresholds.
func TestThresholds(t *testing.T) {
	t.Parallel()
	bound := func(condition, metric string) []Threshold {
		return []Threshold{{ConditionType: condition, Metric: metric, Threshold: 5 * time.Second}}
	}
	c := &Config{
		Global: Global{Measurements: []Measurement{
			{Name: "podLatency", Thresholds: slices.Concat(bound("Ready", "P99"), bound("PodScheduled", "Avg"))}, {Name: "dataVolumeLatency", Thresholds: bound("Ready", "Max")}, {Name: "serviceLatency", SvcTimeout: time.Second, Thresholds: bound("Ready", "P95")}, {Name: "netpolLatency", Thresholds: bound("Ready", "P99")},
		}},
		Jobs: []Job{
			{Measurements: []Measurement{{Name: "vmiLatency", Thresholds: bound("PodPodScheduled", "P50")}, {Name: "podLatency"}}},
			{Measurements: []Measurement{{Name: "jobLatency", Thresholds: bound("Complete", "P95")}, {Name: "pvcLatency", Thresholds: slices.Concat(bound("Resized", "P99"), bound("Lost", "P99"))}, {Name: "vmimLatency", Thresholds: bound("VirtualMachineInstanceMigrationSucceeded", "Max")}}},
		},
	}
	all := c.Thresholds(func(string) bool { return true })
	if want := []string{"Ready p99 <= 5s", "Scheduled mean <= 5s", "DVReady max <= 5s", "ServiceReady p95 <= 5s", "PolicyReady p99 <= 5s", "PodPodScheduled p50 <= 5s", "JobComplete p95 <= 5s", "PVCResized p99 <= 5s", "VMIMSucceeded max <= 5s"}; !slices.Equal(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
	if disks := c.Thresholds(func(kind string) bool { return kind == "DataVolume" }); !slices.Equal(disks, []string{"DVReady max <= 5s"}) {
		t.Errorf("of disks: %q", disks)
	}
	for job, want := range map[*Job][]string{
		nil:        {"podLatency", "dataVolumeLatency", "serviceLatency", "netpolLatency", "vmiLatency", "jobLatency", "pvcLatency", "vmimLatency"},
		&c.Jobs[0]: {"podLatency", "dataVolumeLatency", "serviceLatency", "netpolLatency", "vmiLatency"},
		&c.Jobs[1]: {"podLatency", "dataVolumeLatency", "serviceLatency", "netpolLatency", "jobLatency", "pvcLatency", "vmimLatency"},
	} {
		if got := c.Measured(job); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// kube-burner has no figures of services that cannot be called, and nobody waits for them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, service string
		want         bool
	}{
		{"a port without a protocol is TCP", "spec: {selector: {a: b}, ports: [{port: 80}]}", true},
		{"one TCP port is enough", "spec: {type: NodePort, selector: {a: b}, ports: [{port: 53, protocol: UDP}, {port: 80, protocol: TCP}]}", true},
		{"UDP alone accepts no connection", "spec: {selector: {a: b}, ports: [{port: 53, protocol: UDP}]}", false},
		{"a headless one has no address", "spec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}", false},
		{"somebody else must make the endpoints", "spec: {ports: [{port: 80}]}", false},
		{"a name elsewhere", "spec: {type: ExternalName, externalName: example.org, selector: {a: b}, ports: [{port: 80}]}", false},
		{"its author excludes it", "metadata: {annotations: {kube-burner.io/service-latency: 'false'}}\nspec: {selector: {a: b}, ports: [{port: 80}]}", false},
	} {
		var service map[string]any
		if err := yaml.Unmarshal([]byte(tt.service), &service); err != nil {
			t.Fatal(err)
		}
		if got := Answers(service); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
}
