package virt

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Provider opens Kubernetes clusters for loads of virtual machines.
type Provider struct{}

// base opens the clusters.
func base() kubernetes.Provider {
	return kubernetes.Provider{Extend: func(r system.Request) kubernetes.Extension { return &machines{Request: r} }}
}

// Name is that of the target.
const Name = "kubevirt"

// Declare implements system.Provider.
func (Provider) Declare() workload.Target {
	declared := base().Declare()
	declared.Name, declared.Objects = Name, described.OfMachines
	return declared
}

// Needs implements system.Provider.
func (Provider) Needs() []proc.Program { return base().Needs() }

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	return base().Open(ctx, r)
}

// Outline implements system.Provider.
func (Provider) Outline(r system.Request) ([]system.Change, error) { return base().Outline(r) }

// Account is as that of the clusters.
func (Provider) Account(r system.Request, namespace string) (kubernetes.Account, error) {
	return base().Account(r, namespace)
}

// machines is what one session has of them.
type machines struct {
	system.Request
	key    ssh.Signer // opens those that are to be logged in to, or nil
	drains []string   // nodes that the user let be drained, nil for any
}

// Fill implements kubernetes.Extension: machines that are to be logged in to get a
// key of this run.
func (m *machines) Fill() (map[string]string, error) {
	if !described.Of(m.Workload).ReadsFIO() {
		return nil, nil
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if m.key, err = ssh.NewSignerFromKey(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(m.key.PublicKey())))
	return map[string]string{described.ParamSSHKey: public}, nil
}

// Rights implements kubernetes.Extension.
func (m *machines) Rights(params workload.Params) (list []ceiling.Right) {
	if spec := drainOf(m.Workload); spec != nil {
		list = drainRights(spec)
	}
	if throughForward(params) {
		list = append(list, ceiling.Right{Verb: "get", Resource: "virtualmachineinstances/portforward." + subresources, For: "calls machines through the API server"})
	}
	return list
}

// Open implements kubernetes.Extension.
func (m *machines) Open(run *prepared.Run, ours func(namespace string) bool, log func(format string, args ...any)) kubernetes.Beside {
	var nodes *drain.Drain // nil where no node is drained
	var evict func(context.Context, string, record.Slot) record.Slot
	if spec := drainOf(m.Workload); spec != nil {
		nodes = drain.New(run, spec, m.drains, ours, log)
		evict = nodes.Evict
	}
	return kubernetes.Beside{Caller: newCalls(run, m.key), Around: nodes, Evict: evict}
}
