// Package simulated is a target whose limit, latency and faults are planted: the ground truth for tests
// of search, accounting and quantiles. It runs on the clock of the time package, for a user the real one,
// in a test that of a synctest bubble, where it takes no time.
package simulated

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// The axes that the simulated target can be raised along.
const (
	axisObjects = "objects"
	axisRate    = "rate"
)

// Objects describes the kind of object that the simulated target is loaded with.
func Objects() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "object", Many: "objects"}, Place: record.Noun{One: "place", Many: "places"},
		Milestones: []record.Milestone{
			{Name: created, Owner: "server"}, {Name: placed, Owner: "placement"}, {Name: ready, Owner: "places"}, {Name: removed, Owner: "server"},
		},
		Created: created, Placed: placed, Started: ready, There: ready, Gone: removed, Unplaced: unplaced,
		Measures: []record.Measure{
			record.RequestErrors(0),
			{Name: placesNotReady, Help: "places that are not ready"},
		},
		Metrics: record.UseOf(source, "the objects (planted)"),
		Troubles: []record.Trouble{
			{Class: "scheduling", What: "no place had room for objects", Reasons: []string{unplaced}},
			{Class: "restarts", What: "objects were planted to fail", Reasons: []string{plantedFailure}},
		},
	}
}

const source = "simulated" // names what objects cost, among the sources of samples

// Provider opens simulated targets.
type Provider struct{}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	requests := Requests()
	return workload.Target{Name: "simulated", Kind: Objects(), Axes: map[string]workload.TargetAxis{
		axisObjects: {Loop: workload.Closed}, axisRate: {Loop: workload.Open},
		axisRequests: {Loop: workload.Open, Stream: &requests}, axisClients: {Loop: workload.Closed, Stream: &requests},
	}}
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	s := &session{Request: r}
	return s, s.Prepare(ctx)
}

// Needs implements system.Provider: it runs no program.
func (Provider) Needs() []proc.Program { return nil }

// Outline implements system.Provider: nothing is touched.
func (Provider) Outline(context.Context, system.Request) ([]system.Change, error) {
	return []system.Change{}, nil
}

type session struct {
	system.Request
	plans map[string]Plan
	stall time.Duration

	mu       sync.Mutex
	instance *Target // nil before it is open
	made     uint64  // how many were
}

// Consent implements system.Session: nothing is changed.
func (*session) Consent(context.Context) (*system.Consent, error) { return nil, nil }

// Sweep implements system.Session: nothing is left.
func (*session) Sweep(context.Context) error { return nil }

// Prepare implements system.Session.
func (s *session) Prepare(context.Context) error {
	s.plans = make(map[string]Plan)
	return s.EachArm(func(arm string, given map[string]string) error {
		params, err := s.Resolve(given)
		if err != nil {
			return err
		}
		planned := planted(params, time.Duration(s.Plan.Axis.Life))
		planned.Stream = s.streams()
		s.plans[arm] = planned
		if arm == "" {
			s.stall = params.Duration("stall")
		}
		return nil
	})
}

func planted(p workload.Params, life time.Duration) Plan {
	delay := func(name string) dist.Dist {
		d, _ := dist.Parse(p.Get(name))
		return d
	}
	planned := Plan{
		Places: int(p.Int("places")), Limit: int(p.Int("limit")), Flaky: p.Number("flaky"), Latency: delay("latency"), Rate: p.Number("capacity"), Life: life,
		Servers: int(p.Int("servers")), Service: p.Duration("service"), FailEvery: int(p.Int("failEvery")), ThrottleEvery: int(p.Int("throttleEvery")),
		LoseAfter: int(p.Int("loseAfter")), UnhealthyAt: int(p.Int("unhealthyAt")), Removal: p.Duration("removal"),
		TakeAt: int(p.Int("takeAt")), Take: p.Get("take"), TakeFor: p.Duration("takeFor"),
		CPU: p.Duration("cpuPerObject").Seconds(), Memory: float64(p.Int("memoryPerObject")),
		Connect: delay("connect"), Pause: p.Duration("pause"), RandomArrivals: p.Get("arrivals") == "random", Generator: p.Number("generator"),
	}
	if noise := p.Number("noise"); noise > 0 {
		// The limit is soft then: half of all fills fail there.
		planned.SoftAt, planned.SoftWidth, planned.Limit = float64(planned.Limit), noise*float64(planned.Limit), 0
	}
	return planned
}

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	axis, err := s.Workload.Axis(s.Plan.Axis.Name)
	found := system.Survey{Target: naming(), Kind: s.Workload.KindOn(axis.Name)}
	if err != nil {
		return found, err
	}
	arms := s.Plan.Arms
	if len(arms) == 0 {
		arms = []plan.Arm{{}}
	}
	for _, arm := range arms {
		planned, none := s.plans[arm.Name], 0
		table := record.CeilingTable{
			Workload: s.Workload.Name, Axis: axis.Name, Unit: axis.Unit, Arm: arm.Name, Places: &planned.Places, AllPlaces: &planned.Places, Others: &none,
			Simulated: planned.Places, Ceilings: []record.Ceiling{}, Notes: []string{"the limits are planted: a search should find them"},
		}
		if rate := planned.Rate; planned.Stream && axis.Loop == workload.Open && rate > 0 {
			table.Ceilings = append(table.Ceilings, record.Ceiling{
				Name: "plantedCapacity", What: "planted capacity of the server", Class: record.CeilingHard, Level: &rate, Unit: axis.Unit, Binds: true,
				Reason: "the server begins with no more requests a second", Sign: "no more requests a second", From: "the parameter capacity",
			})
		}
		if limit := float64(planned.Limit); axis.Name == axisObjects && limit > 0 {
			table.Ceilings = append(table.Ceilings, record.Ceiling{
				Name: "plantedLimit", What: "planted limit of the places", Class: record.CeilingHard, Level: &limit, Unit: axis.Unit, Binds: true,
				Reason: unplaced + ": " + full, Sign: unplaced, From: "the parameter limit",
			})
		}
		found.Tables = append(found.Tables, table)
	}
	return found, nil
}

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	b := system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: 64, MaxInFlightOpen: 256, Stall: s.stall}
	if s.streams() {
		b.MaxInFlightOpen = 10_000
	}
	return b
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Each part of a run draws other numbers: a step that is made again meets another chance.
	s.made += uint64(len(s.Before)) + 1
	s.instance = New(s.plans[""], rand.New(rand.NewPCG(s.Plan.Seed, s.made)), rec.Sink, rec.Clock, rec.Step)
	s.instance.arms = s.plans
	return s.instance, nil
}

func (s *session) streams() bool { return s.Workload.TargetAxis(s.Plan.Axis.Name).Streams() }

// Readings implements system.Session.
func (s *session) Readings() []record.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance == nil {
		return nil
	}
	t := s.instance
	t.mu.Lock()
	defer t.mu.Unlock()
	return []record.Reading{{Source: source, Values: map[string]float64{
		"cpuSeconds": t.cpu, "rssBytes": t.plan.Memory * float64(len(t.living)),
	}}}
}

// Renew implements system.Session.
func (*session) Renew(context.Context) error {
	return fmt.Errorf("a simulated target cannot be recreated")
}

// Close implements system.Session.
func (*session) Close() error { return nil }
