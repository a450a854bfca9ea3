package kubernetes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/target"
)

// outline is what the jobs of a rendering make.
func outline(v Variant, ids identity) (list []target.Change, err error) {
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if job.Namespace != "" {
			c := target.Change{Action: target.Make, What: "namespace " + strings.ReplaceAll(job.NamespaceOf(0), ids.run, "RUN")}
			if job.NamespacedIterations {
				if c.Each = "iteration"; job.IterationsPerNamespace > 1 {
					c.Each = fmt.Sprintf("%d iterations", job.IterationsPerNamespace)
				}
			}
			list = append(list, c)
		}
		for o := range job.Objects {
			m := &objectMaker{job: job, jobIndex: j, index: o, ids: ids}
			docs, err := v.Templates[j][o].Render(m.vars(kubeburner.Slot{Object: o, Replica: 1, Namespace: job.NamespaceOf(0)}))
			if err != nil {
				return nil, target.Mistakef("", "%w", err)
			}
			for _, doc := range docs {
				list = append(list, target.Change{Action: target.Make, What: fmt.Sprintf("%d %v", max(1, job.Objects[o].Replicas), doc["kind"]), Each: "iteration"})
			}
		}
	}
	return list, nil
}

// document is what a template writes in its first iteration.
type document struct {
	unstructured.Unstructured
	from    string            // the template
	typed   runtime.Object    // nil for a custom resource
	mapping *meta.RESTMapping // nil where unknown is not
	unknown error             // the cluster has no such kind
}

// documents are those of an object of a job.
func documents(v Variant, job, object int, ids identity, mapper meta.RESTMapper) (list []document, err error) {
	m := &objectMaker{job: &v.Config.Jobs[job], jobIndex: job, index: object, template: v.Templates[job][object], ids: ids, mapper: mapper}
	docs, err := m.template.Render(m.vars(kubeburner.Slot{Object: object, Replica: 1, Namespace: m.job.NamespaceOf(0)}))
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		d := document{Unstructured: unstructured.Unstructured{Object: doc}, from: m.template.Name()}
		if d.typed, err = m.prepare(doc, i, "0", "1"); err != nil {
			return nil, err
		}
		gvk := d.GroupVersionKind()
		if d.mapping, err = mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			d.unknown = m.unknownKind(i, &d.Unstructured)
		}
		list = append(list, d)
	}
	return list, nil
}
