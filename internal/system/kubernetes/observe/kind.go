// Package observe turns news of objects into milestones: a pure state machine that reads no clock, knows
// no server and judges nothing. One [Tracker] serves pods and described objects, of which several
// resources may bring news. A milestone after a request counts only after it, since the same value may
// have been there before. ImagesReady comes from the kubelet's Pulled events. Nothing waits for it, and
// it may come after ContainersStarted.
package observe

import (
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
)

// Reasons of pods' states that this program adds to the cluster's.
const (
	reasonUnschedulable = "Unschedulable"
	reasonDeleting      = "Deleting"
)

// Actors whose work leads to milestones, or that objects wait for.
const (
	APIServer         = "API server"
	Store             = "etcd"
	Scheduler         = "scheduler"
	ControllerManager = "controller manager"
	Nodes             = "nodes"
)

// Pods returns the kind of the objects that load a cluster.
func Pods() record.ObjectKind {
	const server, scheduler, nodes = APIServer, Scheduler, Nodes
	return record.ObjectKind{
		Object: record.Noun{One: "pod", Many: "pods"}, Place: record.Noun{One: "node", Many: "nodes"},
		Milestones: []record.Milestone{
			{Name: Created, Owner: server}, {Name: Scheduled, Owner: scheduler}, {Name: PodReadyToStartContainers, Owner: nodes},
			{Name: Initialized, Owner: nodes}, {Name: ImagesReady, Owner: nodes}, {Name: ContainersStarted, Owner: nodes},
			{Name: ContainersReady, Owner: nodes}, {Name: Ready, Owner: nodes}, {Name: Deleted, Owner: nodes},
		},
		Created: Created, Placed: Scheduled, Started: ContainersStarted, There: Ready, Gone: Deleted,
		Unplaced: reasonUnschedulable, Removing: reasonDeleting,
		Measures: []record.Measure{
			record.RequestErrors(5),
			{Name: NodesNotReady, Help: "nodes that are not ready", Bound: 1},
			{Name: "pending", Help: "pods without a node"},
		},
		Metrics: metrics("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "runtime", "node"),
		Troubles: []record.Trouble{
			{Class: "scheduling", What: "no node had room for objects", Reasons: []string{reasonUnschedulable, "FailedScheduling", "SchedulerError", "SchedulingGated"}},
			{Class: "probes", What: "readiness probes failed", Reasons: []string{"Unhealthy"}, Message: []string{"Readiness probe "}},
			{Class: "probes", What: "liveness probes failed", Reasons: []string{"Unhealthy"}, Message: []string{"Liveness probe "}},
			{Class: "probes", What: "startup probes failed", Reasons: []string{"Unhealthy"}, Message: []string{"Startup probe "}},
			{Class: "probes", What: "probes failed", Reasons: []string{"Unhealthy"}},
			{Class: "probes", What: "probes could not be made", Reasons: []string{"ProbeError"}},
			{Class: "images", What: "images were not pulled", Reasons: []string{"BackOff"}, Message: []string{"pulling image"}},
			{Class: "images", What: "images were not pulled", Reasons: []string{"Failed"}, Message: []string{"image", "ErrImage", "ImagePull"}},
			{Class: "images", What: "images were not pulled", Reasons: []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed", "InspectFailed"}},
			{Class: "restarts", What: "containers ended, or did not start", Reasons: []string{"BackOff", "Failed", "CrashLoopBackOff", "Restarted", "Error", "ContainerCannotRun", "RunContainerError", "StartError", "CreateContainerError", "CreateContainerConfigError", "PostStartHookError", "FailedPostStartHook"}},
			{Class: "oom", What: "containers were OOM-killed", Reasons: []string{"OOMKilled", "OOMKilling", "SystemOOM"}},
			{Class: "evictions", What: "pods were evicted or preempted", Reasons: []string{"Evicted", "Preempted", "Preempting", "EvictionThresholdMet", "TaintManagerEviction", "DeletionByTaintManager", "EvictionByEvictionAPI", "TerminationByKubelet"}},
			{Class: "nodes", What: "nodes were not ready, or under pressure", Reasons: []string{"NodeNotReady", "NodeNotSchedulable", "NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "NodeNetworkUnavailable", "NodeStatusUnknown", "NodeLost", "KubeletIsDown", "ContainerRuntimeIsDown", "Rebooted", "InvalidDiskCapacity"}},
			{Class: "sandbox", What: "sandboxes were not made, or not removed", Reasons: []string{"FailedCreatePodSandBox", "FailedPodSandBoxStatus", "FailedKillPod", "FailedCreatePodContainer", "NetworkNotReady"}},
			{Class: "volumes", What: "volumes were not provisioned, attached or mounted", Reasons: []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedDetachVolume", "ProvisioningFailed", "FailedBinding", "VolumeFailedDelete", "FailedUnMount", "VolumeResizeFailed"}},
			{Class: "creation", What: "a controller was refused objects", Reasons: []string{"FailedCreate"}},
		},
	}
}

// metrics returns the usage metrics of a lab's processes, and of its real node and runtime.
func metrics(sources ...string) (list []record.Metric) {
	for _, source := range sources {
		list = append(list, record.UseOf(source, source)...)
	}
	return list
}

// NodesNotReady names the measure of nodes that are not ready.
const NodesNotReady = "nodesNotReady"

// Axes of a cluster's load.
const (
	AxisPodsPerNode = "pods-per-node"   // closed: pods in place, on average over the nodes
	AxisRate        = "rate"            // open: pods that arrive, per second
	AxisObjects     = "objects"         // closed: objects in place
	AxisAllAtOnce   = "all-at-once"     // closed: objects in place, each level requested at once
	AxisAtOnce      = "at-once"         // closed: objects requested at once, each level from empty
	AxisIterations  = "iterations"      // closed: iterations of the last job, each level from empty
	AxisJobs        = workload.AxisJobs // closed: jobs of the configuration, each whole
	AxisBulk        = "bulk"            // closed: objects requested at once, of a fixed total
	AxisSettings    = workload.AxisSettings
)

// Declare returns the declaration of a cluster as a target.
func Declare() workload.Target {
	return workload.Target{
		Name: "kubernetes", Kind: Pods(), Configured: true,
		Axes: map[string]workload.TargetAxis{
			AxisPodsPerNode: {Loop: workload.Closed}, AxisRate: {Loop: workload.Open},
			AxisObjects: {Loop: workload.Closed}, AxisAllAtOnce: {Loop: workload.Closed}, AxisAtOnce: {Loop: workload.Closed, Whole: true}, AxisBulk: {Loop: workload.Closed, Whole: true},
			AxisIterations: {Loop: workload.Closed, Whole: true}, AxisJobs: {Loop: workload.Closed}, AxisSettings: {Loop: workload.Closed, Whole: true},
		},
		ConfigurationAxes: []workload.Axis{
			{Name: AxisIterations, Unit: "iterations", Help: "iterations of the last job, each level from empty", Default: workload.Range{From: 10, Step: 10, Max: 100_000}},
			{Name: AxisJobs, Unit: "jobs", Help: "jobs that are made, each whole and in their order", Default: workload.Range{From: 1, Step: 1, Max: 1000}},
			{Name: AxisPodsPerNode, Unit: "pods/node", Help: "average number of pods on each node, raised by iterations of the last job", Default: workload.Range{From: 50, Step: 50, Max: 500}},
			{Name: AxisObjects, Means: AxisSettings, Sets: "jobs.last.objects.all.replicas", Unit: "replicas", Help: "replicas of each object of the last job, each level from empty", Default: workload.Range{From: 10, Step: 10, Max: 100_000}},
			{Name: "qps", Means: AxisSettings, Sets: "jobs.last.qps", Unit: "requests/s", Help: "rate of the last job, each level from empty", Default: workload.Range{From: 10, Step: 10, Max: 10_000}},
		},
		Takes: map[string]string{
			"scrape": "", "max-series": "", "normal-events": "",
			"fresh":         "how a target is emptied before a step: `objects|lab` (objects, the default: the load's objects are removed; lab: the private lab is recreated)",
			"wait":          "wait until no other run loads the cluster, or until it counts as dead",
			"ignore-health": "load the cluster even if its API server or all of its nodes are not ready",
			"yes":           "load a cluster that is not a lab without asking",
			"reboots":       "agree that `N` nodes of a cluster that is not a lab are rebooted; --yes does not say that",
			"hooks":         "agree that the commands of the configuration (hooks) run on this machine; --yes does not say that",
		},
		Renews: "lab", Objects: described.New, Measured: described.Measured,
	}
}
