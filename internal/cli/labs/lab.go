// Package labs has the commands about labs: up, down and all between, their images,
// and what killed runs left on this machine or in a cluster.
package labs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Commands returns the commands about labs, their images, and what runs left.
func Commands(p *process.Process, stop *process.Interrupts) []*cobra.Command {
	return []*cobra.Command{newLabCommand(p, stop), newImageCommand(p), newCleanCommand(p)}
}

// defaultLab is the lab that the lab commands mean when none is named.
const defaultLab = "default"

func newLabCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "lab",
		Short: "A Kubernetes cluster of your own on this machine",
		Long: `A lab is a real etcd, API server, controller manager and scheduler with simulated
nodes, each a process of this program. It listens on 127.0.0.1 only. Its files are
in $XDG_STATE_HOME/plimsoll (~/.local/state/plimsoll).

Without a name, the commands use the lab "` + defaultLab + `".`,
		Example: `  plimsoll lab up --nodes 100
  export KUBECONFIG=$(plimsoll lab kubeconfig)
  plimsoll limit node-density --lab default
  plimsoll lab down`,
	}, newLabUpCommand(p, stop),
		newLabStatusCommand(p),
		newLabListCommand(p),
		newLabKubeconfigCommand(p),
		newLabLogsCommand(p),
		newLabRestartCommand(p),
		newLabDownCommand(p),
		newLabDoctorCommand(p))
}

// atMostOneName takes the optional name of a lab.
func atMostOneName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return process.Usagef(process.SeeHelp(cmd), "one lab at a time: unexpected argument %q", args[1])
	}
	return nil
}

func nameIn(args []string) string {
	if len(args) == 0 {
		return defaultLab
	}
	return args[0]
}

func newLabUpCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var given settings.Flags
	var format, figures string
	var virt bool
	cmd := &cobra.Command{
		Use:   "up [NAME]",
		Short: "Start a lab",
		Long: `Start a lab and wait until it can be used: the API server answers, the controllers
run and every node is Ready. It runs until 'plimsoll lab down'.

A pod on a simulated node becomes Ready after the start latency, counted from the
moment it is bound to the node. DIST is ` + dist.Grammar + `.
A pod's annotation ` + protocol.StartLatencyAnnotation + ` overrides it.

--real-node adds a node that runs containers on this machine: a kubelet, the
system's containerd with runc and crun (RuntimeClasses of these names), a bridge
network, and kube-proxy. It needs root and what 'plimsoll lab doctor' lists. It
has its own namespaces and does not touch the system's containerd. Without
--nodes it is the only node.`,
		Example: `  plimsoll lab up
  plimsoll lab up big --nodes 1000
  plimsoll lab up slow --nodes 20 --start-latency lognormal:1s,4s
  plimsoll lab up real --real-node --max-pods 250 --node-cpus 1`,
		Args: atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			written := given.Over(strictyaml.Raw{})
			if virt {
				texts, err := settings.ParseList(figures)
				if err != nil {
					return process.Usagef("for example --virt-figures bootTime=20s,qps=5", "--virt-figures: %w", err)
				}
				written = written.With("virt", strictyaml.Map(texts))
			} else if name, is := process.FirstChanged(cmd, "virt-figures", "time-scale", "real-guests"); is {
				return process.Usagef("add --virt", "--%s needs virtual machines", name)
			}
			spec := lab.Spec{Name: nameIn(args)}
			err := settings.Read(written, &spec.Shape, "", nil)
			problems := append(strictyaml.Problems(err), settings.Validate(&spec.Shape, "", nil)...)
			if err != nil && len(problems) == 0 {
				return err
			}
			if len(problems) > 0 {
				problem := problems[0]
				flag := settings.FlagOf(&spec.Shape, problem.Path)
				if problem.Path == "virt" {
					flag = "--virt-figures"
				}
				return process.Usagef(problem.Hint, "%s: %s", flag, problem.Message)
			}
			store, err := kubernetes.LabStore(cmd.Context(), p.Host())
			if err != nil {
				return err
			}
			return labUp(stop.Soft, p, store, spec, format)
		},
	}
	process.OutputFlag(cmd, &format)
	given = settings.AddFlags(cmd.Flags(), &lab.Shape{}, func(f settings.Field) bool { return f.Flag != "virt" })
	cmd.Flags().BoolVar(&virt, "virt", false, "add simulated virtual machines: the APIs of KubeVirt, its importer and OpenShift's nodes")
	cmd.Flags().StringVar(&figures, "virt-figures", "", "what is planted in them, as KEY=VALUE,... (docs/virt-lab.md lists the keys)")
	return cmd
}

