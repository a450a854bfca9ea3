package signature

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Matcher looks for signatures in a step's records as they come. Its memory is bounded.
type Matcher struct {
	signatures     []Signature
	rules          []rule
	events, states map[string][]int32 // By the reason of the rule, "" for any
	requests, logs []int32
	// shapes remembers the rules that a text matched: of a million messages few differ in more than a name.
	shapes map[string][]int32
	// scheduler remembers the shapes of the scheduler's messages, which take longer and recur for many pods.
	scheduler map[string]string

	step int
	seen []tally // by rule, of the step
}

type rule struct {
	signature int
	part      part
	clause    Clause
	message   *regexp.Regexp // nil for any
	literal   string         // part of every match, "" if none is known: searching it is cheaper
}

type part int

const (
	partAll part = iota
	partAny
	partNone
)

type tally struct {
	count   int
	first   record.Micros
	samples []Match
}

// Match holds one record that matched.
type Match struct {
	T      record.Micros
	Object string // "" for the step
	Text   string
}

const (
	maxSamples = 3
	maxText    = 600  // bounds the bytes kept of a message
	maxShapes  = 8192 // bounds the texts whose matches a Matcher remembers
)

// NewMatcher returns a Matcher of valid signatures.
func NewMatcher(signatures []Signature) (*Matcher, error) {
	m := &Matcher{
		signatures: signatures, events: make(map[string][]int32), states: make(map[string][]int32), shapes: make(map[string][]int32), scheduler: make(map[string]string),
	}
	for i, s := range signatures {
		for p, clauses := range [...][]Clause{s.Detect.All, s.Detect.Any, s.Detect.None} {
			for _, c := range clauses {
				if err := m.add(rule{signature: i, part: part(p), clause: c}); err != nil {
					return nil, fmt.Errorf("signature %s: %w", s.Name, err)
				}
			}
		}
	}
	m.seen = make([]tally, len(m.rules))
	return m, nil
}

func (m *Matcher) add(r rule) error {
	n := int32(len(m.rules))
	index := func(by map[string][]int32, reasons Words) {
		if len(reasons) == 0 {
			by[""] = append(by[""], n)
		}
		for _, reason := range reasons {
			by[reason] = append(by[reason], n)
		}
	}
	text := ""
	switch c := r.clause; {
	case c.Event != nil:
		text = c.Event.Message
		index(m.events, c.Event.Reason)
	case c.State != nil:
		text = c.State.Message
		index(m.states, c.State.Reason)
	case c.Request != nil:
		text = c.Request.Error
		m.requests = append(m.requests, n)
	case c.Log != nil:
		text = c.Log.Message
		m.logs = append(m.logs, n)
	}
	if text != "" {
		var err error
		if r.message, err = regexp.Compile(text); err != nil {
			return err
		}
		r.literal = literalOf(text)
	}
	m.rules = append(m.rules, r)
	return nil
}

// literalOf returns a text that every match of an expression contains, "" if it finds none.
func literalOf(expression string) string {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	var longest func(*syntax.Regexp) string
	longest = func(e *syntax.Regexp) string {
		best := ""
		switch e.Op {
		case syntax.OpLiteral:
			if e.Flags&syntax.FoldCase == 0 {
				best = string(e.Rune)
			}
		case syntax.OpConcat:
			for _, sub := range e.Sub {
				if text := longest(sub); len(text) > len(best) {
					best = text
				}
			}
		case syntax.OpCapture, syntax.OpPlus:
			best = longest(e.Sub[0])
		}
		return best
	}
	return longest(tree.Simplify())
}

// Begin starts a step and forgets the one before.
func (m *Matcher) Begin(step int) {
	m.step = step
	clear(m.seen)
}

// Event reads an event of the cluster.
func (m *Matcher) Event(t record.Micros, e *record.TargetEvent) {
	for _, n := range m.matching("e", m.events, e.Reason, e.Message, e.Object) {
		p := m.rules[n].clause.Event
		if (p.About == "" || p.About == e.About) && (p.Source == "" || p.Source == e.Source) {
			m.hit(n, t, e.Object, ReasonText(e.Reason, e.Message))
		}
	}
}

// State reads an object's report of itself; was holds its reason before, which does not count again.
func (m *Matcher) State(t record.Micros, s *record.State, was string) {
	if s.Reason == "" || s.Reason == was {
		return
	}
	for _, n := range m.matching("s", m.states, s.Reason, s.Message, s.Object) {
		m.hit(n, t, s.Object, ReasonText(s.Reason, s.Message))
	}
}

