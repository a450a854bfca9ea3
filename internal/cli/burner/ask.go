package burner

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// OnRecord asks the metrics on record.
func OnRecord(store *metrics.Store) documents.Asked {
	engine := metrics.NewEngine(store)
	return documents.Asked{Asker: engine, Lacks: func(ctx context.Context, query string) []string {
		return engine.Lacks(ctx, query, store.Built.From, store.Built.To)
	}}
}

// Remote asks the Prometheus of an endpoint. Its secrets do not reach the log.
func Remote(p *process.Process, e *kubeburner.MetricsEndpoint) (documents.Asked, error) {
	for name, secret := range map[string]string{"token": e.Token, "password": e.Password} {
		if _, err := p.Secrets.Hide("metrics endpoint "+name, secret); secret != "" && err != nil {
			return documents.Asked{}, err
		}
	}
	transport, err := metrics.Access{Token: e.Token, User: e.Username, Password: e.Password, Insecure: e.SkipTLSVerify}.Transport()
	return documents.Asked{Asker: &metrics.Remote{URL: e.Endpoint, Transport: transport}}, err
}

// TellFound logs the alerts that fired, and what is unknown. It returns the exit code that these come to.
func TellFound(p *process.Process, found documents.Found) int {
	code := process.ExitPass
	for _, f := range found.Fired {
		if p.Logf("alert: %s\n", f); f.Fails() {
			code = process.ExitFail
		}
	}
	for _, text := range found.Unknown {
		p.Logf("warning: unknown: %s\n", text)
	}
	if code == process.ExitPass && found.Alerts {
		code = process.ExitInconclusive
	}
	return code
}

// askFlags are the flags of the commands that ask about a time that has passed.
type askFlags struct {
	kubeburner.MetricsEndpoint
	uuid, job, metadata string
	start, end          int64
	into, tarball       string
	server              documents.Server
}

