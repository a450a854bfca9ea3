package ingress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

const (
	awaitBound   = 2 * time.Minute // for pods and routes to be there
	awaitPoll    = 250 * time.Millisecond
	lead         = 500 * time.Millisecond // from an order to the moment that all clients begin at
	mostLate     = 100 * time.Millisecond // after that moment
	askBound     = 5 * time.Second        // for one request before the load
	removalBound = 3 * time.Minute
	silentBound  = 15 * time.Second // from a client's first missing answer until its pod is removed, or its job made again
)

// instance loads the ways to back ends of a run's own namespace.
type instance struct {
	*session
	local.Rig[*site]
	namespace string
	show      func(what string) // that is waited for, before the load
	opened    bool              // the namespace may be there
	gone      bool              // nothing is left
	uid       types.UID         // of the namespace
	beside    []string          // paths of what goes with the namespace
	end       context.CancelFunc
	signs     sync.WaitGroup

	fleet  *clients.Fleet
	links  []*link // to the clients, by the index of their job
	wanted int     // clients
	made   int     // of the job
	jobs   int     // that were made again

	classes  map[string]string // controller of each ingress class of the cluster, nil before they are read
	standard string            // default class, "" for none
	brings   bool              // a lab without any class gets controllers of the run's own
	owned    struct {
		sync.Mutex
		sites map[string]string // names, by the UIDs of the pods of their controllers
	}
}

// Target implements system.Session.
func (s *session) Target(ctx context.Context, rec system.Recorder) (system.Instance, error) {
	i := &instance{session: s, namespace: "plimsoll-" + s.Run, wanted: s.arms[""].least, show: func(string) {}}
	i.Rig = local.Rig[*site]{Rec: rec, Seed: s.Plan.Seed, Arms: make(map[string]*site), Start: i.start}
	i.fleet = &clients.Fleet{Now: rec.Clock.Now, Late: mostLate}
	i.owned.sites = make(map[string]string)
	s.Components(i.siteOfPod)
	if s.held == nil {
		s.held = sweep.Hold(s.Host, s.Run)
	}
	err := i.setUp(ctx)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalBound)
		defer cancel()
		if removal := i.Close(ctx); removal != nil {
			err = errors.Join(err, &system.LeftError{Err: removal, Left: 1})
		}
		return nil, err
	}
	s.instance = i
	return i, nil
}

func (i *instance) setUp(ctx context.Context) error {
	show, end := i.session.Progress()
	defer end()
	i.show = show
	defer func() { i.show = func(string) {} }() // the run shows its own
	if err := i.makeNamespace(ctx); err != nil {
		return err
	}
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.end = cancel
	i.signs.Go(func() { i.live(alive) })
	if v := i.arms[""].io; v != nil {
		if err := i.findClass(ctx, v); err != nil {
			return err
		}
	}
	// Before the back ends, which are placed by the clients.
	i.made = i.wanted
	if err := i.makeClients(ctx); err != nil {
		return err
	}
	for n, arm := range slices.Sorted(maps.Keys(i.arms)) {
		if arm == "" && len(i.arms) > 1 {
			continue // only its arms are loaded
		}
		site, err := i.makeSite(ctx, fmt.Sprintf("%s-%d", partBackEnd, n), i.arms[arm])
		if err != nil {
			return err
		}
		i.Arms[arm] = site
	}
	if err := i.reach(ctx); err != nil {
		return err
	}
	for _, arm := range slices.Sorted(maps.Keys(i.Arms)) {
		s := i.Arms[arm]
		if s.io != nil {
			continue
		}
		for _, shard := range append([]*site{s}, s.further...) {
			if err := i.program(ctx, shard); err != nil {
				return err
			}
			s.programmed = max(s.programmed, shard.programmed)
		}
		i.findPods(s)
	}
	i.meter(alive)
	return nil
}

