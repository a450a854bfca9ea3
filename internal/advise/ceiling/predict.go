package ceiling

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Outcome holds what a run has found, for comparison with a prediction.
type Outcome struct {
	// Level is the highest that held, LowestFailing the lowest that failed; nil is none.
	Level, LowestFailing *float64
	Binding              string // what the lowest failing level broke on, "" if nothing failed
	Message              string // the cluster's own words about it
	Held, Made           int    // Held of the Made steps at the lowest failing level held nevertheless
}

// Agreement says how a prediction and an outcome fit together.
type Agreement string

// The agreements.
const (
	AsPredicted  Agreement = "asPredicted"  // the predicted level and reason
	OtherReason  Agreement = "otherReason"  // the predicted level, another reason
	Earlier      Agreement = "earlier"      // something else came first
	Beyond       Agreement = "beyond"       // it held beyond the predicted level
	NotReached   Agreement = "notReached"   // the run did not reach the predicted level
	NoneHeld     Agreement = "noneHeld"     // a level above the prediction failed and none held: the outcome is unknown
	NotPredicted Agreement = "notPredicted" // no hard ceiling was known
)

// Prediction compares what was expected before any load with what was found.
type Prediction struct {
	Level   *float64 `json:"level"` // null without a hard ceiling
	Ceiling string   `json:"ceiling,omitempty"`
	What    string   `json:"what,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Found is the highest level that held, FoundFailing the lowest that failed; null is none.
	Found        *float64  `json:"found"`
	FoundFailing *float64  `json:"foundFailing"`
	FoundBinding string    `json:"foundBinding,omitempty"`
	Agreement    Agreement `json:"agreement"`
	Text         string    `json:"text"` // all of this in a sentence
}

// Predicted compares a table's prediction with a run's outcome. It returns nil if the run has found nothing.
func Predicted(t *record.CeilingTable, o Outcome) *Prediction {
	if o.Level == nil && o.LowestFailing == nil {
		return nil
	}
	p := &Prediction{Found: o.Level, FoundFailing: o.LowestFailing, FoundBinding: o.Binding, Agreement: NotPredicted}
	b := t.Binding()
	found := foundText(o, t.Unit)
	if b == nil {
		p.Text = "Nothing was predicted: no hard ceiling is known; " + found + "."
		return p
	}
	p.Level, p.Ceiling, p.What, p.Reason = b.Level, b.Name, b.What, b.Reason
	predicted := *b.Level
	said := fmt.Sprintf("Predicted %s %s by %s", levelText(predicted), t.Unit, b.What)
	if b.Reason != "" {
		said += fmt.Sprintf(" (%s)", b.Reason)
	}
	// Levels this close are the same, up to the axis' arithmetic.
	const slack = 1e-6
	// Of the scheduler's reasons only the first one binds.
	ofScheduler := b.Sign == refusal(Pods) || strings.HasPrefix(b.Sign, refusal(""))
	same := b.Sign != "" && (strings.Contains(o.Binding, b.Sign) || !ofScheduler && strings.Contains(o.Message, b.Sign))
	bound := func(text string) string {
		if o.Binding == "" {
			return text
		}
		return text + ", bound by " + o.Binding
	}
	between := o.Level != nil && o.LowestFailing != nil && *o.Level < predicted-slack
	if between {
		found = fmt.Sprintf("found that %s holds and %s fails", levelText(*o.Level), levelText(*o.LowestFailing))
	}
	switch {
	case o.LowestFailing != nil && predicted >= *o.LowestFailing-slack:
		p.Agreement, found = Earlier, bound(found)+": something else came first"
	case o.Level != nil && *o.Level > predicted+slack:
		p.Agreement, found = Beyond, bound(found)+": more than was predicted"
	case o.LowestFailing == nil:
		p.Agreement, found = NotReached, found+", and nothing above that was tried"
	case o.Level == nil:
		if p.Agreement, found = NoneHeld, bound(found); o.Held == 0 {
			found += ", and no level held"
		}
	case same:
		p.Agreement, found = AsPredicted, found+", bound by the same"
	default:
		p.Agreement, found = OtherReason, bound(found)
	}
	if between && (p.Agreement == AsPredicted || p.Agreement == OtherReason) {
		found += "; no level between them was tried"
	}
	p.Text = said + "; " + found + "."
	return p
}

func foundText(o Outcome, unit string) string {
	switch {
	case o.Level == nil && o.Held > 0:
		return fmt.Sprintf("found that %s %s failed in %d of %d steps", levelText(*o.LowestFailing), unit, o.Made-o.Held, o.Made)
	case o.Level == nil:
		return fmt.Sprintf("found that %s %s already fails", levelText(*o.LowestFailing), unit)
	case o.LowestFailing == nil:
		return fmt.Sprintf("found that %s %s holds", levelText(*o.Level), unit)
	}
	return fmt.Sprintf("found %s", levelText(*o.Level))
}

func levelText(x float64) string { return number.Text(x, 10) }
