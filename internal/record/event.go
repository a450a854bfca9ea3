package record

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// HistoryVersion is the history's format. A reader accepts older ones as well; see docs/history.md.
const HistoryVersion = 1

// Micros is a time since the start of the run on the monotonic clock, or a span, in microseconds;
// environment.json holds the wall clock at 0.
type Micros int64

// Duration returns m as a time.Duration.
func (m Micros) Duration() time.Duration { return time.Duration(m) * time.Microsecond }

// Seconds returns m in seconds.
func (m Micros) Seconds() float64 { return float64(m) / 1e6 }

// MicrosOf returns the whole microseconds in d.
func MicrosOf(d time.Duration) Micros { return Micros(d / time.Microsecond) }

// Clock measures the time since the start of a run.
type Clock struct {
	start  time.Time
	now    func() time.Time
	latest atomic.Int64 // about the latest time that was returned, in nanoseconds
	ahead  atomic.Int64 // of now, which was set back, in nanoseconds
}

// StartClock starts a run's clock at the present of now, which is time.Now outside of tests.
func StartClock(now func() time.Time) *Clock { return &Clock{start: now(), now: now} }

// Now returns the time since the start of the run, which goes on where now is set back.
func (c *Clock) Now() Micros {
	const (
		grain = 100 * time.Millisecond // the latest time is kept as often
		step  = time.Second            // a clock that goes back by more was set back
	)
	d := int64(c.now().Sub(c.start)) + c.ahead.Load()
	switch latest := c.latest.Load(); {
	case d > latest+int64(grain):
		c.latest.CompareAndSwap(latest, d) // unless another caller was faster
	case d < latest-int64(step):
		c.ahead.Add(latest - d)
		d = latest
	}
	return MicrosOf(time.Duration(d))
}

// Start returns the wall clock at 0.
func (c *Clock) Start() time.Time { return c.start }

// EventKind names the type of an event's body.
type EventKind string

// The kinds of events. A reader skips kinds that it does not know.
const (
	KindRun       EventKind = "run"
	KindStep      EventKind = "step"
	KindSlot      EventKind = "slot"
	KindObject    EventKind = "object"
	KindState     EventKind = "state"
	KindEvent     EventKind = "event"
	KindSample    EventKind = "sample"
	KindCanary    EventKind = "canary"
	KindCorrected EventKind = "corrected"
	KindGuard     EventKind = "guard"
	KindFault     EventKind = "fault"
	KindNote      EventKind = "note"
	KindLog       EventKind = "log"
	KindDurations EventKind = "durations" // a histogram that a program of the target published
	KindWindow    EventKind = "window"    // a stretch of a stream of requests
	KindRequest   EventKind = "request"   // one request of a stream, out of many
	KindTrial     EventKind = "trial"     // a stream's answers with another number of requests in flight
	KindPlace     EventKind = "place"     // places that a level is an average over
	KindFile      EventKind = "file"      // a file that the run wrote beside its history
	KindDamaged   EventKind = "damaged"   // a part of a history that cannot be read; it is never written
	KindRelease   EventKind = "release"   // objects that the run has removed before its end
	KindCleanup   EventKind = "cleanup"   // the removal of the run's objects
	KindActor     EventKind = "actor"     // an actor that does nothing although objects wait for it
	KindAnswer    EventKind = "answer"    // the answer to an objective on a query
)

// Event is one line of the history: what happened (Body), when, and in which step. Steps count from 1; 0
// is outside of any.
type Event struct {
	T    Micros
	Step int
	Body Body
}

// Body is a pointer to the type of this package that is written under the kind.
type Body interface{ Kind() EventKind }

// Sink takes events as they happen. It is safe for concurrent use and blocks only to copy the event.
type Sink interface{ Append(Event) }

// Phase is a moment in the life of a run or of a step.
type Phase string

// BudgetSpent says in a run's Message that its time was over.
const BudgetSpent = "the budget is spent"

