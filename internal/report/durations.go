package report

import (
	"fmt"
	"text/tabwriter"

	"plimsoll.dev/plimsoll/internal/analyze"
)

// bucketText is a bucket as an interval.
func bucketText(b analyze.Bucket) string {
	if b.AtMost == nil {
		return "over " + Seconds(b.Above)
	}
	return Seconds(b.Above) + " to " + Seconds(*b.AtMost)
}

// durations writes how long the work of a node took by what it publishes, in
// the last step that tells of it.
func (p *printer) durations(r analyze.Result) {
	last := -1
	for i := range r.Steps {
		if len(r.Steps[i].Durations) > 0 {
			last = i
		}
	}
	if last < 0 || p.err != nil {
		return
	}
	p.line("")
	p.line("How long work took in step %d by what the node publishes (quantiles as the bucket they lie in):", r.Steps[last].ID)
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  \t\tn\tmean\tp50\tp99\n")
	for _, d := range r.Steps[last].Durations {
		mean := "-"
		if d.Mean != nil {
			mean = Seconds(*d.Mean)
		}
		fmt.Fprintf(w, "  %s\t%s\t%d\t%s\t%s\t%s\n", printable(d.Source), printable(d.Name), d.N, mean, bucketText(d.P50), bucketText(d.P99))
	}
	if p.err == nil {
		p.err = w.Flush()
	}
}