// labIsUp is the document of 'lab up'.
type labIsUp struct {
	Name       string  `json:"name"`
	Kubeconfig string  `json:"kubeconfig"` // its path
	Nodes      int     `json:"nodes"`      // simulated
	RealNode   bool    `json:"realNode"`
	MaxPods    int     `json:"maxPods"` // of each node
	Seconds    float64 `json:"seconds"` // that it took
}

func labUp(ctx context.Context, p *process.Process, store lab.Store, spec lab.Spec, format string) error {
	began := p.Now()
	line := p.Waiting()
	store.Progress = func(what string) { line.Show(what) }
	l, err := store.Up(ctx, spec)
	line.End()
	if err != nil {
		var gone *lab.NotFoundError
		if _, left := store.Open(spec.Name); ctx.Err() != nil && errors.As(left, &gone) {
			return fmt.Errorf("interrupted: nothing is left of lab %q", spec.Name)
		}
		return kubernetes.LabError(err)
	}
	p.Logf("lab %q is up after %.1f s: Kubernetes with %s of %d pods\n",
		spec.Name, p.Now().Sub(began).Seconds(), nodesOf(l.Spec()), l.Spec().MaxPods)
	if need := lab.Memory(spec.Nodes, 0); need > roomyLab {
		p.Logf("note: its processes take about %.1f GiB of memory, and %.1f GiB more for each 10,000 pods\n", gibOf(need), gibOf(lab.Memory(0, 10_000)-lab.Memory(0, 0)))
	}
	if spec.HasVirt() {
		p.Logf("note: 1000 virtual machines take about %.1f GiB of memory\n", gibOf(lab.MachinesMemory(1000)))
	}
	if spec.RealNode && spec.MaxPods > realnode.BridgePorts {
		p.Logf("note: the bridge of the real node has %d ports: more pods than that will not start\n", realnode.BridgePorts)
	}
	if format == "json" {
		return process.PrintJSON(p, labIsUp{spec.Name, l.Kubeconfig(), l.Spec().Nodes, spec.RealNode, l.Spec().MaxPods, p.Now().Sub(began).Round(time.Millisecond).Seconds()})
	}
	word, err := syntax.Quote(l.Kubeconfig(), syntax.LangPOSIX)
	if err != nil {
		return fmt.Errorf("quote the path of the kubeconfig: %w", err)
	}
	p.Printf("export KUBECONFIG=%s\n", word)
	return nil
}

// roomyLab is the memory from which it is said what a lab takes.
const roomyLab = 1 << 30

func gibOf(bytes int64) float64 { return float64(bytes) / (1 << 30) }

// nodesOf names the nodes of a lab.
func nodesOf(spec lab.Spec) string {
	simulated := process.Count(spec.Nodes, "simulated node")
	switch {
	case !spec.RealNode:
		return simulated
	case spec.Nodes == 0:
		return "a real node"
	}
	return "a real node and " + simulated
}

