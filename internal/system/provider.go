// Package system is the seam between the loop and what is loaded: what a target must do to be raised,
// observed and emptied. An object has records of its own. Thousands of requests a second are a stream:
// the target gets a [streams.Schedule], and puts what becomes of the requests on record in [streams.Windows].
package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Provider opens sessions on one kind of system. A target registers one.
type Provider interface {
	// Declare tells what can be loaded there, without looking at any system.
	Declare() workload.Target
	// Needs lists the programs of this machine that its systems run.
	Needs() []proc.Program
	// Open finds the system that the plan names, or brings one up. Its caller must close the session.
	Open(ctx context.Context, r Request) (Session, error)
	// Outline tells what a run would do to the system, does nothing, and refuses what the run would refuse.
	Outline(ctx context.Context, r Request) ([]Change, error)
}

// Sweeper is a Provider whose killed runs leave something on this machine.
type Sweeper interface {
	// SweepHost removes what dead runs left, where removes agrees ("" is an unknown run), and lists all.
	SweepHost(ctx context.Context, h Host, removes func(run string) bool) ([]Leftover, error)
}

// Leftover names what a run has left on this machine, or works with there.
type Leftover struct {
	Target string `json:"target"`
	room.Left
}

// What names all that is left, in a line.
func (l *Leftover) What() string {
	things := strings.Join(l.Things, ", ")
	if l.Run == "" {
		return things
	}
	return "run " + l.Run + " of target " + l.Target + ", on this machine: " + things
}

// Change says what a run does to a system.
type Change struct {
	Action Action `json:"action"`
	What   string `json:"what"`
	Each   string `json:"each,omitempty"` // what one of them is made for, "" where it is made once
}

// Action says what a run does with a thing.
type Action string

// The actions.
const (
	Make       Action = "make"   // and remove at the end
	ChangeIt   Action = "change" // a setting, which is set back at the end
	Reboot     Action = "reboot"
	RemoveLeft Action = "remove" // what a dead run has left
	Execute    Action = "run"    // a command of a configuration
	Use        Action = "use"    // a program, a file or an image that the plan brings in
)

// Session is one opened system. A run calls the methods in this order, Renew and Target again for each
// fresh system, and Readings at any time after Target. A look at the system calls Survey and Close alone.
type Session interface {
	// Consent returns what the user must agree to before anything is changed, nil for nothing.
	Consent(ctx context.Context) (*Consent, error)
	// Prepare renders the workload for this system, and fills in parameters that must fit the system.
	Prepare(ctx context.Context) error
	// Sweep removes what dead runs have left in the system.
	Sweep(ctx context.Context) error
	// Survey looks at the system, and how far it can be loaded, thoroughly or as a load must.
	Survey(ctx context.Context, thorough bool) (Survey, error)
	// Bounds bounds a load where the plan does not.
	Bounds() Bounds
	// Target begins to observe and makes what the engine loads.
	Target(ctx context.Context, rec Recorder) (Instance, error)
	// Readings tells what the system's parts use now, as far as that is known.
	Readings() []record.Reading
	// Renew puts a new system in the place of this one, between two Targets.
	Renew(ctx context.Context) error
	// Close lets go of the system, and removes it if the session brought it up.
	Close() error
}

// Publisher is a Session whose system publishes metrics.
type Publisher interface {
	// Endpoints lists where the user may read metrics now. Once Target was called, it is called often.
	Endpoints(ctx context.Context) ([]metrics.Endpoint, error)
}

// Monitored is a Session whose system has a Prometheus of its own.
type Monitored interface {
	// Prometheus returns its address, and what tells it who asks, by what the user has said already.
	Prometheus(ctx context.Context, access metrics.Access) (url string, found metrics.Access, err error)
}

// Request says what a session is opened for.
type Request struct {
	Host
	Plan      *plan.Plan         // valid; Prepare may fill in parameters
	Workload  *workload.Workload // nil for a look at a system without one
	Run, UUID string             // Run and UUID name the run. Before names its parts so far, all of them dead.
	Before    []string
	Wait      bool // until no other run loads the system
	ToRead    bool // nothing will be loaded
	Asks      bool // an outline may ask the system that the plan names
	// Trusted says that the user himself named the programs in the plan, so that an outline may run them.
	Trusted        bool
	Command, Clean string // command line that asked for it, and Clean the one that removes what runs left
}

// EachArm calls make for the workload itself, whose arm is "", and for each arm, with their own parameters.
func (r Request) EachArm(make func(arm string, given map[string]string) error) error {
	for _, arm := range append([]plan.Arm{{}}, r.Plan.Arms...) {
		given := map[string]string{}
		maps.Copy(given, r.Plan.Params)
		maps.Copy(given, arm.Params)
		if err := make(arm.Name, given); err != nil {
			if arm.Name != "" {
				return fmt.Errorf("arm %s: %w", arm.Name, err)
			}
			return err
		}
	}
	return nil
}

// Resolve returns the workload's parameters where these are given. Its error is a *MistakeError.
func (r Request) Resolve(given map[string]string) (workload.Params, error) {
	params, err := r.Workload.Resolve(given)
	if err != nil {
		return params, Mistakef("", "%w", err)
	}
	return params, nil
}

