package chart

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// heightAt returns a curve's height before and after a place: two values at a jump.
func heightAt(t *testing.T, curve []vertex, x float64, axis func(float64) float64) (lo, hi float64) {
	t.Helper()
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := 1; i < len(curve); i++ {
		a, b := curve[i-1], curve[i]
		if x < a.x || x > b.x {
			continue
		}
		at := []float64{a.y, b.y}
		if b.x > a.x && axis(b.x) > axis(a.x) {
			at = []float64{a.y + (b.y-a.y)*(axis(x)-axis(a.x))/(axis(b.x)-axis(a.x))}
		}
		lo, hi = min(lo, slices.Min(at)), max(hi, slices.Max(at))
	}
	return lo, hi
}

// Nowhere is a thinned distribution further from the whole one than it says,
// on a linear axis and on a logarithmic one.
func TestThinningIsNotSeen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 7, 50, 333, 1000, 5000, 20_000} {
		for kind, draw := range map[string]func() float64{
			"lognormal": func() float64 { return 3e5 * math.Exp(0.8*rng.NormFloat64()) },
			"uniform":   func() float64 { return 5e5 + 1e6*rng.Float64() },
			"two":       func() float64 { return []float64{3e5, 2e6}[rng.IntN(2)] * (1 + 0.05*rng.NormFloat64()) },
			"seconds":   func() float64 { return 1e6 * float64(rng.IntN(7)) },
			"at once":   func() float64 { return 0 },
		} {
			values := make([]int64, n)
			for i := range values {
				values[i] = int64(max(draw(), 0))
			}
			slices.Sort(values)
			for _, asked := range []int{n, n + n/50 + 1} {
				what := fmt.Sprintf("%d of %d %s", n, asked, kind)
				d := distributionOf(values, asked, maxVertices)
				x, y := sums(d.X), sums(d.Y)
				if len(x) > maxVertices+20 {
					t.Errorf("%s: %d vertices", what, len(x))
				}
				if d.Took > 0.02 {
					t.Errorf("%s: took %v", what, d.Took)
				}
				full, thinned := []vertex{}, make([]vertex, len(x))
				for i := 0; i < n; i++ {
					full = append(full, vertex{float64(values[i]), float64(i)}, vertex{float64(values[i]), float64(i + 1)})
				}
				for i := range x {
					thinned[i] = vertex{float64(x[i]), float64(y[i])}
				}
				if thinned[len(thinned)-1] != full[len(full)-1] || thinned[0] != full[0] {
					t.Errorf("%s: ends at %v and %v, want %v and %v", what, thinned[0], thinned[len(thinned)-1], full[0], full[len(full)-1])
				}
				for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
					k := int(math.Ceil(q*float64(asked) - 1e-9*float64(asked)))
					if k > n {
						continue
					}
					at := slices.IndexFunc(y, func(y int64) bool { return y >= int64(k) })
					if at < 0 || x[at] != values[k-1] {
						t.Errorf("%s: p%g is not where it was", what, 100*q)
					}
				}
				allowed := (d.Took+0.5e-5)*float64(asked) + 1e-6 // a page tells it to five digits
				for axis, u := range map[string]func(float64) float64{"linear": func(x float64) float64 { return x }, "logarithmic": logarithm} {
					for i := 0; i < len(full); i += 1 + len(full)/400 {
						x := full[i].x
						lo, hi := heightAt(t, full, x, u)
						a, b := heightAt(t, thinned, x, u)
						if len(thinned) > 1 && (a > hi+allowed || b < lo-allowed || math.IsInf(a, 0)) {
							t.Fatalf("%s on a %s axis: at %g the curve is at %g to %g, the thinned one at %g to %g, allowed %g", what, axis, x, lo, hi, a, b, allowed)
						}
					}
				}
			}
		}
	}
}

// sums undoes what differences did.
func sums(list []int64) []int64 {
	out := make([]int64, len(list))
	last := int64(0)
	for i, d := range list {
		last += d
		out[i] = last
	}
	return out
}

