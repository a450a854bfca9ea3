package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/burner"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// newKubeBurnerCommand has kube-burner's own commands, with its flags and exit codes.
func newKubeBurnerCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	read := func(file, userData string) (*kubeburner.Config, error) { return configurationIn(p, file, userData) }
	verbs := []*cobra.Command{newInitCommand(p, stop), newHealthCheckCommand(p, stop), burner.NewImportCommand(p, stop), burner.NewAskCommand(p, stop, true), burner.NewAskCommand(p, stop, false), burner.NewDestroyCommand(p, read), burner.NewMeasureCommand(p, stop, read)}
	verbs = append(verbs, process.Shows(p, &cobra.Command{Use: "version", Short: "Show the program's version", Args: process.NoArguments},
		func(*cobra.Command, []string) (map[string]string, error) {
			return map[string]string{"version": process.Version, "format": kubeburner.Version}, nil
		}, func(w io.Writer, v map[string]string) error {
			_, err := fmt.Fprintf(w, "plimsoll %s, which reads configurations of kube-burner %s\n", v["version"], v["format"])
			return err
		}), &cobra.Command{
		Use: "completion", Short: "Print what bash completes", Args: process.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Root().GenBashCompletionV2(p.Stdout, true) },
	})
	for _, verb := range verbs {
		if verb.Annotations == nil {
			verb.Annotations = make(map[string]string)
		}
		verb.Annotations[process.CodesOfKubeBurner] = "yes"
	}
	return process.Group(&cobra.Command{
		Annotations: map[string]string{process.CodesOfKubeBurner: "yes"},
		Use:         "kube-burner",
		Short:       "kube-burner's commands, with its flags, documents and exit codes",
		Long: `Run a configuration of kube-burner as kube-burner does: by its flags, with its
documents and its exit codes. docs/kube-burner.md says what is the same and what is not.

0 is passed, 1 failed, 2 a timeout, 3 an alert, 4 a threshold that was broken. A run that
is inconclusive or invalid has failed.`,
	}, verbs...)
}

// burnerFlags are the flags of kube-burner init that no other command has.
type burnerFlags struct {
	experimentFlags
	config, metadata string
	endpointFile     string
	timeout          time.Duration
	allowMissing     bool
	level            string
	refused          []*refusal
}

// refusal is a flag of kube-burner or kube-burner-ocp that would change what a run does
// and is not served, with what helps.
type refusal struct{ name, short, value, hint, given string }

func refusals() []*refusal {
	return []*refusal{
		{name: "configmap", value: "name", hint: "give the file with --config"},
		{name: "alert-profile", value: "file", hint: "the configuration's metricsEndpoints name profiles, as --metrics-endpoint does"},
	}
}

func newInitCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	f := &burnerFlags{experimentFlags: experimentFlags{documented: documented{ended: new(ended)}}, refused: refusals()}
	cmd := &cobra.Command{
		Use:   "init -c FILE",
		Short: "Run a configuration and write its documents",
		Long: `Run a configuration of kube-burner, as 'plimsoll run FILE' does, and write its
documents where its indexer of type local says, or with --local-indexing. The exit code
is kube-burner's.

A cluster must be named, by --kubeconfig, --kube-context or --lab: a load is not for
whichever cluster a shell happens to point to. Any other flag of a lab makes a private
one.

Values of --set are texts, those of --user-data keep their types. --timeout ends the run.
The run's directory, --out, has all that was recorded; there is no further log file.`,
		Example: `  plimsoll kube-burner init -c examples/kube-burner/density.yml --lab default
  plimsoll kube-burner init -c examples/kube-burner/density.yml --kubeconfig ~/.kube/config --local-indexing`,
		Args: process.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, p, stop) },
	}
	f.addDryRun(cmd)
	f.addOwn(cmd, func(settings.Field) bool { return true }, append(ofConsent(), "scrape", "max-series")...)
	f.addOutput(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "", "the configuration, a `file`")
	flags.StringVar(&f.uuid, "uuid", "", "`id` of the run in labels and documents (default a random one)")
	flags.StringVar(&f.userData, "user-data", "", "`file` with variables of the configuration, YAML or JSON; --set goes before it, the environment after it")
	flags.StringSliceVar(&f.set, "set", nil, "variables of the configuration as `k=v`, separated by commas; may be repeated")
	flags.StringArrayVar(&f.allow, "allow", nil, "a file or directory that lies elsewhere, for templates and ReadFile; may be repeated: `path`")
	flags.BoolVar(&f.allowMissing, "allow-missing", false, "a variable that is not set is not a mistake")
	flags.StringVar(&f.metadata, "user-metadata", "", "YAML `file` with what each document has besides")
	flags.BoolVar(&f.local, "local-indexing", false, "write the documents also where the configuration has no indexer")
	flags.StringVar(&f.into, "metrics-directory", "", "`directory` of the documents (default the configuration's, or collected-metrics-UUID)")
	flags.StringVarP(&f.endpointFile, "metrics-endpoint", "e", "", "YAML `file` with metric endpoints, which replace the configuration's and are asked")
	burner.AddServer(flags, &f.server)
	flags.DurationVar(&f.timeout, "timeout", 4*time.Hour, "end the run after that")
	flags.Bool("skip-log-file", false, "accepted and ignored: the program writes no log file")
	flags.Bool("skip-tls-verify", true, "accepted and ignored: the endpoint's skipTLSVerify decides")
	flags.String("profile-type", "", "accepted and ignored: configurations name their metric profiles")
	flags.StringVar(&f.level, "log-level", "info", "`level`, which is taken and changes nothing: "+strings.Join(logLevels(), ", "))
	for _, r := range f.refused {
		flags.StringVarP(&r.given, r.name, r.short, "", "not served yet: `"+r.value+"`")
	}
	flags.SetNormalizeFunc(burner.KubeContext)
	return cmd
}

// logLevels returns what kube-burner's --log-level takes.
func logLevels() []string { return strings.Fields("trace debug info warn error fatal") }

func (f *burnerFlags) run(cmd *cobra.Command, p *process.Process, stop *process.Interrupts) error {
	for _, r := range f.refused {
		if r.given != "" {
			return process.Usagef(r.hint, "--%s is not served yet", r.name)
		}
	}
	if !slices.Contains(logLevels(), f.level) {
		return process.Usagef(nearest.OneOf(f.level, logLevels()), "--log-level: %q is not a level", f.level)
	}
	if f.config == "" {
		return process.Usagef("for example -c config.yml", "which configuration? --config is missing")
	}
	if _, ok := process.Configuration(f.config); !ok {
		if strings.Contains(f.config, "://") {
			return process.Usagef("save it to a file", "--config %s: a configuration is not read from a URL yet", f.config)
		}
		if _, err := os.Stat(f.config); errors.Is(err, fs.ErrNotExist) {
			return process.Usagef(nearest.File(f.config), "--config: no such file: %s", f.config)
		}
		return process.Usagef(nearest.File(f.config), "--config %s is not a configuration of kube-burner: want a YAML file with jobs", f.config)
	}
	if !namesCluster(cmd) && !f.dryRun {
		return process.Usagef("--kubeconfig FILE, --kube-context NAME or --lab NAME; any other flag of a lab, such as --lab-start-latency, makes a private one", "which cluster? $KUBECONFIG is not read")
	}
	if err := burner.CheckServer(cmd, f.server); err != nil {
		return err
	}
	f.server.Client = new(http.Client)
	var err error
	if f.documented.metadata, err = burner.ReadMetadata(f.metadata); err != nil {
		return err
	}
	if f.endpointFile != "" {
		if err := burner.ReadYAML("metrics-endpoint", f.endpointFile, &f.endpoints); err != nil {
			return err
		}
		if err := kubeburner.CheckEndpoints(f.endpointFile, f.endpoints); err != nil {
			return process.Usagef("", "--metrics-endpoint: %w", err)
		}
	}
	x := f.experiment(cmd, f.config)
	x.plan.Kind, x.plan.Axis.Name, x.plan.Pace = plan.Sweep, workload.AxisJobs, plan.Pace{Max: true}
	x.plan.Budget = plan.Duration(f.timeout)
	if f.allowMissing {
		if err := x.allowMissing(p); err != nil {
			return err
		}
	}
	return burnerCode(x.run(p, stop), f.ended)
}

