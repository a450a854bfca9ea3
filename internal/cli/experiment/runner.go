package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/cli/screen"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// runner runs one valid plan.
type runner struct {
	p        *process.Process
	stop     *process.Interrupts
	plan     *plan.Plan
	workload *workload.Workload
	consent
	// fromOpen and stepOpen say that nobody has said where a search begins, and
	// by which step it goes.
	fromOpen, stepOpen bool
	asked              []run.Asked // levels that the user has named
	out                string
	baseline           *records.Baseline // nil for none
	quiet              bool              // print nothing on the way
	file               string            // that the plan came from, "" for flags
	said               word              // what its user has said of what the file may name
	// guards is the text that an earlier run printed about its guards.
	guards string
	access metrics.Access // to a Prometheus
	// steps bounds the steps of this part of the run; 0 is no bound.
	steps int
	// past is the run that goes on, nil for one that begins.
	past *run.Past
	// tells notes that what was found was said, nil before the first step; ofGrid says
	// that a grid says it.
	tells  func()
	ofGrid bool
	// alerted is the exit code that the alerts of its configuration come to.
	alerted int
	documented
}

// under sets the process and the flags of the command that runs it.
func (r *runner) under(p *process.Process, stop *process.Interrupts, f *experimentFlags) {
	r.p, r.stop, r.quiet, r.documented, r.said = p, stop, f.output == "json", f.documented, f.word()
	_ = f.agreed.Over(strictyaml.Raw{}).Decode("", &r.consent, nil) // the flags were read before
}

// mild reports whether an error only says that the run was cut by its user, its
// budget or a guard: its result then says the rest.
func (r *runner) mild(err error) bool {
	return errors.Is(err, run.ErrBudget) || errors.Is(err, engine.ErrNotHealthy) || errors.Is(err, context.Canceled)
}

// told reports whether the result says what an error came to.
func (r *runner) told(err error) bool {
	return errors.As(err, new(*system.CutError)) || r.mild(err)
}

// request returns the target's provider and the request for a session. Without a workload the
// target is a cluster.
func (r *runner) request() (system.Provider, system.Request, error) {
	provider := process.Providers()[0] // as clusters has it
	if r.workload != nil {
		var err error
		if provider, err = process.ProviderOf(r.workload.Target.Name); err != nil {
			return nil, system.Request{}, err
		}
	}
	id, long, err := r.p.Names()
	q := system.Request{Host: r.p.Host(), Plan: r.plan, Workload: r.workload, Run: id, UUID: long, Command: r.p.CommandLine(), Clean: r.cleanCommand(), Wait: r.Wait}
	if r.uuid != "" {
		q.UUID = r.uuid
	}
	if r.past != nil {
		q.Before = r.past.IDs
	}
	return provider, q, err
}

// run makes the plan. It returns the run directory and the result, nil if nothing was
// recorded. It calls judged with the result before a long removal.
func (r *runner) run(judged func(record.Dir, *result.Result, error)) (record.Dir, *result.Result, error) {
	provider, request, err := r.request()
	if err != nil {
		return "", nil, err
	}
	axis, err := r.workload.Axis(r.plan.Axis.Name)
	if err != nil {
		return "", nil, err
	}
	documents, err := r.keep(request.UUID)
	if err != nil {
		return "", nil, err
	}
	keep := func(dir record.Dir) error {
		if !r.ofGrid {
			r.continues(dir)
		}
		if documents == nil {
			return nil
		}
		return documents(dir)
	}
	show := &screen.Display{
		Console: &r.p.Console, Quiet: r.quiet, Soft: r.stop.Soft, Guards: r.guards,
		Title: fmt.Sprintf("%s %s", r.plan.Kind, r.workload.Name), Unit: axis.Unit, Kind: r.workload.KindOn(axis.Name), Plan: r.plan,
	}
	show.Stream = r.workload.TargetAxis(axis.Name).Streams()
	show.Lasts(run.Holds(r.plan, axis, show.Stream))
	show.Start()
	job := run.Job{
		Request: request, Provider: provider, Asked: r.asked, FromOpen: r.fromOpen, StepOpen: r.stepOpen, Out: r.out, Keep: keep,
		IgnoreHealth: r.IgnoreHealth, Agree: r.agree, Past: r.past, Steps: r.steps, Observer: &beginning{show, r.stop, r},
		Access: r.access,
		Judged: func(dir record.Dir, result *result.Result, err error) {
			show.End(true)
			judged(dir, result, err)
		},
	}
	r.stop.AtOnce.Store(false) // from here on something is made
	left := r.leftAtOnce()
	r.stop.Left.Store(&left)
	defer r.stop.Left.Store(new(string))
	dir, result, err := job.Run(r.stop.Soft, r.stop.Hard)
	show.End(result != nil)
	r.guards = show.Guards
	if _, ok := errors.AsType[*run.ContradictionError](err); ok {
		err = process.Usagef("resume it where it was started, or start again: plimsoll run FILE", "%w", err)
	}
	return dir, result, err
}

