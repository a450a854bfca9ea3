package kubeburner

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Slot is one object of a job, with all documents of its template.
type Slot struct {
	Object    int    // index in the job's objects, from 0
	Iteration int    // from 0
	Replica   int    // from 1
	Namespace string // for namespaced manifests that name none; "" if the job has none
}

// NamespaceOf returns the namespace of an iteration, from 0: iterationsPerNamespace of them share
// <namespace>-<number>, or all share the plain one without namespacedIterations. It is "" if the job has
// none.
func (j *Job) NamespaceOf(iteration int) string {
	if j.Namespace == "" || !j.NamespacedIterations {
		return j.Namespace
	}
	return j.Namespace + "-" + strconv.Itoa(iteration/max(1, j.IterationsPerNamespace))
}

// Namespaces returns the namespaces of the iterations from <= i < to, each once, in order.
func (j *Job) Namespaces(from, to int) []string {
	if j.Namespace == "" || from >= to {
		return nil
	}
	if !j.NamespacedIterations {
		return []string{j.Namespace}
	}
	var names []string
	per := max(1, j.IterationsPerNamespace)
	for n := from / per; n <= (to-1)/per; n++ {
		names = append(names, j.NamespaceOf(n*per))
	}
	return names
}

// Slots returns the objects of the iterations from <= i < to in kube-burner's order: by iteration, object and
// replica, which counts from 1. An object that repeats every n iterations belongs to those that n divides,
// one that runs once to iteration 0. It ignores the job's own jobIterations.
func (j *Job) Slots(from, to int) iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for i := from; i < to; i++ {
			namespace := j.NamespaceOf(i)
			for k := range j.Objects {
				if !j.Objects[k].in(i) {
					continue
				}
				for r := 1; r <= j.Objects[k].Replicas; r++ {
					if !yield(Slot{Object: k, Iteration: i, Replica: r, Namespace: namespace}) {
						return
					}
				}
			}
		}
	}
}

// Times returns how many of the first iterations have the object.
func (o *Object) Times(iterations int) int {
	switch every := max(1, o.RepeatEveryNIterations); {
	case iterations < 1:
		return 0
	case o.RunOnce:
		return 1
	default:
		return (iterations-1)/every + 1
	}
}

// in reports whether an iteration has the object.
func (o *Object) in(iteration int) bool {
	if o.RunOnce {
		return iteration == 0
	}
	return iteration%max(1, o.RepeatEveryNIterations) == 0
}

// PodsOf returns how many pods a manifest makes, for a DaemonSet on each selected node (perNode).
func PodsOf(doc map[string]any) (pods int, perNode bool) {
	kind, _ := doc["kind"].(string)
	spec, _ := doc["spec"].(map[string]any)
	switch group(doc) + "/" + kind {
	case "/Pod":
		return 1, false
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "/ReplicationController":
		return count(spec, "replicas", 1), false
	case "batch/Job":
		return count(spec, "completions", count(spec, "parallelism", 1)), false // some after others
	case "apps/DaemonSet":
		return 0, true
	case "kubevirt.io/VirtualMachine":
		// A machine that runs at once has a pod; whoever starts another machine counts it.
		if strategy, _ := spec["runStrategy"].(string); strategy == "Always" || strategy == "RerunOnFailure" || spec["running"] == true {
			return 1, false
		}
	}
	return 0, false
}

// count returns the number at key, or the default.
func count(spec map[string]any, key string, without int) int {
	switch n := spec[key].(type) {
	case int64:
		return int(max(0, n))
	case float64:
		return int(max(0, n))
	}
	return without
}

// ImagesOf returns the images in a document of pods or machines: of containers and of container disks.
func ImagesOf(value any) (list []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			if image, is := value.(string); is && key == "image" {
				list = append(list, image)
			}
			list = append(list, ImagesOf(value)...)
		}
	case []any:
		for _, value := range v {
			list = append(list, ImagesOf(value)...)
		}
	}
	return list
}

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

// InjectLabels puts labels on a manifest and on the template of its pods and disks, which as in kube-burner get the
// object's own labels, too. The error names a part of the wrong type.
func InjectLabels(doc map[string]any, labels map[string]string) error {
	own, err := labelsOf(doc, "metadata")
	if err != nil {
		return err
	}
	passed := maps.Clone(own)
	put(own, labels)
	if err := labelDisks(doc, passed, labels); err != nil {
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
	template, err := labelsOf(at, strings.Join(path, ".")+".metadata")
	if err != nil {
		return err
	}
	if passesLabels(doc) {
		pass(template, passed)
	}
	put(template, labels)
	return nil
}

// passesLabels reports whether objects of a kind pass their own labels on.
func passesLabels(doc map[string]any) bool {
	kind, _ := doc["kind"].(string)
	return slices.Contains([]string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "VirtualMachine"}, kind)
}

// labelDisks puts a virtual machine's own labels and kube-burner's on the disks that it is made with.
func labelDisks(doc, passed map[string]any, labels map[string]string) error {
	spec, _ := doc["spec"].(map[string]any)
	disks, _ := spec["dataVolumeTemplates"].([]any)
	if doc["kind"] != "VirtualMachine" || len(disks) == 0 {
		return nil
	}
	burners := maps.Clone(labels)
	maps.DeleteFunc(burners, func(name, _ string) bool { return !strings.HasPrefix(name, "kube-burner.io/") })
	for i, disk := range disks {
		path := fmt.Sprintf("spec.dataVolumeTemplates[%d]", i)
		part, ok := disk.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not a mapping", path)
		}
		on, err := labelsOf(part, path+".metadata")
		if err != nil {
			return err
		}
		pass(on, passed)
		put(on, burners)
	}
	return nil
}

// labelsOf returns the labels of a part of a manifest, to be changed; path is its metadata's name in messages.
func labelsOf(part map[string]any, path string) (map[string]any, error) {
	metadata, err := mapping(part, "metadata", path)
	if err != nil {
		return nil, err
	}
	return mapping(metadata, "labels", path+".labels")
}

// put puts labels among others.
func put(on map[string]any, labels map[string]string) {
	for name, value := range labels {
		on[name] = value
	}
}

// pass passes an object's labels on to a part of it, which keeps its own: its selector may ask for these.
func pass(on, labels map[string]any) {
	for name, value := range labels {
		if _, stated := on[name]; !stated {
			on[name] = value
		}
	}
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