func newLabStatusCommand(p *process.Process) *cobra.Command {
	return process.Shows(p, &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the state of a lab",
		Long: `Show the state of a lab, its nodes and pods, and its processes. The state is
running, starting (a command is starting it), or broken (a process is gone or does
not answer; 'plimsoll lab down' cleans up).`,
		Args: atMostOneName,
	}, func(cmd *cobra.Command, args []string) (status lab.Status, err error) {
		l, err := kubernetes.OpenLab(cmd.Context(), p.Host(), nameIn(args))
		if err != nil {
			return status, err
		}
		status, err = l.Status(cmd.Context())
		if damage := l.Damage(); err == nil && damage != nil && status.State == lab.Broken {
			p.Logf("its record is lost: %v\nhint: 'plimsoll lab down %s' removes it\n", damage, status.Name)
		}
		return status, err
	}, func(w io.Writer, status lab.Status) error {
		fmt.Fprintf(w, "lab %s: %s, %s nodes, %s pods\n", status.Name, status.State, orUnknown(status.Nodes), orUnknown(status.Pods))
		fmt.Fprintf(w, "COMPONENT\tPID\tSTATE\n")
		for _, c := range status.Components {
			pid := "-"
			if c.PID != 0 {
				pid = fmt.Sprint(c.PID)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, pid, c.State)
		}
		return nil
	})
}

func orUnknown(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func newLabListCommand(p *process.Process) *cobra.Command {
	return process.Shows(p, &cobra.Command{
		Use:   "list",
		Short: "List the labs",
		Args:  process.NoArguments,
	}, func(cmd *cobra.Command, _ []string) ([]lab.Status, error) {
		labs, err := allLabs(cmd.Context(), p)
		statuses := []lab.Status{}
		for _, l := range labs {
			status, err := l.Status(cmd.Context())
			if err != nil {
				return nil, err
			}
			statuses = append(statuses, status)
		}
		return statuses, err
	}, func(w io.Writer, statuses []lab.Status) error {
		if len(statuses) == 0 {
			p.Logf("there are no labs; 'plimsoll lab up' starts one\n")
			return nil
		}
		fmt.Fprintf(w, "NAME\tSTATE\tNODES\tPODS\n")
		for _, s := range statuses {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.State, orUnknown(s.Nodes), orUnknown(s.Pods))
		}
		return nil
	})
}

// allLabs returns the labs of this user, but for those of commands that were killed.
func allLabs(ctx context.Context, p *process.Process) ([]*lab.Lab, error) {
	store, err := kubernetes.LabStore(ctx, p.Host())
	if err != nil {
		return nil, err
	}
	return store.List()
}

func newLabKubeconfigCommand(p *process.Process) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig [NAME]",
		Short:   "Print the path of a lab's kubeconfig",
		Example: `  export KUBECONFIG=$(plimsoll lab kubeconfig)`,
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := kubernetes.OpenLab(cmd.Context(), p.Host(), nameIn(args))
			if err != nil {
				return err
			}
			p.Printf("%s\n", l.Kubeconfig())
			return nil
		},
	}
}

func newLabLogsCommand(p *process.Process) *cobra.Command {
	return onComponent(p, &cobra.Command{
		Use:   "logs [NAME] COMPONENT",
		Short: "Print the log of a component of a lab",
		Long: "Print the log of a component of a lab: " + strings.Join(lab.ComponentNames(), ", ") + `;
with a real node also ` + strings.Join(lab.RealNodeComponentNames(), ", ") + ";\nwith virtual machines also " + protocol.Virt + ".",
		Example: `  plimsoll lab logs kube-apiserver
  plimsoll lab logs big etcd`,
	}, func(_ context.Context, l *lab.Lab, component string) error {
		path, err := l.Logs(component)
		if err != nil {
			return kubernetes.LabError(err)
		}
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", component, err)
		}
		defer f.Close()
		_, err = io.Copy(p.Stdout, f)
		return err
	})
}

