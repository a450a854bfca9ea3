package described

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// What a configuration measures has milestones of its own kind beside the pods', and an objective for each.
func TestMeasurementsTogether(t *testing.T) {
	t.Parallel()
	target := workload.Target{Name: "kubernetes", Kind: record.ObjectKind{Object: record.Noun{One: "pod", Many: "pods"}, Milestones: []record.Milestone{{Name: "Created"}, {Name: "Ready"}}, There: "Ready"}, Measured: Measured}
	for _, tt := range []struct {
		why      string
		measured []string
		goal     []string
		primary  string
		many     string
		followed int
	}{
		{"nothing", nil, []string{"all Ready", "errors <= 0%"}, "Ready p50", "pods", 0},
		{"pods alone", []string{"podLatency"}, []string{"all Ready", "errors <= 0%"}, "Ready p50", "pods", 0},
		{"disks, without a word of pods", []string{"dataVolumeLatency"}, []string{"all Ready", "all DVReady", "errors <= 0%"}, "DVReady p50", "objects", 1},
		{"all", []string{"vmiLatency", "podLatency", "jobLatency", "dataVolumeLatency", "volumeSnapshotLatency", "vmimLatency"}, []string{"all Ready", "all VMReady", "all JobComplete", "all DVReady", "all VSReady", "all VMIMSucceeded", "errors <= 0%"}, "Ready p50", "objects", 5},
		{"nodes, for which nothing waits", []string{"nodeLatency", "podLatency"}, []string{"all Ready", "errors <= 0%"}, "Ready p50", "pods", 1},
		{"services, that are called", []string{"serviceLatency"}, []string{"all Ready", "all ServiceReady", "errors <= 0%"}, "ServiceReady p50", "objects", 1},
		{"policies, whose connections pods make", []string{"netpolLatency"}, []string{"all Ready", "all PolicyReady", "errors <= 0%"}, "PolicyReady p50", "objects", 1},
		{"claims, which need not change their size", []string{"pvcLatency"}, []string{"all Ready", "all PVCBound", "errors <= 0%"}, "PVCBound p50", "objects", 2},
	} {
		w := &workload.Workload{AsItIs: true, Target: target, Primary: "Ready p50"}
		c := &kubeburner.Config{}
		for _, name := range tt.measured {
			c.Global.Measurements = append(c.Global.Measurements, kubeburner.Measurement{Name: name})
		}
		w.Measure(c)
		w.Measure(c) // as a run that goes on does
		kind := w.KindOn("jobs")
		if goal := w.Goals[0].Value; !slices.Equal(goal, tt.goal) || w.Primary != tt.primary || kind.There != "Ready" || kind.Object.Many != tt.many {
			t.Errorf("%s: %q, %s, %s", tt.why, goal, w.Primary, kind.Object.Many)
		}
		names := kind.Names()
		slices.Sort(names)
		if distinct := slices.Compact(slices.Clone(names)); len(distinct) != len(names) {
			t.Errorf("%s: two milestones have one name: %q", tt.why, names)
		}
		if len(Beside(w)) != tt.followed {
			t.Errorf("%s: %d kinds are followed", tt.why, len(Beside(w)))
		}
	}
	for _, name := range []string{"vmiLatency", "dataVolumeLatency", "jobLatency", "pvcLatency", "volumeSnapshotLatency", "vmimLatency", "nodeLatency", "serviceLatency", "netpolLatency"} {
		for _, f := range Measured(name) {
			o := f.(*Objects)
			there := slices.IndexFunc(o.Milestones, func(m ObjectMilestone) bool { return m.Name == o.There })
			if slices.ContainsFunc(o.Milestones[:there], func(m ObjectMilestone) bool { return m.rare() }) {
				t.Errorf("%s: objects wait for a milestone that not all of them reach", name)
			}
		}
		measure, served := kubeburner.MeasureOf(name)
		if o := Measured(name)[0].(*Objects); !served || o.Resources[0].Kind != measure.Kind {
			t.Errorf("%s: %s", name, measure.Kind)
		}
	}
}
