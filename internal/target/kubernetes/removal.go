package kubernetes

import (
	"bytes"
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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
)

// remover removes what a run has made.
type remover struct {
	*shared
	followed   followed
	namespaces *namespaceSet
	holdings   *holdings
	own        string     // the run's own namespace
	grace      url.Values // of pods, see graceOn
	// path is that of an object by its name; nil is a pod's.
	path func(name string) string
}

// newRemover makes what removes what watch follows and holdings are.
func newRemover(common *shared, watch *observer, holdings *holdings) *remover {
	rm := &remover{shared: common, followed: watch.followed, namespaces: watch.namespaces, holdings: holdings, own: watch.own()}
	if watch.objects != nil {
		rm.path = watch.objects.path
	}
	return rm
}

// lies says on which nodes the pods lie.
func (rm *remover) lies(on record.Realness) { rm.grace = graceOn(on) }

// Bounds of the end of a run.
const (
	removalBound = 15 * time.Minute // how long it waits for its objects to be gone
	dismissBound = 10 * time.Second // how long asking them to go may take
)

// empty removes the load. Its namespaces stay if it makes only pods.
func (rm *remover) empty(ctx context.Context, onlyPods bool) error {
	if onlyPods {
		if err := rm.deletePods(ctx); err != nil {
			return err
		}
		return rm.deleteStrays(ctx)
	}
	if err := rm.deleteStrays(ctx); err != nil {
		return err
	}
	spaces, _ := rm.holdings.list()
	return rm.deleteNamespaces(ctx, spaces)
}

// removeAll removes everything that the run made. What it cannot see the end
// of it asks to go.
func (rm *remover) removeAll(ctx context.Context, onlyPods bool) error {
	if rm.grace == nil {
		// Nothing runs there, and nothing is measured any more: the API forgets
		// pods at once, without a second request of their nodes for each.
		rm.grace = url.Values{"gracePeriodSeconds": {"0"}}
	}
	answers := rm.client.answers.Load()
	err := rm.tryRemoveAll(ctx, onlyPods)
	if err == nil {
		return nil
	}
	if unreachable, ok := errors.AsType[*OutOfReachError](context.Cause(ctx)); ok {
		return unreachable
	}
	if rm.client.answers.Load() == answers && context.Cause(ctx) == nil {
		return rm.outOfReach()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissBound)
	defer cancel()
	return errors.Join(err, rm.deleteStrays(ctx), rm.dismissNamespaces(ctx, rm.allNamespaces()))
}

func (rm *remover) tryRemoveAll(ctx context.Context, onlyPods bool) error {
	if onlyPods && rm.load.Deletions > 0 {
		if err := rm.deletePods(ctx); err != nil {
			return err
		}
	}
	if err := rm.deleteStrays(ctx); err != nil {
		return err
	}
	if err := rm.deleteNamespaces(ctx, rm.allNamespaces()); err != nil {
		return err
	}
	if onlyPods {
		return rm.followed.awaitGone(ctx)
	}
	return nil
}

// endOutOfReach ends a removal whose server answers nothing at all for as long
// as a request is tried again, with an *OutOfReachError, until ctx ends.
func (rm *remover) endOutOfReach(ctx context.Context, end func(error)) {
	const looks = 10 // in that time
	answers, silent := rm.client.answers.Load(), 0
	for silent < looks {
		if !sleep(ctx, rm.load.patience()/looks) {
			return
		}
		// Its failure shows in that nothing is answered, or in the removal itself.
		_, _ = rm.client.call(ctx, http.MethodGet, "/version", nil)
		silent++
		if now := rm.client.answers.Load(); now != answers {
			answers, silent = now, 0
		}
	}
	end(rm.outOfReach())
}

func (rm *remover) outOfReach() error {
	return &OutOfReachError{Server: rm.client.base.Host, Patience: rm.load.patience(), Last: "while the run's objects were removed"}
}

// allNamespaces are those of the load and the run's own.
func (rm *remover) allNamespaces() []string {
	spaces, _ := rm.holdings.list()
	return append(spaces, rm.own)
}

// deleteNamespaces deletes namespaces, and waits until they are gone. All go
// at once: their controller lets some seconds pass before it looks at one, and
// as many again where it finds pods. Where deletions have no bound those are
// gone by then.
func (rm *remover) deleteNamespaces(ctx context.Context, names []string) error {
	if err := rm.dismissNamespaces(ctx, names); err != nil {
		return err
	}
	if rm.load.Deletions == 0 {
		if err := rm.dismissPods(ctx); err != nil {
			return err
		}
	}
	if err := rm.namespaces.awaitGone(ctx, names); err != nil {
		return err
	}
	rm.holdings.dropSpaces(names...)
	return nil
}

