package follow

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// PodSet follows the pods of a run, as the handler of their watch.
type PodSet struct {
	*following
	canary *canary
	parts  map[string]string // components of pods in place by UID
	makers sync.Map          // slots by kind and name of the objects that make pods
}

func newPodSet(common *prepared.Run, canary *canary, ageing *Ageing) *PodSet {
	kind := observe.Pods()
	f := &following{Run: common, ageing: ageing, noun: kind.Object, there: kind.There}
	for _, name := range observe.PodCourse().Names {
		f.owners = append(f.owners, kind.Owner(name))
	}
	s := &PodSet{following: f, canary: canary, parts: make(map[string]string)}
	s.tracker = observe.NewTracker(observe.PodCourse(), s.follow)
	return s
}

// Creating notes that a pod is requested: it does not age until Created.
func (s *PodSet) Creating(pod string) { s.ageing.creating(pod) }

// Created notes that the outcome of the request is known.
func (s *PodSet) Created(pod string) { s.ageing.created(pod) }

// Made notes the slot of an object that makes pods.
func (s *PodSet) Made(kind, object, slot string) { s.makers.Store(kind+" "+object, slot) }

// SlotOf returns the slot whose pods an object makes, itself or through a ReplicaSet; "" for none.
func (s *PodSet) SlotOf(kind, object string) string {
	slot, ok := s.makers.Load(kind + " " + object)
	if m := ofDeployment.FindStringSubmatch(object); !ok && m != nil && kind == "ReplicaSet" {
		slot, ok = s.makers.Load("Deployment " + m[1])
	}
	if !ok {
		return ""
	}
	return slot.(string)
}

// ofDeployment matches a Deployment's ReplicaSet: its name, and a hash in Kubernetes' letters.
var ofDeployment = regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}$`)

// Changed implements api.Handler.
func (s *PodSet) Changed(now record.Micros, kind string, object []byte) error {
	var p api.PodNews
	if err := api.DecodePod(object, &p); err != nil {
		return err
	}
	if p.IsCanary {
		s.canary.seen(now, p.Canary)
		return nil
	}
	change := changeOf(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	if change == observe.Gone {
		delete(s.parts, p.UID)
	} else if s.Load.Places {
		s.setComponentOfSlot(p.UID, p.Slot)
	}
	s.tracker.Apply(now, change, p.News())
	return nil
}

func changeOf(kind string) observe.Change {
	switch kind {
	case api.EventDeleted:
		return observe.Gone
	case api.Listed:
		return observe.Listed
	}
	return observe.Changed
}

// Missing implements api.Handler.
func (s *PodSet) Missing(now record.Micros, gone []api.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range gone {
		delete(s.parts, o.UID)
		s.tracker.Missing(now, o.Namespace+"/"+o.Name, o.UID)
	}
}

// setComponentOfSlot notes a controlled pod's component, by the object in its slot. The caller holds mu.
func (s *PodSet) setComponentOfSlot(uid, slot string) {
	if _, known := s.parts[uid]; known || s.Load.Component == nil {
		return
	}
	var job, object int
	n, err := fmt.Sscanf(slot[strings.LastIndexByte(slot, '/')+1:], "j%d.o%d.d", &job, &object)
	if n != 2 || err != nil {
		return
	}
	if component := s.Load.Component(job, object); component != "" {
		s.parts[uid] = component
	}
}

// SetComponent notes the component of a created pod.
func (s *PodSet) SetComponent(uid, component string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[uid] = component
}

// ComponentOf returns the component of the pod with a UID, "" where unknown.
func (s *PodSet) ComponentOf(uid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[uid]
}

// pulled takes an event of an image of one of our pods.
func (s *PodSet) pulled(now record.Micros, e *corev1.Event) {
	if about := e.InvolvedObject; about.Kind == "Pod" && e.Reason == reasonPulled {
		stamp := int64(0)
		if !e.LastTimestamp.IsZero() {
			stamp = e.LastTimestamp.Unix()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tracker.Pulled(now, observe.BitImagesReady, about.Namespace+"/"+about.Name, string(about.UID), about.FieldPath, stamp)
	}
}

// Ageing deletes the pods of an open axis by their age, so that arrivals do not fill the cluster.
type Ageing struct {
	*prepared.Run
	mu                  sync.Mutex
	on                  bool
	readyOnes, bornOnes []aged          // Both are ordered by their due time
	living              map[string]bool // not deleted yet
	asked               map[string]bool // creation not answered yet

	stop    context.CancelFunc
	working *errgroup.Group
}

type aged struct {
	pod string
	due record.Micros
}

const ageingInterval = 20 * time.Millisecond

func (a *Ageing) born(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.living[pod] = true
		a.bornOnes = append(a.bornOnes, aged{pod, at})
	}
}

func (a *Ageing) ready(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.readyOnes = append(a.readyOnes, aged{pod, at})
	}
}

func (a *Ageing) gone(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.living, pod)
}

// creating notes that a pod is requested, created its outcome. In between it is not deleted: a retry
// would make it again.
func (a *Ageing) creating(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.asked[pod] = true
	}
}

func (a *Ageing) created(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, pod)
}

// due takes the pods that are due from the queues.
func (a *Ageing) due() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, life, follow := a.Clock.Now(), record.MicrosOf(a.Load.PodLife), record.MicrosOf(a.Load.Follow)
	var list []string
	take := func(queue []aged, age record.Micros) []aged {
		var later []aged
		for len(queue) > 0 && queue[0].due+age <= now {
			switch pod := queue[0].pod; {
			case a.asked[pod]:
				later = append(later, queue[0])
			case a.living[pod]:
				delete(a.living, pod)
				list = append(list, pod)
			}
			queue = queue[1:]
		}
		if len(later) > 0 {
			queue = append(later, queue...)
		}
		return queue
	}
	a.readyOnes = take(a.readyOnes, life)
	a.bornOnes = take(a.bornOnes, max(follow, life))
	return list
}

// Begin starts the ageing of pods that are created from now on, until End, or the end of watching.
func (a *Ageing) Begin(watching context.Context, remove func(ctx context.Context, pod string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		return
	}
	ctx, cancel := context.WithCancel(watching)
	working := new(errgroup.Group)
	working.SetLimit(1 + 32)
	a.on, a.living, a.asked, a.stop, a.working = true, make(map[string]bool), make(map[string]bool), cancel, working
	working.Go(func() error {
		tick := time.NewTicker(ageingInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
			for _, pod := range a.due() {
				working.Go(func() error { remove(ctx, pod); return nil })
			}
		}
	})
}

// End stops the ageing and waits for the deletions under way.
func (a *Ageing) End() {
	a.mu.Lock()
	on := a.on
	a.on = false
	a.mu.Unlock()
	if !on {
		return
	}
	a.stop()
	_ = a.working.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.living, a.asked, a.readyOnes, a.bornOnes = nil, nil, nil, nil
}
