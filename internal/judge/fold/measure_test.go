package fold

import (
	"math/rand/v2"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// inFlightSlowly looks at every instant at which a request was sent.
func inFlightSlowly(slots []*slot) int {
	most := 0
	for _, at := range slots {
		n := 0
		for _, s := range slots {
			if s.onRecord && s.outcome != record.SlotDropped && s.sent <= at.sent && at.sent < s.replied {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestInFlightAgreesWithASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var slots []*slot
		for range rng.IntN(20) {
			sent := record.Micros(rng.IntN(12))
			s := &slot{onRecord: true, sent: sent, replied: sent + record.Micros(rng.IntN(5)), outcome: record.SlotCreated}
			switch rng.IntN(8) {
			case 0:
				s.onRecord = false
			case 1:
				s.outcome = record.SlotDropped
			}
			slots = append(slots, s)
		}
		if got, want := inFlight(slots), inFlightSlowly(slots); got != want {
			t.Fatalf("inFlight = %d, want %d", got, want)
		}
	}
}