// beginning is an observer of a run that notes when there is something to say at its
// end.
type beginning struct {
	*screen.Display
	stop *process.Interrupts
	r    *runner
}

// Chose implements run.Observer.
func (b *beginning) Chose(next design.Next, ahead [][]design.Next) {
	if b.r.tells == nil {
		b.r.tells = b.stop.Tells()
	}
	b.Display.Chose(next, ahead)
}

// continues notes how a run goes on whose process ends at once, until done is called.
func (r *runner) continues(dir record.Dir) (done func()) {
	command := r.resumeCommand(dir)
	r.stop.Continues.Store(&command)
	return func() { r.stop.Continues.Store(nil) }
}

// hasTold notes that what a run found was said.
func (r *runner) hasTold() {
	if r.tells != nil {
		r.tells()
	}
}

// agree asks whether a system that is not ours may be loaded.
func (r *runner) agree(ctx context.Context, c *system.Consent) error {
	for _, w := range c.Warnings {
		r.p.Logf("warning: %s\n", w)
	}
	if err := r.agreeToReboots(ctx, c.Reboots, c.Once); err != nil {
		return err
	}
	if err := r.agreeToHooks(ctx, c.Hooks); err != nil || c.System == "" {
		return err
	}
	load := r.extent()
	if c.Load != "" {
		load += ": " + c.Load
	}
	if r.Yes {
		r.p.Logf("loading %s with %s (%s)\n", c.System, r.workload.Name, load)
		return nil
	}
	err := r.p.Confirm(ctx, c.System, c.Why, fmt.Sprintf("This %s. Load it with %s (%s)?", c.Why, r.workload.Name, load))
	r.Yes = err == nil // for further cells as well
	return err
}

// agreeToReboots asks for the number of nodes that will be rebooted, unless it was
// given. That a cluster may be loaded does not answer it.
func (r *runner) agreeToReboots(ctx context.Context, n int, once bool) error {
	if n == 0 || r.Reboots == n {
		return nil
	}
	what := record.Noun{One: "node", Many: "nodes"}.Count(n) + " will be rebooted"
	if !once {
		what += ", twice"
	}
	if r.Reboots != 0 || !r.p.StdinTerminal {
		return process.Usagef(fmt.Sprintf("check that these are the right ones, and give --reboots %d", n), "%s, and this was not confirmed", what)
	}
	r.p.Logf("%s. How many nodes may be rebooted? ", what)
	answer, err := process.ReadLine(ctx, r.p.Stdin)
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != strconv.Itoa(n) {
		return process.Usagef("", "not confirmed: nothing was done")
	}
	r.Reboots = n // for further cells as well
	return nil
}

