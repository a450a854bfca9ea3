package kubernetes

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// observer watches the cluster for a run.
type observer struct {
	*shared
	pods       *podSet
	objects    *objectSet // nil where the load is of pods
	followed   followed   // what the load is of
	nodes      *nodeSet
	namespaces *namespaceSet
	canary     *canary
	watchers   []*watcher

	// watching ends with the watches: when the observer is closed, or with the
	// reason for which one of them cannot go on.
	watching context.Context
	stop     context.CancelCauseFunc
	working  sync.WaitGroup
}

func newObserver(common *shared, ageing *ageing, now func() time.Time, mapper meta.RESTMapper) (*observer, error) {
	o := &observer{shared: common, nodes: newNodeSet(), namespaces: newNamespaceSet()}
	o.nodes.tell = func(now record.Micros, e *record.KubeEvent) { o.emitAt(now, e) }
	o.canary = newCanary(common, now, o.reconnect)
	o.pods = newPodSet(common, o.canary, ageing)
	o.followed = o.pods
	if common.load.Objects == nil {
		return o, nil
	}
	var err error
	if o.objects, err = newObjectSet(common, ageing, o.namespaces, mapper); err != nil {
		return nil, err
	}
	o.followed = o.objects
	return o, nil
}

// start starts the watches, each before anything is created that it must see,
// and then the canary. Fail is told what a watch cannot go on for.
func (o *observer) start(ctx context.Context, fail func(error)) error {
	o.watching, o.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	err := o.open(ctx, fail)
	if err != nil {
		o.close()
	}
	return err
}

func (o *observer) open(ctx context.Context, fail func(error)) error {
	ours := ours(o.load.RunID)
	events := url.Values{}
	if !o.load.NormalEvents {
		events.Set("fieldSelector", "type=Warning")
	}
	pods := &watcher{name: "pods", path: "/api/v1/pods", query: ours, handler: o.pods}
	if o.objects != nil {
		pods.path = o.canary.pods // the others tell of nothing that is followed
	}
	o.watchers = []*watcher{
		pods,
		{name: "nodes", path: "/api/v1/nodes", handler: o.nodes},
		{name: "namespaces", path: "/api/v1/namespaces", query: ours, handler: o.namespaces},
		{name: "events", path: "/api/v1/events", query: events, handler: eventHandler(o.event), fromNow: true},
	}
	if o.load.Images && !o.load.NormalEvents {
		pulled := url.Values{"fieldSelector": {"type=Normal,reason=" + reasonPulled}}
		o.watchers = append(o.watchers, &watcher{name: "events of images", path: "/api/v1/events", query: pulled, handler: eventHandler(o.pods.pulled), fromNow: true})
	}
	of := []*watcher{pods}
	if o.objects != nil {
		o.objects.probing = o.watching
		of = o.objects.watchers()
		o.watchers = append(o.watchers, of...)
	}
	for _, w := range o.watchers {
		w.client, w.clock = o.client, o.clock
		w.fault = func(*record.Fault) {}
		if w.encoding == nil {
			w.encoding = protobufEncoding()
		}
		if slices.Contains(of, w) {
			// A gap in the news of them can lose objects; the other resources
			// only explain and guard.
			w.fault = func(f *record.Fault) { o.emit(f) }
		}
		if err := w.start(ctx); err != nil {
			return err
		}
		o.working.Go(func() {
			if err := w.run(o.watching); err != nil {
				o.stop(err)
				fail(err)
			}
		})
	}
	if err := o.canary.start(ctx); err != nil {
		return err
	}
	o.working.Go(func() { o.canary.run(o.watching) })
	return nil
}

// ours selects what carries the label of a run.
func ours(run string) url.Values { return url.Values{"labelSelector": {LabelRun + "=" + run}} }

// settle returns once all that was published before the call was seen.
func (o *observer) settle(ctx context.Context) error {
	if err := o.canary.barrier(ctx); err != nil || o.objects == nil {
		return err
	}
	return o.objects.settle(ctx, slices.DeleteFunc(slices.Clone(o.watchers), func(w *watcher) bool {
		_, of := w.handler.(*resourceNews)
		return !of
	}))
}

// own is the run's own namespace.
func (o *observer) own() string { return o.canary.namespace }

// latency is that of the API now, in seconds.
func (o *observer) latency() (float64, error) { return o.canary.latency() }

// close ends the watches.
func (o *observer) close() {
	o.stop(nil)
	o.working.Wait()
}

// reconnect takes all watches up anew, on another connection.
func (o *observer) reconnect() {
	if err := o.client.renewStream(); err == nil {
		for _, w := range o.watchers {
			w.cut()
		}
	}
}

// eventHandler takes in a watch of the cluster's events, from now on.
type eventHandler func(now record.Micros, e *corev1.Event)

func (h eventHandler) changed(now record.Micros, kind string, object []byte) error {
	if kind == eventDeleted {
		return nil
	}
	return decoded("event", func(e *corev1.Event) { h(now, e) })(object)
}

func (h eventHandler) listed(record.Micros, func(func([]byte) error) error) error { return nil }

// event puts an event on record, if it is about a node or an object of ours.
func (o *observer) event(now record.Micros, e *corev1.Event) {
	about := e.InvolvedObject
	if about.Namespace != "" && !o.namespaces.has(about.Namespace) {
		return
	}
	if about.Namespace == "" && about.Kind != "Node" {
		return
	}
	if o.load.Images {
		o.pods.pulled(now, e)
	}
	count := int(e.Count)
	if e.Series != nil {
		count = int(e.Series.Count)
	}
	if o.nodes.meant(e) {
		e.Type, e.Message, e.Reason = corev1.EventTypeNormal, e.Reason+": "+e.Message, reasonMeant
	}
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + about.Name
	}
	o.emitAt(now, &record.KubeEvent{Object: name, About: about.Kind, Type: e.Type, Reason: e.Reason, Message: redact.Message(e.Message), Source: cmp.Or(e.Source.Component, e.ReportingController), Count: count})
}

// reasonPulled is the reason of the event that a kubelet writes when a
// container's image is on its node, fetched or there before.
const reasonPulled = "Pulled"