// Host holds what a session may use of the process that opened it.
type Host struct {
	StateDir   func() (string, error) // holds this user's labs and images
	Executable string
	Env        func(key string) string // reads the environment
	Pod        Pod                     // that this process runs in
	Build      record.Build
	Now        func() time.Time
	Random     io.Reader
	Used       func() (record.Reading, error) // reads what this process has used so far
	// Prefer makes this process go first until undo, and says how far it may; see cpu.Prefer.
	Prefer   func(exact bool) (how string, undo func())
	Secrets  *redact.Secrets                             // which never reach a record or the screen
	Log      func(format string, args ...any)            // shows the user a line
	Progress func() (show func(what string), end func()) // shows what is waited for, until end
}

// Pod says how a process in a pod reaches its cluster.
type Pod struct {
	Server  string // address of the API server, "" outside of a pod
	Account string // directory of the service account's token and certificate authority
}

// Consent says what a user must agree to. Without a System only Hooks are asked about.
type Consent struct {
	System   string   // what would be loaded, in a line
	Load     string   // how much in all and how fast, "" where System says so
	Why      string   // it is asked
	Warnings []string // before the answer
	Reboots  int      // nodes that are rebooted, which takes an agreement of its own
	Once     bool     // they are rebooted once, which is not undone
	Hooks    []string // commands that run on this machine, which takes an agreement of its own
}

// Survey holds what was found out about a system without loading it.
type Survey struct {
	Target   record.TargetNaming
	Server   string                 // its address, "" for none
	Version  string                 // of its software, "" for none
	Findings []record.HealthFinding // all of a thorough survey, else those of what is wrong
	Tables   []record.CeilingTable  // of the workload, one for each arm of the plan
	Kind     record.ObjectKind      // of the workload's objects in this system
}

// Bounds bound a load where the plan does not.
type Bounds struct {
	Pace plan.Pace
	// MaxInFlight bounds requests in flight on axes of levels in place, MaxInFlightOpen on those of rates.
	MaxInFlight, MaxInFlightOpen int
	Guards                       plan.Guards // nil for none
	// A step that waits for what has no place ends once nothing has moved for Stall; 0 is ten seconds.
	Stall time.Duration
}

// Instance is a Target together with its end.
type Instance interface {
	Target
	// Close removes everything that was made and stops observing. Done ends when the user stops waiting.
	Close(done context.Context) error
}

// Recorder holds what a target and its observers write to while a run is made.
type Recorder struct {
	Sink  record.Sink
	Clock *record.Clock
	Step  func() int  // that is being made, 0 before the first
	Fail  func(error) // ends the run for a reason that leaves no sense in going on
	Dir   record.Dir  // of the record, for files beside it
}

// Emit puts body on record as of now.
func (r Recorder) Emit(body record.Body) {
	r.Sink.Append(record.Event{T: r.Clock.Now(), Step: r.Step(), Body: body})
}

// MistakeError tells a mistake in what the user wrote or named.
type MistakeError struct {
	Err  error
	Hint string // one line that says what to do about it, or ""
}

func (e *MistakeError) Error() string { return e.Err.Error() }

func (e *MistakeError) Unwrap() error { return e.Err }

// Mistakef makes a MistakeError.
func Mistakef(hint, format string, args ...any) error {
	return &MistakeError{fmt.Errorf(format, args...), hint}
}

// ParamMistake makes the MistakeError of a parameter's value that does not do.
func ParamMistake(param, hint, format string, args ...any) error {
	return Mistakef(hint, "%s: %w", param, fmt.Errorf(format, args...))
}

// Lacking adds the command that installs a missing program, and what can be done instead.
func Lacking(err error, instead string) error {
	if missing, ok := errors.AsType[*proc.MissingError](err); ok {
		return &UnableError{Err: err, Hint: missing.Remedy() + instead}
	}
	return err
}

// CutError ends a run that cannot go on; its result stands.
type CutError struct{ Err error }

func (e *CutError) Error() string { return e.Err.Error() }

func (e *CutError) Unwrap() error { return e.Err }

// UnableError advises on an error that is no mistake of the user's.
type UnableError struct {
	Err  error
	Hint string
}

func (e *UnableError) Error() string { return e.Err.Error() }

func (e *UnableError) Unwrap() error { return e.Err }

// Signal is the cause with which a signal ends what is under way.
type Signal interface {
	error
	ExitCode() int      // that of the signal
	Ago() time.Duration // since it came
}

// SignalOf returns the signal that ended ctx, nil for none.
func SignalOf(ctx context.Context) Signal {
	var signal Signal
	errors.As(context.Cause(ctx), &signal) // nil stays nil
	return signal
}

// afterSignal bounds the wait for answers after a signal, so that the program ends within two seconds.
const afterSignal = time.Second

// Outlive returns a context that ends a second after a signal that ended ctx, or with ctx where the
// system is out of reach, and else not: what was begun is worth its end.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	rest, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		var silent interface{ OutOfReach() bool }
		if errors.As(context.Cause(ctx), &silent) && silent.OutOfReach() {
			cancel(context.Cause(ctx))
		}
		signal := SignalOf(ctx)
		if signal == nil {
			return
		}
		timer := time.NewTimer(afterSignal - signal.Ago())
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(signal)
		case <-rest.Done():
		}
	})
	return rest, func() { stop(); cancel(nil) }
}

// LeftError says that what the run has made could not all be removed.
type LeftError struct {
	Err  error
	Left int // how many things, as far as that is known
}

func (e *LeftError) Error() string { return fmt.Sprintf("clean up: %v", e.Err) }

func (e *LeftError) Unwrap() error { return e.Err }
