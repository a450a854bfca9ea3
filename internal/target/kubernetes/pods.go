package kubernetes

import (
	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// podSet follows the pods of a run and puts their news on record. It handles
// their watch.
type podSet struct {
	*following
	canary *canary
	parts  map[string]string // components of pods in place by UID
}

func newPodSet(common *shared, canary *canary, ageing *ageing) *podSet {
	kind := observe.Pods()
	f := &following{shared: common, ageing: ageing, noun: kind.Object, there: kind.There}
	s := &podSet{following: f, canary: canary, parts: make(map[string]string)}
	s.tracker = observe.NewTracker(observe.PodCourse(), s.follow)
	return s
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
