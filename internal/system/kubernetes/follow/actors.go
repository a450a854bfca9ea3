package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Actors watches those whose work is awaited: API server and store by this program's requests, scheduler,
// controller manager and nodes by their visible work and, where that is missing, their leases. Without leases
// the patience is longer. While the server does not answer, or news is late, the others are not judged.
type Actors struct {
	*prepared.Run
	follows Followed
	nodes   *NodeSet
	canary  *canary

	mu     sync.Mutex
	actors []*actor // the server and its store first
	waits  []*wait
	worked int64         // successful requests at the last look
	news   record.Micros // when worked last changed
	silent atomic.Pointer[silence]
	warned sync.Once
}

type actor struct {
	name, says string
	leases     []lease              // possible places of its lease; none for nodes, and where none can be read
	renewed    map[string]time.Time // last renewal, by lease
	every      time.Duration        // the shortest observed time between renewals, 0 for none
	acted      record.Micros        // its last visible work
	heard      atomic.Int64         // its last event
	wanted     *spell               // nil while nothing waits for it
}

// leased reports whether a lease of the actor was read: that shows life even without work.
func (x *actor) leased() bool { return len(x.renewed) > 0 }

// spell is a time in which an actor is awaited.
type spell struct {
	first record.Micros // when it began
	told  record.Micros // the last report that the actor is idle, 0 for none
	since record.Micros // the start of the idle time in that report
}

type lease struct{ namespace, name string }

// wait is something besides the objects that awaits an actor.
type wait struct {
	actor string
	of    record.Noun
	count func() int
	last  int
	end   context.CancelCauseFunc
}

// silence describes an actor that was idle for too long.
type silence struct {
	step   int
	what   string
	server bool // the API server or its store
}

// SilentError says that an awaited actor was idle for too long.
type SilentError struct{ What string }

func (e *SilentError) Error() string { return e.What }

const (
	lookInterval = time.Second
	// restless is the idle time after which an actor's lease or the server's health is read.
	restless = 2500 * time.Millisecond
	// leastTold is the idle time before a report: several renewals. Without a lease it is hiddenTold.
	leastTold, hiddenTold = 6 * time.Second, 20 * time.Second
	missed                = 3                // renewals
	Patience              = 25 * time.Second // bounds the wait for an idle actor
	hiddenPatience        = 2 * time.Minute  // bounds it for waits besides the objects, where there is no lease
	toldInterval          = 5 * time.Second  // between two reports
	learning              = time.Minute      // time at the start in which leases are read, to learn their period
	leasePatience         = 2 * time.Second
	readyPatience         = 3 * time.Second
	leastReady            = time.Second
	nodesRead             = 20 // bound on the leases that are read
)

func newActors(common *prepared.Run, follows Followed, nodes *NodeSet, canary *canary) *Actors {
	of := func(name, says string, leases ...lease) *actor {
		return &actor{name: name, says: says, leases: leases, renewed: make(map[string]time.Time)}
	}
	return &Actors{Run: common, follows: follows, nodes: nodes, canary: canary, actors: []*actor{
		of(observe.APIServer, "the API server has not answered"),
		of(observe.Store, "etcd has not answered the API server"),
		of(observe.Scheduler, "no scheduler has acted", lease{"kube-system", "kube-scheduler"}, lease{"openshift-kube-scheduler", "kube-scheduler"}),
		of(observe.ControllerManager, "the controller manager has not acted", lease{"kube-system", "kube-controller-manager"}),
		of(observe.Nodes, "no node has acted"),
	}}
}

// Silent describes an awaited actor that was idle for too long, and whether it is the server; "" for none.
func (a *Actors) Silent() (what string, server bool) {
	if s := a.silent.Load(); s != nil && s.step == a.Step() {
		return s.what, s.server
	}
	return "", false
}

