package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// MaxMilestones is how many milestones objects of a kind have at most.
const MaxMilestones = 16

// Course is which milestones objects of a kind reach, by index in the order in
// which they come.
type Course struct {
	Names []string
	// There is the milestone that counts as there, Placed the one at which the
	// object has its place, -1 where none does. Those after There come aside:
	// nothing waits for them.
	There, Placed int
}

// News is what one message tells of an object that is followed.
type News struct {
	Name      string // namespace/name
	UID       string // "" where another object tells of this one
	Slot      string // the slot it fills; equal to Name for an object that we created
	Component string
	Place     string   // where it is, "" while that is unknown
	Labels    []string // as record.Object has them, nil while they are unknown

	// Reached are the milestones that the message shows, bit i for the
	// milestone of index i, and Stamps their times by the server's clock, in
	// seconds since 1970; 0 is unknown. The first is that the object exists:
	// it is reached by itself with the first news that has a UID.
	Reached uint32
	Stamps  [MaxMilestones]int64

	There    bool // at the milestone that counts, now
	Done     bool // it will never be there any more
	Deleting bool
	// Trouble is what is wrong with it; Unplaced why it has no place; Lacks
	// what it says of not being there.
	Trouble, Unplaced, Lacks Reason
	Class                    string // of the trouble, "" where its reason tells
	// Parts are what it consists of, each with an image, and Restarts how often
	// they were started again.
	Parts, Restarts int
}

// Reason is why an object is not as it should be.
type Reason struct {
	Reason  string // "" for none
	Message string
}

// Change says how a message came.
type Change byte

// The ways in which news of an object comes.
const (
	Changed Change = iota // the watch told of it
	Gone                  // the watch told of its deletion
	Listed                // a list had it, after a gap in the watch
)

// Counts sums up the objects that are followed. No object is in two of Ready,
// Failed and Unschedulable.
type Counts struct {
	Seen          int // created, by what was seen
	Ready         int // there now
	Failed        int // done without being there: they never will be
	Unschedulable int // there is no place for them now
	Gone          int // deleted
	// Moved is when an object last reached a milestone, went, or changed
	// from one of the above to another.
	Moved record.Micros
}

// object is what is known of an object that is followed.
type object struct {
	uid     string
	slot    string // "" when it equals the name
	place   string
	reached uint32 // bit i: milestone i was reached
	// pulled are those of its parts whose images are in place, until all are.
	parts    int
	pulled   []string
	restarts int
	labelled bool // its labels were told
	// departed says that it is gone, which was its last milestone.
	departed bool
	// asleep says that it is being made ready: nothing is told of it before it
	// is asked for what is measured.
	asleep bool
	standing
}

// standing is how an object stands by what it last told.
type standing struct {
	ready         bool
	done          bool // it will never be there
	unschedulable bool
	reason        string // what keeps it from being there, "" for nothing
	message       string
	class         string // of that
}

// Tracker follows the objects of a run. Its methods are not safe for concurrent
// use.
type Tracker struct {
	course  Course
	emit    func(record.Micros, record.Body)
	objects map[string]*object
	counts  Counts
	left    int // departed
	made    int // by somebody else for us
	// acted is when an object last reached each milestone, or changed how it stands
	// while it waited for it.
	acted [MaxMilestones]record.Micros
	// Asleep says that objects are made ready first: each begins with Begin.
	Asleep bool
	// Sole says that nobody makes another object in the place of one that failed.
	Sole bool
}

// NewTracker makes a Tracker that hands its events to emit.
func NewTracker(course Course, emit func(record.Micros, record.Body)) *Tracker {
	return &Tracker{course: course, emit: emit, objects: make(map[string]*object)}
}

// Counts sums up the objects that are followed.
func (t *Tracker) Counts() Counts { return t.counts }

// Forget drops all that is known, for a target that was emptied.
func (t *Tracker) Forget() {
	clear(t.objects)
	t.left, t.made = 0, 0
	t.counts = Counts{Moved: t.counts.Moved}
}

// Made is how many objects somebody else has made for us.
func (t *Tracker) Made() int { return t.made }

// Waiting counts the objects that are not there by the milestone that each waits
// for, and those of them that have a place by that. Acted is when one last reached
// each milestone. Where all are there it takes no time.
func (t *Tracker) Waiting() (waiting [MaxMilestones]int, places map[string]int, acted [MaxMilestones]record.Micros) {
	places = make(map[string]int)
	if t.counts.Ready+t.counts.Failed+t.counts.Unschedulable+t.left == len(t.objects) {
		return waiting, places, t.acted
	}
	for _, o := range t.objects {
		if o.ready || o.done || o.unschedulable || o.departed || o.asleep || o.has(t.course.There) {
			continue
		}
		waiting[t.next(o)]++
		if o.place != "" {
			places[o.place]++
		}
	}
	return waiting, places, t.acted
}

// next is the milestone that an object waits for.
func (t *Tracker) next(o *object) int {
	next := bitCreated
	for bit := bitCreated; bit < t.course.There; bit++ {
		if o.has(bit) {
			next = bit + 1
		}
	}
	return next
}

