package main

import (
	"fmt"
	"os"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/lab/component"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/network"
	"plimsoll.dev/plimsoll/internal/system/storage/io"
	"plimsoll.dev/plimsoll/internal/system/storage/smallfiles"
)

// addComponents gives the program the parts that it runs as processes of their own.
func addComponents(p *process.Process) {
	p.Components = component.All()
	for name, run := range map[string]func(args []string) error{
		backend.Component:    backend.Run,
		smallfiles.Component: func([]string) error { return smallfiles.Run(time.Now, os.Stdin, os.Stdout) },
		machine.Component:    func(args []string) error { return machine.Run(args, os.Stdout) },
		network.Component:    func([]string) error { return network.CarryWireGuard(os.Stdin) },
	} {
		p.Components[name] = func(args []string) int {
			fmt.Fprintln(os.Stderr, run(args)) // it returns only when it fails
			return 1
		}
	}
	p.Roles = []agent.Role{clients.Role(p.Now, io.Worker(image.FioData)), agent.Try(p.Now)}
	p.KubeletFaults = component.KubeletFaults
}
