package kubeburner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// nodeLatency is the measurement of nodes, which are there before the load.
const nodeLatency = "nodeLatency"

// PodLatency is the measurement that every run makes.
const PodLatency = "podLatency"

// MeasuredKind returns the kind of the objects of a measurement; served is false where runs do not make it.
func MeasuredKind(measurement string) (kind string, served bool) {
	kind, served = map[string]string{
		PodLatency: "Pod", "vmiLatency": "VirtualMachine", "jobLatency": "Job", "dataVolumeLatency": "DataVolume",
		"pvcLatency": "PersistentVolumeClaim", "volumeSnapshotLatency": "VolumeSnapshot", "vmimLatency": "VirtualMachineInstanceMigration", nodeLatency: "Node",
	}[measurement]
	return kind, served
}

// conditions lists a threshold's possible conditions, nil for any: a misspelt one would never fire.
func conditions(measurement string) []string {
	switch measurement {
	case "podLatency":
		return []string{"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready"}
	case "vmiLatency":
		return []string{"VMICreated", "VMIPending", "VMIScheduling", "VMIScheduled", "VMIRunning", "VMReady", "PodCreated", "PodPodScheduled", "PodPodReadyToStartContainers", "PodInitialized", "PodContainersReady"}
	case "jobLatency":
		return []string{"StartTime", "Complete"}
	case "dataVolumeLatency":
		return []string{"Bound", "Running", "Ready"}
	case "pvcLatency":
		return []string{"Pending", "Bound", "Lost", "Resized"}
	case "volumeSnapshotLatency":
		return []string{"Ready"}
	case "vmimLatency":
		var list []string
		for _, phase := range MigrationPhases() {
			list = append(list, "VirtualMachineInstanceMigration"+phase)
		}
		return list
	case nodeLatency:
		return []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}
	}
	return nil
}

// milestone returns the milestone of a measurement's condition. Its name says of which kind of objects it is.
func milestone(measurement, condition string) string {
	switch {
	case measurement == PodLatency && condition == "PodScheduled":
		return "Scheduled"
	case measurement == "vmimLatency":
		return "VMIM" + strings.TrimPrefix(condition, "VirtualMachineInstanceMigration")
	}
	return map[string]string{"jobLatency": "Job", "dataVolumeLatency": "DV", "pvcLatency": "PVC", "volumeSnapshotLatency": "VS"}[measurement] + condition
}

// MigrationPhases returns the phases of a migration that ends well, in their order.
func MigrationPhases() []string {
	return []string{"Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded"}
}

// lost is the condition of claims that will never be bound: no bound on its latency means anything.
const lost = "Lost"

// Measured returns the measurements that a job asks for, or with nil all of the configuration.
func (c *Config) Measured(j *Job) (names []string) {
	list := slices.Clone(c.Global.Measurements)
	if j != nil {
		list = append(list, j.Measurements...)
	} else {
		list = c.allMeasurements()
	}
	for _, m := range list {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

func (c *Config) allMeasurements() []Measurement {
	all := slices.Clone(c.Global.Measurements)
	for i := range c.Jobs {
		all = append(all, c.Jobs[i].Measurements...)
	}
	return all
}

// Thresholds returns the objectives for the thresholds of measurements of some kinds of objects.
func (c *Config) Thresholds(of func(kind string) bool) (list []string) {
	for _, m := range c.allMeasurements() {
		kind, served := MeasuredKind(m.Name)
		if !served || !of(kind) {
			continue
		}
		for _, t := range m.Thresholds {
			if t.ConditionType == lost {
				continue
			}
			figure := map[string]string{"Avg": "mean", "Max": "max"}[t.Metric]
			list = append(list, fmt.Sprintf("%s %s <= %s", milestone(m.Name, t.ConditionType), cmp.Or(figure, strings.ToLower(t.Metric)), t.Threshold))
		}
	}
	return slices.Compact(list)
}
