package judge

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// volumes are objects of another kind than pods: there is no word of pods in
// what is judged of them.
func volumes() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "volume", Many: "volumes"}, Place: record.Noun{One: "brick", Many: "bricks"},
		Milestones: []record.Milestone{{Name: "Asked", Owner: "manager"}, {Name: "Online", Owner: "bricks"}, {Name: "Purged", Owner: "bricks"}},
		Created:    "Asked", There: "Online", Gone: "Purged", Unplaced: "NoBrick", Removing: "Purging",
		Troubles: []record.Trouble{
			{Class: "quorum", What: "a quorum was lost", Reasons: []string{"Quorum"}, Message: []string{"lost"}},
			{Class: "healing", What: "files were healed", Reasons: []string{"Quorum", "Heal"}},
		},
	}
}

func TestAnotherKindOfObject(t *testing.T) {
	kind := volumes()
	s := &script{Builder: NewBuilder(result.Spec{Kind: kind, Milestones: kind.Names(), Goals: goalsOf(t, "g=all Online")})}
	s.begin(1)
	s.asked("a b c d e")
	s.at(1).news("a Asked, b Asked, c Asked, d Asked, e Asked")
	s.at(3).news("a Online, b Online, c Online")
	s.at(4).put(&record.TargetEvent{Object: "ns/b", Reason: "Quorum", Message: "met again"})
	s.at(5).put(&record.TargetEvent{Object: "ns/b", Reason: "Quorum", Message: "it was lost"})
	s.at(6).state("c", "Purging", "", func(x *record.State) { x.Lost = "Online" })
	s.at(7).news("c Purged")
	for _, name := range []string{"d", "e"} {
		s.at(8).state(name, "NoBrick", "none is free", func(x *record.State) { x.Place = "brick-" + name })
	}
	c := s.at(20).end(record.EndStalled, func(b *record.StepEvent) { b.Places = 3 })
	if got := inOrder(c.Breaches); got != "4 healing 1, 5 quorum 1, 6 deleted 1, 6 missing* 3" {
		t.Error(got)
	}
	if c.Objects != (result.Objects{Intended: 5, Created: 5, Ready: 2, NeverReady: 3}) || whyNot(c) != "2 NoBrick on 2 of 3, 1 Purged" {
		t.Errorf("%+v, %s", c.Objects, whyNot(c))
	}
	if l := c.Latency; len(l) != 2 || *l["Online"].P50 != 3 || l["Online"].Censored != 2 {
		t.Errorf("latencies %+v", l)
	}
	for _, w := range c.Bottleneck.Waits {
		if want := map[string]string{"Asked": "manager", "Online": "bricks"}[w.To]; w.For != want {
			t.Errorf("the wait for %s is for the %s, want %s", w.To, w.For, want)
		}
	}
	search := design.Search{From: 1, Step: 1, Max: 2, Resolution: 1, Need: 1, Of: 1}
	r := s.finish(search)
	if r.LoadLine.Binding != "NoBrick on 2 of 3 bricks" || r.Arrived != "Online" || r.ObjectKind.Object.Many != "volumes" {
		t.Errorf("bound by %q, there at %s, kind %+v", r.LoadLine.Binding, r.Arrived, r.ObjectKind)
	}
}
