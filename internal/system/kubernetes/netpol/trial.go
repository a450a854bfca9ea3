package netpol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Bounds of what passes between this program and the pods.
const (
	askInterval  = 250 * time.Millisecond // between two questions for a pod's results
	askPatience  = 10 * time.Second
	askedAtOnce  = 20
	forwardsKept = 100 // with more pods, each question has a connection of its own
	longestReply = 32 << 20
)

// Forward reaches a port of a pod.
type Forward interface {
	Dial(ctx context.Context) (net.Conn, error)
	Close()
}

// Trial is the trial of the connections that the policies of a run allow. It begins with its exported fields set.
type Trial struct {
	Clock   *record.Clock
	List    func(ctx context.Context) ([]corev1.Namespace, []corev1.Pod, error) // of the run
	Forward func(namespace, pod string) (Forward, error)
	Note    func(text string) // tells that a pod tells no results
	// Settle is the time in which pods tell of connections that nothing denies, before the policies are made.
	Settle time.Duration

	mu      sync.Mutex
	ordered map[types.UID]bool // a pod takes orders once
	pairs   map[string][]pair  // by policy
	allowed map[pair][]string  // by which policies
	asked   map[string]record.Micros
	answers map[pair]answer
	news    chan struct{} // closed at the next answer
	end     context.CancelFunc
}

// answer says when a connection was made: at some time before it was seen.
type answer struct{ at, seen record.Micros }

// client is a pod that tries connections.
type client struct {
	namespace, name, address string
	uid                      types.UID
	orders                   []agent.Order
	forward                  Forward
	http                     http.Client
	before                   record.Micros // begin of the last question that had an answer
	silent                   bool
}

// Ask notes that the run asks for a policy now. On nil it does nothing.
func (t *Trial) Ask(policy string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked = make(map[string]record.Micros)
	}
	if _, known := t.asked[policy]; !known { // one that is made again is open already
		t.asked[policy] = t.Clock.Now()
	}
}

// Begin gives pods their orders before the policies are made, and asks for results until all have answered, ctx ends
// or the next trial begins.
func (t *Trial) Begin(ctx context.Context, policies []Policy) error {
	namespaces, pods, err := t.List(ctx)
	if err != nil {
		return err
	}
	cast := castOf(namespaces, pods)
	pairs, allowed := make(map[string][]pair), make(map[pair][]string)
	for i := range policies {
		p := &policies[i]
		of, err := cast.pairs(p)
		if err != nil {
			return fmt.Errorf("network policy %s: %w", p.Name, err)
		}
		pairs[p.Name] = of
		for _, is := range of {
			allowed[is] = append(allowed[is], p.Name)
		}
	}
	var clients []*client
	orders := ordersOf(policies, pairs)
	for _, list := range cast.pods {
		for _, p := range list {
			if of := orders[p.Status.PodIP]; of != nil {
				clients = append(clients, &client{namespace: p.Namespace, name: p.Name, address: p.Status.PodIP, uid: p.UID, orders: of})
			}
		}
	}
	t.Close()
	t.mu.Lock()
	if t.ordered == nil {
		t.ordered = make(map[types.UID]bool)
	}
	t.pairs, t.allowed, t.answers, t.news = pairs, allowed, make(map[pair]answer), make(chan struct{})
	t.mu.Unlock()
	if err := api.InParallel(ctx, len(clients), askedAtOnce, 0, func(ctx context.Context, i int) error { return t.give(ctx, clients[i], len(clients)) }); err != nil {
		closeAll(clients)
		return err
	}
	going, end := context.WithCancel(context.WithoutCancel(ctx))
	t.mu.Lock()
	t.end = end
	t.mu.Unlock()
	go t.listen(going, clients)
	if !api.Sleep(ctx, t.Settle) {
		return context.Cause(ctx)
	}
	return nil
}

// Close ends the questions. On nil it does nothing.
func (t *Trial) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end()
	}
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

func (c *client) close() {
	if c.forward != nil {
		c.http.CloseIdleConnections()
		c.forward.Close()
		c.forward = nil
	}
}

// do makes a request to the pod's program, and returns its answer.
func (t *Trial) do(ctx context.Context, c *client, method, path string, body []byte, of int) (text []byte, err error) {
	if c.forward == nil {
		if c.forward, err = t.Forward(c.namespace, c.name); err != nil {
			return nil, err
		}
		forward := c.forward
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return forward.Dial(ctx) }}
	}
	if of > forwardsKept {
		defer c.close()
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://pod"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	reply, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(reply.Body, longestReply)); err == nil && reply.StatusCode != http.StatusOK {
		err = errors.New(reply.Status)
	}
	return text, err
}

