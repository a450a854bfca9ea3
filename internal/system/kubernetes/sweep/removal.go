// Package sweep removes what runs have made: a run its own objects, and any command those of dead runs. The
// namespaces of a load that makes only pods stay between steps: removing them takes along thousands of
// events, a load of its own. Other loads are emptied by their namespaces.
package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Remover removes what a run has made.
type Remover struct {
	*prepared.Run
	followed   follow.Followed
	actors     *follow.Actors
	namespaces *follow.NamespaceSet
	holdings   *create.Holdings
	own        string                   // the run's own namespace, "" for none
	inOthers   []string                 // paths of its own objects in an existing namespace
	grace      url.Values               // query of pod deletions, see Lies
	path       func(name string) string // returns an object's path by its name; nil is for pods
	tell       func(format string, args ...any)
}

// NewRemover makes the remover of the objects that watch follows and of holdings; tell takes notes.
func NewRemover(common *prepared.Run, watch *follow.Observer, holdings *create.Holdings, tell func(format string, args ...any)) *Remover {
	rm := &Remover{Run: common, tell: tell, followed: watch.Followed, actors: watch.Actors, namespaces: watch.Namespaces, holdings: holdings, own: watch.Own(), inOthers: watch.OwnObjects()}
	if common.Load.Namespace != "" {
		rm.own = ""
	}
	if watch.Objects != nil {
		rm.path = watch.Objects.Path
	}
	return rm
}

// Lies sets whether the pods are on real nodes.
func (rm *Remover) Lies(on record.Realness) {
	rm.grace = nil
	if on == record.Real {
		// Without a grace period the API forgets pods at once, and nodes stop them in the next step.
		rm.grace = url.Values{"gracePeriodSeconds": {"1"}}
	}
}

// Bounds of the end of a run.
const (
	RemovalBound     = 15 * time.Minute       // of the wait until all objects are gone
	dismissBound     = 10 * time.Second       // of the deletion requests after a failed wait
	dismissSignalled = 500 * time.Millisecond // of these requests after a signal
)

// Empty removes the load. Its namespaces stay if it makes only pods.
func (rm *Remover) Empty(ctx context.Context, onlyPods bool) error {
	ctx, done := rm.endHeldUp(ctx)
	defer done()
	if onlyPods {
		if err := rm.deletePods(ctx); err != nil {
			return err
		}
		return rm.deleteStrays(ctx)
	}
	if err := rm.deleteStrays(ctx); err != nil {
		return err
	}
	spaces, _ := rm.holdings.List()
	if err := rm.deleteNamespaces(ctx, spaces); err != nil || rm.Load.Namespace == "" {
		return err
	}
	return rm.awaitGone(ctx) // dependents go after their owners
}

