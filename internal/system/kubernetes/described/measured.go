package described

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// Measured describes the objects of a kube-burner measurement, if one of these kinds is its first
// resource, with kube-burner's names of milestones; else it returns nil.
func Measured(measurement string, kinds []string) workload.Followed {
	switch {
	case measurement == "vmiLatency" && slices.Contains(kinds, "VirtualMachine"):
		return machines(
			Resource{Name: "machine", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine"},
			Resource{Name: "instance", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance"})
	case measurement == "jobLatency" && slices.Contains(kinds, "Job"):
		return &Objects{
			Noun: record.Noun{One: "job", Many: "jobs"}, There: "Complete",
			Resources: []Resource{{Name: "job", APIVersion: "batch/v1", Kind: "Job"}},
			Milestones: []ObjectMilestone{
				{Name: "StartTime", By: "job controller", When: When{Path: "status.startTime"}},
				{Name: "Complete", By: "kubelet", When: When{Condition: "Complete"}},
			},
			Troubles: []ObjectTrouble{{When: When{Condition: "Failed"}, Final: true, Class: "jobs", What: "jobs failed"}},
		}
	case measurement == "dataVolumeLatency" && slices.Contains(kinds, "DataVolume"):
		reached := func(name, condition string) ObjectMilestone {
			return ObjectMilestone{Name: name, By: "importer", When: When{Condition: condition}}
		}
		return &Objects{
			Noun: record.Noun{One: "volume", Many: "volumes"}, There: "Ready",
			Resources:  []Resource{{Name: "volume", APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume"}},
			Milestones: []ObjectMilestone{reached("Bound", "Bound"), reached("Running", "Running"), reached("Ready", "Ready")},
			Troubles:   []ObjectTrouble{{When: When{Path: "status.phase", Values: []string{"Failed"}}, Final: true}},
		}
	}
	return nil
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
		pod("PodScheduled", "PodScheduled"), pod("PodReadyToStartContainers", "PodReadyToStartContainers"), pod("PodInitialized", "Initialized"),
		pod("PodContainersReady", "ContainersReady"), pod("PodReady", "Ready"),
		ObjectMilestone{Name: "VMReady", By: "virt-controller", When: When{Condition: "Ready"}})
	return o
}
