package network

import (
	"os/exec"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
)

// carrier is a program that carries packets where the kernel does not. What it uses
// of the processors is the path's.
type carrier struct {
	*proc.Process
	name string
	pid  int // of the program itself
	cpus int // that it is kept to
}

// carry starts a carrier in a machine, as a user and on some processors.
func (n *network) carry(m *machine.Machine, cmd *exec.Cmd, name string, as *proc.User, cpus []int) (*proc.Process, error) {
	p, err := m.Start(cmd, proc.How{Name: name, As: as, CPUs: cpus})
	if err == nil {
		n.carriers = append(n.carriers, carrier{Process: p, name: name, cpus: len(cpus)})
	}
	return p, err
}
