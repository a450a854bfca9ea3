package recorded

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Operand is one side of a comparison: a recorded experiment, or an arm of one.
type Operand struct {
	Name      string // in messages; NameOperands gives it
	Path, Arm string // the run directory as given, and the arm; "" is all of it

	Result      result.Result       // of the experiment
	Environment *record.Environment // of the run, nil where that is not on record

	made  record.Dir // has its objects
	plan  *plan.Plan
	files string // fingerprint of the workload's files, "" is not on record
}

// ArmError says that an experiment has no such arm, or with "" that one of several must be named.
type ArmError struct {
	Path, Arm string
	Arms      []string // of the experiment
}

func (e *ArmError) Error() string {
	switch {
	case len(e.Arms) == 0:
		return fmt.Sprintf("%s is not a comparison of arms: it has no arm %q", e.Path, e.Arm)
	case e.Arm == "":
		return fmt.Sprintf("%s has the arms %s: name one of them", e.Path, strings.Join(e.Arms, ", "))
	}
	return fmt.Sprintf("%s has no arm %q", e.Path, e.Arm)
}

// Load reads a run and its plan; judged has the result and the objects. The error may be an *ArmError.
func Load(dir, judged record.Dir, p *plan.Plan, arm string) (*Operand, error) {
	o := &Operand{Path: string(dir), Arm: arm, made: judged, plan: p}
	var arms []string
	for _, a := range p.Arms {
		arms = append(arms, a.Name)
	}
	if (arm != "" || len(arms) > 0) && !slices.Contains(arms, arm) {
		return nil, &ArmError{o.Path, arm, arms}
	}
	if err := judged.ReadJSON(record.ResultFile, &o.Result); err != nil {
		return nil, err
	}
	if o.Result.Schema != result.Schema {
		return nil, fmt.Errorf("read %s: schema %q, want %q", judged.Path(record.ResultFile), o.Result.Schema, result.Schema)
	}
	var err error
	if o.Environment, err = dir.Environment(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if o.files, err = filesOf(dir); err != nil {
		return nil, err
	}
	return o, nil
}

// filesOf returns the fingerprint of the workload's files, after the plan's in the first event, or "".
func filesOf(dir record.Dir) (string, error) {
	enough := errors.New("the first event is enough")
	files := ""
	_, err := record.ReadHistory(dir, func(e record.Event) error {
		if run, ok := e.Body.(*record.RunEvent); ok && run.Phase == record.PhaseStart {
			_, files, _ = strings.Cut(run.Plan, "-")
		}
		return enough
	})
	if err != nil && !errors.Is(err, enough) {
		return "", err
	}
	return files, nil
}

func (o *Operand) kind() record.ObjectKind {
	if o.Environment == nil {
		return record.ObjectKind{}
	}
	return *o.Environment.Kind
}

// Axis returns the name of the axis, and its unit.
func (o *Operand) Axis() (name, unit string) { return o.plan.Axis.Name, o.plan.AsRun.Unit }

// SameAxis reports whether the levels of two mean the same.
func (o *Operand) SameAxis(p *Operand) bool {
	return o.plan.Axis.Name == p.plan.Axis.Name && o.plan.AsRun.Unit == p.plan.AsRun.Unit
}

// SameOperandError says that two operands are one and the same.
type SameOperandError struct{ A, B string }

func (e *SameOperandError) Error() string { return fmt.Sprintf("%s and %s are the same run", e.A, e.B) }

// NameOperands gives operands different names, as short as possible. The error is a *SameOperandError.
func NameOperands(operands []*Operand) error {
	for i, b := range operands {
		for _, a := range operands[:i] {
			if a.Arm == b.Arm && sameRun(a, b) {
				return &SameOperandError{a.Path, b.Path}
			}
		}
	}
	oneRun := !slices.ContainsFunc(operands, func(o *Operand) bool { return !sameRun(o, operands[0]) })
	withArm := func(name, arm string) string {
		if arm != "" {
			name += ":" + arm
		}
		return name
	}
	for _, name := range []func(i int, o *Operand) string{
		func(_ int, o *Operand) string {
			if oneRun && o.Arm != "" {
				return o.Arm
			}
			return withArm(filepath.Base(filepath.Clean(o.Path)), o.Arm)
		},
		func(_ int, o *Operand) string { return withArm(filepath.Clean(o.Path), o.Arm) },
		func(i int, o *Operand) string {
			return withArm(filepath.Clean(o.Path), o.Arm) + " (" + strconv.Itoa(i+1) + ")"
		},
	} {
		seen := make(map[string]bool)
		for i, o := range operands {
			o.Name = name(i, o)
			seen[o.Name] = true
		}
		if len(seen) == len(operands) {
			break
		}
	}
	return nil
}

// sameRun reports whether two operands are of one run, or of a copy of it.
func sameRun(a, b *Operand) bool {
	if a.plan.AsRun.ID != "" || b.plan.AsRun.ID != "" {
		return a.plan.AsRun.ID == b.plan.AsRun.ID && a.plan.AsRun.Started == b.plan.AsRun.Started
	}
	return filepath.Clean(a.Path) == filepath.Clean(b.Path)
}

// params returns the parameters as given, the arm's before the plan's.
func (o *Operand) params() map[string]string {
	all := make(map[string]string)
	maps.Copy(all, o.plan.Params)
	for _, a := range o.plan.Arms {
		if a.Name == o.Arm {
			maps.Copy(all, a.Params)
		}
	}
	return all
}

// start returns the wall clock at the start of the run, zero where it is unknown.
func (o *Operand) start() time.Time {
	if o.Environment != nil && !o.Environment.Start.IsZero() {
		return o.Environment.Start
	}
	t, _ := time.Parse(time.RFC3339, o.plan.AsRun.Started)
	return t
}

// replicate is a step that may count as a run.
type replicate struct {
	compare.Run
	step result.Step
	on   string // the levels that it stands on, "" where it was made from empty
}

// runs returns the steps that were held whole, from empty or raised by a sweep; a search's proposals
// stand on various levels and do not count. Distributions says whether their samples are read too.
func (o *Operand) runs(distributions bool) ([]replicate, error) {
	var steps []result.Step
	on := make(map[int]string)
	stands := ""
	for _, s := range o.Result.Steps {
		if s.FromEmpty {
			stands = ""
		}
		if (o.Arm == "" || s.Arm == o.Arm) && s.FullHold && (s.FromEmpty || s.Purpose == record.PurposeSweep) {
			steps = append(steps, s)
			on[s.ID] = stands
		}
		if stands != "" {
			stands += ", "
		}
		stands += levelText(s.Level)
	}
	var samples map[int][]compare.MilestoneSample
	if distributions {
		var err error
		if samples, err = objects.Samples(o.made, steps, o.kind(), o.plan.AsRun.Milestones, o.plan.AsRun.Arrived); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Path, err)
		}
	}
	list := make([]replicate, 0, len(steps))
	for _, s := range steps {
		r := replicate{Run: findings.RunOf(s, o.kind(), o.plan.AsRun.Milestones, samples[s.ID]), step: s, on: on[s.ID]}
		r.Arm = o.Name
		if o.Arm == "" {
			r.Block = s.ID
		}
		r.Name = fmt.Sprintf("step %d of %s", s.ID, o.Name)
		list = append(list, r)
	}
	return list, nil
}

func invalid(list []replicate) int {
	n := 0
	for _, r := range list {
		if r.step.Verdict == slo.Invalid {
			n++
		}
	}
	return n
}

func numbers(list []float64) string {
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = levelText(x)
	}
	return strings.Join(words, ", ")
}

func levelText(x float64) string { return number.Text(x, 10) }
