// Package network is the target of network paths: a generator and a server in two machines within this
// one, joined in several ways. The kernel counts what crosses the path and what it costs.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// Provider opens network paths.
type Provider struct{}

const name = "network" // target's name

// Names in records of the workload that loads paths.
const (
	Workload  = "network-path"
	ParamPath = "path"
	ParamMTU  = "mtu"
	Direct    = "direct" // the path that others are compared with
)

func rooms() local.Rooms {
	return local.Rooms{Target: name, Kind: "networks", Elsewhere: "plimsoll-network-"}
}

// SweepHost implements system.Sweeper.
func (Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	return rooms().SweepHost(ctx, h, removes)
}

// pathFact tells how client and server are joined; arms may differ in it.
func pathFact(what string) record.Fact {
	return record.Fact{Name: "path", What: "how client and server are joined", Value: what, Bearing: record.Refuses}
}

const byKernel = "the kernel" // stands for packets that no program carries

// carriedFact tells what carries packets: a program costs other than the kernel.
func carriedFact(what string) record.Fact {
	return record.Fact{Name: "data-path", What: "what carries packets, the kernel or a program", Value: what, Bearing: record.Refuses}
}

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	kind := requests()
	return workload.Target{Name: name, Kind: kind, Axes: map[string]workload.TargetAxis{
		axisStreams: {Loop: workload.Closed, Stream: &kind}, axisRate: {Loop: workload.Open, Stream: &kind}, axisSize: {Loop: workload.Closed, Stream: &kind},
	}, Facts: []record.Fact{pathFact(""), carriedFact(""), record.RunsAs("the server", "")}}
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program {
	enters := machine.Enters()
	enters.For = "network paths"
	list := append(append(switchPrograms(), ipsecPrograms()...), lossProgram())
	for i := range list {
		list[i].Optional = "for " + list[i].For
	}
	return append([]proc.Program{enters}, list...)
}

// Outline implements system.Provider.
func (Provider) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	s := &session{Session: local.Session{Request: r}}
	if err := s.read(); err != nil {
		return nil, err
	}
	return []system.Change{{Action: system.Make, What: "two machines within this one, the path between them and a server in the second", Each: "step"}}, nil
}

// Open implements system.Provider.
func (Provider) Open(_ context.Context, r system.Request) (system.Session, error) {
	return &session{Session: local.Session{Request: r, Rooms: rooms(), Tied: proc.NewTie()}}, nil
}

type session struct {
	local.Session
	dir  string // that the server works in
	arms map[string]settings

	carried    []carried // of each arm that is run
	accounting accounting
}

// carried says what carries the packets of an arm.
type carried struct{ arm, path, by string }

// carriedBy names what carries packets, as a fact, and notes the paths that a program carries.
func (s *session) carriedBy() (fact string, notes []string) {
	var all []string
	for _, c := range s.carried {
		all = append(all, c.by)
		if c.by != byKernel {
			notes = append(notes, fmt.Sprintf("the path %s is carried in user space, by %s, and not by the kernel: what it costs is that program's cost", c.path, c.by))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", "), slices.Compact(notes)
}

// Prepare implements system.Session: it builds each path once, so that impossible ones are refused.
func (s *session) Prepare(context.Context) error {
	if err := s.read(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return &system.UnableError{Err: errors.New("network paths are namespaces of this machine, which root alone may make"), Hint: "run as root"}
	}
	if err := s.MakeRoom(); err != nil {
		return err
	}
	var err error
	if s.dir, err = s.MakeWorkplace(proc.Least()); err != nil {
		return err
	}
	s.accounting = readAccounting()
	for arm, one := range s.arms {
		n, err := build(s.Tied, s.Host, s.dir, one)
		if err != nil {
			return err
		}
		if arm != "" || len(s.arms) == 1 {
			s.carried = append(s.carried, carried{arm, one.kind.name, cmp.Or(n.carried, byKernel)})
		}
		n.close()
	}
	slices.SortFunc(s.carried, func(a, b carried) int { return cmp.Compare(a.arm, b.arm) })
	return nil
}

// read checks what the plan says. Nothing is made.
func (s *session) read() error {
	s.arms = make(map[string]settings)
	return s.EachArm(s.readArm)
}

func (s *session) readArm(arm string, given map[string]string) error {
	params, err := s.Resolve(given)
	if err != nil {
		return err
	}
	one, err := settingsOf(params)
	if err != nil {
		return err
	}
	switch {
	case one.streams > 0:
	case s.Plan.Axis.Name == axisSize:
		one.streams = sizeStreams
	default:
		if one.streams, err = load.Connections(0); err != nil {
			return err
		}
	}
	if s.Plan.Axis.Name == axisSize {
		for _, level := range s.Plan.Levels() {
			if n := int(level); n < 1 || n > mostSize {
				return system.ParamMistake("size", "", "an answer has between 1 and %d bytes, not %d", mostSize, n)
			}
		}
	}
	s.arms[arm] = one
	return nil
}

// Survey implements system.Session.
func (s *session) Survey(context.Context, bool) (system.Survey, error) {
	return system.Survey{Target: naming(), Version: telemetry.Host().Kernel, Kind: requests(), Findings: []record.HealthFinding{}}, nil
}

func naming() record.TargetNaming {
	return record.TargetNaming{Kind: name, Name: "namespaces", Private: true}
}

// Bounds implements system.Session.
func (s *session) Bounds() system.Bounds {
	most := 1
	for _, one := range s.arms {
		most = max(most, one.streams)
	}
	return system.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: most, MaxInFlightOpen: most}
}

// misleads says why a comparison of paths may not tell what they cost.
func (s *session) misleads() (list []string) {
	if s.Plan.Kind != plan.AB {
		return nil
	}
	whole := true
	for _, arm := range s.Plan.Arms {
		gso, said := s.arms[arm.Name].offloads["gso"]
		whole = whole && (gso || !said)
	}
	if whole {
		list = append(list, "no arm has its offloads off: segments of up to 64 KB cross a virtual link in one piece, which hides what the headers of a path cost: set gso=off and gro=off")
	}
	if s.Plan.Axis.Name != axisRate {
		list = append(list, "the paths are compared at saturation, where the processors of client and server are what is compared: compare them at a fixed rate below it (--axis rate)")
	}
	return list
}

// Target implements system.Session.
func (s *session) Target(_ context.Context, rec system.Recorder) (system.Instance, error) {
	for _, text := range s.misleads() {
		rec.Emit(&record.Note{Warning: record.WarningNote, Text: text})
	}
	i := &instance{session: s}
	i.Rig = local.Rig[settings]{Rec: rec, Seed: s.Plan.Seed, Arms: s.arms, Start: i.start}
	s.Loads(i)
	return i, nil
}
