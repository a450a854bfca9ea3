package record

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// HistoryVersion is the version of the history's format. A reader accepts its
// own version and older ones; docs/history.md is its page.
const HistoryVersion = 1

// Micros is a time or a span in microseconds. As a time it counts from the start of the run on the
// monotonic clock; environment.json holds the wall clock at 0.
type Micros int64

// Duration is m as a time.Duration.
func (m Micros) Duration() time.Duration { return time.Duration(m) * time.Microsecond }

// Seconds is m in seconds.
func (m Micros) Seconds() float64 { return float64(m) / 1e6 }

// MicrosOf is the number of whole microseconds in d.
func MicrosOf(d time.Duration) Micros { return Micros(d / time.Microsecond) }

// Clock tells the time since the start of a run.
type Clock struct {
	start time.Time
	now   func() time.Time
	// latest is about the latest time that was told, and ahead what it is ahead of
	// now, which was set back, in nanoseconds.
	latest, ahead atomic.Int64
}

// StartClock starts a run's clock at the present of now, which is time.Now outside of tests.
func StartClock(now func() time.Time) *Clock {
	return &Clock{start: now(), now: now}
}

// Now is the time since the start of the run. It goes on where now is set back:
// what waits for a time would else wait for that much longer.
func (c *Clock) Now() Micros {
	const (
		grain = 100 * time.Millisecond // as often as that the latest time is kept
		step  = time.Second            // what goes back by more was set back
	)
	d := int64(c.now().Sub(c.start)) + c.ahead.Load()
	switch latest := c.latest.Load(); {
	case d > latest+int64(grain):
		c.latest.CompareAndSwap(latest, d) // else another one was faster
	case d < latest-int64(step):
		c.ahead.Add(latest - d)
		d = latest
	}
	return MicrosOf(time.Duration(d))
}

// Start is the wall clock at 0.
func (c *Clock) Start() time.Time { return c.start }

// EventKind names what an event tells.
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
	// KindDurations is of a histogram that a program of the target published.
	KindDurations EventKind = "durations"
	// KindWindow is of a stretch of a stream of requests.
	KindWindow EventKind = "window"
	// KindRequest is of one request of a stream, out of many.
	KindRequest EventKind = "request"
	// KindTrial is of how much a stream came to with another number of requests under way.
	KindTrial EventKind = "trial"
	// KindPlace is of the places that a level is an average over.
	KindPlace EventKind = "place"
	// KindFile is of a file that the run wrote beside its history.
	KindFile EventKind = "file"
	// KindDamaged is of a part of a history that cannot be read. It is never written.
	KindDamaged EventKind = "damaged"
	// KindRelease is of objects that the run has removed before its end.
	KindRelease EventKind = "release"
	// KindCleanup is of the removal of what the run has made.
	KindCleanup EventKind = "cleanup"
	// KindActor is of one whose work is waited for, and that does nothing.
	KindActor EventKind = "actor"
	// KindAnswer is of what an objective on a query came to.
	KindAnswer EventKind = "answer"
)

// Event is one line of the history: what happened (Body), when (T) and in
// which step. Step 0 is outside of any step; steps count from 1.
type Event struct {
	T    Micros
	Step int
	Body Body
}

// Body is what happened: a pointer to the type of this package that is written under the kind.
type Body interface{ Kind() EventKind }

// Sink takes events as they happen. It is safe for concurrent use and does
// not block for longer than it takes to copy the event.
type Sink interface{ Append(Event) }

// Phase is a moment in the life of a run or of a step.
type Phase string

// BudgetSpent is why a run ended whose time was over: its Message has it.
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

// Ending says why a step ended, which bears on how it is judged.
type Ending string

