package compare

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// Trend is one figure over several experiments, with its changes.
type Trend struct {
	Plan        string       `json:"plan,omitempty"` // with its arm or cell, where a trend is of one plan
	Workload    string       `json:"workload"`
	Metric      string       `json:"metric"`          // or LoadLine with a goal
	Title       string       `json:"title,omitempty"` // for readers, "" for the metric's name
	Unit        string       `json:"unit"`
	LessIsWorse bool         `json:"lessIsWorse,omitempty"`
	Axis        string       `json:"axis"`
	Level       *float64     `json:"level"` // of the figure; null for load lines
	Points      []TrendPoint `json:"points"`
	// Changes of the level, at the error rate of the whole series; Why says why none were searched.
	Changes []TrendChange `json:"changes"`
	Alpha   float64       `json:"alpha"`
	// Mean of the points since the last change; its interval at 1-Alpha stays valid at every look.
	Mean *float64 `json:"mean"`
	Lo   *float64 `json:"lo"`
	Hi   *float64 `json:"hi"`
	Seed uint64   `json:"seed"`
	Why  string   `json:"why"`
}

// Called returns the metric's title, or its name.
func (t Trend) Called() string { return cmp.Or(t.Title, t.Metric) }

// LoadLine begins the metric of a trend of load lines, before the goal's name.
const LoadLine = "load line: "

// TrendPoint is one experiment in a trend.
type TrendPoint struct {
	Name    string `json:"name"`
	Start   string `json:"start"` // "" is unknown
	Program string `json:"program"`
	System  string `json:"kubernetes"` // "" is unknown
	// Value is the geometric mean of the runs' figures, and Low and High the least and the largest of
	// them; for a load line they are its bracket. Null where there is no figure, and Note says why.
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Runs  int      `json:"runs"`
	// Estimated says that Value is the estimate of a load line, and Low and High its 95% interval.
	Estimated bool     `json:"estimated,omitempty"`
	Note      string   `json:"note,omitempty"`
	Differs   []string `json:"differs"` // the differences from the point before, except for those that are only noted
}

// TrendChange is a change of a trend's level.
type TrendChange struct {
	At     int     `json:"at"`     // the first point of the new level, from 0
	Change float64 `json:"change"` // relative, + is more
	P      float64 `json:"p"`      // the share of all orders of the points around it with a division as good
}

func (t *Trend) setMean(values []float64, changed bool) {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	e := stats.AnyTime(logs, 1-t.Alpha)
	t.Mean, t.Lo, t.Hi = finite(math.Exp(e.Value)), finite(math.Exp(e.Lo)), finite(math.Exp(e.Hi))
	if t.Mean == nil || math.IsInf(e.Lo, 0) {
		t.Lo, t.Hi = nil, nil
		return
	}
	what := "mean"
	if changed {
		what = "mean since then"
	}
	t.Why += fmt.Sprintf("; %s %.4g, %g%% interval %.4g to %.4g, valid however often it is extended", what, *t.Mean, 100*(1-t.Alpha), *t.Lo, *t.Hi)
}

// FindChanges searches for changes of the figure's level. It skips points without a value.
func (t *Trend) FindChanges(alpha float64, seed uint64) {
	t.Alpha, t.Seed, t.Changes = alpha, seed, []TrendChange{}
	var values []float64
	var at []int
	for i, p := range t.Points {
		if p.Value != nil {
			values, at = append(values, *p.Value), append(at, i)
		}
	}
	found, err := stats.ChangePoints(values, alpha, seed)
	since := 0
	if n := len(found); n > 0 {
		since = found[n-1].At
	}
	defer t.setMean(values[since:], since > 0)
	switch {
	case errors.Is(err, stats.ErrFewForChange):
		t.Why = fmt.Sprintf("no search for change points: it needs %d experiments with the metric and has %d", stats.ChangeNeeds, len(values))
		return
	case err != nil:
		t.Why = "no search for change points: " + err.Error()
		return
	case len(found) == 0:
		t.Why = fmt.Sprintf("no change point found in %d values at an error rate of %g%%; smaller changes may remain unseen", len(values), 100*alpha)
		return
	}
	var told []string
	for _, c := range found {
		t.Changes = append(t.Changes, TrendChange{At: at[c.At], Change: c.Change, P: c.P})
		p := t.Points[at[c.At]]
		text := fmt.Sprintf("%s from %s on", percent(c.Change), p.Name)
		if len(p.Differs) > 0 {
			text += ", where " + strings.Join(p.Differs, ", ") + " changed too"
		}
		told = append(told, text)
	}
	t.Why = fmt.Sprintf("%s (error rate %g%% for the series, if the runs are independent)", strings.Join(told, "; "), 100*alpha)
}
