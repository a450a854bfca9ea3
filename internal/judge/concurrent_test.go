package judge

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// What is between two milestones at once is counted in all and by place, and
// held against the target's limits.
func TestConcurrent(t *testing.T) {
	tests := []struct {
		why             string
		limit, perPlace int
		play            func(s *script)
		want            result.Concurrent
		breach          string
	}{
		{"one that ends as another begins does not go on with it", 2, 2, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(2).moving("b", "n2")
			s.at(3).news("a Migrated")
			s.at(3).moving("c", "n1")
			s.at(4).news("b Migrated, c Migrated")
		}, result.Concurrent{Most: 2, PerPlace: 1, Place: "n1"}, ""},
		{"one that never ends goes on", 2, 0, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(2).moving("b", "n1")
			s.at(3).moving("c", "n2")
		}, result.Concurrent{Most: 3, PerPlace: 2, Place: "n1"}, "3 objects were between Moving and Migrated at once, more than the target's own limit of 2"},
		{"a limit of one place alone", 5, 1, func(s *script) {
			s.at(1).moving("a", "n2")
			s.at(2).moving("b", "n2")
		}, result.Concurrent{Most: 2, PerPlace: 2, Place: "n2"}, "2 objects of n2 were between"},
		{"one that had a trouble is left out", 1, 1, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(2).state("a", "Stuck", "")
			s.at(3).moving("b", "n1")
			s.at(4).news("a Migrated, b Migrated")
		}, result.Concurrent{Most: 1, PerPlace: 1, Place: "n1", LeftOut: 1}, ""},
		{"limits that are unknown", 0, 0, func(s *script) { s.at(1).moving("a", "n1") }, result.Concurrent{Most: 1, PerPlace: 1, Place: "n1"}, ""},
		{"nothing moved", 1, 1, func(*script) {}, result.Concurrent{}, ""},
	}
	for _, tt := range tests {
		kind := record.ObjectKind{
			Object: record.Noun{One: "machine", Many: "machines"}, Place: record.Noun{One: "node", Many: "nodes"},
			Milestones: []record.Milestone{{Name: "Moving"}, {Name: "Migrated"}, {Name: "Deleted"}}, Placed: "Moving", There: "Migrated", Gone: "Deleted",
			Concurrent: &record.Concurrent{From: "Moving", To: "Migrated", Limit: tt.limit, PerPlaceLimit: tt.perPlace},
		}
		s := &script{Builder: NewBuilder(result.Spec{Kind: kind, Milestones: kind.Names(), Goals: goalsOf(t, "g=all Migrated")})}
		s.begin(1)
		s.asked("a b c")
		tt.play(s)
		step := s.at(20).end(record.EndStalled)
		tt.want.Concurrent = *kind.Concurrent
		if *step.Concurrent != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.why, *step.Concurrent, tt.want)
		}
		warned := ""
		for _, w := range s.finish(design.Sweep{Levels: []float64{1}}).Warnings {
			if w.Kind == record.WarningLimit {
				warned = w.Text
			}
		}
		if !strings.HasPrefix(warned, tt.breach) || (warned == "") != (tt.breach == "") {
			t.Errorf("%s: warned %q, want %q", tt.why, warned, tt.breach)
		}
	}
}

// moving lets an object move away from a place.
func (s *script) moving(name, place string) {
	s.put(&record.Object{Object: "ns/" + name, Milestone: "Moving", Place: place})
}

// A limit is named that was in use while others waited for it, and no other.
func TestConcurrentLimitsBind(t *testing.T) {
	tests := []struct {
		why             string
		limit, perPlace int
		play            func(s *script)
		bound           string
	}{
		{"two at once of four, and the others wait", 2, 2, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(1).moving("b", "n2")
			s.at(6).news("a Migrated, b Migrated")
			s.at(6).moving("c", "n1")
			s.at(6).moving("d", "n2")
			s.at(11).news("c Migrated, d Migrated")
		}, "all"},
		{"one at once of each node", 3, 1, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(4).news("a Migrated")
			s.at(4).moving("b", "n1")
			s.at(7).news("b Migrated")
			s.at(7).moving("c", "n1")
			s.at(10).news("c Migrated")
			s.at(10).moving("d", "n1")
		}, "place"},
		{"all begin at once: the limit is reached and nobody waits", 4, 4, func(s *script) {
			for _, name := range []string{"a", "b", "c", "d"} {
				s.at(1).moving(name, "n1")
			}
			s.at(18).news("a Migrated, b Migrated, c Migrated, d Migrated")
		}, ""},
		{"they wait for something else", 2, 2, func(s *script) {
			s.at(1).moving("a", "n1")
			s.at(2).news("a Migrated")
			s.at(9).moving("b", "n1")
			s.at(9).moving("c", "n2")
			s.at(10).news("b Migrated, c Migrated")
			s.at(17).moving("d", "n1")
		}, ""},
		{"limits that are unknown", 0, 0, func(s *script) { s.at(9).moving("a", "n1") }, ""},
	}
	for _, tt := range tests {
		kind := record.ObjectKind{
			Object: record.Noun{One: "machine", Many: "machines"}, Place: record.Noun{One: "node", Many: "nodes"},
			Milestones: []record.Milestone{{Name: "Moving"}, {Name: "Migrated"}, {Name: "Deleted"}}, Placed: "Moving", There: "Migrated", Gone: "Deleted",
			Concurrent: &record.Concurrent{From: "Moving", To: "Migrated", Limit: tt.limit, PerPlaceLimit: tt.perPlace, Setting: "all", PerPlaceSetting: "place"},
		}
		s := &script{Builder: NewBuilder(result.Spec{Kind: kind, Milestones: kind.Names(), Goals: goalsOf(t, "g=all Migrated")})}
		s.begin(1)
		s.asked("a b c d")
		tt.play(s)
		step, bound := s.at(20).end(record.EndStalled), ""
		if b := step.Bottleneck.Bound(); b != nil {
			bound = b.Name
		}
		if bound != tt.bound {
			t.Errorf("%s: %q bound of %+v", tt.why, bound, step.Bottleneck.Bounds)
		}
	}
}
