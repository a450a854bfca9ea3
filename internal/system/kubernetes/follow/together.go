package follow

import (
	"context"
	"errors"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// together follows pods and the objects beside them. The removal goes by the pods, and by what else was made.
type together struct {
	*PodSet
	asked []*ObjectSet // the run asks for their objects, and waits for them
	made  []*ObjectSet // those, and others whose objects come and go with the load
}

func newTogether(pods *PodSet, beside []*ObjectSet) together {
	t := together{PodSet: pods}
	for _, s := range beside {
		if s.spec.Asked() {
			t.asked = append(t.asked, s)
		}
		if !s.spec.Before {
			t.made = append(t.made, s)
		}
	}
	return t
}

// Noun implements Followed.
func (together) Noun() record.Noun { return record.Noun{One: "object", Many: "objects"} }

// Progress implements Followed.
func (t together) Progress() system.Progress {
	all := t.PodSet.Progress()
	for _, s := range t.asked {
		p := s.Progress()
		all.There, all.Arrived, all.Failed, all.Final = all.There+p.There, all.Arrived+p.Arrived, all.Failed+p.Failed, all.Final+p.Final
		all.Unschedulable, all.Left, all.Moved = all.Unschedulable+p.Unschedulable, all.Left+p.Left, max(all.Moved, p.Moved)
	}
	return all
}

// Account implements Followed.
func (t together) Account(failing bool) (perPlace map[string]int, picked []observe.Failing) {
	for _, s := range t.made {
		s.Account(false)
	}
	return t.PodSet.Account(failing)
}

// Waits implements Followed.
func (t together) Waits() Waits {
	all := t.PodSet.Waits()
	for _, s := range t.asked {
		w := s.Waits()
		for actor, n := range w.Objects {
			all.Objects[actor] += n
			all.Acted[actor] = max(all.Acted[actor], w.Acted[actor])
		}
		for place, n := range w.Places {
			all.Places[place] += n
		}
	}
	return all
}

// AwaitGone implements Followed.
func (t together) AwaitGone(ctx context.Context) error {
	err := t.PodSet.AwaitGone(ctx)
	for _, s := range t.asked {
		err = errors.Join(err, s.AwaitGone(ctx))
	}
	return err
}

// Forget implements Followed.
func (t together) Forget() {
	t.PodSet.Forget()
	for _, s := range t.made {
		s.Forget()
	}
}
