// Plimsoll finds how far a Kubernetes cluster can be loaded, what breaks
// first, and whether a change made it better or worse.
package main

import (
	"fmt"
	"os"
	"time"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/component"
	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/network"
	"plimsoll.dev/plimsoll/internal/system/storage/smallfiles"
)

func main() {
	components := component.All()
	for name, run := range map[string]func(args []string) error{
		backend.Component:    backend.Run,
		smallfiles.Component: func([]string) error { return smallfiles.Run(time.Now, os.Stdin, os.Stdout) },
		machine.Component:    func(args []string) error { return machine.Run(args, os.Stdout) },
		network.Component:    func([]string) error { return network.CarryWireGuard(os.Stdin) },
	} {
		components[name] = func(args []string) int {
			fmt.Fprintln(os.Stderr, run(args)) // it returns only when it fails
			return 1
		}
	}
	p := process.OSProcess(components)
	p.KubeletFaults = component.KubeletFaults
	os.Exit(cli.Main(p))
}