// Request reads the outcome of a request.
func (m *Matcher) Request(r *record.Slot) {
	failed := r.Outcome == record.SlotFailed || r.Outcome == record.SlotUnknown
	if !failed && r.Throttled == 0 && r.Trouble == "" {
		return
	}
	hit := make([]int32, 0, 4)
	try := func(t record.Micros, code int, text string) {
		for _, n := range m.requests {
			p := m.rules[n].clause.Request
			if len(p.Code) > 0 && !slices.Contains(p.Code, code) || slices.Contains(hit, n) || !m.rules[n].holds(text) {
				continue
			}
			hit = append(hit, n)
			m.hit(n, t, r.Slot, httpText(code, text))
		}
	}
	switch {
	case r.Throttled > 0:
		// Trouble holds the text of the first 429, if the record has it at all.
		text := ""
		if r.TroubleCode == tooManyRequests {
			text = r.Trouble
		}
		try(max(r.ThrottledAt, r.Sent), tooManyRequests, Shape(text, r.Slot))
	case r.Trouble != "":
		try(r.Replied, r.TroubleCode, Shape(r.Trouble, r.Slot))
	}
	if failed {
		try(r.Replied, r.Code, Shape(r.Error, r.Slot))
	}
}

const tooManyRequests = 429

func httpText(code int, text string) string {
	switch {
	case code == 0, strings.HasPrefix(text, "HTTP "):
		return text
	case text == "":
		return "HTTP " + strconv.Itoa(code)
	}
	return "HTTP " + strconv.Itoa(code) + ": " + text
}

// Log reads the sampled lines of an object's log.
func (m *Matcher) Log(t record.Micros, l *record.Log) {
	for _, line := range l.Lines {
		for _, n := range m.logs {
			if m.rules[n].holds(line) {
				m.hit(n, t, l.Object, line)
			}
		}
	}
}

func (r *rule) holds(text string) bool {
	return r.message == nil || strings.Contains(text, r.literal) && r.message.MatchString(text)
}

// matching returns the rules of an index that a reason and a message match.
func (m *Matcher) matching(kind string, by map[string][]int32, reason, message, object string) []int32 {
	own, any := by[reason], by[""]
	if reason == "" {
		own = nil
	}
	if len(own) == 0 && len(any) == 0 {
		return nil
	}
	shape := m.shape(message, object)
	key := kind + reason + "\x00" + shape
	if list, ok := m.shapes[key]; ok {
		return list
	}
	var list []int32
	for _, rules := range [...][]int32{own, any} {
		for _, n := range rules {
			if m.rules[n].holds(shape) {
				list = append(list, n)
			}
		}
	}
	if len(m.shapes) >= maxShapes {
		clear(m.shapes)
	}
	m.shapes[key] = list
	return list
}

// shape is Shape, with a memory for the scheduler's messages.
func (m *Matcher) shape(message, object string) string {
	if !strings.HasPrefix(message, "0/") {
		return Shape(message, object)
	}
	if shape, ok := m.scheduler[message]; ok {
		return shape
	}
	// Scheduler's messages name no pod.
	shape := Shape(message, object)
	if len(m.scheduler) >= maxShapes {
		clear(m.scheduler)
	}
	if shape == Shape(message, "") {
		m.scheduler[message] = shape
	}
	return shape
}

func (m *Matcher) hit(n int32, t record.Micros, object, text string) {
	s := &m.seen[n]
	if s.count == 0 || t < s.first {
		s.first = t
	}
	s.count++
	if len(s.samples) < maxSamples {
		if len(text) > maxText {
			text = strings.ToValidUTF8(text[:maxText], "") + " ..."
		}
		s.samples = append(s.samples, Match{t, object, text})
	}
}

// ReasonText joins a reason and a message that adds to it.
func ReasonText(reason, message string) string {
	if message == "" || message == reason {
		return reason
	}
	return reason + ": " + message
}

// Hit holds a signature that a step shows.
type Hit struct {
	Signature *Signature
	Step      int
	Count     int // the largest number of matching events, states, answers or lines: one cause shows in several
	First     record.Micros
	Matches   []Match     // at most three, in order of time
	Figures   []FigureHit // the conditions that held
}

// FigureHit holds a figure whose condition held.
type FigureHit struct {
	Name  string
	Value float64
}

