package create

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// What a cycle is about comes round, and is never nothing or more than there is.
func TestWindowOfChurn(t *testing.T) {
	for _, tt := range []struct {
		why               string
		n, percent, cycle int
		want              []int
	}{
		{"the first", 10, 20, 0, []int{0, 1}},
		{"those after them", 10, 20, 1, []int{2, 3}},
		{"around the end", 3, 67, 1, []int{0, 2}},
		{"at least one", 10, 1, 12, []int{2}},
		{"all", 3, 100, 5, []int{0, 1, 2}},
		{"one of one", 1, 50, 3, []int{0}},
	} {
		if got := window(tt.n, tt.percent, tt.cycle); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.why, got, tt.want)
		}
	}
	job := kubeburner.Job{Name: "a", Namespace: "a", ChurnConfig: kubeburner.ChurnConfig{Cycles: 1, Percent: 10, Mode: "namespaces"}}
	if churns(&job) == nil {
		t.Error("one namespace of all iterations is to churn")
	}
	if job.NamespacedIterations = true; churns(&job) != nil {
		t.Error("namespaces of iterations may not churn")
	}
}