// namesCluster reports whether a flag says which cluster is loaded, or that one is made.
func namesCluster(cmd *cobra.Command) (named bool) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		named = named || f.Annotations[ofTarget] != nil && (slices.Contains([]string{"kubeconfig", "context", "in-cluster"}, f.Name) || strings.HasPrefix(f.Name, "lab"))
	})
	return named
}

// allowMissing gives the variables that nobody has set no value.
func (x *experimentCommand) allowMissing(p *process.Process) error {
	w, err := process.LoadAllowed(x.plan.Workload, x.flags.allow)
	if err != nil {
		return err
	}
	values, err := x.flags.values(p, w)
	if err != nil {
		return err
	}
	for _, v := range w.Params {
		_, given := values[v.Name]
		if _, set := x.plan.Params[v.Name]; !given && !set && v.Default == "" {
			x.missing = append(x.missing, v.Name)
		}
	}
	return nil
}

// burnerCode returns how a run ended in kube-burner's codes.
func burnerCode(err error, e *ended) error {
	code := process.ExitCode(err)
	if e.alerted && code < process.ExitInterrupted-1 {
		return process.ExitError(burner.AlertFired)
	}
	if code == process.ExitPass && e.unsent {
		return process.ExitError(burner.Failed)
	}
	if e.result == nil || code == process.ExitPass || code >= process.ExitInterrupted-1 {
		return err
	}
	waited := slices.ContainsFunc(e.result.Steps, func(s result.Step) bool {
		return slices.Contains([]record.Ending{record.EndTimeout, record.EndStalled}, s.Ending)
	})
	switch {
	case waited || errors.Is(e.err, run.ErrBudget):
		code = burner.TimedOut
	case slices.ContainsFunc(e.result.Breaches, func(b result.Breach) bool { return b.Decided && b.Kind == result.BreachLatency }):
		code = burner.ThresholdBroken
	default:
		code = burner.Failed
	}
	return process.ExitError(code)
}

// newHealthCheckCommand is check without a workload.
func newHealthCheckCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	cmd := newCheckCommand(p, stop)
	check := cmd.RunE
	cmd.Use, cmd.Short, cmd.Long = "health-check", "Is this cluster healthy? Reads only", `Look at a cluster without loading it. The exit code is 1 if something was found that would
make a load fail. 'plimsoll check WORKLOAD' says more.`
	cmd.Example = "  plimsoll kube-burner health-check --kubeconfig ~/.kube/config"
	cmd.Args = process.NoArguments
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !namesCluster(cmd) {
			return process.Usagef(p.OrInCluster("--kubeconfig FILE, --context NAME or --lab NAME"), "which cluster? $KUBECONFIG is not read")
		}
		return check(cmd, args)
	}
	return cmd
}

// documented holds the flags about the documents of a configuration's run.
type documented struct {
	uuid     string // "" for one that is drawn
	metadata map[string]any
	// into replaces the configuration's directory; local writes documents even if the
	// configuration does not ask for them.
	into  string
	local bool
	// endpoints replaces the configuration's; nil keeps these.
	endpoints []kubeburner.MetricsEndpoint
	// server gets them too, unless it has no URL.
	server documents.Server
	ended  *ended
}

// ended holds the result of a run, for kube-burner's exit codes.
type ended struct {
	result  *result.Result
	err     error // why it was cut
	alerted bool  // an alert fired that fails the run
	// unsent says that the documents are not where they were to be.
	unsent bool
}

// places returns where the run's documents go. Errors of its configuration are reported elsewhere.
func (r *runner) places() []documents.Place {
	c, err := r.configuration("")
	if c == nil || err != nil {
		return nil
	}
	return r.documentsOf(c, "collected-metrics-UUID").Places
}

// configuration returns the configuration of a run whose jobs are steps; nil for any other run.
func (r *runner) configuration(uuid string) (*kubeburner.Config, error) {
	if !r.workload.AsItIs || r.plan.Axis.Name != workload.AxisJobs {
		return nil, nil
	}
	params, err := r.workload.Resolve(r.plan.Params)
	if err != nil {
		return nil, err
	}
	c, err := r.workload.Config(params, cmp.Or(uuid, anyUUID))
	if err == nil && r.endpoints != nil {
		c.MetricsEndpoints = r.endpoints
		kubeburner.Default(c)
	}
	return c, err
}

