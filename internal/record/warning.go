package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Warning is something that a result's reader must know; the same one of many steps or places is one.
type Warning struct {
	Kind    WarningKind `json:"kind"`
	Text    string      `json:"text"`              // a sentence without the steps and places
	Count   int         `json:"count"`             // how often it came up, at least 1
	Steps   []int       `json:"steps,omitempty"`   // in order; none for the whole run
	Places  []string    `json:"places,omitempty"`  // where it came up, such as namespaces or metrics: the first maxPlaces
	Seconds float64     `json:"seconds,omitempty"` // the longest time that it lasted; 0 if that says nothing
}

// maxPlaces and maxSteps bound what a warning keeps of places and steps.
const (
	maxPlaces = 100 // that a warning keeps
	maxSteps  = 1000
)

// WarningKind is the kind of a warning, by which programs know it.
type WarningKind string

// The kinds of warnings. Those of old records without kinds have WarningNote.
const (
	WarningNote        WarningKind = "note"
	WarningCut         WarningKind = "cut"           // the record lacks its end or another part
	WarningResumed     WarningKind = "resumed"       // the run went on after a cut
	WarningWatch       WarningKind = "watch"         // news did not come for a while
	WarningCPU         WarningKind = "cpu"           // others used this machine
	WarningStandstill  WarningKind = "standstill"    // the API answered nothing for seconds
	WarningFewObjects  WarningKind = "fewObjects"    // a quantile of too few objects
	WarningBefore      WarningKind = "beforeLoad"    // a finding before any load
	WarningNotNormal   WarningKind = "notNormal"     // the target was not back to normal
	WarningNotKnown    WarningKind = "notKnown"      // something could not be found out
	WarningFields      WarningKind = "fields"        // of templates, which the API ignores
	WarningConfig      WarningKind = "configuration" // how a setting of a configuration is treated
	WarningCleanup     WarningKind = "cleanup"       // objects of the run were not removed
	WarningSetting     WarningKind = "setting"       // of the target, which was changed for the run
	WarningBeside      WarningKind = "beside"        // another run loaded the target, or may have
	WarningSignatures  WarningKind = "signatures"    // they cannot be used
	WarningShape       WarningKind = "shape"         // one percentile misleads
	WarningComparable  WarningKind = "comparable"    // of the basis on which two records were compared
	WarningSending     WarningKind = "sending"       // a load that is meant for one moment was sent over some time
	WarningLimit       WarningKind = "limit"         // more at once than the target's own limit lets
	WarningNotFinite   WarningKind = "notFinite"     // figures that could not be written
	WarningChosenAfter WarningKind = "chosenAfter"   // the deciding metric or margin was chosen after the runs
)

func (w Warning) String() string {
	const shown = 5
	text := w.Text
	if len(w.Steps) > 0 {
		text = StepsText(w.Steps) + ": " + text
	}
	var more []string
	if n := len(w.Places); n > 0 {
		places := strings.Join(w.Places[:min(n, shown)], ", ")
		if all := max(n, w.Count); n > shown {
			places += fmt.Sprintf(" and %d more", all-shown)
		}
		more = append(more, places)
	} else if n := max(len(w.Steps), 1); w.Count > n {
		more = append(more, strconv.Itoa(w.Count)+" times")
	}
	if w.Seconds > 0 {
		most := ""
		if w.Count > 1 {
			most = "at most "
		}
		more = append(more, most+time.Duration(w.Seconds*float64(time.Second)).Round(time.Millisecond).String())
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// StepsText names steps, at least one: successive ones by the first and the last.
func StepsText(steps []int) string {
	const shown = 6
	var parts []string
	for i := 0; i < len(steps); {
		last := i
		for last+1 < len(steps) && steps[last+1] == steps[last]+1 {
			last++
		}
		switch {
		case len(parts) == shown:
			return fmt.Sprintf("steps %s and %d more", strings.Join(parts, ", "), len(steps)-i)
		case last-i < 2:
			last = i
			parts = append(parts, strconv.Itoa(steps[i]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", steps[i], steps[last]))
		}
		i = last + 1
	}
	if len(steps) == 1 {
		return "step " + parts[0]
	}
	return "steps " + strings.Join(parts, ", ")
}

// UnmarshalJSON also reads a text alone, as in old records.
func (w *Warning) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*w = Warning{Kind: WarningNote, Count: 1}
		return json.Unmarshal(data, &w.Text)
	}
	type alike Warning
	return json.Unmarshal(data, (*alike)(w))
}

// Warnings holds warnings in the order in which they first came up.
type Warnings []Warning

// The bounds on different warnings: nobody reads more, and each is compared with all.
const (
	maxOfKind   = 100
	maxWarnings = 1000
	furtherText = "further warnings of this kind, which are only counted"
)

// Add adds a warning, or its count to an equal one; beyond a bound one warning counts the others.
func (l *Warnings) Add(w Warning) {
	w.Count = max(w.Count, 1)
	i, alike := l.find(w)
	if i < 0 && (alike >= maxOfKind || len(*l) >= maxWarnings) && w.Text != furtherText {
		if len(*l) >= maxWarnings {
			w.Kind = WarningNote
		}
		l.Add(Warning{Kind: w.Kind, Text: furtherText, Count: w.Count})
		return
	}
	if i < 0 {
		w.Steps, w.Places = slices.Clone(w.Steps), slices.Clone(w.Places)
		*l = append(*l, w)
		return
	}
	x := &(*l)[i]
	for _, step := range w.Steps {
		if at, found := slices.BinarySearch(x.Steps, step); !found && len(x.Steps) < maxSteps {
			x.Steps = slices.Insert(x.Steps, at, step)
		}
	}
	for _, place := range w.Places {
		if len(x.Places) < maxPlaces && !slices.Contains(x.Places, place) {
			x.Places = append(x.Places, place)
		}
	}
	x.Count += w.Count
	x.Seconds = max(x.Seconds, w.Seconds)
}

// find returns the index of a warning of that kind and text, or -1, and how many there are of its kind.
func (l *Warnings) find(w Warning) (at, alike int) {
	for i := range *l {
		x := &(*l)[i]
		if x.Kind != w.Kind {
			continue
		}
		if alike++; x.Text == w.Text {
			return i, alike
		}
	}
	return -1, alike
}

// Addf adds a warning of the whole run.
func (l *Warnings) Addf(kind WarningKind, format string, args ...any) {
	l.Add(Warning{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// Lines returns the warnings in words, one per line.
func (l Warnings) Lines() []string {
	lines := make([]string, len(l))
	for i, w := range l {
		lines[i] = w.String()
	}
	return lines
}
