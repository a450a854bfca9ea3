package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// ofTarget marks the flags that belong to some targets only, with their names.
const ofTarget = "target"

// addOwn adds the flags of targets: those of their settings that are taken, and
// those of the options that they know.
func (f *experimentFlags) addOwn(cmd *cobra.Command, take func(settings.Field) bool, options ...string) {
	flags := cmd.Flags()
	for _, p := range process.Providers() {
		t := p.Declare()
		if t.Settings != nil {
			// Two targets of one kind of system have the same settings.
			f.own = append(f.own, settings.AddFlags(flags, t.Settings(), func(field settings.Field) bool {
				return take(field) && flags.Lookup(field.Flag) == nil
			})...)
			for _, field := range settings.Fields(t.Settings()) {
				if field.Flag != "" && take(field) {
					mark(flags, field.Flag, t.Name)
				}
			}
		}
		for _, name := range options {
			help, ok := t.Takes[name]
			if !ok {
				continue
			}
			if flags.Lookup(name) == nil {
				f.addPlan(flags, name)
				f.agreed = append(f.agreed, settings.AddFlags(flags, f.consent, func(field settings.Field) bool { return field.Flag == name })...)
				if help != "" {
					flags.Lookup(name).Usage = help
				}
			}
			mark(flags, name, t.Name)
		}
	}
	helpOfTarget(cmd)
}

// mark says of a flag that it belongs to a target.
func mark(flags *pflag.FlagSet, name, target string) {
	f := flags.Lookup(name)
	if f.Annotations == nil {
		f.Annotations = make(map[string][]string)
	}
	f.Annotations[ofTarget] = append(f.Annotations[ofTarget], target)
}

// ofConsent returns the options of commands that load what is not theirs.
func ofConsent() []string { return []string{"wait", "ignore-health", "yes", "reboots", "hooks"} }

// addPlan adds the flags of a plan that have these names.
func (f *experimentFlags) addPlan(flags *pflag.FlagSet, names ...string) {
	f.given = append(f.given, settings.AddFlags(flags, f.plan, func(field settings.Field) bool { return slices.Contains(names, field.Flag) })...)
}

// targetsNamed returns targets as a sentence has them.
func targetsNamed(names []string) string {
	if len(names) == 1 {
		return "the target " + names[0]
	}
	return "the targets " + words.And(names)
}

// ofOtherTarget refuses the flags that belong to other targets than the
// workload's.
func ofOtherTarget(cmd *cobra.Command, w *workload.Workload) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if of := f.Annotations[ofTarget]; of != nil && !slices.Contains(of, w.Target.Name) && err == nil {
			err = process.Usagef("leave it out", "--%s belongs to %s, and %s loads the target %s", f.Name, targetsNamed(of), w.Name, w.Target.Name)
		}
	})
	return err
}

// helpOfTarget lets the help of a command show the flags of targets apart from
// the others: those of the target that the workload on its line loads, or
// without a workload those of all.
func helpOfTarget(cmd *cobra.Command) {
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		w, err := process.LoadWorkload(cmd.Flags().Arg(0))
		known := err == nil && strings.Contains(cmd.Use, "WORKLOAD")
		own, names := pflag.NewFlagSet("", pflag.ContinueOnError), []string{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			of := f.Annotations[ofTarget]
			if of != nil && (!known || slices.Contains(of, w.Target.Name)) {
				shown := *f
				own.AddFlag(&shown)
				names = append(names, of...)
			}
			f.Hidden = f.Hidden || of != nil || known && f.Name == lifeFlag && !ages(w)
		})
		if known && !w.Target.Configured {
			cmd.Example = "" // they are of clusters
		}
		help(cmd, args)
		if !own.HasFlags() {
			return
		}
		hint := ""
		if !known && strings.Contains(cmd.Use, "WORKLOAD") {
			hint = fmt.Sprintf(" ('%s WORKLOAD --help' lists those of a workload's own target)", cmd.CommandPath())
		}
		slices.Sort(names)
		fmt.Fprintf(cmd.OutOrStdout(), "\nFlags of %s%s:\n%s", targetsNamed(slices.Compact(names)), hint, own.FlagUsages())
	})
}

// ages reports whether the workload has an axis whose objects are removed as
// they age.
func ages(w *workload.Workload) bool {
	return slices.ContainsFunc(w.Axes, func(a workload.Axis) bool {
		return a.Loop == workload.Open && !w.TargetAxis(a.Name).Streams()
	})
}
