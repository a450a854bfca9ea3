package report

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

func TestDataOfARun(t *testing.T) {
	in := read(t, scene{design: design.Search{From: 3, Step: 3, Max: 9, Resolution: 1, Need: 1, Of: 1}, places: 3, limit: 5, goals: []string{"ready=all Ready", "startup=ContainersStarted p99 <= 5s"}}.make(t))
	data, err := chart.Of(in.Recorded)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &parts); err != nil {
		t.Fatal(err)
	}
	delete(parts, "result") // result.json has golden files of its own
	text, err := json.MarshalIndent(parts, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	// Numbers of a list belong on one line.
	lists := regexp.MustCompile(`\[[-\d\s,.e]+\]`)
	text = lists.ReplaceAllFunc(text, func(list []byte) []byte { return regexp.MustCompile(`\s+`).ReplaceAll(list, nil) })
	golden.Check(t, *update, "data.json", append(text, '\n'))

	page := pageIn(t, in)
	for _, part := range []string{pageScript, pageStyle, pageIn(t, in)[strings.Index(page, `id="run">`)+9 : strings.Index(page, `</script>`)]} {
		page = strings.Replace(page, part, "...", 1)
	}
	page = regexp.MustCompile(`(id="packed">)[^<]*`).ReplaceAllString(page, "$1...")
	page = regexp.MustCompile(`sha256-[A-Za-z0-9+/=&#;]*&#39;`).ReplaceAllString(page, "sha256-...")
	golden.Check(t, *update, "page.html", []byte(page))
}

// What a chart shows of a step is what its result says.
func TestDistributionsAgreeWithTheResult(t *testing.T) {
	for _, s := range []scene{{design: search(), limit: 25, places: 20}, {design: design.Sweep{Levels: []float64{10, 20, 30, 40, 50}}, kind: "sweep", places: 20, open: true}} {
		distributionsAgree(t, s)
	}
}

func distributionsAgree(t *testing.T, s scene) {
	in := read(t, s.make(t))
	data, err := chart.Of(in.Recorded)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for m, list := range data.Distribution {
		for i, at := range list {
			if at < 0 {
				continue
			}
			l := in.Result.Steps[i].Latency[m]
			c := data.Curves[at]
			x, y := whole(c.X, c.Y)
			if c.N != l.N || len(y) > 0 && y[len(y)-1] != float64(l.N-l.Censored) {
				t.Errorf("%s of step %d: %v of %d, want %d of %d", m, i+1, y[len(y)-1:], c.N, l.N-l.Censored, l.N)
			}
			for _, q := range []struct {
				q    float64
				want *float64
			}{{0.5, l.P50}, {0.9, l.P90}, {0.95, l.P95}, {0.99, l.P99}} {
				k := slices.IndexFunc(y, func(v float64) bool { return v >= math.Ceil(q.q*float64(l.N)) })
				switch {
				case q.want == nil && k >= 0 || q.want != nil && k < 0:
					t.Errorf("%s p%g of step %d: at %d, want %v", m, 100*q.q, i+1, k, q.want)
				case q.want != nil && math.Abs(x[k]/1e6-*q.want) > 1.5e-6:
					t.Errorf("%s p%g of step %d: drawn at %.6f, the result says %.6f", m, 100*q.q, i+1, x[k]/1e6, *q.want)
				case q.want != nil:
					compared++
				}
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d quantiles compared", compared)
	}
}

// The course of a run ends each step at what the step's account says.
func TestProgressAgreesWithTheAccount(t *testing.T) {
	in := read(t, scene{design: search(), limit: 25, places: 20}.make(t))
	data, err := chart.Of(in.Recorded)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range data.Progress {
		end := data.Times[i][1] * 1e6
		at := func(dx, dy []int64) float64 {
			x, y := whole(dx, dy)
			k, _ := slices.BinarySearch(x, end-10)
			return y[min(k, len(y)-1)]
		}
		o := in.Result.Steps[i].Objects
		if at(p.Asked.X, p.Asked.Y) != float64(o.Intended) || at(p.There.X, p.There.Y) != float64(o.Ready) {
			t.Errorf("at the end of step %d %v of %v, want %d of %d", p.Step, at(p.There.X, p.There.Y), at(p.Asked.X, p.Asked.Y), o.Ready, o.Intended)
		}
	}
}

// whole is a curve as it is in a page, undone.
func whole(dx, dy []int64) (x, y []float64) {
	var a, b int64
	for i := range dx {
		a, b = a+dx[i], b+dy[i]
		x, y = append(x, float64(a)), append(y, float64(b))
	}
	return x, y
}

func TestMilestonesAreInOrder(t *testing.T) {
	in := read(t, scene{design: design.Sweep{Levels: []float64{2}}, kind: "sweep"}.make(t))
	for _, want := range [][]string{milestones[:4], nil} {
		data, err := chart.Of(in.Recorded)
		if got := data.Milestones; err != nil || len(got) != 4 || want != nil && !slices.Equal(got, want) {
			t.Errorf("milestones %v, want %v: %v", got, want, err)
		}
		in.Plan = nil
	}
}