// agreeToHooks shows the commands of a configuration, and asks whether they may run. That a cluster may be loaded does
// not answer it.
func (r *runner) agreeToHooks(ctx context.Context, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	r.p.Logf("This runs commands of the configuration on this machine, as you:\n")
	for _, c := range commands {
		r.p.Logf("  %s\n", r.p.Secrets.Message(c))
	}
	if r.Hooks {
		return nil
	}
	if !r.p.StdinTerminal {
		return process.Usagef("read them, and give --hooks", "the configuration runs commands, and this was not confirmed")
	}
	err := r.p.Confirm(ctx, record.Noun{One: "command", Many: "commands"}.Count(len(commands)), "", "Run them?")
	r.Hooks = err == nil // for further cells as well
	return err
}

// extent says how far the plan may go.
func (r *runner) extent() string {
	a := r.plan.Axis
	unit := a.Name
	if axis, err := r.workload.Axis(a.Name); err == nil {
		unit = axis.Unit
	}
	switch {
	case a.Search != nil:
		return fmt.Sprintf("up to %g %s", a.Search.Max, unit)
	case len(a.Levels) > 0:
		return fmt.Sprintf("up to %g %s", slices.Max(a.Levels), unit)
	case a.Level != nil:
		return fmt.Sprintf("%g %s", *a.Level, unit)
	}
	return unit
}

// outline is the document of --dry-run -o json.
type outline struct {
	Schema   string          `json:"schema"`
	Workload string          `json:"workload"`
	Target   string          `json:"target"`
	Axis     string          `json:"axis"`
	Levels   string          `json:"levels"`
	Cells    []string        `json:"cells,omitempty"` // each a run of its own
	Changes  []system.Change `json:"changes"`
	Guards   plan.Guards     `json:"guards,omitempty"` // those that were given
}

// outlineSchema names its format.
const outlineSchema = "plimsoll/outline/v1"

// named lists what the plan names, as a dry run prints it, by the programs that its
// target needs. A program that a file names is not run to be asked for its version, and
// what its user did not name is not read either.
func (r *runner) named(ctx context.Context, known []proc.Program) (list []system.Change) {
	target := r.target()
	names := r.plan.Brings(target)
	if config := kubeconfigOf(r.plan.Own); config != "" && r.file != "" {
		names = append(names, plan.Brought{At: "target.kubeconfig", Value: config, Kind: plan.BroughtFile})
	}
	for _, b := range names {
		is := b.Value
		if b.Kind == plan.BroughtProgram && r.file != "" {
			is = programAt(is)
		}
		n := slices.IndexFunc(known, func(p proc.Program) bool { return p.Name == b.Param })
		switch {
		case r.file != "" && r.said.trusted(b, r.file) != nil:
			is += ", if --allow names it, too"
		case b.Kind == plan.BroughtWorkload:
			continue // its files are listed
		case b.Kind == plan.BroughtProgram && r.file == "" && n >= 0:
			if found, err := known[n].Find(ctx, is); err == nil {
				is = found.String()
			}
		}
		list = append(list, system.Change{Action: system.Use, What: fmt.Sprintf("the %s %s (%s)", b.Kind, is, b.At)})
	}
	return list
}

