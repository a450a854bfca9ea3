package judge

import (
	"fmt"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// Times are grouped by the labels of objects, or of where they were, from one
// milestone to the other.
func TestTimesByLabel(t *testing.T) {
	kind := record.ObjectKind{
		Milestones: []record.Milestone{{Name: "Moving"}, {Name: "Migrated"}, {Name: "Deleted"}}, Placed: "Moving", There: "Migrated", Gone: "Deleted",
		GroupBy: &record.GroupBy{Labels: []string{"os", "zone", "none"}, From: "Moving", To: "Migrated", Places: map[string][]string{"n1": {"", "west", ""}, "n2": {"", "east", ""}}},
	}
	s := &script{Builder: NewBuilder(result.Spec{Kind: kind, Milestones: kind.Names(), Goals: goalsOf(t, "g=all Migrated")})}
	s.begin(1)
	s.asked("a b c d")
	move := func(at float64, name, node, os string) {
		s.at(at).put(&record.Object{Object: "ns/" + name, Milestone: "Moving", Place: node, Labels: []string{os, "", ""}})
	}
	move(1, "a", "n1", "rhel")
	move(1, "b", "n2", "rhel")
	move(2, "c", "n2", "fedora")
	s.at(3).news("a Migrated") // after 2 s
	s.at(5).news("b Migrated") // after 4 s; c never, and of d nothing is known
	step := s.at(20).end(record.EndStalled)

	var got []string
	for _, b := range step.Groups {
		for _, v := range b.Values {
			at := slices.Index(v.Counts, 1)
			got = append(got, fmt.Sprintf("%s=%s: %d, %d never, mean %v, Moving %d, in bin %d", b.Label, v.Value, v.Time.N, v.Time.Censored, known(v.Time.Mean), v.Latency["Moving"].N-v.Latency["Moving"].Censored, at))
		}
	}
	want := []string{
		"os=: 1, 1 never, mean never, Moving 0, in bin -1",
		"os=fedora: 1, 1 never, mean never, Moving 1, in bin -1",
		"os=rhel: 2, 0 never, mean 3, Moving 2, in bin 0",
		"zone=: 1, 1 never, mean never, Moving 0, in bin -1",
		"zone=east: 2, 1 never, mean never, Moving 2, in bin 23",
		"zone=west: 1, 0 never, mean 2, Moving 1, in bin 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if v := step.Groups[0].Figure("os=rhel mean"); v == nil || *v != 3 {
		t.Errorf("os=rhel mean: %v", known(v))
	}
	for _, none := range []string{"os=windows mean", "zone=west mean", "os=rhel first", "Migrated p50"} {
		if v := step.Groups[0].Figure(none); v != nil {
			t.Errorf("%s is %v: there is none", none, *v)
		}
	}
}

// Of a label with many values those that most objects have are kept.
func TestManyValues(t *testing.T) {
	const most = 12
	kind := record.ObjectKind{Milestones: []record.Milestone{{Name: "Ready"}}, There: "Ready", GroupBy: &record.GroupBy{Labels: []string{"app"}, To: "Ready"}}
	s := &script{Builder: NewBuilder(result.Spec{Kind: kind, Milestones: kind.Names(), Goals: goalsOf(t, "g=all Ready")})}
	s.begin(1)
	for i := range 2 * most {
		name := fmt.Sprintf("o%d", i)
		s.asked(name)
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Ready", Labels: []string{fmt.Sprintf("app-%02d", max(i, 3))}})
	}
	by := s.at(20).end(record.EndHeld).Groups[0]
	if len(by.Values) != most || by.Cut != 2*most-3-most || by.Values[0].Value != "app-03" || by.Values[0].Time.N != 4 {
		t.Errorf("%d values of which the first is %s of %d, %d cut", len(by.Values), by.Values[0].Value, by.Values[0].Time.N, by.Cut)
	}
	if n := by.Values[0].Counts; len(by.Edges) != len(n)+1 || n[0] == 0 {
		t.Errorf("times that are all alike: edges %v, counts %v", by.Edges, n)
	}
}

func known(v *float64) any {
	if v == nil {
		return "never"
	}
	return *v
}
