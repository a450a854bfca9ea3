package report

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"plimsoll.dev/plimsoll/internal/analyze"
)

// publishedNote says what a published figure beside a found one is worth.
const publishedNote = "Published figures were found on other machines and decide nothing here."

// published writes published figures beside those of the run.
func (p *printer) published(r analyze.Result) {
	if len(r.Published) == 0 || p.err != nil {
		return
	}
	p.line("")
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "published figure\tpublished\tfound here\tsource\n")
	for _, f := range r.Published {
		what := f.What
		if f.Arm != "" {
			what += " (" + f.Arm + ")"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(what), publishedFigure(f), foundFigure(f), printable(f.Source))
	}
	if p.err == nil {
		p.err = t.Flush()
	}
	p.line("%s", publishedNote)
}

func publishedFigure(f analyze.Published) string { return publishedNumber(f.Published, f.Unit) }

// foundFigure is what the run found, with its interval and its level.
func foundFigure(f analyze.Published) string {
	if f.Found == nil {
		return "not measured"
	}
	text := publishedNumber(*f.Found, f.Unit)
	if f.Lo != nil && f.Hi != nil {
		text += fmt.Sprintf(" (%s to %s)", publishedNumber(*f.Lo, f.Unit), publishedNumber(*f.Hi, f.Unit))
	}
	if f.At != nil {
		text += " at " + Number(*f.At)
	}
	return text
}

func publishedNumber(x float64, unit string) string {
	switch unit {
	case "%":
		return fmt.Sprintf("%+.1f%%", 100*x)
	case "s":
		return Seconds(x)
	case "B":
		return byteCount(int64(x))
	}
	return strings.TrimSpace(Number(x) + " " + unit)
}