// Wait notes that something awaits an actor, while count is not 0 and until done. If the actor is idle
// for too long, the context ends with a *SilentError.
func (a *Actors) Wait(ctx context.Context, actor string, of record.Noun, count func() int) (waiting context.Context, done func()) {
	waiting, end := context.WithCancelCause(ctx)
	w := &wait{actor: actor, of: of, count: count, last: -1, end: end}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits = append(a.waits, w)
	return waiting, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.waits = slices.DeleteFunc(a.waits, func(x *wait) bool { return x == w })
		end(nil)
	}
}

// event takes an event of the cluster: its author is not idle.
func (a *Actors) event(now record.Micros, source string) {
	for _, x := range a.actors {
		if x.name == observe.ControllerManager && strings.HasSuffix(source, "-controller") || x.name == observe.Nodes && source == "kubelet" || x.name == observe.Scheduler && source == corev1.DefaultSchedulerName {
			x.heard.Store(int64(now))
		}
	}
}

func (a *Actors) run(ctx context.Context) {
	begin := a.Clock.Now()
	a.news = begin
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		a.look(ctx, (a.Clock.Now()-begin).Duration() < learning)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (a *Actors) look(ctx context.Context, learn bool) {
	server, store := a.actors[0], a.actors[1]
	if worked := a.Client.Worked.Load(); worked != a.worked {
		a.worked, a.news = worked, a.Clock.Now()
	}
	var dead *actor
	message := ""
	if (a.Clock.Now() - a.news).Duration() > restless {
		dead, message = a.askServer(ctx)
		if ctx.Err() != nil {
			return
		}
	}
	w := a.follows.Waits()
	now := a.Clock.Now()
	for _, x := range []*actor{server, store} {
		if x == dead {
			x.acted = a.news
			x.wait(a.news).first = a.news
			waiting, of := a.wanted(w)
			a.judge(now, x, waiting, of, message)
		} else {
			a.over(now, x)
		}
	}
	if dead == nil && (now-a.news).Duration() > restless {
		a.news = now // ready, but slow
	}
	unseen := a.canary.unseenFor(now) > restless
	for _, x := range a.actors[2:] {
		if dead != nil || unseen {
			x.acted = now // it cannot work, or its work is not seen
			continue
		}
		a.lookAt(ctx, x, w, learn)
	}
}

// askServer finds out whether server or store does not answer, nil for neither, within the patience.
func (a *Actors) askServer(ctx context.Context) (*actor, string) {
	left := Patience - (a.Clock.Now() - a.news).Duration()
	ctx, cancel := context.WithTimeout(ctx, min(max(left, leastReady), readyPatience))
	defer cancel()
	ask := func(path string) (int, error) { return a.Client.Probe(ctx, path) }
	alive := make(chan error, 1)
	go func() {
		_, err := ask("/livez/ping")
		alive <- err
	}()
	server, store := a.actors[0], a.actors[1]
	code, err := ask("/readyz/etcd") // takes at most 2 s
	if err == nil && code < http.StatusInternalServerError {
		return nil, ""
	}
	if err == nil {
		return store, fmt.Sprintf("/readyz/etcd answers %d", code)
	}
	if <-alive == nil {
		return store, "the API server answers /livez/ping, and not /readyz/etcd"
	}
	server.says = "the API server has not answered"
	if network, ok := err.(net.Error); ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		// Here the two cannot be told apart.
		server.says = "the API server, or the network to it, has not answered"
	}
	return server, a.Client.Base.Host + ": " + err.Error()
}

// wanted counts what awaits the server.
func (a *Actors) wanted(w Waits) (int, record.Noun) {
	if n := a.Client.Wanted.Load(); n > 0 {
		return int(n), record.Noun{One: "request", Many: "requests"}
	}
	n := 0
	for _, objects := range w.Objects {
		n += objects
	}
	if n > 0 {
		return n, a.follows.Noun()
	}
	return 1, record.Noun{One: "request", Many: "requests"} // the canary's
}

