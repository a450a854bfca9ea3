package slo

// Verdict judges a step, a goal or a run. Unknown never counts as pass.
type Verdict string

// The verdicts of a step.
const (
	Pass         Verdict = "pass"
	Breached     Verdict = "breach"
	Inconclusive Verdict = "inconclusive" // the observations do not decide
	Invalid      Verdict = "invalid"      // the tool, or others on its machine, was the bottleneck
)

// Decided reports whether the verdict says anything about the target.
func (v Verdict) Decided() bool { return v == Pass || v == Breached }
