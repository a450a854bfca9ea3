package experiment

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
)

// brings are a target's own settings that may bring programs and files in, besides
// what they name themselves.
type brings interface {
	// Brings are programs, and files with the directories in which they may lie.
	Brings() (programs []string, files map[string]string)
}

// trust refuses what a plan that came from a file brings in and its user did not name:
// any program, and files that lie neither beside the plan nor where it is run. Allow
// are programs, files and directories that the user has named.
func trust(p *plan.Plan, w *workload.Workload, file string, allow []string, named bool) error {
	program := func(what, path string) error {
		if slices.ContainsFunc(allow, func(a string) bool { return resolved(programAt(a)) == resolved(programAt(path)) }) {
			return nil
		}
		return process.Usagef(fmt.Sprintf("if you know it: --allow %s; or name it on the command line of limit, sweep or ab", path), "%s: %s names the program %s, and a plan says what is measured, not what is run", file, what, path)
	}
	lies := func(what, path string, in ...string) error {
		if slices.ContainsFunc(allow, func(a string) bool { return resolved(a) == resolved(path) || within(a, path) }) || slices.ContainsFunc(in, func(dir string) bool { return within(dir, path) }) {
			return nil
		}
		return process.Usagef(fmt.Sprintf("if it may be read: --allow %s; or put it beside the plan", path), "%s: %s names the file %s, which lies neither beside the plan nor where it is run", file, what, path)
	}
	for _, b := range p.Brings(w.Target) {
		check := func() error { return lies(b.At, b.Value, filepath.Dir(file), ".") }
		if b.Program {
			check = func() error { return program(b.At, b.Value) }
		}
		if err := check(); err != nil {
			return err
		}
	}
	own, _ := p.Settings(w.Target) // the plan is valid, or will be refused
	by, ok := own.(brings)
	if !ok || named {
		return nil
	}
	programs, files := by.Brings()
	for _, path := range programs {
		if err := program(settingsPath(own), path); err != nil {
			return err
		}
	}
	for path, in := range files {
		if err := lies(settingsPath(own), path, in); err != nil {
			return err
		}
	}
	return nil
}

// allBrought are the programs and files that a plan brings in.
func allBrought(p *plan.Plan, w *workload.Workload) (list []string) {
	for _, b := range p.Brings(w.Target) {
		list = append(list, b.Value)
	}
	own, _ := p.Settings(w.Target) // as above
	if by, ok := own.(brings); ok {
		programs, files := by.Brings()
		list = append(append(list, programs...), slices.Collect(maps.Keys(files))...)
	}
	return list
}

// programAt is the path of the program that a name runs: one without a slash is looked
// for in PATH, and never where this program was started.
func programAt(name string) string {
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	return name
}

// settingsPath names the settings of a target.
func settingsPath(own settings.Own) string { return "target (" + own.System() + ")" }

// resolved is where a path leads, links resolved as far as there are any.
func resolved(path string) string {
	path, _ = filepath.Abs(path) // it fails only where there is no working directory
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(found, rest)
		}
	}
}

// within reports whether a file lies in a directory or below it, links resolved. The
// root directory, and what is hidden, do not count.
func within(dir, path string) bool {
	below, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && resolved(dir) != string(os.PathSeparator) && !slices.ContainsFunc(strings.Split(below, string(os.PathSeparator)), func(part string) bool { return strings.HasPrefix(part, ".") })
}
