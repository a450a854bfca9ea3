// Package cli is the program's outermost layer: the tree of commands, the exit code
// of what they return, and what a shell completes. The commands are in the packages
// below it. Only these print.
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/advise"
	"plimsoll.dev/plimsoll/internal/cli/experiment"
	"plimsoll.dev/plimsoll/internal/cli/labs"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Main runs the program and returns its exit code.
func Main(p process.Process) int {
	// A panic in any goroutine then ends with SIGABRT: the runtime's own exit
	// code for it is 2, which here means a mistake of the user's.
	debug.SetTraceback("crash")
	if len(p.Args) >= 2 && p.Args[0] == process.ComponentCommand {
		return runComponent(&p, p.Args[1], p.Args[2:])
	}
	// By this name it is called in an image that was made of the whole program.
	if filepath.Base(p.Executable) == "agent" {
		return runAgent(&p, p.Args)
	}
	return execute(&p)
}

// runAgent becomes the agent of an image.
func runAgent(p *process.Process, args []string) int {
	stop := process.NewInterrupts(p.Signals, p.Logf)
	defer stop.Close()
	return agent.Run(stop.Soft, args, p.Stdout, p.Stderr, p.Roles...)
}

// runComponent becomes one part of the control plane. It goes round the
// command line's parser: the rest of the line is the component's own.
func runComponent(p *process.Process, name string, args []string) int {
	component, ok := p.Components[name]
	if !ok {
		p.Logf("plimsoll: there is no component %q\n", name)
		return process.ExitUsage
	}
	return component(args)
}

func execute(p *process.Process) int {
	p.Animate()
	shown := p.Guard()
	stop := process.NewInterrupts(p.Signals, p.Logf)
	defer stop.Close()
	root := newRootCommand(p, stop)
	rename := func(text string) string { return text }
	if isPlugin(p) {
		rename = renamer(root)
		asPlugin(root, rename)
		p.Stderr = renamed{p.Stderr, rename}
	}
	root.SetArgs(append([]string{}, p.Args...)) // without any it would take this process's own
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	ran, err := root.ExecuteContextC(stop.Soft)
	code := process.ExitCode(err)
	var quiet process.ExitError
	if err != nil && !errors.As(err, &quiet) && ran.Annotations[process.CodesOfKubeBurner] != "" {
		code = 1
	}
	// That nobody reads on is no error of a command that was only to say
	// something.
	if err != nil && !errors.As(err, &quiet) && !errors.Is(err, syscall.EPIPE) {
		hint := hintOf(p, err)
		if wantsJSON(ran, p.Args) {
			if printErr := process.PrintJSON(p, failure{failureSchema, err.Error(), rename(hint), code}); printErr != nil {
				p.Logf("plimsoll: %v\n", printErr)
			}
		}
		p.Logf("plimsoll: %v\n", err)
		if hint != "" {
			p.Logf("hint: %s\n", hint)
		}
	}
	shown()
	signal := stop.First()
	if signal == nil && p.Unread() {
		signal = syscall.SIGPIPE // it may not have come through yet
	}
	if signal != nil {
		return process.CodeOf(signal)
	}
	return code
}

// hintOf returns the advice that belongs to an error, also where this user's state cannot be written.
func hintOf(p *process.Process, err error) string {
	hint := process.HintOf(err)
	at, isPath := errors.AsType[*fs.PathError](err)
	if hint != "" || !isPath || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return hint
	}
	if dir, err := p.StateDir(); err == nil && (strings.HasPrefix(dir, at.Path) || strings.HasPrefix(at.Path, dir)) {
		return "set XDG_STATE_HOME to a directory that you may write to"
	}
	return ""
}

// failure is the document of an error where JSON was asked for, on standard
// output; standard error has its text as well.
type failure struct {
	Schema   string `json:"schema"`
	Error    string `json:"error"`
	Hint     string `json:"hint,omitempty"`
	ExitCode int    `json:"exitCode"`
}

// failureSchema names its format.
const failureSchema = "plimsoll/error/v1"

// wantsJSON reports whether a command prints JSON. A line whose flags could not
// be read is looked through itself.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	output := cmd.Flags().Lookup("output")
	if output == nil {
		return false
	}
	for i, a := range args {
		if a == "json" && i > 0 && (args[i-1] == "-o" || args[i-1] == "--output") || a == "-ojson" || a == "-o=json" || a == "--output=json" {
			return true
		}
	}
	return output.Value.String() == "json"
}

func newRootCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	verbs := slices.Concat(experiment.Commands(p, stop), records.Commands(p, stop), labs.Commands(p, stop), advise.Commands(p), []*cobra.Command{newVersionCommand(p)})
	root := process.Group(&cobra.Command{
		Use:           "plimsoll",
		Short:         "How far can this cluster be loaded, what breaks first, did this change make it better or worse?",
		Version:       process.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}, verbs...)
	root.SetVersionTemplate(process.Build().String() + "\n")
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { stop.AtOnce.Store(cmd.Annotations[process.HoldsNothing] != "") }
	complete(p, root)
	return root
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --([^ =]+)`)

// flagError makes a usage error of a flag that cannot be read, with the
// nearest flag that the command has.
func flagError(cmd *cobra.Command, err error) error {
	hint := process.SeeHelp(cmd)
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near, ok := nearest.Word(m[1], flags); ok {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return process.Usagef(hint, "%w", err)
}

func newVersionCommand(p *process.Process) *cobra.Command {
	return process.Shows(p, &cobra.Command{
		Use:   "version",
		Short: "Show the program's version, commit and platform",
		Args:  process.NoArguments,
	}, func(*cobra.Command, []string) (record.Build, error) { return process.Build(), nil }, func(w io.Writer, b record.Build) error {
		_, err := fmt.Fprintln(w, b)
		return err
	})
}