// End ends the step and returns the signatures that it shows, in the order in which they showed.
func (m *Matcher) End(at record.Micros, figures map[string]float64) []Hit {
	var hits []Hit
	type state struct {
		all, none  bool
		any, some  bool // a clause of Any holds, exists
		conditions []FigureHit
	}
	states := make([]state, len(m.signatures))
	for i := range states {
		states[i] = state{all: true, none: true}
	}
	for n, r := range m.rules {
		s := &states[r.signature]
		holds := m.seen[n].count >= max(r.clause.AtLeast, 1)
		if c := r.clause.Condition; c != nil {
			var list []FigureHit
			list, holds = c.holding(figures)
			if r.part != partNone {
				s.conditions = append(s.conditions, list...)
			}
		}
		switch r.part {
		case partAll:
			s.all = s.all && holds
		case partAny:
			s.some, s.any = true, s.any || holds
		case partNone:
			s.none = s.none && !holds
		}
	}
	for i, s := range states {
		if !s.all || !s.none || s.some && !s.any {
			continue
		}
		hit := Hit{Signature: &m.signatures[i], Step: m.step, First: -1, Figures: s.conditions}
		counts := make(map[string]int, 4)
		for n, r := range m.rules {
			seen := &m.seen[n]
			if r.signature != i || r.part == partNone || seen.count < max(r.clause.AtLeast, 1) || r.clause.Condition != nil {
				continue
			}
			counts[r.clause.kind()] += seen.count
			if hit.First < 0 || seen.first < hit.First {
				hit.First = seen.first
			}
			hit.Matches = append(hit.Matches, seen.samples...)
		}
		for _, n := range counts {
			hit.Count = max(hit.Count, n)
		}
		if hit.First < 0 {
			hit.First = at
		}
		slices.SortStableFunc(hit.Matches, func(a, b Match) int { return cmp.Compare(a.T, b.T) })
		// Two clauses can match the same record.
		hit.Matches = slices.CompactFunc(hit.Matches, func(a, b Match) bool { return a == b })
		hit.Matches = slices.Clip(hit.Matches[:min(len(hit.Matches), maxSamples)])
		hits = append(hits, hit)
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(a.First, b.First) })
	m.Begin(0)
	return hits
}

func (c *Clause) kind() string {
	switch {
	case c.Event != nil:
		return "event"
	case c.State != nil:
		return "state"
	case c.Request != nil:
		return "request"
	case c.Log != nil:
		return "log"
	}
	return "condition"
}

// holding returns the figures for which a condition holds, by name.
func (c *ConditionPattern) holding(figures map[string]float64) (list []FigureHit, holds bool) {
	for name, value := range figures {
		if ok, err := path.Match(c.Figure, name); err != nil || !ok && name != c.Figure {
			continue
		}
		if c.Above != nil && value > *c.Above || c.Below != nil && value < *c.Below {
			list = append(list, FigureHit{name, value})
		}
	}
	slices.SortFunc(list, func(a, b FigureHit) int { return strings.Compare(a.Name, b.Name) })
	return list, len(list) > 0
}

// Text returns the evidence of a hit in a phrase.
func (h *Hit) Text() string {
	var parts []string
	for _, f := range h.Figures {
		if strings.HasPrefix(f.Name, FigureCPU) && f.Name != FigureMachine {
			// Beside shares of all processors a percentage of one would mislead.
			parts = append(parts, fmt.Sprintf("%s was %.3g processors", f.Name, f.Value/100))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s was %.4g", f.Name, f.Value))
	}
	if h.Count > 0 {
		text := fmt.Sprintf("%d times", h.Count)
		if h.Count == 1 {
			text = "once"
		}
		if len(h.Matches) > 0 {
			s := h.Matches[0]
			text += ", first "
			if s.Object != "" {
				text += s.Object + ": "
			}
			text += OneLine(s.Text)
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if evidence := OneLine(h.Signature.Evidence); evidence != "" {
		text = evidence + ": " + text
	}
	return text
}

// try returns the hits of a step that consists of examples.
func (m *Matcher) try(examples []Example) []Hit {
	m.Begin(1)
	figures := make(map[string]float64)
	for _, e := range examples {
		for i := range max(e.Times, 1) {
			object := "example/object-" + strconv.Itoa(i)
			switch {
			case e.Figure != "":
				figures[e.Figure] = e.Value
			case e.Log != "":
				m.Log(1, &record.Log{Object: object, Lines: []string{e.Log}})
			case e.State:
				m.State(1, &record.State{Object: object, Reason: e.Reason, Message: e.Message}, "")
			case e.Error != "" || e.Code != 0:
				m.Request(&record.Slot{Slot: object, Code: e.Code, Error: e.Error, Outcome: record.SlotFailed})
			default:
				m.Event(1, &record.TargetEvent{Object: object, About: cmp.Or(e.About, "Pod"), Type: "Warning", Source: e.Source, Reason: e.Reason, Message: e.Message})
			}
		}
	}
	return m.End(1, figures)
}
