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
	"plimsoll.dev/plimsoll/internal/system/storage/smallfiles"
)

func main() {
	components := component.All()
	components[backend.Component] = func(args []string) int {
		fmt.Fprintln(os.Stderr, backend.Run(args)) // it returns only when it fails
		return 1
	}
	components[smallfiles.Component] = func([]string) int {
		fmt.Fprintln(os.Stderr, smallfiles.Run(time.Now, os.Stdin, os.Stdout)) // likewise
		return 1
	}
	components[machine.Component] = func(args []string) int {
		fmt.Fprintln(os.Stderr, machine.Run(args, os.Stdout)) // likewise
		return 1
	}
	os.Exit(cli.Main(process.OSProcess(components)))
}