// brought lists the programs, files, directories and addresses that the plan and its
// workload would use.
func (r *runner) brought(ctx context.Context, known []proc.Program, read []string) []system.Change {
	list := r.named(ctx, known)
	use := func(format string, args ...any) {
		list = append(list, system.Change{Action: system.Use, What: fmt.Sprintf(format, args...)})
	}
	if r.plan.WorkloadPath() {
		dir := r.plan.Workload
		if r.workload.AsItIs {
			dir = filepath.Dir(dir)
		}
		for _, name := range read {
			use("the file %s", filepath.Join(dir, name))
		}
	}
	var values []string
	for _, v := range r.workload.Params {
		if _, given := r.plan.Params[v.Name]; r.workload.AsItIs && !given && v.Default != "" {
			values = append(values, v.Name+"="+v.Default)
		}
	}
	if len(values) > 0 {
		use("kube-burner-ocp's values, by the name of the file: %s", strings.Join(values, " "))
	}
	for _, place := range r.places() {
		use("the directory %s (documents)", place.Directory)
		if place.Tarball != "" {
			use("the file %s (documents)", place.Tarball)
		}
	}
	if c, err := r.configuration(""); c != nil && err == nil { // errors are reported elsewhere
		for i := range c.MetricsEndpoints {
			e := &c.MetricsEndpoints[i]
			profiles := slices.Concat(e.Alerts, e.Metrics)
			for _, name := range profiles {
				use("the file %s (profile)", name)
			}
			switch {
			case len(profiles) == 0 || e.Endpoint == "":
			case r.asks(e):
				use("the address %s (profiles)", e.Endpoint)
			default:
				use("the address %s (profiles), if --allow names it, too", e.Endpoint)
			}
		}
	}
	if by, ok := r.plan.Own.(brings); ok {
		programs, files := by.Brings()
		for _, path := range programs {
			use("the program %s (%s)", path, settingsPath(r.plan.Own))
		}
		for _, path := range slices.Sorted(maps.Keys(files)) {
			use("the file %s (%s)", path, settingsPath(r.plan.Own))
		}
	}
	return list
}

// changes lists what a run of the plan would do, and refuses what the run would refuse
// before it asks a system anything: in each of its cells.
func (r *runner) changes(ctx context.Context, asks bool) (list []system.Change, provider system.Provider, read []string, err error) {
	provider, request, err := r.request()
	if err != nil {
		return nil, nil, nil, err
	}
	request.Trusted = r.file == "" || !slices.ContainsFunc(r.plan.Brings(r.workload.Target), func(b plan.Brought) bool {
		return b.Kind == plan.BroughtProgram && r.said.trusted(b, r.file) != nil
	})
	traced, files := r.workload.Traced()
	request.Workload, request.Asks = traced, asks
	if list, err = provider.Outline(ctx, request); err != nil {
		return nil, nil, nil, err
	}
	for _, cell := range r.plan.Cells() {
		of := request
		if of.Plan, err = r.plan.OfCell(cell, r.workload.Target); err == nil {
			_, err = provider.Outline(ctx, of)
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", cell.Name, err)
		}
	}
	return list, provider, files(), nil
}

// outline tells what the plan would do, and does nothing.
func (r *runner) outline(ctx context.Context, format string) error {
	changes, provider, read, err := r.changes(ctx, true)
	if err != nil {
		return err
	}
	changes = append(changes, r.brought(ctx, provider.Needs(), read)...)
	axis, err := r.workload.Axis(r.plan.Axis.Name)
	if err != nil {
		return err
	}
	o := outline{
		Schema: outlineSchema, Workload: r.workload.Name, Target: r.system(),
		Axis: axis.Name, Levels: levelsText(r.plan, axis.Unit, r.fromOpen), Changes: changes, Guards: r.plan.Guards,
	}
	for _, c := range r.plan.Cells() {
		o.Cells = append(o.Cells, c.Name)
	}
	if format == "json" {
		return process.PrintJSON(r.p, o)
	}
	r.p.Printf("%s on %s, along %s: %s\n", o.Workload, o.Target, o.Axis, o.Levels)
	if n := len(o.Cells); n > 0 {
		r.p.Printf("%d runs, one for each of: %s\n", n, strings.Join(o.Cells, "; "))
	}
	for _, action := range []system.Action{system.Make, system.ChangeIt, system.Reboot, system.RemoveLeft, system.Execute, system.Use} {
		printChanges(r.p, changes, action)
	}
	if text := screen.GuardsText(r.plan.Guards, r.workload.KindOn(r.plan.Axis.Name).Measures); text != "" {
		r.p.Printf("%s\n", text)
	}
	for _, text := range r.plan.GuardQueries {
		r.p.Printf("guard: a step ends unless %s\n", text)
	}
	r.p.Printf("This was a dry run: nothing was done.\n")
	return nil
}

// printChanges prints the changes of one action.
func printChanges(p *process.Process, changes []system.Change, action system.Action) {
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
	if len(lines) == 0 && (action == system.Use || action == system.Execute) {
		return
	} else if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	p.Printf("would %s: %s\n", action, strings.Join(lines, "; "))
}

