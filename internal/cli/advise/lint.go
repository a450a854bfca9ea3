package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/lint"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/cli/experiment"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// lintFlags say what lint is to do.
type lintFlags struct {
	recursive, fix, dryRun, diff, list bool
	ignore                             []string
	output                             string
}

func newLintCommand(p *process.Process) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Find mistakes in configuration files that other checkers do not see",
		Long: `Find mistakes in configuration files that a cluster, a linter or a schema does
not see: in files inside of other files (a KubeletConfig's settings, files of a
MachineConfig, user data of a virtual machine, sysctl settings, tuned profiles),
between files (a selector against labels, a clone against its source, pods per
node against the node's addresses), in commands (oc, ceph, sysctl, gluster), in
the blocks of Markdown and AsciiDoc, and in virtual machines. Give together the
files that belong together.

Not checked: Kubernetes' own kinds (kubeconform, kube-linter or 'oc apply
--dry-run=server' do it), fio's and vdbench's jobs, inventories of Ansible,
kube-burner's files outside of a workload, and files of any other kind. Such a file is
reported as "not checked". This program's own plans and workloads are checked as
'plimsoll run --dry-run' checks them, templates included, and HAProxy's files as
'haproxy -c' checks them, where it is installed.

Each finding says what was found and where, what it costs, and how to fix it;
--fix makes the safe fixes. A comment "plimsoll-ignore: RULE" on the line, or on
the line before, turns a rule off there. "-" is standard input.

Exit code 0: nothing found; 1: findings; 2: a file cannot be read, or no file was
checked; 5: --fix could not write.`,
		Example: `  plimsoll lint -R manifests/
  plimsoll lint kubeletconfig.yaml runbook.md
  plimsoll lint --fix --dry-run vm.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return runLint(cmd.Context(), p, &f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.recursive, "recursive", "R", false, "check the files of directories, too")
	flags.BoolVar(&f.fix, "fix", false, "make the safe fixes, in all files or in none")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --fix: show the fixes as a diff, and write nothing")
	flags.BoolVar(&f.diff, "diff", false, "show the safe fixes as a diff")
	flags.BoolVar(&f.list, "list", false, "list all rules, with what each costs and where that is known from")
	flags.StringSliceVar(&f.ignore, "ignore", nil, "leave this `rule` out; several are separated by commas")
	process.OutputFlag(cmd, &f.output)
	return cmd
}

func runLint(ctx context.Context, p *process.Process, f *lintFlags, args []string) error {
	if f.list {
		return listRules(p, f.output)
	}
	options, err := f.options(ctx, p)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return process.Usagef("for example 'plimsoll lint -R manifests/'; 'plimsoll lint --list' lists the rules", "lint takes files, and none was given")
	}
	if f.dryRun && !f.fix {
		return process.Usagef("write --fix --dry-run, or --diff", "--dry-run belongs to --fix")
	}
	inputs, err := f.read(ctx, p, args)
	if err != nil {
		return err
	}
	if f.fix || f.diff {
		return f.repair(p, inputs, options)
	}
	result := lint.Lint(inputs, options)
	if err := f.show(p, result, nil); err != nil {
		return err
	}
	return lintExit(result)
}

// lintExit returns the exit code that belongs to a result.
func lintExit(r *lint.Result) error {
	switch {
	case len(r.Problems) > 0:
		return process.ExitError(process.ExitUsage)
	case len(r.Findings) > 0:
		return process.ExitError(process.ExitFail)
	case r.Recognised == 0:
		return process.Usagef("'plimsoll lint --help' says what lint checks", "no file was checked")
	}
	return nil
}

// options reads the flags that say what is looked for.
func (f *lintFlags) options(ctx context.Context, p *process.Process) (lint.Options, error) {
	o := lint.Options{Ignore: f.ignore, Kubelet: p.KubeletFaults, HAProxy: func(config string) (string, error) { return askHAProxy(ctx, config) }}
	var known []string
	for _, r := range lint.Rules() {
		known = append(known, r.ID)
	}
	for _, id := range f.ignore {
		if !slices.Contains(known, id) {
			return o, process.Usagef(nearest.Hint(id, known, "'plimsoll lint --list' lists them"), "there is no rule %q", id)
		}
	}
	return o, nil
}

// askHAProxy returns what the installed haproxy -c says of a configuration, which it reads from standard input.
func askHAProxy(ctx context.Context, config string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := haproxy.Program().Find(ctx, "")
	if missing, ok := errors.AsType[*proc.MissingError](err); ok {
		return "", fmt.Errorf("haproxy is not installed (%s)", missing.Remedy())
	}
	if err != nil {
		return "", err
	}
	check := exec.CommandContext(ctx, found.Path, "-c", "-f", "/dev/stdin")
	check.Env, check.Dir, check.Stdin, check.WaitDelay = proc.Environment(), "/", strings.NewReader(config), time.Second
	text, err := check.CombinedOutput()
	if _, refused := errors.AsType[*exec.ExitError](err); err != nil && (!refused || ctx.Err() != nil) {
		return "", fmt.Errorf("haproxy %s did not answer: %w", found.Version, cmp.Or(context.Cause(ctx), err))
	}
	return string(text), nil
}

// maxLintBytes is the largest file that is read, or that a directory is searched for.
const maxLintBytes = 64 << 20

// read reads the files that were named.
func (f *lintFlags) read(ctx context.Context, p *process.Process, args []string) ([]reading.Input, error) {
	var inputs []reading.Input
	seen := make(map[string]bool)
	add := func(name string, asked bool) error {
		if seen[filepath.Clean(name)] {
			return nil
		}
		seen[filepath.Clean(name)] = true
		// A pipe may never end.
		data, err := readNamed(ctx, name)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return lintReadError(name, err)
		}
		in := reading.Input{Name: name, Data: data, Asked: asked}
		in.Faults, in.Checked = ownFaults(ctx, p, name, data)
		inputs = append(inputs, in)
		return nil
	}
	for _, arg := range args {
		if arg == "-" {
			if f.fix && !f.dryRun {
				return nil, process.Usagef("--fix --dry-run shows the diff", "--fix cannot write to standard input")
			}
			data, err := readAll(ctx, p.Stdin)
			if err != nil {
				return nil, process.Usagef("", "read standard input: %w", err)
			}
			inputs = append(inputs, reading.Input{Name: "<stdin>", Data: data, Asked: true})
			continue
		}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, lintReadError(arg, err)
		}
		if !info.IsDir() {
			if err := add(arg, true); err != nil {
				return nil, err
			}
			continue
		}
		if !f.recursive {
			return nil, process.Usagef("-R checks the files in it", "%s is a directory", arg)
		}
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return lintReadError(path, err)
			}
			hidden := strings.HasPrefix(d.Name(), ".") && path != arg
			if d.IsDir() {
				if hidden || d.Name() == "node_modules" {
					return filepath.SkipDir
				}
				return nil
			}
			info, err := d.Info()
			if err != nil || hidden || !info.Mode().IsRegular() || info.Size() > maxLintBytes {
				return nil
			}
			return add(path, false)
		})
		if err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// ownSchema finds the format of a file of this program's own.
var ownSchema = regexp.MustCompile(`(?m)^schema:\s*["']?(plimsoll/[a-z]+/v[0-9]+)\b`)

// ownFaults looks at a plan or a workload as a dry run does; checked is false
// for any other file.
func ownFaults(ctx context.Context, p *process.Process, name string, data []byte) (faults []reading.Fault, checked bool) {
	m := ownSchema.FindSubmatch(data)
	if m == nil {
		return nil, false
	}
	var err error
	dir := filepath.Dir(name) // of the files that a workload's mistakes stand in
	switch schema := string(m[1]); {
	case schema == plan.Schema:
		err = experiment.DryRun(ctx, p, name, nil)
	case schema == workload.Schema && filepath.Base(name) == workload.File:
		var w *workload.Workload
		if w, err = workload.Read(os.DirFS(dir), process.Targets()); err == nil {
			err = experiment.DryRun(ctx, p, "", w)
		}
	default:
		return nil, false
	}
	problems := strictyaml.Problems(err)
	if err != nil && len(problems) == 0 {
		problems = []strictyaml.Problem{{Message: err.Error(), Hint: process.HintOf(err)}}
	}
	for _, problem := range problems {
		f := reading.Fault{File: name, Line: max(problem.Line, 1), Column: problem.Column, Path: problem.Path, Found: problem.Message, Fix: cmp.Or(problem.Hint, "correct it; docs/ says what each key takes")}
		if f.Path != "" {
			f.Found = f.Path + ": " + f.Found
		}
		if problem.File != "" && problem.File != name {
			f.File = filepath.Join(dir, problem.File)
		}
		faults = append(faults, f)
	}
	return faults, true
}

// readNamed reads a file, which may be a pipe, or until the context ends.
func readNamed(ctx context.Context, name string) ([]byte, error) {
	return process.Await(ctx, func() ([]byte, error) {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		data, err := bounded(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return data, nil
	})
}

// readAll reads to the end, or until the context does.
func readAll(ctx context.Context, from io.Reader) ([]byte, error) {
	data, err := process.Await(ctx, func() ([]byte, error) { return bounded(from) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return data, err
}

// bounded reads to the end, if that comes.
func bounded(from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxLintBytes+1))
	if len(data) > maxLintBytes {
		return nil, fmt.Errorf("it has more than %d MiB, which is the most that is checked", maxLintBytes>>20)
	}
	return data, err
}

// lintReadError makes a mistake of the user's of a file that cannot be read.
func lintReadError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return process.Usagef(nearest.File(name), "file %s does not exist", name)
	}
	return process.Usagef("", "%w", err)
}

