package plan

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// A plan's fingerprint outlives the file, and changes with the conditions that
// its steps are made under, and with nothing else.
func TestFingerprint(t *testing.T) {
	w := nodeDensity(t)
	fingerprint := func(p *Plan) string {
		t.Helper()
		f, err := p.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := func() *Plan {
		p := parsed(t, head+"params: {image: a, namespacesPer: 7}\nguards: {nodesNotReady: 1, pending: 30}\nseed: 5\n")
		p.Default(w)
		return p
	}
	want := fingerprint(base())
	text, err := base().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if got := fingerprint(parsed(t, string(text))); got != want {
		t.Errorf("written and read again it is %s, not %s", got, want)
	}
	for _, c := range []struct {
		why    string
		change func(*Plan)
		same   bool
	}{
		{"nothing", func(*Plan) {}, true},
		{"the name", func(p *Plan) { p.Name = "x" }, true},
		{"the budget", func(p *Plan) { p.Budget = Duration(time.Hour) }, true},
		{"how far the search may go", func(p *Plan) { p.Axis.Search.Max = 500 }, true},
		{"the order of the parameters", func(p *Plan) { p.Params = Params{"namespacesPer": "7", "image": "a"} }, true},
		{"the workload", func(p *Plan) { p.Workload = "./mine" }, false},
		{"a parameter", func(p *Plan) { p.Params["image"] = "b" }, false},
		{"the target", func(p *Plan) { p.Target = raw(t, "labName: l") }, false},
		{"the lab's nodes", func(p *Plan) { p.Target = p.Target.With("lab.nodes", strictyaml.Word("11")) }, false},
		{"the order of what a target is", func(p *Plan) { p.Target = raw(t, "lab: {maxPods: 110, nodes: 10}") }, true},
		{"the axis", func(p *Plan) { p.Axis.Name = "rate" }, false},
		{"the life of a pod", func(p *Plan) { p.Axis.Life = Duration(time.Minute) }, false},
		{"the pace", func(p *Plan) { p.Pace = Pace{Max: true} }, false},
		{"the hold", func(p *Plan) { p.Hold = Duration(time.Second) }, false},
		{"the step timeout", func(p *Plan) { p.StepTimeout = Duration(time.Second) }, false},
		{"a guard", func(p *Plan) { p.Guards["pending"] = Bound{Value: 31} }, false},
		{"the seed", func(p *Plan) { p.Seed = 6 }, false},
	} {
		p := base()
		c.change(p)
		if got := fingerprint(p); (got == want) != c.same {
			t.Errorf("%s: %s, before %s", c.why, got, want)
		}
	}
}
