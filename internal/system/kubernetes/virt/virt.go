package virt

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
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
func (Provider) Outline(ctx context.Context, r system.Request) ([]system.Change, error) {
	return base().Outline(ctx, r)
}

// Account is as that of the clusters.
func (Provider) Account(r system.Request, namespace string) (kubernetes.Account, error) {
	return base().Account(r, namespace)
}

// machines is what one session has of them.
type machines struct {
	system.Request
	keys   keys     // of those that are to be logged in to, or none
	drains []string // nodes that the user let be drained, nil for any
}

// keys are what a run and its machines know each other by.
type keys struct {
	login ssh.Signer    // lets the run in
	host  ssh.PublicKey // what machines show
}

// newKeys makes the keys of one run, and what its machines are given of them.
func newKeys() (keys, map[string]string, error) {
	login, _, err := newKey()
	if err != nil {
		return keys{}, nil, err
	}
	host, secret, err := newKey()
	if err != nil {
		return keys{}, nil, err
	}
	return keys{login, host.PublicKey()}, map[string]string{
		described.ParamSSHKey:     strings.TrimSpace(string(ssh.MarshalAuthorizedKey(login.PublicKey()))),
		described.ParamSSHHostKey: secret,
	}, nil
}

// newKey makes one, and its form in a file of OpenSSH's.
func newKey() (ssh.Signer, string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	file, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	return signer, string(pem.EncodeToMemory(file)), nil
}

// Fill implements kubernetes.Extension: machines that are to be logged in to get
// keys of this run.
func (m *machines) Fill() (given map[string]string, err error) {
	if !described.Of(m.Workload).ReadsFIO() {
		return nil, nil
	}
	m.keys, given, err = newKeys()
	return given, err
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
	return kubernetes.Beside{Caller: newCalls(run, m.keys), Around: nodes, Evict: evict}
}