// RemoveAll removes everything that the run made. If the wait fails, it still sends all deletions.
func (rm *Remover) RemoveAll(ctx context.Context, onlyPods bool) error {
	if rm.grace == nil {
		// Nothing is measured any more: with 0 the API forgets pods at once, without their nodes' requests.
		rm.grace = url.Values{"gracePeriodSeconds": {"0"}}
	}
	answers := rm.Client.Answers.Load()
	waiting, done := rm.endHeldUp(ctx)
	err := rm.tryRemoveAll(waiting, onlyPods)
	done()
	if err == nil {
		return nil
	}
	if unreachable, ok := errors.AsType[*api.OutOfReachError](context.Cause(ctx)); ok {
		return unreachable
	}
	if rm.Client.Answers.Load() == answers && context.Cause(ctx) == nil {
		return rm.outOfReach(rm.Load.RetryFor())
	}
	bound := dismissBound
	if system.SignalOf(ctx) != nil {
		bound = dismissSignalled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	further := []error{rm.deleteStrays(ctx), rm.dismissNamespaces(ctx, rm.allNamespaces())}
	if rm.Load.Namespace != "" {
		further = append(further, rm.dismissPods(ctx), rm.deleteAll(ctx, rm.inOthers))
	}
	for _, f := range further {
		if f != nil && !strings.Contains(err.Error(), f.Error()) {
			err = errors.Join(err, f)
		}
	}
	return err
}

func (rm *Remover) tryRemoveAll(ctx context.Context, onlyPods bool) error {
	if onlyPods && (rm.Load.Deletions > 0 || rm.Load.Namespace != "") {
		if err := rm.deletePods(ctx); err != nil {
			return err
		}
	}
	if err := rm.deleteStrays(ctx); err != nil {
		return err
	}
	if rm.Load.Namespace != "" {
		if err := rm.awaitGone(ctx); err != nil {
			return err
		}
		if err := rm.deleteAll(ctx, rm.inOthers); err != nil {
			return err
		}
	}
	if err := rm.deleteNamespaces(ctx, rm.allNamespaces()); err != nil {
		return err
	}
	if onlyPods {
		if err := rm.awaitGone(ctx); err != nil {
			return err
		}
	}
	return rm.confirmAll(ctx)
}

// confirmAll returns when the API lists no more objects, of which news may show no end, and deletes
// others that it finds.
func (rm *Remover) confirmAll(ctx context.Context) error {
	var further []string
	var err error
	if rm.Load.Namespace == "" {
		err = rm.confirm(ctx, "/api/v1/namespaces", func(o *metav1.PartialObjectMetadata) bool {
			if o.DeletionTimestamp == nil {
				further = append(further, o.Name)
			}
			return true
		}, func() error {
			names := further
			further = nil
			return rm.dismissNamespaces(ctx, names)
		})
	}
	for _, collection := range append(rm.holdings.Collections(), rm.Load.In("pods")) {
		if err == nil {
			err = rm.confirm(ctx, collection, nil, nil)
		}
	}
	return err
}

// confirm returns when a list has no more objects of the run that count; meanwhile is called between looks.
func (rm *Remover) confirm(ctx context.Context, collection string, counts func(o *metav1.PartialObjectMetadata) bool, meanwhile func() error) error {
	path, name := collection[:strings.LastIndexByte(collection, '/')], collection[strings.LastIndexByte(collection, '/')+1:]
	pause := api.FirstPause
	for {
		left := 0
		err := straysOf(ctx, rm.Client, rm.Load.RetryFor(), path, "", metav1.APIResource{Name: name}, api.LabelRun+"="+rm.Load.RunID, func(o *metav1.PartialObjectMetadata, _ string) {
			if counts == nil || counts(o) {
				left++
			}
		})
		if err == nil && left > 0 && meanwhile != nil {
			err = meanwhile()
		}
		switch {
		case err != nil:
			return fmt.Errorf("confirm that no %s are left: %w", name, err)
		case left == 0:
			return nil
		case !api.Sleep(ctx, pause):
			return fmt.Errorf("still there: %d of %s: %w", left, name, context.Cause(ctx))
		}
		pause = min(2*pause, api.LastPause)
	}
}

// awaitGone waits until the end of all objects was seen.
func (rm *Remover) awaitGone(ctx context.Context) error {
	ctx, done := rm.actors.Wait(ctx, observe.Nodes, rm.followed.Noun(), func() int { return len(rm.followed.Names()) })
	defer done()
	return rm.followed.AwaitGone(ctx)
}

// EndOutOfReach ends a removal with an *OutOfReachError when the server answers nothing for as long as
// retries last, after a signal for a second.
func (rm *Remover) EndOutOfReach(ctx, run context.Context, end func(error)) {
	const looks = 10 // during the patience
	answers, silent := rm.Client.Answers.Load(), 0
	patience := rm.Load.RetryFor()
	signalled := make(chan struct{})
	defer context.AfterFunc(run, func() {
		if system.SignalOf(run) != nil {
			close(signalled)
		}
	})()
	for silent < looks {
		// A failure shows as missing answers, or in the removal itself.
		look, cancel := context.WithTimeout(ctx, patience/looks)
		go func() { _, _ = rm.Client.Try(look, http.MethodGet, "/version", nil, "", nil, new(bytes.Buffer)) }()
		select {
		case <-look.Done():
			silent++
		case <-signalled:
			patience = max(leastPatience, signalPatience-system.SignalOf(run).Ago())
			silent, signalled = 0, nil
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		if now := rm.Client.Answers.Load(); now != answers {
			answers, silent = now, 0
		}
	}
	end(rm.outOfReach(patience))
}

// Bounds of the server's silence after a signal: in all, and at least during the removal.
const (
	signalPatience = 1200 * time.Millisecond
	leastPatience  = 500 * time.Millisecond
)

func (rm *Remover) outOfReach(after time.Duration) error {
	return &api.OutOfReachError{Server: rm.Client.Base.Host, Patience: after.Round(100 * time.Millisecond), Last: "while the run's objects were removed"}
}

func (rm *Remover) allNamespaces() []string {
	spaces, _ := rm.holdings.List()
	if rm.own != "" {
		spaces = append(spaces, rm.own)
	}
	return spaces
}

// deleteNamespaces deletes namespaces together, and waits until they are gone: their controller waits
// some seconds before each look. Without a bound on deletions the pods are gone by then.
func (rm *Remover) deleteNamespaces(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := rm.dismissNamespaces(ctx, names); err != nil {
		return err
	}
	if rm.Load.Deletions == 0 {
		// Without the right to it, the pods go with their namespaces.
		if err := rm.dismissPods(ctx); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	waiting, done := rm.actors.Wait(ctx, observe.ControllerManager, follow.NamespaceNoun(), func() int { return rm.namespaces.Left(names) })
	defer done()
	if err := rm.namespaces.AwaitGone(waiting, names); err != nil {
		return err
	}
	asked := make(map[string]bool, len(names))
	for _, name := range names {
		asked[name] = true
	}
	err := rm.confirm(ctx, "/api/v1/namespaces", func(o *metav1.PartialObjectMetadata) bool { return asked[o.Name] }, nil)
	if err == nil && !rm.namespaces.Seen() {
		err = rm.awaitEach(ctx, names)
	}
	if err != nil {
		return err
	}
	rm.holdings.DropSpaces(names...)
	return nil
}

// awaitEach waits until each namespace is gone, for a user who may get but not list them.
func (rm *Remover) awaitEach(ctx context.Context, names []string) error {
	for _, name := range names {
		for there := true; there; {
			r, err := rm.Client.Call(ctx, http.MethodGet, "/api/v1/namespaces/"+name, nil)
			there = err == nil && r.Code != http.StatusNotFound
			if err = cmp.Or(err, r.ErrBut(http.StatusNotFound)); err != nil {
				return fmt.Errorf("look whether namespace %s is gone: %w", name, err)
			}
			if there && !api.Sleep(ctx, api.LastPause) {
				return fmt.Errorf("namespace %s is still there: %w", name, context.Cause(ctx))
			}
		}
	}
	return nil
}

func (rm *Remover) dismissNamespaces(ctx context.Context, names []string) error {
	failed := make([]error, len(names))
	err := api.InParallel(ctx, len(names), removalWorkers, 0, func(ctx context.Context, i int) error {
		failed[i] = rm.deleteNamespace(ctx, names[i])
		return nil
	})
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	switch {
	case len(failed) == 0:
		return err
	case len(failed) == 1:
		return failed[0]
	}
	return fmt.Errorf("%w (and %d more)", failed[0], len(failed)-1)
}

// deleteNamespace deletes a namespace if its label says that it is this run's, by the UID that was read.
func (rm *Remover) deleteNamespace(ctx context.Context, name string) error {
	path := "/api/v1/namespaces/" + name
	r, err := rm.Client.Call(ctx, http.MethodGet, path, nil)
	if err == nil && r.Code == http.StatusNotFound {
		return nil
	}
	ns := new(metav1.PartialObjectMetadata)
	if err = cmp.Or(err, r.Err()); err == nil {
		ns, err = api.MetadataOf(r.Body)
	}
	if err != nil {
		return fmt.Errorf("look at namespace %s before deleting it: %w", name, err)
	}
	if ns.Labels[api.LabelRun] != rm.Load.RunID {
		return nil
	}
	options, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	if err != nil {
		return err
	}
	r, err = rm.Client.Do(ctx, http.MethodDelete, path, nil, "application/json", options, new(bytes.Buffer))
	// A conflict means that another namespace has the name now.
	err = cmp.Or(err, r.ErrBut(http.StatusNotFound, http.StatusConflict))
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// deletePods deletes a load of only pods, at the allowed rate, and awaits their end; controllers would
// make others' pods again.
func (rm *Remover) deletePods(ctx context.Context) error {
	if err := rm.dismissPods(ctx); err != nil {
		return err
	}
	if err := rm.awaitGone(ctx); err != nil {
		return err
	}
	var further []string
	return rm.confirm(ctx, rm.Load.In("pods"), func(o *metav1.PartialObjectMetadata) bool {
		if o.Labels[api.LabelCanary] != "" {
			return false
		}
		if o.DeletionTimestamp == nil {
			further = append(further, o.Namespace+"/"+o.Name)
		}
		return true
	}, func() error {
		names := further
		further = nil
		return rm.deleteOneByOne(ctx, names)
	})
}

// dismissPods deletes the followed pods: one by one at the rate, or by namespace, if the user may.
func (rm *Remover) dismissPods(ctx context.Context) error {
	names := rm.followed.Names()
	if rm.Load.Deletions == 0 {
		holds := make(map[string]bool)
		for _, name := range names {
			namespace, _, _ := strings.Cut(name, "/")
			holds[namespace] = true
		}
		selector := api.LabelRun + "=" + rm.Load.RunID
		if rm.Load.Namespace != "" {
			selector += ",!" + api.LabelCanary // the canary goes last
		}
		err := deletePods(ctx, rm.Client, slices.Sorted(maps.Keys(holds)), selector, rm.grace)
		if !apierrors.IsForbidden(err) {
			return err
		}
	}
	return rm.deleteOneByOne(ctx, names)
}

func (rm *Remover) deleteOneByOne(ctx context.Context, names []string) error {
	return api.InParallel(ctx, len(names), removalWorkers, rm.Load.Deletions, func(ctx context.Context, i int) error {
		if err := rm.delete(ctx, api.PodPath(names[i]), rm.grace); err != nil {
			return fmt.Errorf("delete pod %s: %w", names[i], err)
		}
		return nil
	})
}

// DeleteAged deletes an object that has aged. If that fails, it goes when the target is emptied.
func (rm *Remover) DeleteAged(ctx context.Context, name string) {
	path := api.PodPath(name)
	if rm.path != nil {
		path = rm.path(name)
	}
	// The server's trouble shows in the load's own requests.
	_, _ = rm.Client.Try(ctx, http.MethodDelete, path, rm.grace, "", nil, new(bytes.Buffer))
}

func (rm *Remover) deleteStrays(ctx context.Context) error {
	_, paths := rm.holdings.List()
	return rm.deleteAll(ctx, paths)
}

func (rm *Remover) deleteAll(ctx context.Context, paths []string) error {
	return api.InParallel(ctx, len(paths), removalWorkers, rm.Load.Deletions, func(ctx context.Context, i int) error {
		if err := rm.delete(ctx, paths[i], nil); err != nil {
			return fmt.Errorf("delete %s: %w", paths[i], err)
		}
		rm.holdings.DropStray(paths[i])
		return nil
	})
}

// delete deletes one object, through the server's passing troubles. A missing object counts as deleted.
func (rm *Remover) delete(ctx context.Context, path string, query url.Values) error {
	r, err := rm.Client.Call(ctx, http.MethodDelete, path, query)
	return cmp.Or(err, r.ErrBut(http.StatusNotFound))
}

const removalWorkers = 8 // bounds the parallel deletions

// deletePods deletes the pods with labels in namespaces, page by page.
func deletePods(ctx context.Context, c *api.Client, namespaces []string, selector string, grace url.Values) error {
	return api.InParallel(ctx, len(namespaces), removalWorkers, 0, func(ctx context.Context, i int) error {
		query := url.Values{"labelSelector": {selector}, "limit": {strconv.Itoa(api.ListPage)}}
		maps.Copy(query, grace)
		for {
			next := ""
			r, err := c.Call(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespaces[i]+"/pods", query)
			if err == nil && r.Code < 300 {
				var raw []byte
				if raw, err = api.OpenEnvelope(r.Body); err == nil {
					_, next, err = api.DecodeList(raw, func([]byte) error { return nil })
				}
			}
			err = cmp.Or(err, r.ErrBut(http.StatusNotFound))
			if err != nil {
				return fmt.Errorf("delete the pods of namespace %s: %w", namespaces[i], err)
			}
			if next == "" {
				return nil
			}
			query.Set("continue", next)
		}
	})
}
