package cli

import (
	"context"
	"errors"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/virt"
	"plimsoll.dev/plimsoll/internal/target/router"
	"plimsoll.dev/plimsoll/internal/target/simulated"
	"plimsoll.dev/plimsoll/internal/target/storage/io"
	"plimsoll.dev/plimsoll/internal/target/storage/volumes"
)

// providers are the targets that this program can load.
func providers() []target.Provider {
	return []target.Provider{
		kubernetes.Provider{},
		virt.Provider{},
		router.Provider{},
		io.Provider{},
		simulated.Provider{},
		volumes.Provider{},
	}
}

// clusters is the target that a command means which names no workload.
func clusters() workload.Target { return providers()[0].Declare() }

// targets finds what a target declares of itself by its name.
func targets() workload.Targets {
	var list []workload.Target
	for _, p := range providers() {
		list = append(list, p.Declare())
	}
	return workload.TargetsOf(list...)
}

// declaredFacts are what targets can tell of where a run was made.
func declaredFacts() []record.Fact {
	var list []record.Fact
	for _, p := range providers() {
		list = append(list, p.Declare().Facts...)
	}
	return list
}

// providerOf is the provider of the target of that name.
func providerOf(name string) (target.Provider, error) {
	for _, p := range providers() {
		if p.Declare().Name == name {
			return p, nil
		}
	}
	return nil, &workload.UnknownError{What: "target", Name: name}
}

// sweepHost removes what dead runs of any target have left on this machine; see
// target.Sweeper.
func (p *Process) sweepHost(ctx context.Context, removes func(run string) bool) (list []target.Leftover, err error) {
	for _, one := range providers() {
		if s, ok := one.(target.Sweeper); ok {
			left, failed := s.SweepHost(ctx, p.host(), removes)
			list, err = append(list, left...), errors.Join(err, failed)
		}
	}
	return list, err
}

// needs are the programs that targets run on this machine, each once.
func needs() (list []proc.Program) {
	for _, one := range providers() {
		for _, n := range one.Needs() {
			if !slices.ContainsFunc(list, func(other proc.Program) bool { return n.Name == other.Name && n.For == other.For }) {
				list = append(list, n)
			}
		}
	}
	return list
}

// host is what sessions may use of this process.
func (p *Process) host() target.Host {
	return target.Host{
		StateDir: p.stateDir, Executable: p.Executable, Version: version, Now: p.Now, Random: p.Random, Used: p.Used, Prefer: p.Prefer,
		Log: func(format string, args ...any) { p.logf(format+"\n", args...) },
		Progress: func() (func(string), func()) {
			line := progressLine{p: p}
			return line.show, line.end
		},
	}
}
