package record

import (
	"fmt"
	"hash/maphash"
)

// The bounds of a history that is read, which may be hostile, and small as a file. The first three bound the
// memory for judging it, the others the time.
const (
	// mostObjects bounds the requested objects, or those with news, since the target was last empty. One
	// takes about 2 kB. Kubernetes supports 150,000 pods.
	mostObjects = 500_000
	mostBeside  = 1 << 30 // bytes of lines that are not about objects
	mostSteps   = 20_000  // of a run
	// mostJudged bounds the objects in all steps: one is judged at the end of every step that it stands
	// in.
	mostJudged = 50_000_000
	mostText   = 8 << 30 // bytes of the unpacked file
)

// BoundError says that a history has more of something than is read.
type BoundError struct {
	What string
	Most int
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("it has more than %d %s, which is the most that is read", e.Most, e.What)
}

type bounds struct {
	seed                         maphash.Seed
	seen                         map[uint64]struct{} // objects with news, by the hash of their names
	asked, beside, steps, judged int
}

func newBounds() *bounds { return &bounds{seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})} }

// add takes in the next event, with the length of its line. The error is a *BoundError.
func (b *bounds) add(e Event, length int) error {
	switch body := e.Body.(type) {
	case *Slot:
		b.asked += min(max(body.Units, 1), mostObjects+1) // without an overflow
	case *Object:
		b.seen[maphash.String(b.seed, body.Object)] = struct{}{}
	case *State:
		b.seen[maphash.String(b.seed, body.Object)] = struct{}{}
	case *RunEvent:
		if body.Phase == PhaseResume {
			b.empty()
		}
	case *StepEvent:
		switch body.Phase {
		case PhaseReset:
			b.empty()
		case PhaseStart:
			b.steps++
		case PhaseEnd:
			b.judged += b.asked
		}
	default:
		b.beside += length
	}
	for _, of := range [...]struct {
		n, most int
		what    string
	}{
		{b.asked, mostObjects, "objects at a time"}, {len(b.seen), mostObjects, "objects with news at a time"},
		{b.beside, mostBeside, "bytes of events beside those of objects"}, {b.steps, mostSteps, "steps"}, {b.judged, mostJudged, "objects in all of its steps"},
	} {
		if of.n > of.most {
			return &BoundError{of.what, of.most}
		}
	}
	return nil
}

func (b *bounds) empty() {
	b.asked = 0
	clear(b.seen)
}