// NewAskCommand makes check-alerts with alerts, else index.
func NewAskCommand(p *process.Process, stop *process.Interrupts, alerts bool) *cobra.Command {
	f := &askFlags{server: documents.Server{Client: new(http.Client)}}
	cmd := &cobra.Command{
		Use:   "index {DIR | --prometheus-url URL} --metrics-profile FILE",
		Short: "Write the metrics of a time that has passed as documents",
		Long: `Ask a Prometheus, or the record of a run, for the metrics of a profile, and write them
as documents. Without --start and --end it is the last hour, or the whole run.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := CheckServer(cmd, f.server); err != nil {
				return err
			}
			return f.run(p, stop, args)
		},
	}
	flags := cmd.Flags()
	if alerts {
		cmd.Use, cmd.Short = "check-alerts {DIR | --prometheus-url URL} --alert-profile FILE", "Evaluate alerts over a time that has passed"
		cmd.Long = `Ask a Prometheus, or the record of a run, for the alerts of a profile. The exit code is 1
if one of severity error fired, 3 if it is critical. Without --start and --end it is
the last hour, or the whole run.`
		flags.StringSliceVarP(&f.Alerts, "alert-profile", "a", nil, "the alerts, a `file`")
	} else {
		flags.StringSliceVarP(&f.Metrics, "metrics-profile", "m", nil, "the metrics, `files` separated by commas")
		flags.StringVarP(&f.job, "job-name", "j", "kube-burner-indexing", "`name` of the job in documents")
		flags.StringVar(&f.metadata, "user-metadata", "", "YAML `file` with what each document has besides")
		flags.StringVar(&f.tarball, "tarball-name", "", "also write them into this tarball, a `file`")
	}
	flags.StringVarP(&f.Endpoint, "prometheus-url", "u", "", "the Prometheus, a `URL`")
	flags.StringVarP(&f.Token, "token", "t", "", "its bearer `token`, which "+process.PrometheusToken+" in the environment can hold as well")
	flags.StringVar(&f.Username, "username", "", "`name` for it")
	flags.StringVarP(&f.Password, "password", "p", "", "`password` of that name")
	flags.BoolVar(&f.SkipTLSVerify, "skip-tls-verify", false, "trust any certificate of it")
	flags.DurationVarP(&f.Step, "step", "s", 30*time.Second, "time between two values")
	flags.Int64Var(&f.start, "start", 0, "begin, in `seconds` since 1970")
	flags.Int64Var(&f.end, "end", 0, "end, in `seconds` since 1970")
	flags.StringVar(&f.uuid, "uuid", "", "`id` in documents (default a random one)")
	flags.StringVar(&f.into, "metrics-directory", "", "`directory` of the documents")
	flags.Bool("skip-log-file", false, "accepted and ignored: the program writes no log file")
	AddServer(flags, &f.server)
	return cmd
}

func (f *askFlags) run(p *process.Process, stop *process.Interrupts, args []string) (err error) {
	switch {
	case len(args) > 1:
		return process.Usagef("", "name one run directory, not %s", strings.Join(args, " "))
	case (len(args) == 0) == (f.Endpoint == ""):
		return process.Usagef("for example --prometheus-url http://localhost:9090", "name either a run directory or --prometheus-url")
	case len(f.Alerts)+len(f.Metrics) == 0:
		return process.Usagef("for example -a alerts.yml, or -m metrics.yml", "which profile?")
	case f.Step <= 0:
		return process.Usagef("for example 30s", "--step must be above 0, is %v", f.Step)
	}
	metadata, err := given(p, f.metadata, &f.uuid)
	if err != nil {
		return err
	}
	c := kubeburner.Config{MetricsEndpoints: []kubeburner.MetricsEndpoint{f.MetricsEndpoint}}
	profiles, err := c.ProfilesBy(func(name string) (string, error) {
		text, err := size.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", process.Usagef(nearest.File(name), "no such file: %s", name)
		}
		return string(text), err
	})
	if err != nil {
		return process.Usagef("", "%w", err)
	}
	now := p.Now()
	span := documents.Span{Job: f.job, From: now.Add(-time.Hour), To: now}
	var asked documents.Asked
	if len(args) == 1 {
		dir, err := records.OpenDir(args[0])
		if err != nil {
			return err
		}
		store, err := metrics.Open(dir, os.TempDir())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		asked, span.From, span.To = OnRecord(store), store.Built.From, store.Built.To
	} else {
		f.Token = cmp.Or(f.Token, p.Env(process.PrometheusToken))
		if asked, err = Remote(p, &f.MetricsEndpoint); err != nil {
			return err
		}
	}
	if f.start != 0 {
		span.From = time.Unix(f.start, 0)
	}
	if f.end != 0 {
		span.To = time.Unix(f.end, 0)
	}
	if !span.From.Before(span.To) {
		return process.Usagef("", "--start must lie before --end: %s is not before %s", span.From.UTC().Format(time.RFC3339), span.To.UTC().Format(time.RFC3339))
	}
	of := documents.Configuration{UUID: f.uuid, Version: process.Version, Metadata: maps.Clone(metadata)}
	var found documents.Found
	asking := p.WaitFor("asking for metrics and alerts")
	for _, profile := range profiles {
		found.Add(stop.Soft, of, profile, asked, []documents.Span{span})
	}
	asking()
	code := TellFound(p, found)
	if slices.ContainsFunc(found.Fired, func(f documents.Fired) bool { return f.Severity == "critical" }) {
		code = AlertFired
	} else if code != process.ExitPass || len(found.Unknown) > 0 {
		code = Failed
	}
	into := f.into
	if into == "" && len(f.Metrics) > 0 {
		into = "collected-metrics-" + f.uuid
	}
	if into != "" {
		n, err := documents.Write(".", documents.Place{Directory: into, Tarball: f.tarball, Named: true}, found.Documents)
		if err != nil {
			return err
		}
		p.Printf("Documents: %d files in %s\n", n, into)
	}
	if f.server.URL != "" {
		n, err := f.server.Send(stop.Soft, documents.Items(found.Documents))
		if err != nil {
			return err
		}
		p.Printf("Documents: %d sent to the index %s\n", n, f.server.Index)
	}
	if len(f.Alerts) > 0 {
		p.Printf("%s fired\n", record.Noun{One: "alert", Many: "alerts"}.Count(len(found.Fired)))
	}
	return process.ExitError(code)
}
