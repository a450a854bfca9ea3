package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// What targets run is what 'make deps' installs, so that their tests are not
// skipped where it was run.
func TestMakeDepsInstallsWhatTargetsNeed(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var installed, needed []string
	for _, line := range regexp.MustCompile(`(?m)^[A-Z]+_PACKAGES := (.+)$`).FindAllStringSubmatch(string(text), -1) {
		installed = append(installed, strings.Fields(line[1])...)
	}
	for _, n := range process.Needs() {
		needed = append(needed, n.Package)
		// Debian always has util-linux.
		if n.Optional == "" && n.Package != "util-linux" && !slices.Contains(installed, n.Package) {
			t.Errorf("target %s runs %s: add the package %s to the Makefile's", n.For, n.Name, n.Package)
		}
	}
	// Of benchmarks, and what reads in tests what was written for it.
	yardsticks := []string{"wrk", "nghttp2-client", "iperf3", "sockperf", "prometheus"}
	for _, name := range installed {
		if !slices.Contains(needed, name) && !slices.Contains(yardsticks, name) {
			t.Errorf("the Makefile installs %s: no target needs it", name)
		}
	}
}
