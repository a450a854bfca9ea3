package create

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// awaited are objects of a kind that a job waits for besides its pods: those that an
// entry of it makes, or those that its waitOptions select. A watch tells of them.
type awaited struct {
	kind       string
	resource   *meta.RESTMapping
	selector   string
	own        bool // they are the entry's own: as many are waited for as were made
	perSlot    int  // of the entry's own, those of one slot in its first iteration
	conditions kubeburner.Conditions
	within     func(namespace string) bool

	mu    sync.Mutex
	unmet map[string]string // by name, what each that is there lacks, "" for nothing
	asked int               // of the own ones, those that there are to be
	err   error             // an expression that fails
}

// awaitedOf are what an entry of a job waits for, by what it makes in its first
// iteration.
func (m *Maker) awaitedOf(kinds []schema.GroupVersionKind) (list []*awaited, err error) {
	o := &m.job.Objects[m.index]
	w := &o.WaitOptions
	if !o.Wait || !w.Asks() {
		return nil, nil
	}
	own := w.Kind == ""
	if !own {
		group, err := schema.ParseGroupVersion(cmp.Or(w.APIVersion, o.APIVersion, "v1"))
		if err != nil {
			return nil, m.mistake(0, "", fmt.Sprintf("waitOptions.apiVersion: %v", err))
		}
		kinds = []schema.GroupVersionKind{group.WithKind(w.Kind)}
	}
	selector := selectorOf(w.LabelSelector)
	if own {
		selector = selectorOf(map[string]string{api.LabelRun: m.ids.Run, kubeburner.LabelJob: m.job.Name, kubeburner.LabelIndex: strconv.Itoa(m.index)})
	} else if selector == "" {
		selector = api.LabelRun + "=" + m.ids.Run
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

// selectorOf is a label selector that asks for all of some labels.
func selectorOf(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// follow watches the objects until ctx ends.
func (a *awaited) follow(ctx context.Context, run *prepared.Run, within func(namespace string) bool, fail func(error)) error {
	a.mu.Lock()
	clear(a.unmet)
	a.err, a.within = nil, within
	a.mu.Unlock()
	return watch(ctx, run, a.resource, a.selector, a, func() bool { return !a.done() }, fail)
}

// watch hands what a selector selects to a handler, until ctx ends.
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
		return nil // it was ready once
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

// none says that none of the own objects was made so far.
func (a *awaited) none() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = 0
}

// ask says that so many of the own objects are about to be made, or were not.
func (a *awaited) ask(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked += n
}

// missing is how many objects are waited for, and what some of them lack.
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
	n = max(a.asked-met, 0)
	if !a.own {
		n = max(len(a.unmet), 1) - met // of those that others make there is at least one
	}
	slices.Sort(lacks)
	return n, lacks[:min(len(lacks), lacksTold)]
}

// lacksTold is of how many objects it is told what they lack.
const lacksTold = 3

func (a *awaited) failed() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *awaited) done() bool {
	if a.failed() != nil {
		return true // nothing more comes of it
	}
	n, _ := a.missing()
	return n == 0
}

// await returns once all are ready, or with the reason why some never were.
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

// settlePoll is how often it is looked whether what the news told is all.
const settlePoll = 10 * time.Millisecond

// unmetError says that what a job waits for did not come: the load is made all the
// same, and does not pass.
type unmetError struct{ what string }

func (e *unmetError) Error() string { return e.what }

// Script makes the load of a level by the jobs of a configuration as it stands, one
// after the other.
type Script struct {
	sender  *Sender
	pacing  *Pacing
	parts   []part // still to be made
	slots   []PlannedSlot
	within  func(namespace string) bool
	present *part // that is being made, nil for none
	churn   *churning
	// population has made so many objects, of which inPlace are there.
	population *Population
	inPlace    func() int
	unwatch    context.CancelFunc
}

// part is a job of a level, or an entry of one: its iterations, and of one that creates
// the slots.
type part struct {
	job, from, to int
	first, last   int // index in the slots of a raising
	slots         []PlannedSlot
	chooses       *Maker // nil for one that creates
	chosen        *chosen
	only          func(target) bool // of what is chosen; nil is all
	again         bool              // it makes again what was deleted
}

// Script is that of a level that was planned. Settled is as of Pacing, and within says
// which namespaces are the run's; inPlace is how many objects are there now.
func (s *Sender) Script(p *Population, load *Raising, settled, inPlace func() int, within func(namespace string) bool) *Script {
	x := &Script{sender: s, pacing: p.Pacing(nil, s.Clock.Now, settled), within: within, population: p, inPlace: inPlace}
	for _, of := range load.parts {
		if of.slots = load.Slots[of.first:of.last]; p.config.Jobs[of.job].Creates() {
			x.parts = append(x.parts, of)
			continue
		}
		for _, m := range p.makers[of.job] {
			of.chooses = m
			x.parts = append(x.parts, of)
		}
	}
	return x
}

// Batch is the script as the engine carries it out.
func (x *Script) Batch(units int, spread system.Spread) system.Batch {
	return system.Batch{
		Units: units, Spread: spread, More: x.more, Due: x.pacing.Due,
		Send: func(ctx context.Context, i int) record.Slot { return x.sender.Send(ctx, x.slots[i]) },
	}
}

