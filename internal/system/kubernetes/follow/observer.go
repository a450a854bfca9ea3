// Package follow watches a cluster for a run: the objects of its load, its nodes and namespaces, and how late
// the news of them comes.
//
// The canary is the barrier: a pod that no scheduler places, changed at known times on the watch of the
// load's pods. Once a change has been seen, so has all earlier news. The canary also measures the API's
// latency and shows a dead connection. The lag counts from the request of the change, so it is an upper
// bound. For other resources the barrier is a list: a watch that has seen its newest version has seen all.
// Every watch is guarded, see api.Watcher. Resources that a user may not list are reported once, except
// followed ones, which a run needs.
package follow

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Observer watches the cluster for a run.
type Observer struct {
	*prepared.Run
	Pods       *PodSet
	Objects    *ObjectSet // nil for a load of pods
	Followed   Followed   // Pods or Objects, with what is beside them
	beside     []*ObjectSet
	Nodes      *NodeSet
	Namespaces *NamespaceSet
	Actors     *Actors
	canary     *canary
	watchers   []*api.Watcher
	pods       *api.Watcher   // brings the news of the canary
	of         []*api.Watcher // the resources of Objects, and beside them

	Watching context.Context // ends with the watches, or with the reason why one of them cannot go on
	stop     context.CancelCauseFunc
	working  sync.WaitGroup
}

// NewObserver makes an observer for a run. caller calls the servers of objects that are not pods.
func NewObserver(common *prepared.Run, ageing *Ageing, now func() time.Time, mapper meta.RESTMapper, caller Caller) (*Observer, error) {
	o := &Observer{Run: common, Nodes: newNodeSet(), Namespaces: newNamespaceSet()}
	o.Nodes.tell, o.Nodes.run = o.EmitAt, common.Load.RunID
	if objects := common.Load.Objects; objects != nil && objects.Begin != nil {
		o.Nodes.reboots = objects.Begin.Reboots
	}
	o.canary = newCanary(common, now, o.reconnect)
	if common.Load.Namespace != "" {
		o.Namespaces.names[common.Load.Namespace] = true
	}
	o.Pods = newPodSet(common, o.canary, ageing)
	o.Followed = o.Pods
	if common.Load.Objects != nil {
		var err error
		if o.Objects, err = newObjectSet(common, common.Load.Objects, ageing, o.Namespaces, mapper, caller); err != nil {
			return nil, err
		}
		o.Followed = o.Objects
	}
	for _, spec := range common.Load.Beside {
		set, err := newObjectSet(common, spec, ageing, o.Namespaces, mapper, caller)
		if err != nil {
			return nil, err
		}
		set.beside()
		o.beside = append(o.beside, set)
		o.Followed = newTogether(o.Pods, o.beside)
	}
	o.Actors = newActors(common, o.Followed, o.Nodes, o.canary)
	return o, nil
}

// Start starts the watches, each before the objects that it must see, and then the canary. fail takes why
// a watch cannot go on. After an error, made says that objects may exist, whose removal the watches see.
func (o *Observer) Start(ctx context.Context, fail func(error)) (made bool, err error) {
	o.Watching, o.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err = o.watch(ctx, fail); err != nil {
		o.Close(false)
		return false, err
	}
	if err := o.canary.start(ctx, o.Actors); err != nil {
		if !o.canary.made {
			o.Close(false)
		}
		return o.canary.made, err
	}
	o.working.Go(func() { o.canary.run(o.Watching) })
	for _, w := range o.watchers {
		o.working.Go(func() { w.Guard(o.Watching) })
	}
	return true, nil
}

