package kubernetes

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// podSet follows the pods of a run and puts their news on record. It handles
// their watch.
type podSet struct {
	*shared
	canary *canary
	ageing *ageing

	mu      sync.Mutex
	tracker *observe.Tracker
	arrived int               // that ever were Ready since the target was last empty
	parts   map[string]string // components of pods in place by UID
}

func newPodSet(common *shared, canary *canary, ageing *ageing) *podSet {
	s := &podSet{shared: common, canary: canary, ageing: ageing, parts: make(map[string]string)}
	s.tracker = observe.NewTracker(observe.PodCourse(), s.follow)
	return s
}

// follow puts news of pods on record. It is called with mu held.
func (s *podSet) follow(at record.Micros, body record.Body) {
	switch o := body.(type) {
	case *record.State:
		o.Message = redact.Message(o.Message)
	case *record.Object:
		switch o.Milestone {
		case "Created":
			s.ageing.born(at, o.Object)
		case "Ready":
			s.arrived++
			s.ageing.ready(at, o.Object)
		case "Deleted":
			s.ageing.gone(o.Object)
		}
	}
	s.emitAt(at, body)
}

func (s *podSet) changed(now record.Micros, kind string, object []byte) error {
	change := observe.Changed
	if kind == eventDeleted {
		change = observe.Gone
	}
	return s.apply(now, change, object)
}

func (s *podSet) listed(now record.Micros, items func(func([]byte) error) error) error {
	s.mu.Lock()
	s.tracker.BeginList()
	s.mu.Unlock()
	err := items(func(object []byte) error { return s.apply(now, observe.Listed, object) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.EndList(s.clock.Now())
	return nil
}

// apply takes in one message about a pod.
func (s *podSet) apply(now record.Micros, change observe.Change, object []byte) error {
	var p podNews
	if err := decodePod(object, &p); err != nil {
		return err
	}
	if p.isCanary {
		s.canary.seen(now, p.canary)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if change == observe.Gone {
		delete(s.parts, p.UID)
	} else if s.load.Places {
		s.setComponentOfSlot(p.UID, p.Slot)
	}
	s.tracker.Apply(now, change, p.News())
	return nil
}

// setComponentOfSlot notes the component of a pod that a controller has made: its slot
// tells which object asked for it. It is called with mu held.
func (s *podSet) setComponentOfSlot(uid, slot string) {
	if _, known := s.parts[uid]; known || s.load.Component == nil {
		return
	}
	if job, object, ok := objectOfSlot(slot); ok {
		if component := s.load.Component(job, object); component != "" {
			s.parts[uid] = component
		}
	}
}

// setComponent notes the component of a pod that was created.
func (s *podSet) setComponent(uid, component string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[uid] = component
}

func (s *podSet) componentOf(uid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[uid]
}

// pulled takes in an event of a pod of ours, if it is one of an image.
func (s *podSet) pulled(now record.Micros, e *corev1.Event) {
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

func (s *podSet) progress() target.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tracker.Counts()
	return target.Progress{There: c.Ready, Arrived: s.arrived, Failed: c.Failed, Unschedulable: c.Unschedulable, Moved: c.Moved, Left: s.tracker.Followed()}
}

// account puts on record why pods that are not ready are not, and counts them
// by node. With failing it picks some that fail, for their logs.
func (s *podSet) account(failing bool) (onNode map[string]int, picked []observe.Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Unfinished(s.clock.Now())
	onNode = make(map[string]int)
	s.tracker.PerPlace(onNode)
	if failing {
		picked = s.tracker.Failing(observe.BitStarted, logsPerReason, logsPerStep)
	}
	return onNode, picked
}

// names are the names of the pods that are not known to be gone.
func (s *podSet) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracker.Names()
}

// awaitGone waits until the watch has told of the end of all pods.
func (s *podSet) awaitGone(ctx context.Context) error {
	for {
		s.mu.Lock()
		left := s.tracker.Followed()
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", observe.Pods().Object.Count(left), context.Cause(ctx))
		}
	}
}

// forget drops all that is known, once the target is empty.
func (s *podSet) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Forget()
	s.arrived = 0
}
