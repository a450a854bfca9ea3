package realnode

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
)

// Namespaces has the flags of a node's namespaces.
const Namespaces = machine.Namespaces

// ThisMachine reads what this machine has.
func ThisMachine() (Machine, error) {
	var m Machine
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("read the machine's memory: %w", err)
	}
	m.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&header, &rights[0]); err != nil {
		return m, fmt.Errorf("read own rights: %w", err)
	}
	m.MayLowerOOMScore = rights[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
	return m, nil
}

func processesIn(group string) ([]int, error) { return cgroups.GetAllPids(group) }

func removeGroup(top string) error {
	// The last process of a group leaves it a moment after its end.
	for tries := 0; ; tries++ {
		err := cgroups.RemovePath(top)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || tries == 10 {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
}