func (o *Observer) watch(ctx context.Context, fail func(error)) error {
	ours := ours(o.Load.RunID)
	events := url.Values{}
	if !o.Load.NormalEvents {
		events.Set("fieldSelector", "type=Warning")
	}
	// A gap in the news of followed objects can lose some; other resources only explain and guard.
	o.pods = &api.Watcher{Name: "pods", Path: o.Load.In("pods"), Query: ours, Handler: o.Pods, Care: api.Care{Touch: o.canary.touchPod, Doubt: o.Pods.doubt}}
	if o.Objects != nil {
		o.pods.Path, o.pods.Beside = o.canary.pods, true // the load has no pods
	}
	o.watchers = []*api.Watcher{
		o.pods,
		{Name: "nodes", Path: "/api/v1/nodes", Handler: o.Nodes, Beside: true, Care: api.Care{Every: listEvery}},
		{Name: "events", Path: o.Load.In("events"), Query: events, Handler: eventHandler(o.event), Beside: true, FromNow: true, Care: api.Care{Touch: o.canary.touchEvent}},
	}
	if o.Load.Namespace == "" {
		o.watchers = append(o.watchers, &api.Watcher{Name: "namespaces", Path: "/api/v1/namespaces", Query: ours, Handler: o.Namespaces, Beside: true, Care: api.Care{Touch: o.canary.touchNamespace, Every: listEvery, Doubt: o.Namespaces.doubt}})
	}
	if o.Load.Images && !o.Load.NormalEvents {
		pulled := url.Values{"fieldSelector": {"type=Normal,reason=" + reasonPulled}}
		o.watchers = append(o.watchers, &api.Watcher{Name: "events of images", Path: o.Load.In("events"), Query: pulled, Handler: eventHandler(o.Pods.pulled), Beside: true, FromNow: true})
	}
	if o.Objects != nil {
		o.Objects.probing = o.Watching
		o.of = o.Objects.watchers()
	}
	for _, set := range o.beside {
		set.probing = o.Watching
		o.of = append(o.of, set.watchers()...)
	}
	o.watchers = append(o.watchers, o.of...)
	var unseen []string
	for _, w := range slices.Clone(o.watchers) {
		w.Client, w.Clock, w.Emit = o.Client, o.Clock, o.Emit
		if w.Encoding == nil {
			w.Encoding = api.ProtobufEncoding()
		}
		if err := w.Start(ctx); api.Refused(err) && w.Beside && w != o.pods {
			unseen = append(unseen, w.Name)
			o.hide(w)
			o.watchers = slices.DeleteFunc(o.watchers, func(x *api.Watcher) bool { return x == w })
			continue
		} else if api.Refused(err) {
			return system.Mistakef("the user needs the rights of a run: plimsoll check names those that are missing", "%w", err)
		} else if err != nil {
			return err
		}
		o.working.Go(func() {
			if err := w.Run(o.Watching); err != nil {
				o.refused(w, err, fail)
			}
		})
	}
	if len(unseen) > 0 {
		o.Emit(&record.Note{Warning: record.WarningNotKnown, Text: "this user may not list " + strings.Join(unseen, ", ") + ": what becomes of them, and what they tell, is not seen"})
	}
	o.working.Go(func() { o.Actors.run(o.Watching) })
	return nil
}

// refused goes on without a watch that the user may not have, unless a verdict needs it: then the run fails.
func (o *Observer) refused(w *api.Watcher, err error, fail func(error)) {
	if w.Closed() && w != o.pods {
		o.hide(w)
		o.Emit(&record.Note{Warning: record.WarningNotKnown, Text: "this user may not watch " + w.Name + ": what becomes of them, and what they tell, is not seen"})
		return
	}
	err = &system.CutError{Err: fmt.Errorf("the right to watch %s was taken away, and what becomes of them is not seen: %w", w.Name, err)}
	fail(err)
	if api.Refused(w.Reconcile(o.Watching)) {
		o.stop(err)
	}
}

// hide tells a watch's handler that it sees nothing.
func (o *Observer) hide(w *api.Watcher) {
	if hidden, can := w.Handler.(interface{ hide() }); can {
		hidden.hide()
	}
}

// listEvery is the time between lists that no verdict needs, but that may stop a load or its removal.
const listEvery = 10 * time.Second

