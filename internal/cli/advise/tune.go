// Package advise has the commands that advise and run nothing: tune computes
// settings, and lint finds mistakes in files.
package advise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/advise/tune/answer"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Commands returns the commands that advise and run nothing.
func Commands(p *process.Process) []*cobra.Command {
	return []*cobra.Command{newTuneCommand(p), newLintCommand(p)}
}

func newTuneCommand(p *process.Process) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "tune",
		Short: "Compute settings: subnets, kubelets, hosts, Ceph, virtual machines, routers, networks",
		Long: `Compute the settings that a size or a load needs, from published rules. Each
answer shows its inputs and where they came from, the formula with its numbers,
its sources, where a source is wrong and what the right reading gives, and the
files and commands that apply it. Nothing is changed.

--write DIR writes the files. The exit code is 1 when something that was asked
for cannot be had.`,
		Example: `  plimsoll tune subnet --nodes 26 --pods-per-node 2500
  plimsoll tune ceph --osds 141 --replicas 3
  plimsoll tune host --bundle node7/ -o json`,
	}, newTuneSubnetCommand(p), newTuneKubeletCommand(p), newTuneHostCommand(p), newTuneCephCommand(p), newTuneVirtCommand(p),
		newTuneRouterCommand(p), newTuneNetworkCommand(p), newTunePlanCommand(p))
}

// tuneOutput holds the flags of all calculators: the format, and where files go.
type tuneOutput struct {
	format, dir string
	force       bool
}

func (o *tuneOutput) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "table", strings.Join(answer.Formats(), ", "))
	flags.StringVar(&o.dir, "write", "", "write the files to this `directory`")
	flags.BoolVar(&o.force, "force", false, "with --write: also over files that exist")
}

// check finds mistakes before anything is read or computed.
func (o *tuneOutput) check() error {
	if o.format == "text" { // as other commands call it
		o.format = "table"
	}
	if !slices.Contains(answer.Formats(), o.format) {
		return process.Usagef(nearest.Hint(o.format, answer.Formats(), ""), "-o %q: want %s", o.format, strings.Join(answer.Formats(), ", "))
	}
	if o.force && o.dir == "" {
		return process.Usagef("add --write DIR", "--force without --write")
	}
	return nil
}

// show prints an answer and writes its files.
func (o *tuneOutput) show(p *process.Process, a *answer.Answer) error {
	width := 0
	if p.StderrTerminal {
		width = p.Width()
	}
	out, err := answer.Render(a, o.format, width)
	if err != nil {
		return err
	}
	if o.dir != "" && a.Impossible() {
		p.Logf("nothing was written: a finding says that this is impossible\n")
	} else if o.dir != "" {
		paths, err := answer.Write(o.dir, a.Files, o.force)
		if errors.Is(err, fs.ErrExist) {
			return process.Usagef("--force writes over it; nothing was written", "--write: %w", err)
		}
		if err != nil {
			return err
		}
		for _, path := range paths {
			p.Logf("wrote %s\n", path)
		}
	}
	p.Printf("%s", out)
	if a.Impossible() {
		return process.ExitError(process.ExitFail)
	}
	return nil
}

// tuneUsage makes usage errors of parameters that make no sense, all of them.
func tuneUsage(err error) error {
	list := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		list = all.Unwrap()
	}
	var lines []string
	hint := ""
	for _, e := range list {
		var param *param.Error
		if !errors.As(e, &param) {
			return err
		}
		lines = append(lines, fmt.Sprintf("--%s: %s", param.Name, param.Message))
		hint = cmp.Or(hint, param.Hint)
	}
	return process.Usagef(hint, "%s", strings.Join(lines, "\n"))
}

// tuneCommand makes a calculator's command of its description and parameters.
func tuneCommand(p *process.Process, cmd *cobra.Command, params any, calculate func(ctx context.Context) (*answer.Answer, error)) *cobra.Command {
	var out tuneOutput
	if cmd.Args == nil {
		cmd.Args = process.NoArguments
	}
	given := settings.AddFlags(cmd.Flags(), params, func(settings.Field) bool { return true })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if err := given.Fill(params); err != nil {
			return err
		}
		a, err := calculate(cmd.Context())
		if err != nil {
			return tuneUsage(err)
		}
		return out.show(p, a)
	}
	out.add(cmd)
	return cmd
}

// facts is a source that a calculator can read.
type facts[T any] interface {
	add(cmd *cobra.Command)
	read(ctx context.Context, p *process.Process) (T, error)
}

// tuneReading returns a calculator that reads something first, if flags say where.
func tuneReading[T any](p *process.Process, cmd *cobra.Command, params any, into *T, from facts[T], calculate func() (*answer.Answer, error)) *cobra.Command {
	cmd = tuneCommand(p, cmd, params, func(ctx context.Context) (_ *answer.Answer, err error) {
		if *into, err = from.read(ctx, p); err != nil {
			return nil, err
		}
		return calculate()
	})
	from.add(cmd)
	return cmd
}
