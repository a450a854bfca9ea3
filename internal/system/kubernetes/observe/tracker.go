package observe

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// MaxMilestones bounds the milestones of a kind of objects.
const MaxMilestones = 16

// Course holds the milestones of a kind of objects, in order.
type Course struct {
	Names []string
	// There and Placed are the indices of the milestones that count and that give a place, or -1.
	There, Placed int
}

// News holds one message about a followed object.
type News struct {
	Name      string // namespace/name
	UID       string // "" in news from another object
	Slot      string // equal to Name for an object that we created
	Component string
	Place     string   // "" while unknown
	Labels    []string // as in record.Object, nil while unknown

	// Reached has a bit for each milestone, and Stamps their times by the server's clock, in seconds
	// since 1970; 0 is unknown. The first news with a UID reaches the first one, existence.
	Reached uint32
	Stamps  [MaxMilestones]int64

	There    bool // is now at the milestone that counts
	Done     bool // will never be there again
	Deleting bool
	// Trouble says what is wrong, Unplaced why it has no place, Lacks why it is not there.
	Trouble, Unplaced, Lacks Reason
	Class                    string // of the trouble, "" to go by its reason
	Parts, Restarts          int    // Parts counts its parts, each with an image, and Restarts their restarts.
}

// Reason says why an object is not as it should be.
type Reason struct {
	Reason  string // "" for none
	Message string
}

// Change says how a message came: one of the following.
type Change byte

const (
	Changed Change = iota // from the watch
	Gone                  // deleted, from the watch
	Listed                // from a list, after a gap
)

// Counts sums up the followed objects. Ready, Failed and Unschedulable do not overlap.
type Counts struct {
	Seen          int // created
	Ready         int
	Failed        int           // will never be there
	Unschedulable int           // without a place now
	Gone          int           // deleted
	Moved         record.Micros // last time that an object reached a milestone, went, or changed its count
}

type object struct {
	uid      string
	slot     string // "" when it equals the name
	place    string
	reached  uint32 // bit i: milestone i was reached
	parts    int    // pulled lists the parts whose images are in place, until all are
	pulled   []string
	restarts int
	labelled bool // its labels are on record
	departed bool // says that its end was its last milestone
	asleep   bool // says that it is being set up: nothing is reported before its measured work begins
	standing
}

// standing is an object's state by its last news.
type standing struct {
	ready         bool
	done          bool // will never be there
	unschedulable bool
	reason        string // why it is not there, "" for none
	message       string
	class         string // of the reason
}

// Tracker follows the objects of a run. Its methods are not safe for concurrent use.
type Tracker struct {
	course  Course
	emit    func(record.Micros, record.Body)
	objects map[string]*object
	counts  Counts
	left    int // departed
	made    int // by others for us
	// acted holds the last time that an object reached each milestone, or changed while it waited for it.
	acted  [MaxMilestones]record.Micros
	Asleep bool // says that objects are set up first, until Begin
	Sole   bool // says that nobody replaces a failed object
}

// NewTracker makes a Tracker that passes its events to emit.
func NewTracker(course Course, emit func(record.Micros, record.Body)) *Tracker {
	return &Tracker{course: course, emit: emit, objects: make(map[string]*object)}
}

// Counts sums up the followed objects.
func (t *Tracker) Counts() Counts { return t.counts }

// Forget drops all news, for a target that was emptied.
func (t *Tracker) Forget() {
	clear(t.objects)
	t.left, t.made = 0, 0
	t.counts = Counts{Moved: t.counts.Moved}
}

// Made counts the objects that others have made for us.
func (t *Tracker) Made() int { return t.made }

// Waiting counts the objects that are not there by awaited milestone and by place; acted has the last times.
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

// next returns the milestone that an object waits for.
func (t *Tracker) next(o *object) int {
	next := bitCreated
	for bit := bitCreated; bit < t.course.There; bit++ {
		if o.has(bit) {
			next = bit + 1
		}
	}
	return next
}

// Missing notes that an object ended before now: a list lacks it.
func (t *Tracker) Missing(now record.Micros, name, uid string) {
	if o := t.objects[name]; o != nil && o.uid == uid && !o.departed {
		t.gone(now, name, o, true)
	}
}

