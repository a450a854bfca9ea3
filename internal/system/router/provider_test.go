package router

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// Where a plan says how TLS is to be and not where it ends, there must be some.
func TestTLSThatIsAskedFor(t *testing.T) {
	with := func(text string) plan.Params { return plan.Params{text: "x"} }
	for _, c := range []struct {
		why    string
		params plan.Params
		arms   []plan.Params
		want   bool
	}{
		{"nothing of it is said", with("routes"), nil, false},
		{"for all", with("tlsVersion"), nil, true},
		{"of one arm", nil, []plan.Params{with("routes"), with("resumption")}, true},
		{"and where it ends", with("termination"), []plan.Params{with("resumption")}, false},
		{"and of another arm where it ends", with("certificate"), []plan.Params{with("termination")}, false},
	} {
		p := &plan.Plan{Params: c.params}
		for _, params := range c.arms {
			p.Arms = append(p.Arms, plan.Arm{Params: params})
		}
		if got := (&session{Session: local.Session{Request: system.Request{Plan: p}}}).asksForTLS(); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

// What others use of the processors is not the generator's, unless nothing is
// known of what it wanted.
func TestShareOfProcessors(t *testing.T) {
	was := gauges{busy: map[int]float64{0: 10, 1: 20}}
	g := gauges{busy: map[int]float64{0: 12, 1: 21}}
	for _, c := range []struct {
		why  string
		own  float64
		cpus []int
		want float64
	}{
		{"it wanted all of it", 5, []int{0}, 1},
		{"it wanted a quarter", 0.5, []int{0}, 0.25},
		{"what it wanted is unknown", 0, []int{0}, 1},
		{"a half of one of them", 1, []int{1}, 0.5},
		{"any processor", 5, nil, 0.75},
	} {
		if got := g.share(was, c.own, c.cpus, []int{0, 1}, 2); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}
