// Package io loads volumes, or any file systems, with IO: one fio for each
// volume.
package io

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/lab/starter"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/storage/fio"
)

// Provider opens volumes.
type Provider struct{}

// Name is the target's name.
const Name = "io"

// rooms is where the directories of runs are, below the state directory.
const rooms = "io"

// Declare implements target.Provider.
func (Provider) Declare() workload.Target {
	kind, small := operations(), fileOperations()
	return workload.Target{Name: Name, Kind: kind, Axes: map[string]workload.TargetAxis{
		axisVolumes: {Loop: workload.Closed, Stream: &kind}, axisDepth: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
		axisWorkers: {Loop: workload.Closed, Stream: &small}, axisOperations: {Loop: workload.Open, Stream: &small},
	}}
}

// Outline implements target.Provider.
func (Provider) Outline(r target.Request) ([]target.Change, error) {
	return []target.Change{
		{Action: target.Make, What: "volumes of a GlusterFS of its own, or directories where path is given, with files that are read and written"},
		{Action: target.Make, What: "an fio for each volume", Each: "step"},
	}, nil
}

// Open implements target.Provider.
func (Provider) Open(_ context.Context, r target.Request) (target.Session, error) {
	return &session{Request: r, tied: starter.New()}, nil
}

// session is the volumes of one run.
type session struct {
	target.Request
	tied *starter.Starter
	arms map[string]settings
	room *room.Room // nil before it is made

	mu       sync.Mutex
	instance *instance // nil before it is open
}

// Consent implements target.Session: what is changed is ours.
func (*session) Consent(context.Context) (*target.Consent, error) { return nil, nil }

// Sweep implements target.Session.
func (s *session) Sweep(context.Context) error { return Provider{}.SweepHost(s.Host) }

// SweepHost implements target.Sweeper.
func (Provider) SweepHost(h target.Host) error {
	state, err := h.StateDir()
	if err != nil {
		return err
	}
	return room.RemoveDead(state, rooms, removeVolumes)
}

// Prepare implements target.Session.
func (s *session) Prepare(ctx context.Context) error {
	s.arms = make(map[string]settings)
	for _, arm := range append([]plan.Arm{{}}, s.Plan.Arms...) {
		if err := s.prepare(ctx, arm); err != nil {
			if arm.Name != "" {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			return err
		}
	}
	state, err := s.StateDir()
	if err != nil {
		return err
	}
	s.room, err = room.Make(state, rooms, s.Run)
	return err
}

func (s *session) prepare(ctx context.Context, arm plan.Arm) error {
	given := make(map[string]string)
	for _, params := range []map[string]string{s.Plan.Params, arm.Params} {
		for name, value := range params {
			given[name] = value
		}
	}
	params, err := s.Workload.Resolve(given)
	if err != nil {
		return target.Mistakef("", "%w", err)
	}
	_, notSmall := s.Workload.Param("files")
	one, err := settingsOf(params, notSmall == nil, given)
	if err != nil {
		return err
	}
	axis := s.axis()
	for _, level := range levels(s.Plan) {
		if err := one.along(axis, level).check(axis); err != nil {
			return err
		}
	}
	if one.small != nil {
		s.arms[arm.Name] = one
		return one.checkGluster()
	}
	path := params.Get("fio")
	if one.binary, err = fio.Find(ctx, path); err != nil {
		var missing *fio.NotFoundError
		switch {
		case path != "":
			return mistake("fio", "give the path of an fio", "%w", err)
		case errors.As(err, &missing):
			return &target.UnableError{Err: err, Hint: "install it: " + fio.Install + ", or give its path: --set fio=PATH"}
		}
		return err
	}
	if err := one.checkJob(ctx); err != nil {
		return err
	}
	s.arms[arm.Name] = one
	return one.checkGluster()
}

// axis is the target's axis that the plan is made along.
func (s *session) axis() string {
	axis, err := s.Workload.Axis(s.Plan.Axis.Name)
	if err != nil {
		return ""
	}
	return axis.Means
}

// Survey implements target.Session.
func (s *session) Survey(context.Context, bool) (target.Survey, error) {
	return target.Survey{Target: naming(), Version: s.arms[""].binary.Version, Kind: s.Workload.KindOn(s.Plan.Axis.Name), Findings: []record.HealthFinding{}}, nil
}

func naming() record.TargetNaming { return record.TargetNaming{Kind: Name, Name: "fio", Private: true} }

// Bounds implements target.Session.
func (s *session) Bounds() target.Bounds {
	return target.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: mostVolumes * mostDepth, MaxInFlightOpen: mostVolumes * mostDepth}
}

// Target implements target.Session.
func (s *session) Target(_ context.Context, rec target.Recorder) (target.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instance = &instance{session: s, rec: rec}
	return s.instance, nil
}

// Readings implements target.Session.
func (s *session) Readings() []record.Reading {
	s.mu.Lock()
	i := s.instance
	s.mu.Unlock()
	if i == nil {
		return nil
	}
	return i.readings()
}

// Renew implements target.Session.
func (*session) Renew(context.Context) error {
	return errors.New("volumes are made for each arm: there is nothing to renew")
}

// Close implements target.Session.
func (s *session) Close() error {
	var err error
	if s.instance != nil {
		err = s.instance.close()
	}
	s.tied.Close()
	if s.room != nil {
		err = errors.Join(err, s.room.Remove())
	}
	return err
}
