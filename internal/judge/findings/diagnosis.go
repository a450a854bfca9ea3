package findings

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/signature"
)

// DiagnosisOf returns the known failures that the steps show, those of failed steps first,
// each once with all its evidence.
func DiagnosisOf(spec *result.Spec, steps []*verdict.Judged) []result.Diagnosis {
	list := []result.Diagnosis{}
	at := make(map[string]int)
	for _, c := range steps {
		if c.Again {
			continue
		}
		for _, hit := range c.Hits {
			s := hit.Signature
			i, known := at[s.Name]
			if !known {
				i = len(list)
				at[s.Name] = i
				list = append(list, result.Diagnosis{Signature: s.Name, Title: signature.OneLine(s.Title), Explanation: signature.OneLine(s.Explain), Remedy: signature.OneLine(s.Remedy), Source: s.Source})
			}
			d := &list[i]
			if !known || c.Failed() && !d.Failing {
				d.Step, d.First, d.Failing, d.Evidence, d.Matches = c.ID, spec.Wall(hit.First), c.Failed(), hit.Text(), []result.Match{}
				for _, sample := range hit.Matches {
					d.Matches = append(d.Matches, result.Match{Time: spec.Wall(sample.T), Object: sample.Object, Text: signature.OneLine(sample.Text)})
				}
			}
			d.Count += hit.Count
			d.Steps = append(d.Steps, c.ID)
		}
	}
	slices.SortStableFunc(list, func(x, y result.Diagnosis) int {
		return cmp.Or(result.CompareBool(y.Failing, x.Failing), cmp.Compare(x.First, y.First))
	})
	return list
}
