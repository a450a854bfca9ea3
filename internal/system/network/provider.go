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
		if one.streams, err = local.Connections(0); err != nil {
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

// The axes that a path can be loaded along.
const (
	axisStreams = "streams"
	axisRate    = "rate"
	axisSize    = "size"
)

// The sources of samples.
const (
	sourceClient   = "client"        // this program, with the generator in it, as the program's own readings are
	sourceServer   = "server"        // the process that answers
	sourceCarriers = "path programs" // those that carry packets in user space
	sourcePath     = "path"          // what crossed it, since the step began
	sourceAll      = "client, server, path and softirqs"
	sourceMachine  = "machine" // this machine, as every target's
	sourceShares   = "path shares"
)

// Values of sourcePath, which only grow but for the queue.
const (
	payloadBytes = "payloadBytes" // of the answers and their heads, as they come in
	payloadGB    = "payloadGB"
	payloadGbit  = "payloadGbit"
	thousands    = "thousandRequests"
	wireBytes    = "wireBytes" // both ways, with all headers from Ethernet's on
	packets      = "packets"
	retransmits  = "retransmits"
	drops        = "drops"
	usedSeconds  = "usedSeconds" // CPU time that readings of processes hold already
)

func requests() record.ObjectKind {
	of := func(source, value string, fold record.FoldKind) record.Fold {
		return record.Fold{Source: source, Value: value, Fold: fold}
	}
	cost := func(name, title, help, of1, value string, per string) record.Metric {
		by := of(sourcePath, per, record.FoldDifference)
		return record.Metric{Name: name, Title: title, Unit: "s", Help: help, Of: of(of1, value, record.FoldDifference), Per: &by}
	}
	perPayload := of(sourcePath, payloadBytes, record.FoldDifference)
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"},
		Place:  record.Noun{One: "machine", Many: "machines"},
		Milestones: []record.Milestone{
			{Name: load.Connected, Owner: "path"}, {Name: load.Response, Owner: "path and server"},
		},
		There:    load.Response,
		Measures: []record.Measure{record.RequestErrors(0)},
		Metrics: append([]record.Metric{
			{Name: "throughput", Unit: "Gbit/s", Help: "bits of answers per second, without headers", LessIsWorse: true, Of: of(sourcePath, payloadGbit, record.FoldPerSecond)},
			record.AchievedRate("requests answered per second"),
			cost("cpuPerGB", "CPU per GB", "CPU time of client, server, programs of the path and the kernel's softirqs for each 1e9 bytes of answers", sourceAll, usedSeconds, payloadGB),
			cost("cpuPer1000", "CPU per 1000 requests", "CPU time of client, server, programs of the path and the kernel's softirqs for each 1000 requests", sourceAll, usedSeconds, thousands),
			cost("clientCPUPer1000", "client CPU per 1000 requests", "CPU time of the client for each 1000 requests", sourceClient, usedSeconds, thousands),
			cost("serverCPUPer1000", "server CPU per 1000 requests", "CPU time of the server for each 1000 requests", sourceServer, record.ValueCPU, thousands),
			cost("pathCPUPer1000", "path CPU per 1000 requests", "CPU time of the programs that carry packets where the kernel does not, for each 1000 requests", sourceCarriers, record.ValueCPU, thousands),
			cost("softirqPer1000", "softirq per 1000 requests", "time of all processors in interrupts and softirqs for each 1000 requests; of whatever program; kernels that do not account for it apart have it in the time of client and server, too", sourceMachine, "interruptSeconds", thousands),
			{Name: "wireBytesPerByte", Title: "wire bytes per payload byte", Help: "bytes that crossed the client's link, both ways and with all headers, for each byte of an answer", Of: of(sourcePath, wireBytes, record.FoldDifference), Per: &perPayload},
			{Name: "packets", Unit: "/s", Help: "packets per second on the client's link, both ways; one that is segmented later counts once", Of: of(sourcePath, packets, record.FoldPerSecond)},
			{Name: "retransmits", Help: "TCP segments that client or server sent again", Of: of(sourcePath, retransmits, record.FoldDifference)},
			{Name: "drops", Help: "packets that interfaces of the path dropped, or queues of processors (softnet), of whatever program", Of: of(sourcePath, drops, record.FoldDifference)},
		}, record.UseOf(sourceServer, "the server")...),
		Charts: []record.Chart{
			{Title: "Path: shares in use", Source: sourceShares, Values: []record.Value{
				{Key: "link", Name: "link's rate"}, {Key: "softirq", Name: "busiest softirq"}, {Key: "carriers", Name: "path programs"}, {Key: "server", Name: "server"}, {Key: "client", Name: "client"},
				{Key: "window", Name: "window"}, {Key: "loss", Name: "loss"},
			}},
		},
		Bounds: []record.Bound{
			{Name: "link", What: "the rate of the link (linkRate)", Source: sourceShares, Value: "link", Full: 0.9},
			{Name: "softirq", What: "one processor's softirqs, in which the kernel carries packets", Source: sourceShares, Value: "softirq", Full: 0.9},
			{Name: "carriers", What: "the processor of the programs that carry packets in user space", Source: sourceShares, Value: "carriers", Full: 0.9},
			{Name: "server", What: "the processor of the server", Source: sourceShares, Value: "server", Full: 0.9},
			{Name: "client", What: "the processor of the client, which is the generator's", Source: sourceShares, Value: "client", Full: 0.9, Generator: true},
			{Name: "window", What: "TCP's window: the server waited until the client takes more", Source: sourceShares, Value: "window", Full: 0.5, Slow: true},
			{Name: "loss", What: "loss: TCP sent less, since segments had to be sent again", Source: sourceShares, Value: "loss", Full: 0.5, Slow: true},
		},
	}
}
