package burner

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

// destroyer removes what kube-burner, or a run of its configuration, has made.
type destroyer struct {
	read                   func(file, userData string) (*kubeburner.Config, error)
	from                   process.ClusterFlags
	uuid, config, userData string
	yes, dryRun            bool
	timeout                time.Duration
}

// NewDestroyCommand makes destroy. Read returns the configuration in a file, with variables of the file userData.
func NewDestroyCommand(p *process.Process, read func(file, userData string) (*kubeburner.Config, error)) *cobra.Command {
	f := &destroyer{read: read}
	cmd := &cobra.Command{
		Use:   "destroy {--uuid UUID | --config FILE} {--kubeconfig FILE | --lab NAME}",
		Short: "Remove what a run has made, by kube-burner's labels",
		Long: `List the objects with kube-burner's labels of a run, or of the jobs of a configuration,
and remove them once that is confirmed. Runs of this program remove their own objects.`,
		Example: "  plimsoll kube-burner destroy --uuid 00000000-0000-4000-8000-000000000000 --kubeconfig ~/.kube/config --dry-run",
		Args:    process.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), p) },
	}
	f.from.Add(cmd, "clean")
	flags := cmd.Flags()
	flags.StringVar(&f.uuid, "uuid", "", "`id` of the run")
	flags.StringVarP(&f.config, "config", "c", "", "the configuration, a `file`: objects of its jobs, whichever run has made them")
	flags.StringVar(&f.userData, "user-data", "", "`file` with variables of the configuration, YAML or JSON")
	flags.BoolVar(&f.yes, "yes", false, "remove them without asking")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only list what would be removed")
	flags.DurationVar(&f.timeout, "timeout", 4*time.Hour, "give up after that")
	flags.Bool("skip-log-file", false, "accepted and ignored: the program writes no log file")
	flags.SetNormalizeFunc(KubeContext)
	return cmd
}

// KubeContext takes kube-burner's name of --context.
func KubeContext(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "kube-context" {
		name = "context"
	}
	return pflag.NormalizedName(name)
}

// labelValue matches what a label can hold.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// selectors returns the labels of what is removed: those of kube-burner, and of its versions before 2.
func (f *destroyer) selectors() ([]string, error) {
	if (f.uuid == "") == (f.config == "") {
		return nil, process.Usagef("for example --uuid UUID, which is in the labels of the objects", "name either --uuid or --config")
	}
	if f.uuid != "" {
		if !labelValue.MatchString(f.uuid) {
			return nil, process.Usagef("", "--uuid: %q is not the value of a label", f.uuid)
		}
		return []string{kubeburner.LabelUUID + "=" + f.uuid, "kube-burner-uuid=" + f.uuid}, nil
	}
	c, err := f.read(f.config, f.userData)
	if err != nil {
		return nil, err
	}
	var jobs []string
	for _, j := range c.Jobs {
		jobs = append(jobs, j.Name)
	}
	in := " in (" + strings.Join(jobs, ",") + ")"
	return []string{kubeburner.LabelJob + in, "kube-burner-job" + in}, nil
}

func (f *destroyer) run(ctx context.Context, p *process.Process) error {
	selectors, err := f.selectors()
	if err != nil {
		return err
	}
	if err := f.from.Check(process.Usagef(p.OrInCluster("--kubeconfig FILE or --lab NAME"), "which cluster? $KUBECONFIG is not read")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	cluster, lab, err := f.from.Connect(ctx, p)
	if err != nil {
		return err
	}
	defer cluster.Close()
	var spaces, others []string
	for _, selector := range selectors {
		found, strays, err := cluster.Labelled(ctx, selector)
		if err != nil {
			return err
		}
		spaces, others = append(spaces, found...), append(others, strays...)
	}
	for _, name := range spaces {
		p.Printf("namespace %s\n", name)
	}
	for _, path := range others {
		p.Printf("%s\n", path)
	}
	n := len(spaces) + len(others)
	what := record.Noun{One: "object", Many: "objects"}.Count(n)
	switch {
	case n == 0:
		p.Printf("nothing to remove\n")
		return nil
	case f.dryRun:
		p.Printf("This was a dry run: nothing was done.\n")
		return nil
	case lab == nil && !f.yes:
		if err := p.Confirm(ctx, "the cluster "+cluster.Context+" at "+cluster.Server, "is not a plimsoll lab", fmt.Sprintf("Remove %s, and all that is in these namespaces?", what)); err != nil {
			return err
		}
	}
	removed := p.WaitFor("waiting until " + what + " are gone")
	err = cluster.Remove(ctx, spaces, others)
	if removed(); err == nil {
		p.Printf("%s removed\n", what)
	}
	return err
}
