// Package experiment has the commands that run experiments, judge their records again and
// show results. It turns flags and plan files into runs.
package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Commands returns the commands that run experiments and show their results and parts.
func Commands(p *process.Process, stop *process.Interrupts) []*cobra.Command {
	return []*cobra.Command{
		newLimitCommand(p, stop), newSweepCommand(p, stop), newABCommand(p, stop), newRunCommand(p, stop), newCheckCommand(p, stop), newRBACCommand(p), newJobCommand(p),
		newAnalyzeCommand(p), newReportCommand(p), newWorkloadsCommand(p), newSignaturesCommand(p), newKubeBurnerCommand(p, stop),
	}
}

// consent holds the flags by which a user agrees to a load.
type consent struct {
	Yes          bool `yaml:"yes" flag:"yes"`                    // to load a system that is not ours
	Reboots      int  `yaml:"reboots" flag:"reboots"`            // how many nodes may be rebooted
	Hooks        bool `yaml:"hooks" flag:"hooks"`                // to run the commands of a configuration
	IgnoreHealth bool `yaml:"ignoreHealth" flag:"ignore-health"` // to load a system that is not fit for it
	Wait         bool `yaml:"wait" flag:"wait"`                  // to wait for other runs to end
}

// word returns what the flags allow a plan from a file to name.
func (f *experimentFlags) word() word {
	return word{allow: f.allow, system: f.own.Names(), prometheus: f.prometheus.URL != ""}
}

// experimentFlags are the flags that limit, sweep and run share. Those of an
// experiment fill in a plan.
type experimentFlags struct {
	own, given, agreed settings.Flags // of targets, of the plan, and of consent
	consent
	dryRun bool
	allow  []string // what a plan may bring in
	// experiment
	plan             plan.Plan
	slos, goals, set []string
	userData         string // a file
	vary             []string
	guards           []string
	prometheus       prometheusFlags
	signatures       string
	documented
	// record and result
	out, output, baseline, margin string
	explain, summary              bool
}

// add adds the flags that limit, sweep and ab have in common.
func (f *experimentFlags) add(cmd *cobra.Command) {
	f.addDryRun(cmd)
	f.addOwn(cmd, func(settings.Field) bool { return true }, append(ofConsent(), "fresh", "normal-events", "scrape", "max-series")...)
	f.addOutput(cmd)
	f.addNight(cmd)
	flags := cmd.Flags()
	f.addPlan(flags, "name", "axis", lifeFlag, "pace", "hold", "hold-max", "step-timeout", "budget", "guard-query", "seed")
	flags.StringArrayVar(&f.slos, "slo", nil, "`objective` that must hold at a level, instead of the workload's goals; may be repeated")
	flags.StringArrayVar(&f.goals, "goal", nil, "another goal, with its own load line: `NAME='SLO; SLO'`; may be repeated")
	flags.StringArrayVar(&f.set, "set", nil, "parameter of the workload as `k=v`; may be repeated")
	f.addUserData(cmd)
	if cmd.Name() != "ab" {
		flags.StringArrayVar(&f.vary, "vary", nil, "values that are varied, as `k=v1,v2,...` (k=v1;v2 where a value holds commas): of a parameter, or of a setting of the target by its key in a plan, such as lab.nodes; may be repeated, and each combination is a run of its own")
	}
	flags.StringArrayVar(&f.guards, "guard", nil, "stop the load when a measure reaches a bound: `name=bound`, for example apiErrors=5%; 'plimsoll workloads show WORKLOAD' lists the measures; may be repeated")
	f.prometheus.add(cmd)
	f.addSignatures(cmd)
}

func (f *experimentFlags) addDryRun(cmd *cobra.Command) {
	cmd.Annotations = map[string]string{process.HoldsNothing: "until the run begins"} // plans may take long to fill in
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "list what would be created, changed, rebooted and removed, and do nothing")
}

// lifeFlag names the flag of an object's life.
const lifeFlag = "life"

func (f *experimentFlags) addSignatures(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.signatures, "signatures", "", "also look for the failures in this `directory`; see 'plimsoll signatures'")
}

