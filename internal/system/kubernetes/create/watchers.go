package create

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// extraWatch is a watcher of a job: watches that only load the API server.
type extraWatch struct {
	*kubeburner.Watcher
	resource *meta.RESTMapping
}

// extraWatches returns the watchers of a job. The error names a kind that the cluster does not know.
func (r *Rendering) extraWatches(job *kubeburner.Job) (list []extraWatch, err error) {
	for i := range job.Watchers {
		w := &job.Watchers[i]
		gv, err := schema.ParseGroupVersion(w.APIVersion)
		if err != nil {
			return nil, system.Mistakef("", "job %s: watchers: %w", job.Name, err)
		}
		mapping, err := r.made.RESTMapping(gv.WithKind(w.Kind).GroupKind(), gv.Version)
		if err != nil {
			return nil, system.Mistakef("", "job %s: watchers: the cluster knows no kind %s in %s", job.Name, w.Kind, w.APIVersion)
		}
		list = append(list, extraWatch{w, mapping})
	}
	return list, nil
}

// openWatches opens the extra watches of a job. They stay open until the next job opens its own.
func (x *Script) openWatches(ctx context.Context, job int) error {
	if x.watches != nil && x.watched == job {
		return nil
	}
	x.closeWatches()
	list := x.pacing.watches[job]
	if len(list) == 0 {
		return nil
	}
	ctx, x.watches = context.WithCancel(context.WithoutCancel(ctx))
	x.watched = job
	for _, w := range list {
		for range w.Replicas {
			if err := watch(ctx, x.sender.Run, w.resource, labels.Set(w.LabelSelector).String(), unread{}, func() bool { return false }, x.sender.fail); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Script) closeWatches() {
	if x.watches != nil {
		x.watches()
		x.watches = nil
	}
}

// unread takes the news of a watch and reads none of it.
type unread struct{}

// Changed implements api.Handler.
func (unread) Changed(record.Micros, string, []byte) error { return nil }

// Missing implements api.Handler.
func (unread) Missing(record.Micros, []api.Identity) {}