// lookAt looks at an actor with visible work.
func (a *Actors) lookAt(ctx context.Context, x *actor, w Waits, learn bool) {
	if learn && len(x.leases) > 0 && x.every == 0 {
		a.readLease(ctx, x)
	}
	now := a.Clock.Now()
	waiting, of := w.Objects[x.name], a.follows.Noun()
	x.acted = max(x.acted, w.Acted[x.name], record.Micros(x.heard.Load()))
	a.mu.Lock()
	for _, wait := range a.waits {
		if wait.actor != x.name {
			continue
		}
		n := wait.count()
		if n != wait.last {
			x.acted, wait.last = now, n
		}
		if waiting == 0 && n > 0 {
			waiting, of = n, wait.of
		}
	}
	a.mu.Unlock()
	if waiting == 0 {
		a.over(now, x)
		return
	}
	if !x.leased() && x.name == observe.ControllerManager && w.Objects[observe.Scheduler]+w.Objects[observe.Nodes] > 0 {
		x.acted = now // it may await them itself
	}
	if s := x.wait(now); (now - max(x.acted, s.first)).Duration() < restless {
		if s.told != 0 {
			a.over(now, x)
			x.wait(now)
		}
		return
	}
	renewed := false
	if x.name == observe.Nodes {
		renewed = a.readNodes(ctx, x, w.Places)
	} else if len(x.leases) > 0 {
		renewed = a.readLease(ctx, x)
	}
	now = a.Clock.Now()
	if renewed {
		x.acted = now
		return
	}
	message := "it was not seen to do anything"
	if x.leased() {
		message = "its lease was not renewed meanwhile"
	}
	a.judge(now, x, waiting, of, message)
}

// isServer reports whether an actor is API server or store, which have no leases but answer.
func (x *actor) isServer() bool { return x.name == observe.APIServer || x.name == observe.Store }

// wait returns the spell in which the actor is awaited, which may begin now.
func (x *actor) wait(now record.Micros) *spell {
	if x.wanted == nil {
		x.wanted = &spell{first: now}
	}
	return x.wanted
}

// bounds returns the idle times before a report and the end; a node without a lease may be pulling.
func (x *actor) bounds() (told, patience time.Duration) {
	switch {
	case x.isServer() || x.every > 0:
		return min(max(leastTold, missed*x.every), Patience), Patience
	case x.name == observe.Nodes && !x.leased():
		return hiddenPatience, hiddenPatience
	}
	return hiddenTold, Patience
}