// Moments of a run (start, resume, end) and of a step (all but resume).
const (
	PhaseStart   Phase = "start"   // the target is about to be changed
	PhaseLoaded  Phase = "loaded"  // the last request was answered
	PhaseReached Phase = "reached" // every object was ready, or the warm-up is over: the hold begins
	PhaseEnd     Phase = "end"     // nothing more is followed
	PhaseReset   Phase = "reset"   // the target was emptied
	PhaseResume  Phase = "resume"  // a run that was cut goes on, with a target that holds nothing of it
)

// Ending says why a step ended, which bears on its verdict.
type Ending string

// The endings of a step.
const (
	EndHeld        Ending = "held"        // the level was reached and held for the whole hold
	EndTimeout     Ending = "timeout"     // not every object was ready within the step timeout
	EndStalled     Ending = "stalled"     // all that remained were unschedulable and nothing moved, or their actor did nothing
	EndGuard       Ending = "guard"       // a guard stopped the load
	EndUnfinished  Ending = "unfinished"  // an action on the target during the hold had not ended with it
	EndVoid        Ending = "void"        // the load was not the one that was asked for
	EndInterrupted Ending = "interrupted" // the user, the budget or an error of ours cut it short
)

// RunEvent marks the start, the end and the resumption of a run.
type RunEvent struct {
	Phase   Phase  `json:"phase"`
	Version int    `json:"version,omitempty"` // of the history's format, at the start and where it goes on
	Framed  bool   `json:"framed,omitempty"`  // from here on each step has frames of its own in the file
	ID      string `json:"id,omitempty"`      // in the names of all that is made in the target from here on
	Plan    string `json:"plan,omitempty"`    // the fingerprint of the plan's conditions, "" is unknown
	Command string `json:"command,omitempty"` // that resumed the run
	Paused  bool   `json:"paused,omitempty"`  // at the end: the run goes on after other cells of its grid
	Signal  int    `json:"signal,omitempty"`  // at the end: the exit code of the signal that cut the run; 0 for none
	Message string `json:"message,omitempty"` // why it ended, or what is wrong with the times from here on
}

// Purpose says why a step is made.
type Purpose string

// The purposes of a step.
const (
	PurposeRamp    Purpose = "ramp"    // raise until something fails
	PurposeBracket Purpose = "bracket" // narrow the interval that holds the line
	PurposeConfirm Purpose = "confirm" // the candidate once more, whole, from empty
	PurposeUpper   Purpose = "upper"   // the lowest failing level once more, whole, from empty
	PurposeSweep   Purpose = "sweep"   // a level that the user asked for
	PurposeAB      Purpose = "ab"      // one replicate of an arm
)

// Confirms reports whether a step of the purpose counts for or against the confirmation of its level.
func (p Purpose) Confirms() bool { return p == PurposeConfirm || p == PurposeUpper }

// StepPlan describes a step to be made. Designs ask for it, and events and results have it.
type StepPlan struct {
	Level     float64 `json:"level"`
	Arm       string  `json:"arm,omitempty"` // of a comparison, and which of its runs
	Replicate int     `json:"replicate,omitempty"`
	Purpose   Purpose `json:"purpose"`
	Why       string  `json:"why"`       // why this level was chosen
	FromEmpty bool    `json:"fromEmpty"` // the target was emptied before it
	FullHold  bool    `json:"fullHold"`  // the hold was the whole one that the plan names
}

// StepEvent marks a moment of a level's step. The start has the plan and its settings, the end has Ending,
// Message, Least and Most.
type StepEvent struct {
	Phase Phase `json:"phase"`
	StepPlan
	Reached float64 `json:"levelReached,omitempty"` // the level rounded down to whole iterations
	Timeout Micros  `json:"timeout,omitempty"`      // each object is followed for so long from its creation, in microseconds
	Hold    Micros  `json:"hold,omitempty"`         // the level is held for so long once reached, in microseconds
	// Open says that requests came by a schedule, Level per second, without waiting for answers. The
	// requests of the hold, from PhaseReached to PhaseLoaded, are judged; those before are the warm-up.
	Open    bool    `json:"open,omitempty"`
	Pace    string  `json:"pace,omitempty"` // creations per second, or "max"
	Units   int     `json:"units,omitempty"`
	Places  int     `json:"places,omitempty"` // nodes that the level is an average over, at PhaseStart and PhaseEnd
	Others  int     `json:"others,omitempty"` // objects there that are not of the run, at PhaseStart and PhaseEnd
	Least   float64 `json:"least,omitempty"`  // the least loaded place's own level
	Most    float64 `json:"most,omitempty"`   // the most loaded place's own level
	Ending  Ending  `json:"ending,omitempty"`
	Message string  `json:"message,omitempty"` // explains an ending that is not EndHeld
}

