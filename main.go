// Plimsoll finds how far a Kubernetes cluster can be loaded, what breaks
// first, and whether a change made it better or worse.
package main

import (
	"os"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
)

func main() {
	p := process.OSProcess()
	addComponents(&p)
	os.Exit(cli.Main(p))
}