func (f *experimentFlags) addOutput(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "run `directory` for the record (default plimsoll-runs/TIME-NAME)")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	flags.BoolVar(&f.explain, "explain", false, "say why each level was chosen, and more of what was found")
}

// addNight adds the flags of runs that are repeated.
func (f *experimentFlags) addNight(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "compare the run with an earlier record: `last|NAME|DIR`, the last of the same plan beside the run's, one by its name there, or a directory of one or of several; see 'plimsoll runs'")
	if cmd.Name() != "ab" { // which has a margin of its own
		cmd.Flags().StringVar(&f.margin, "margin", "", "relative change of the baseline that still counts as the same (default 5%)")
	}
	cmd.Flags().BoolVar(&f.summary, "summary", false, "print a line of JSON at the end: verdict, exit code, load line, baseline and paths")
}

func newLimitCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "limit WORKLOAD",
		Short: "How far? Search an axis for the load line and confirm it",
		Long: `Raise a workload until it fails, find out what failed and why, narrow the range,
and confirm the highest level that holds by repeating it from empty. WORKLOAD is
the name of a built-in workload, a directory with one, or a configuration of
kube-burner.

Where no target is named, one is made for the run and removed after it.
An objective is ` + slo.Grammar + `.

The exit code is 0 if the line was confirmed, 1 if the first level failed, 3 if
what was measured does not decide, 4 if the program itself was the bottleneck. It
follows the headline goal: the first of the workload, or that of --slo. With
--require all it is the worst of all goals.`,
		Example: `  plimsoll limit node-density --lab-nodes 20 --from 50 --step 25
  plimsoll limit node-density --kubeconfig ~/.kube/config --max 250
  plimsoll limit node-density --slo 'ContainersStarted p99 <= 5s'`,
		Args: process.ExactlyOne("workload"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x := f.experiment(cmd, args[0])
			x.plan.Kind = plan.Limit
			return x.run(p, stop)
		},
	}
	f.addLimit(cmd)
	return cmd
}

// addLimit adds the flags of limit.
func (f *experimentFlags) addLimit(cmd *cobra.Command) {
	f.add(cmd)
	f.addPlan(cmd.Flags(), "require", "from", "step", "max", "resolution", "confirm")
}

func newSweepCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var f experimentFlags
	cmd := &cobra.Command{
		Use:   "sweep WORKLOAD --levels L1,L2,...",
		Short: "How does it behave along the axis? Hold given levels",
		Long: `Hold a workload at the given levels, one after the other. For a higher level, only
the difference is added. A lower level begins from empty. The exit code is 1 if a
level failed the headline goal, which is the first; --require names another or
all.`,
		Example: `  plimsoll sweep node-density --lab-nodes 100 --levels 10,20,40`,
		Args:    process.ExactlyOne("workload"),
		RunE: func(cmd *cobra.Command, args []string) error {
			x := f.experiment(cmd, args[0])
			x.plan.Kind = plan.Sweep
			return x.run(p, stop)
		},
	}
	f.add(cmd)
	f.addPlan(cmd.Flags(), "require", "levels", "repeat")
	cmd.Flags().Lookup("repeat").Usage = "how often all levels are made; with --vary, in rounds over the combinations in a random order (default the workload's, else 1)"
	return cmd
}

func newRunCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var f experimentFlags
	var resume string
	cmd := &cobra.Command{
		Use:   "run FILE | run --resume DIR",
		Short: "Run an experiment, or a kube-burner configuration, from a file",
		Long: `Run the experiment in a file (schema: ` + plan.Schema + `). Every run leaves
such a file in its directory: experiment.yaml. Flags of a target override the file.

A file with jobs is a kube-burner configuration. Its jobs are made in their order,
each whole and as fast as its qps says, and each is a step of the run. Variables come
from the environment, over these from --user-data, and over these from --set. limit,
sweep and ab take such a file as a workload.

With --resume, a run that was killed, interrupted or out of budget continues in
its directory with the next step. A step that was cut is repeated from empty. A
private lab is created again in the same shape. Any other target must be the
run's own, and what the run left there is removed first. Paths in the plan are
relative to the directory in which the run was started: resume it there. A
budget starts again from zero.

A plan may come from somebody else. It names no program, no address that is asked,
and no file or directory that lies neither beside it nor below the working directory,
unless --allow does, too.`,
		Example: `  plimsoll run examples/002-pods-per-node.yaml
  plimsoll run examples/kube-burner/density.yml --set QPS=50
  plimsoll run --resume plimsoll-runs/20261121-101500-node-density`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("resume"):
				return process.ExactlyOne("file")(cmd, args)
			case len(args) > 0:
				return process.Usagef("leave out one of them", "run %s starts a run, and --resume %s continues another", args[0], resume)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("resume") {
				return resumeRun(cmd, p, stop, &f, resume)
			}
			file := args[0]
			if _, ok := process.Configuration(file); ok {
				x := f.experiment(cmd, file)
				x.plan.Kind, x.plan.Axis.Name, x.plan.Pace = plan.Sweep, workload.AxisJobs, plan.Pace{Max: true}
				return x.run(p, stop)
			}
			loaded, err := process.LoadPlan(file)
			if err != nil {
				return err
			}
			x := &experimentCommand{cmd: cmd, flags: &f, plan: loaded, file: file}
			// A copy that a run has left is run again, not continued.
			x.plan.AsRun = nil
			if err := f.addBudget(x.plan); err != nil {
				return err
			}
			x.targetFromFlags()
			w, err := trustedWorkload(loaded, file, f.word())
			if err != nil {
				if f.dryRun && f.output == "text" {
					r := &runner{plan: loaded, workload: w, file: file, said: f.word()}
					_ = loaded.ReadTarget(r.target()) // it is refused already
					printChanges(p, r.named(cmd.Context(), nil), system.Use)
				}
				return err
			}
			if err := f.giveSecrets(p, w, loaded); err != nil {
				return err
			}
			return x.run(p, stop)
		},
	}
	f.addDryRun(cmd)
	f.addOwn(cmd, func(settings.Field) bool { return true }, ofConsent()...)
	f.addPlan(cmd.Flags(), "budget")
	f.prometheus.add(cmd)
	f.addSignatures(cmd)
	f.addUserData(cmd)
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "variable of a configuration, or a secret parameter that the file or the record does not have, as `k=v`; may be repeated")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "a program or address that the plan may name, or a file or directory of it that lies elsewhere; may be repeated: `path`")
	cmd.Flags().StringVar(&resume, "resume", "", "continue the run in this `directory`")
	f.addOutput(cmd)
	f.addNight(cmd)
	return cmd
}

// experimentCommand is one experiment on its way from flags or a file to a
// result.
type experimentCommand struct {
	cmd    *cobra.Command
	flags  *experimentFlags
	plan   *plan.Plan
	file   string // the plan came from, "" for flags
	err    error  // the first flag that could not be read
	target workload.Target
	// missing are variables of a configuration that have no value.
	missing []string
}

// loadWorkload finds the plan's workload, which all flags that were given must
// belong to.
func (x *experimentCommand) loadWorkload() (*workload.Workload, error) {
	w, err := process.LoadAllowed(x.plan.Workload, x.flags.allow)
	if err != nil {
		return nil, err
	}
	x.target = w.Target
	return w, ofOtherTarget(x.cmd, w)
}