// The endings of a step.
const (
	EndHeld        Ending = "held"        // the level was reached and held for the whole hold
	EndTimeout     Ending = "timeout"     // not every object was ready within the step timeout
	EndStalled     Ending = "stalled"     // all that remained were unschedulable and nothing moved, or whoever they waited for did nothing
	EndGuard       Ending = "guard"       // a guard stopped the load
	EndUnfinished  Ending = "unfinished"  // what was done to the target in the hold had not ended with it
	EndInterrupted Ending = "interrupted" // the user, the budget or an error of ours cut it short
)

// RunEvent marks the start and the end of a run, and where one that was cut goes on.
type RunEvent struct {
	Phase   Phase `json:"phase"`
	Version int   `json:"version,omitempty"` // of the history's format, at the start and where it goes on
	// Framed says that from here on each step has frames of its own in the file.
	Framed bool `json:"framed,omitempty"`
	// ID names what is made in the target from here on.
	ID string `json:"id,omitempty"`
	// Plan is the fingerprint of the plan's conditions, "" is unknown.
	Plan    string `json:"plan,omitempty"`
	Command string `json:"command,omitempty"` // that resumed the run
	// Paused, at the end, says that the run goes on once other cells of its grid had their turn.
	Paused bool `json:"paused,omitempty"`
	// Signal, at the end, is the exit code of the signal that cut the run; 0 for none.
	Signal  int    `json:"signal,omitempty"`
	Message string `json:"message,omitempty"` // why it ended, or what is wrong with the times from here on
}

// Purpose says what a step is made for.
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

// StepPlan says what a step was to be. Designs ask for it, and events and results have it.
type StepPlan struct {
	Level     float64 `json:"level"`
	Arm       string  `json:"arm,omitempty"` // of a comparison, and which of its runs
	Replicate int     `json:"replicate,omitempty"`
	Purpose   Purpose `json:"purpose"`
	Why       string  `json:"why"`       // why this level was chosen
	FromEmpty bool    `json:"fromEmpty"` // the target was emptied before it
	FullHold  bool    `json:"fullHold"`  // the hold was the whole one that the plan names
}

// StepEvent marks a moment of one level's step. All fields but Phase are given at
// the start; Reached is given again when it is known, Ending at the end.
type StepEvent struct {
	Phase Phase `json:"phase"`
	StepPlan
	Reached float64 `json:"levelReached,omitempty"` // the level rounded down to whole iterations
	// Timeout is how long each object is followed, in microseconds from its
	// creation; Hold is how long the level is held once reached.
	Timeout Micros `json:"timeout,omitempty"`
	Hold    Micros `json:"hold,omitempty"`
	// Open says that requests came by a schedule, Level of them a second, and were not held back by their
	// answers. Those that the schedule put into the hold, from PhaseReached to PhaseLoaded, are judged;
	// the ones before are the warm-up.
	Open  bool   `json:"open,omitempty"`
	Pace  string `json:"pace,omitempty"` // creations per second, or "max"
	Units int    `json:"units,omitempty"`
	// Places is what the level is an average over (nodes), and Others what
	// stands there that is not ours; at PhaseStart and PhaseEnd.
	Places int     `json:"places,omitempty"`
	Others int     `json:"others,omitempty"`
	Least  float64 `json:"least,omitempty"` // the least loaded place's own level
	Most   float64 `json:"most,omitempty"`  // the most loaded place's own level
	Ending Ending  `json:"ending,omitempty"`
	// Message explains an ending that is not EndHeld.
	Message string `json:"message,omitempty"`
}

// SlotOutcome is what became of the request that a slot stands for.
type SlotOutcome string

// The outcomes of a request.
const (
	SlotCreated SlotOutcome = "created"
	SlotFailed  SlotOutcome = "failed"  // refused, or given up after retries
	SlotDropped SlotOutcome = "dropped" // never sent: past the drop bound
	SlotUnknown SlotOutcome = "unknown" // sent, but the answer never came and could not be settled
)

