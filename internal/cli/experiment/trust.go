package experiment

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
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

// word holds what a user allows a plan to bring in, by flags.
type word struct {
	allow      []string // programs, files, directories and addresses
	system     bool     // which system is loaded
	prometheus bool     // which Prometheus is asked
	// resumed says that the plan is the copy of a run that goes on: its system cannot
	// be named again, and is confirmed before it is loaded.
	resumed bool
}

// allows reports whether the user has named a file or directory, or one that it lies in.
func (s word) allows(path string) bool {
	return slices.ContainsFunc(s.allow, func(a string) bool { return resolved(a) == resolved(path) || within(a, path) })
}

// trusted refuses one thing that a plan from a file names, unless it lies beside the plan
// or below the working directory, or the user has named it, too.
func (s word) trusted(b plan.Brought, file string) error {
	lies := within(filepath.Dir(file), b.Value) || within(".", b.Value) || s.allows(b.Value)
	const elsewhere = "which lies neither beside the plan nor where it is run"
	switch b.Kind {
	case plan.BroughtProgram:
		return s.program(b.At, b.Value, file)
	case plan.BroughtAddress:
		if s.prometheus || slices.Contains(s.allow, b.Value) {
			return nil
		}
		return process.Usagef(fmt.Sprintf("if it may be asked: --allow %s, or --prometheus %[1]s", b.Value), "%s: %s names the address %s, and a plan says what is measured, not who is asked", file, b.At, b.Value)
	case plan.BroughtDirectory:
		if lies {
			return nil
		}
		return process.Usagef(fmt.Sprintf("if it may be written to: --allow %s", b.Value), "%s: %s names the directory %s, %s", file, b.At, b.Value, elsewhere)
	}
	if lies {
		return nil
	}
	return process.Usagef(fmt.Sprintf("if it may be read: --allow %s; or put it beside the plan", b.Value), "%s: %s names the %s %s, %s", file, b.At, b.Kind, b.Value, elsewhere)
}

// program refuses a program that the user has not named.
func (s word) program(at, path, file string) error {
	if slices.ContainsFunc(s.allow, func(a string) bool { return resolved(programAt(a)) == resolved(programAt(path)) }) {
		return nil
	}
	return process.Usagef(fmt.Sprintf("if you know it: --allow %s; or name it on the command line of limit, sweep or ab", path), "%s: %s names the program %s, and a plan says what is measured, not what is run", file, at, path)
}

// trustedWorkload finds the workload of a plan that came from a file. What the plan names
// and its user did not name is refused before it is read: any program and address, and
// files and directories that lie neither beside the plan nor where it is run.
func trustedWorkload(p *plan.Plan, file string, s word) (*workload.Workload, error) {
	for _, b := range p.Brings(workload.Target{}) { // its workload is the first
		if err := s.trusted(b, file); err != nil {
			return nil, err
		}
	}
	w, err := process.LoadAllowed(p.Workload, s.allow)
	if err != nil {
		return nil, err
	}
	_ = p.ReadTarget(w.Target) // Validate reports what is wrong
	for _, b := range p.Brings(w.Target) {
		if err := s.trusted(b, file); err != nil {
			return w, err
		}
	}
	if s.system {
		return w, nil
	}
	if config := kubeconfigOf(p.Own); config != "" && !s.resumed {
		if err := s.trusted(plan.Brought{At: "target.kubeconfig", Value: config, Kind: plan.BroughtFile}, file); err != nil {
			return w, err
		}
	}
	by, ok := p.Own.(brings)
	if !ok {
		return w, nil
	}
	programs, files := by.Brings()
	for _, path := range programs {
		if err := s.program(settingsPath(p.Own), path, file); err != nil {
			return w, err
		}
	}
	for path, in := range files {
		if !within(in, path) && !s.allows(path) {
			return w, process.Usagef(fmt.Sprintf("if it may be read: --allow %s; or put it beside the kubeconfig", path), "%s: %s names the file %s, which does not lie beside the kubeconfig", file, settingsPath(p.Own), path)
		}
	}
	return w, nil
}

// kubeconfigOf returns the kubeconfig that settings name, "" for none.
func kubeconfigOf(own settings.Own) string {
	if own == nil {
		return ""
	}
	flags := own.Named()
	if i := slices.Index(flags, "--kubeconfig"); i >= 0 {
		return flags[i+1]
	}
	return ""
}