// experiment fills in a plan from the flags that were given.
func (f *experimentFlags) experiment(cmd *cobra.Command, workloadName string) *experimentCommand {
	p := &f.plan
	x := &experimentCommand{cmd: cmd, flags: f, plan: p}
	p.Schema, p.Workload = plan.Schema, workloadName
	if err := p.ReadFlags(f.given.Over(strictyaml.Raw{})); err != nil {
		x.fail(process.Usagef("", "%w", err))
	}
	pairs(f.set, "--set ", "k=v", "for example --set image=quay.io/my/pause:1", x.fail, func(key, value string) bool {
		_, twice := p.Params[key]
		if p.Params == nil {
			p.Params = make(map[string]string)
		}
		p.Params[key] = value
		return twice
	})
	pairs(f.guards, "--guard ", "name=bound", "for example --guard nodesNotReady=1", x.fail, func(name, value string) bool {
		_, twice := p.Guards[name]
		if err := p.Guards.Set(name, value); err != nil {
			x.fail(process.Usagef("for example --guard nodesNotReady=1 or --guard apiErrors=5%", "--guard %s: %w", name, err))
		}
		return twice
	})
	pairs(f.vary, "--vary ", "k=v1,v2,...", "for example --vary image=quay.io/my/a:1,quay.io/my/b:1", x.fail, func(key, value string) bool {
		_, twice := p.Vary.Get(key)
		comma := ","
		if strings.Contains(value, ";") {
			comma = ";"
		}
		p.Vary = append(p.Vary, strictyaml.Item[[]string]{Key: key, Value: strings.Split(value, comma)})
		return twice
	})
	x.goals()
	x.targetFromFlags()
	return x
}

func (x *experimentCommand) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// pairs reads texts that are each a key and a value. Set takes one and reports
// whether the key was given before; fail takes what is wrong, behind the flag.
func pairs(texts []string, flag, want, hint string, fail func(error), set func(key, value string) (twice bool)) {
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || key == "":
			fail(process.Usagef(hint, "%s%q: want %s", flag, text, want))
		case set(key, value):
			fail(process.Usagef("", "%s%s is given twice", flag, key))
		}
	}
}

// goals fills in the goals: --slo replaces the workload's own, --goal adds.
func (x *experimentCommand) goals() {
	if len(x.flags.slos) > 0 {
		x.plan.Goals = append(x.plan.Goals, strictyaml.Item[[]string]{Key: "slo", Value: x.flags.slos})
	}
	for _, text := range x.flags.goals {
		g, err := slo.ParseGoal(text)
		if err != nil {
			x.fail(process.Usagef("for example --goal fast='Ready p99 <= 5s; errors < 1%'", "--goal: %w", err))
			continue
		}
		if _, twice := x.plan.Goals.Get(g.Name); twice {
			x.fail(process.Usagef("", "--goal %s is given twice", g.Name))
		}
		x.plan.Goals = append(x.plan.Goals, strictyaml.Item[[]string]{Key: g.Name, Value: g.Texts()})
	}
}

// addBudget lets --budget replace the budget of a plan from a file.
func (f *experimentFlags) addBudget(to *plan.Plan) error {
	var given plan.Plan
	if err := given.ReadFlags(f.given.Over(strictyaml.Raw{})); err != nil {
		return process.Usagef("", "%w", err)
	}
	to.Budget = cmp.Or(given.Budget, to.Budget)
	return nil
}

// targetFromFlags lets flags that name a target come before the plan's own.
func (x *experimentCommand) targetFromFlags() {
	x.plan.Target = x.flags.own.Over(x.plan.Target)
}