// SlotOutcome says what became of the request of a slot.
type SlotOutcome string

// The outcomes of a request.
const (
	SlotCreated SlotOutcome = "created"
	SlotFailed  SlotOutcome = "failed"  // refused, or given up after retries
	SlotDropped SlotOutcome = "dropped" // never sent: past the drop bound
	SlotUnknown SlotOutcome = "unknown" // sent, but the answer never came and could not be settled
)

// Slot is one request and its answer. Its name is unique since the target was last empty.
type Slot struct {
	Slot        string `json:"slot"`
	Component   string `json:"component,omitempty"`
	Resource    string `json:"resource,omitempty"` // the kind of the requested object, if Units is 0
	Units       int    `json:"units"`              // number of the requested objects with milestones, such as replicas; 0 for one not followed
	Grouped     bool   `json:"grouped,omitempty"`  // a controller names the objects; else an object has the slot's name
	Shared      bool   `json:"shared,omitempty"`   // another slot has the same request, and counts it
	Iteration   int    `json:"iteration,omitempty"`
	Replica     int    `json:"replica,omitempty"` // of its iteration, from 2: the first is left out
	Intended    Micros `json:"intended"`          // the time of the schedule
	Waited      Micros `json:"waited,omitempty"`  // how long after Intended it had no place in flight; the rest is the program's delay
	AtOnce      bool   `json:"atOnce,omitempty"`  // Intended is the same moment for several requests
	Sent        Micros `json:"sent"`              // when the first attempt was sent
	Replied     Micros `json:"replied"`           // when the last answer came
	Code        int    `json:"code,omitempty"`
	Retries     int    `json:"retries,omitempty"`     // attempts after the first
	Throttled   int    `json:"throttled,omitempty"`   // answers that were 429
	ThrottledAt Micros `json:"throttledAt,omitempty"` // when the first of these came, 0 for none
	// Trouble says why there was more than one attempt: the text of the first answer of 429, or else of
	// the first that made another attempt worth while. TroubleCode is its code, 0 without an answer.
	Trouble     string      `json:"trouble,omitempty"`
	TroubleCode int         `json:"troubleCode,omitempty"`
	Outcome     SlotOutcome `json:"outcome"`
	Error       string      `json:"error,omitempty"`
	Delay       Micros      `json:"delay,omitempty"` // a start latency that was planted on the object; 0 for none
	Before      *Slot       `json:"-"`               // request for the same thing right before this one, itself on record, or nil
}

// Object is a milestone that an object reached, at the time its news was received.
type Object struct {
	Object    string   `json:"object"`         // namespace/name
	Slot      string   `json:"slot,omitempty"` // the slot it fills, when its name is another
	Milestone string   `json:"milestone"`
	Component string   `json:"component,omitempty"`
	Place     string   `json:"node,omitempty"`
	Labels    []string `json:"labels,omitempty"` // object's values of the grouping labels, with the first milestone; "" for none
	Stamp     int64    `json:"stamp,omitempty"`  // server's own time of the milestone in whole seconds since 1970, 0 for none
	Late      bool     `json:"late,omitempty"`   // this is news from a list after a gap in the watch: it was reached at some time before T
}

// State is a change in what keeps an object from a milestone; an empty Reason says that it is over.
type State struct {
	Object   string `json:"object"`
	Slot     string `json:"slot,omitempty"`
	Reason   string `json:"reason"`
	Message  string `json:"message,omitempty"`
	Place    string `json:"node,omitempty"`
	Lost     string `json:"lost,omitempty"`     // the milestone that the object no longer has
	Regained string `json:"regained,omitempty"` // a milestone that it has again
	Failed   bool   `json:"failed,omitempty"`   // it will never be ready
	Class    string `json:"class,omitempty"`    // of the trouble, where its reason does not say it
}

