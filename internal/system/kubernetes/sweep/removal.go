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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/change"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/text/flock"
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

// Leftover holds what a run has left in a cluster.
type Leftover struct {
	Run        string   `json:"run"`
	Namespaces []string `json:"namespaces"`
	Others     []string `json:"others"` // has the paths of objects outside of those namespaces
	// Nodes lists the nodes that it has chosen to drain, and may have cordoned.
	Nodes []string `json:"nodes,omitempty"`
	// Pools lists those with its configuration: removing that reboots their nodes.
	Pools   []string `json:"pools,omitempty"`
	Changed []string `json:"changed"` // has the paths of objects of others that it has changed
	Alive   bool     `json:"alive"`   // says that the run may still go on, by a recent sign of life
	// Here says that the run is this user's on this machine, so that Alive is certain.
	Here     bool      `json:"here"`
	LastSign time.Time `json:"lastSign"` // time of its last sign of life; zero if unknown
}

// DeadFrom returns the time from which a run without further signs of life counts as dead.
func (l *Leftover) DeadFrom() time.Time { return l.LastSign.Add(AliveFor) }

// What lists the leftovers in a line.
func (l *Leftover) What() string {
	all := slices.Concat(l.Namespaces, l.Others)
	for _, path := range l.Changed {
		all = append(all, "the settings changed in "+path)
	}
	for _, pool := range l.Pools {
		all = append(all, "the configuration of pool "+pool+" (its removal reboots the nodes)")
	}
	for _, node := range l.Nodes {
		all = append(all, "the cordon of node "+node)
	}
	return strings.Join(all, ", ")
}

// AliveFor is the time after its last sign of life for which a run counts as alive.
const AliveFor = 3 * follow.AliveInterval

// Leftovers finds objects with this program's labels, by run: all, or with quick only namespaces, which
// hold nearly everything; with a namespace, those in it, and namespaces that the user may list.
func Leftovers(ctx context.Context, c *api.Client, host system.Host, quick bool, namespace string) ([]Leftover, error) {
	byRun := make(map[string]*Leftover)
	of := func(run string) *Leftover {
		l, ok := byRun[run]
		if !ok {
			l = &Leftover{Run: run, Namespaces: []string{}, Others: []string{}, Changed: []string{}}
			byRun[run] = l
		}
		return l
	}
	ours := metav1.ListOptions{LabelSelector: api.LabelManagedBy + "=" + api.ManagedBy + "," + api.LabelRun}
	namespaces, err := c.Typed.CoreV1().Namespaces().List(ctx, ours)
	if api.Refused(err) && namespace != "" {
		namespaces, err = new(corev1.NamespaceList), nil
	}
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", c.Unreachable(err))
	}
	taken := make(map[string]bool)
	for _, ns := range namespaces.Items {
		l := of(ns.Labels[api.LabelRun])
		l.Namespaces = append(l.Namespaces, ns.Name)
		taken[ns.Name] = true
		var changed []string
		if json.Unmarshal([]byte(ns.Annotations[api.AnnotationChanged]), &changed) == nil {
			l.Changed = append(l.Changed, changed...)
		}
		l.sign(&ns.ObjectMeta, host)
	}
	err = drain.Drained(ctx, c, func(run, node string) { l := of(run); l.Nodes = append(l.Nodes, node) })
	if err == nil {
		err = drain.RolledOut(ctx, c, func(run, pool string) { l := of(run); l.Pools = append(l.Pools, pool) })
	}
	if err != nil {
		return nil, err
	}
	if !quick || namespace != "" {
		err := strays(ctx, c, namespace, ours.LabelSelector, func(o *metav1.PartialObjectMetadata, at string) {
			if !taken[o.Namespace] && !strings.HasPrefix(at, drain.ConfigsPath+"/") {
				l := of(o.Labels[api.LabelRun])
				l.Others = append(l.Others, at)
				l.sign(&o.ObjectMeta, host)
			}
		})
		if err == nil && namespace == "" {
			err = strays(ctx, c, "", api.LabelChangedBy, func(o *metav1.PartialObjectMetadata, at string) {
				if l := of(o.Labels[api.LabelChangedBy]); !slices.Contains(l.Changed, at) {
					l.Changed = append(l.Changed, at)
				}
			})
		}
		if err != nil {
			return nil, err
		}
	}
	list := make([]Leftover, 0, len(byRun))
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		l := byRun[run]
		switch runState(host, run) {
		case runAlive:
			l.Here, l.Alive = true, true
		case runDead:
			l.Here, l.Alive = true, false
		}
		list = append(list, *l)
	}
	return list, nil
}

