package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/advise/tune"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

func newTuneCommand(p *Process) *cobra.Command {
	return group(&cobra.Command{
		Use:   "tune",
		Short: "Reckon settings: subnets, kubelets, hosts, Ceph, virtual machines, routers, networks",
		Long: `Reckon the settings that a size or a load needs, from published rules. Each
answer shows its inputs and where they came from, the formula with the numbers
put in, its sources, where a source is wrong and what the right reading gives,
and the files and commands that apply it. Nothing is changed.

--write DIR writes the files. The exit code is 1 when something that was asked
for cannot be had.`,
		Example: `  plimsoll tune subnet --nodes 26 --pods-per-node 2500
  plimsoll tune ceph --osds 141 --replicas 3
  plimsoll tune host --bundle node7/ -o json`,
	}, newTuneSubnetCommand(p), newTuneKubeletCommand(p), newTuneHostCommand(p), newTuneCephCommand(p), newTuneVirtCommand(p),
		newTuneRouterCommand(p), newTuneNetworkCommand(p), newTunePlanCommand(p))
}

// tuneOutput is what all calculators have in common: how the answer is shown
// and where its files go.
type tuneOutput struct {
	format, dir string
	force       bool
}

func (o *tuneOutput) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.format, "output", "o", "table", strings.Join(tune.Formats(), ", "))
	flags.StringVar(&o.dir, "write", "", "write the files to this `directory`")
	flags.BoolVar(&o.force, "force", false, "with --write: also over files that exist")
}

// check finds mistakes before anything is read or reckoned.
func (o *tuneOutput) check() error {
	if o.format == "text" { // as other commands call it
		o.format = "table"
	}
	if !slices.Contains(tune.Formats(), o.format) {
		return usagef(nearest.Hint(o.format, tune.Formats(), ""), "-o %q: want %s", o.format, strings.Join(tune.Formats(), ", "))
	}
	if o.force && o.dir == "" {
		return usagef("add --write DIR", "--force without --write")
	}
	return nil
}

// run makes what a command runs of what calculates its answer.
func (o *tuneOutput) run(p *Process, calculate func(cmd *cobra.Command, args []string) (*tune.Answer, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		a, err := calculate(cmd, args)
		if err != nil {
			return tuneUsage(err)
		}
		return o.show(p, a)
	}
}

// show prints an answer and writes its files.
func (o *tuneOutput) show(p *Process, a *tune.Answer) error {
	width := 0
	if p.StderrTerminal {
		width = p.Width()
	}
	out, err := tune.Render(a, o.format, width)
	if err != nil {
		return err
	}
	if o.dir != "" {
		paths, err := tune.Write(o.dir, a.Files, o.force)
		var exists *tune.ExistsError
		if errors.As(err, &exists) {
			return usagef("--force writes over it; nothing was written", "--write: %w", err)
		}
		if err != nil {
			return err
		}
		for _, path := range paths {
			p.logf("wrote %s\n", path)
		}
	}
	p.printf("%s", out)
	if a.Impossible() {
		return exitError(exitBreached)
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
		var param *tune.ParamError
		if !errors.As(e, &param) {
			return err
		}
		lines = append(lines, fmt.Sprintf("--%s: %s", param.Name, param.Message))
		hint = cmp.Or(hint, param.Hint)
	}
	return usagef(hint, "%s", strings.Join(lines, "\n"))
}

// given is a flag that holds a parsed value, with where it came from.
type given[T any] struct {
	in    *tune.In[T]
	name  string
	kind  string
	parse func(string) (T, error)
	text  string
}

func (g *given[T]) String() string { return g.text }
func (g *given[T]) Type() string   { return g.kind }

func (g *given[T]) Set(text string) error {
	v, err := g.parse(text)
	if err != nil {
		return err
	}
	*g.in, g.text = tune.Given(v, "flag --"+g.name), text
	return nil
}

// giveFlag adds a flag for a parameter. Its default is the calculator's.
func giveFlag[T any](flags *pflag.FlagSet, in *tune.In[T], name, kind, help string, parse func(string) (T, error)) {
	flags.Var(&given[T]{in: in, name: name, kind: kind, parse: parse}, name, help)
}

func giveCount(flags *pflag.FlagSet, in *tune.In[int64], name, help string) {
	giveFlag(flags, in, name, "number", help, tune.ParseCount)
}

// giveBool adds a flag that is off or on, with what it is when it is not given.
func giveBool(flags *pflag.FlagSet, in *tune.In[bool], name, help string, standard bool) {
	flags.VarPF(&given[bool]{in: in, name: name, kind: "bool", parse: strconv.ParseBool, text: strconv.FormatBool(standard)}, name, "", help).NoOptDefVal = "true"
}

func giveText(flags *pflag.FlagSet, in *tune.In[string], name, kind, help string) {
	giveFlag(flags, in, name, kind, help, func(s string) (string, error) { return s, nil })
}

// listed is a flag that may be given several times, each time one value.
type listed[T any] struct {
	list  *[]T
	kind  string
	parse func(string) (T, error)
	texts []string
}

func (l *listed[T]) String() string { return strings.Join(l.texts, " ") }
func (l *listed[T]) Type() string   { return l.kind }

func (l *listed[T]) Set(text string) error {
	v, err := l.parse(text)
	if err != nil {
		return err
	}
	*l.list, l.texts = append(*l.list, v), append(l.texts, text)
	return nil
}

func giveList[T any](flags *pflag.FlagSet, list *[]T, name, kind, help string, parse func(string) (T, error)) {
	flags.Var(&listed[T]{list: list, kind: kind, parse: parse}, name, help)
}

// giveOneOf adds a flag that takes one of several words.
func giveOneOf(flags *pflag.FlagSet, in *tune.In[string], name, help string, words ...string) {
	giveFlag(flags, in, name, "word", help+": "+strings.Join(words, ", "), func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		hint := ""
		if near, ok := nearest.Word(s, words); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return "", fmt.Errorf("want %s%s", strings.Join(words, ", "), hint)
	})
}
