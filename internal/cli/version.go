package cli

import "github.com/spf13/cobra"

// version is the program's version.
const version = "0.1.0"

// kubernetesVersion is that of the control plane that is compiled in.
const kubernetesVersion = "1.36.3"

func newVersionCommand(p *Process) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the program's version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if output == "json" {
				return printJSON(p, map[string]string{"version": version, "kubernetes": kubernetesVersion})
			}
			p.printf("plimsoll %s, with Kubernetes %s\n", version, kubernetesVersion)
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