// give gives a pod its orders.
func (t *Trial) give(ctx context.Context, c *client, of int) error {
	t.mu.Lock()
	twice := t.ordered[c.uid]
	t.ordered[c.uid] = true
	t.mu.Unlock()
	if twice {
		return &system.UnableError{
			Err:  fmt.Errorf("pod %s/%s has its orders already, and takes no others", c.namespace, c.name),
			Hint: "leave out netpolLatency, or make all policies by one job and in one step: plimsoll kube-burner init",
		}
	}
	body, err := json.Marshal(c.orders)
	if err != nil {
		return err
	}
	c.before = t.Clock.Now()
	if _, err := t.do(ctx, c, http.MethodPost, agent.TryGive, body, of); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &system.UnableError{
			Err:  fmt.Errorf("give pod %s/%s the connections that it is to try, at its port %d: %w", c.namespace, c.name, agent.TryPort, err),
			Hint: "netpolLatency needs pods with a container of kube-burner's netpolvalidator, or of " + image.AgentReference + " with args: [try]",
		}
	}
	return nil
}

// listen asks pods for their results until each connection has been made, or ctx ends.
func (t *Trial) listen(ctx context.Context, clients []*client) {
	defer closeAll(clients)
	of := len(clients)
	for len(clients) > 0 && api.Sleep(ctx, askInterval) {
		done := make([]bool, len(clients))
		_ = api.InParallel(ctx, len(clients), askedAtOnce, 0, func(ctx context.Context, i int) error {
			done[i] = t.hear(ctx, clients[i], of)
			return nil
		})
		var left []*client
		for i, c := range clients {
			if done[i] {
				c.close()
			} else {
				left = append(left, c)
			}
		}
		clients = left
	}
}

// hear takes a pod's results; done reports that it has made all its connections.
func (t *Trial) hear(ctx context.Context, c *client, of int) (done bool) {
	began := t.Clock.Now()
	text, err := t.do(ctx, c, http.MethodGet, agent.TryTells, nil, of)
	var list []agent.Connection
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		if !c.silent && ctx.Err() == nil {
			c.silent = true
			t.Note(fmt.Sprintf("pod %s/%s does not tell which connections it has made: %v", c.namespace, c.name, err))
		}
		return false
	}
	c.silent = false
	now := t.Clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	heard := false
	for _, r := range list {
		is := pair{c.address, r.Address}
		if _, known := t.answers[is]; known || t.allowed[is] == nil {
			continue
		}
		// It was between this question and the last one, whatever the pod's clock says.
		at := record.MicrosOf(r.At.Sub(t.Clock.Start()))
		t.answers[is], heard = answer{min(max(at, c.before), now), now}, true
	}
	c.before = began
	if heard {
		close(t.news)
		t.news = make(chan struct{})
	}
	for _, o := range c.orders {
		if slices.ContainsFunc(o.Addresses, func(to string) bool { _, known := t.answers[pair{c.address, to}]; return !known }) {
			return false
		}
	}
	return true
}

// Allowed waits until one or all of the connections that a policy allows have been made, and returns when. One that
// an earlier policy had opened counts from the request for this one. It is an error if the policy allows none between
// the pods, or if one was made before any policy that allows it.
func (t *Trial) Allowed(ctx context.Context, policy string, all bool) (record.Micros, error) {
	for {
		t.mu.Lock()
		at, ok, err := t.reached(policy, all)
		news := t.news
		t.mu.Unlock()
		if ok || err != nil {
			return at, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (t *Trial) reached(policy string, all bool) (at record.Micros, ok bool, err error) {
	pairs, known := t.pairs[policy]
	if known && len(pairs) == 0 {
		return 0, false, errors.New("it allows no connection between the pods that are there")
	}
	asked := t.asked[policy]
	answered := 0
	for _, is := range pairs {
		then, known := t.answers[is]
		if !known {
			continue
		}
		if then.seen < asked && !slices.ContainsFunc(t.allowed[is], func(by string) bool { first, known := t.asked[by]; return known && first <= then.seen }) {
			return 0, false, fmt.Errorf("%s reached %s before any policy allowed it: the network does not enforce policies, or no policy denies the rest", is.from, is.to)
		}
		reached := max(then.at, asked)
		if answered++; answered == 1 || all && reached > at || !all && reached < at {
			at = reached
		}
	}
	return at, answered > 0 && (!all || answered == len(pairs)), nil
}
