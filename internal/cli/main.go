package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Main runs the program and returns its exit code.
func Main(p Process) int {
	// A panic in any goroutine then ends with SIGABRT: the runtime's own exit
	// code for it is 2, which here means a mistake of the user's.
	debug.SetTraceback("crash")
	if len(p.Args) >= 2 && p.Args[0] == componentCommand {
		return runComponent(&p, p.Args[1], p.Args[2:])
	}
	// By this name it is called in an image that was made of the whole program.
	if filepath.Base(p.Executable) == "agent" {
		return runAgent(&p, p.Args)
	}
	return execute(&p)
}

// runAgent becomes the agent of an image.
func runAgent(p *Process, args []string) int {
	stop := newInterrupts(p.Signals, p.logf)
	defer stop.close()
	return agent.Run(stop.soft, args, p.Stdout, p.Stderr)
}

// runComponent becomes one part of the control plane. It goes round the
// command line's parser: the rest of the line is the component's own.
func runComponent(p *Process, name string, args []string) int {
	component, ok := p.Components[name]
	if !ok {
		p.logf("plimsoll: there is no component %q\n", name)
		return exitUsage
	}
	return component(args)
}

func execute(p *Process) int {
	p.animate()
	// cobra gives each command the flags of pflag.CommandLine, and packages of
	// Kubernetes put theirs there.
	pflag.CommandLine = pflag.NewFlagSet("plimsoll", pflag.ContinueOnError)
	klog.SetLogger(klog.Logger{}) // the Kubernetes client logs what it also returns
	stop := newInterrupts(p.Signals, p.logf)
	defer stop.close()
	root := newRootCommand(p, stop)
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	ran, err := root.ExecuteContextC(stop.soft)
	code := exitCode(err)
	var quiet exitError
	// That nobody reads on is no error of a command that was only to say
	// something.
	if err != nil && !errors.As(err, &quiet) && !errors.Is(err, syscall.EPIPE) {
		if wantsJSON(ran, p.Args) {
			if printErr := printJSON(p, failure{failureSchema, err.Error(), hintOf(err), code}); printErr != nil {
				p.logf("plimsoll: %v\n", printErr)
			}
		}
		p.logf("plimsoll: %v\n", err)
		if hint := hintOf(err); hint != "" {
			p.logf("hint: %s\n", hint)
		}
	}
	if signal := stop.first(); signal != nil {
		return codeOf(signal)
	}
	return code
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

func newRootCommand(p *Process, stop *interrupts) *cobra.Command {
	verbs := slices.Concat(experimentCommands(p, stop), labCommands(p, stop), adviceCommands(p), []*cobra.Command{newVersionCommand(p)})
	root := group(&cobra.Command{
		Use:           "plimsoll",
		Short:         "How far can this cluster be loaded, what breaks first, did this change make it better or worse?",
		SilenceErrors: true,
		SilenceUsage:  true,
	}, verbs...)
	root.SetFlagErrorFunc(flagError)
	complete(p, root)
	return root
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --([^ =]+)`)

// flagError makes a usage error of a flag that cannot be read, with the
// nearest flag that the command has.
func flagError(cmd *cobra.Command, err error) error {
	hint := seeHelp(cmd)
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		var flags []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if near, ok := nearest.Word(m[1], flags); ok {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return usagef(hint, "%w", err)
}

// kubernetesVersion is that of the control plane that is compiled in.
const kubernetesVersion = "1.36.3"

func newVersionCommand(p *Process) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the program's version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if output == "json" {
				return printJSON(p, map[string]string{"version": version, "kubernetes": kubernetesVersion})
			}
			p.printf("plimsoll %s, with Kubernetes %s\n", version, kubernetesVersion)
			return nil
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
