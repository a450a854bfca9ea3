// Package volumes loads its own GlusterFS with volumes: it makes, mounts, writes and deletes them. The
// memory of processes is the sum of their proportional shares (PSS), since they share pages.
package volumes

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// Provider opens GlusterFS.
type Provider struct{}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	gone, hurt := deletions(), bricks()
	return workload.Target{Name: Name, Kind: volumes(), Axes: map[string]workload.TargetAxis{
		axisVolumes: {Loop: workload.Closed}, axisRate: {Loop: workload.Open},
		axisDeletions: {Loop: workload.Closed, Whole: true, Kind: &gone}, axisBricks: {Loop: workload.Closed, Whole: true, Kind: &hurt},
	}, Facts: []record.Fact{record.Version("glusterfs", ""), local.FileSystem()}}
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program { return gluster.Needs() }

// Outline implements system.Provider.
func (Provider) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	if r.Workload != nil {
		s := &session{Session: local.Session{Request: r}}
		if err := s.resolve(); err != nil {
			return nil, err
		}
	}
	each := ""
	if len(r.Plan.Arms) > 0 {
		each = "run of an arm"
	}
	return []system.Change{
		{Action: system.Make, What: "a GlusterFS of its own: storage servers and a client in namespaces of their own", Each: each},
		{Action: system.Make, What: "volumes with their bricks, in the run's directory", Each: "level"},
	}, nil
}

func rooms() local.Rooms { return local.Rooms{Target: Name, Kind: "volumes"} }

// SweepHost implements system.Sweeper.
func (Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	return rooms().SweepHost(ctx, h, removes)
}

// Open implements system.Provider.
func (Provider) Open(_ context.Context, r system.Request) (system.Session, error) {
	s := &session{Session: local.Session{Request: r, Rooms: rooms()}}
	if r.Workload == nil {
		return s, nil
	}
	if err := s.resolve(); err != nil {
		return nil, err
	}
	if r.ToRead {
		return s, nil
	}
	xfs := false
	for _, one := range s.arms {
		xfs = xfs || one.gluster.XFS
	}
	if err := gluster.Able(xfs, ""); err != nil {
		return nil, err
	}
	s.Tied = proc.NewTie()
	return s, nil
}

// session holds our GlusterFS for one run.
type session struct {
	local.Session
	arms map[string]settings
}

func (s *session) resolve() error {
	s.arms = make(map[string]settings)
	return s.EachArm(func(arm string, given map[string]string) error {
		params, err := s.Resolve(given)
		if err != nil {
			return err
		}
		s.arms[arm], err = settingsOf(params, time.Duration(s.Plan.Axis.Life))
		return err
	})
}

// Prepare implements system.Session.
func (s *session) Prepare(context.Context) error { return s.MakeRoom() }

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	found := system.Survey{Target: naming(), Version: gluster.Version(), Findings: []record.HealthFinding{}}
	if s.Workload == nil {
		return found, nil
	}
	found.Kind = kindOn(s.Workload.KindOn(s.Plan.Axis.Name), s.arms)
	axis, err := s.Workload.Axis(s.Plan.Axis.Name)
	if err != nil || axis.Name == axisRate {
		return found, err // a rate has few volumes at a time
	}
	arms := s.Plan.Arms
	if len(arms) == 0 {
		arms = []plan.Arm{{}}
	}
	for _, arm := range arms {
		one := s.arms[arm.Name]
		found.Tables = append(found.Tables, ceilingsOf(one, readFacts(one), record.CeilingTable{
			Workload: s.Workload.Name, Axis: axis.Name, Unit: axis.Unit, Arm: arm.Name,
			Ceilings: []record.Ceiling{}, Notes: []string{},
		}))
	}
	return found, nil
}

func naming() record.TargetNaming {
	return record.TargetNaming{Kind: "GlusterFS", Name: "glusterfs", Private: true}
}

const mostMemory = 90 // percentage of the memory that GlusterFS may use

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	most := 1
	for _, one := range s.arms {
		most = max(most, one.creators)
	}
	return system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: most, MaxInFlightOpen: 64, Guards: plan.Guards{measureMemory: {Value: mostMemory, Percent: true}}, Stall: 2 * time.Second}
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	i := &instance{session: s, rec: rec, axis: s.Plan.Axis.Name}
	i.meter.forget()
	s.Loads(i)
	return i, nil
}