// Slot is one thing asked of the target: a request and its answer. A slot has
// a name, unique since the target was last empty, and is counted once.
type Slot struct {
	Slot      string `json:"slot"`
	Component string `json:"component,omitempty"`
	// Resource is the kind of what is asked for, of a slot whose Units are 0.
	Resource string `json:"resource,omitempty"`
	// Units is how many objects with milestones the request asks for: 1 for a pod, the replicas of a
	// deployment, 0 for an object that is not followed (a service).
	Units int `json:"units"`
	// Grouped says that the objects have names of their own, given by whoever
	// makes them; else the object's name is the slot's.
	Grouped   bool   `json:"grouped,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	Replica   int    `json:"replica,omitempty"` // of its iteration, from 2: the first is left out
	Intended  Micros `json:"intended"`          // when the schedule wanted it sent
	// Waited is for how long after Intended the request found no place among
	// those under way. What Sent is later than both is the program's own delay.
	Waited Micros `json:"waited,omitempty"`
	// AtOnce says that Intended is the one moment that it was meant for with others.
	AtOnce    bool   `json:"atOnce,omitempty"`
	Sent      Micros `json:"sent"`    // when the first attempt was sent
	Replied   Micros `json:"replied"` // when the last answer came
	Code      int    `json:"code,omitempty"`
	Retries   int    `json:"retries,omitempty"`   // attempts after the first
	Throttled int    `json:"throttled,omitempty"` // answers that were 429
	// ThrottledAt is when the first of these came, 0 for none.
	ThrottledAt Micros `json:"throttledAt,omitempty"`
	// Trouble is why there was more than one attempt: what the first answer of
	// 429 said, or else the first that made another attempt worth while, and
	// TroubleCode its code, 0 for an answer that never came.
	Trouble     string      `json:"trouble,omitempty"`
	TroubleCode int         `json:"troubleCode,omitempty"`
	Outcome     SlotOutcome `json:"outcome"`
	Error       string      `json:"error,omitempty"`
	// Delay is a start latency that was planted on the object, in microseconds; 0 when none was.
	Delay Micros `json:"delay,omitempty"`
	// Before is the request that was made for the same thing right before this
	// one, nil for none. It is put on record by itself.
	Before *Slot `json:"-"`
}

// Object is a milestone that an object reached, at the time its news was received.
type Object struct {
	Object    string `json:"object"`         // namespace/name
	Slot      string `json:"slot,omitempty"` // the slot it fills, when its name is another
	Milestone string `json:"milestone"`
	Component string `json:"component,omitempty"`
	Place     string `json:"node,omitempty"`
	// Labels are, with the first milestone, the object's values of the labels that
	// its kind tells times apart by, in their order, "" for none.
	Labels []string `json:"labels,omitempty"`
	// Stamp is the server's own time of the milestone in seconds since 1970,
	// 0 when it gave none. Servers keep whole seconds.
	Stamp int64 `json:"stamp,omitempty"`
	// Late marks news that came from a list after a gap in the watch: the
	// milestone was reached at some time before T.
	Late bool `json:"late,omitempty"`
}

// State is a change in what keeps an object from a milestone, or took one
// away. An empty Reason says that whatever it was is over.
type State struct {
	Object  string `json:"object"`
	Slot    string `json:"slot,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	Place   string `json:"node,omitempty"`
	// Lost names the milestone that the object had and has no more, Regained
	// one that it has again; Failed says that it will never be ready.
	Lost     string `json:"lost,omitempty"`
	Regained string `json:"regained,omitempty"`
	Failed   bool   `json:"failed,omitempty"`
	// Class is that of the trouble among those of the kind, where its reason does not tell.
	Class string `json:"class,omitempty"`
}

