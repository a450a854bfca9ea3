package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Published holds a figure that somebody published, for reports to show beside the run's. It decides nothing.
type Published struct {
	What string `yaml:"what"`
	// Metric names the run's figure beside it, such as "Ready max", or LineMetric; "" for none.
	Metric string `yaml:"metric,omitempty"`
	Arm    string `yaml:"arm,omitempty"` // names its arm; "" outside of comparisons
	// Value holds a number or a time such as "183s"; or Change a percentage against the baseline.
	Value  string `yaml:"value,omitempty"`
	Change string `yaml:"change,omitempty"`
	Source string `yaml:"source"`
}

// LineMetric names the load line among the metrics of published figures.
const LineMetric = "load line"

// Number returns the published figure: times in seconds, changes as a share.
func (p Published) Number() (float64, error) {
	text := strings.TrimSpace(p.Value)
	if p.Change != "" {
		percent, ok := strings.CutSuffix(strings.TrimSpace(p.Change), "%")
		x, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if !ok || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return 0, fmt.Errorf("%q is not a change: want a percentage, such as -12.6%%", p.Change)
		}
		return x / 100, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds(), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a figure: want a number, or a time such as 183s", p.Value)
	}
	return x, nil
}

func (v *validator) published() {
	var arms []string
	for _, a := range v.plan.Arms {
		arms = append(arms, a.Name)
	}
	for i, p := range v.plan.Published {
		at := strictyaml.Index("published", i)
		switch {
		case p.What == "":
			v.Add(at, "", "the published figure does not say what it is of")
		case p.Source == "":
			v.Add(at, "", "the published figure %q has no source", p.What)
		case (p.Value == "") == (p.Change == ""):
			v.Add(at, "give one of value and change", "the published figure %q needs one of value and change", p.What)
		case p.Arm != "" && !slices.Contains(arms, p.Arm):
			v.Add(at+".arm", nearest.OneOf(p.Arm, arms), "there is no arm %q", p.Arm)
		case p.Arm == "" && p.Metric != "" && len(arms) > 0:
			v.Add(at, "add arm: NAME", "the published figure %q does not say which arm it is of", p.What)
		case p.Change != "" && (p.Arm == "" || p.Arm == arms[0]):
			v.Add(at+".arm", "name an arm that is not the first", "a change is one of an arm against the baseline")
		default:
			if _, err := p.Number(); err != nil {
				v.Add(at, "", "%v", err)
			}
		}
	}
}