// more ends the part that was made, and begins the next.
func (x *Script) more(ctx context.Context) (requests, units int, err error) {
	for {
		if err := x.end(ctx); err != nil {
			return 0, 0, err
		}
		if x.present, err = x.next(ctx); err != nil || x.present == nil {
			return 0, 0, err
		}
		if err := x.watch(ctx); err != nil {
			return 0, 0, err
		}
		if x.present.chooses != nil {
			if x.present.slots, err = x.present.askings(); err != nil {
				return 0, 0, err
			}
			// Nothing to be deleted is as was meant; what nothing was read of is no pass.
			if m := x.present.chooses; len(x.present.slots) == 0 && m.job.JobType != kubeburner.Delete {
				x.unmet(m.job, m.chooses.kind, &unmetError{fmt.Sprintf("its labels select no %s", m.chooses.kind)})
			}
		}
		if x.present.again {
			for _, s := range x.present.slots {
				units += s.maker.units
			}
			x.population.Units += units
		}
		if n := len(x.present.slots); n > 0 {
			x.slots = append(x.slots, x.present.slots...)
			x.pacing.slots = x.slots
			return n, units, nil
		}
	}
}

// next is the part to be made next, nil for none.
func (x *Script) next(ctx context.Context) (*part, error) {
	if x.churn != nil {
		if p, err := x.churn.next(ctx, x); p != nil || err != nil {
			return p, err
		}
		x.churn = nil
	}
	if len(x.parts) == 0 {
		return nil, nil
	}
	p := &x.parts[0]
	x.parts = x.parts[1:]
	return p, nil
}

// awaitDone waits until all objects so far are there, or never will be.
func (x *Script) awaitDone(ctx context.Context) error {
	for !x.pacing.done() {
		if !api.Sleep(ctx, settlePoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// watch begins to follow what the present part waits for, before it is made.
func (x *Script) watch(ctx context.Context) error {
	if x.present.chooses != nil { // what is chosen is there once the jobs before it are done
		if err := x.awaitDone(ctx); err != nil {
			return err
		}
	}
	ctx, x.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	if m := x.present.chooses; m != nil {
		c := &chosen{there: make(map[string]target), leaving: make(map[string]bool)}
		x.present.chosen = c
		doubt := func() bool { n, _ := c.left(); return n > 0 }
		return watch(ctx, x.sender.Run, m.chooses.resource, m.chooses.selector, c, doubt, x.sender.fail)
	}
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if x.present.again {
				for _, s := range x.present.slots {
					if s.maker == m {
						a.ask(-a.perSlot) // it was deleted
					}
				}
			} else {
				a.none()
			}
			if err := a.follow(ctx, x.sender.Run, x.within, x.sender.fail); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Script) makers() []*Maker { return x.pacing.makers[x.present.job] }

// end waits for what the present part waits for. What does not come is put on record
// as a request that failed.
func (x *Script) end(ctx context.Context) error {
	if x.present == nil {
		return nil
	}
	defer x.unwatch()
	job := &x.pacing.config.Jobs[x.present.job]
	if m := x.present.chooses; m != nil {
		chosen := x.present.chosen
		x.present = nil
		if !m.job.WaitForDeletion || m.job.JobType != kubeburner.Delete {
			return nil
		}
		err := x.awaitGone(ctx, chosen, job.MaxWaitTimeout)
		if err != nil && !x.unmet(job, m.chooses.kind, err) {
			return err
		}
		if x.churn != nil && err != nil {
			x.churn.over = true
		}
		return nil
	}
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if err := a.await(ctx, job.MaxWaitTimeout); err != nil && !x.unmet(job, a.kind, err) {
				return err
			}
		}
	}
	if job.ChurnConfig.On() && !x.present.again {
		x.churn = &churning{of: *x.present, job: job}
		if d := job.ChurnConfig.Duration; d > 0 {
			x.churn.until = x.sender.Clock.Now() + record.MicrosOf(d)
		}
	}
	x.present = nil
	return nil
}

// unmet puts on record that something did not come that a job waits for, as a request
// that failed; it reports false for another error.
func (x *Script) unmet(job *kubeburner.Job, kind string, err error) bool {
	what, is := errors.AsType[*unmetError](err)
	if !is {
		return false
	}
	now := x.sender.Clock.Now()
	x.sender.Emit(&record.Slot{
		Slot: "wait for " + kind + " of job " + job.Name, Resource: kind, Component: job.Name, Intended: now, Sent: now, Replied: now,
		Outcome: record.SlotFailed, Error: fmt.Sprintf("job %s: %v", job.Name, what),
	})
	return true
}

// awaitGone waits until what was asked to go is gone, with what others made of it.
func (x *Script) awaitGone(ctx context.Context, c *chosen, patience time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, name := c.left()
		if more := x.inPlace() - (x.pacing.before + x.pacing.asked - x.sender.holdings.Released()); n == 0 && more > 0 {
			n, name = more, "pods"
		}
		switch {
		case n == 0:
			return nil
		case api.Sleep(bound, settlePoll):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return &unmetError{fmt.Sprintf("%s still there %v after they were deleted, such as %s", record.Noun{One: "object is", Many: "objects are"}.Count(n), patience, name)}
		}
	}
}