// unpacked undoes what pack did, value by value, in the plainest way.
func unpacked(t *testing.T, p *Packed) map[string][]any {
	t.Helper()
	deflated, err := base64.StdEncoding.DecodeString(p.Text)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(flate.NewReader(bytes.NewReader(deflated)))
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(data)
	unsigned := func() uint64 {
		v, err := binary.ReadUvarint(r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	signed := func(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
	table := make(map[string][]any)
	before := make([]int64, p.Rows)
	first := true
	for _, c := range p.Columns {
		last, word := int64(0), ""
		for row := range p.Rows {
			var v any
			switch c.Kind {
			case "word":
				v = c.Words[unsigned()]
			case "number":
				v = signed(unsigned())
			case "name":
				same := unsigned()
				rest := make([]byte, unsigned())
				if _, err := io.ReadFull(r, rest); err != nil {
					t.Fatal(err)
				}
				word = word[:same] + string(rest)
				v = word
			case "time":
				if first {
					before[row] = last
				}
				if d := unsigned(); d > 0 {
					before[row] += signed(d - 1)
					last = before[row]
					v = before[row] * p.Unit
				}
			}
			table[c.Name] = append(table[c.Name], v)
		}
		first = first && c.Kind != "time"
	}
	if r.Len() > 0 {
		t.Errorf("%d bytes are left", r.Len())
	}
	return table
}

func TestPackedObjectsComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 3000
	o := &objects.Table{Rows: n}
	name := objects.Column{Name: "slot"}
	node := objects.Column{Name: "node", Words: []string{"", "näh-1", "</script>"}}
	step, planted := objects.Column{Name: "step"}, objects.Column{Name: "planted_delay_us"}
	sent, ready, created := objects.Column{Name: "sent_us"}, objects.Column{Name: "Ready_us"}, objects.Column{Name: "Created_us"}
	for i := range n {
		name.Words = append(name.Words, fmt.Sprintf("ns-%d/pod-%x-ü", i/100, rng.IntN(1e6)))
		name.Texts = append(name.Texts, int32(i))
		node.Texts = append(node.Texts, int32(rng.IntN(3)))
		step.Numbers = append(step.Numbers, int64(i/1000)-1)
		planted.Numbers = append(planted.Numbers, int64(rng.IntN(1e6)))
		at := int64(i*1000 + rng.IntN(5000))
		sent.Numbers = append(sent.Numbers, []int64{at, -1}[rng.IntN(2)])
		created.Numbers = append(created.Numbers, []int64{at + 10, objects.Null, at - 10}[rng.IntN(3)])
		ready.Numbers = append(ready.Numbers, []int64{at + int64(rng.IntN(1e9)), objects.Null}[rng.IntN(2)])
	}
	o.Columns = []objects.Column{ready, name, node, step, planted, created, sent}
	for _, unit := range []int64{1, 100, 1000} {
		p, err := packIn(o, unit, observe.Pods().Names())
		if err != nil {
			t.Fatal(err)
		}
		table := unpacked(t, p)
		for _, c := range o.Columns {
			for row := range n {
				var want any
				switch {
				case c.Texts != nil:
					want = c.Words[c.Texts[row]]
				case !strings.HasSuffix(c.Name, "_us"):
					want = c.Numbers[row]
				case c.Name == "planted_delay_us":
					want = c.Numbers[row] / unit
				case c.Numbers[row] >= 0:
					want = c.Numbers[row] / unit * unit
				}
				if table[c.Name][row] != want {
					t.Fatalf("unit %d: %s of row %d is %v, want %v", unit, c.Name, row, table[c.Name][row], want)
				}
			}
		}
	}
}

func TestBoundsOfGoals(t *testing.T) {
	r := result.Result{Goals: []result.GoalResult{
		{Name: "a", SLO: []string{"all Ready", "Ready p99.9 <= 2s", "errors < 1%"}, Verdict: slo.Pass},
		{Name: "b", SLO: []string{"all ContainersStarted within 500ms", "not an objective"}},
	}}
	want := []Bound{{"a", "Ready p99.9 <= 2s", "Ready", 0.999, 2}, {"b", "all ContainersStarted within 500ms", "ContainersStarted", 1, 0.5}}
	if got := boundsOf(r); !slices.Equal(got, want) {
		t.Errorf("bounds %+v, want %+v", got, want)
	}
}
