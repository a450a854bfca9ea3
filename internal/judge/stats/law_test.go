package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/combin"
)

// near reports whether a figure is a published one to the digits published.
func near(t *testing.T, what string, got, want, half float64) {
	t.Helper()
	if !(math.Abs(got-want) <= half) {
		t.Errorf("%s = %.10g, published as %.10g", what, got, want)
	}
}

// norris is data of NIST's Statistical Reference Datasets, calibration of
// ozone monitors, of which NIST certifies the line.
func norris() (x, y []float64) {
	return []float64{
			0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5, 11.6,
			556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5,
		}, []float64{
			0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9, 10.8,
			557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2,
		}
}

func TestLineAgainstNIST(t *testing.T) {
	x, y := norris()
	l, err := FitLine(x, y, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Norris slope", l.Slope.Value, 1.00211681802045, 1e-13)
	near(t, "Norris intercept", l.Intercept.Value, -0.262323073774029, 1e-11)
	near(t, "Norris residual deviation", l.SD, 0.884796396144373, 1e-12)
	t34 := studentQuantile(0.975, 34)
	near(t, "Norris error of the slope", (l.Slope.Hi-l.Slope.Lo)/2/t34, 0.429796848199937e-3, 1e-14)
	near(t, "Norris error of the intercept", (l.Intercept.Hi-l.Intercept.Lo)/2/t34, 0.232818234301152, 1e-12)
	if l.Wrong != "" {
		t.Errorf("Norris: %s", l.Wrong)
	}

	// Load cells: NIST certifies a curve of second degree, with the error of
	// its last coefficient. It is bent beyond doubt, and hardly at all.
	y = []float64{
		0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487, 0.98292, 1.09146, 1.20001, 1.30822, 1.41599,
		1.52399, 1.63194, 1.73947, 1.84646, 1.95392, 2.06128, 2.16844, 0.11052, 0.22018, 0.32939, 0.43886, 0.54798, 0.65739,
		0.76596, 0.87474, 0.98300, 1.09150, 1.20004, 1.30818, 1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829,
	}
	x = make([]float64, len(y))
	for i := range x {
		x[i] = float64(i%20+1) * 150000
	}
	if l, err = FitLine(x, y, 0.95); err != nil {
		t.Fatal(err)
	}
	want := 2 * studentCDF(-0.316081871345029e-14/0.486652849992036e-16, 37)
	near(t, "Pontius p of the bend", l.BendP/want, 1, 1e-3)
	if l.BendP > 1e-9 || l.Bend > 0.01 || l.Wrong != "" {
		t.Errorf("Pontius: p %g, bend %g, %q: a bend that is shown but does not matter", l.BendP, l.Bend, l.Wrong)
	}
}

// TestLineIsWrong: a line that is one is called wrong in about 1 of 100, and a
// curve is found out.
func TestLineIsWrong(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	x := []float64{100, 200, 400, 600, 800, 1000, 1200}
	const rounds = 400
	wrong, covered := 0, 0
	found := map[string]int{}
	for range rounds {
		line, more, less := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
		for i, v := range x {
			line[i] = 200 + 0.05*v + 2*rng.NormFloat64()
			more[i] = 200 + 0.05*v*v/1200 + 2*rng.NormFloat64()
			less[i] = 200 + 60*math.Sqrt(v/1200) + 0.5*rng.NormFloat64()
		}
		l, err := FitLine(x, line, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if l.Wrong != "" {
			wrong++
		}
		if l.Slope.Lo <= 0.05 && 0.05 <= l.Slope.Hi {
			covered++
		}
		for _, c := range []struct {
			y    []float64
			want string
		}{{more, "faster and faster"}, {less, "more and more slowly"}} {
			if l, err = FitLine(x, c.y, 0.95); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(l.Wrong, "rises "+c.want) {
				found[c.want]++
			}
		}
	}
	t.Logf("of %d: a line is called wrong in %d, its slope covered in %d, curves found %v", rounds, wrong, covered, found)
	if wrong > 12 || covered < 364 || found["faster and faster"] < 300 || found["more and more slowly"] < 300 {
		t.Errorf("of %d: wrong %d, covered %d, found %v", rounds, wrong, covered, found)
	}
	if _, err := FitLine(x[:5], x[:5], 0.95); err == nil {
		t.Error("five levels make a law")
	}
	flat, err := FitLine(x, []float64{5, 5, 5, 5, 5, 5, 5}, 0.95)
	if err != nil || math.Abs(flat.Slope.Value) > 1e-12 || flat.Wrong != "" || flat.BendP != 1 {
		t.Errorf("a flat line without noise: %+v, %v", flat, err)
	}
}

// The p-value of ranks is that of its definition: of all orders, which are few
// enough to be counted, the share that goes with the levels at least as closely.
func TestRankPAgainstItsDefinition(t *testing.T) {
	for _, y := range [][]float64{{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}, {1, 2, 3, 4, 6, 5}, {3, 1, 2, 6, 5, 4}, {1, 1, 1, 1, 1, 99}, {5, 1, 1e9, 2, 4, 3}} {
		x := []float64{10, 20, 30, 40, 50, 60}
		together := func(y []float64) int {
			n := 0
			for i := range y {
				for j := range i {
					n += cmp.Compare(y[i], y[j])
				}
			}
			return max(n, -n)
		}
		as, all := 0, 0
		for _, order := range combin.Permutations(6, 6) {
			lot := make([]float64, 6)
			for i, k := range order {
				lot[i] = y[k]
			}
			if all++; together(lot) >= together(y) {
				as++
			}
		}
		near(t, fmt.Sprintf("p of %v", y), RankP(x, y, 1), float64(as)/float64(all), 0.04)
	}
}