// Missing takes an object for deleted at a time before now: a list did not have it.
func (t *Tracker) Missing(now record.Micros, name, uid string) {
	if o := t.objects[name]; o != nil && o.uid == uid && !o.departed {
		t.gone(now, name, o, true)
	}
}

// Depart says that an object is gone, which was its last milestone: it stays
// counted as there.
func (t *Tracker) Depart(name string) {
	if o := t.objects[name]; o != nil && !o.departed {
		o.departed = true
		t.left++
	}
}

// Begin says that an object that was made ready is now asked for what is
// measured: what it reaches from here on is told.
func (t *Tracker) Begin(now record.Micros, name string) {
	if o := t.objects[name]; o != nil && o.asleep {
		o.asleep, o.reached, o.standing = false, 1<<bitCreated, standing{}
		t.counts.Moved = now
	}
}

// Apply takes in one message that was received at now.
func (t *Tracker) Apply(now record.Micros, change Change, m *News) {
	late := change == Listed
	o := t.objects[m.Name]
	if o != nil && o.departed {
		return
	}
	if o != nil && o.uid != "" && m.UID != "" && o.uid != m.UID {
		// The name was given to another object: the old one's deletion was
		// missed, or comes after the new one's news.
		if change == Gone {
			return
		}
		t.gone(now, m.Name, o, true)
		o = nil
	}
	if o == nil {
		if change == Gone {
			// It came and went within a gap, or its news came after its end was
			// taken for granted.
			return
		}
		o = &object{place: m.Place, asleep: t.Asleep}
		if m.Slot != m.Name {
			o.slot = m.Slot
		}
		t.objects[m.Name] = o
	}
	if o.uid == "" && m.UID != "" {
		o.uid, o.parts = m.UID, m.Parts
		t.counts.Seen++
		if o.slot != "" {
			t.made++
		}
		t.reach(now, m, o, bitCreated, late)
	}
	had := o.has(t.course.There)
	for bit := bitCreated + 1; bit < len(t.course.Names); bit++ {
		if m.Reached&(1<<bit) != 0 {
			// Its last state shows what it had reached where the news of that was lost.
			t.reach(now, m, o, bit, late || change == Gone)
			if bit == t.course.Placed {
				o.place = m.Place
			}
		}
	}
	if change == Gone {
		t.gone(now, m.Name, o, false)
		return
	}
	t.updateStanding(now, m, o, !had && o.has(t.course.There))
}

// Pulled takes in an event of an object, "namespace/name", that was received at
// now: the image of one of its parts is in place, which is the milestone bit.
// Events of objects that are not followed say nothing.
func (t *Tracker) Pulled(now record.Micros, bit int, name, uid, part string, stamp int64) {
	o := t.objects[name]
	if o == nil || o.uid != uid || o.has(bit) || slices.Contains(o.pulled, part) {
		return
	}
	o.pulled = append(o.pulled, part)
	if len(o.pulled) < o.parts {
		return
	}
	o.pulled = nil
	m := &News{Name: name}
	m.Stamps[bit] = stamp
	t.reach(now, m, o, bit, false)
}

// bitCreated is the index of the milestone that an object exists.
const bitCreated = 0

// reach emits a milestone the first time that it is seen.
func (t *Tracker) reach(now record.Micros, m *News, o *object, bit int, late bool) {
	if o.has(bit) {
		return
	}
	o.reached |= 1 << bit
	t.counts.Moved, t.acted[bit] = now, now
	e := &record.Object{Object: m.Name, Slot: o.slot, Milestone: t.course.Names[bit], Stamp: m.Stamps[bit], Late: late}
	if !o.labelled && !o.asleep {
		e.Labels, o.labelled = m.Labels, m.Labels != nil
	}
	switch bit {
	case bitCreated:
		e.Component = m.Component
	case t.course.Placed:
		e.Place = m.Place
	}
	t.tell(now, o, e)
}

// tell emits what is measured.
func (t *Tracker) tell(now record.Micros, o *object, body record.Body) {
	if !o.asleep {
		t.emit(now, body)
	}
}

func (o *object) has(bit int) bool { return o.reached&(1<<bit) != 0 }

func (t *Tracker) gone(now record.Micros, name string, o *object, late bool) {
	t.count(o, -1)
	t.counts.Gone++
	t.counts.Moved = now
	delete(t.objects, name)
	t.tell(now, o, &record.Object{Object: name, Slot: o.slot, Milestone: Deleted, Late: late})
}

// count adds an object to the counts, or takes it out of them. One that is made
// ready only is in none.
func (t *Tracker) count(o *object, n int) {
	switch {
	case o.asleep:
	case o.ready:
		t.counts.Ready += n
	case o.done:
		t.counts.Failed += n
	case o.unschedulable:
		t.counts.Unschedulable += n
	}
}