// documentsOf returns the configuration as documents need it; byDefault names their directory.
func (r *runner) documentsOf(c *kubeburner.Config, byDefault string) documents.Configuration {
	of := documents.Of(c, process.Version, r.metadata)
	if len(of.Places) == 0 && (r.local || r.into != "") {
		of.Places = []documents.Place{{Directory: byDefault}}
	}
	for i := range of.Places {
		of.Places[i].Directory = cmp.Or(r.into, of.Places[i].Directory)
	}
	return of
}

// keep returns the function that writes the configuration into the run directory, or nil
// without documents.
func (r *runner) keep(uuid string) (func(record.Dir) error, error) {
	c, err := r.configuration(uuid)
	if c == nil || err != nil {
		return nil, err
	}
	of := r.documentsOf(c, "collected-metrics-"+uuid)
	return func(dir record.Dir) error { return dir.WriteMasked(documents.File, of, r.p.Secrets) }, nil
}

// staysHere refuses documents that a configuration, which may be somebody else's, would
// have written elsewhere, where its user has not allowed that.
func (f *experimentFlags) staysHere(c *kubeburner.Config) error {
	for _, p := range documents.Of(c, "", nil).Places {
		for _, path := range []string{cmp.Or(f.into, p.Directory), p.Tarball} {
			if path != "" && path != f.into && (filepath.IsAbs(path) || !within(".", path)) && !f.word().allows(path) {
				return process.Usagef(fmt.Sprintf("if it may be written to: --allow %s; or name one below it that is not hidden", path), "the configuration has its documents written to %s, which does not lie below the working directory", path)
			}
		}
	}
	return nil
}

// document evaluates the profiles of a run's configuration, and writes its documents where that says.
func (r *runner) document(dir record.Dir) error {
	c, err := documents.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	found, failed := r.found(r.stop.Hard, dir, c)
	r.alerted = burner.TellFound(r.p, found)
	if len(c.Places) == 0 && r.server.URL == "" {
		return failed
	}
	list, err := documents.Make(dir, c)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	list = append(list, found.Documents...)
	for _, place := range c.Places {
		place.Named = r.into != "" && place.Directory == r.into
		n, err := documents.Write(".", place, list)
		if err != nil {
			return err
		}
		if !r.quiet {
			r.p.Printf("Documents: %d files in %s\n", n, place.Directory)
		}
	}
	if r.server.URL == "" {
		return nil
	}
	defer r.p.WaitFor("sending the documents")()
	n, err := r.server.Send(r.stop.Hard, documents.Items(list))
	if err == nil && !r.quiet {
		r.p.Printf("Documents: %d sent to the index %s\n", n, r.server.Index)
	}
	return err
}

// writeDocuments writes the documents of a record that was judged into a directory.
func writeDocuments(p *process.Process, dir record.Dir, into string) error {
	c, err := documents.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return process.Usagef("'plimsoll run CONFIGURATION' and 'plimsoll kube-burner init' leave one", "--documents: %s is not a run of a kube-burner configuration", dir)
	}
	if err != nil {
		return err
	}
	list, err := documents.Make(dir, c)
	if err != nil {
		return fmt.Errorf("make the documents of %s: %w", dir, err)
	}
	n, err := documents.Write(".", documents.Place{Directory: into, Named: true}, list)
	if err == nil {
		p.Logf("%d documents are in %s\n", n, into)
	}
	return err
}

// configurationIn reads a configuration with the variables of a file.
func configurationIn(p *process.Process, file, userData string) (*kubeburner.Config, error) {
	w, err := process.LoadWorkload(file)
	if err != nil {
		return nil, err
	}
	if !w.AsItIs {
		return nil, process.Usagef("", "--config %s is not a configuration of kube-burner", file)
	}
	values, err := (&experimentFlags{userData: userData}).values(p, w)
	if err != nil {
		return nil, err
	}
	params, err := w.Resolve(values)
	if err != nil {
		return nil, process.Usagef("", "%w", err)
	}
	c, err := w.Config(params, anyUUID)
	if err != nil {
		return nil, process.Usagef("", "%w", err)
	}
	return c, nil
}
