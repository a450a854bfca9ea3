package experiment

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/text/redact"
	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// jobRecord is the run directory of a job.
const jobRecord = image.SelfData + "/run"

// jobSpace is the namespace that a job brings along.
const jobSpace = "plimsoll"

func newJobCommand(p *process.Process) *cobra.Command {
	var j kubernetes.Job
	var namespace, chart string
	cmd := &cobra.Command{
		Use:   "job WORKLOAD --image REF [-- FLAGS]",
		Short: "Print a Kubernetes job that searches for the load line from within the cluster",
		Long: `Print a job as YAML for 'kubectl apply -f -': a namespace, a service account with
exactly the rights that 'plimsoll rbac' prints, and a job that runs 'plimsoll limit
WORKLOAD' with the flags after --. Its comments have the commands that follow its log
and copy the record out. Nothing is asked of a cluster. With --chart the same is a Helm
chart, whose values are the image, the size and the flags.

The image is that of 'plimsoll image push REGISTRY --image self'. It runs as user 65532
with a read-only root and without privileges.`,
		Example: `  plimsoll job node-density --image registry.example/team/plimsoll | kubectl apply -f -
  plimsoll job node-density --image registry.example/team/plimsoll -- --from 50 --max 250`,
		Args: func(cmd *cobra.Command, args []string) error {
			return process.ExactlyOne("workload")(cmd, args[:beforeDash(cmd, args)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := jobOf(p, cmd, j, namespace, args[0], args[beforeDash(cmd, args):])
			if err != nil {
				return err
			}
			if chart != "" {
				return writeChart(chart, made)
			}
			p.Printf("%s", made.Manifest())
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&j.Image, "image", "", "`reference` of the image of this program")
	flags.StringVar(&j.Size, "size", "1Gi", "`size` that the record may have")
	flags.StringVar(&chart, "chart", "", "write a Helm chart of it to this new `directory`")
	flags.StringVar(&namespace, "namespace", "", "namespace that exists, for the job and all that it makes (default "+jobSpace+" for the job, and those that the run makes)")
	cmd.AddCommand(newJobKeepCommand(p), newJobCopyCommand(p))
	return cmd
}

// beforeDash counts the arguments before "--".
func beforeDash(cmd *cobra.Command, args []string) int {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

// jobOf returns a job that runs limit with these flags.
func jobOf(p *process.Process, cmd *cobra.Command, j kubernetes.Job, namespace, workload string, given []string) (kubernetes.Job, error) {
	if j.Image == "" {
		return j, process.Usagef("'plimsoll image push REGISTRY --image self' makes it: --image REGISTRY/plimsoll:latest", "which image? --image is missing")
	}
	if err := image.Check(j.Image); err != nil {
		return j, process.Usagef("for example --image registry.example:5000/team/plimsoll:latest", "--image: %w", err)
	}
	size, err := resource.ParseQuantity(j.Size)
	if err != nil || size.Sign() <= 0 {
		return j, process.Usagef("for example --size 1Gi", "--size %q is not a size", j.Size)
	}
	j.Size, j.Record = size.String(), jobRecord
	var f experimentFlags
	limit := &cobra.Command{Use: "limit WORKLOAD"}
	f.addLimit(limit)
	if err := limit.ParseFlags(given); err != nil {
		return j, cmd.FlagErrorFunc()(limit, err)
	}
	if err := process.NoArguments(limit, limit.Flags().Args()); err != nil {
		return j, err
	}
	limit.Flags().Visit(func(flag *pflag.Flag) {
		kind, _ := pflag.UnquoteUsage(flag)
		switch {
		case err != nil:
		case kind == "file" || kind == "directory":
			err = process.Usagef("leave it out", "--%s names a %s, and the image holds none of this machine", flag.Name, kind)
		case flag.Name == "namespace":
			err = process.Usagef("give it before --", "--namespace after --: the job is in the same namespace")
		}
	})
	if err != nil {
		return j, err
	}
	set := []string{"--in-cluster", "--yes", "--out", jobRecord}
	if namespace != "" {
		set = append(set, "--namespace", namespace)
	}
	j.Args, j.Flags = slices.Concat([]string{"limit", workload}, set), given
	if err := limit.ParseFlags(set); err != nil {
		return j, err
	}
	r, err := f.checker(p, limit, []string{workload})
	if err != nil {
		return j, err
	}
	if r.plan.WorkloadPath() {
		return j, process.Usagef("one of those that 'plimsoll workloads' lists", "%s lies on this machine, and the image holds the built-in workloads only", workload)
	}
	for name, value := range r.plan.Params {
		if redact.IsHidden(value) {
			return j, process.Usagef("leave it out", "--set %s is secret, and anybody who may read the job could read it", name)
		}
	}
	r.p = p
	if j.Account, err = r.account(namespace); err != nil {
		return j, err
	}
	j.Account.Name = "plimsoll-job-" + r.workload.Name // an account of 'plimsoll rbac' stays as it is
	if namespace == "" {
		j.Account.Namespace = jobSpace
	}
	return j, nil
}

// writeChart writes the chart of a job, or nothing.
func writeChart(dir string, j kubernetes.Job) error {
	var files []writeall.File
	for name, text := range j.Chart(process.Version) {
		files = append(files, writeall.File{In: dir, Name: name, Data: text, Mode: 0o644})
	}
	err := writeall.Files(files, false)
	if errors.Is(err, fs.ErrExist) {
		return process.Usagef("give a new directory", "--chart: %w", err)
	}
	return err
}

// copiedSuffix ends the name of the file that says that a record was copied, beside the record.
const copiedSuffix = ".copied"

// keepsFor bounds the wait for a copy after the end of the run.
const keepsFor = time.Hour

// withinJob returns a command for the pod of a job, about one run directory.
func withinJob(use, short string, run func(ctx context.Context, dir record.Dir) error) *cobra.Command {
	return &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"}, Use: use, Short: short, Args: process.ExactlyOne("run directory"),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), record.Dir(args[0])) },
	}
}

func newJobKeepCommand(p *process.Process) *cobra.Command {
	return withinJob("keep DIR", "Within a job: wait until the record was copied, or an hour after the run", func(ctx context.Context, dir record.Dir) error {
		last := p.Now()
		return everySecond(ctx, func() (bool, error) {
			if _, err := os.Stat(string(dir) + copiedSuffix); err == nil {
				return true, nil
			}
			begun, ended, err := stateOf(dir)
			if begun && !ended {
				last = p.Now()
			}
			if err != nil || p.Now().Sub(last) <= keepsFor {
				return false, err
			}
			p.Logf("nobody copied the record %s within %v\n", dir, keepsFor)
			return true, nil // whether the job fails is for the run to say
		})
	})
}

func newJobCopyCommand(p *process.Process) *cobra.Command {
	return withinJob("copy DIR", "Within a job: write the record on standard output (tar), once the run has ended", func(ctx context.Context, dir record.Dir) error {
		waited := p.WaitFor("waiting for the end of the run in " + string(dir))
		err := everySecond(ctx, func() (bool, error) {
			_, ended, err := stateOf(dir)
			return ended, err
		})
		if waited(); err != nil {
			return err
		}
		if _, err := os.Stat(dir.Path(record.ReportFile)); err != nil { // the run was killed, or is about to write it
			if err := report.WriteFile(dir); err != nil {
				p.Logf("warning: %v\n", err)
			}
		}
		if err := archive(p.Raw(), dir); err != nil {
			return fmt.Errorf("copy %s: %w", dir, err)
		}
		return os.WriteFile(string(dir)+copiedSuffix, nil, 0o600)
	})
}

// archive writes the files of a record as a tar archive.
func archive(to io.Writer, dir record.Dir) error {
	w := tar.NewWriter(to)
	return errors.Join(w.AddFS(os.DirFS(string(dir))), w.Close())
}

// stateOf reports whether a run has begun to write a record, and whether it has ended.
func stateOf(dir record.Dir) (begun, ended bool, err error) {
	// A run locks the directory before it writes the plan. Until then that lock must be free for it.
	if _, err := os.Stat(dir.Path(record.ExperimentFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, false, err
	}
	lock, err := dir.Lock()
	if _, busy := errors.AsType[*record.BusyError](err); busy {
		return true, false, nil
	}
	if err != nil {
		return true, false, err
	}
	return true, true, lock.Close()
}

// everySecond calls done now and every second, until it is, fails, or a signal comes.
func everySecond(ctx context.Context, done func() (bool, error)) error {
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
