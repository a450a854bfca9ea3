package create

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// awaited watches objects of one kind that a job waits for besides its pods: an entry's, or selected ones.
type awaited struct {
	kind       string
	resource   *meta.RESTMapping
	selector   string
	own        bool // the entry makes them, and all of them are awaited
	perSlot    int  // own objects of one slot in the first iteration
	conditions kubeburner.Conditions
	within     func(namespace string) bool
	asked      atomic.Int64 // own objects that are expected

	mu    sync.Mutex
	unmet map[string]string // by name, the condition that an existing object lacks, "" for none
	err   error             // a condition that cannot be evaluated
}

// awaitedOf returns what an entry of a job waits for, by the kinds that it makes in its first iteration.
func (m *Maker) awaitedOf(kinds []schema.GroupVersionKind) (list []*awaited, err error) {
	o := &m.job.Objects[m.index]
	w := &o.WaitOptions
	if !o.Wait || !w.Asks() && !m.job.WaitWhenFinished && !m.job.PodWait {
		return nil, nil
	}
	own := w.Kind == "" && len(w.LabelSelector) == 0 && m.chooses == nil
	if w.Kind == "" {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool { return !w.Awaits(gvk.Kind) })
	} else if i := slices.IndexFunc(kinds, func(gvk schema.GroupVersionKind) bool { return gvk.Kind == w.Kind }); i >= 0 && w.APIVersion == "" {
		kinds = kinds[i : i+1]
	} else {
		group, err := schema.ParseGroupVersion(cmp.Or(w.APIVersion, o.APIVersion, "v1"))
		if err != nil {
			return nil, m.mistake(0, "", fmt.Sprintf("waitOptions.apiVersion: %v", err))
		}
		kinds = []schema.GroupVersionKind{group.WithKind(w.Kind)}
	}
	selector := labels.Set(w.LabelSelector).String()
	if own {
		selector = m.selector()
	} else if selector == "" || w.Kind == "" {
		selector = strings.Trim(selector+","+kubeburner.LabelRunID+"="+m.ids.Run, ",") // the canary does not have it
	}
	for _, gvk := range kinds {
		if i := slices.IndexFunc(list, func(a *awaited) bool { return a.kind == gvk.Kind }); i >= 0 {
			list[i].perSlot++
			continue
		}
		mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, m.mistake(0, "", fmt.Sprintf("waitOptions: the cluster knows no kind %s in %s", gvk.Kind, gvk.GroupVersion()))
		}
		conditions, err := w.Conditions(gvk.Kind)
		if err != nil {
			return nil, m.mistake(0, "", fmt.Sprintf("waitOptions: %v", err))
		}
		list = append(list, &awaited{kind: gvk.Kind, resource: mapping, selector: selector, own: own, perSlot: 1, conditions: conditions, unmet: make(map[string]string)})
	}
	return list, nil
}

func (a *awaited) follow(ctx context.Context, run *prepared.Run, within func(namespace string) bool, fail func(error)) error {
	a.mu.Lock()
	clear(a.unmet)
	a.err, a.within = nil, within
	a.mu.Unlock()
	return watch(ctx, run, a.resource, a.selector, a, func() bool { return !a.done() }, fail)
}

// watch passes the selected objects to a handler, until ctx ends.
func watch(ctx context.Context, run *prepared.Run, resource *meta.RESTMapping, selector string, handler api.Handler, doubt func() bool, fail func(error)) error {
	c := choice{resource: resource}
	w := &api.Watcher{
		Client: run.Client, Clock: run.Clock, Emit: run.Emit, Encoding: api.JSONEncoding(), Handler: handler,
		Name: resource.Resource.Resource, Path: c.path(run), Query: url.Values{"labelSelector": {selector}}, Care: api.Care{Doubt: doubt},
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	go func() {
		if err := w.Run(ctx); err != nil {
			fail(err)
		}
	}()
	go w.Guard(ctx)
	return nil
}

// Changed implements api.Handler.
func (a *awaited) Changed(_ record.Micros, kind string, object []byte) error {
	parts := gjson.GetManyBytes(object, "metadata.namespace", "metadata.name", "status")
	a.mu.Lock()
	defer a.mu.Unlock()
	name := api.ObjectName(parts[0].Str, parts[1].Str)
	if kind == api.EventDeleted || !a.own && parts[0].Str != "" && !a.within(parts[0].Str) {
		delete(a.unmet, name)
		return nil
	}
	if was, known := a.unmet[name]; known && was == "" {
		return nil
	}
	var status any
	if parts[2].Exists() {
		if err := json.Unmarshal([]byte(parts[2].Raw), &status); err != nil {
			return fmt.Errorf("decode the status of %s %s: %w", a.kind, name, err)
		}
	}
	unmet, err := a.conditions.Unmet(context.Background(), status)
	if err != nil && a.err == nil {
		a.err, unmet = fmt.Errorf("%s %s: %w", a.kind, name, err), err.Error()
	}
	a.unmet[name] = unmet
	return nil
}

// Missing implements api.Handler.
func (a *awaited) Missing(_ record.Micros, gone []api.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range gone {
		delete(a.unmet, api.ObjectName(o.Namespace, o.Name))
	}
}

// expect notes that the run made an object, which the watch may not have reported yet.
func (a *awaited) expect(kind, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.unmet[name]; a.kind == kind && !known {
		a.unmet[name] = "the watch has not reported it"
	}
}

// missing counts the awaited objects that are not ready, and says what the first ones lack.
func (a *awaited) missing() (n int, lacks []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	met := 0
	for name, unmet := range a.unmet {
		if unmet == "" {
			met++
		} else {
			lacks = append(lacks, name+": "+unmet)
		}
	}
	n = max(int(a.asked.Load())-met, 0)
	if !a.own {
		n = max(len(a.unmet), 1) - met // others make at least one
	}
	slices.Sort(lacks)
	return n, lacks[:min(len(lacks), 3)]
}

func (a *awaited) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *awaited) done() bool {
	if a.failed() != nil {
		return true
	}
	n, _ := a.missing()
	return n == 0
}

// await returns once all are ready, or with what is missing after the patience.
func (a *awaited) await(ctx context.Context, patience time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !a.done() {
		if api.Sleep(bound, settlePoll) {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, lacks := a.missing()
		if len(lacks) == 0 {
			lacks = []string{"there is none"}
		}
		return &unmetError{fmt.Sprintf("%s of %s not ready after %v: %s", record.Noun{One: "object", Many: "objects"}.Count(n), a.kind, patience, strings.Join(lacks, "; "))}
	}
	if err := a.failed(); err != nil {
		return &unmetError{err.Error()}
	}
	return nil
}

const settlePoll = 10 * time.Millisecond // time between looks at what the watches have brought

// unmetError says that an awaited object did not come: the load is made anyway, and does not pass.
type unmetError struct{ what string }

func (e *unmetError) Error() string { return e.what }