// run completes the plan, runs it and shows its result.
func (x *experimentCommand) run(p *process.Process, stop *process.Interrupts) error {
	if x.err != nil {
		return x.err
	}
	if err := process.CheckOutput(x.flags.output); err != nil {
		return err
	}
	if x.flags.summary && x.flags.output == "json" {
		return process.Usagef("leave one of them out", "-o json prints one document, and --summary another")
	}
	w, err := x.loadWorkload()
	if err != nil {
		return err
	}
	if err := x.variables(p, w); err != nil {
		return err
	}
	if len(x.flags.slos) == 0 && len(x.flags.goals) > 0 {
		// Further goals stand beside the workload's own.
		x.plan.Goals = append(slices.Clone(w.Goals), x.plan.Goals...)
	}
	access, err := x.flags.prometheus.access(p, x.plan)
	if err != nil {
		return err
	}
	levels := x.askedIn()
	given := x.plan.Axis.Search
	fromOpen, stepOpen := given == nil || given.From == 0, given == nil || given.Step == 0
	more, err := loadSignatures(x.flags.signatures)
	if err != nil {
		return err
	}
	x.plan.Signatures = signature.Merge(x.plan.Signatures, more)
	x.plan.Default(w)
	if err := x.plan.Hide(w, p.Secrets); err != nil {
		return err
	}
	if x.plan.Seed == 0 {
		if x.plan.Seed, err = p.RandomSeed(); err != nil {
			return err
		}
	}
	if err := x.plan.Validate(w); err != nil {
		return x.planError(err)
	}
	r := &runner{plan: x.plan, workload: w, out: x.flags.out, asked: levels, fromOpen: fromOpen, stepOpen: stepOpen, file: x.file}
	r.under(p, stop, x.flags)
	r.access = access
	if r.baseline, err = records.FindBaseline(p, x.flags.baseline, x.flags.margin, x.flags.out, x.plan); err != nil {
		return err
	}
	if x.flags.dryRun {
		return r.outline(x.cmd.Context(), x.flags.output)
	}
	if len(r.plan.Vary) > 0 {
		return r.showGrid(x.flags)
	}
	return r.show(x.flags)
}

// show makes the run and shows its result: before the target is emptied, where
// that takes a while. As JSON it is shown once all of it is known.
func (r *runner) show(f *experimentFlags) error {
	p := r.p
	said, shown, shownCode := "", false, 0
	var showErr error
	var against *recorded.Against
	show := func(dir record.Dir, result *result.Result, err error) {
		if err != nil && !r.mild(err) && err.Error() != said {
			said = err.Error()
			p.Logf("plimsoll: %s\n", said)
		}
		if !shown {
			shown, shownCode = true, result.ExitCode
			showErr = showResult(p, *result, against, string(dir), f.output, f.explain)
			r.page(dir, f.output != "json")
			r.hasTold()
			if f.ended != nil {
				f.ended.result, f.ended.err = result, err
			}
			writeErr := r.document(dir)
			if f.ended != nil {
				f.ended.unsent, f.ended.alerted = writeErr != nil || r.alerted == process.ExitInconclusive, r.alerted == process.ExitFail
			}
			if writeErr != nil {
				p.Logf("warning: %v; 'plimsoll analyze %s --documents DIR' writes the documents\n", writeErr, dir)
			}
		}
	}
	dir, result, err := r.run(func(dir record.Dir, result *result.Result, err error) {
		if f.output != "json" {
			show(dir, result, err)
		}
	})
	if result == nil {
		if left, ok := errors.AsType[*system.LeftError](err); ok {
			return &system.UnableError{Err: err, Hint: leftText(left.Left, r.cleanCommand())}
		}
		return err
	}
	against = r.against(dir)
	show(dir, result, err)
	if against != nil && f.output == "text" {
		showErr = cmp.Or(showErr, r.showAgainst(against, dir))
	}
	if result.ExitCode != shownCode {
		p.Logf("the exit code, %d, is that of the signal that came while the target was emptied\n", result.ExitCode)
	}
	if c := result.Cleanup; c != nil && !c.Done {
		p.Logf("%s\n", leftText(c.Left, r.cleanCommand()))
	}
	if hint := process.HintOf(err); hint != "" && process.ExitCode(err) == process.ExitUsage {
		p.Logf("hint: %s\n", hint)
	} else if err != nil {
		r.stop.Continues.Store(nil) // it is said
		p.Logf("hint: '%s' continues it\n", r.resumeCommand(dir))
	}
	code := against.Code(result.ExitCode)
	if code == process.ExitPass {
		code = r.alerted
	}
	if f.summary {
		showErr = cmp.Or(showErr, r.summarise(dir, *result, against, code))
	}
	if showErr != nil {
		return showErr
	}
	if err != nil && !r.told(err) && r.stop.Soft.Err() == nil {
		return process.ExitError(process.ExitCode(err))
	}
	return process.ExitError(code)
}

