package judge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// What serves one at a time shows by how evenly what it does comes, and a limit is
// named only where its own figures say that it was in use while others waited: the
// spacing is the same, whatever was planted.
func TestWhatServesOneAtATime(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	at20 := func(i int, _ float64) float64 { return float64(i+1)/20 + 0.001*rng.Float64() }
	once := func(i int) float64 { return float64(i) / 500 }
	const unknown = "one-at-a-time: objects came evenly, one by one: …Scheduled came every 50ms"
	for _, tt := range []struct {
		why       string
		pace      string
		created   func(i int) float64
		scheduled func(i int, created float64) float64
		use       float64 // of a limit of the scheduler's, of 20
		waiting   float64 // for it
		by        string  // whose it is
		waited    float64 // seconds, by requests of the scheduler for its client's limit, in all
		want      string  // the diagnosis in part, or in parts
	}{
		{"200 at once, 20 a second go on, and nothing says why", "max", once, at20, 0, 0, "", 0, unknown + "…about 20/s"},
		{"the client's limit: requests waited for it", "max", once, at20, 0, 0, "", 1000, "client-limit: …kube-scheduler's client (200 requests waited 5s for it"},
		{"another cause: requests hardly waited for the client's limit", "max", once, at20, 0, 0, "", 2, unknown},
		{"the target's own limit, in use while others waited", "max", once, at20, 19, 60, "scheduler", 0, "client-limit: …a limit of requests (95% of it used, 60 waited on average)"},
		{"another cause: that limit at 4%, and none waited", "max", once, at20, 0.8, 0, "scheduler", 0, unknown},
		{"another cause: that limit was in use, and nobody waited for it", "max", once, at20, 19, 0, "scheduler", 0, unknown},
		{"another cause: many waited for a limit that was not used up", "max", once, at20, 4, 60, "scheduler", 0, unknown},
		{"another cause: a limit of others was in use", "max", once, at20, 19, 60, "guest", 0, unknown},
		{"a load that is slowed down as it comes", "max", func(i int) float64 { return float64(i)/500 + 0.35*max(float64(i)-100, 0)/20 }, at20, 0, 0, "", 0, "about 20/s"},
		{"one after the other, each meeting the next turn somewhere", "max", func(i int) float64 { return (float64(i) + rng.Float64()) / 10 },
			func(i int, _ float64) float64 { return float64(i+1)/10 + 0.001*rng.Float64() }, 0, 0, "", 0, "about 10/s"},
		{"the load itself comes evenly", "20/s", func(i int) float64 { return float64(i) / 20 },
			func(i int, created float64) float64 { return created + 0.002*rng.Float64() }, 0, 0, "", 0, ""},
		{"as much time as it takes, which varies", "max", once,
			func(i int, created float64) float64 { return created + 0.5*rng.Float64() }, 0, 0, "", 0, ""},
		{"a server that is just slow does not come evenly", "max", once,
			func(i int, created float64) float64 { return (float64(i) + 3*rng.ExpFloat64()) / 20 }, 0, 0, "", 0, ""},
		{"each waits as long as the other", "max", func(i int) float64 { return float64(i) / 20 },
			func(i int, created float64) float64 { return created + 1 }, 0, 0, "", 0, ""},
	} {
		s := newScript(t)
		spec := s.spec
		var err error
		if spec.Signatures, err = signature.Builtin(); err != nil {
			t.Fatal(err)
		}
		if tt.by != "" {
			spec.Kind.Bounds = []record.Bound{{Name: "limit", What: "a limit of requests", Source: "limits", Value: "use", Limit: "limit", Full: 0.8, Waiting: "waiting", By: tt.by}}
		}
		s.Builder = NewBuilder(spec)
		waits := func(n uint64, sum float64) {
			s.put(&record.ComponentHistogram{Source: "kube-scheduler", Name: record.ClientWaits, Count: n, Sum: sum})
		}
		waits(7, 1)
		s.at(0).begin(10, func(b *record.StepEvent) { b.Pace = tt.pace })
		for i := range 10 {
			s.at(float64(i+1) / 10).put(&record.Reading{Source: "limits", Values: map[string]float64{"use": tt.use, "limit": 20, "waiting": tt.waiting}})
		}
		for i := range 200 {
			name := fmt.Sprintf("p%d", i)
			at := 1 + tt.created(i)
			s.at(at).asked(name)
			s.news(name + " Created")
			s.at(max(1+tt.scheduled(i, at-1), at)).news(name + " Scheduled ContainersStarted Ready")
		}
		if tt.waited > 0 {
			waits(207, 1+tt.waited)
		}
		s.at(60).end(record.EndHeld)
		r := s.finish(design.Sweep{Levels: []float64{10}})
		got := ""
		for _, d := range r.Diagnosis {
			got += d.Signature + ": " + d.Evidence + "\n"
		}
		for part := range strings.SplitSeq(tt.want, "…") {
			if tt.want == "" && got != "" || !strings.Contains(got, part) || strings.Count(got, "\n") > 1 {
				t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
			}
		}
	}
}
