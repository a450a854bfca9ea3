//go:build !linux

package process

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
)

// A test on Linux writes it with -update.
//
//go:embed declared.json
var declared []byte

// ofThisMachine returns the targets that need Linux: their plans and records can be read here.
func ofThisMachine() (list []system.Provider) {
	var targets []declaredTarget
	if err := json.Unmarshal(declared, &targets); err != nil {
		panic(err) // the program was built of another file
	}
	for _, t := range targets {
		if t.OfClusters {
			t.Settings = kubernetes.Provider{}.Declare().Settings
		}
		list = append(list, elsewhere{t.Target})
	}
	return list
}

// elsewhere is the provider of a target that cannot be loaded from this machine.
type elsewhere struct{ target workload.Target }

// Declare implements system.Provider.
func (e elsewhere) Declare() workload.Target { return e.target }

// Needs implements system.Provider.
func (elsewhere) Needs() []proc.Program { return nil }

// Outline implements system.Provider.
func (e elsewhere) Outline(context.Context, system.Request) ([]system.Change, error) {
	return nil, &system.UnableError{Err: fmt.Errorf("the target %s needs Linux", e.target.Name), Hint: "run this command on a Linux machine; its record can be read here"}
}

// Open implements system.Provider.
func (e elsewhere) Open(ctx context.Context, r system.Request) (system.Session, error) {
	_, err := e.Outline(ctx, r)
	return nil, err
}
