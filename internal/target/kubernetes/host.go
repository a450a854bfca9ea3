package kubernetes

import (
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Needs implements target.Provider: those of labs, a cluster needs none.
func (Provider) Needs() []proc.Program { return lab.Needs() }
