package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// ComparisonInput is what is shown of a comparison of recorded experiments.
type ComparisonInput struct {
	Comparison compare.Comparison
	// Operands are the experiments that were compared, the baseline first.
	Operands []Operand
	// Axis and Unit are those of the levels, "" where they have none in common.
	Axis, Unit string
	// Command and Version are those of the comparison, not of the runs.
	Command, Version string
	Warnings         record.Warnings
	// Verdict and Why are those of the whole where they are not the
	// comparison's own: runs that were invalid. "" is the comparison's own.
	Verdict slo.Verdict
	Why     string
}

// Operand is one of the experiments that were compared.
type Operand struct {
	Arm string // what the comparison calls it
	Dir string // where its record lies
	// Result tells its name, command, version, fidelity and verdict; what its
	// steps were is not shown.
	Result judge.Result
	// Environment is nil where there is none that could be read.
	Environment *record.Environment
}

// ComparisonHTML writes a comparison of recorded experiments as one page that
// needs nothing else, as HTML does of a run.
func ComparisonHTML(w io.Writer, in ComparisonInput) error {
	r := in.result()
	data, err := dataOf(Input{Result: r})
	if err != nil {
		return err
	}
	data.Axis, data.Unit = in.Axis, in.Unit
	p := pageOf(Input{Result: r}, data)
	p.Recorded, p.Operands = true, operandsOf(in.Operands)
	p.Fidelity = p.commonFidelity()
	return write(w, p, data)
}

func (in ComparisonInput) result() judge.Result {
	c := in.Comparison
	verdict, why := c.Verdict()
	r := judge.Result{
		Schema: judge.ResultSchema, Kind: "compare", Verdict: slo.Verdict(verdict), Why: why,
		Command: in.Command, Version: in.Version, Comparison: &c, Warnings: in.Warnings,
	}
	if in.Verdict != "" {
		r.Verdict, r.Why = in.Verdict, in.Why
	}
	r.Experiment = fmt.Sprintf("%s against %s", strings.Join(armsOf(&c), ", "), c.Baseline)
	var workloads []string
	for _, o := range in.Operands {
		if !slices.Contains(workloads, o.Result.Workload) {
			workloads = append(workloads, o.Result.Workload)
		}
	}
	r.Workload = strings.Join(workloads, ", ")
	return r
}

// operandPart is what the page says of one operand.
type operandPart struct {
	Operand
	Index    int
	Baseline bool
	Facts    []fact
	Fidelity []fidelityPart
}

func operandsOf(operands []Operand) []operandPart {
	var list []operandPart
	for i, o := range operands {
		part := operandPart{Operand: o, Index: i, Baseline: i == 0}
		add := func(name, value, note string) {
			if value != "" {
				part.Facts = append(part.Facts, fact{name, value, note})
			}
		}
		add("Experiment", o.Result.Experiment, "")
		add("Workload", o.Result.Workload, o.Result.Kind)
		if o.Result.Comparison == nil {
			add("Own verdict", verdictWord(o.Result.Verdict), o.Result.Why)
		}
		add("Version", o.Result.Version, "of plimsoll")
		add("Record", o.Dir, "")
		var machine page
		if machine.environment(o.Environment); o.Environment == nil {
			add("Start", startOf(o.Result), "")
		}
		part.Facts = append(part.Facts, machine.Machine...)
		if machine.Places != nil {
			var kinds []string
			for _, r := range machine.Places.Rows {
				kinds = append(kinds, r.fact())
			}
			add("Kinds of "+strings.ToLower(machine.Places.Title), strings.Join(kinds, "; "), "")
		}
		add("CPU split", machine.Split, strings.Join(machine.SplitNotes, "; "))
		part.Fidelity = fidelityOf(o.Result.Fidelity)
		list = append(list, part)
	}
	return list
}

// commonFidelity is what was real in all operands alike, nil where they differ.
func (p page) commonFidelity() []fidelityPart {
	for _, o := range p.Operands {
		if !slices.Equal(o.Fidelity, p.Operands[0].Fidelity) {
			return nil
		}
	}
	if len(p.Operands) == 0 {
		return nil
	}
	return p.Operands[0].Fidelity
}

// startOf is when the first step of a result began.
func startOf(r judge.Result) string {
	if len(r.Steps) == 0 {
		return ""
	}
	t, err := time.Parse(time.RFC3339, r.Steps[0].Start)
	if err != nil {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 MST")
}