// TargetEvent is an event that a component of the target published.
type TargetEvent struct {
	Object  string `json:"object"`        // namespace/name of what it is about, as Object has it
	About   string `json:"about"`         // its kind
	For     string `json:"for,omitempty"` // the slot whose objects it makes, "" for none
	Type    string `json:"type"`          // Warning, or Normal when asked for
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	Source  string `json:"source,omitempty"`
	Count   int    `json:"count,omitempty"`
}

// Reading is one reading of a resource series.
type Reading struct {
	Source string             `json:"source"` // a process or a place
	Values map[string]float64 `json:"values"` // cpuSeconds (since its start), rssBytes, ...
}

// ComponentHistogram is a program's histogram since its start: Counts[i] took Bounds[i] seconds at most.
type ComponentHistogram struct {
	Source string    `json:"source"` // the program
	Name   string    `json:"name"`   // what took so long
	Count  uint64    `json:"count"`
	Sum    float64   `json:"sum"` // seconds
	Bounds []float64 `json:"bounds"`
	Counts []uint64  `json:"counts"`
}

// Names of histograms of garbage collection: its pauses, and the CPU time of each cycle as a sum.
const (
	CollectionPauses = "pause of garbage collection" // the histogram of the pauses of a program's garbage collection
	CollectionCPU    = "CPU of a garbage collection" // the CPU time of each cycle of garbage collection; only the sum is known
	ClientWaits      = "wait for its client's limit" // the waits of requests for their client's own limit; only the sum is known
)

// SourceMachine is the source of readings of this program's machine where the target runs there too.
const SourceMachine = "machine"

// SourceRequests is the source of histograms of API requests, each named by a verb and a resource.
const SourceRequests = "API requests"

// Canary is one measurement of watch lag: a change and the receipt of its news. Seen is 0 without.
type Canary struct {
	Sent    Micros `json:"sent"`
	Replied Micros `json:"replied"`
	Seen    Micros `json:"seen"`
	Of      string `json:"of,omitempty"`     // the watch with this lag, if it is not that of the canary's own pod
	Beside  bool   `json:"beside,omitempty"` // nothing is judged by its news
}

// Corrected says that a list showed changes that a watch had missed: each is on record as late.
type Corrected struct {
	Watch  string `json:"watch"`
	Missed int    `json:"missed"`
}

// Guard is a guard that stopped the load.
type Guard struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Bound   float64 `json:"bound"`
	Message string  `json:"message,omitempty"`
}

// Answer is the answer to an objective on a query at the end of a step's hold, by the record until then.
type Answer struct {
	Objective string `json:"objective"`
	Series    int    `json:"series"`           // that came back
	Broken    int    `json:"broken,omitempty"` // of these, outside of the objective
	NaN       int    `json:"nan,omitempty"`    // of these, not a number
	// Of has the labels of the series that broke first, or else of the one nearest to the bound, "" for
	// one without. Value is its value, "" without one; it is a text because it may be infinite.
	Of    string `json:"of,omitempty"`
	Value string `json:"value,omitempty"`
	Since Micros `json:"since,omitempty"` // when that series broke, 0 if it did not
	Why   string `json:"why,omitempty"`   // says why it is unknown whether the objective holds, else ""
}

// Trial counts answers with a number of requests in flight, after a hold in which requests waited for a
// place among those: one trial with fewer places, then one with as many.
type Trial struct {
	Places   int     `json:"places"` // requests under way
	Seconds  float64 `json:"seconds"`
	Answered int     `json:"answered"`         // correctly, in these seconds
	Failed   int     `json:"failed,omitempty"` // otherwise
}

// Request is a request of a stream on record by itself: one of the slowest, or one that failed.
type Request struct {
	Component string `json:"component,omitempty"`
	Place     string `json:"place,omitempty"` // its receiver, such as a host
	Intended  Micros `json:"intended"`        // the time of the schedule; closed loop: when it was sent
	Sent      Micros `json:"sent"`            // when it was begun, 0 for never
	Ended     Micros `json:"ended"`           // when its answer was whole, or it failed
	Status    int    `json:"status,omitempty"`
	Failed    string `json:"failed,omitempty"` // the kind of failure, "" for none
	Retried   bool   `json:"retried,omitempty"`
	BytesIn   int64  `json:"bytesIn,omitempty"`
	BytesOut  int64  `json:"bytesOut,omitempty"`
}

