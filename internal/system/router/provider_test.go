package router

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/workloads"
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

func TestShardsThatCannotBe(t *testing.T) {
	template := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(template, []byte("global\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Load(workloads.FS(), "router", func(string) (workload.Target, error) { return Provider{}.Declare(), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		params map[string]string
		says   string // "" for no error
	}{
		{"a route for each", map[string]string{"shards": "2", "routes": "2"}, ""},
		{"fewer routes", map[string]string{"shards": "2", "routes": "1"}, "2 HAProxies share 1 routes"},
		{"fewer routes under load", map[string]string{"shards": "2", "routes": "3", "termination": "edge+none+passthrough"}, "share 1 routes"},
		{"a template", map[string]string{"shards": "2", "template": template}, "a template is for one HAProxy"},
	} {
		params, err := w.Resolve(c.params)
		if err == nil {
			_, err = settingsOf(params, limits{handles: 1 << 20, cpus: []int{0, 1}})
		}
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.why, err, c.says)
		}
	}
}
