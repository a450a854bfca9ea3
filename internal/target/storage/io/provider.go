package io

import (
	"context"
	"errors"

	"plimsoll.dev/plimsoll/internal/lab/starter"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/local"
	"plimsoll.dev/plimsoll/internal/target/local/fio"
)

// Provider opens volumes.
type Provider struct{}

// Name is the target's name.
const Name = "io"

// rooms are the directories of the runs.
func rooms() local.Rooms { return local.Rooms{Kind: "io", Before: removeVolumes} }

// SweepHost implements target.Sweeper.
func (Provider) SweepHost(h target.Host) error { return rooms().SweepHost(h) }

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
	return &session{Session: local.Session{Request: r, Rooms: rooms(), Tied: starter.New()}}, nil
}

// session is the volumes of one run.
type session struct {
	local.Session
	arms map[string]settings
}

// Prepare implements target.Session.
func (s *session) Prepare(ctx context.Context) error {
	s.arms = make(map[string]settings)
	err := s.EachArm(func(arm string, given map[string]string) error { return s.prepare(ctx, arm, given) })
	if err != nil {
		return err
	}
	return s.MakeRoom()
}

func (s *session) prepare(ctx context.Context, arm string, given map[string]string) error {
	params, err := s.Resolve(given)
	if err != nil {
		return err
	}
	_, notSmall := s.Workload.Param("files")
	one, err := settingsOf(params, notSmall == nil, given)
	if err != nil {
		return err
	}
	axis := s.axis()
	for _, level := range s.Plan.Levels() {
		if err := one.along(axis, level).check(axis); err != nil {
			return err
		}
	}
	if one.small != nil {
		s.arms[arm] = one
		return one.checkGluster()
	}
	path := params.Get("fio")
	if one.binary, err = fio.Find(ctx, path); err != nil {
		var missing *fio.NotFoundError
		switch {
		case path != "":
			return target.ParamMistake("fio", "give the path of an fio", "%w", err)
		case errors.As(err, &missing):
			return &target.UnableError{Err: err, Hint: "install it: " + fio.Install + ", or give its path: --set fio=PATH"}
		}
		return err
	}
	if err := one.checkJob(ctx); err != nil {
		return err
	}
	s.arms[arm] = one
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
	i := &instance{session: s, rec: rec}
	s.Loads(i)
	return i, nil
}
