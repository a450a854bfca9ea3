package create

import (
	"maps"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// What a cycle is about comes round, and is never nothing or more than there is.
func TestWindowOfChurn(t *testing.T) {
	for _, tt := range []struct {
		why                         string
		n, percent, together, cycle int
		want                        []int
	}{
		{"the first", 10, 20, 1, 0, []int{0, 1}},
		{"those after them", 10, 20, 1, 1, []int{2, 3}},
		{"around the end", 3, 67, 1, 1, []int{0, 2}},
		{"at least one", 10, 1, 1, 12, []int{2}},
		{"all", 3, 100, 1, 5, []int{0, 1, 2}},
		{"one of one", 1, 50, 1, 3, []int{0}},
		{"those that share an object", 6, 20, 2, 1, []int{2, 3}},
		{"two groups of them", 9, 40, 3, 0, []int{0, 1, 2}},
		{"no more than there are", 7, 100, 2, 0, []int{0, 1, 2, 3, 4, 5}},
		{"fewer than share one", 2, 50, 5, 1, []int{1}},
	} {
		if got := window(tt.n, tt.percent, tt.together, tt.cycle); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.why, got, tt.want)
		}
	}
	c := churning{job: &kubeburner.Job{ChurnConfig: kubeburner.ChurnConfig{Percent: 50}, Objects: []kubeburner.Object{{Churn: true}, {}, {Churn: true}}}, cycle: 1}
	for i := range 3 {
		for object, replicas := range []int{2, 1, 1} {
			for r := 1; r <= replicas; r++ {
				c.of.slots = append(c.of.slots, PlannedSlot{Slot: kubeburner.Slot{Object: object, Iteration: i, Replica: r, Namespace: "ns"}})
			}
		}
	}
	// Half of the six of one entry and one of the three of another, after those of the first cycle.
	want := map[[3]int]bool{{0, 1, 2}: true, {0, 2, 1}: true, {0, 2, 2}: true, {2, 1, 1}: true}
	if got := c.objects(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	job := kubeburner.Job{Name: "a", Namespace: "a", ChurnConfig: kubeburner.ChurnConfig{Cycles: 1, Percent: 10, Mode: "namespaces"}}
	if churns(&job) == nil {
		t.Error("one namespace of all iterations is to churn")
	}
	if job.NamespacedIterations = true; churns(&job) != nil {
		t.Error("namespaces of iterations may not churn")
	}
}
