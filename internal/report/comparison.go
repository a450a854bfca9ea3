package report

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/compare"
)

// verdictOfArms is the verdict of a comparison in words.
func verdictOfArms(r analyze.Result) string {
	c := r.Comparison
	arms := make([]string, 0, len(c.Levels))
	for _, l := range c.Levels {
		if len(arms) == 0 || arms[len(arms)-1] != l.Arm {
			arms = append(arms, l.Arm)
		}
	}
	who := strings.Join(arms, ", ")
	switch r.Verdict {
	case "better":
		return who + " is better than " + c.Baseline
	case "worse":
		return who + " is worse than " + c.Baseline
	case "equivalent":
		return who + " is equivalent to " + c.Baseline
	case "notWorse":
		return who + " is not worse than " + c.Baseline
	}
	return fmt.Sprintf("%s against %s is %s", who, c.Baseline, r.Verdict)
}

// clear is the largest rate of false discoveries at which a metric that does
// not decide is worth a line.
const clear = 0.10

// comparison writes how arms compare: the metric that decides, block by block,
// and of the others those that differ clearly.
func (p *printer) comparison(c *compare.Comparison) {
	for _, l := range c.Levels {
		p.line("")
		p.line("%s against %s at %s: %s", l.Arm, c.Baseline, Number(l.Level), l.Verdict)
		p.line("  %s", l.Why)
		for _, text := range l.Excluded {
			p.line("  left out: %s", text)
		}
		if p.err != nil {
			return
		}
		t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "  %s\t%s\t%s\t\n", printable(l.Primary.Metric), printable(c.Baseline), printable(l.Arm))
		for i := range l.Primary.Baseline {
			fmt.Fprintf(t, "  block %d\t%s\t%s\t\n", i+1, figureOf(l.Primary.Baseline[i], l.Primary.Unit), figureOf(l.Primary.Arm[i], l.Primary.Unit))
		}
		if err := t.Flush(); err != nil {
			p.err = err
			return
		}
		if l.Distance != nil && l.Superiority != nil {
			text := fmt.Sprintf("  over all objects: largest distance of the distributions %.3f; an object of %s is later with a probability of %.2f", *l.Distance, l.Arm, *l.Superiority)
			if l.PermutationP != nil {
				text += fmt.Sprintf(" (swapping runs: p = %.3f)", *l.PermutationP)
			}
			p.line("%s", text)
		}
		var others []string
		for _, m := range l.Others {
			if m.FalseDiscovery == nil || *m.FalseDiscovery > clear || m.Change == nil || m.Lo == nil || m.Hi == nil {
				continue
			}
			others = append(others, fmt.Sprintf("    %s %+.1f%% (%+.1f%% to %+.1f%%)", m.Metric, 100**m.Change, 100**m.Lo, 100**m.Hi))
		}
		if len(others) > 0 {
			p.line("  others that differ, with a rate of false discoveries of at most %.0f%%; they do not decide:", 100*clear)
			for _, text := range others {
				p.line("%s", text)
			}
		}
	}
}

func figureOf(x *float64, unit string) string {
	switch {
	case x == nil:
		return "never"
	case unit == "s":
		return Seconds(*x)
	}
	return Number(*x) + " " + unit
}