// ours selects objects with the run's label.
func ours(run string) url.Values { return url.Values{"labelSelector": {api.LabelRun + "=" + run}} }

// Settle returns when all news published before was seen; lists confirm that objects are missing.
func (o *Observer) Settle(ctx context.Context) error {
	if err := o.canary.barrier(ctx); err != nil {
		return err
	}
	of := o.of
	if o.Objects == nil && o.Pods.short(0) {
		of = append(slices.Clone(of), o.pods)
	}
	for _, w := range of {
		if err := w.Reconcile(ctx); err != nil {
			return fmt.Errorf("list %s: %w", w.Name, w.Client.Unreachable(err))
		}
	}
	return nil
}

// Ask notes an object that the run is about to ask for beside its pods, by its name on record.
func (o *Observer) Ask(object string) {
	for _, set := range o.beside {
		set.ask(object)
	}
}

// Begin notes that the work of objects beside the pods begins, or begins again, by their names on record.
func (o *Observer) Begin(objects []string) {
	for _, set := range o.beside {
		for _, object := range objects {
			if name, ours := strings.CutPrefix(object, set.of); ours {
				set.Begin(name)
			}
		}
	}
}

// Helper begins the names of a run's pods that are not of its load; their events are not on record.
const Helper = "plimsoll-helper-"

// Own returns the run's own namespace, or the existing one that it uses.
func (o *Observer) Own() string { return o.canary.namespace }

// OwnObjects returns the paths of the observer's objects in an existing namespace.
func (o *Observer) OwnObjects() []string { return o.canary.own() }

// Latency returns the API's present latency in seconds.
func (o *Observer) Latency() (float64, error) { return o.canary.latency() }

// Close ends the watches. emptied says that nothing of the run is left to be seen.
func (o *Observer) Close(emptied bool) {
	o.stop(nil)
	o.working.Wait()
	for _, w := range o.watchers {
		if emptied {
			w.Over()
		}
	}
}

// reconnect renews all watches on other connections.
func (o *Observer) reconnect() {
	if err := o.Client.RenewStream(); err == nil {
		for _, w := range o.watchers {
			w.Cut()
		}
	}
}

// eventHandler handles a watch of the cluster's new events.
type eventHandler func(now record.Micros, e *corev1.Event)

func (h eventHandler) Changed(now record.Micros, kind string, object []byte) error {
	if kind == api.EventDeleted {
		return nil
	}
	return api.Decoded("event", func(e *corev1.Event) { h(now, e) })(object)
}

func (h eventHandler) Missing(record.Micros, []api.Identity) {}

func (o *Observer) event(now record.Micros, e *corev1.Event) {
	about, source := e.InvolvedObject, cmp.Or(e.Source.Component, e.ReportingController)
	o.Actors.event(now, source)
	if e.Labels[api.LabelCanary] != "" || strings.HasPrefix(about.Name, Helper) || about.Namespace != "" && !o.Namespaces.Has(about.Namespace) || about.Namespace == "" && about.Kind != "Node" {
		return
	}
	if o.Load.Images {
		o.Pods.pulled(now, e)
	}
	count := int(e.Count)
	if e.Series != nil {
		count = int(e.Series.Count)
	}
	if o.Nodes.meant(e) {
		e.Type, e.Message, e.Reason = corev1.EventTypeNormal, e.Reason+": "+e.Message, reasonMeant
	}
	name := api.ObjectName(about.Namespace, about.Name)
	maker := o.Pods.SlotOf(about.Kind, name)
	for _, set := range o.beside {
		if set.of == about.Kind+"/" && !set.spec.Before {
			name = set.of + name // as the object itself is on record
		}
	}
	o.EmitAt(now, &record.TargetEvent{Object: name, About: about.Kind, For: maker, Type: e.Type, Reason: e.Reason, Message: e.Message, Source: source, Count: count})
}

const reasonPulled = "Pulled" // reason of a kubelet's event when an image is on its node