// live shows that the run lives, by an annotation on its namespace.
func (i *instance) live(ctx context.Context) {
	for api.Sleep(ctx, follow.AliveInterval/2) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationAlive, i.Now().UTC().Format(time.RFC3339))
		// The next sign may come through; without any, the run counts as dead for others.
		_, _ = i.Client().Typed.CoreV1().Namespaces().Patch(ctx, i.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

// await calls ask until it reports that the thing is there. The parameter what names the thing; ask returns why
// it is not there yet.
func (i *instance) await(ctx context.Context, what string, bound time.Duration, ask func() (why string, there bool, err error)) error {
	i.show("waiting for " + what)
	for until := i.Now().Add(bound); ; {
		why, there, err := ask()
		switch {
		case err != nil && (api.Refused(err) || apierrors.IsNotFound(err)):
			return fmt.Errorf("wait for %s: %w", what, i.Client().Unreachable(err))
		case there:
			return nil
		case err != nil && i.Now().After(until):
			return fmt.Errorf("wait for %s: %w", what, i.Client().Unreachable(err))
		case i.Now().After(until) || hopeless(why):
			return &system.UnableError{Err: fmt.Errorf("wait for %s: %s", what, cmp.Or(why, fmt.Sprintf("not within %v", bound))), Hint: remedy(why)}
		}
		if !api.Sleep(ctx, awaitPoll) {
			return context.Cause(ctx)
		}
	}
}

// hopeless reports whether waiting for longer does not help.
func hopeless(why string) bool {
	return strings.Contains(why, "ImagePull") || strings.Contains(why, "InvalidImageName") || strings.Contains(why, "CreateContainerError") || strings.Contains(why, "violates PodSecurity")
}

func remedy(why string) string {
	if strings.Contains(why, "Image") {
		return "plimsoll image push REGISTRY/PATH, then the same with --images REGISTRY/PATH; or name an image that nodes can pull: --set image=REF"
	}
	return ""
}

// waiting says why a pod of a part is not ready, "" where all are.
func (i *instance) waiting(ctx context.Context, part string) string {
	list, err := i.Client().Typed.CoreV1().Pods(i.namespace).List(ctx, metav1.ListOptions{LabelSelector: labelPart + "=" + part})
	if err != nil {
		return err.Error()
	}
	for _, pod := range list.Items {
		if why := fateOf(&pod); why != "" {
			return why
		}
	}
	return ""
}

// program waits for the first right answer to every client, and measures how long that takes.
func (i *instance) program(ctx context.Context, s *site) error {
	began := i.Rec.Clock.Now()
	order := i.asking(s, markOwn)
	order.Schedule.Timeout = askBound
	bound := awaitBound
	if s.via == viaURL {
		bound = askBound // nothing is being made
	}
	for _, c := range i.fleet.Clients {
		err := i.await(ctx, fmt.Sprintf("the first right answer of %s to %s", s.way(), c.Name), bound, func() (string, bool, error) {
			failed, err := c.Ask(ctx, order)
			if err != nil {
				return err.Error(), false, nil
			}
			return "the request failed: " + failed, failed == "", nil
		})
		if err != nil {
			return i.blocked(ctx, err)
		}
	}
	s.programmed = (i.Rec.Clock.Now() - began).Duration()
	return nil
}

// blocked adds the network policies of the run's namespace to an error: they may be why requests fail.
func (i *instance) blocked(ctx context.Context, err error) error {
	unable, is := errors.AsType[*system.UnableError](err)
	list, listErr := i.Client().Typed.NetworkingV1().NetworkPolicies(i.namespace).List(ctx, metav1.ListOptions{})
	if !is || listErr != nil || len(list.Items) == 0 {
		return err
	}
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return &system.UnableError{
		Err:  fmt.Errorf("%w. Network policies apply in namespace %s: %s", unable.Err, i.namespace, strings.Join(names, ", ")),
		Hint: cmp.Or(unable.Hint, "allow what the run needs there: clients to the back ends or the controller, and the controller to the back ends"),
	}
}

// Describe implements system.Target.
func (i *instance) Describe(ctx context.Context) (record.Environment, error) {
	version, err := i.Version(ctx)
	if err != nil {
		return record.Environment{}, err
	}
	env := record.Environment{
		Start: i.Rec.Clock.Start(), Target: i.Naming(), Elsewhere: i.Lab() == nil,
		Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Real, Containers: record.Real, Guests: record.None, Notes: []string{
			"pods of the cluster sent the requests; only the answers were observed",
		}},
		Places: &record.Places{Place: clientNoun(), Facts: clientFacts()},
	}
	zones := make(map[string]string)
	var found network
	if nodes, err := i.Client().Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil { // without the right they are unknown
		found = networkOf(nodes.Items)
		for _, n := range nodes.Items {
			zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
		}
	}
	if one := i.arms[""]; one.io != nil {
		env.Fidelity.Notes = []string{"pods of the cluster did the IO by fio, each on a claim of its own"}
		env.Facts = claimFacts(version, one.io)
	} else {
		found.mtu = i.mtu(ctx)
		env.Facts = facts(version, one, slices.Collect(maps.Values(i.Arms)), found)
	}
	for _, l := range i.links {
		env.Places.Add(l.client.Name, record.Real, l.node, zones[l.node], i.arms[""].cpu)
	}
	return env, nil
}