// updateStanding takes in how an object stands now and emits what has changed:
// whether it is there, and what keeps it from being there. Arrived says that
// the message was the first to tell that it was there.
func (t *Tracker) updateStanding(now record.Micros, m *News, o *object, arrived bool) {
	was, is := o.standing, t.standsBy(m, o)
	t.count(o, -1)
	o.standing, o.restarts = is, m.Restarts
	t.count(o, +1)
	if is.ready != was.ready || is.done != was.done || is.unschedulable != was.unschedulable {
		t.counts.Moved = now
	}
	if is != was {
		t.acted[t.next(o)] = now
	}
	s := &record.State{Object: m.Name, Slot: o.slot, Place: o.place, Reason: is.reason, Message: is.message, Failed: is.done, Class: is.class}
	there := t.course.Names[t.course.There]
	switch {
	case !is.ready && (was.ready || arrived):
		// The milestone says that it was there; it is no more.
		s.Lost = there
	case is.ready && !was.ready && !arrived:
		s.Regained = there
	case is.reason == was.reason && is.message == was.message && is.done == was.done:
		return
	}
	t.tell(now, o, s)
}

// standsBy is how an object stands by a message whose milestones were taken in.
func (t *Tracker) standsBy(m *News, o *object) standing {
	var s standing
	s.done = o.done || m.Done
	s.ready = m.There && !m.Deleting && !s.done
	switch {
	case !s.ready && m.Deleting && o.has(t.course.There):
		// What its parts tell from here on follows from the deletion.
		if s.reason, s.message = o.reason, o.message; s.reason == "" {
			s.reason = reasonDeleting
		}
	case m.Trouble.Reason != "":
		s.reason, s.message, s.class = m.Trouble.Reason, m.Trouble.Message, m.Class
	case m.Unplaced.Reason != "":
		s.reason, s.message = m.Unplaced.Reason, m.Unplaced.Message
		s.unschedulable = s.reason == reasonUnschedulable && !s.ready && !s.done
	case !s.ready && (s.done || o.has(t.course.There)):
		s.reason, s.message = m.Lacks.Reason, m.Lacks.Message
		if s.reason == "" {
			s.reason = "Not" + t.course.Names[t.course.There]
		}
	case m.Restarts > o.restarts:
		// The restart went by between two messages.
		s.reason = "Restarted"
	}
	return s
}

// Unfinished emits a state for every object that is not ready and has no known trouble: it
// waits for its next milestone. It is called at the end of a step.
func (t *Tracker) Unfinished(now record.Micros) {
	for name, o := range t.objects {
		if o.ready || o.reason != "" || o.asleep {
			continue
		}
		next := max(t.next(o), bitCreated+1) // an object that was there and fell from it has a reason
		o.reason = "Not" + t.course.Names[next]
		o.message = "no reason given; the last milestone was " + t.course.Names[next-1]
		t.tell(now, o, &record.State{Object: name, Slot: o.slot, Place: o.place, Reason: o.reason, Message: o.message})
	}
}

// Followed is how many objects are followed.
func (t *Tracker) Followed() int { return len(t.objects) - t.left }

// Names are the names of the objects that are followed, in no order.
func (t *Tracker) Names() []string {
	names := make([]string, 0, len(t.objects))
	for name, o := range t.objects {
		if !o.departed {
			names = append(names, name)
		}
	}
	return names
}

// PerPlace adds the objects that are followed to counts, by place. Objects
// without one are left out.
func (t *Tracker) PerPlace(counts map[string]int) {
	for _, o := range t.objects {
		if o.place != "" && !o.departed {
			counts[o.place]++
		}
	}
}

// Failing is an object that is not there and whose parts have written
// something, or may have.
type Failing struct {
	Name, Place, Reason string
}

// Failing lists objects that have a place, have reached the milestone started
// and are not there: at most perReason for each reason, the most frequent
// reasons first, at most n in all, by name. It takes time in proportion to the
// objects.
func (t *Tracker) Failing(started, perReason, n int) []Failing {
	type group struct {
		reason string
		count  int
		first  []Failing // the first by name, in order
	}
	groups := make(map[string]*group)
	for name, o := range t.objects {
		if o.ready || o.unschedulable || o.place == "" || !o.has(started) && o.restarts == 0 && !hasRun(o.reason) {
			continue
		}
		g := groups[o.reason]
		if g == nil {
			g = &group{reason: o.reason}
			groups[o.reason] = g
		}
		g.count++
		i, _ := slices.BinarySearchFunc(g.first, name, func(f Failing, name string) int { return strings.Compare(f.Name, name) })
		if i < perReason {
			g.first = slices.Insert(g.first, i, Failing{name, o.place, o.reason})
			g.first = g.first[:min(len(g.first), perReason)]
		}
	}
	order := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.reason, b.reason))
	})
	var list []Failing
	for _, g := range order {
		list = append(list, g.first...)
	}
	return list[:min(len(list), n)]
}

// hasRun reports whether a part that gives a reason for not running has run
// before.
func hasRun(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "Error", "OOMKilled", "ContainerCannotRun", "DeadlineExceeded", "Restarted":
		return true
	}
	return false
}
