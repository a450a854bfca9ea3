package judge

import (
	"cmp"
	"maps"
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

// peaks are a step's figures as its signatures ask for them: the most of what
// is counted and used, the median of what takes time.
func (c *judged) peaks(spec *Spec, f *facts) map[string]float64 {
	figures := make(map[string]float64)
	if len(spec.Signatures) == 0 {
		return figures
	}
	maps.Copy(figures, f.figuresIn(f.start, f.end, f.mostPending(f.end)))
	for source, points := range f.readings.cpu {
		peak, ok := peakCPU(points)
		if !ok {
			// Figures of signatures are in percent of one processor.
			delete(figures, FigureCPU+source)
			continue
		}
		if source != SourceMachine {
			figures[signature.FigureCPU+source] = peak
		} else if cpus := f.readings.usage[source].cpus; cpus > 0 {
			figures[signature.FigureMachine] = round(peak/float64(cpus), 1)
		}
	}
	for source, u := range c.Resources {
		if u.PeakRSSBytes > 0 {
			figures[signature.FigureMemory+source] = float64(u.PeakRSSBytes)
		}
	}
	for _, n := range f.services {
		figures[signature.FigureServices] = max(figures[signature.FigureServices], float64(n))
	}
	figures[signature.FigureThrottled] = float64(c.Retries429)
	return figures
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

const (
	maxLogs     = 12 // of a step, in its result
	maxLogLines = 8  // of one of them
)
