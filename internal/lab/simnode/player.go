package simnode

import (
	"context"
	"log/slog"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// statusWriters and eventWriters bound requests in flight: events never delay a status, whose moment counts.
const (
	statusWriters = 32
	eventWriters  = 4
)

// Player takes pods on simulated nodes from bound to Ready and to their end, and then forgets them.
type Player struct {
	client  kubernetes.Interface
	latency dist.Dist
	log     *slog.Logger

	mu    sync.Mutex
	nodes map[string]string                    // the address of each simulated node; "" for a node with a kubelet
	early map[string]map[types.UID]*corev1.Pod // pods on nodes that are not seen yet
	plays map[types.UID]*play

	writers chan struct{}   // has room for those that write a status
	ctx     context.Context // of Run, for timers

	following chan struct{} // closed after the first list of pods
	followed  sync.Once

	writes    durations // of recent status writes
	addresses atomic.Uint32
	events    *eventSink
}

// play is a pod that still needs something.
type play struct {
	pod     *corev1.Pod // as last seen; never changed in place
	version uint64      // its resource version
	bound   time.Time   // when it was first seen bound
	latency time.Duration
	bad     string // an annotation that is not a latency
	busy    bool   // a worker has it
	pause   time.Duration
	stage   stage
	timer   *time.Timer // of the next stage, or nil
}

// NewPlayer makes a Player with a start latency for pods without annotation, and a client without a limit.
func NewPlayer(client kubernetes.Interface, latency dist.Dist, log *slog.Logger) *Player {
	return &Player{
		client: client, latency: latency, log: log, nodes: map[string]string{}, early: map[string]map[types.UID]*corev1.Pod{},
		plays: map[types.UID]*play{}, writers: make(chan struct{}, statusWriters),
		events: &eventSink{client: client, log: log, queue: make(chan podEvent, eventQueue)},

		following: make(chan struct{}),
	}
}

// Run plays until ctx ends.
func (p *Player) Run(ctx context.Context) {
	p.ctx = ctx
	var running sync.WaitGroup
	for range eventWriters {
		running.Go(func() { p.events.run(ctx) })
	}
	running.Go(func() { follow(ctx, p.client, p, p.log) })
	running.Wait()
	for range statusWriters {
		p.writers <- struct{}{} // wait for those under way
	}
}

// Following returns a channel that is closed when the player knows all existing pods.
func (p *Player) Following() <-chan struct{} { return p.following }

// SetNode adds or changes a node, or with gone removes it. Only simulated nodes' pods are played.
func (p *Player) SetNode(node *corev1.Node, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gone {
		delete(p.nodes, node.Name)
		return
	}
	address := ""
	if node.Annotations[KwokAnnotation] == KwokAnnotationValue {
		address = "0.0.0.0"
		for _, a := range node.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				address = a.Address
			}
		}
	}
	p.nodes[node.Name] = address
	now := time.Now()
	for _, pod := range p.early[node.Name] {
		p.see(pod, now)
	}
	delete(p.early, node.Name)
}

func (p *Player) seeOne(pod *corev1.Pod) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.see(pod, now)
}

// seeAll takes a list of all pods, at the start and after a gap.
func (p *Player) seeAll(pods []corev1.Pod) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	there := make(map[types.UID]bool, len(pods))
	for i := range pods {
		there[pods[i].UID] = true
		p.reserve(pods[i].Status.PodIP)
	}
	for uid := range p.plays {
		if !there[uid] {
			p.drop(uid)
		}
	}
	p.early = map[string]map[types.UID]*corev1.Pod{}
	for i := range pods {
		p.see(pods[i].DeepCopy(), now) // so that one pod does not keep the whole list
	}
	p.followed.Do(func() { close(p.following) })
}

func (p *Player) forget(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(pod.UID)
	delete(p.early[pod.Spec.NodeName], pod.UID)
}

func (p *Player) drop(uid types.UID) {
	if known := p.plays[uid]; known != nil {
		known.unschedule()
		delete(p.plays, uid)
	}
}

func (p *Player) see(pod *corev1.Pod, now time.Time) {
	address, seen := p.nodes[pod.Spec.NodeName]
	if !seen {
		if p.early[pod.Spec.NodeName] == nil {
			p.early[pod.Spec.NodeName] = map[types.UID]*corev1.Pod{}
		}
		p.early[pod.Spec.NodeName][pod.UID] = pod
		return
	}
	if address == "" {
		return // a kubelet plays it
	}
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		p.log.Error("resource version is not a number", "namespace", pod.Namespace, "pod", pod.Name, "version", pod.ResourceVersion)
		return
	}
	known := p.plays[pod.UID]
	switch {
	case known == nil:
		// A pod that already runs needs nothing, whatever its latency.
		if nextStage(pod, 0) == nothing {
			return
		}
		known = &play{bound: now}
		p.plays[pod.UID] = known
		p.plan(known, pod)
	case version <= known.version:
		return // our own write, or older
	}
	known.pod, known.version = pod, version
	if known.bad != "" && pod.Annotations[protocol.StartLatencyAnnotation] != known.bad {
		p.plan(known, pod)
	}
	p.advance(known)
}

