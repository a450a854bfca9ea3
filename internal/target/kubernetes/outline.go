package kubernetes

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/target"
)

// Outline implements target.Provider.
func (Provider) Outline(r target.Request) ([]target.Change, error) {
	rendered, err := renderingsOf(r)
	if err != nil {
		return nil, err
	}
	list := []target.Change{}
	if t := r.Plan.Target; t.Lab != nil {
		what := "a private lab: etcd, API server, controller manager and scheduler"
		if t.Lab.Nodes > 0 {
			what += fmt.Sprintf(", %d simulated nodes of %d pods", t.Lab.Nodes, t.Lab.MaxPods)
		}
		if t.Lab.RealNode {
			what += fmt.Sprintf(", a real node of %d pods (containerd, kubelet and kube-proxy in namespaces of their own)", t.Lab.MaxPods)
		}
		list = append(list, target.Change{Action: target.Make, What: what})
	} else {
		list = append(list, target.Change{Action: target.RemoveLeft, What: "leftovers of earlier runs"})
	}
	list = append(list, target.Change{Action: target.Make, What: "namespace plimsoll-RUN with a pod that is never scheduled, to measure the watch"})
	seen := make(map[target.Change]bool)
	for _, a := range rendered.toLoad() {
		changes, err := a.outline(identity{uuid: r.UUID, run: r.Run})
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if !seen[c] {
				seen[c] = true
				list = append(list, c)
			}
		}
	}
	return list, nil
}

// outline is what the jobs of a rendering make.
func (v armVariant) outline(ids identity) (list []target.Change, err error) {
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if job.Namespace != "" {
			c := target.Change{Action: target.Make, What: "namespace " + strings.ReplaceAll(job.NamespaceOf(0), ids.run, "RUN")}
			if job.NamespacedIterations {
				c.Each = fmt.Sprintf("%d iterations", max(1, job.IterationsPerNamespace))
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
