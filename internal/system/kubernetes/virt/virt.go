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

// Name is that of the target.
const Name = "kubevirt"

// Machines is what one session has of virtual machines. It does nothing for a workload
// that has none.
type Machines struct {
	system.Request
	here    bool               // the target is KubeVirt
	objects *described.Objects // nil where no machines are followed
	keys    keys               // of those that are to be logged in to, or none
	drains  []string           // nodes that the user let be drained, nil for any
}

// Of returns the machines of a session.
func Of(r system.Request) *Machines {
	return &Machines{Request: r, here: r.Workload != nil && r.Workload.Target.Name == Name, objects: described.MachinesOf(r.Workload)}
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

// Fill returns the parameters that the run gives, whatever the plan says, and which are
// not put on record: keys of this run for machines that are to be logged in to.
func (m *Machines) Fill() (given map[string]string, err error) {
	if !m.objects.ReadsFIO() {
		return nil, nil
	}
	m.keys, given, err = newKeys()
	return given, err
}

// Rights returns those that a load with these parameters takes besides.
func (m *Machines) Rights(params workload.Params) (list []ceiling.Right) {
	if spec := m.drain(); spec != nil {
		list = drainRights(spec)
	}
	if m.here && throughForward(params) {
		list = append(list, ceiling.Right{Verb: "get", Resource: "virtualmachineinstances/portforward." + subresources, For: "calls machines through the API server"})
	}
	return list
}

// Open returns what calls the machines of a run, and what drains their nodes, nil where
// none is drained. Ours tells which namespaces are the run's.
func (m *Machines) Open(run *prepared.Run, ours func(namespace string) bool, log func(format string, args ...any)) (follow.Caller, *drain.Drain) {
	caller := newCalls(run, m.keys)
	if spec := m.drain(); spec != nil {
		return caller, drain.New(run, spec, m.drains, ours, log)
	}
	return caller, nil
}
