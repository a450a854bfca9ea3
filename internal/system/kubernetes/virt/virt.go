package virt

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Name is the name of the target.
const Name = "kubevirt"

// Machines adds virtual machines to a session. It does nothing for a workload without any.
type Machines struct {
	system.Request
	here    bool               // the target is KubeVirt
	objects *described.Objects // nil without machines
	keys    keys               // for logins, or empty
	drains  []string           // nodes that the user agreed to drain, nil for any
}

// Of returns the machines of a session.
func Of(r system.Request) *Machines {
	return &Machines{Request: r, here: r.Workload != nil && r.Workload.Target.Name == Name, objects: described.MachinesOf(r.Workload)}
}

// keys identify a run and its machines to each other.
type keys struct {
	login ssh.Signer    // lets the run in
	host  ssh.PublicKey // identifies the machines
}

// newKeys makes the keys of a run, and the parameters for its machines.
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

// newKey makes a key, and its text in OpenSSH's format.
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

// Fill returns the parameters that the run sets itself and that are not recorded: the keys for logins.
func (m *Machines) Fill() (given map[string]string, err error) {
	if !m.objects.ReadsFIO() {
		return nil, nil
	}
	m.keys, given, err = newKeys()
	return given, err
}

// Rights returns the further rights of a load with these parameters.
func (m *Machines) Rights(params workload.Params) (list []ceiling.Right) {
	if spec := m.drain(); spec != nil {
		list = drainRights(spec)
	}
	if m.here && throughForward(params) {
		list = append(list, ceiling.Right{Verb: "get", Resource: "virtualmachineinstances/portforward." + subresources, For: "calls machines through the API server"})
	}
	return list
}

// Open returns the caller of a run's machines, and the drain of their nodes or nil. ours says which
// namespaces are the run's.
func (m *Machines) Open(run *prepared.Run, ours func(namespace string) bool, log func(format string, args ...any)) (follow.Caller, *drain.Drain) {
	caller := newCalls(run, m.keys)
	if spec := m.drain(); spec != nil {
		return caller, drain.New(run, spec, m.drains, ours, log)
	}
	return caller, nil
}
