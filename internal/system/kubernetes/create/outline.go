package create

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Outline lists what the jobs make, in an existing namespace or, with "", in their own. whole reports
// whether a run makes all of a job; else the number is unknown.
func Outline(v prepared.Variant, ids prepared.Identity, namespace string, whole func(job int) bool) (list []system.Change, err error) {
	for _, command := range Commands(v.Config) {
		list = append(list, system.Change{Action: system.Execute, What: command})
	}
	type made struct{ kind, each string }
	numbers, places := make(map[made]int), make(map[made]int) // of the jobs in the same namespaces, or for each iteration of one
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if !job.Creates() {
			for o := range job.Objects {
				list = append(list, system.Change{Action: system.Use, What: fmt.Sprintf("%s by its labels, for job %s: %s", job.Objects[o].Kind, job.Name, job.JobType)})
			}
			continue
		}
		if j > 0 && job.From > 0 {
			continue // the first stage of the job has all
		}
		for next := j + 1; next < len(v.Config.Jobs) && v.Config.Jobs[next].From > 0; next++ {
			job = &v.Config.Jobs[next]
		}
		iterations := 0 // unknown
		if whole(j) {
			iterations = max(1, job.JobIterations)
		}
		maps.DeleteFunc(places, func(of made, _ int) bool { return of.each != "" })
		if spaces := namespaces(job, ids.Run, iterations); job.Namespace != "" && job.Namespace != namespace && !slices.Contains(list, spaces) {
			list = append(list, spaces)
			clear(places)
		}
		for o := range job.Objects {
			if job.Objects[o].Replicas < 1 {
				continue
			}
			m := &Maker{job: job, jobIndex: j, index: o, ids: ids}
			docs, err := v.Templates[j][o].Render(m.vars(kubeburner.Slot{Object: o, Replica: 1, Namespace: job.NamespaceOf(0)}))
			if err != nil {
				return nil, system.Mistakef("", "%w", err)
			}
			object := &job.Objects[o]
			n, each := object.Replicas, ""
			switch {
			case iterations > 0:
				n *= object.Times(iterations)
			case object.RunOnce:
			case object.RepeatEveryNIterations > 1:
				each = fmt.Sprintf("%d iterations", object.RepeatEveryNIterations)
			default:
				each = "iteration"
			}
			for _, doc := range docs {
				for _, image := range Images(doc) {
					list = append(list, system.Change{Action: system.Use, What: "image " + image})
				}
				key := made{fmt.Sprint(doc["kind"]), each}
				if _, listed := places[key]; !listed {
					numbers[key], places[key] = 0, len(list)
					list = append(list, system.Change{Action: system.Make, Each: each})
				}
				numbers[key] += n
				list[places[key]].What = countOf(numbers[key], key.kind)
			}
		}
	}
	return list, nil
}

// namespaces returns the namespaces that a job makes in so many iterations; 0 is unknown.
func namespaces(job *kubeburner.Job, run string, iterations int) system.Change {
	c := system.Change{Action: system.Make, What: "namespace " + strings.ReplaceAll(job.NamespaceOf(0), run, "RUN")}
	if !job.NamespacedIterations {
		return c
	}
	per := max(1, job.IterationsPerNamespace)
	if iterations > 0 {
		if last := (iterations - 1) / per; last > 0 {
			c.What = fmt.Sprintf("%d namespaces, %s to %s", last+1, strings.TrimPrefix(c.What, "namespace "), strings.ReplaceAll(job.NamespaceOf(iterations-1), run, "RUN"))
		}
		return c
	}
	if c.Each = "iteration"; per > 1 {
		c.Each = fmt.Sprintf("%d iterations", per)
	}
	return c
}

// Images lists the images that a document names at any depth, in order.
func Images(in any) (list []string) {
	switch v := in.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[key].(string); ok && (key == "image" || strings.HasPrefix(text, "docker://")) {
				list = append(list, text)
			}
			list = append(list, Images(v[key])...)
		}
	case []any:
		for _, one := range v {
			list = append(list, Images(one)...)
		}
	}
	return list
}

// Document holds one document of a template in its first iteration.
type Document struct {
	unstructured.Unstructured
	From    string            // the template
	Typed   runtime.Object    // nil for a custom resource
	Mapping *meta.RESTMapping // nil where Unknown is set
	Unknown error             // the cluster lacks the kind
}

// Documents returns the documents of an object of a job.
func Documents(v prepared.Variant, job, object int, ids prepared.Identity, mapper meta.RESTMapper) (list []Document, err error) {
	return (&Maker{job: &v.Config.Jobs[job], jobIndex: job, index: object, template: v.Templates[job][object], ids: ids, mapper: mapper}).documents()
}

func (m *Maker) documents() (list []Document, err error) {
	docs, err := m.template.Render(m.vars(kubeburner.Slot{Object: m.index, Replica: 1, Namespace: m.job.NamespaceOf(0)}))
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		d := Document{Unstructured: unstructured.Unstructured{Object: doc}, From: m.template.Name()}
		if d.Typed, err = m.prepare(doc, i, "0", "1"); err != nil {
			return nil, err
		}
		gvk := d.GroupVersionKind()
		if d.Mapping, err = m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			d.Unknown = m.unknownKind(i, &d.Unstructured)
		}
		list = append(list, d)
	}
	return list, nil
}
