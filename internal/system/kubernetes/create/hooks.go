package create

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// mostSaid bounds the output of all hooks in a record, in bytes.
const mostSaid = 16 << 20

// Hooks runs the commands of a configuration, each in a process group that ends with it.
type Hooks struct {
	*prepared.Run
	tie    *proc.Tie
	mu     sync.Mutex
	beside []*hook // in the background, still to be heard of
	said   int     // bytes of output on record
	begun  bool    // the hooks around the first cleanup have run
}

// hook is a command that was started.
type hook struct {
	*proc.Process
	job, name string
	kept      sync.Once // its output is on record
}

// NewHooks returns what runs the hooks of a run, which must be closed.
func NewHooks(common *prepared.Run) *Hooks { return &Hooks{Run: common, tie: proc.NewTie()} }

// Commands returns the commands of a configuration, with the moments at which they run.
func Commands(c *kubeburner.Config) (list []string) {
	for i := range c.Jobs {
		for _, h := range c.Jobs[i].Hooks {
			text := fmt.Sprintf("%s (%s of job %s", commandLine(h.Cmd), h.When, c.Jobs[i].Name)
			if h.Background {
				text += ", in the background"
			}
			if text += ")"; !slices.Contains(list, text) { // stages of a load share them
				list = append(list, text)
			}
		}
	}
	return list
}

// commandLine returns a command as bash reads it.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		var err error
		if quoted[i], err = syntax.Quote(word, syntax.LangBash); err != nil {
			quoted[i] = strconv.Quote(word) // it has a zero byte: nothing can run it
		}
	}
	return strings.Join(quoted, " ")
}

