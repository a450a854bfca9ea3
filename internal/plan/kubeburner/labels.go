package kubeburner

import (
	"fmt"
	"strconv"
	"strings"
)

// Labels that kube-burner puts on objects.
const (
	LabelUUID      = "kube-burner.io/uuid"
	LabelJob       = "kube-burner.io/job"
	LabelIndex     = "kube-burner.io/index" // of the object in its job, from 0
	LabelRunID     = "kube-burner.io/runid"
	LabelIteration = "kube-burner.io/job-iteration"
	LabelReplica   = "kube-burner.io/replica"
	LabelGroup     = "kube-burner.io/group"
)

// Identity says which slot an object fills.
type Identity struct {
	UUID, RunID, Job   string
	Object             int // index in the job, from 0
	Group              int
	Iteration, Replica string // Iteration and Replica are decimal numbers, or the marks of a Pattern
}

// Labels returns the labels that kube-burner puts on the object and on its pods.
func (id Identity) Labels() map[string]string {
	return map[string]string{
		LabelUUID: id.UUID, LabelRunID: id.RunID, LabelJob: id.Job, LabelIndex: strconv.Itoa(id.Object), LabelGroup: strconv.Itoa(id.Group),
		LabelIteration: id.Iteration, LabelReplica: id.Replica,
	}
}

// NamespaceLabels returns kube-burner's labels of a job's namespaces.
func NamespaceLabels(uuid, runID, job string) map[string]string {
	return map[string]string{LabelUUID: uuid, LabelRunID: runID, LabelJob: job}
}

// InjectLabels puts labels on a manifest and the template of its pods. The error names a part of the wrong
// type.
func InjectLabels(doc map[string]any, labels map[string]string) error {
	if err := labelMetadata(doc, "metadata", labels); err != nil {
		return err
	}
	path := podTemplate(doc)
	at := doc
	for i, key := range path {
		part, ok := at[key]
		if !ok {
			return nil // the API server judges a manifest without a template
		}
		if at, ok = part.(map[string]any); !ok {
			return fmt.Errorf("%s is not a mapping", strings.Join(path[:i+1], "."))
		}
	}
	if path == nil {
		return nil
	}
	return labelMetadata(at, strings.Join(path, ".")+".metadata", labels)
}

// labelMetadata puts labels into the metadata of a part of a manifest; path is its name in messages.
func labelMetadata(part map[string]any, path string, labels map[string]string) error {
	metadata, err := mapping(part, "metadata", path)
	if err != nil {
		return err
	}
	present, err := mapping(metadata, "labels", path+".labels")
	if err != nil {
		return err
	}
	for k, v := range labels {
		present[k] = v
	}
	return nil
}

func mapping(of map[string]any, key, path string) (map[string]any, error) {
	switch m := of[key].(type) {
	case nil:
		made := map[string]any{}
		of[key] = made
		return made, nil
	case map[string]any:
		return m, nil
	default:
		return nil, fmt.Errorf("%s is not a mapping", path)
	}
}

// podTemplate returns the path of the template from which a kind makes pods or virtual machines, or nil.
func podTemplate(doc map[string]any) []string {
	kind, _ := doc["kind"].(string)
	switch group(doc) + "/" + kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "/ReplicationController", "batch/Job",
		"kubevirt.io/VirtualMachine", "kubevirt.io/VirtualMachineInstanceReplicaSet":
		return []string{"spec", "template"}
	case "batch/CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	case "pool.kubevirt.io/VirtualMachinePool":
		return []string{"spec", "virtualMachineTemplate", "spec", "template"}
	}
	return nil
}

func group(doc map[string]any) string {
	apiVersion, _ := doc["apiVersion"].(string)
	if group, _, grouped := strings.Cut(apiVersion, "/"); grouped {
		return group
	}
	return ""
}
