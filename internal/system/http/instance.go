package http

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
)

const (
	probeBound = 10 * time.Second // for a request that is tried before the load
	mostErrors = 50               // percent of the latest requests that may fail before the load ends
	atPace     = 0.9              // of the pace, from which on it bounds a closed loop
)

// instance loads the server.
type instance struct {
	*session
	local.Rig[settings]
	last atomic.Pointer[settings] // of the last step, nil before the first one
}

type step struct {
	local.Requests
	here   bool // the server is one of this machine's
	sent   int  // after the warm-up
	at     record.Micros
	wanted float64 // seconds that this program ran or waited for a processor until then
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	return record.Environment{
		Start: i.Rec.Clock.Start(), Target: i.naming(),
		Fidelity: local.Fidelity(fmt.Sprintf("%s (%s) is real and not plimsoll's: nothing was seen of it but its answers", i.server, i.server.address)),
		Facts:    []record.Fact{listFact(i.arms[""].digest)},
	}, nil
}

func (i *instance) start(_ context.Context, one settings, _ *system.Level) (local.Load, error) {
	i.last.Store(&one)
	s := &step{here: i.server.here}
	s.Requests = local.Requests{Plan: one.plan, Client: "this machine", Sees: s.sees, Read: s.read, Stop: func() error { return nil }}
	return s, i.Begin(&s.Requests)
}

// sees counts the requests that are judged.
func (s *step) sees(w *record.Window) error {
	if !w.WarmUp {
		s.sent += w.Sent
	}
	return nil
}

// Stream implements local.Load.
func (s *step) Stream(ctx context.Context, schedule system.Schedule) error {
	err := s.Requests.Stream(ctx, schedule)
	if rate := float64(s.sent) / schedule.Hold.Seconds(); !schedule.Open && rate > atPace*s.Plan.Pace {
		s.Note("the load was bound by maxRate, at most %g requests a second, and not by the server", s.Plan.Pace)
	}
	return err
}

// read reads what the generator uses, and the machine that it runs on.
func (s *step) read() []record.Reading {
	machine := telemetry.Reading()
	if s.here {
		machine.Values["targetUnread"] = 1 // the server is one of the programs of this machine
	}
	now, wanted, values := s.Rec.Clock.Now(), proc.Wanted(os.Getpid()), s.Counts().Values()
	if seconds := (now - s.at).Seconds(); s.at > 0 && seconds > 0.1 {
		values["demand"] = min((wanted-s.wanted)/seconds/float64(s.Plan.Threads), 1)
	}
	s.at, s.wanted = now, wanted
	return []record.Reading{machine, {Source: sourceLoad, Values: values}}
}

// Health implements system.Target: after a step that a guard stopped, the server has to answer again.
func (i *instance) Health(context.Context) (map[string]float64, error) {
	var err error
	if last := i.last.Load(); last != nil && i.Current() == nil {
		i.probe(last.plan, func(request, failed string) bool {
			err = fmt.Errorf("the server does not answer %s: %s", request, failed)
			return false
		})
	}
	return map[string]float64{}, err
}

// Renew implements system.Session.
func (*session) Renew(context.Context) error {
	return errors.New("a server that is not plimsoll's cannot be made again")
}