// allBrought lists what a plan brings in, as it is allowed.
func allBrought(p *plan.Plan, w *workload.Workload) (list []string) {
	for _, b := range p.Brings(w.Target) {
		list = append(list, b.Value)
	}
	if config := kubeconfigOf(p.Own); config != "" {
		list = append(list, config)
	}
	if by, ok := p.Own.(brings); ok {
		programs, files := by.Brings()
		list = append(append(list, programs...), slices.Collect(maps.Keys(files))...)
	}
	return list
}

// programAt returns the path of the program that a name runs: one without a slash is looked
// for in PATH, and never where this program was started.
func programAt(name string) string {
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	return name
}

// settingsPath names the settings of a target.
func settingsPath(own settings.Own) string { return "target (" + own.System() + ")" }

// resolved returns the absolute path with all existing links resolved.
func resolved(path string) string {
	path, _ = filepath.Abs(path) // it fails only where there is no working directory
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if found, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(found, rest)
		}
	}
}

// within reports whether a path is a directory or lies below it, links resolved. The
// root directory, and what is hidden, do not count.
func within(dir, path string) bool {
	dir = resolved(dir)
	below, err := filepath.Rel(dir, resolved(path))
	if err != nil || dir == string(os.PathSeparator) {
		return false
	}
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") }
	return below == "." || !slices.ContainsFunc(strings.Split(below, string(os.PathSeparator)), hidden)
}

// prometheusFlags say which Prometheus is asked, and how. What tells it who asks goes
// only to an address of the command line: that of a plan may be anybody's.
type prometheusFlags struct {
	plan.Prometheus
	tokenFile, user, passwordFile, ca string
	insecure                          bool
}

func (f *prometheusFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.URL, "prometheus", "", "also keep what the Prometheus at this `URL` has scraped; "+plan.OpenShift+" for that of the cluster")
	flags.StringArrayVar(&f.Match, "prometheus-match", nil, "`selector` of series to ask it for, besides those of objectives (default CPU and memory of processes); may be repeated")
	flags.StringVar(&f.tokenFile, "prometheus-token-file", "", "`file` with its bearer token, which "+process.PrometheusToken+" in the environment can hold as well")
	flags.StringVar(&f.user, "prometheus-user", "", "`name` for it")
	flags.StringVar(&f.passwordFile, "prometheus-password-file", "", "`file` with the password of that name")
	flags.StringVar(&f.ca, "prometheus-ca", "", "`file` with certificates that are trusted for it, in PEM")
	flags.BoolVar(&f.insecure, "prometheus-insecure", false, "trust any certificate of it")
}

// access puts into the plan which Prometheus is asked, and returns how.
func (f *prometheusFlags) access(p *process.Process, to *plan.Plan) (a metrics.Access, err error) {
	files := [...]struct{ flag, file string }{{"token-file", f.tokenFile}, {"password-file", f.passwordFile}, {"ca", f.ca}}
	if f.URL == "" {
		if f.tokenFile+f.user+f.passwordFile+f.ca != "" || f.insecure || len(f.Match) > 0 {
			err = process.Usagef("add --prometheus URL; what tells who asks is not sent to an address that only a plan names", "no Prometheus is named to which the other flags belong")
		}
		return a, err
	}
	to.Prometheus = &f.Prometheus
	var texts [len(files)]string
	for i, of := range files {
		if of.file == "" {
			continue
		}
		text, err := os.ReadFile(of.file)
		if err != nil {
			return a, process.Usagef("", "--prometheus-%s: %w", of.flag, err)
		}
		texts[i] = strings.TrimSpace(string(text))
	}
	a = metrics.Access{Token: texts[0], User: f.user, Password: texts[1], CA: []byte(texts[2]), Insecure: f.insecure}
	switch {
	case f.tokenFile != "" && f.user != "":
		return a, process.Usagef("leave out one of them", "--prometheus-token-file and --prometheus-user both say who asks")
	case f.passwordFile != "" && f.user == "":
		return a, process.Usagef("add --prometheus-user", "--prometheus-password-file has no user")
	case f.tokenFile == "" && f.user == "":
		a.Token = p.Env(process.PrometheusToken)
	}
	if strings.ContainsAny(a.Token, "\n\r\t ") {
		return a, process.Usagef("", "%w", errors.New("the bearer token of --prometheus is not valid: it has spaces or several lines"))
	}
	return a, nil
}
