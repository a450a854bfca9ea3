package follow

import (
	"context"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Measure follows pods, and the objects beside them, that others make, until ctx ends. It makes nothing. selector
// chooses them by their labels, "" takes all. listed is called once everything that was there before is on record.
func Measure(ctx context.Context, run *prepared.Run, now func() time.Time, mapper meta.RESTMapper, selector string, listed func()) error {
	o, err := NewObserver(run, &Ageing{Run: run}, now, mapper, nil)
	if err != nil {
		return err
	}
	watchers := []*api.Watcher{{Name: "pods", Path: run.Load.In("pods"), Handler: o.Pods, Encoding: api.ProtobufEncoding()}}
	for _, set := range o.beside {
		set.names, set.described.Asked, set.probing = nil, nil, ctx
		watchers = append(watchers, set.watchers()...)
	}
	for _, w := range watchers {
		if w.Client, w.Clock, w.Emit = run.Client, run.Clock, run.Emit; !w.Beside {
			w.Query = nil
			if selector != "" {
				w.Query = url.Values{"labelSelector": {selector}}
			}
		}
		if err := w.Start(ctx); err != nil {
			return err
		}
	}
	listed()
	working, ctx := errgroup.WithContext(ctx)
	for _, w := range watchers {
		working.Go(func() error { return w.Run(ctx) })
	}
	return working.Wait()
}
