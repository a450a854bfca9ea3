package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/target"
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

// componentCommand begins the command line of a part of the control plane.
const componentCommand = "component"

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

// codeOf is the exit code of a program that a signal has ended.
func codeOf(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitInterrupted
}

// interrupts turns signals into contexts. The first signal ends soft: stop the
// load, write down what is there, clean up. The second ends hard: give up
// whatever is slow. The third ends the process.
type interrupts struct {
	soft, hard context.Context
	cause      chan os.Signal
	done       chan struct{}
	// left says what a process that ends at once leaves, nil for nothing.
	left atomic.Pointer[string]
}

func newInterrupts(signals <-chan os.Signal, log func(format string, args ...any)) *interrupts {
	soft, endSoft := context.WithCancelCause(context.Background())
	hard, endHard := context.WithCancel(context.Background())
	i := &interrupts{soft: soft, hard: hard, cause: make(chan os.Signal, 1), done: make(chan struct{})}
	go func() {
		for n := 1; ; n++ {
			select {
			case s := <-signals:
				if n > 1 && (s == syscall.SIGHUP || s == syscall.SIGPIPE) {
					n-- // a terminal that is gone tells so more than once, and no person does
					continue
				}
				switch n {
				case 1:
					i.cause <- s
					endSoft(interruptedError{})
				case 2:
					endHard()
				default:
					if left := i.left.Load(); left != nil {
						log("%s\n", *left)
					}
					os.Exit(codeOf(s))
				}
			case <-i.done:
				endSoft(nil)
				endHard()
				return
			}
		}
	}()
	return i
}

// interruptedError is why a run ended that its user interrupted. It is as good
// as context.Canceled.
type interruptedError struct{}

func (interruptedError) Error() string        { return "it was interrupted" }
func (interruptedError) Is(target error) bool { return target == context.Canceled }

// first is the signal that came first, or nil. It answers once.
func (i *interrupts) first() os.Signal {
	select {
	case s := <-i.cause:
		return s
	default:
		return nil
	}
}

func (i *interrupts) close() { close(i.done) }

func newRootCommand(p *Process, stop *interrupts) *cobra.Command {
	root := group(&cobra.Command{
		Use:           "plimsoll",
		Short:         "How far can this cluster be loaded, what breaks first, did this change make it better or worse?",
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		newLimitCommand(p, stop), newSweepCommand(p, stop),
		newABCommand(p, stop), newRunCommand(p, stop), newAnalyzeCommand(p), newCompareCommand(p), newReportCommand(p),
		newLabCommand(p, stop), newWorkloadsCommand(p), newSignaturesCommand(p), newImageCommand(p), newCleanCommand(p), newVersionCommand(p),
		newTuneCommand(p), newLintCommand(p), newCheckCommand(p, stop),
	)
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

// Exit codes, as the contracts fix them.
const (
	exitHeld         = 0   // the line was confirmed, or nothing failed; better, equivalent, notWorse
	exitBreached     = 1   // breached or worse; findings
	exitUsage        = 2   // usage, plan, or something named that does not exist
	exitInconclusive = 3   // what was measured does not decide
	exitInvalid      = 4   // the tool itself was the bottleneck
	exitCouldNotRun  = 5   // unreachable, input/output, the lab failed
	exitInterrupted  = 130 // SIGINT; of any signal it is 128 and its number
)

// usagef makes the error of a mistake in what the user wrote or named. Hint is
// one line that says what to do about it, or "".
func usagef(hint, format string, args ...any) error { return target.Mistakef(hint, format, args...) }

// exitError carries an exit code for a command that has already said what
// there was to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode maps what a command returned to the code the program ends with.
func exitCode(err error) int {
	if err == nil {
		return exitHeld
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	if _, ok := errors.AsType[*target.MistakeError](err); ok {
		return exitUsage
	}
	return exitCouldNotRun
}

// hintOf is the advice that belongs to an error, or "".
func hintOf(err error) string {
	if mistake, ok := errors.AsType[*target.MistakeError](err); ok {
		return mistake.Hint
	}
	if unable, ok := errors.AsType[*target.UnableError](err); ok {
		return unable.Hint
	}
	return ""
}

// version is the program's version.
const version = "0.1.0"

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