func (p *Player) plan(known *play, pod *corev1.Pod) {
	annotation := pod.Annotations[protocol.StartLatencyAnnotation]
	latency, err := protocol.StartLatencyOf(string(pod.UID), annotation, p.latency)
	known.latency, known.bad = latency, ""
	if err != nil {
		known.bad = annotation
		p.events.put(podEvent{pod, "", corev1.EventTypeWarning, "InvalidStartLatency", err.Error(), time.Now()})
	}
}

func (p *Player) advance(known *play) {
	if known.busy {
		return // its worker calls advance when it is done
	}
	known.stage = nextStage(known.pod, known.latency)
	at := time.Now()
	switch known.stage {
	case nothing:
		p.drop(known.pod.UID)
		return
	case sandbox, initialized, started:
		if known.bad != "" {
			known.unschedule()
			return // until it is deleted or its annotation is corrected
		}
		after := known.stage.share(known.latency)
		// Others can see a stage after its write, which begins earlier by the time that a quick write takes.
		at = known.bound.Add(after - min(p.writes.quick, mostAhead, after/2))
	}
	p.schedule(known, at)
}

// schedule reports a pod's stage at a time, or as soon after it as a writer is free.
func (p *Player) schedule(known *play, at time.Time) {
	known.unschedule()
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		select {
		case p.writers <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		defer func() { <-p.writers }()
		p.mu.Lock()
		due := known.timer == timer
		if due {
			known.timer, known.busy = nil, true
		}
		p.mu.Unlock()
		if due {
			p.perform(p.ctx, known)
		}
	})
	known.timer = timer
}

func (k *play) unschedule() {
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// Pauses before a failed request is sent again.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
)

func (p *Player) perform(ctx context.Context, known *play) {
	p.mu.Lock()
	pod, stage := known.pod, known.stage
	// It may have been deleted meanwhile, which comes first.
	if now := nextStage(pod, known.latency); now != stage && (now == killed || now == deleted || now == nothing) {
		stage = now
	}
	where := place{host: p.nodes[pod.Spec.NodeName], since: metav1.NewTime(known.bound)}
	p.mu.Unlock()

	var written *corev1.Pod
	var err error
	if stage == deleted {
		err = p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	} else if stage != nothing {
		written, err = p.report(ctx, pod, stage, where)
		if apierrors.IsConflict(err) {
			var fresh *corev1.Pod
			fresh, err = p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err == nil && fresh.UID == pod.UID {
				written = fresh // not our write, but the newest
			} else if err == nil {
				err = apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
			}
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	known.busy = false
	if p.plays[pod.UID] != known {
		return // it is gone
	}
	switch {
	case apierrors.IsNotFound(err), stage == deleted && apierrors.IsConflict(err):
		p.drop(pod.UID)
	case err != nil:
		if ctx.Err() == nil {
			p.log.Warn("report on pod failed, will try again", "namespace", pod.Namespace, "pod", pod.Name, "error", err)
		}
		known.pause = min(max(2*known.pause, shortestPause), longestPause)
		p.schedule(known, time.Now().Add(known.pause))
	case stage == deleted:
		// With finalizers it stays, and the watch follows it.
		p.drop(pod.UID)
	default:
		known.pause = 0
		if written != nil {
			if version, err := strconv.ParseUint(written.ResourceVersion, 10, 64); err == nil && version > known.version {
				known.pod, known.version = written, version
			}
		}
		p.advance(known)
	}
}

func (p *Player) report(ctx context.Context, pod *corev1.Pod, s stage, where place) (*corev1.Pod, error) {
	next := pod.DeepCopy()
	// Without this the server keeps its own record of who manages which field.
	next.ManagedFields = nil
	where.pod = where.host
	if !pod.Spec.HostNetwork && pod.Status.PodIP == "" {
		where.pod = p.nextAddress()
	}
	began := time.Now()
	reach(next, s, where, metav1.NewTime(began))
	written, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	p.mu.Lock()
	p.writes.add(took)
	p.mu.Unlock()
	p.events.reached(pod, s)
	return written, nil
}

// mostAhead bounds how early a write begins: users want to see by how much a busy machine is late.
const mostAhead = 5 * time.Millisecond

type durations struct {
	last  [64]time.Duration
	count int
	// quick is their lower quartile, so that planted latencies are seldom undercut. It is 0 at first.
	quick time.Duration
}

func (d *durations) add(v time.Duration) {
	d.last[d.count%len(d.last)] = v
	d.count++
	const often = 16 // sorting each time would cost more than it gains
	if d.count%often == 0 {
		sorted := d.last
		slices.Sort(sorted[:min(d.count, len(sorted))])
		d.quick = sorted[min(d.count, len(sorted))/4]
	}
}

// Pods' addresses are 10.128.0.0/9, which come again after eight million.
const (
	firstPodAddress = 10<<24 | 128<<16
	podAddresses    = 1 << 23
)

func (p *Player) nextAddress() string {
	return addressFrom(firstPodAddress + p.addresses.Add(1)%podAddresses)
}

// reserve keeps a pod's address from being reused soon.
func (p *Player) reserve(address string) {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is4() {
		return
	}
	b := a.As4()
	offset := (uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])) - firstPodAddress
	if bits.Len32(offset) <= 23 && offset > p.addresses.Load() {
		p.addresses.Store(offset)
	}
}
