package create

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Sender creates the objects of a load.
type Sender struct {
	*prepared.Run
	pods     *follow.PodSet
	followed follow.Followed
	objects  *follow.ObjectSet // nil where the load is of pods
	holdings *Holdings
	// Evict asks for what is measured where that is no request to the object, nil
	// where it is one.
	Evict   func(ctx context.Context, object string, slot record.Slot) record.Slot
	fail    func(error)
	levels  map[string]string // names of priority levels by UID
	allowed atomic.Bool       // an object was created: the user has the right to
	slots   sync.Map          // the planned slot of each object that something further is asked of
}

// NewSender makes what creates objects that watch follows. Fail ends the run;
// levels are the names of the server's priority levels.
func NewSender(common *prepared.Run, watch *follow.Observer, holdings *Holdings, fail func(error), levels map[string]string) *Sender {
	return &Sender{Run: common, pods: watch.Pods, followed: watch.Followed, objects: watch.Objects, holdings: holdings, fail: fail, levels: levels}
}

// Send creates the objects of one slot, one after the other, and tells what
// became of each.
func (s *Sender) Send(ctx context.Context, p PlannedSlot) record.Slot {
	if p.asking != nil {
		return s.ask(ctx, p)
	}
	component := s.componentOf(p)
	manifests, err := p.maker.make(p.Slot)
	if err == nil && p.begin {
		manifests, err = s.beginning(manifests)
	}
	var made map[string]int // by kind
	if len(p.maker.waits) > 0 {
		made = make(map[string]int)
		defer func() {
			for _, a := range p.maker.waits {
				a.ask(made[a.kind] - a.perSlot) // what was not made is not waited for
			}
		}()
	}
	if err != nil || len(manifests) == 0 {
		slot := record.Slot{Slot: p.Namespace + "/" + p.maker.template.Name(), Component: component, Iteration: p.Iteration, Outcome: record.SlotFailed}
		if err != nil {
			slot.Error = err.Error()
		} else {
			slot.Outcome = record.SlotCreated // the template writes nothing for this slot
		}
		return slot
	}
	if s.Load.Objects != nil && len(s.Load.Objects.Then) > 0 && p.maker.units > 0 {
		s.slots.Store(manifests[len(manifests)-1].slot, p)
	}
	var last record.Slot
	var before *record.Slot
	for i := range manifests {
		begin := s.Clock.Now()
		slot := s.create(ctx, &manifests[i], component)
		if made != nil && slot.Outcome == record.SlotCreated {
			made[manifests[i].kind]++
		}
		slot.Iteration, slot.Before = p.Iteration, before
		if p.Replica > 1 {
			slot.Replica = p.Replica
		}
		if i == len(manifests)-1 {
			last = slot
			break
		}
		slot.Intended, slot.Sent, slot.Replied = begin, begin, s.Clock.Now()
		before = &slot
	}
	return last
}

func (s *Sender) componentOf(p PlannedSlot) string {
	if s.Load.Component == nil {
		return ""
	}
	return s.Load.Component(p.maker.jobIndex, p.Object)
}