// Depart notes that an object is gone, which was its last milestone: it still counts as there.
func (t *Tracker) Depart(name string) {
	if o := t.objects[name]; o != nil && !o.departed {
		o.departed = true
		t.left++
	}
}

// Begin notes that the measured work of an object begins, or begins again: its milestones count from here.
func (t *Tracker) Begin(now record.Micros, name string) {
	if o := t.objects[name]; o != nil {
		t.count(o, -1)
		o.asleep, o.reached, o.standing = false, 1<<bitCreated, standing{}
		t.counts.Moved = now
	}
}

// Apply takes one message that was received at now.
func (t *Tracker) Apply(now record.Micros, change Change, m *News) {
	late := change == Listed
	o := t.objects[m.Name]
	if o != nil && o.departed {
		return
	}
	if o != nil && o.uid != "" && m.UID != "" && o.uid != m.UID {
		// Another object has the name: the old one's end was missed, or comes after the new one's news.
		if change == Gone {
			return
		}
		t.gone(now, m.Name, o, true)
		o = nil
	}
	if o == nil {
		if change == Gone {
			// It came and went within a gap, or its end was known already.
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
			// The last state shows milestones whose news was lost.
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

// Pulled takes an event of an object: the image of a part is in place, and with all of them the milestone
// bit is reached.
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

const bitCreated = 0 // index of the milestone of existence

// reach reports a milestone the first time.
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

// tell reports an event, unless the object is being set up.
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

// count adds an object to the counts, or removes it. Objects being set up are in none.
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

// updateStanding takes an object's new state and reports changes; arrived says that it is newly there.
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
		// The milestone says that it was there; now it is not.
		s.Lost = there
	case is.ready && !was.ready && !arrived:
		s.Regained = there
	case is.reason == was.reason && is.message == was.message && is.done == was.done:
		return
	}
	t.tell(now, o, s)
}

// standsBy returns an object's state by a message, after its milestones.
func (t *Tracker) standsBy(m *News, o *object) standing {
	var s standing
	s.done = o.done || m.Done
	s.ready = m.There && !m.Deleting && !s.done
	switch {
	case !s.ready && m.Deleting && o.has(t.course.There):
		// The parts' later troubles follow from the deletion.
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
		// A restart happened between two messages.
		s.reason = "Restarted"
	}
	return s
}

// Unfinished reports a state for every object that waits without a known trouble, at a step's end.
func (t *Tracker) Unfinished(now record.Micros) {
	for name, o := range t.objects {
		if o.ready || o.reason != "" || o.asleep {
			continue
		}
		next := max(t.next(o), bitCreated+1) // an object that was there has a reason
		o.reason = "Not" + t.course.Names[next]
		o.message = "no reason given; the last milestone was " + t.course.Names[next-1]
		t.tell(now, o, &record.State{Object: name, Slot: o.slot, Place: o.place, Reason: o.reason, Message: o.message})
	}
}

// Followed counts the followed objects.
func (t *Tracker) Followed() int { return len(t.objects) - t.left }

// Names lists the followed objects, unordered.
func (t *Tracker) Names() []string {
	names := make([]string, 0, len(t.objects))
	for name, o := range t.objects {
		if !o.departed {
			names = append(names, name)
		}
	}
	return names
}

// PerPlace adds the followed objects to counts, by place, except those without one.
func (t *Tracker) PerPlace(counts map[string]int) {
	for _, o := range t.objects {
		if o.place != "" && !o.departed {
			counts[o.place]++
		}
	}
}

// Failing names an object that is not there and whose parts may have logs.
type Failing struct {
	Name, Place, Reason string
}

// Failing lists objects that have a place and the milestone started and are not there: at most perReason
// for each reason, frequent reasons first, and n in all.
func (t *Tracker) Failing(started, perReason, n int) []Failing {
	type group struct {
		reason string
		count  int
		first  []Failing // the first by name, in order
	}
	groups := make(map[string]*group)
	hasRun := []string{"CrashLoopBackOff", "Error", "OOMKilled", "ContainerCannotRun", "DeadlineExceeded", "Restarted"}
	for name, o := range t.objects {
		if o.ready || o.unschedulable || o.place == "" || !o.has(started) && o.restarts == 0 && !slices.Contains(hasRun, o.reason) {
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
