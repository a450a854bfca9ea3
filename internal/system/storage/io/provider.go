// Package io loads volumes, or any file systems, with IO: one fio for each volume. The kernel's schedstat
// shows every 20 ms how long fio waits for a processor. The waits are divided among the IOs of that time: a
// mean over the hold would hide the few long waits that make a p99.
package io

import (
	"context"
	"errors"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// Provider opens volumes.
type Provider struct{}

// Name is the target's name.
const Name = "io"

func rooms() local.Rooms { return local.Rooms{Target: Name, Kind: "io", Elsewhere: volumesPrefix} }

// SweepHost implements system.Sweeper.
func (Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	return rooms().SweepHost(ctx, h, removes)
}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	kind, small := operations(), fileOperations()
	return workload.Target{Name: Name, Kind: kind, Programs: []string{"fio"}, Files: []string{"job"}, Directories: []string{"path"}, Axes: map[string]workload.TargetAxis{
		axisVolumes: {Loop: workload.Closed, Stream: &kind}, axisDepth: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind},
		axisWorkers: {Loop: workload.Closed, Stream: &small}, axisOperations: {Loop: workload.Open, Stream: &small},
	}, Facts: append(record.Versions(map[string]string{"fio": "", "glusterfs": "", "PostgreSQL": ""}), local.FileSystem(), record.RunsAs("fio", ""), record.RunsAs("the program of small files", ""))}
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program {
	needs := append([]proc.Program{fio.Program()}, postgresNeeds()...)
	for i := range needs[1:] {
		needs[1+i].Optional = "for beside=" + pgbenchName
	}
	return append(needs, gluster.Needs()...)
}

// Outline implements system.Provider.
func (Provider) Outline(ctx context.Context, r system.Request) ([]system.Change, error) {
	s := &session{Session: local.Session{Request: r}}
	err := s.EachArm(func(_ string, given map[string]string) error {
		one, params, err := s.read(given)
		if err != nil || one.small != nil {
			return err
		}
		// A file's fio may be any program, so only trusted files are asked.
		if path := params.Get("fio"); path == "" || r.Trusted {
			one.binary, err = fio.Find(ctx, path)
			if _, lacking := errors.AsType[*proc.MissingError](err); lacking {
				return nil // another machine may run it
			}
			return one.ask(ctx, err, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []system.Change{
		{Action: system.Make, What: "volumes of a GlusterFS of its own, or directories where path is given, with files that are read and written"},
		{Action: system.Make, What: "an fio for each volume", Each: "step"},
	}, nil
}

// Open implements system.Provider.
func (Provider) Open(_ context.Context, r system.Request) (system.Session, error) {
	return &session{Session: local.Session{Request: r, Rooms: rooms(), Tied: proc.NewTie()}}, nil
}

type session struct {
	local.Session
	arms map[string]settings
}

// Prepare implements system.Session.
func (s *session) Prepare(ctx context.Context) error {
	s.arms = make(map[string]settings)
	err := s.EachArm(func(arm string, given map[string]string) error { return s.prepare(ctx, arm, given) })
	if err != nil {
		return err
	}
	return s.MakeRoom()
}

func (s *session) prepare(ctx context.Context, arm string, given map[string]string) error {
	one, params, err := s.read(given)
	if err != nil {
		return err
	}
	for _, path := range one.paths {
		if err := one.probe(path); err != nil {
			return err
		}
	}
	if one.small == nil {
		path := params.Get("fio")
		one.binary, err = fio.Find(ctx, path)
		if err := one.ask(ctx, err, path); err != nil {
			return err
		}
	}
	s.arms[arm] = one
	if one.gluster == nil {
		return nil
	}
	return gluster.Able(one.gluster.XFS, ", or name a directory or mount: --set path=DIR")
}

// ask makes fio check the job, if fio was found.
func (s settings) ask(ctx context.Context, found error, path string) error {
	switch {
	case found != nil && path != "":
		return system.ParamMistake("fio", "give the path of an fio", "%w", found)
	case found != nil:
		return system.Lacking(found, ", or give its path: --set fio=PATH")
	}
	text, err := s.jobText()
	if err != nil {
		return err
	}
	return s.refused(s.binary.Check(ctx, text))
}

// read checks the parameters of an arm and its job file. It starts nothing.
func (s *session) read(given map[string]string) (one settings, params workload.Params, err error) {
	if params, err = s.Resolve(given); err != nil {
		return one, params, err
	}
	_, notSmall := s.Workload.Param("files")
	if one, err = settingsOf(params, notSmall == nil, given); err != nil {
		return one, params, err
	}
	axis := s.axis()
	for _, level := range s.Plan.Levels() {
		if err := one.along(axis, level).check(axis); err != nil {
			return one, params, err
		}
	}
	if one.small == nil {
		_, err = one.jobText()
	}
	return one, params, err
}

// axis returns the target's name of the plan's axis.
func (s *session) axis() string {
	axis, err := s.Workload.Axis(s.Plan.Axis.Name)
	if err != nil {
		return ""
	}
	return axis.Means
}

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	return system.Survey{Target: naming(), Version: s.arms[""].binary.Version, Kind: s.Workload.KindOn(s.Plan.Axis.Name), Findings: []record.HealthFinding{}}, nil
}

func naming() record.TargetNaming { return record.TargetNaming{Kind: Name, Name: "fio", Private: true} }

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	return system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: mostVolumes * mostDepth, MaxInFlightOpen: mostVolumes * mostDepth}
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	i := &instance{session: s}
	i.Rig = local.Rig[settings]{Rec: rec, Seed: s.Plan.Seed, Arms: s.arms, Start: i.start}
	s.Loads(i)
	return i, nil
}
