package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Followed are the objects that a load is made of.
type Followed interface {
	Progress() system.Progress
	// Account puts on record why those that are not there are not, and counts
	// them by place. With failing it picks some that fail, for their logs.
	Account(failing bool) (perPlace map[string]int, picked []observe.Failing)
	// Names are those of the objects that are unknown to be gone.
	Names() []string
	// Expect says how many were asked for since the target was last empty.
	Expect(n int)
	// AwaitGone waits until the news has told of the end of all.
	AwaitGone(ctx context.Context) error
	// Noun is what they are called.
	Noun() record.Noun
	// ExpectMade says that somebody else is to make so many objects for us.
	ExpectMade(n int)
	// Waits tells for whom objects wait.
	Waits() Waits
	// Forget drops all that is known, once the target is empty.
	Forget()
}

// following follows the objects of a run and puts their news on record.
type following struct {
	*prepared.Run
	ageing *Ageing
	noun   record.Noun
	there  string // the milestone that counts

	mu      sync.Mutex
	tracker *observe.Tracker
	arrived int // that ever were there since the target was last empty
	asked   int // that were asked for since
	leaving int // how many wait for the end of all
	// expected are those that somebody is to make for us, of all that were asked for.
	expected int
	owners   []string // whose work each milestone is, by its index
}

// short reports whether objects are not there that should be, or not gone. What has
// moved in the last while is waited for.
func (s *following) short(quiet time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, left := s.tracker.Counts(), s.tracker.Followed()
	if (s.Clock.Now() - c.Moved).Duration() < quiet {
		return false
	}
	if s.leaving > 0 {
		return left > 0
	}
	return c.Ready < left || s.arrived < s.asked
}

// quiet is how long nothing moves before it is doubted that nothing does.
const quiet = 3 * time.Second

func (s *following) doubt() bool { return s.short(quiet) }

// Expect says how many objects were asked for since the target was last empty.
func (s *following) Expect(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = n
}

// Waits says for whom objects wait, by the names of record.Milestone.Owner.
type Waits struct {
	Objects map[string]int           // how many wait for each
	Acted   map[string]record.Micros // when each was last seen to do something
	Places  map[string]int           // of the objects, those that have a place, by that
}

// Noun implements Followed.
func (s *following) Noun() record.Noun { return s.noun }

// ExpectMade implements Followed.
func (s *following) ExpectMade(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected += n
}

// Waits implements Followed.
func (s *following) Waits() Waits {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, places, acted := s.tracker.Waiting()
	w := Waits{Objects: make(map[string]int), Acted: make(map[string]record.Micros), Places: places}
	for bit, owner := range s.owners {
		w.Objects[owner] += waiting[bit]
		w.Acted[owner] = max(w.Acted[owner], acted[bit])
	}
	if s.expected > 0 {
		w.Objects[observe.ControllerManager] += max(0, s.expected-s.tracker.Made())
		w.Acted[observe.ControllerManager] = acted[0]
	}
	return w
}

// follow puts news of objects on record. It is called with mu held.
func (s *following) follow(at record.Micros, body record.Body) {
	if o, ok := body.(*record.Object); ok {
		switch o.Milestone {
		case observe.Created:
			s.ageing.born(at, o.Object)
		case s.there:
			s.arrived++
			s.ageing.ready(at, o.Object)
		case observe.Deleted:
			s.ageing.gone(o.Object)
		}
	}
	s.EmitAt(at, body)
}

func (s *following) Progress() system.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tracker.Counts()
	p := system.Progress{There: c.Ready, Arrived: s.arrived, Failed: c.Failed, Unschedulable: c.Unschedulable, Moved: c.Moved, Left: s.tracker.Followed()}
	if s.tracker.Sole {
		p.Final = p.Failed
	}
	return p
}

func (s *following) Account(failing bool) (perPlace map[string]int, picked []observe.Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Unfinished(s.Clock.Now())
	perPlace = make(map[string]int)
	s.tracker.PerPlace(perPlace)
	if failing {
		picked = s.tracker.Failing(observe.BitStarted, logsPerReason, logsPerStep)
	}
	return perPlace, picked
}

func (s *following) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracker.Names()
}

func (s *following) AwaitGone(ctx context.Context) error {
	leave := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leaving += n
	}
	leave(1)
	defer leave(-1)
	for {
		s.mu.Lock()
		left := s.tracker.Followed()
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		if !api.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", s.noun.Count(left), context.Cause(ctx))
		}
	}
}

func (s *following) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Forget()
	s.arrived, s.asked, s.expected = 0, 0, 0
}
