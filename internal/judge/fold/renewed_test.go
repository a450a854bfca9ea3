package fold

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// Pods that a roll-out of the run's own replaces are not missed, and no more of them are excused than it replaces.
func TestRenewedSlots(t *testing.T) {
	spec := &result.Spec{}
	spec.Kind = record.ObjectKind{Created: "Created", There: "Ready", Gone: "Deleted"}
	for _, tt := range []struct {
		why            string
		renewed        bool
		pods, replaced int
		removed        bool
	}{
		{"a roll-out", true, 4, 0, true},
		{"a roll-out, and one more that somebody deleted", true, 5, 1, true},
		{"somebody deleted them", false, 4, 2, false},
	} {
		c := newObjects(spec)
		c.begin(2)
		c.addSlot(1, false, &record.Slot{Slot: "ns/d", Units: 2, Grouped: true, Outcome: record.SlotCreated})
		if tt.renewed {
			c.release(&record.Release{Slots: []string{"ns/d", "unknown"}, Renewed: true})
		}
		for i := range tt.pods {
			name := "ns/d-" + string(rune('a'+i))
			c.addObject(record.Event{T: record.Micros(i), Step: 1}, &record.Object{Object: name, Slot: "ns/d", Milestone: "Created"})
			c.addObject(record.Event{T: record.Micros(i), Step: 1}, &record.Object{Object: name, Slot: "ns/d", Milestone: "Ready"})
			if i < tt.pods-2 {
				_, removed, _ := c.addState(record.Event{T: 9}, &record.State{Object: name, Slot: "ns/d", Lost: "Ready", Reason: "Deleting"})
				if removed != tt.removed {
					t.Errorf("%s: the run has them removed: %v", tt.why, removed)
				}
			}
		}
		s := c.place.byName["ns/d"]
		filled := s.filling()
		if tt.renewed && (len(filled) != 2 || !filled[0].there || !filled[1].there) {
			t.Errorf("%s: old pods fill it", tt.why)
		}
		f := &Facts{}
		f.head.ID = 1
		if c.end(f); f.Replaced != tt.replaced {
			t.Errorf("%s: %d replaced, want %d", tt.why, f.Replaced, tt.replaced)
		}
	}
}

// A machine that is not to run yet fills a place of nobody, and replaces nothing.
func TestASlotWithoutUnits(t *testing.T) {
	spec := &result.Spec{}
	spec.Kind = record.ObjectKind{Created: "Created", There: "Ready", Gone: "Deleted"}
	c := newObjects(spec)
	c.begin(2)
	c.addSlot(1, false, &record.Slot{Slot: "VirtualMachine/ns/m", Outcome: record.SlotCreated})
	c.addObject(record.Event{T: 1, Step: 1}, &record.Object{Object: "VirtualMachine/ns/m", Slot: "VirtualMachine/ns/m", Milestone: "Created"})
	f := &Facts{}
	f.head.ID = 1
	if c.end(f); f.Replaced != 0 {
		t.Errorf("%d replaced", f.Replaced)
	}
}
