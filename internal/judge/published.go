package judge

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// PublishedSpec is a figure that somebody has published: times in seconds,
// changes as a share.
type PublishedSpec struct {
	What, Metric, Arm, Source string
	Value                     float64
	// IsChange says that Value is by how much the arm differs from the
	// baseline; IsLine that it is a load line.
	IsChange, IsLine bool
}

// Published is a published figure beside what the run found. It decides
// nothing: the two were found on different machines.
type Published struct {
	What      string  `json:"what"`
	Metric    string  `json:"metric"`
	Arm       string  `json:"arm,omitempty"`
	Source    string  `json:"source"`
	Unit      string  `json:"unit"` // s, B, /s, %, or the axis's own
	Published float64 `json:"published"`
	// Found is the median over the runs that count, or the change; null where
	// the run has no such figure. Times of what passes faster are as they would be. Lo and Hi are the change's interval.
	Found *float64 `json:"found"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	// At is the level at which it was found; null for a load line.
	At *float64 `json:"at"`
}

// publishedFigures puts the published figures beside those of a result.
func publishedFigures(spec *Spec, milestones []string, r Result) []Published {
	var list []Published
	for _, f := range spec.Published {
		p := Published{What: f.What, Metric: f.Metric, Arm: f.Arm, Source: f.Source, Published: f.Value}
		switch {
		case f.IsChange:
			p.Unit = "%"
			p.findChange(r)
		case f.IsLine:
			p.Unit = spec.Unit
			if r.LoadLine != nil {
				p.Found = r.LoadLine.Level
			}
		default:
			p.findValue(spec.Kind, milestones, r)
		}
		list = append(list, p)
	}
	return list
}

// findChange finds how the arm differs, at the highest level.
func (p *Published) findChange(r Result) {
	if r.Comparison == nil {
		return
	}
	for _, l := range r.Comparison.Levels {
		if l.Arm != p.Arm {
			continue
		}
		for _, c := range append(slices.Clone(l.Others), l.Primary) {
			if c.Metric == p.Metric {
				p.Found, p.Lo, p.Hi, p.At = c.Change, c.Lo, c.Hi, &l.Level
			}
		}
	}
}

// findValue finds the median over the runs: at the load line where there
// is one, else at the highest level.
func (p *Published) findValue(kind record.ObjectKind, milestones []string, r Result) {
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
			if v := b.figure(p.Metric); v != nil {
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
		p.Found, p.At = finite(found), level
	}
}
