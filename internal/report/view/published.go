package view

import (
	"fmt"
	"math"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// publishedNote says how far a published figure can be compared with the run's.
func publishedNote(r result.Result) string {
	note := "Published figures are from other machines and do not affect the verdict."
	if timeScale(r) != 1 {
		note += fmt.Sprintf(" Times found here are shown as they would be: %g times as long as they were measured.", timeScale(r))
	}
	return note
}

func publishedTable(r result.Result) Table {
	t := Table{"llll", [][]string{{"published figure", "published", "found here", "source"}}}
	for _, f := range r.Published {
		what := f.What
		if f.Arm != "" {
			what += " (" + f.Arm + ")"
		}
		t.add(what, publishedNumber(f.Published, f.Unit), foundFigure(f), f.Source)
	}
	return t
}

func published(r result.Result) (s Section) {
	if len(r.Published) == 0 {
		return s
	}
	s.linef("")
	s.table(0, publishedTable(r))
	s.linef("%s", publishedNote(r))
	return s
}

func foundFigure(f result.Published) string {
	if f.Found == nil {
		return "not measured"
	}
	text := publishedNumber(*f.Found, f.Unit)
	if f.Lo != nil && f.Hi != nil {
		text += fmt.Sprintf(" (%s to %s)", publishedNumber(*f.Lo, f.Unit), publishedNumber(*f.Hi, f.Unit))
	}
	if f.At != nil {
		text += " at " + words.Number(*f.At)
	}
	return text
}

func publishedNumber(x float64, unit string) string {
	switch {
	case unit == "%":
		return fmt.Sprintf("%+.1f%%", 100*x)
	case unit == "s" && x >= 600:
		return time.Duration(math.Round(x) * float64(time.Second)).String()
	}
	return words.InUnit(x, unit, words.Number)
}
