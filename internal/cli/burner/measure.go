package burner

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
)

// measurer measures what others make.
type measurer struct {
	read                                  func(file, userData string) (*kubeburner.Config, error)
	from                                  process.ClusterFlags
	config, userData, uuid, job, metadata string
	selector, namespace                   string
	duration                              time.Duration
}

// NewMeasureCommand makes measure. Read returns the configuration in a file, with variables of the file userData.
func NewMeasureCommand(p *process.Process, stop *process.Interrupts, read func(file, userData string) (*kubeburner.Config, error)) *cobra.Command {
	f := &measurer{read: read}
	cmd := &cobra.Command{
		Use:   "measure --config FILE {--kubeconfig FILE | --lab NAME}",
		Short: "Measure what others load",
		Long: `Follow the objects of a configuration's measurements for a time, whoever makes them, and
write their documents into its metricsDirectory. Nothing is made and no threshold is
judged. Of objects that are there before, the latencies are by the server's own times, in
whole seconds.`,
		Example: "  plimsoll kube-burner measure -c measure.yml --kubeconfig ~/.kube/config --duration 5m -l app=web",
		Args:    process.NoArguments,
		RunE:    func(*cobra.Command, []string) error { return f.run(stop.Soft, p) },
	}
	f.from.Add(cmd, "measure")
	flags := cmd.Flags()
	flags.StringVarP(&f.config, "config", "c", "config.yml", "the configuration, a `file`: its jobs do not count")
	flags.StringVar(&f.userData, "user-data", "", "`file` with variables of the configuration, YAML or JSON")
	flags.StringVar(&f.uuid, "uuid", "", "`id` in documents (default a random one)")
	flags.StringVar(&f.metadata, "user-metadata", "", "YAML `file` with what each document has besides")
	flags.StringVarP(&f.job, "job-name", "j", "kube-burner-measure", "`name` of the job in documents")
	flags.StringVarP(&f.selector, "selector", "l", "", "`labels` of the objects, such as app=web (default all)")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "only objects of this `namespace`")
	flags.DurationVar(&f.duration, "duration", 10*time.Minute, "how long to measure")
	flags.Bool("skip-log-file", false, "accepted and ignored: the program writes no log file")
	flags.SetNormalizeFunc(KubeContext)
	return cmd
}

// measured returns what the configuration measures, and the objects that are followed beside pods.
func (f *measurer) measured() (c *kubeburner.Config, beside []*described.Objects, err error) {
	if c, err = f.read(f.config, f.userData); err != nil {
		return nil, nil, err
	}
	names := c.Measured(nil)
	if len(names) == 0 {
		return nil, nil, process.Usagef("for example global: {measurements: [{name: podLatency}]}", "%s asks for no measurement", f.config)
	}
	for _, name := range names {
		if _, served := kubeburner.MeasureOf(name); !served {
			return nil, nil, process.Usagef("take it out of the measurements", "%s: %s is not measured without a load", f.config, name)
		}
		for _, followed := range described.Measured(name) {
			o := followed.(*described.Objects)
			if o.Calls((*described.Probe).FromPods) {
				return nil, nil, process.Usagef("take it out of the measurements", "%s: %s calls what it measures from within the cluster, and this command makes nothing there", f.config, name)
			}
			beside = append(beside, o)
		}
	}
	return c, beside, nil
}

func (f *measurer) run(ctx context.Context, p *process.Process) error {
	if _, err := labels.Parse(f.selector); err != nil {
		return process.Usagef("for example --selector app=web", "--selector: %w", err)
	}
	if err := kubernetes.CheckNamespace(f.namespace); err != nil {
		return process.Usagef("", "--namespace: %w", err)
	}
	if f.duration <= 0 {
		return process.Usagef("for example 5m", "--duration must be above 0, is %v", f.duration)
	}
	c, beside, err := f.measured()
	if err != nil {
		return err
	}
	metadata, err := given(p, f.metadata, &f.uuid)
	if err != nil {
		return err
	}
	if err := f.from.Check(process.Usagef(p.OrInCluster("--kubeconfig FILE or --lab NAME"), "which cluster? $KUBECONFIG is not read")); err != nil {
		return err
	}
	cluster, _, err := f.from.Connect(ctx, p)
	if err != nil {
		return err
	}
	defer cluster.Close()
	environment := new(record.Environment)
	if version, err := cluster.Typed().Discovery().ServerVersion(); err == nil {
		environment.Facts = []record.Fact{{Name: "kubernetes", Value: version.GitVersion}}
	}
	clock := record.StartClock(p.Now)
	live := documents.NewLive(f.job, clock.Start())
	ended := errors.New("the duration is over")
	measuring, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := p.WaitFor("measuring for " + f.duration.String())
	err = cluster.Measure(measuring, beside, f.namespace, f.selector, system.Recorder{Sink: live, Clock: clock, Step: func() int { return 0 }}, func() {
		live.Listed()
		time.AfterFunc(f.duration, func() { cancel(ended) })
	})
	done()
	if err != nil && measuring.Err() == nil {
		return err
	}
	of := documents.Of(c, process.Version, metadata)
	of.UUID, of.Jobs = f.uuid, []documents.Job{{Name: f.job, Measured: c.Measured(nil)}}
	list := live.Make(of, environment)
	for _, d := range list {
		for _, line := range d.Lines() {
			p.Printf("%s\n", line)
		}
	}
	if len(list) == 0 {
		p.Printf("no object was seen\n")
	}
	for _, place := range of.Places {
		n, err := documents.Write(".", place, list)
		if err != nil {
			return err
		}
		p.Printf("Documents: %d files in %s\n", n, place.Directory)
	}
	return context.Cause(ctx) // an interrupt ends it early
}