// repair makes the fixes, or shows them.
func (f *lintFlags) repair(p *process.Process, inputs []reading.Input, options lint.Options) error {
	fixed := lint.Fix(inputs, options)
	write := f.fix && !f.dryRun
	if write {
		if err := lint.Write(fixed.Changes); err != nil {
			return err
		}
	}
	inText := f.output == "text" && (f.dryRun || f.diff)
	if inText {
		for _, c := range fixed.Changes {
			p.Printf("%s", c.Diff())
		}
	}
	if inText && !write {
		p.Logf("%s in %s would be fixed, %s left\n", process.Count(len(fixed.Done), "finding"), process.Count(len(fixed.Changes), "file"), process.Count(len(fixed.Left.Findings), "finding"))
	} else if err := f.show(p, fixed.Left, fixed); err != nil {
		return err
	}
	if !write && len(fixed.Changes) > 0 && len(fixed.Left.Problems) == 0 {
		return process.ExitError(process.ExitFail)
	}
	return lintExit(fixed.Left)
}

// show prints a result; fixed is nil unless fixes were asked for.
func (f *lintFlags) show(p *process.Process, r *lint.Result, fixed *lint.Fixed) error {
	if f.output == "json" {
		out := struct {
			*lint.Result
			Fixed   []report.Finding `json:"fixed,omitempty"`
			Changed []string         `json:"changed,omitempty"`
		}{Result: r}
		if fixed != nil {
			out.Fixed = fixed.Done
			for _, c := range fixed.Changes {
				out.Changed = append(out.Changed, c.Name)
			}
		}
		return process.PrintJSON(p, out)
	}
	if fixed != nil {
		for _, m := range fixed.Done {
			p.Printf("%s:%d:%d: fixed: %s [%s]\n", m.File, m.Line, m.Column, m.Found, m.Rule)
		}
	}
	if err := r.Text(p.Stdout); err != nil {
		return err
	}
	if fixed != nil && len(fixed.Done) > 0 {
		p.Logf("%s fixed in %s\n", process.Count(len(fixed.Done), "finding"), process.Count(len(fixed.Changes), "file"))
	}
	if len(r.Problems) == 0 && r.Recognised > 0 {
		p.Logf("%s\n", r.Summary())
	}
	return nil
}

// listRules prints what is looked for.
func listRules(p *process.Process, output string) error {
	rules := lint.Rules()
	if output == "json" {
		return process.PrintJSON(p, rules)
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rules {
		fmt.Fprintf(t, "%s\t%s\t%s\n\t\twhy: %s\n\t\tsource: %s\n", r.ID, r.Severity, r.Title, r.Why, r.Source)
	}
	return t.Flush()
}
