package ceiling

import (
	"fmt"
	"plimsoll.dev/plimsoll/internal/record"
	"strings"
)

// Outcome is what a run has found, as far as a prediction is concerned.
type Outcome struct {
	// Level is the highest that held and LowestFailing the lowest that did not;
	// nil is none.
	Level, LowestFailing *float64
	// Binding is what the lowest failing level broke on, "" where nothing
	// failed, and Message what the cluster said of it in its own words.
	Binding string
	Message string
	// Held is how many of the Made steps at the lowest failing level held all the
	// same.
	Held, Made int
}

// Agreement says how a prediction and an outcome fit together.
type Agreement string

// The agreements.
const (
	AsPredicted  Agreement = "asPredicted"  // the level that was predicted, for the reason that was predicted
	OtherReason  Agreement = "otherReason"  // the level that was predicted, for another reason
	Earlier      Agreement = "earlier"      // something else came first
	Beyond       Agreement = "beyond"       // it held where it was predicted to fail
	NotReached   Agreement = "notReached"   // the run did not come as far as the prediction
	NoneHeld     Agreement = "noneHeld"     // a level above the prediction failed and none held: whether it was met is unknown
	NotPredicted Agreement = "notPredicted" // no hard ceiling was known
)

// Prediction is what was expected before any load beside what was found.
type Prediction struct {
	Level   *float64 `json:"level"` // null where no hard ceiling is known
	Ceiling string   `json:"ceiling,omitempty"`
	What    string   `json:"what,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	// Found is the highest level that held, and FoundFailing the lowest that
	// did not; null is none.
	Found        *float64  `json:"found"`
	FoundFailing *float64  `json:"foundFailing"`
	FoundBinding string    `json:"foundBinding,omitempty"`
	Agreement    Agreement `json:"agreement"`
	// Text is all of it in a sentence.
	Text string `json:"text"`
}

// Predicted puts what a table predicted beside what a run has found. It is nil
// where the run has found nothing.
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
	said := fmt.Sprintf("Predicted %s %s by %s", number(predicted), t.Unit, b.What)
	if b.Reason != "" {
		said += fmt.Sprintf(" (%s)", b.Reason)
	}
	// A level within a step of the axis' arithmetic is the same one.
	const slack = 1e-6
	same := b.Sign != "" && (strings.Contains(o.Binding, b.Sign) || !ofScheduler(b.Sign) && strings.Contains(o.Message, b.Sign))
	bound := func(text string) string {
		if o.Binding == "" {
			return text
		}
		return text + ", bound by " + o.Binding
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
	p.Text = said + "; " + found + "."
	return p
}

// ofScheduler reports whether a sign is a reason of the scheduler's: its words
// name all reasons that any node has, and only the first is what binds.
func ofScheduler(sign string) bool {
	return sign == refusal(Pods) || strings.HasPrefix(sign, refusal(""))
}

func foundText(o Outcome, unit string) string {
	switch {
	case o.Level == nil && o.Held > 0:
		return fmt.Sprintf("found that %s %s failed in %d of %d steps", number(*o.LowestFailing), unit, o.Made-o.Held, o.Made)
	case o.Level == nil:
		return fmt.Sprintf("found that %s %s already fails", number(*o.LowestFailing), unit)
	case o.LowestFailing == nil:
		return fmt.Sprintf("found that %s %s holds", number(*o.Level), unit)
	}
	return fmt.Sprintf("found %s", number(*o.Level))
}

// number is a level as people write it.
func number(x float64) string { return fmt.Sprintf("%.10g", x) }
