package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
)

// publishedNote says what a published figure beside a found one is worth.
func publishedNote(r judge.Result) string {
	note := "Published figures are from other machines and do not affect the verdict."
	if timeScale(r) != 1 {
		note += fmt.Sprintf(" Times found here are shown as they would be: %g times as long as they were measured.", timeScale(r))
	}
	return note
}

// published writes published figures beside those of the run.
func (p *printer) published(r judge.Result) {
	if len(r.Published) == 0 {
		return
	}
	p.line("")
	rows := [][]string{{"published figure", "published", "found here", "source"}}
	for _, f := range r.Published {
		what := f.What
		if f.Arm != "" {
			what += " (" + f.Arm + ")"
		}
		rows = append(rows, []string{what, publishedFigure(f), foundFigure(f), f.Source})
	}
	p.columns("", "llll", rows)
	p.line("%s", publishedNote(r))
}

func publishedFigure(f judge.Published) string { return publishedNumber(f.Published, f.Unit) }

// foundFigure is what the run found, with its interval and its level.
func foundFigure(f judge.Published) string {
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
		if x >= 600 {
			return time.Duration(math.Round(x) * float64(time.Second)).String()
		}
		return Seconds(x)
	case "B":
		return byteCount(int64(x))
	}
	return strings.TrimSpace(Number(x) + " " + unit)
}