// step is the load of one step.
type step struct {
	*instance
	site  *site
	order clients.Order // without its schedule
	times times
	bytes atomic.Int64  // of right answers
	from  record.Micros // of the last reading of the clients
	was   map[string]clients.Use
}

// Raise implements system.Target.
func (i *instance) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	b, err := i.Rig.Raise(ctx, level)
	b.Lead = lead
	if i.arms[""].io != nil {
		b.Lead = fioLead
	}
	return b, err
}

// start makes the load of a step: as many clients as are wanted, whose clocks are agreed on.
func (i *instance) start(ctx context.Context, one *site, level *system.Level) (local.Load, error) {
	all := i.wanted
	for _, l := range i.links {
		if l.abandoned {
			all++
		}
	}
	if all > i.made {
		i.made = all
		i.Rec.Emit(&record.Note{Text: fmt.Sprintf("clients were the limit: %s from now on", clientNoun().Count(i.wanted))})
		patch := fmt.Appendf(nil, `{"spec":{"completions":%d,"parallelism":%[1]d}}`, i.made)
		if _, err := i.Client().Typed.BatchV1().Jobs(i.namespace).Patch(ctx, i.job(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, fmt.Errorf("add clients: %w", i.Client().Unreachable(err))
		}
	}
	if err := i.reach(ctx); err != nil && !i.without(ctx, err) {
		return nil, cut(err)
	}
	if one.moved { // by the event of an earlier step
		err := i.turn(ctx, one, false)
		if err == nil {
			err = i.program(ctx, one)
		}
		if err != nil {
			return nil, cut(err)
		}
	}
	var names []string
	for _, c := range i.fleet.Clients {
		names = append(names, c.Name)
	}
	noun := clientNoun()
	i.Rec.Emit(&record.Place{Set: names, Noun: &noun, Meant: true})
	s := &step{instance: i, site: one, was: make(map[string]clients.Use)}
	s.order = clients.Order{Server: one.server, Trust: one.trust, Plan: one.plan(i.bound(&one.settings)), Seed: i.Seed}
	if one.io != nil {
		var err error
		if s.order, err = i.prepareIO(ctx, one, level.Value); err != nil {
			return nil, cut(err)
		}
	}
	return s, nil
}

// Stream implements local.Load.
func (s *step) Stream(ctx context.Context, schedule streams.Schedule) error {
	order := s.order
	order.Schedule = schedule
	began, due, answered := s.Rec.Clock.Now(), 0, 0
	eventful, stop := context.WithCancel(ctx)
	defer stop()
	event := make(chan error, 1)
	go func() {
		event <- local.Midway(eventful, s.Rec, schedule, s.site.event, sourceChange, func() (map[string]float64, error) { return s.makeEvent(eventful) })
	}()
	var untold error
	var lost []string
	var looks sync.WaitGroup
	var looking sync.Mutex
	err := s.fleet.Stream(ctx, order, func(w *record.Window) {
		s.bytes.Add(w.AnsweredBytes)
		if !w.WarmUp {
			due, answered = due+w.Intended, answered+w.Answered
			untold = cmp.Or(untold, s.times.tell(w))
		}
		s.Rec.Emit(w)
	}, func(client, why string) {
		s.Rec.Emit(&record.Place{Place: client, State: record.PlaceGone, What: "was lost: " + why})
		lost = append(lost, client)
		looks.Go(func() { // for the fate of its pod, which may soon be gone
			looking.Lock()
			defer looking.Unlock()
			soon, cancel := context.WithTimeout(ctx, askBound)
			defer cancel()
			_, _ = s.look(soon)
		})
	})
	looks.Wait()
	for _, client := range lost { // it counts against this step alone
		s.Rec.Emit(&record.Place{Place: client, State: record.PlaceThere, What: "is to come back", Meant: true})
	}
	if err != nil {
		stop()
	}
	err = errors.Join(err, untold, <-event)
	for _, r := range s.fleet.Recorded() {
		s.Rec.Emit(&r)
	}
	if s.site.io != nil {
		s.tellIO()
	}
	seconds := (s.Rec.Clock.Now() - began).Seconds()
	for _, u := range s.fleet.Uses() {
		if u.Wanted > mostDemand*seconds*share(u) || u.Throttled > (1-mostDemand)*seconds {
			s.wanted = min(more(len(s.fleet.Clients), due, answered), s.arms[""].most)
		}
	}
	return err
}

// more returns how many clients to try where so many were the limit: twice as many as would have answered
// all that was due, since the search makes a level twice at most.
func more(clients, due, answered int) int {
	if answered < 1 || answered > due {
		return 2 * clients
	}
	return int(math.Ceil(2 * float64(clients) * float64(due) / float64(answered)))
}

// share returns how much of a processor a client can use: its thread is one.
func share(u clients.Use) float64 {
	if u.Limit > 0 {
		return min(u.Limit, 1)
	}
	return 1
}

// Progress implements local.Load.
func (s *step) Progress() system.Progress { return system.OfStream(s.fleet.Progress()) }

// Readings implements local.Load: the demand of the client with the highest.
func (s *step) Readings() []record.Reading {
	now, uses := s.Rec.Clock.Now(), s.fleet.Uses()
	seconds := (now - s.from).Seconds()
	values := map[string]float64{"clients": float64(len(uses)), "answeredGbit": 8 * float64(s.bytes.Load()) / 1e9}
	for name, u := range uses {
		if was, known := s.was[name]; known && seconds > 0.5 && u.Wanted > was.Wanted {
			demand := max((u.Wanted-was.Wanted)/seconds/share(u), (u.Throttled-was.Throttled)/seconds)
			values["demand"] = max(values["demand"], min(demand, 1))
		}
	}
	if seconds > 0.5 {
		s.from, s.was = now, uses
	}
	list := []record.Reading{{Source: sourceClients, Values: values}}
	if busiest := s.fleet.Readings(sourceFio, "busiest"); len(busiest) > 0 {
		list = append(list, record.Reading{Source: sourceFio, Values: map[string]float64{"busiest": slices.Max(busiest)}})
	}
	return list
}

// End implements local.Load.
func (*step) End() error { return nil }

// Close implements system.Instance: it removes the namespace with all that is in it.
func (i *instance) Close(done context.Context) error {
	err := i.Reset(done)
	if i.end != nil {
		i.end()
		i.signs.Wait()
	}
	for _, l := range i.links {
		l.close()
	}
	if !i.opened {
		i.gone = true
		return err
	}
	if l := i.Lab(); l != nil && l.Spec().Private {
		i.gone = true // it goes with its lab
		return err
	}
	err = errors.Join(err, sweep.Clean(done, i.Client(), i.Host, sweep.Leftover{Run: i.Run, Namespaces: []string{i.namespace}, Others: i.beside}))
	i.gone = err == nil
	return err
}
