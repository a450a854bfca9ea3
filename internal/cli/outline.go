package cli

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/target"
)

// outline is the document of --dry-run -o json.
type outline struct {
	Schema   string          `json:"schema"`
	Workload string          `json:"workload"`
	Target   string          `json:"target"`
	Axis     string          `json:"axis"`
	Levels   string          `json:"levels"`
	Changes  []target.Change `json:"changes"`
}

// outlineSchema names its format.
const outlineSchema = "plimsoll/outline/v1"

// outline tells what the plan would do, and does nothing.
func (r *runner) outline(format string) error {
	provider, request, err := r.request()
	if err != nil {
		return err
	}
	changes, err := provider.Outline(request)
	if err != nil {
		return err
	}
	axis, err := r.workload.Axis(r.plan.Axis.Name)
	if err != nil {
		return err
	}
	o := outline{
		Schema: outlineSchema, Workload: r.workload.Name, Target: targetText(r.plan.Target, r.workload.Target.Name),
		Axis: axis.Name, Levels: levelsText(r.plan, axis.Unit), Changes: changes,
	}
	if format == "json" {
		return printJSON(r.p, o)
	}
	r.p.printf("%s on %s, along %s: %s\n", o.Workload, o.Target, o.Axis, o.Levels)
	for _, action := range []target.Action{target.Make, target.ChangeIt, target.Reboot, target.RemoveLeft} {
		var lines []string
		for _, c := range changes {
			if c.Action != action {
				continue
			}
			line := c.What
			if c.Each != "" {
				line += " for each " + c.Each
			}
			lines = append(lines, line)
		}
		if len(lines) == 0 {
			lines = []string{"nothing"}
		}
		r.p.printf("would %s: %s\n", action, strings.Join(lines, "; "))
	}
	r.p.printf("This was a dry run: nothing was done.\n")
	return nil
}

// targetText names what would be loaded.
func targetText(t plan.Target, name string) string {
	switch {
	case t.LabName != "":
		return "lab " + t.LabName
	case t.Kubeconfig != "" && t.Context != "":
		return "the context " + t.Context + " of " + t.Kubeconfig
	case t.Kubeconfig != "":
		return "the cluster of " + t.Kubeconfig
	case t.Lab != nil:
		return "a private lab"
	}
	return "the target " + name
}

// levelsText says which levels would be made.
func levelsText(p *plan.Plan, unit string) string {
	a := p.Axis
	var text string
	switch {
	case a.Search != nil:
		s := a.Search
		text = fmt.Sprintf("%g, %g, ... up to %g %s, resolution %g, confirmed %d of %d", s.From, s.From+s.Step, s.Max, unit, s.Resolution, s.Confirm.Need, s.Confirm.Of)
	case len(a.Levels) > 0:
		text = strings.Trim(fmt.Sprint(a.Levels), "[]") + " " + unit
	case a.Level != nil:
		text = fmt.Sprintf("%g %s", *a.Level, unit)
	}
	if len(p.Arms) > 0 {
		text += fmt.Sprintf(", %d arms, %d runs of each", len(p.Arms), p.Repeat)
	}
	return text
}
