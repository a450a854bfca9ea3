package experiment

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
)

func newABCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var f experimentFlags
	var arms []string
	var metrics []string
	cmd := &cobra.Command{
		Use:   "ab WORKLOAD --arm NAME:k=v,... --arm NAME:k=v,... [--level L]",
		Short: "Better, worse or the same? Compare arms of a workload",
		Long: `Run the arms of a workload side by side. Say whether each is better or worse than
the first one (the baseline), or equivalent within a margin. An arm is a name and
the parameters in which it differs.

The runs are interleaved: each block has one run of every arm, in random order,
each from empty. One figure decides. It is chosen before the run (--metric) and
judged by the interval of its relative change over the blocks. "No difference
found" does not mean equal: if the runs cannot tell, the verdict is inconclusive,
with the number of further runs that would decide. With several --metric each is
judged at alpha divided by their number. The verdict is the first one's, unless
another is worse or inconclusive.

Blocks are made until better, worse or equivalent is decided, or has no chance to
be: the verdict is looked at after 4, 6, 9, 13, 20 and 30 of them, and its interval
allows for all looks. --repeat N makes N blocks, whatever they show.

The exit code is 0 for better, equivalent and notWorse, 1 for worse, 3 for
inconclusive, 4 if the program itself was the bottleneck.`,
		Example: `  plimsoll ab node-density --arm base: --arm links:serviceLinks=true --level 60
  plimsoll ab node-density --arm fast:startLatency=uniform:500ms,1500ms --arm slow:startLatency=uniform:600ms,1600ms --level 10`,
		Args: process.ExactlyOne("workload"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x := f.experiment(cmd, args[0])
			x.plan.Kind = plan.AB
			for _, text := range arms {
				arm, err := parseArm(text)
				if err != nil {
					x.fail(err)
				}
				x.plan.Arms = append(x.plan.Arms, arm)
			}
			if a := &x.plan.Axis; a.Level != nil && len(a.Levels) == 0 {
				a.Levels, a.Level = []float64{*a.Level}, nil
			}
			if x.plan.Primary == nil {
				x.plan.Primary = new(plan.Primary)
			}
			if len(metrics) > 0 {
				x.plan.Primary.Metric, x.plan.Primary.Further = metrics[0], metrics[1:]
			}
			return x.run(p, stop)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&arms, "arm", nil, "an arm: `NAME:k=v,k=v`, the baseline first; NAME: alone changes nothing")
	f.addPlan(flags, "level", "levels", "repeat", "until", "margin", "alpha")
	flags.StringArrayVar(&metrics, "metric", nil, "the figure that decides: `MILESTONE pNN|max` or one of the workload's metrics (default the workload's); may be repeated, and each is judged at alpha divided by their number")
	return cmd
}

// parseArm reads NAME:k=v,k=v. The name ends at the first colon; a part
// without an equals sign belongs to the value before it.
func parseArm(text string) (plan.Arm, error) {
	const example = "for example --arm slow:startLatency=uniform:600ms,1600ms"
	name, rest, ok := strings.Cut(text, ":")
	if !ok || name == "" {
		return plan.Arm{}, process.Usagef(example, "--arm %q: want NAME:k=v,k=v", text)
	}
	var texts []string
	for part := range strings.SplitSeq(rest, ",") {
		if at := len(texts) - 1; at >= 0 && strings.Index(part, "=") <= 0 {
			texts[at] += "," + part
		} else if rest != "" {
			texts = append(texts, part)
		}
	}
	arm := plan.Arm{Name: name}
	var err error
	pairs(texts, "--arm "+name+": ", "k=v", example, func(e error) { err = cmp.Or(err, e) }, func(key, value string) bool {
		if arm.Params == nil {
			arm.Params = make(plan.Params)
		}
		_, twice := arm.Params[key]
		arm.Params[key] = value
		return twice
	})
	return arm, err
}