// judge reports an actor that is idle for long enough.
func (a *Actors) judge(now record.Micros, x *actor, waiting int, of record.Noun, message string) {
	s := x.wanted
	s.since = max(x.acted, s.first)
	lasts := (now - s.since).Duration()
	told, patience := x.bounds()
	if lasts < told {
		return
	}
	end := lasts >= patience
	silent, _ := a.Silent()
	event := &record.Actor{Actor: x.name, Says: x.says, Since: s.since, Waiting: waiting, Of: of, Message: message}
	if s.told == 0 || (now-s.told).Duration() >= toldInterval || end && silent == "" {
		s.told = now
		a.EmitAt(now, event)
	}
	if !end {
		return
	}
	what := event.Sentence(now)
	if of == a.follows.Noun() || x.isServer() {
		a.silent.Store(&silence{a.Step(), what, x.isServer()})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, wait := range a.waits {
		if wait.actor == x.name && wait.last > 0 && (x.leased() || lasts >= hiddenPatience) {
			wait.end(&SilentError{what})
		}
	}
}

// over notes that an actor is not awaited any more, or works again.
func (a *Actors) over(now record.Micros, x *actor) {
	s := x.wanted
	x.wanted = nil
	if x.name == observe.Nodes {
		x.says = "no node has acted"
	}
	if s == nil || s.told == 0 {
		return
	}
	a.EmitAt(now, &record.Actor{Actor: x.name, Says: x.says, Since: s.since, Over: true})
	a.silent.Store(nil)
}

// readLease reports whether an actor's lease may have been renewed since it was last read.
func (a *Actors) readLease(ctx context.Context, x *actor) bool {
	for _, l := range x.leases {
		renewed, code := a.read(ctx, x, l)
		switch {
		case code == http.StatusOK:
			x.leases = []lease{l}
			return renewed
		case code == http.StatusNotFound && !x.leased():
			continue // it may be elsewhere
		case code == http.StatusNotFound:
			return false // it is gone
		case code != http.StatusForbidden && code != http.StatusUnauthorized:
			return true // unknown: the server is in trouble
		}
		break
	}
	x.leases = nil
	a.warn()
	return false
}

// warn reports once that leases cannot be read.
func (a *Actors) warn() {
	a.warned.Do(func() {
		a.Emit(&record.Note{Warning: record.WarningNotKnown, Text: "leases of the scheduler, the controller manager or nodes cannot be read: one that does nothing is noticed by its work alone, and later"})
	})
}

// readNodes reads the leases of awaited nodes, then of others, and reports whether one may have been renewed.
func (a *Actors) readNodes(ctx context.Context, x *actor, places map[string]int) bool {
	names := slices.Sorted(maps.Keys(places))
	waiting := min(len(names), nodesRead)
	for _, name := range a.nodes.Names() {
		if _, known := places[name]; !known && len(names) < nodesRead {
			names = append(names, name)
		}
	}
	if waiting == 0 {
		waiting = len(names)
	}
	var one sync.Mutex
	renewed, denied := false, false
	names = names[:min(len(names), nodesRead)]
	_ = api.InParallel(ctx, len(names), nodesRead, 0, func(ctx context.Context, i int) error {
		one.Lock()
		at, known := x.renewed[names[i]]
		one.Unlock()
		now, code := a.renewal(ctx, lease{corev1.NamespaceNodeLease, names[i]})
		one.Lock()
		defer one.Unlock()
		switch {
		case code == http.StatusOK:
			x.renewed[names[i]] = now
			if !known || !now.After(at) {
				break
			}
			if renewed = renewed || i < waiting; i >= waiting {
				x.says = "no node with waiting pods has acted"
			}
		case code == http.StatusForbidden || code == http.StatusUnauthorized:
			denied = true
		case code != http.StatusNotFound:
			renewed = true // unknown: the server is in trouble
		}
		return nil
	})
	if denied {
		a.warn()
	}
	return renewed
}

func (a *Actors) read(ctx context.Context, x *actor, l lease) (renewed bool, code int) {
	at, code := a.renewal(ctx, l)
	if code != http.StatusOK {
		return false, code
	}
	was, known := x.renewed[l.name]
	x.renewed[l.name] = at
	if !known || !at.After(was) {
		return false, code
	}
	if every := at.Sub(was); x.every == 0 || every < x.every {
		x.every = every
	}
	return true, code
}

// renewal returns the last renewal of a lease, by its holder's clock. The code is 0 without an answer.
func (a *Actors) renewal(ctx context.Context, l lease) (at time.Time, code int) {
	ctx, cancel := context.WithTimeout(ctx, leasePatience)
	defer cancel()
	path := "/apis/coordination.k8s.io/v1/namespaces/" + l.namespace + "/leases/" + l.name
	r, err := a.Client.Do(ctx, http.MethodGet, path, nil, "", nil, new(bytes.Buffer))
	if err != nil || r.Code != http.StatusOK {
		return at, r.Code
	}
	raw, err := api.OpenEnvelope(r.Body)
	var found coordinationv1.Lease
	if err == nil {
		err = found.Unmarshal(raw)
	}
	if err != nil || found.Spec.RenewTime == nil {
		return at, http.StatusNotFound
	}
	return found.Spec.RenewTime.Time, r.Code
}
