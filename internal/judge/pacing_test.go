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

// A client that may send so many requests a second shows by how evenly what it
// does comes; what is even or spread for another reason is no limit.
func TestAClientsLimitIsRecognised(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for _, tt := range []struct {
		why       string
		pace      string
		created   func(i int) float64
		scheduled func(i int, created float64) float64
		want      string
	}{
		{"200 at once, 20 a second go on", "max", func(i int) float64 { return float64(i) / 500 },
			func(i int, _ float64) float64 { return float64(i+1)/20 + 0.001*rng.Float64() }, "about 20 requests a second"},
		{"a load that is slowed down as it comes", "max", func(i int) float64 { return float64(i)/500 + 0.35*max(float64(i)-100, 0)/20 },
			func(i int, _ float64) float64 { return float64(i+1)/20 + 0.001*rng.Float64() }, "about 20 requests a second"},
		{"one after the other, each meeting the next turn somewhere", "max", func(i int) float64 { return (float64(i) + rng.Float64()) / 10 },
			func(i int, _ float64) float64 { return float64(i+1)/10 + 0.001*rng.Float64() }, "about 10 requests a second"},
		{"the load itself comes evenly", "20/s", func(i int) float64 { return float64(i) / 20 },
			func(i int, created float64) float64 { return created + 0.002*rng.Float64() }, ""},
		{"as much time as it takes, which varies", "max", func(i int) float64 { return float64(i) / 500 },
			func(i int, created float64) float64 { return created + 0.5*rng.Float64() }, ""},
		{"a server that is just slow does not come evenly", "max", func(i int) float64 { return float64(i) / 500 },
			func(i int, created float64) float64 { return (float64(i) + 3*rng.ExpFloat64()) / 20 }, ""},
		{"each waits as long as the other", "max", func(i int) float64 { return float64(i) / 20 },
			func(i int, created float64) float64 { return created + 1 }, ""},
	} {
		s := newScript(t)
		spec := s.spec
		var err error
		if spec.Signatures, err = signature.Builtin(); err != nil {
			t.Fatal(err)
		}
		s.Builder = NewBuilder(spec)
		s.at(0).begin(10, func(b *record.StepEvent) { b.Pace = tt.pace })
		for i := range 200 {
			name := fmt.Sprintf("p%d", i)
			at := 1 + tt.created(i)
			s.at(at).asked(name)
			s.news(name + " Created")
			s.at(max(1+tt.scheduled(i, at-1), at)).news(name + " Scheduled ContainersStarted Ready")
		}
		s.at(60).end(record.EndHeld)
		r := s.finish(design.Sweep{Levels: []float64{10}})
		got := ""
		for _, d := range r.Diagnosis {
			got += d.Signature + ": " + d.Evidence
		}
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
