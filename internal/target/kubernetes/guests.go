package kubernetes

import (
	"crypto/ed25519"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// newKey makes what opens the machines of a run, and how they are told of it.
func newKey() (ssh.Signer, string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, "", err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, "", err
	}
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// needGuests refuses a level of machines that do IO in a lab that has fewer real
// ones: what is played does none.
func (t *loaded) needGuests(level target.Level) error {
	load := t.population.Rendering
	if arm, ok := t.arms[level.Arm]; ok {
		load = arm
	}
	if t.s.lab == nil || !t.s.lab.Spec().HasVirt() || !load.DoesIO {
		return nil
	}
	wanted, have := int(level.Value)*t.population.PerIteration(), t.s.lab.Spec().RealGuests
	if t.Load.Axis == observe.AxisBulk {
		wanted = t.population.Whole()
	}
	if wanted <= have {
		return nil
	}
	hint := fmt.Sprintf("give the private lab real ones, --lab-real-guests %d, or ask for fewer machines", wanted)
	if !t.s.private {
		hint = fmt.Sprintf("make a lab with real ones: plimsoll lab up NAME --virt --real-guests %d", wanted)
	}
	return target.Mistakef(hint, "the level %g has %d machines, each of which does IO, and %d of the lab's have a real guest: what is played does no IO", level.Value, wanted, have)
}