// TargetEvent is an event that a component of the target published.
type TargetEvent struct {
	Object  string `json:"object"`        // namespace/name of what it is about
	About   string `json:"about"`         // its kind
	For     string `json:"for,omitempty"` // the slot whose objects that makes, "" for none
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

// ComponentHistogram is a histogram of durations that a program publishes, counted since
// its start: what fell into a step is the difference of two. Counts are how many
// took at most so many seconds, by Bounds; Count is all of them.
type ComponentHistogram struct {
	Source string    `json:"source"` // the program
	Name   string    `json:"name"`   // what took so long
	Count  uint64    `json:"count"`
	Sum    float64   `json:"sum"` // seconds
	Bounds []float64 `json:"bounds"`
	Counts []uint64  `json:"counts"`
}

// Names of histograms of a program's garbage collection: how long all of it was
// paused, and the CPU time of each cycle, of which there is the sum alone.
const (
	CollectionPauses = "pause of garbage collection"
	CollectionCPU    = "CPU of a garbage collection"
	// ClientWaits is how long requests of a program waited for the limit of its own
	// client; there is the sum alone.
	ClientWaits = "wait for its client's limit"
)

// SourceMachine is the source of what is read of the whole machine that this program
// runs on, where the target runs there too; telemetry.Reading says what that is.
const SourceMachine = "machine"

// SourceRequests is the source of histograms of the API server's requests: the
// name of each is a verb and a resource.
const SourceRequests = "API requests"

// Canary is one measurement of watch lag: a change made at a known time and
// the receipt of its news. Seen is 0 when it never came.
type Canary struct {
	Sent    Micros `json:"sent"`
	Replied Micros `json:"replied"`
	Seen    Micros `json:"seen"`
	// Of names the watch whose lag this is, where it is not that of the canary's own
	// pod; Beside says that nothing is judged by its news.
	Of     string `json:"of,omitempty"`
	Beside bool   `json:"beside,omitempty"`
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

// Answer is what an objective on a query came to at the end of a step's hold, asked of
// what was on record until then.
type Answer struct {
	Objective string `json:"objective"`
	// Series is how many came back, of which Broken were not as they should be, and NaN were no number.
	Series int `json:"series"`
	Broken int `json:"broken,omitempty"`
	NaN    int `json:"nan,omitempty"`
	// Of has the labels of the series that broke first, or of the one nearest to the bound where none
	// did, "" for one without; Value is its value, "" where there is none: a text, as it may be infinite.
	Of    string `json:"of,omitempty"`
	Value string `json:"value,omitempty"`
	// Since is from when on that series was not as it should be, 0 where it is.
	Since Micros `json:"since,omitempty"`
	// Why says why it is unknown whether the objective holds, "" where it is.
	Why string `json:"why,omitempty"`
}

// Trial is what a target answers with so many requests under way, each sent as soon as the one before it
// is answered: tried after a hold in which requests waited for a place among those that the load has
// under way at most. There is one with fewer, then one with as many.
type Trial struct {
	Places   int     `json:"places"` // requests under way
	Seconds  float64 `json:"seconds"`
	Answered int     `json:"answered"`         // in these, as they should be
	Failed   int     `json:"failed,omitempty"` // otherwise
}

// Request is one request of a stream that is on record by itself, besides being
// counted in its window: one of the slowest, or one that failed.
type Request struct {
	Component string `json:"component,omitempty"`
	Place     string `json:"place,omitempty"` // what it was sent to, such as a host
	Intended  Micros `json:"intended"`        // when the schedule wanted it sent; closed loop: when it was
	Sent      Micros `json:"sent"`            // when it was begun, 0 for never
	Ended     Micros `json:"ended"`           // when its answer was whole, or it failed
	Status    int    `json:"status,omitempty"`
	Failed    string `json:"failed,omitempty"` // the kind of failure, "" for none
	Retried   bool   `json:"retried,omitempty"`
	BytesIn   int64  `json:"bytesIn,omitempty"`
	BytesOut  int64  `json:"bytesOut,omitempty"`
}

// Fault is something that went wrong with observing or loading: a watch that
// was cut, a list that had to be made again, a server out of reach.
type Fault struct {
	What    string `json:"what"`
	From    Micros `json:"from,omitempty"`   // when news stopped
	To      Micros `json:"to,omitempty"`     // when news came again; 0 while it has not
	Healed  bool   `json:"healed"`           // nothing was lost, only late
	Beside  bool   `json:"beside,omitempty"` // nothing is judged by that news
	Late    bool   `json:"late,omitempty"`   // news came, or may have, and more than a while after it was published
	Message string `json:"message,omitempty"`
}

// Actor is one whose work is waited for and that does nothing, as of T: it is told
// again while that lasts, and once it is over.
type Actor struct {
	Actor string `json:"actor"` // as Milestone.Owner names it
	Says  string `json:"says"`  // that it does nothing, in words
	// Since is when it last did something, or when it was first waited for if that was later.
	Since Micros `json:"since"`
	Over  bool   `json:"over,omitempty"` // it acts again, or is not waited for any more
	// Waiting is how many of Of wait for it.
	Waiting int  `json:"waiting"`
	Of      Noun `json:"of"`
	// Message is how it is known.
	Message string `json:"message,omitempty"`
}

// Sentence says it as of a time.
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

// Note is something the reader must know: a warning of the result.
type Note struct {
	Text string `json:"text"`
	// Warning is its kind, WarningNote if it has none.
	Warning WarningKind `json:"warning,omitempty"`
	Place   string      `json:"place,omitempty"` // where it came up
	About   int         `json:"about,omitempty"` // the step that it is about, 0 for none
}

// Place tells of the places that a level is an average over, or a load goes to:
// which there are (Set), or what happened to one of them.
type Place struct {
	// Set are the names of all that there are: before the first load, and whenever
	// the target declares them again. What an earlier set had besides is gone.
	Set []string `json:"set,omitempty"`
	// Noun is what these are, nil for the places of the kind of object.
	Noun  *Noun      `json:"noun,omitempty"`
	Place string     `json:"place,omitempty"`
	State PlaceState `json:"state,omitempty"`
	// What happened, as the predicate of a sentence: "was deleted".
	What string `json:"what,omitempty"`
	// Meant says that the run itself did it, or had it done.
	Meant bool `json:"meant,omitempty"`
}

// PlaceState is whether a place takes load.
type PlaceState string

// The states of a place. The load may be why one is not ready; a place that is
// closed or gone is so because somebody did it.
const (
	PlaceThere    PlaceState = "there"    // it takes load, or does so again
	PlaceNotReady PlaceState = "notReady" // it does not work, or has ended
	PlaceClosed   PlaceState = "closed"   // it takes nothing more, and what is on it stays
	PlaceGone     PlaceState = "gone"     // with all that was on it
)

// Cleanup tells of the removal of what the run has made in its target: before
// it begins, and how far it came. A part of a run that goes on has its own.
type Cleanup struct {
	Done bool `json:"done"` // nothing is left
	Left int  `json:"left"` // how many of the run's objects are still there
}

// File is a file that the run wrote beside its history and that is not made from it, as it was then.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of its bytes, in hexadecimal digits
}

// Damaged stands for events that cannot be read: bytes of the history's file are not
// those that were written.
type Damaged struct{ From, To int64 }

// String names the bytes.
func (d *Damaged) String() string { return fmt.Sprintf("bytes %d to %d", d.From, d.To) }

// Release tells which slots the run itself has emptied, as its configuration asks:
// what filled them is no longer in place, and is not missed.
type Release struct {
	Slots []string `json:"slots"`
}

// Kind implements Body.
func (*Release) Kind() EventKind { return KindRelease }

// Kind implements Body.
func (*File) Kind() EventKind { return KindFile }

// Kind implements Body.
func (*Damaged) Kind() EventKind { return KindDamaged }

// Log is the end of what a container has written, of an object that did not
// become ready. What looks like a secret is masked before it is put on record.
type Log struct {
	Object    string `json:"object"`
	Container string `json:"container,omitempty"`
	Place     string `json:"node,omitempty"`
	Reason    string `json:"reason,omitempty"` // what kept the object
	// Previous says that it is of the container before the last restart.
	Previous bool     `json:"previous,omitempty"`
	Lines    []string `json:"lines,omitempty"`
	// Masked is in how many of the lines something was masked.
	Masked int `json:"masked,omitempty"`
	// Error is why there are no lines.
	Error string `json:"error,omitempty"`
}

func (*RunEvent) Kind() EventKind    { return KindRun }
func (*StepEvent) Kind() EventKind   { return KindStep }
func (*Slot) Kind() EventKind        { return KindSlot }
func (*Object) Kind() EventKind      { return KindObject }
func (*State) Kind() EventKind       { return KindState }
func (*TargetEvent) Kind() EventKind { return KindEvent }
func (*Reading) Kind() EventKind     { return KindSample }
func (*Canary) Kind() EventKind      { return KindCanary }
func (*Corrected) Kind() EventKind   { return KindCorrected }
func (*Guard) Kind() EventKind       { return KindGuard }
func (*Fault) Kind() EventKind       { return KindFault }
func (*Note) Kind() EventKind        { return KindNote }
func (*Log) Kind() EventKind         { return KindLog }
func (*Window) Kind() EventKind      { return KindWindow }
func (*Request) Kind() EventKind     { return KindRequest }
func (*Trial) Kind() EventKind       { return KindTrial }
func (*Cleanup) Kind() EventKind     { return KindCleanup }
func (*Place) Kind() EventKind       { return KindPlace }
func (*Actor) Kind() EventKind       { return KindActor }
func (*Answer) Kind() EventKind      { return KindAnswer }

// onlyNames reports whether an event has no texts but names that the target has
// taken: of so many events nothing but secrets that are known is looked for.
func (o *Object) onlyNames() bool { return len(o.Labels) == 0 }
func (s *Slot) onlyNames() bool   { return s.Outcome == SlotCreated && s.Error == "" && s.Trouble == "" }

// Kind implements Body.
func (*ComponentHistogram) Kind() EventKind { return KindDurations }

// newBody is an empty body of a kind, or nil for a kind that this version does not know.
func newBody(k EventKind) Body {
	switch k {
	case KindRun:
		return new(RunEvent)
	case KindStep:
		return new(StepEvent)
	case KindSlot:
		return new(Slot)
	case KindObject:
		return new(Object)
	case KindState:
		return new(State)
	case KindEvent:
		return new(TargetEvent)
	case KindSample:
		return new(Reading)
	case KindCanary:
		return new(Canary)
	case KindCorrected:
		return new(Corrected)
	case KindGuard:
		return new(Guard)
	case KindFault:
		return new(Fault)
	case KindNote:
		return new(Note)
	case KindLog:
		return new(Log)
	case KindDurations:
		return new(ComponentHistogram)
	case KindPlace:
		return new(Place)
	case KindRelease:
		return new(Release)
	case KindCleanup:
		return new(Cleanup)
	case KindActor:
		return new(Actor)
	case KindAnswer:
		return new(Answer)
	case KindFile:
		return new(File)
	case KindWindow:
		return new(Window)
	case KindRequest:
		return new(Request)
	case KindTrial:
		return new(Trial)
	}
	return nil
}

// header is what every line begins with.
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
	line = append(line, `{"t":`...)
	line = strconv.AppendInt(line, int64(e.T), 10)
	line = append(line, `,"kind":"`...)
	line = append(line, e.Body.Kind()...)
	line = append(line, `","step":`...)
	line = strconv.AppendInt(line, int64(e.Step), 10)
	if len(body) > len("{}") {
		line = append(line, ',')
		line = append(line, body[1:]...)
	} else {
		line = append(line, '}')
	}
	return append(line, '\n'), nil
}

// parseLine reads one line of the history. It returns a nil Body for a kind
// that this version does not know.
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
