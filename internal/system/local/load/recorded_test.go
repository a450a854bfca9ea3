package load

import (
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// What is kept in parts, and put together, is what sorting all of it gives.
func TestRecordedAreTheSlowest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		most, parts := 1+rng.IntN(20), 1+rng.IntN(3)
		sum := recorded{most: most}
		kept := make([]recorded, parts)
		var done, failed []record.Micros
		for i := range parts {
			kept[i].most = most
		}
		for i := range rng.IntN(200) {
			x := record.Request{Intended: record.Micros(i), Ended: record.Micros(i + rng.IntN(50))}
			if rng.IntN(4) == 0 {
				x.Failed, x.Ended = "reset", record.Micros(i)
				failed = append(failed, x.Ended)
			} else {
				done = append(done, x.Ended-x.Intended)
			}
			kept[rng.IntN(parts)].add(x)
		}
		for _, k := range kept {
			sum.merge(k)
		}
		slices.SortFunc(done, func(a, b record.Micros) int { return int(b - a) })
		for _, x := range []struct {
			want []record.Micros
			got  []record.Request
			key  func(record.Request) record.Micros
		}{
			{done, sum.slowest, func(x record.Request) record.Micros { return x.Ended - x.Intended }},
			{failed, sum.failed, func(x record.Request) record.Micros { return x.Ended }},
		} {
			want := x.want[:min(len(x.want), most)]
			var got []record.Micros
			for _, r := range x.got {
				got = append(got, x.key(r))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("of %d at most %d: %v, want %v", len(x.want), most, got, want)
			}
		}
	}
}