// onComponent completes a command that does something with a component of a
// lab.
func onComponent(p *process.Process, cmd *cobra.Command, do func(ctx context.Context, l *lab.Lab, component string) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return process.ExactlyOne("component")(cmd, args[min(max(len(args)-1, 0), 1):])
	}
	cmd.ValidArgs = append(lab.ComponentNames(), lab.RealNodeComponentNames()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		component := len(args) - 1 // behind the name of a lab
		l, err := kubernetes.OpenLab(cmd.Context(), p.Host(), nameIn(args[:component]))
		if err != nil {
			return err
		}
		return do(cmd.Context(), l, args[component])
	}
	return cmd
}

func newLabRestartCommand(p *process.Process) *cobra.Command {
	return onComponent(p, &cobra.Command{
		Use:   "restart [NAME] COMPONENT",
		Short: "Kill a component of a lab and start it again",
		Long: `Kill a component with SIGKILL and start it again with the same arguments, to see
what happens to a load that is running. The components are
` + strings.Join(lab.ComponentNames(), ", ") + `;
with a real node also ` + strings.Join(lab.RealNodeComponentNames(), ", ") + ";\nwith virtual machines also " + protocol.Virt + ".",
		Example: `  plimsoll lab restart kube-apiserver`,
	}, func(ctx context.Context, l *lab.Lab, component string) error {
		began := p.Now()
		if err := l.Restart(ctx, component); err != nil {
			return kubernetes.LabError(err)
		}
		p.Logf("%s is running again after %.1f s\n", component, p.Now().Sub(began).Seconds())
		return nil
	})
}

func newLabDownCommand(p *process.Process) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Remove a lab: its processes and its files",
		Args:  atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			left, err := p.SweepHost(cmd.Context(), func(string) bool { return true })
			for _, l := range left {
				if !l.Alive {
					p.Logf("removed %s\n", l.What())
				}
			}
			if err != nil {
				return err
			}
			if !all {
				l, err := kubernetes.OpenLab(cmd.Context(), p.Host(), nameIn(args))
				if err != nil {
					return err
				}
				return kubernetes.LabError(l.Down(cmd.Context()))
			}
			if len(args) > 0 {
				return process.Usagef("", "--all and the name %q contradict each other", args[0])
			}
			return labDownAll(cmd.Context(), p)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove all labs, except the private labs of running commands")
	return cmd
}

func labDownAll(ctx context.Context, p *process.Process) error {
	labs, err := allLabs(ctx, p)
	if err != nil {
		return err
	}
	var failed error
	for _, l := range labs {
		err := l.Down(ctx)
		var busy *lab.BusyError
		if errors.As(err, &busy) && l.Spec().Private {
			p.Logf("%v: it is removed when the command ends\n", err)
			continue
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func newLabDoctorCommand(p *process.Process) *cobra.Command {
	return process.Shows(p, &cobra.Command{
		Use:   "doctor",
		Short: "Show whether this machine has what labs need",
		Long: `Show whether this machine has what labs need, and how to install what is missing.
The exit code is 1 if something is missing that every lab needs. What only a real
node, or a workload that needs no lab, needs is shown for information.`,
		Args: process.NoArguments,
	}, func(cmd *cobra.Command, _ []string) ([]lab.Requirement, error) {
		dir, err := p.StateDir()
		if err != nil {
			return nil, err
		}
		findings := lab.Store{Root: dir, Executable: p.Executable}.Doctor()
		for _, n := range process.Needs() {
			findings = append(findings, lab.ProgramRequirement(cmd.Context(), n))
		}
		if !lab.Healthy(findings) {
			err = process.ExitError(process.ExitFail)
		}
		return findings, err
	}, func(w io.Writer, findings []lab.Requirement) error {
		fmt.Fprintf(w, "FOR\tWHAT\tSTATE\tFOUND\tNEEDED\tREMEDY\n")
		for _, f := range findings {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.For, f.What, f.Grade, f.Value, f.Need, f.Remedy)
		}
		return nil
	})
}
