package analyze

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/diagnose"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
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
	Failing bool     `json:"failing"`
	Samples []Sample `json:"samples"`
}

// Sample is one of what has matched a signature.
type Sample struct {
	Time   string `json:"time"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// oneLine is a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// failed reports whether a goal did not hold in the step.
func (c *building) failed() bool {
	for _, v := range c.Goals {
		if v == slo.Breach {
			return true
		}
	}
	return false
}

// diagnosis is what the steps have shown, that of steps that failed first, each
// in order of time.
func (b *Builder) diagnosis() []Diagnosis {
	list := []Diagnosis{}
	at := make(map[string]int)
	for _, c := range b.steps {
		if !c.done || c.again {
			continue
		}
		for _, hit := range c.hits {
			s := hit.Signature
			i, known := at[s.Name]
			if !known {
				i = len(list)
				at[s.Name] = i
				list = append(list, Diagnosis{Signature: s.Name, Title: oneLine(s.Title), Explanation: oneLine(s.Explain), Remedy: oneLine(s.Remedy), Source: s.Source})
			}
			d := &list[i]
			if !known || c.failed() && !d.Failing {
				d.Step, d.First, d.Failing, d.Evidence, d.Samples = c.ID, b.wall(hit.First), c.failed(), hit.Text(), []Sample{}
				for _, sample := range hit.Samples {
					d.Samples = append(d.Samples, Sample{b.wall(sample.T), sample.Object, oneLine(sample.Text)})
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
func (b *Builder) peaks(c *building) map[string]float64 {
	figures := make(map[string]float64)
	if len(b.spec.Signatures) == 0 {
		return figures
	}
	for name, value := range c.figuresIn(c.start, c.end, b.mostPending(c, c.end)) {
		figures[name] = value
	}
	for source, points := range c.series.cpu {
		peak, ok := peakCPU(points)
		if !ok {
			continue
		}
		if source != SourceMachine {
			figures[diagnose.FigureCPU+source] = peak
		} else if cpus := c.usage[source].cpus; cpus > 0 {
			figures[diagnose.FigureMachine] = round(peak/float64(cpus), 1)
		}
	}
	for source, u := range c.Resources {
		if u.PeakRSSBytes > 0 {
			figures[diagnose.FigureMemory+source] = float64(u.PeakRSSBytes)
		}
	}
	for _, n := range b.place.services {
		figures[diagnose.FigureServices] = max(figures[diagnose.FigureServices], float64(n))
	}
	figures[diagnose.FigureThrottled] = float64(c.Retries429)
	return figures
}

// LogSample is the end of what a container of a failing object has written,
// secrets masked.
type LogSample struct {
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

func (b *Builder) addLog(e record.Event, r *record.Log) {
	c := b.current
	if c == nil {
		return
	}
	b.matcher.Log(e.T, r)
	if len(c.Logs) < maxLogs {
		lines := r.Lines[max(len(r.Lines)-maxLogLines, 0):]
		c.Logs = append(c.Logs, LogSample{Object: r.Object, Container: r.Container, Reason: r.Reason, Previous: r.Previous, Lines: append([]string{}, lines...), Masked: r.Masked, Error: r.Error})
	}
}