// sign reads a sign of life of a run's own namespace, or of its canary in an existing one.
func (l *Leftover) sign(o *metav1.ObjectMeta, host system.Host) {
	if sign, err := time.Parse(time.RFC3339, o.Annotations[api.AnnotationAlive]); err == nil && o.DeletionTimestamp == nil {
		l.LastSign = sign
		l.Alive = host.Now().Sub(sign) < AliveFor
	}
}

// strays finds the labelled objects of every kind but namespaces, in a namespace or with "" in all.
func strays(ctx context.Context, c *api.Client, namespace, selector string, found func(o *metav1.PartialObjectMetadata, at string)) error {
	_, lists, err := c.Typed.Discovery().ServerGroupsAndResources()
	if err != nil && lists == nil {
		return fmt.Errorf("discover the API: %w", c.Unreachable(err))
	}
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || r.Name == "namespaces" || namespace != "" && !r.Namespaced || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") {
				continue
			}
			path := "/api/" + list.GroupVersion
			if strings.Contains(list.GroupVersion, "/") {
				path = "/apis/" + list.GroupVersion
			}
			if err := straysOf(ctx, c, kindPatience, path, namespace, r, selector, found); err != nil {
				return fmt.Errorf("list %s: %w", r.Name, err)
			}
		}
	}
	return nil
}

const kindPatience = 15 * time.Second // bounds the wait for a kind that is new to the server

