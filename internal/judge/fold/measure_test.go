package fold

import (
	"math/rand/v2"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
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

// What other programs used is the same each time a record is judged, in whichever
// order a map has its parts.
func TestWhatOthersUsedIsTheSameEachTime(t *testing.T) {
	by := make(map[string]*usage.StepUsage)
	for name, used := range map[string]float64{"etcd": 0.01, "kube-apiserver": 0.33, "kube-scheduler": 0.77, "self": 0.11, "simulated-nodes": 0.66, "kube-controller-manager": 0.66} {
		by[name] = &usage.StepUsage{Used: used}
	}
	first := -1.0
	for range 200 {
		others := addCPUs(new(result.Bottleneck), &usage.StepUsage{Used: 4.99, CPUs: 1, Span: 10}, by)
		if first < 0 {
			first = others
		}
		if others != first || others != 24.5 {
			t.Fatalf("others used %v%%, and before %v%%, want 24.5", others, first)
		}
	}
}
