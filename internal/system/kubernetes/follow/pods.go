package follow

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// objectOfSlot is which object of which job a slot with slotLabel is of.
func objectOfSlot(slot string) (job, object int, ok bool) {
	n, err := fmt.Sscanf(slot[strings.LastIndexByte(slot, '/')+1:], "j%d.o%d.d", &job, &object)
	return job, object, n == 2 && err == nil
}

// PodSet follows the pods of a run and puts their news on record. It handles
// their watch.
type PodSet struct {
	*following
	canary *canary
	parts  map[string]string // components of pods in place by UID
	makers sync.Map          // slots by the kinds and names of the objects that make their pods
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

// Creating notes that a pod is asked for, and Created that this is settled: until then
// it does not age.
func (s *PodSet) Creating(pod string) { s.ageing.creating(pod) }

// Created is the end of Creating.
func (s *PodSet) Created(pod string) { s.ageing.created(pod) }

// Made notes the slot of an object that makes pods.
func (s *PodSet) Made(kind, object, slot string) { s.makers.Store(kind+" "+object, slot) }

// slotOf is the slot whose pods an object makes, itself or for a Deployment; "" for
// none.
func (s *PodSet) slotOf(kind, object string) string {
	slot, ok := s.makers.Load(kind + " " + object)
	if m := ofDeployment.FindStringSubmatch(object); !ok && m != nil && kind == "ReplicaSet" {
		slot, ok = s.makers.Load("Deployment " + m[1])
	}
	if !ok {
		return ""
	}
	return slot.(string)
}

// ofDeployment is the name of a ReplicaSet that a Deployment has made: its own, and a
// hash of its template in the letters that Kubernetes writes hashes in.
var ofDeployment = regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}$`)

// Changed implements api.Handler.
func (s *PodSet) Changed(now record.Micros, kind string, object []byte) error {
	return s.apply(now, changeOf(kind), object)
}

// changeOf is how a message of a kind came.
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

// apply takes in one message about a pod.
func (s *PodSet) apply(now record.Micros, change observe.Change, object []byte) error {
	var p api.PodNews
	if err := api.DecodePod(object, &p); err != nil {
		return err
	}
	if p.IsCanary {
		s.canary.seen(now, p.Canary)
		return nil
	}
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

// setComponentOfSlot notes the component of a pod that a controller has made: its slot
// tells which object asked for it. It is called with mu held.
func (s *PodSet) setComponentOfSlot(uid, slot string) {
	if _, known := s.parts[uid]; known || s.Load.Component == nil {
		return
	}
	if job, object, ok := objectOfSlot(slot); ok {
		if component := s.Load.Component(job, object); component != "" {
			s.parts[uid] = component
		}
	}
}

// SetComponent notes the component of a pod that was created.
func (s *PodSet) SetComponent(uid, component string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[uid] = component
}

// ComponentOf is the component of the pod with a UID, "" where it is unknown.
func (s *PodSet) ComponentOf(uid string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[uid]
}

// pulled takes in an event of a pod of ours, if it is one of an image.
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