// create creates one object, through the server's passing troubles, and
// settles by its name what an answer that never came leaves open.
func (s *Sender) create(ctx context.Context, m *manifest, component string) record.Slot {
	slot := record.Slot{Slot: m.slot, Component: component, Units: m.units, Grouped: m.grouped, Outcome: record.SlotUnknown}
	if m.units == 0 {
		slot.Resource = m.kind
	}
	s.Client.Wanted.Add(1)
	defer s.Client.Wanted.Add(-1)
	if m.begins && s.Evict != nil {
		return s.Evict(ctx, m.slot, slot)
	}
	if name := api.ObjectName(m.namespace, m.name); !m.begins {
		s.pods.Creating(name)
		defer s.pods.Created(name)
	}
	buf := answers.Get().(*bytes.Buffer)
	defer answers.Put(buf)
	deadline := s.Clock.Now() + record.MicrosOf(s.Load.RetryFor())
	answersBefore := s.Client.Answers.Load()
	unsure := false // an earlier attempt may have succeeded
	pause := api.FirstPause
	// The attempt under way is worth its answer even if ctx ends.
	rest, end := system.Outlive(ctx)
	defer end()
	for {
		var query url.Values
		if m.contentType == string(types.ApplyYAMLPatchType) {
			query = applied()
		}
		r, err := s.Client.Try(rest, cmp.Or(m.method, http.MethodPost), m.path, query, m.contentType, m.body, buf)
		overtaken := !m.begins && r.Overtaken()
		switch {
		case err != nil:
			unsure = true
			if cause := context.Cause(rest); cause != nil {
				err = cause // the request only says that it was cut
			}
			slot.Code, slot.Error = 0, err.Error()
			s.troubled(&slot, r)
		case r.Code < 300 || r.Code == http.StatusNotFound && m.method == http.MethodDelete:
			slot.Code, slot.Error, slot.Outcome = r.Code, "", record.SlotCreated
			s.allowed.Store(true)
			s.created(m, &slot, r.Body)
			return slot
		case r.Code == http.StatusConflict && unsure && !overtaken:
			return s.settle(ctx, m, slot, answersBefore, true)
		default:
			slot.Code, slot.Error = r.Code, r.Err().Error()
			if r.Code == http.StatusTooManyRequests {
				if slot.Throttled++; slot.Throttled == 1 {
					slot.ThrottledAt = s.Clock.Now()
				}
			} else if r.Code >= 500 {
				unsure = true
			}
			if r.Denied() && s.allowed.Load() {
				// It was allowed before: the server may just have started.
				deadline = min(deadline, s.Clock.Now()+record.MicrosOf(api.DenialPatience))
			} else if !r.Transient() && !overtaken {
				slot.Outcome = record.SlotFailed
				return slot
			}
			s.troubled(&slot, r)
			pause = max(pause, r.RetryAfter())
		}
		if s.Clock.Now()+record.MicrosOf(pause) > deadline {
			return s.settle(ctx, m, slot, answersBefore, false)
		}
		if !api.Sleep(ctx, pause) {
			return s.settle(ctx, m, slot, answersBefore, false)
		}
		slot.Retries++
		pause = min(2*pause, api.LastPause)
	}
}

// troubled notes why a request is tried again: of several reasons the first
// that was an answer of 429, or else the first of all.
func (s *Sender) troubled(slot *record.Slot, r api.Reply) {
	throttled := r.Code == http.StatusTooManyRequests
	if slot.Trouble != "" && (!throttled || slot.TroubleCode == http.StatusTooManyRequests) {
		return
	}
	slot.Trouble, slot.TroubleCode = slot.Error, slot.Code
	if r.Level() == "" || !throttled {
		return
	}
	slot.Trouble += " (priority level " + cmp.Or(s.levels[r.Level()], r.Level()) + ")"
}

// answers are buffers for the answers of the load's requests.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// created notes what an object that was created tells of itself.
func (s *Sender) created(m *manifest, slot *record.Slot, body []byte) {
	if m.begins {
		return
	}
	s.holdings.add(m)
	if s.Load.AsItIs && m.units > 0 {
		s.holdings.fill(m.slot, m.units)
	}
	if m.grouped {
		s.followed.ExpectMade(m.units)
		s.pods.Made(m.kind, api.ObjectName(m.namespace, m.name), m.slot)
	}
	if m.kind != "Pod" || s.Load.Planted == nil && !s.Load.Places {
		return
	}
	raw, err := api.OpenEnvelope(body)
	if err != nil {
		return
	}
	uid, _ := api.DecodeMeta(raw)
	if s.Load.Places && slot.Component != "" {
		s.pods.SetComponent(uid, slot.Component)
	}
	if s.Load.Planted != nil {
		slot.Delay = record.MicrosOf(s.Load.Planted(uid, m.latency))
	}
}

