package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Grade says how well one thing that a lab needs is met.
type Grade string

// The grades of a requirement.
const (
	Good    Grade = "ok"
	Scarce  Grade = "scarce"  // a lab works, a large one may not
	Missing Grade = "missing" // "lab" or "real node" does not work
)

// Requirement grades one thing that this machine needs for a lab.
type Requirement struct {
	For    string `json:"for"` // "lab", "real node" or what else needs it
	What   string `json:"what"`
	Grade  Grade  `json:"grade"`
	Value  string `json:"value"` // says what this machine has, Need what it should have
	Need   string `json:"need"`
	Remedy string `json:"remedy"` // says what to do about it; empty if nothing is wrong
}

const (
	forLab      = "lab"
	forRealNode = "real node"
)

// Healthy reports whether this machine has all that every lab needs.
func Healthy(findings []Requirement) bool {
	return !slices.ContainsFunc(findings, func(f Requirement) bool { return f.For == forLab && f.Grade == Missing })
}

func (f Requirement) failed(found, remedy string) Requirement {
	f.Grade, f.Value, f.Remedy = Missing, found, remedy
	return f
}

// atLeast grades a finding: below least is missing, below enough is scarce, each with its remedy.
func (f Requirement) atLeast(n, least, enough int64, missing, scarce string) Requirement {
	switch {
	case n < least:
		f.Grade, f.Remedy = Missing, missing
	case n < enough:
		f.Grade, f.Remedy = Scarce, scarce
	default:
		f.Grade = Good
	}
	return f
}

const gib = 1 << 30

// Measured memory: 3000 nodes took 0.9 GiB more than 10, 10,000 pods 1.3 GiB, 150,000 pods 20.6 GiB in all.
const (
	baseMemory     = gib * 9 / 10
	memoryPerNode  = 3 * gib / 10_000
	memoryPerPod   = 13 * gib / 100_000
	memoryPerGuest = protocol.GuestMemory + 192<<20 // A real guest, with all of its own memory in use
	// With virtual machines: 40, 300 and 1000 on 10 nodes took 1.4, 2.0 and 2.9 GiB in all.
	memoryOfVirt     = gib * 5 / 10
	memoryPerMachine = 16 * gib / 10_000
)

// Memory estimates the bytes that a lab of so many simulated nodes and pods takes.
func Memory(nodes, pods int) int64 {
	return baseMemory + int64(nodes)*memoryPerNode + int64(pods)*memoryPerPod
}

// MachinesMemory estimates the bytes that so many simulated virtual machines add.
func MachinesMemory(machines int) int64 { return memoryOfVirt + int64(machines)*memoryPerMachine }

// Check refuses a lab that cannot be made, or for which this machine has too little memory, with a *SpecError.
func (s Spec) Check() error {
	s.Name = cmp.Or(s.Name, "private")
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		return err
	}
	return s.fitsMemory()
}

func (s Spec) fitsMemory() error {
	available, err := telemetry.AvailableMemory()
	available -= int64(s.RealGuests) * memoryPerGuest
	need := Memory(s.Nodes, s.Pods)
	if s.HasVirt() {
		need += MachinesMemory(s.Machines)
	}
	if err != nil || need <= available {
		return nil // unknown memory is not refused
	}
	what := fmt.Sprintf("%d simulated nodes", s.Nodes)
	fit := int((available - baseMemory) / memoryPerNode)
	fits := fmt.Sprintf("%d nodes would fit", max(fit, 0))
	if s.Pods > 0 {
		what += fmt.Sprintf(" with %d pods", s.Pods)
		fits = fmt.Sprintf("%d pods would fit on as many nodes", max(0, (available-Memory(s.Nodes, 0))/memoryPerPod))
	}
	if s.Machines > 0 {
		what += fmt.Sprintf(" with %d virtual machines", s.Machines)
		fits = fmt.Sprintf("%d machines would fit on as many nodes", max(0, (available-need)/memoryPerMachine+int64(s.Machines)))
	}
	return &SpecError{"memory", fmt.Sprintf("%s take about %.1f GiB, and %.1f GiB are available: %s", what, float64(need)/gib, float64(available)/gib, fits)}
}

// usableProcessors counts the processors that a component may keep busy: a container may have fewer.
func usableProcessors() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// ProgramRequirement grades a program that this machine has or lacks.
func ProgramRequirement(ctx context.Context, p proc.Program) Requirement {
	f := Requirement{For: p.For, What: p.Name, Need: "installed", Grade: Good}
	if p.Optional != "" {
		f.Need += ", " + p.Optional
	}
	found, err := p.Find(ctx, "")
	f.Value = found.String()
	if missing, ok := errors.AsType[*proc.MissingError](err); ok {
		f = f.failed("not found", missing.Remedy())
	} else if err != nil {
		f = f.failed(f.Value, err.Error())
	}
	if err != nil && p.Optional != "" {
		f.Grade = Scarce
	}
	return f
}