// against compares the run in a directory with its baseline: nil without one, or where a signal
// ended the run.
func (r *runner) against(dir record.Dir) *recorded.Against {
	if r.baseline == nil || r.stop.Soft.Err() != nil {
		return nil
	}
	defer r.p.WaitFor("comparing with the baseline")()
	return r.baseline.Compare(r.stop.Soft, r.p, dir)
}

// showAgainst prints how the run compares with its baseline, and writes its page again with that.
func (r *runner) showAgainst(a *recorded.Against, dir record.Dir) error {
	more := process.CommandLine([]string{"compare", a.Baseline, string(dir)})
	if err := text.Write(r.p.Text(), view.Against(a, more)); err != nil {
		return fmt.Errorf("print the comparison: %w", err)
	}
	if !record.IsGrid(string(dir)) {
		r.page(dir, false)
	}
	return nil
}

// summarySchema names the format of the line of --summary.
const summarySchema = "plimsoll/summary/v1"

// summarise prints the line of --summary.
func (r *runner) summarise(dir record.Dir, found result.Result, a *recorded.Against, code int) error {
	line := struct {
		Schema string `json:"schema"`
		view.Listed
		Baseline *recorded.Against `json:"baseline,omitempty"`
	}{summarySchema, view.ListedOf(string(dir), r.plan, &found), a}
	line.ExitCode, line.Report = &code, dir.Path(record.ReportFile)
	if a != nil {
		short := *a
		short.Schema, short.Comparisons = "", nil
		line.Baseline = &short
	}
	data, err := record.Encode(line, "")
	r.p.Printf("%s\n", data)
	return err
}

// leftText says that something of a run is left, and what removes it.
func leftText(left int, command string) string {
	text, them := "1 thing that the run made is left", "it"
	if left != 1 {
		text, them = fmt.Sprintf("%d things that the run made are left", left), "them"
	}
	if command != "" {
		text += "; this removes " + them + ": " + command
	}
	return text
}

// page writes the page of a run. The run is what it is without a page of it.
func (r *runner) page(dir record.Dir, say bool) {
	written := r.p.WaitFor("writing the page")
	err := report.WriteFile(dir)
	written()
	if err != nil {
		r.p.Logf("warning: %v; 'plimsoll report %s' tries again\n", err, dir)
	} else if say {
		r.p.Printf("Report: %s\n", dir.Path(record.ReportFile))
	}
}

// planError makes a usage error of a plan's mistakes, in the words of flags
// where it came from flags.
func (x *experimentCommand) planError(err error) error {
	if x.file != "" {
		return process.Usagef("", "%w", err)
	}
	problems := strictyaml.Problems(err)
	if len(problems) == 0 {
		return process.Usagef("", "%w", err)
	}
	var lines []string
	hint := ""
	for _, problem := range problems {
		flag := settings.FlagOf(x.plan, problem.Path)
		if path, own := strings.CutPrefix(problem.Path, "target."); own && x.target.Settings != nil {
			flag = settings.FlagOf(x.target.Settings(), path)
		} else if flag == "--goal slo" {
			flag = "--slo"
		}
		lines = append(lines, strings.TrimPrefix(flag+": ", ": ")+problem.Message)
		hint = cmp.Or(hint, problem.Hint)
	}
	return process.Usagef(hint, "%s", strings.Join(lines, "\nplimsoll: "))
}

// showResult prints a result, and how the run compares with its baseline, nil for none, where all is one document.
func showResult(p *process.Process, r result.Result, a *recorded.Against, dir, format string, explain bool) error {
	document := struct {
		result.Result
		Record   string            `json:"record"` // where it lies
		Baseline *recorded.Against `json:"baseline,omitempty"`
	}{r, dir, a}
	return showAs(p, format, document, func() error { return report.JUnit(p.Stdout, r, a) }, view.Run(r, dir, explain))
}

// showAs prints a result in a format.
func showAs(p *process.Process, format string, document any, junit func() error, said []view.Section) error {
	switch format {
	case "json":
		return process.PrintJSON(p, document)
	case "junit":
		return junit()
	}
	if err := text.Write(p.Text(), said); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

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