// Stage runs the hooks of a job at a moment: those in the background begin, the others run one after the other. A
// failed command ends the stage with an *unmetError.
func (h *Hooks) Stage(ctx context.Context, job *kubeburner.Job, when string) error {
	for _, background := range []bool{true, false} {
		for _, of := range job.Hooks {
			if of.When != when || of.Background != background {
				continue
			}
			if err := h.run(ctx, job, of); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Hooks) run(ctx context.Context, job *kubeburner.Job, of kubeburner.Hook) error {
	p := &hook{job: job.Name, name: fmt.Sprintf("hook %s of job %s: %s", of.When, job.Name, commandLine(of.Cmd))}
	cmd := exec.Command(of.Cmd[0], of.Cmd[1:]...)
	cmd.Dir, cmd.Env = h.Load.Hooks.Dir, h.Load.Hooks.Env
	var err error
	if p.Process, err = proc.Start(cmd, proc.How{Name: p.name, On: h.tie.Do}); err != nil {
		return &unmetError{err.Error()}
	}
	if of.Background {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.beside = append(h.beside, p)
		return nil
	}
	over := time.NewTimer(job.MaxWaitTimeout)
	defer over.Stop()
	select {
	case <-p.Done():
		return h.ended(p)
	case <-ctx.Done():
		h.kill(p, "the run ended")
		return context.Cause(ctx)
	case <-over.C:
		return h.kill(p, fmt.Sprintf("killed after %v (maxWaitTimeout)", job.MaxWaitTimeout))
	}
}

// ended records the output of a hook that has ended, and ends what it has left in its process group. It returns
// how it failed.
func (h *Hooks) ended(p *hook) error {
	p.KillGroup()
	err := p.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // what it had started still wrote
	}
	if err == nil {
		h.keep(p, p.Said(), "")
		return nil
	}
	text := err.Error()
	if ended, is := errors.AsType[*exec.ExitError](err); is {
		text = ended.ProcessState.String()
	}
	h.keep(p, p.Said(), text)
	failed := p.name + ": " + text
	if said := p.Said(); said != "" {
		failed += ": " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	return &unmetError{failed}
}

// kill ends a hook with all that it has started.
func (h *Hooks) kill(p *hook, why string) error {
	said := p.Said() // by now: a shell says of what it had started that it was killed
	p.KillAll()
	p.KillGroup()
	if err := p.Stop(); err != nil {
		why += "; " + err.Error()
	}
	h.keep(p, said, why)
	return &unmetError{p.name + ": " + why}
}

// keep records the last lines of a hook's output, once.
func (h *Hooks) keep(p *hook, said, failed string) {
	p.kept.Do(func() {
		l := &record.Log{Object: p.name, Error: failed}
		h.mu.Lock()
		if h.said += len(said); said != "" && h.said <= mostSaid {
			l.Lines = strings.Split(strings.ToValidUTF8(said, "\ufffd"), "\n")
		}
		h.mu.Unlock()
		if len(l.Lines) > 0 || failed != "" {
			h.Emit(l)
		}
	})
}

// heard returns how hooks of a job in the background have failed since the last call.
func (h *Hooks) heard(job string) (failed []error) {
	h.mu.Lock()
	var over, rest []*hook
	for _, p := range h.beside {
		if p.job == job && p.Ended() {
			over = append(over, p)
		} else {
			rest = append(rest, p)
		}
	}
	h.beside = rest
	h.mu.Unlock()
	for _, p := range over {
		if err := h.ended(p); err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// AfterCleanup runs the hooks of jobs with gc after the removal, and returns how they have failed.
func (h *Hooks) AfterCleanup(ctx context.Context, c *kubeburner.Config) (failed []error) {
	for i := range c.Jobs {
		if job := &c.Jobs[i]; job.GC || c.Global.GC && c.Global.GCMetrics {
			if err := h.Stage(ctx, job, kubeburner.AfterCleanup); err != nil {
				failed = append(failed, err)
			}
		}
	}
	h.End()
	return failed
}

// Close lets go of what starts hooks.
func (h *Hooks) Close() { h.tie.Close() }

// End ends the hooks in the background.
func (h *Hooks) End() {
	for _, p := range h.beside {
		if p.Ended() {
			h.ended(p) // too late for a verdict
		} else {
			h.kill(p, "")
		}
	}
	h.beside = nil
}

// hook runs the hooks of a job at a moment. A failure is recorded as a failed request.
func (x *Script) hook(ctx context.Context, job int, when string) error {
	j := &x.pacing.config.Jobs[job]
	if len(j.Hooks) == 0 {
		return nil
	}
	err := x.sender.Hooks.Stage(ctx, j, when)
	if failed, is := errors.AsType[*unmetError](err); is {
		x.noted("run", j, when, record.Slot{Outcome: record.SlotFailed, Error: failed.what})
		if when == kubeburner.HealthCheck {
			return &system.CutError{Err: fmt.Errorf("job %s is not raised beyond %d iterations: %w", j.Name, j.JobIterations, err)}
		}
		return nil
	}
	return err
}

// enter runs the hooks between the last job and the one that begins.
func (x *Script) enter(ctx context.Context, next *part) error {
	jobs := x.pacing.config.Jobs
	if x.inJob >= 0 && (next == nil || next.job != x.inJob) {
		if err := x.leave(ctx, &jobs[x.inJob]); err != nil {
			return err
		}
		x.inJob = -1
	}
	if next == nil || next.job == x.inJob {
		return nil
	}
	x.inJob, x.hooked = next.job, false
	if hooks := x.sender.Hooks; hooks != nil && !hooks.begun {
		hooks.begun = true
		for i := range jobs {
			for _, when := range []string{kubeburner.BeforeGC, kubeburner.AfterGC} {
				if !jobs[i].Creates() || !jobs[i].Cleanup {
					continue
				}
				if err := x.hook(ctx, i, when); err != nil {
					return err
				}
			}
		}
	}
	if err := x.hook(ctx, next.job, kubeburner.BeforeJob); err != nil {
		return err
	}
	return x.try(ctx, next)
}

// leave runs the hooks at the end of a job.
func (x *Script) leave(ctx context.Context, job *kubeburner.Job) error {
	if len(job.Hooks) == 0 {
		return nil
	}
	if err := x.made(ctx); err != nil {
		return err
	}
	if err := x.hook(ctx, x.inJob, kubeburner.BeforeCleanup); err != nil {
		return err
	}
	for _, failed := range x.sender.Hooks.heard(job.Name) {
		x.noted("run", job, "in the background", record.Slot{Outcome: record.SlotFailed, Error: failed.Error()})
	}
	return nil
}

// made runs the hooks after the objects of a job were made and are ready, once, before they churn.
func (x *Script) made(ctx context.Context) error {
	job := &x.pacing.config.Jobs[x.inJob]
	if x.hooked || len(job.Hooks) == 0 {
		return nil
	}
	x.hooked = true
	if job.WaitWhenFinished {
		if err := x.awaitDone(ctx); err != nil {
			return err
		}
	}
	if err := x.hook(ctx, x.inJob, kubeburner.HealthCheck); err != nil {
		return err
	}
	return x.hook(ctx, x.inJob, kubeburner.AfterJob)
}

// beginning returns what reports whether the hooks of an iteration have run, before its first request.
func (x *Script) beginning(ctx context.Context) func(i int) bool {
	begun := -1 // the request for which they have run
	var running chan struct{}
	return func(i int) bool {
		slot := x.slots[i]
		first := i == 0 || x.slots[i-1].Iteration != slot.Iteration || x.slots[i-1].maker.jobIndex != slot.maker.jobIndex || i == x.from
		if begun == i || !first || slot.asking != nil || len(slot.maker.job.Hooks) == 0 {
			return true
		}
		if running == nil {
			running = make(chan struct{})
			go func() {
				defer close(running)
				if err := x.hook(ctx, slot.maker.jobIndex, kubeburner.OnEachIteration); err != nil && ctx.Err() == nil {
					x.sender.fail(err)
				}
			}()
		}
		select {
		case <-running:
			begun, running = i, nil
			return true
		default:
			return false
		}
	}
}
