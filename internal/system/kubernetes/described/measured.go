package described

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// Measured describes the objects of a kube-burner measurement, with its conditions as milestones, and then
// what may become of them; nothing for pods and for a measurement that is unknown here.
func Measured(measurement string) (list []workload.Followed) {
	for _, o := range measured(measurement) {
		list = append(list, o)
	}
	return list
}

func measured(measurement string) []*Objects {
	switch measurement {
	case "vmiLatency":
		return []*Objects{machines(
			Resource{Name: "machine", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine"},
			Resource{Name: "instance", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance"})}
	case "jobLatency":
		return []*Objects{{
			Noun: record.Noun{One: "job", Many: "jobs"}, There: "JobComplete",
			Resources: []Resource{{Name: "job", APIVersion: "batch/v1", Kind: "Job"}},
			Milestones: []ObjectMilestone{
				{Name: "JobStartTime", By: "job controller", When: When{Path: "status.startTime"}, Stamp: "status.startTime"},
				{Name: "JobComplete", By: "kubelet", When: When{Condition: "Complete"}},
			},
			Troubles: []ObjectTrouble{{When: When{Condition: "Failed"}, Final: true, Class: "jobs", What: "jobs failed"}},
		}}
	case "dataVolumeLatency":
		reached := func(condition string) ObjectMilestone {
			return ObjectMilestone{Name: "DV" + condition, By: "importer", When: When{Condition: condition}}
		}
		return []*Objects{{
			Noun: record.Noun{One: "volume", Many: "volumes"}, There: "DVReady",
			Resources:  []Resource{{Name: "volume", APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume"}},
			Milestones: []ObjectMilestone{reached("Bound"), reached("Running"), reached("Ready")},
			Troubles:   []ObjectTrouble{{When: When{Path: "status.phase", Values: []string{"Failed"}}, Final: true}},
		}}
	case "pvcLatency":
		return claims()
	case "serviceLatency":
		return []*Objects{{
			Noun: record.Noun{One: "service", Many: "services"}, There: kubeburner.ServiceReady, Tells: []string{"spec.type"},
			Resources: []Resource{
				{Name: "service", APIVersion: "v1", Kind: kubeburner.Services},
				{Name: "slice", APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Of: `metadata.labels.kubernetes\.io/service-name`},
			},
			Milestones: []ObjectMilestone{
				{Name: kubeburner.ServiceEndpoints, By: "endpoint controller", When: When{Resource: "slice", Path: "endpoints.#(conditions.ready==true).addresses.0"}},
				{Name: kubeburner.ServiceReady, By: "network", After: kubeburner.ServiceEndpoints, Probe: &Probe{Within: true}},
				// Nobody waits for rare ones: they stand behind the one that counts.
				{Name: kubeburner.ServiceBalanced, By: "API server", Rare: true, When: When{Path: "spec.type", Values: []string{"LoadBalancer"}}},
				{Name: kubeburner.ServiceIPAssigned, By: "load balancer", Rare: true, When: When{Path: "status.loadBalancer.ingress.0"}},
			},
		}}
	case "netpolLatency":
		made := func(name string, connections Connections) ObjectMilestone {
			return ObjectMilestone{Name: name, By: "network", Probe: &Probe{Between: connections}}
		}
		return []*Objects{{
			Noun: record.Noun{One: "policy", Many: "policies"}, There: kubeburner.PolicyReady,
			Resources:  []Resource{{Name: "policy", APIVersion: "networking.k8s.io/v1", Kind: kubeburner.Policies}},
			Milestones: []ObjectMilestone{{Name: kubeburner.PolicyCreated, By: "API server"}, made(kubeburner.PolicyMinReady, OneConnection), made(kubeburner.PolicyReady, AllConnections)},
		}}
	case "nodeLatency":
		node := func(condition, status string) ObjectMilestone {
			return ObjectMilestone{Name: "Node" + condition, By: "kubelet", When: When{Condition: condition, Values: []string{status}}}
		}
		return []*Objects{{
			Noun: record.Noun{One: "node", Many: "nodes"}, There: "NodeReady", Before: true, Tells: []string{"metadata.labels"},
			Resources:  []Resource{{Name: "node", APIVersion: "v1", Kind: "Node", Unlabelled: true}},
			Milestones: []ObjectMilestone{node("MemoryPressure", "False"), node("DiskPressure", "False"), node("PIDPressure", "False"), node("Ready", "True")},
		}}
	case "volumeSnapshotLatency":
		return []*Objects{{
			Noun: record.Noun{One: "snapshot", Many: "snapshots"}, There: "VSReady",
			Resources:  []Resource{{Name: "snapshot", APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot"}},
			Milestones: []ObjectMilestone{{Name: "VSReady", By: "snapshot controller", When: When{Path: "status.readyToUse", Values: []string{"true"}}}},
			Troubles:   []ObjectTrouble{{When: When{Path: "status.error.message"}, Class: "snapshots", What: "snapshots were not taken"}},
		}}
	case "vmimLatency":
		o := &Objects{
			Noun: record.Noun{One: "migration", Many: "migrations"}, There: "VMIMSucceeded", Tells: []string{"spec.vmiName"},
			Resources: []Resource{{Name: "migration", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstanceMigration"}},
			Troubles:  []ObjectTrouble{{When: When{Path: "status.phase", Values: []string{"Failed"}}, Final: true, Class: "migrations", What: "migrations failed"}},
		}
		for i, phase := range kubeburner.MigrationPhases() {
			o.Milestones = append(o.Milestones, ObjectMilestone{
				Name: "VMIM" + phase, By: "virt-controller", When: When{Path: "status.phase", Values: kubeburner.MigrationPhases()[i:]},
				Stamp: `status.phaseTransitionTimestamps.#(phase=="` + phase + `").phaseTransitionTimestamp`,
			})
		}
		return []*Objects{o}
	}
	return nil
}

// Calls reports whether servers of some probes are called.
func (o *Objects) Calls(probes func(*Probe) bool) bool {
	return slices.ContainsFunc(o.Milestones, func(m ObjectMilestone) bool { return m.Probe != nil && probes(m.Probe) })
}

// FromPods reports whether a probe's server is called from a pod of the cluster: a run's own, or one of the load.
func (p *Probe) FromPods() bool { return p.OfServices() || p.OfPolicies() }

// OfServices reports whether a probe calls services, from a pod of the run.
func (p *Probe) OfServices() bool { return p.Within }

// OfPolicies reports whether a probe is answered by pods of the load, which call each other.
func (p *Probe) OfPolicies() bool { return p.Between != "" }

// Unanswered returns a description without the milestones for which servers are called from pods, and the
// names of the milestones that counted, before and now; nil for one that calls none.
func (o *Objects) Unanswered() (without *Objects, was, now string) {
	called := func(m ObjectMilestone) bool { return m.Probe != nil && m.Probe.FromPods() }
	at := slices.IndexFunc(o.Milestones, called)
	if at < 0 {
		return nil, "", ""
	}
	cut := *o
	cut.Milestones, cut.There = slices.DeleteFunc(slices.Clone(o.Milestones), called), o.Milestones[at-1].Name
	return &cut, o.There, cut.There
}

// claims follows volume claims until they are bound, and those whose size changes until they have it.
func claims() []*Objects {
	const asked = "spec.resources.requests.storage"
	resources := []Resource{{Name: "claim", APIVersion: "v1", Kind: "PersistentVolumeClaim"}}
	phase := func(name string, values ...string) ObjectMilestone {
		return ObjectMilestone{Name: name, By: "provisioner", When: When{Path: "status.phase", Values: values}}
	}
	lost := phase("PVCLost", "Lost")
	lost.Rare = true
	return []*Objects{
		{
			Noun: record.Noun{One: "claim", Many: "claims"}, There: "PVCBound", Resources: resources, Tells: []string{asked, "spec.storageClassName"},
			Milestones: []ObjectMilestone{phase("PVCPending", "Pending", "Bound", "Lost"), phase("PVCBound", "Bound"), lost},
			Troubles:   []ObjectTrouble{{When: When{Path: "status.phase", Values: []string{"Lost"}}, Final: true, Class: "volumes", What: "claims lost their volumes"}},
		},
		{
			Noun: record.Noun{One: "resize", Many: "resizes"}, As: "Resize", Changes: asked, There: "PVCResized", Resources: resources, Tells: []string{asked},
			Milestones: []ObjectMilestone{
				{Name: "PVCResized", By: "resizer", When: When{Path: "status.capacity.storage", Same: asked}},
				{Name: "PVCResizing", By: "API server", Rare: true},
			},
		},
	}
}

// machines follows machines by their instances and the instances' pods.
func machines(resources ...Resource) *Objects {
	phases := []string{"Pending", "Scheduling", "Scheduled", "Running"}
	pod := func(name, condition string) ObjectMilestone {
		return ObjectMilestone{Name: name, By: "launcher pod", When: When{Resource: "pod", Condition: condition}}
	}
	o := &Objects{
		Noun: record.Noun{One: "machine", Many: "machines"}, Place: record.Noun{One: "node", Many: "nodes"}, There: "VMReady",
		Resources:  append(resources, Resource{Name: "pod", APIVersion: "v1", Kind: "Pod", Of: "owner"}),
		Milestones: []ObjectMilestone{{Name: "VMICreated", By: "virt-controller", When: When{Resource: "instance"}}},
		Troubles:   []ObjectTrouble{{When: When{Path: "status.printableStatus", Values: []string{"CrashLoopBackOff", "ErrorUnschedulable", "ErrorPvcNotFound", "DataVolumeError"}}}},
	}
	for i, phase := range phases {
		m := ObjectMilestone{Name: "VMI" + phase, By: "virt-controller", When: When{Resource: "instance", Path: "status.phase", Values: phases[i:]}}
		if i > 1 {
			m.By, m.Place = "virt-handler", "status.nodeName"
		}
		o.Milestones = append(o.Milestones, m)
	}
	o.Milestones = append(o.Milestones,
		ObjectMilestone{Name: "PodCreated", By: "virt-controller", When: When{Resource: "pod"}},
		pod("PodPodScheduled", "PodScheduled"), pod("PodPodReadyToStartContainers", "PodReadyToStartContainers"), pod("PodInitialized", "Initialized"),
		pod("PodContainersReady", "ContainersReady"), pod("PodReady", "Ready"),
		ObjectMilestone{Name: "VMReady", By: "virt-controller", When: When{Condition: "Ready"}})
	return o
}
