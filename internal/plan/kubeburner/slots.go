package kubeburner

import (
	"iter"
	"strconv"
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

// PodsOf returns how many pods a manifest makes, by its kind. perNode marks a DaemonSet, which makes one on
// each selected node.
func PodsOf(doc map[string]any) (pods int, perNode bool) {
	kind, _ := doc["kind"].(string)
	spec, _ := doc["spec"].(map[string]any)
	switch group(doc) + "/" + kind {
	case "/Pod":
		return 1, false
	case "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "/ReplicationController":
		return count(spec, "replicas", 1), false
	case "batch/Job":
		parallel := count(spec, "parallelism", 1)
		return min(parallel, count(spec, "completions", parallel)), false
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
