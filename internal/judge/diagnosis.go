package judge

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// Diagnosis is a signature of a failure that is known, which steps have shown.
type Diagnosis struct {
	Signature   string `json:"signature"`
	Title       string `json:"title"`
	Evidence    string `json:"evidence"`
	Explanation string `json:"explanation"`
	Remedy      string `json:"remedy"`
	Source      string `json:"source,omitempty"`
	// Count is how much has matched, over all steps; First when the first of it
	// came in Step, the first of those that failed, or of all where none did.
	Count int    `json:"count"`
	First string `json:"first"`
	Step  int    `json:"step"`
	// Steps are all that have shown it.
	Steps []int `json:"steps"`
	// Failing says that it was shown by a step in which a goal did not hold.
	Failing bool    `json:"failing"`
	Matches []Match `json:"samples"`
}

// Match is one of what has matched a signature.
type Match struct {
	Time   string `json:"time"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// failed reports whether a goal did not hold in the step.
func (c *judged) failed() bool {
	for _, v := range c.Goals {
		if v == slo.Breached {
			return true
		}
	}
	return false
}

// diagnosis is what the steps have shown, that of steps that failed first, each
// in order of time.
func diagnosisOf(spec *Spec, steps []*judged) []Diagnosis {
	list := []Diagnosis{}
	at := make(map[string]int)
	for _, c := range steps {
		if c.again {
			continue
		}
		for _, hit := range c.hits {
			s := hit.Signature
			i, known := at[s.Name]
			if !known {
				i = len(list)
				at[s.Name] = i
				list = append(list, Diagnosis{Signature: s.Name, Title: signature.OneLine(s.Title), Explanation: signature.OneLine(s.Explain), Remedy: signature.OneLine(s.Remedy), Source: s.Source})
			}
			d := &list[i]
			if !known || c.failed() && !d.Failing {
				d.Step, d.First, d.Failing, d.Evidence, d.Matches = c.ID, spec.wall(hit.First), c.failed(), hit.Text(), []Match{}
				for _, sample := range hit.Matches {
					d.Matches = append(d.Matches, Match{spec.wall(sample.T), sample.Object, signature.OneLine(sample.Text)})
				}
			}
			d.Count += hit.Count
			d.Steps = append(d.Steps, c.ID)
		}
	}
	slices.SortStableFunc(list, func(x, y Diagnosis) int {
		return cmp.Or(compareBool(y.Failing, x.Failing), cmp.Compare(x.First, y.First))
	})
	return list
}

// LogTail is the end of what a container of a failing object has written,
// secrets masked.
type LogTail struct {
	Object    string   `json:"object"`
	Container string   `json:"container,omitempty"`
	Reason    string   `json:"reason,omitempty"` // what kept the object
	Previous  bool     `json:"previous,omitempty"`
	Lines     []string `json:"lines"`
	Masked    int      `json:"masked,omitempty"` // lines in which something was masked
	Error     string   `json:"error,omitempty"`  // why there are none
}
