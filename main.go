// Plimsoll finds how far a Kubernetes cluster can be loaded, what breaks
// first, and whether a change made it better or worse.
package main

import (
	"os"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/lab/component"
)

func main() {
	os.Exit(cli.Main(cli.OSProcess(component.All())))
}
