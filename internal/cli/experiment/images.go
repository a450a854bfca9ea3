package experiment

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// NewImageListCommand makes the command that lists the images that a workload pulls.
func NewImageListCommand(p *process.Process) *cobra.Command {
	var registry string
	var set []string
	cmd := &cobra.Command{
		Use:   "list WORKLOAD",
		Short: "List the images that a workload runs",
		Example: `  plimsoll image list node-density-heavy --images registry.example:5000/team
  plimsoll image list node-density --set image=registry.example/app:2`,
		Args: process.ExactlyOne("workload"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var given []string
			if registry != "" {
				given = []string{"--images", registry}
			}
			for _, s := range set {
				given = append(given, "--set", s)
			}
			var f experimentFlags
			limit := &cobra.Command{Use: "limit WORKLOAD"}
			f.addLimit(limit)
			if err := limit.ParseFlags(given); err != nil {
				return cmd.FlagErrorFunc()(limit, err)
			}
			r, err := f.checker(p, limit, args)
			if err != nil {
				return err
			}
			r.p = p
			changes, _, _, err := r.changes(cmd.Context(), false)
			if err != nil {
				return err
			}
			var list []string
			for _, c := range changes {
				if name, ok := strings.CutPrefix(c.What, "image "); ok {
					list = append(list, name)
				}
			}
			slices.Sort(list)
			for _, name := range slices.Compact(list) {
				p.Printf("%s\n", name)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&registry, "images", "", "`registry` or path in it that has the program's own images")
	cmd.Flags().StringArrayVar(&set, "set", nil, "parameter of the workload as `name=value`, repeatable")
	return cmd
}