// dismissNamespaces asks for the end of namespaces: of each, whatever becomes
// of the others.
func (rm *remover) dismissNamespaces(ctx context.Context, names []string) error {
	failed := make([]error, len(names))
	err := inParallel(ctx, len(names), removalWorkers, 0, func(ctx context.Context, i int) error {
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
	return fmt.Errorf("%w (and %d other namespaces)", failed[0], len(failed)-1)
}

// deleteNamespace deletes a namespace of the load if it is there and is this
// run's: a name alone does not say whose it is. The deletion is bound to what
// was looked at, so that nothing made since under the same name goes with it.
func (rm *remover) deleteNamespace(ctx context.Context, name string) error {
	path := "/api/v1/namespaces/" + name
	var buf bytes.Buffer
	var ns corev1.Namespace
	err := retry(ctx, rm.load.patience(), func(ctx context.Context) (reply, error) {
		ns.Reset()
		r, err := rm.client.call(ctx, http.MethodGet, path, nil)
		if err != nil || r.code >= 300 {
			return r, err
		}
		raw, err := openEnvelope(r.body)
		if err != nil {
			return r, err
		}
		return r, ns.Unmarshal(raw)
	}, http.StatusNotFound)
	if err != nil {
		return fmt.Errorf("look at namespace %s before deleting it: %w", name, err)
	}
	if ns.Labels[LabelRun] != rm.load.RunID {
		return nil
	}
	options, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	if err != nil {
		return err
	}
	err = retry(ctx, rm.load.patience(), func(ctx context.Context) (reply, error) {
		return rm.client.do(ctx, http.MethodDelete, path, nil, "application/json", options, &buf)
	}, http.StatusNotFound, http.StatusConflict) // a conflict: it is another one by now
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// deletePods deletes the pods of a load that makes nothing else, at the rate
// that is allowed, and waits until they are gone. Where the load makes other
// objects too, controllers would make pods again: all of it is then left to the
// end of the namespaces.
func (rm *remover) deletePods(ctx context.Context) error {
	if err := rm.dismissPods(ctx); err != nil {
		return err
	}
	return rm.followed.awaitGone(ctx)
}

// dismissPods asks for the end of the pods that are followed: at the rate that
// is allowed one by one, and without a bound by their namespaces.
func (rm *remover) dismissPods(ctx context.Context) error {
	names := rm.followed.names()
	if rm.load.Deletions == 0 {
		holds := make(map[string]bool)
		for _, name := range names {
			namespace, _, _ := strings.Cut(name, "/")
			holds[namespace] = true
		}
		return deletePods(ctx, rm.client, slices.Sorted(maps.Keys(holds)), rm.load.RunID, rm.grace, rm.load.patience())
	}
	return inParallel(ctx, len(names), removalWorkers, rm.load.Deletions, func(ctx context.Context, i int) error {
		if err := rm.delete(ctx, podPath(names[i]), rm.grace); err != nil {
			return fmt.Errorf("delete pod %s: %w", names[i], err)
		}
		return nil
	})
}

// deleteAged asks for the end of an object that has aged. One that cannot be
// deleted now goes with all others when the target is emptied.
func (rm *remover) deleteAged(ctx context.Context, name string) {
	path := podPath(name)
	if rm.path != nil {
		path = rm.path(name)
	}
	// The error is of no matter, see above; the server's trouble shows in the
	// load's own requests.
	_, _ = rm.client.call(ctx, http.MethodDelete, path, rm.grace)
}

func podPath(pod string) string {
	namespace, name, _ := strings.Cut(pod, "/")
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// graceOn is what deletions of pods say of the time that they have to stop.
func graceOn(nodes record.Realness) url.Values {
	if nodes != record.Real {
		return nil
	}
	// Without a grace period the API forgets a pod at once, and its node is
	// still stopping it when the next step begins.
	return url.Values{"gracePeriodSeconds": {"1"}}
}

// deleteStrays deletes what no namespace of the run's takes along.
func (rm *remover) deleteStrays(ctx context.Context) error {
	_, paths := rm.holdings.list()
	return inParallel(ctx, len(paths), removalWorkers, rm.load.Deletions, func(ctx context.Context, i int) error {
		if err := rm.delete(ctx, paths[i], nil); err != nil {
			return fmt.Errorf("delete %s: %w", paths[i], err)
		}
		rm.holdings.dropStray(paths[i])
		return nil
	})
}

// delete deletes one object, through the server's passing troubles. An object
// that is not there is deleted.
func (rm *remover) delete(ctx context.Context, path string, query url.Values) error {
	return retry(ctx, rm.load.patience(), func(ctx context.Context) (reply, error) {
		return rm.client.call(ctx, http.MethodDelete, path, query)
	}, http.StatusNotFound)
}

// removalWorkers is how many deletions are under way at once.
const removalWorkers = 8

// inParallel calls work for 0 <= i < n from several goroutines, at most rate
// times a second (0 is no bound), and returns the first error.
func inParallel(ctx context.Context, n, workers int, rate float64, work func(context.Context, int) error) error {
	group, going := errgroup.WithContext(ctx) // which ends with the first failure
	group.SetLimit(workers)
	var pace <-chan time.Time
	if rate > 0 {
		ticker := time.NewTicker(max(1, time.Duration(float64(time.Second)/rate)))
		defer ticker.Stop()
		pace = ticker.C
	}
	for i := range n {
		if pace != nil && i > 0 {
			select {
			case <-pace:
			case <-going.Done():
			}
		}
		if going.Err() != nil {
			break
		}
		group.Go(func() error { return work(going, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// deletePods asks for the end of a run's pods in namespaces, page by page.
func deletePods(ctx context.Context, c *client, namespaces []string, run string, grace url.Values, patience time.Duration) error {
	return inParallel(ctx, len(namespaces), removalWorkers, 0, func(ctx context.Context, i int) error {
		query := url.Values{"labelSelector": {LabelRun + "=" + run}, "limit": {strconv.Itoa(listPage)}}
		maps.Copy(query, grace)
		for {
			next := ""
			err := retry(ctx, patience, func(ctx context.Context) (reply, error) {
				r, err := c.call(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespaces[i]+"/pods", query)
				if err != nil || r.code >= 300 {
					return r, err
				}
				raw, err := openEnvelope(r.body)
				if err != nil {
					return r, err
				}
				_, next, err = decodeList(raw, func([]byte) error { return nil })
				return r, err
			}, http.StatusNotFound)
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