// target returns the workload's target; without a workload, a cluster.
func (r *runner) target() workload.Target {
	if r.workload != nil {
		return r.workload.Target
	}
	return process.Clusters()
}

// system names what would be loaded.
func (r *runner) system() string {
	if own := r.plan.Own; own != nil {
		return own.System()
	}
	return "the target " + r.workload.Target.Name
}

// cleanCommand returns the command that removes what runs have left in the system, or on
// this machine; it is "" for one of which nothing can be left.
func (r *runner) cleanCommand() string {
	if own := r.plan.Own; own != nil && own.Named() != nil {
		return process.CleanCommand(own)
	}
	name := process.Clusters().Name
	if r.workload != nil {
		name = r.workload.Target.Name
	}
	provider, _ := process.ProviderOf(name) // the plan is valid
	if _, leaves := provider.(system.Sweeper); leaves {
		return process.CommandLine([]string{"clean"})
	}
	return ""
}

// resumeCommand returns the command that goes on with the run in a directory.
func (r *runner) resumeCommand(dir record.Dir) string {
	args := []string{"run", "--resume", string(dir)}
	allow := func(name string, refused error) {
		if refused != nil && !slices.Contains(args, name) {
			args = append(args, "--allow", name)
		}
	}
	file := dir.Path(record.ExperimentFile)
	for _, b := range r.plan.Brings(r.workload.Target) {
		allow(b.Value, word{}.trusted(b, file))
	}
	if by, ok := r.plan.Own.(brings); ok {
		programs, _ := by.Brings()
		for _, path := range programs {
			allow(path, word{}.program("", path, file))
		}
	}
	return process.CommandLine(args)
}

// leftAtOnce says what is left where the process ends in the middle of a run, "" for
// nothing.
func (r *runner) leftAtOnce() string {
	command := r.cleanCommand()
	if command == "" {
		return ""
	}
	return "what the run has made is left; this removes it: " + command
}

// levelsText says which levels would be made.
func levelsText(p *plan.Plan, unit string, fromOpen bool) string {
	a := p.Axis
	if levels := p.Levels(); a.Search == nil && len(levels) == 1 && levels[0] == 1 && !strings.Contains(unit, "/") {
		unit = strings.TrimSuffix(unit, "s")
	}
	var text string
	switch {
	case a.Search != nil:
		s := a.Search
		text = fmt.Sprintf("%g, %g, ... up to %g %s, resolution %g, confirmed %d of %d", s.From, s.From+s.Step, s.Max, unit, s.Resolution, s.Confirm.Need, s.Confirm.Of)
		if fromOpen {
			text = "from a quarter of the predicted line, where one is known, or else " + text
		}
	case len(a.Levels) > 0:
		text = strings.Trim(fmt.Sprint(a.Levels), "[]") + " " + unit
	case a.Level != nil:
		text = fmt.Sprintf("%g %s", *a.Level, unit)
	}
	if len(p.Arms) > 0 {
		text += fmt.Sprintf(", %d arms, %s runs of each", len(p.Arms), p.Repeat)
	}
	return text
}

// DryRun completes and checks the plan in a file, or one that says nothing but a
// workload, and makes nothing.
func DryRun(ctx context.Context, p *process.Process, file string, w *workload.Workload) (err error) {
	x := &plan.Plan{Schema: plan.Schema, Workload: "."}
	if file != "" {
		if x, err = process.LoadPlan(file); err != nil {
			return err
		}
		if w, err = trustedWorkload(x, file, word{}); err != nil {
			return err
		}
	}
	x.Default(w)
	if err := x.Hide(w, p.Secrets); err != nil {
		return err
	}
	if err := x.Validate(w); err != nil {
		return err
	}
	r := &runner{p: p, plan: x, workload: w, file: file}
	_, _, _, err = r.changes(ctx, false)
	return err
}
