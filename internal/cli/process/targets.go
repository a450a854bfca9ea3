package process

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/simulated"
)

// Providers returns the targets that this program knows.
func Providers() []system.Provider {
	return append([]system.Provider{kubernetes.Provider{}, kubernetes.Provider{Machines: true}, simulated.Provider{}}, ofThisMachine()...)
}

// declaredTarget describes a target that needs Linux in declared.json.
type declaredTarget struct {
	workload.Target
	OfClusters bool // it takes the settings of clusters; other targets take none
}

// Clusters returns the target that a command means which names no workload.
func Clusters() workload.Target { return Providers()[0].Declare() }

// Targets finds what a target declares of itself by its name.
func Targets() workload.Targets {
	var list []workload.Target
	for _, p := range Providers() {
		list = append(list, p.Declare())
	}
	return workload.TargetsOf(list...)
}

// DeclaredFacts returns the facts of the environment that targets record.
func DeclaredFacts() []record.Fact {
	var list []record.Fact
	for _, p := range Providers() {
		list = append(list, p.Declare().Facts...)
	}
	return list
}

// ProviderOf returns the provider of the target of that name.
func ProviderOf(name string) (system.Provider, error) {
	for _, p := range Providers() {
		if p.Declare().Name == name {
			return p, nil
		}
	}
	return nil, &workload.UnknownError{What: "target", Name: name}
}

// SweepHost removes what dead runs of any target have left on this machine; see
// system.Sweeper.
func (p *Process) SweepHost(ctx context.Context, removes func(run string) bool) (list []system.Leftover, err error) {
	for _, one := range Providers() {
		if s, ok := one.(system.Sweeper); ok && runtime.GOOS == "linux" { // elsewhere runs leave nothing
			left, failed := s.SweepHost(ctx, p.Host(), removes)
			list, err = append(list, left...), errors.Join(err, failed)
		}
	}
	return list, err
}

// Needs returns the programs that targets run on this machine, each once.
func Needs() (list []proc.Program) {
	for _, one := range Providers() {
		for _, n := range one.Needs() {
			if !slices.ContainsFunc(list, func(other proc.Program) bool { return n.Name == other.Name && n.For == other.For }) {
				list = append(list, n)
			}
		}
	}
	return list
}

// Host returns the parts of this process that sessions may use.
func (p *Process) Host() system.Host {
	return system.Host{
		StateDir: p.StateDir, Executable: p.Executable, Env: p.Env, Pod: p.pod(), Build: Build(), Now: p.Now, Secrets: p.Secrets, Random: p.Random, Used: p.Used, Prefer: p.Prefer,
		Log: func(format string, args ...any) { p.Logf(format+"\n", args...) },
		Progress: func() (func(string), func()) {
			line := p.Waiting()
			return line.Show, line.End
		},
	}
}

// OrInCluster adds the flag for the cluster of this process's pod, if it runs in one, to a hint that names a
// cluster.
func (p *Process) OrInCluster(hint string) string {
	if p.pod().Server != "" {
		hint += "; --in-cluster names the cluster that this program runs in"
	}
	return hint
}

// pod returns what a kubelet gives to the processes of pods, empty outside of a pod.
func (p *Process) pod() system.Pod {
	host, port := p.Env("KUBERNETES_SERVICE_HOST"), p.Env("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return system.Pod{}
	}
	return system.Pod{Server: "https://" + net.JoinHostPort(host, port), Account: "/var/run/secrets/kubernetes.io/serviceaccount"}
}
