package process

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What packages of Kubernetes add to every program's flags is not ours.
func TestNoForeignFlags(t *testing.T) {
	pflag.CommandLine.Bool("stray", false, "a flag of a package")
	Quieten()
	c := &cobra.Command{Use: "c", Run: func(*cobra.Command, []string) {}, SilenceErrors: true, SilenceUsage: true}
	c.SetArgs([]string{"--stray"})
	if err := c.Execute(); err == nil {
		t.Error("a command takes a flag of a package")
	}
}
