package cli

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/lint"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/workloads"
)

// completer returns what a shell may offer next. It prints nothing and changes nothing.
type completer = cobra.CompletionFunc

// complete gives every command of the tree what a shell completes: names of
// workloads, labs, run directories, axes, parameters, goals, guards and formats.
func complete(p *process.Process, root *cobra.Command) {
	labs := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return labNames(p), cobra.ShellCompDirectiveNoFileComp
	}
	arguments := map[string]completer{
		"limit": workloadNames, "sweep": workloadNames, "ab": workloadNames, "check": workloadNames, "rbac": workloadNames, "job": first(workloadNames), "image list": first(workloadNames),
		"workloads show": workloadNames, "workloads export": workloadNames,
		"analyze": runDirectories(1), "report": runDirectories(0), "compare": runDirectories(0), "runs name": runDirectories(1), "runs remove": runDirectories(0),
		"lab status": first(labs), "lab kubeconfig": first(labs), "lab down": first(labs),
		"signatures show": first(signatureNames),
	}
	flags := map[string]completer{
		"lab": labs, "axis": ofWorkload(axisNames), "set": ofWorkload(paramNames), "guard": ofWorkload(guardNames),
		"require": ofWorkload(goalNames), "metric": ofWorkload(metricNames), "output": formats,
		"fresh": fixed("objects", "lab"), "pace": fixed("max"), "resume": runDirectories(0), "baseline": runDirectories(0), "ignore": fixed(lintRules()...),
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if f, ok := arguments[strings.TrimPrefix(c.CommandPath(), root.Name()+" ")]; ok {
			c.ValidArgsFunction = f
		}
		for name, f := range flags {
			if c.Flags().Lookup(name) == nil || name == "lab" && c.Flags().Lookup(name).Value.Type() == "bool" {
				continue
			}
			if err := c.RegisterFlagCompletionFunc(name, f); err != nil {
				panic("complete --" + name + ": " + err.Error()) // registered twice
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

func fixed(words ...string) completer {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

// first offers for the first argument only.
func first(of completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(cmd, args, typed)
	}
}

// workloadNames returns the built-in workloads; what has a slash is a directory.
func workloadNames(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.ContainsRune(typed, filepath.Separator) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	list, err := workload.List(workloads.FS(), process.Targets())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, w := range list {
		names = append(names, w.Name+"\t"+w.Help)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func signatureNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list, err := signature.Builtin()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name+"\t"+process.Printable(s.Title))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func lintRules() (names []string) {
	for _, r := range lint.Rules() {
		names = append(names, r.ID+"\t"+r.Title)
	}
	return names
}

// labNames returns the labs there are; unlike a command, it removes none.
func labNames(p *process.Process) (names []string) {
	dir, err := p.StateDir()
	if err != nil {
		return nil
	}
	labs, err := lab.Store{Root: dir, Executable: p.Executable}.List()
	if err != nil {
		return nil
	}
	for _, l := range labs {
		if spec := l.Spec(); !spec.Private { // which is its run's own
			names = append(names, spec.Name)
		}
	}
	return names
}

// runDirectories returns the run directories that begin with what was typed: those
// beside it and those in plimsoll-runs. Most is of how many, 0 for no bound.
func runDirectories(most int) completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		dirs := []string{filepath.Dir(typed + "x")}
		if dirs[0] == "." {
			dirs = append(dirs, record.RunsDir)
		}
		var found []string
		for _, dir := range dirs {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				path := filepath.Join(dir, e.Name())
				if strings.HasPrefix(typed, "./") && dir == "." {
					path = "./" + path
				}
				if _, err := fs.Stat(os.DirFS(filepath.Join(dir, e.Name())), record.HistoryFile); err == nil && !slices.Contains(args, path) {
					found = append(found, path)
				}
			}
		}
		if len(found) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// ofWorkload offers what a workload has: the one that the line names so far.
func ofWorkload(of func(w *workload.Workload, axis string) ([]string, cobra.ShellCompDirective)) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		w, err := process.LoadWorkload(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		axis := ""
		if f := cmd.Flags().Lookup("axis"); f != nil {
			axis = f.Value.String()
		}
		if a, err := w.Axis(axis); err == nil {
			axis = a.Name
		}
		return of(w, axis)
	}
}

func axisNames(w *workload.Workload, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, a := range w.Axes {
		names = append(names, a.Name+"\t"+a.Help)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func paramNames(w *workload.Workload, _ string) (names []string, _ cobra.ShellCompDirective) {
	for _, p := range w.Params {
		if len(p.Values) == 0 {
			names = append(names, p.Name+"=\t"+p.Help)
		}
		for _, v := range p.Values {
			names = append(names, p.Name+"="+v+"\t"+p.Help)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func guardNames(w *workload.Workload, axis string) (names []string, _ cobra.ShellCompDirective) {
	for _, m := range w.KindOn(axis).Measures {
		names = append(names, m.Name+"=\t"+m.Help)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func goalNames(w *workload.Workload, axis string) (names []string, _ cobra.ShellCompDirective) {
	goals := w.Goals
	if a, err := w.Axis(axis); err == nil && len(a.Goals) > 0 {
		goals = a.Goals
	}
	names = []string{"all\tthe worst of all goals"}
	for _, g := range goals {
		names = append(names, g.Key+"\t"+strings.Join(g.Value, "; "))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func metricNames(w *workload.Workload, axis string) (names []string, _ cobra.ShellCompDirective) {
	kind := w.KindOn(axis)
	for _, m := range kind.Names() {
		for _, figure := range []string{"p50", "p90", "p95", "p99", "max"} {
			names = append(names, m+" "+figure)
		}
	}
	for _, m := range kind.Metrics {
		names = append(names, m.Name+"\t"+m.Help)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// formats returns the formats in a command's own help.
func formats(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	words := make(map[string]bool)
	for word := range strings.FieldsFuncSeq(cmd.Flags().Lookup("output").Usage, func(r rune) bool { return r == ' ' || r == ',' }) {
		words[word] = word != "or"
	}
	maps.DeleteFunc(words, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(words)), cobra.ShellCompDirectiveNoFileComp
}
