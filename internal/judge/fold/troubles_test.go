package fold

import (
	"strconv"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// Warnings of one kind that name ever more objects do not fill the memory.
func TestWarningsAreBounded(t *testing.T) {
	c := newTroubles(record.NewKnownTroubles(&record.ObjectKind{}), false)
	for i := range maxEventObjects + 10 {
		c.addEvent(0, &record.TargetEvent{Object: "ns/" + strconv.Itoa(i), Type: "Warning", Reason: "R", Message: "m"})
	}
	g := c.warnings[eventKey{"R", "m"}]
	if g.count != maxEventObjects+10 || len(g.objects) != maxEventObjects {
		t.Errorf("%d warnings about %d objects", g.count, len(g.objects))
	}
}