// settle asks by name for an object whose creation was never answered. When
// the server has answered nothing at all since then, it is out of reach, which
// ends the run: each further request would wait as long. Taken says that the name was
// there: where it is gone by now, whose that was is unknown.
func (s *Sender) settle(ctx context.Context, m *manifest, slot record.Slot, answersBefore int64, taken bool) record.Slot {
	if m.begins {
		return slot // whether it was done is not told by the object's name
	}
	rest, end := system.Outlive(ctx)
	defer end()
	ctx, cancel := context.WithTimeout(rest, min(settleFor, s.Load.RetryFor()))
	defer cancel()
	for {
		r, err := s.Client.Try(ctx, http.MethodGet, m.path+"/"+m.name, nil, "", nil, new(bytes.Buffer))
		switch {
		case err == nil && r.Code == http.StatusNotFound:
			if !taken {
				slot.Outcome = record.SlotFailed
			}
			return slot
		case err == nil && r.Code < 300:
			if s.isOurs(r.Body) {
				slot.Code, slot.Error, slot.Outcome = http.StatusCreated, "", record.SlotCreated
				s.created(m, &slot, r.Body)
			} else {
				slot.Code, slot.Outcome, slot.Error = http.StatusConflict, record.SlotFailed, "an object of that name exists and is not of this run"
			}
			return slot
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			if s.Client.Answers.Load() == answersBefore && rest.Err() == nil {
				s.fail(&api.OutOfReachError{Server: s.Client.Base.Host, Patience: s.Load.RetryFor(), Last: slot.Error})
			}
			return slot
		}
	}
}

// settleFor bounds how long an open outcome is asked for.
const settleFor = 10 * time.Second

// isOurs reports whether an object that was read carries this run's label.
func (s *Sender) isOurs(body []byte) bool {
	object, err := api.MetadataOf(body)
	return err == nil && object.Labels[api.LabelRun] == s.Load.RunID
}

// beginning is what asks the objects among manifests, which were set up, for
// what is measured. From then on they are followed.
func (s *Sender) beginning(manifests []manifest) (list []manifest, err error) {
	for _, m := range manifests {
		if m.units == 0 {
			continue
		}
		b := manifest{kind: m.kind, namespace: m.namespace, name: m.name, slot: m.slot, units: m.units}
		if err := s.asks(&b, s.Load.Objects.Begin.Ask); err != nil {
			return nil, err
		}
		s.objects.Begin(m.slot)
		list = append(list, b)
	}
	return list, nil
}

// asks makes a request to the object that m names of what is asked of it; a drain
// asks by the name of its pod.
func (s *Sender) asks(m *manifest, ask described.Ask) (err error) {
	m.begins, m.path = true, s.objects.Path(m.slot)
	switch {
	case ask.Put != "":
		m.method, m.contentType, m.body = http.MethodPut, "application/json", []byte("{}")
		m.path = "/" + strings.TrimPrefix(strings.NewReplacer("{namespace}", m.namespace, "{name}", m.name).Replace(ask.Put), "/")
	case ask.Patch != nil:
		m.method, m.contentType = http.MethodPatch, "application/merge-patch+json"
		if m.body, err = json.Marshal(ask.Patch); err != nil {
			return fmt.Errorf("encode the patch of %s: %w", m.slot, err)
		}
	}
	return nil
}

// Further asks of an object what is asked once it has reached a milestone.
func (s *Sender) Further(ctx context.Context, name string, then *described.Then) error {
	var manifests []manifest
	if then.Job == "" {
		m := manifest{slot: name, method: http.MethodDelete}
		m.namespace, m.name, _ = strings.Cut(name, "/")
		if err := s.asks(&m, then.Ask); err != nil {
			return err
		}
		manifests = append(manifests, m)
	} else if p, ok := s.slots.Load(name); ok {
		var err error
		if manifests, err = p.(PlannedSlot).ofJob(then.Job); err != nil {
			return err
		}
	}
	for i := range manifests {
		if slot := s.create(ctx, &manifests[i], ""); slot.Outcome != record.SlotCreated {
			return errors.New(cmp.Or(slot.Error, "no answer"))
		}
	}
	return nil
}

// SetUp makes what the load needs before it begins, and is what could not be
// made.
func (s *Sender) SetUp(ctx context.Context, slots []PlannedSlot) error {
	return api.InParallel(ctx, len(slots), setUpWorkers, 0, func(ctx context.Context, i int) error {
		slot := s.Send(ctx, slots[i])
		for at := &slot; at != nil; at = at.Before {
			if at.Outcome != record.SlotCreated {
				return fmt.Errorf("create %s: %s", at.Slot, at.Error)
			}
		}
		return nil
	})
}

// setUpWorkers is how many objects are set up at once.
const setUpWorkers = 32
