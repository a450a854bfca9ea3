package kubeburner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PodLatency is the measurement that every run makes.
const PodLatency = "podLatency"

// Measurements whose objects need more than their news.
const (
	nodeLatency    = "nodeLatency" // its objects are there before the load
	serviceLatency = "serviceLatency"
)

// labelSkipPolicies, "true" on a job's namespaces, says that its network policies are not measured, as in kube-burner.
const labelSkipPolicies = "kube-burner.io/skip-networkpolicy-latency"

// Pods and Nodes are the kinds of objects whose names on record have no kind, and that no job asks for.
const (
	Pods  = "Pod"
	Nodes = "Node"
)

// Measure describes a measurement that runs make: its objects, their milestones and their documents.
type Measure struct {
	Name     string
	Kind     string   // of its objects
	Document string   // begins the names of its documents
	Names    []string // keys of an object's name
	Node     string   // key of its node, "" for none
	Told     []string // keys of the values that are on record with an object
	// Nanoseconds, instead of milliseconds, are the unit of its documents.
	Nanoseconds bool
	Unnumbered  bool        // says that its documents have no iteration and replica
	Milestones  []Milestone // the last one counts as there
}

// Milestone gives the names of a milestone of measured objects.
type Milestone struct {
	Name      string   // on record
	Key       string   // in an object's document
	Quantile  string   // in that of quantiles, "" for none
	Condition string   // in thresholds, "" for the same
	On        string   // milestone of the objects on their way to a rare one, "" for one that all reach
	From      []string // milestones from the last of which it counts, none for the request
}

// steps returns milestones by pairs of a condition and a key; the condition follows a prefix in the name.
func steps(prefix string, pairs ...string) (list []Milestone) {
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, Milestone{Name: prefix + pair[0], Key: pair[1], Quantile: pair[0]})
	}
	return list
}

// Measures returns all measurements that runs make.
func Measures() []Measure {
	var phases []Milestone
	for _, phase := range MigrationPhases() {
		phases = append(phases, Milestone{Name: "VMIM" + phase, Key: strings.ToLower(phase[:1]) + phase[1:] + "Latency", Quantile: phase, Condition: "VirtualMachineInstanceMigration" + phase})
	}
	return []Measure{
		{Name: PodLatency, Kind: Pods, Document: "podLatency", Names: []string{"podName"}, Node: "nodeName", Milestones: append([]Milestone{
			{Name: "Scheduled", Key: "schedulingLatency", Quantile: "PodScheduled"},
		}, steps("", "PodReadyToStartContainers", "readyToStartContainersLatency", "Initialized", "initializedLatency", "ContainersStarted", "containersStartedLatency",
			"ContainersReady", "containersReadyLatency", "Ready", "podReadyLatency")...)},
		{Name: "vmiLatency", Kind: "VirtualMachine", Document: "vmiLatency", Names: []string{"vmName", "vmiName"}, Node: "nodeName", Milestones: append([]Milestone{
			{Name: "PodReady", Key: "podReadyLatency"},
		}, steps("", "PodCreated", "podCreatedLatency", "PodPodScheduled", "podScheduledLatency", "PodInitialized", "podInitializedLatency",
			"PodContainersReady", "podContainersReadyLatency", "PodPodReadyToStartContainers", "podReadyToStartContainersLatency",
			"VMICreated", "vmiCreatedLatency", "VMIPending", "vmiPendingLatency", "VMIScheduling", "vmiSchedulingLatency", "VMIScheduled", "vmiScheduledLatency",
			"VMIRunning", "vmiRunningLatency", "VMReady", "vmReadyLatency")...)},
		{Name: "jobLatency", Kind: "Job", Document: "jobLatency", Names: []string{"k8sJobName"}, Milestones: steps("Job", "StartTime", "startTimeLatency", "Complete", "completionLatency")},
		{Name: "dataVolumeLatency", Kind: "DataVolume", Document: "dvLatency", Names: []string{"dvName"}, Milestones: steps("DV", "Bound", "dvBoundLatency", "Running", "dvRunningLatency", "Ready", "dvReadyLatency")},
		{Name: "pvcLatency", Kind: "PersistentVolumeClaim", Document: "pvcLatency", Names: []string{"pvcName"}, Told: []string{"size", "storageClass"}, Milestones: []Milestone{
			{Name: "PVCPending", Key: "pendingLatency", Quantile: "Pending"}, {Name: "PVCLost", Key: "lostLatency", Quantile: lost, On: "PVCLost"},
			{Name: "PVCResized", Key: "resizeLatency", Quantile: "Resize", Condition: "Resized", On: "PVCResizing"}, {Name: "PVCBound", Key: "bindingLatency", Quantile: "Bound"},
		}},
		{Name: "volumeSnapshotLatency", Kind: "VolumeSnapshot", Document: "volumeSnapshotLatency", Names: []string{"vsName"}, Milestones: steps("VS", "Ready", "vsReadyLatency")},
		{Name: "vmimLatency", Kind: "VirtualMachineInstanceMigration", Document: "vmimLatency", Names: []string{"vmimName"}, Told: []string{"vmiName"}, Milestones: phases},
		{Name: nodeLatency, Kind: Nodes, Document: nodeLatency, Names: []string{"nodeName"}, Told: []string{"labels"}, Milestones: steps("Node",
			"MemoryPressure", "nodeMemoryPressureLatency", "DiskPressure", "nodeDiskPressureLatency", "PIDPressure", "nodePIDPressureLatency", "Ready", "nodeReadyLatency")},
		{Name: serviceLatency, Kind: Services, Document: "svcLatency", Names: []string{"service"}, Told: []string{"type"}, Nanoseconds: true, Unnumbered: true, Milestones: []Milestone{
			{Name: ServiceIPAssigned, Key: "ipAssigned", Quantile: "IPAssigned", On: ServiceBalanced},
			{Name: ServiceReady, Key: "ready", Quantile: "Ready", From: []string{ServiceIPAssigned, ServiceEndpoints}},
		}},
		{Name: "netpolLatency", Kind: Policies, Document: "netpolLatency", Names: []string{"netpol"}, Unnumbered: true, Milestones: steps("Policy", "MinReady", "minReady", "Ready", "ready")},
	}
}