// straysOf lists the metadata of one resource.
func straysOf(ctx context.Context, c *api.Client, patience time.Duration, path, namespace string, r metav1.APIResource, selector string, found func(o *metav1.PartialObjectMetadata, at string)) error {
	query := url.Values{"labelSelector": {selector}, "limit": {"500"}}
	var buf bytes.Buffer
	at := path + "/" + r.Name
	if namespace != "" {
		at = path + "/namespaces/" + namespace + "/" + r.Name
	}
	for {
		notOurs := []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}
		request, err := c.Request(ctx, http.MethodGet, at, query, "", nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", api.ProtobufType+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
		// A new kind is not ready for some seconds.
		answer, err := c.SendFor(patience, request, &buf, 0)
		if err = cmp.Or(err, answer.ErrBut(notOurs...)); err != nil {
			return c.Unreachable(err)
		}
		if slices.Contains(notOurs, answer.Code) {
			return nil // a user who may not see them has not made any
		}
		raw, err := api.OpenEnvelope(answer.Body)
		if err != nil {
			return err
		}
		_, next, err := api.DecodeList(raw, func(item []byte) error {
			var o metav1.PartialObjectMetadata
			if err := o.Unmarshal(item); err != nil {
				return err
			}
			at := path + "/" + r.Name + "/" + o.Name
			if r.Namespaced {
				at = path + "/namespaces/" + o.Namespace + "/" + r.Name + "/" + o.Name
			}
			found(&o, at)
			return nil
		})
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

// Clean puts back a run's changes, removes its leftovers and waits until they are gone.
func Clean(ctx context.Context, c *api.Client, host system.Host, l Leftover) error {
	if len(l.Pools) > 0 {
		host.Log("note: the nodes of %s are rebooted, since their configuration is taken away; waiting for that", strings.Join(l.Pools, ", "))
	}
	if err := drain.RollBack(ctx, c, l.Run, l.Pools, func([]string) {}, func(string) {}); err != nil {
		return err
	}
	if err := drain.ReleaseNodes(ctx, c, l.Run, l.Nodes); err != nil {
		return err
	}
	for _, path := range l.Changed {
		_, others, err := change.RewriteObject(ctx, c, path, l.Run, nil, false)
		if err != nil {
			return fmt.Errorf("put back the settings changed in %s: %w", path, err)
		}
		for _, text := range others {
			host.Log("note: %s: %s", path, text)
		}
	}
	// Pods go last: their controllers would make them again.
	isPod := func(path string) bool { return strings.HasPrefix(path, "/api/v1/") && strings.Contains(path, "/pods/") }
	slices.SortStableFunc(l.Others, func(a, b string) int { return cmp.Compare(fmt.Sprint(isPod(a)), fmt.Sprint(isPod(b))) })
	for _, path := range l.Others {
		r, err := c.Call(ctx, http.MethodDelete, path, nil)
		if err = cmp.Or(err, r.ErrBut(http.StatusNotFound)); err != nil {
			return fmt.Errorf("delete %s: %w", path, c.Unreachable(err))
		}
	}
	err := api.InParallel(ctx, len(l.Namespaces), removalWorkers, 0, func(ctx context.Context, i int) error {
		err := c.Typed.CoreV1().Namespaces().Delete(ctx, l.Namespaces[i], metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete namespace %s: %w", l.Namespaces[i], c.Unreachable(err))
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The namespace controller would do this later, and wait longer. Without the right, the user has to wait.
	err = deletePods(ctx, c, l.Namespaces, api.LabelRun+"="+l.Run, nil)
	if err != nil && !apierrors.IsForbidden(err) {
		return c.Unreachable(err)
	}
	for _, path := range l.Others {
		if err := awaitGone(ctx, c, host, path); err != nil {
			return err
		}
	}
	if len(l.Namespaces) > 0 {
		if err := awaitNamespacesGone(ctx, c, host, l.Run); err != nil {
			return err
		}
	}
	forgetRun(host, l.Run)
	return nil
}

// awaitGone waits until a deleted object is gone, unless its finalizers hold it.
func awaitGone(ctx context.Context, c *api.Client, host system.Host, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RemovalBound, fmt.Errorf("not gone after %v", RemovalBound))
	defer cancel()
	begin := host.Now()
	var h holdups
	for {
		r, err := c.Call(ctx, http.MethodGet, path, nil)
		switch {
		case err != nil:
			return fmt.Errorf("wait for %s to be gone: %w", path, c.Unreachable(err))
		case r.Code == http.StatusNotFound || r.Code == http.StatusForbidden:
			return nil
		}
		var held []heldUp
		if o, err := api.MetadataOf(r.Body); err == nil {
			if one, is := objectHeldUp(o, path); is {
				held = append(held, one)
			}
		}
		if err := h.look(ctx, c, host.Now().Sub(begin), 1, held, host.Log); err != nil {
			return fmt.Errorf("still there: %w", err)
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", path, context.Cause(ctx))
		}
	}
}

// unlooked bounds the time without progress of any namespace. A controller that lost the server retries
// after at most a minute: it has backedOff so long while it renews its lease.
const (
	unlooked  = 30 * time.Second
	backedOff = 75 * time.Second
)

// renewed returns the last renewal of the controller manager's lease, "" where unknown.
func renewed(ctx context.Context, c *api.Client) string {
	lease, err := c.Typed.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, "kube-controller-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		return ""
	}
	return lease.Spec.RenewTime.String()
}

// awaitNamespacesGone waits until a run has no namespaces, or says that their controller does not act.
func awaitNamespacesGone(ctx context.Context, c *api.Client, host system.Host, run string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RemovalBound, fmt.Errorf("not gone after %v", RemovalBound))
	defer cancel()
	selector := metav1.ListOptions{LabelSelector: api.LabelManagedBy + "=" + api.ManagedBy + "," + api.LabelRun + "=" + run}
	left, since := 0, host.Now()
	bound, before, alive := unlooked, renewed(ctx, c), ""
	begin := since
	var h holdups
	for {
		list, err := c.Typed.CoreV1().Namespaces().List(ctx, selector)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("wait for the namespaces to be gone: %w", context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("list namespaces: %w", c.Unreachable(err))
		case len(list.Items) == 0:
			return nil
		}
		noun, now := follow.NamespaceNoun().Count(len(list.Items)), host.Now()
		var held []heldUp
		for i := range list.Items {
			if one, is := namespaceHeldUp(&list.Items[i]); is {
				held = append(held, one)
			}
		}
		if err := h.look(ctx, c, now.Sub(begin), len(list.Items), held, host.Log); err != nil {
			return fmt.Errorf("still there: %s: %w", noun, err)
		}
		// The controller's first look leaves conditions on namespaces that are not empty.
		looked := slices.ContainsFunc(list.Items, func(ns corev1.Namespace) bool { return len(ns.Status.Conditions) > 0 })
		if looked || len(list.Items) != left {
			left, since = len(list.Items), now
		}
		waited := now.Sub(since)
		if waited >= bound && bound == unlooked && before != "" {
			if is := renewed(ctx, c); is != "" && is != before {
				bound, alive = backedOff, ", though its lease is renewed"
			}
		}
		if waited >= bound {
			return fmt.Errorf("still there: %s: the controller manager, which removes namespaces, has not acted on any for %.0f s%s", noun, waited.Seconds(), alive)
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", noun, context.Cause(ctx))
		}
	}
}

// runsDir, below the state directory, has a file of each run of this user here, locked while it lives:
// the kernel unlocks it when the process ends.
const runsDir = "runs"

// Hold shows other commands of this user that a run lives, until end is called with whether nothing is left.
func Hold(host system.Host, run string) (end func(clean bool)) {
	nothing := func(bool) {}
	dir, err := host.StateDir()
	if err != nil {
		return nothing
	}
	dir = filepath.Join(dir, runsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nothing
	}
	forgetOld(dir, host.Now())
	f, err := os.OpenFile(filepath.Join(dir, run), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nothing
	}
	if err := flock.Exclusive(f); err != nil {
		f.Close()
		return nothing // the file system has no locks
	}
	return func(clean bool) {
		if clean {
			_ = os.Remove(f.Name()) // a file that stays says that the run is dead, which is true
		}
		f.Close()
	}
}

// runHere is the state of a run of this user on this machine.
type runHere int8

const (
	runElsewhere runHere = iota // unknown: perhaps another user's or machine's
	runAlive
	runDead
)

func runState(host system.Host, run string) runHere {
	if host.StateDir == nil || run == "" || strings.ContainsRune(run, filepath.Separator) {
		return runElsewhere
	}
	dir, err := host.StateDir()
	if err != nil {
		return runElsewhere
	}
	return lockState(filepath.Join(dir, runsDir, run))
}

func lockState(path string) runHere {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return runElsewhere
	}
	defer f.Close()
	err = flock.Shared(f)
	switch {
	case errors.Is(err, flock.ErrHeld):
		return runAlive
	case err != nil:
		return runElsewhere
	}
	return runDead
}

func forgetRun(host system.Host, run string) {
	if runState(host, run) != runDead {
		return
	}
	if dir, err := host.StateDir(); err == nil {
		_ = os.Remove(filepath.Join(dir, runsDir, run))
	}
}

// forgetOld removes the files of runs that died long ago: their signs of life are enough.
func forgetOld(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err == nil && now.Sub(info.ModTime()) > forgetAfter && lockState(path) == runDead {
			_ = os.Remove(path) // the next run tries again
		}
	}
}

const forgetAfter = 30 * 24 * time.Hour