// Fault is something that went wrong with observing or loading, such as a watch that was cut.
type Fault struct {
	What    string `json:"what"`
	From    Micros `json:"from,omitempty"`   // when news stopped
	To      Micros `json:"to,omitempty"`     // when news came again; 0 while it has not
	Healed  bool   `json:"healed"`           // nothing was lost, only late
	Beside  bool   `json:"beside,omitempty"` // nothing is judged by that news
	Late    bool   `json:"late,omitempty"`   // news came, or may have, long after it was published
	Message string `json:"message,omitempty"`
}

// Actor is an actor that does nothing though objects wait. It is recorded again until that is over.
type Actor struct {
	Actor   string `json:"actor"`          // as Milestone.Owner names it
	Says    string `json:"says"`           // "nothing came from the scheduler"
	Since   Micros `json:"since"`          // when it last did something, or when the first wait for it began if that was later
	Over    bool   `json:"over,omitempty"` // it acts again, or nothing waits for it any more
	Waiting int    `json:"waiting"`        // how many of Of wait for it
	Of      Noun   `json:"of"`
	Message string `json:"message,omitempty"` // the evidence
}

// Sentence describes it as of a time.
func (a *Actor) Sentence(at Micros) string {
	wait := "wait"
	switch {
	case a.Over:
		wait = "waited"
	case a.Waiting == 1:
		wait = "waits"
	}
	return fmt.Sprintf("%s for %.0f s; %s %s for it", a.Says, (at - a.Since).Seconds(), a.Of.Count(a.Waiting), wait)
}

// Note is a warning of the result.
type Note struct {
	Text    string      `json:"text"`
	Warning WarningKind `json:"warning,omitempty"` // WarningNote if ""
	Place   string      `json:"place,omitempty"`   // where it came up
	About   int         `json:"about,omitempty"`   // the step, 0 for none
}

// Place names all places of the load (Set), or says what happened to one of them.
type Place struct {
	Set   []string   `json:"set,omitempty"`  // all places: before the first load, and when they are declared again, without gone ones
	Noun  *Noun      `json:"noun,omitempty"` // the name of these, nil for the places of the kind of object
	Place string     `json:"place,omitempty"`
	State PlaceState `json:"state,omitempty"`
	What  string     `json:"what,omitempty"`  // a predicate, such as "was deleted"
	Meant bool       `json:"meant,omitempty"` // the run itself did it, or had it done
}

// PlaceState says whether a place takes load.
type PlaceState string

// The states of a place: a load may make one not ready, but somebody closed or removed the others.
const (
	PlaceThere    PlaceState = "there"    // it takes load, or does so again
	PlaceNotReady PlaceState = "notReady" // it does not work, or has ended
	PlaceClosed   PlaceState = "closed"   // it takes nothing more, and its objects stay
	PlaceGone     PlaceState = "gone"     // with its objects
)

// Cleanup says how far the removal of the run's objects came. A part of a run that goes on has its own.
type Cleanup struct {
	Done bool `json:"done"` // nothing is left
	Left int  `json:"left"` // objects of the run that are still there
}

// File is a file that the run wrote beside its history and that is not made from it, as it was then.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal digits
}

// Damaged stands for events that cannot be read: these bytes of the history's file were changed.
type Damaged struct{ From, To int64 }

func (d *Damaged) String() string { return fmt.Sprintf("bytes %d to %d", d.From, d.To) }

// Release names the slots that the run itself has emptied by its configuration: none is missed. If they are
// Renewed, a controller replaces their objects because the run has changed what makes them.
type Release struct {
	Slots   []string `json:"slots"`
	Renewed bool     `json:"renewed,omitempty"`
}

