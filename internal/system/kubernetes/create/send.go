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

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Sender creates the objects of a load, and sends its other requests.
type Sender struct {
	*prepared.Run
	watch    *follow.Observer
	pods     *follow.PodSet
	followed follow.Followed
	objects  *follow.ObjectSet // nil for pods
	holdings *Holdings
	// Evict begins the measured work where no request to the object does, else nil.
	Evict func(ctx context.Context, object string, slot record.Slot) record.Slot
	Hooks *Hooks // nil without hooks
	// Policies has pods try the connections that network policies allow; nil without any to measure.
	Policies *netpol.Trial
	fail     func(error)
	levels   map[string]string // names of priority levels by UID
	allowed  atomic.Bool       // an object was created, so the user has the right
	repeated atomic.Bool       // an object was asked for that the run had made before
	slots    sync.Map          // by name, the planned slot of objects with further requests
}

// NewSender makes a sender. fail ends the run; levels names the server's priority levels by UID.
func NewSender(common *prepared.Run, watch *follow.Observer, holdings *Holdings, fail func(error), levels map[string]string) *Sender {
	return &Sender{Run: common, watch: watch, pods: watch.Pods, followed: watch.Followed, objects: watch.Objects, holdings: holdings, fail: fail, levels: levels}
}

// Send creates the objects of one slot, one after the other, and reports the outcome of each.
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
				a.asked.Add(int64(made[a.kind] - a.perSlot)) // objects that were not made are not awaited
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
		s.moves(&manifests[i])
		slot := s.create(ctx, &manifests[i], component)
		if made != nil && slot.Outcome == record.SlotCreated && slot.Code != http.StatusConflict {
			made[manifests[i].kind]++
		}
		slot.Iteration = p.Iteration
		if p.Replica > 1 {
			slot.Replica = p.Replica
		}
		before = manifests[i].shared(slot, begin, s.Clock.Now(), before)
		if slot.Before = before; i == len(manifests)-1 {
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

// moves notes that a migration replaces the pod of its machine.
func (s *Sender) moves(m *manifest) {
	if m.kind != migration {
		return
	}
	name := api.ObjectName(m.namespace, gjson.GetBytes(m.body, "spec.vmiName").Str)
	if slot := s.pods.SlotOf(machine, name); slot != "" {
		s.Emit(&record.Release{Slots: []string{slot}, Renewed: true})
	}
}

// create creates an object through passing troubles, and settles a lost answer by the object's name.
func (s *Sender) create(ctx context.Context, m *manifest, component string) record.Slot {
	units, further := m.slots()
	counts := units+len(further) > 0
	slot := record.Slot{Slot: m.slot, Component: component, Units: units, Grouped: m.grouped, Outcome: record.SlotUnknown}
	if units == 0 {
		slot.Resource = m.kind
	}
	if m.kind != kubeburner.Services && m.kind != kubeburner.Policies || units > 0 { // one that cannot be called is not followed
		further = append(further, m.slot)
	}
	for _, name := range further {
		s.watch.Ask(name)
	}
	if m.kind == kubeburner.Policies && units > 0 {
		s.Policies.Ask(api.ObjectName(m.namespace, m.name))
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
	// The attempt under way may end even if ctx ends.
	rest, end := system.Outlive(ctx)
	defer end()
	for {
		var query url.Values
		if m.contentType == string(types.ApplyYAMLPatchType) {
			query = url.Values{"fieldManager": {api.ManagedBy}, "force": {"true"}}
		}
		r, err := s.Client.Try(rest, cmp.Or(m.method, http.MethodPost), m.path, query, m.contentType, m.body, buf)
		overtaken := !m.begins && r.Overtaken() || m.contended && r.Code == http.StatusUnprocessableEntity && slot.Retries < mostOvertaken
		switch {
		case err != nil:
			unsure = true
			if cause := context.Cause(rest); cause != nil {
				err = cause // the request's error only says that it was cut off
			}
			slot.Code, slot.Error = 0, err.Error()
			s.troubled(&slot, r)
		case r.Code < 300 || r.Code == http.StatusNotFound && m.method == http.MethodDelete:
			slot.Code, slot.Error, slot.Outcome = r.Code, "", record.SlotCreated
			s.allowed.Store(true)
			s.created(m, &slot, r.Body)
			if m.answered != nil {
				m.answered(r.Body)
			}
			return slot
		case r.Code == http.StatusConflict && unsure && !overtaken:
			return s.settle(ctx, m, slot, answersBefore, true)
		case r.Code == http.StatusConflict && !overtaken && s.Load.AsItIs && !m.begins && m.method == "" && !counts:
			// As in kube-burner, an object that the run has made stays.
			if slot = s.settle(ctx, m, slot, answersBefore, true); slot.Outcome == record.SlotCreated {
				slot.Code = http.StatusConflict
				if !s.repeated.Swap(true) {
					s.Emit(&record.Note{Warning: record.WarningConfig, Text: fmt.Sprintf("objects that the run has made are asked for again, and stay as they are, such as %s", m.slot)})
				}
			}
			return slot
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
				// The right existed before: the server may have just started.
				deadline = min(deadline, s.Clock.Now()+record.MicrosOf(api.DenialPatience))
			} else if !r.Transient() && !overtaken {
				slot.Outcome = record.SlotFailed
				return slot
			}
			s.troubled(&slot, r)
			pause = max(pause, r.RetryAfter())
		}
		if s.Clock.Now()+record.MicrosOf(pause) > deadline || !api.Sleep(ctx, pause) {
			return s.settle(ctx, m, slot, answersBefore, false)
		}
		slot.Retries++
		pause = min(2*pause, api.LastPause)
	}
}

// troubled notes why a request is retried: the first answer of 429, or else the first of all reasons.
func (s *Sender) troubled(slot *record.Slot, r api.Reply) {
	throttled := r.Code == http.StatusTooManyRequests
	if slot.Trouble != "" && (!throttled || slot.TroubleCode == http.StatusTooManyRequests) {
		return
	}
	slot.Trouble, slot.TroubleCode = slot.Error, slot.Code
	if r.Level() != "" && throttled {
		slot.Trouble += " (priority level " + cmp.Or(s.levels[r.Level()], r.Level()) + ")"
	}
}

var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (s *Sender) created(m *manifest, slot *record.Slot, body []byte) {
	if m.begins {
		return
	}
	s.holdings.add(m)
	if units, further := m.slots(); s.Load.AsItIs && units+len(further) > 0 {
		s.holdings.fill(m.slot, units, further)
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

// settle gets an object whose creation was never answered by name. If the server has answered nothing
// since, it is out of reach, which ends the run. taken says that the name existed: if it is gone now,
// whose it was is unknown.
func (s *Sender) settle(ctx context.Context, m *manifest, slot record.Slot, answersBefore int64, taken bool) record.Slot {
	if m.begins {
		return slot // the object's existence does not show the outcome
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
			if object, err := api.MetadataOf(r.Body); err == nil && object.Labels[api.LabelRun] == s.Load.RunID {
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

const mostOvertaken = 10 // further attempts of a contended request

const settleFor = 10 * time.Second // bounds the retries of settle

// beginning returns the requests that begin the objects among manifests, and follows these from now on.
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

// asks sets the request of m to its object; an eviction names the pod.
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

// Further makes an object's requests after a milestone.
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

// SetUp makes the objects that the load needs first. The error names the first failure.
func (s *Sender) SetUp(ctx context.Context, slots []PlannedSlot) error {
	return api.InParallel(ctx, len(slots), 32, 0, func(ctx context.Context, i int) error {
		slot := s.Send(ctx, slots[i])
		for at := &slot; at != nil; at = at.Before {
			if at.Outcome != record.SlotCreated {
				return fmt.Errorf("create %s: %s", at.Slot, at.Error)
			}
		}
		return nil
	})
}