// Milestones of services.
const (
	ServiceBalanced   = "ServiceBalanced"   // it is to have an address by a load balancer
	ServiceIPAssigned = "ServiceIPAssigned" // it has that
	ServiceEndpoints  = "ServiceEndpoints"  // one of its endpoints is ready
	ServiceReady      = "ServiceReady"      // all its TCP ports accept connections
)

// Milestones of network policies.
const (
	PolicyCreated  = "PolicyCreated"
	PolicyMinReady = "PolicyMinReady" // one of the connections that it allows was made
	PolicyReady    = "PolicyReady"    // all of them were
)

// Services and Policies are the kinds of the objects of serviceLatency and netpolLatency.
const (
	Services = "Service"
	Policies = "NetworkPolicy"
)

// MeasuresPolicies reports whether the network policies of a job are measured, where runs measure some.
func (j *Job) MeasuresPolicies() bool {
	return j.Creates() && j.NamespaceLabels[labelSkipPolicies] != "true"
}

// Answers reports whether a service can be called: kube-burner has no figures of others.
func Answers(service map[string]any) bool {
	spec, _ := service["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	metadata, _ := service["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return len(selector) > 0 && spec["type"] != "ExternalName" && spec["clusterIP"] != "None" && annotations["kube-burner.io/service-latency"] != "false" &&
		slices.ContainsFunc(ports, func(port any) bool {
			p, _ := port.(map[string]any)
			return p["protocol"] == nil || p["protocol"] == "TCP"
		})
}

// MeasureOf returns a measurement by name; served is false where runs do not make it.
func MeasureOf(name string) (m Measure, served bool) {
	all := Measures()
	i := slices.IndexFunc(all, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return m, false
	}
	return all[i], true
}

// threshold returns the condition of a milestone in thresholds, "" for none.
func (m *Milestone) threshold() string { return cmp.Or(m.Condition, m.Quantile) }

// conditions lists a threshold's possible conditions, nil for any: a misspelt one would never fire.
func conditions(measurement string) (list []string) {
	m, _ := MeasureOf(measurement)
	for _, milestone := range m.Milestones {
		if condition := milestone.threshold(); condition != "" {
			list = append(list, condition)
		}
	}
	return list
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

// SvcTimeout returns the longest time in which a service must answer once it has endpoints, 0 without any.
func (c *Config) SvcTimeout() (longest time.Duration) {
	for _, m := range c.allMeasurements() {
		if m.Name == serviceLatency {
			longest = max(longest, m.SvcTimeout)
		}
	}
	return longest
}

// Thresholds returns the objectives for the thresholds of measurements of some kinds of objects.
func (c *Config) Thresholds(of func(kind string) bool) (list []string) {
	for _, m := range c.allMeasurements() {
		measure, served := MeasureOf(m.Name)
		if !served || !of(measure.Kind) {
			continue
		}
		for _, t := range m.Thresholds {
			i := slices.IndexFunc(measure.Milestones, func(m Milestone) bool { return m.threshold() == t.ConditionType })
			if t.ConditionType == lost || i < 0 {
				continue
			}
			figure := map[string]string{"Avg": "mean", "Max": "max"}[t.Metric]
			list = append(list, fmt.Sprintf("%s %s <= %s", measure.Milestones[i].Name, cmp.Or(figure, strings.ToLower(t.Metric)), t.Threshold))
		}
	}
	return slices.Compact(list)
}
