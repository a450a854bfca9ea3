package findings

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// PublishedFigures puts the published figures beside those of a result.
func PublishedFigures(spec *result.Spec, milestones []string, r result.Result) []result.Published {
	var list []result.Published
	for _, f := range spec.Published {
		p := result.Published{What: f.What, Metric: f.Metric, Arm: f.Arm, Source: f.Source, Published: f.Value}
		switch {
		case f.IsChange:
			p.Unit = "%"
			findChange(&p, r)
		case f.IsLine:
			p.Unit = spec.Unit
			if r.LoadLine != nil {
				p.Found = r.LoadLine.Level
			}
		default:
			findValue(&p, spec.Kind, milestones, r)
		}
		list = append(list, p)
	}
	return list
}

// findChange finds the difference of the arm, at the highest level.
func findChange(p *result.Published, r result.Result) {
	if r.Comparison == nil {
		return
	}
	for _, l := range r.Comparison.Levels {
		if l.Arm != p.Arm {
			continue
		}
		for _, c := range append(slices.Clone(l.Others), l.Declared()...) {
			if c.Metric == p.Metric {
				p.Found, p.Lo, p.Hi, p.At = c.Change, c.Lo, c.Hi, &l.Level
			}
		}
	}
}

// findValue finds the median over the runs: at the load line, or at the highest level without one.
func findValue(p *result.Published, kind record.ObjectKind, milestones []string, r result.Result) {
	var level *float64
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Verdict.Decided() && s.Arm == p.Arm && (level == nil || s.Level > *level) {
			level = &s.Level
		}
	}
	if r.LoadLine != nil {
		level = r.LoadLine.Level
	}
	if level == nil {
		return
	}
	var values []float64
	for _, s := range r.Steps {
		if s.Level != *level || s.Arm != p.Arm || !s.Verdict.Decided() {
			continue
		}
		for _, b := range s.Groups {
			if v := b.Figure(p.Metric); v != nil {
				p.Unit, values = "s", append(values, *v)
			}
		}
		for _, f := range RunOf(s, kind, milestones, nil).Figures {
			if f.Metric != p.Metric {
				continue
			}
			if p.Unit = f.Unit; f.Value != nil {
				values = append(values, *f.Value)
			}
		}
	}
	if len(values) > 0 {
		found := stats.NewSample(values, 0).Quantile(0.5)
		if scale := r.Fidelity.TimeScale; scale > 0 && p.Unit == "s" {
			found *= scale
		}
		p.Found, p.At = result.Finite(found), level
	}
}