// Log is the masked end of a container's log, of an object that did not become ready.
type Log struct {
	Object    string   `json:"object"`
	Container string   `json:"container,omitempty"`
	Place     string   `json:"node,omitempty"`
	Reason    string   `json:"reason,omitempty"`   // that the object was not ready
	Previous  bool     `json:"previous,omitempty"` // of the container before the last restart
	Lines     []string `json:"lines,omitempty"`
	Masked    int      `json:"masked,omitempty"` // lines in which something was masked
	Error     string   `json:"error,omitempty"`  // why there are no lines
}

func (*RunEvent) Kind() EventKind           { return KindRun }
func (*StepEvent) Kind() EventKind          { return KindStep }
func (*Slot) Kind() EventKind               { return KindSlot }
func (*Object) Kind() EventKind             { return KindObject }
func (*State) Kind() EventKind              { return KindState }
func (*TargetEvent) Kind() EventKind        { return KindEvent }
func (*Reading) Kind() EventKind            { return KindSample }
func (*Canary) Kind() EventKind             { return KindCanary }
func (*Corrected) Kind() EventKind          { return KindCorrected }
func (*Guard) Kind() EventKind              { return KindGuard }
func (*Fault) Kind() EventKind              { return KindFault }
func (*Note) Kind() EventKind               { return KindNote }
func (*Log) Kind() EventKind                { return KindLog }
func (*Window) Kind() EventKind             { return KindWindow }
func (*Request) Kind() EventKind            { return KindRequest }
func (*Trial) Kind() EventKind              { return KindTrial }
func (*Cleanup) Kind() EventKind            { return KindCleanup }
func (*Place) Kind() EventKind              { return KindPlace }
func (*Actor) Kind() EventKind              { return KindActor }
func (*Answer) Kind() EventKind             { return KindAnswer }
func (*Release) Kind() EventKind            { return KindRelease }
func (*File) Kind() EventKind               { return KindFile }
func (*Damaged) Kind() EventKind            { return KindDamaged }
func (*ComponentHistogram) Kind() EventKind { return KindDurations }

// onlyNames reports whether all texts are the target's names: these are searched for known secrets only.
func (o *Object) onlyNames() bool { return len(o.Labels) == 0 }
func (s *Slot) onlyNames() bool   { return s.Outcome == SlotCreated && s.Error == "" && s.Trouble == "" }

// newBody returns an empty body of a kind, or nil for a kind that this version does not know.
func newBody(k EventKind) Body {
	for _, b := range [...]Body{ // the most frequent first
		(*Object)(nil), (*Slot)(nil), (*State)(nil), (*Reading)(nil), (*TargetEvent)(nil), (*Canary)(nil),
		(*Window)(nil), (*Request)(nil), (*RunEvent)(nil), (*StepEvent)(nil), (*Corrected)(nil), (*Guard)(nil),
		(*Fault)(nil), (*Note)(nil), (*Log)(nil), (*ComponentHistogram)(nil), (*Trial)(nil), (*Place)(nil),
		(*File)(nil), (*Release)(nil), (*Cleanup)(nil), (*Actor)(nil), (*Answer)(nil),
	} {
		if b.Kind() == k {
			return reflect.New(reflect.TypeOf(b).Elem()).Interface().(Body)
		}
	}
	return nil
}

type header struct {
	T    Micros    `json:"t"`
	Kind EventKind `json:"kind"`
	Step int       `json:"step"`
}

func appendLine(line []byte, e Event) ([]byte, error) {
	body, err := json.Marshal(e.Body)
	if err != nil {
		return line, fmt.Errorf("encode %s event: %w", e.Body.Kind(), err)
	}
	line = fmt.Appendf(line, `{"t":%d,"kind":"%s","step":%d`, e.T, e.Body.Kind(), e.Step)
	if len(body) > len("{}") {
		line = append(line, ',')
	}
	return append(append(line, body[1:]...), '\n'), nil
}

// parseLine reads one line of the history. The body of an unknown kind is nil.
func parseLine(line []byte) (Event, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return Event{}, fmt.Errorf("parse event: %w", err)
	}
	e := Event{T: h.T, Step: h.Step}
	body := newBody(h.Kind)
	if body == nil {
		return e, nil
	}
	if err := json.Unmarshal(line, body); err != nil {
		return Event{}, fmt.Errorf("parse %s event: %w", h.Kind, err)
	}
	e.Body = body
	return e, nil
}
