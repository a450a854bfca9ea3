package stats

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat/combin"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// sdm91 is the SPEC SDM91 benchmark of a Sun SPARCcenter 2000 (October 1994):
// scripts an hour by users. The R package usl publishes its law.
func sdm91() (n, x []float64) {
	return []float64{1, 18, 36, 72, 108, 144, 216}, []float64{64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2}
}

// near reports whether a figure is a published one to the digits published.
func near(t *testing.T, what string, got, want, half float64) {
	t.Helper()
	if !(math.Abs(got-want) <= half) {
		t.Errorf("%s = %.10g, published as %.10g", what, got, want)
	}
}

func TestUSLAgainstPublishedLaws(t *testing.T) {
	n, x := sdm91()
	l, err := FitUSL(n, x, Absolute, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	// R, usl 2.0: alpha, beta and gamma of summary(usl(throughput ~ load, specsdm91)).
	near(t, "SDM91 sigma", l.Sigma.Value, 0.0277285, 5e-8)
	near(t, "SDM91 kappa", l.Kappa.Value, 0.0001044, 5e-8)
	near(t, "SDM91 lambda", l.Lambda.Value, 89.9952330, 1e-6)
	// Its quantiles of the residuals.
	var left []float64
	for i := range n {
		left = append(left, x[i]-l.curve(n[i]))
	}
	slices.Sort(left)
	near(t, "SDM91 least residual", left[0], -81.7, 0.05)
	near(t, "SDM91 median residual", left[3], -25.1, 0.05)
	near(t, "SDM91 largest residual", left[6], 111.1, 0.05)
	// It gives standard errors, 0.0091217 and 0.0000199, from which symmetric
	// intervals follow; those of the profile lean to one side, but are as wide.
	const t4 = 2.776
	if w := l.Sigma.Hi - l.Sigma.Lo; math.Abs(w/(2*t4*0.0091217)-1) > 0.15 {
		t.Errorf("SDM91: sigma's interval is %g wide", w)
	}
	if w := l.Kappa.Hi - l.Kappa.Lo; math.Abs(w/(2*t4*0.0000199)-1) > 0.15 {
		t.Errorf("SDM91: kappa's interval is %g wide", w)
	}
	if l.Peak == nil {
		t.Fatal("SDM91: no peak")
	}
	near(t, "SDM91 peak", l.Peak.Level.Value, math.Sqrt((1-0.0277285)/0.0001044), 0.05)

	// A benchmark of MySQL on a Cisco server (Schwartz, Practical Scalability
	// Analysis with the Universal Scalability Law, 2015): queries a second by
	// threads, from 1 to 32.
	x = []float64{
		955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61, 8278.71,
		8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52, 11151.43, 11518.63,
		11806, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27, 12118.04, 12140.4, 12074.39,
	}
	n = make([]float64, len(x))
	for i := range n {
		n[i] = float64(i + 1)
	}
	l, err = FitUSL(n, x, Absolute, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	// R's nls stops where the sum of squares hardly changes, so that further
	// digits, as printed elsewhere, are not those of the least one.
	near(t, "Cisco sigma", l.Sigma.Value, 0.0267159, 5e-8)
	near(t, "Cisco kappa", l.Kappa.Value, 7.69094e-4, 5e-10)
	near(t, "Cisco lambda", l.Lambda.Value, 995.649, 1e-3)
	near(t, "Cisco throughput of 35 threads", l.curve(35), 12341.745, 5e-3)

	// The ray tracer of Gunther's book, which the R package also has: sigma
	// 0.0578 and kappa 0.0000, and an interval of kappa that holds 0.
	n = []float64{1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64}
	x = []float64{20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310}
	l, err = FitUSL(n, x, Absolute, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ray tracer sigma", l.Sigma.Value, 0.0578, 5e-5)
	near(t, "ray tracer kappa", l.Kappa.Value, 0, 5e-5)
	if l.Kappa.Lo != 0 || l.Peak != nil || l.NoPeak == "" {
		t.Errorf("ray tracer: kappa from %g, peak %v: where kappa may be 0 there is none", l.Kappa.Lo, l.Peak)
	}
}

// slowUSL is the sum of squares of the law's formula, and the least that a
// search without derivatives finds from many places.
func slowUSL(n, x []float64, noise Noise) float64 {
	sum := func(p []float64) float64 {
		// lambda > 0, sigma in [0, 1] and kappa >= 0 by mirrors.
		lambda, sigma, kappa := math.Exp(p[0]), math.Abs(math.Mod(p[1], 2)), math.Abs(p[2])*1e-3
		if sigma > 1 {
			sigma = 2 - sigma
		}
		s := 0.0
		for i := range n {
			f := lambda * n[i] / (1 + sigma*(n[i]-1) + kappa*n[i]*(n[i]-1))
			r := math.Log(x[i] / f)
			if noise == Absolute {
				r = x[i] - f
			}
			s += r * r
		}
		return s
	}
	least := math.Inf(1)
	for _, sigma := range []float64{0.001, 0.05, 0.5, 0.99} {
		for _, kappa := range []float64{0, 0.1, 3} {
			at := []float64{math.Log(x[0] / n[0]), sigma, kappa}
			for range 2 {
				r, err := optimize.Minimize(optimize.Problem{Func: sum}, at, &optimize.Settings{MajorIterations: 2000}, &optimize.NelderMead{})
				if r == nil || err != nil {
					break
				}
				at = r.X
				least = min(least, r.F)
			}
		}
	}
	return least
}

func TestUSLAgainstASearch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range 20 {
		n := []float64{1, 2, 4, 8, 16, 32, 48, 64}
		x := make([]float64, len(n))
		sigma, kappa := rng.Float64()*0.3, 0.0
		if round%3 > 0 {
			kappa = rng.Float64() * 1e-3
		}
		if round%5 == 0 {
			sigma = 1 // throughput that does not grow at all
		}
		for i := range n {
			x[i] = 100 * n[i] / (1 + sigma*(n[i]-1) + kappa*n[i]*(n[i]-1)) * math.Exp(0.1*rng.NormFloat64())
		}
		for _, noise := range []Noise{Relative, Absolute} {
			l, err := FitUSL(n, x, noise, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			_, least := l.fit.best(l.fit.columns(), nil, 0)
			if slow := slowUSL(n, x, noise); least > slow*(1+1e-6) {
				t.Errorf("round %d, noise %d: a sum of squares of %g, a search finds %g", round, noise, least, slow)
			}
			if l.Sigma.Value < 0 || l.Sigma.Value > 1 || l.Kappa.Value < 0 {
				t.Errorf("round %d: sigma %g, kappa %g", round, l.Sigma.Value, l.Kappa.Value)
			}
			for what, e := range map[string]Estimate{"lambda": l.Lambda, "sigma": l.Sigma, "kappa": l.Kappa} {
				if e.Value < e.Lo*(1-1e-6) || e.Value > e.Hi*(1+1e-6) {
					t.Errorf("round %d: %s %g lies outside [%g, %g]", round, what, e.Value, e.Lo, e.Hi)
				}
			}
		}
	}
}

// TestUSLCovers: the intervals of the parameters and of the peak must hold
// what was planted as often as they say, and where throughput only saturates
// no peak may be seen in more than 18 of 200.
func TestUSLCovers(t *testing.T) {
	ring.Long(t, "it draws hundreds of samples")
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	n := []float64{1, 5, 10, 20, 40, 60, 80, 120, 180}
	const rounds, lambda, sigma, kappa = 200, 50.0, 0.02, 2e-4
	peak := math.Sqrt((1 - sigma) / kappa)
	law := func(n, kappa float64) float64 { return lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1)) }
	covered := map[string]int{}
	peaks, false0 := 0, 0
	for range rounds {
		x, flat := make([]float64, len(n)), make([]float64, len(n))
		for i := range n {
			x[i] = law(n[i], kappa) * math.Exp(0.05*rng.NormFloat64())
			flat[i] = law(n[i], 0) * math.Exp(0.05*rng.NormFloat64())
		}
		l, err := FitUSL(n, x, Relative, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		holds := func(what string, e Estimate, truth float64) {
			if e.Lo <= truth && truth <= e.Hi {
				covered[what]++
			}
		}
		holds("lambda", l.Lambda, lambda)
		holds("sigma", l.Sigma, sigma)
		holds("kappa", l.Kappa, kappa)
		at, err := l.At(200)
		if err != nil {
			t.Fatal(err)
		}
		holds("throughput beyond", at, law(200, kappa))
		if l.Peak != nil {
			peaks++
			holds("peak", l.Peak.Level, peak)
			holds("peak throughput", l.Peak.Throughput, law(peak, kappa))
		}
		if l, err = FitUSL(n, flat, Relative, 0.95); err != nil {
			t.Fatal(err)
		}
		if l.Peak != nil {
			false0++
		}
	}
	t.Logf("of %d: %v; a peak in %d, and in %d where there is none", rounds, covered, peaks, false0)
	if false0 > 18 {
		t.Errorf("a peak was seen in %d of %d where throughput only saturates", false0, rounds)
	}
	if peaks < 190 {
		t.Errorf("the peak was seen in %d of %d", peaks, rounds)
	}
	for what, k := range covered {
		of := rounds
		if strings.HasPrefix(what, "peak") {
			of = peaks
		}
		if float64(k) < 0.91*float64(of) {
			t.Errorf("the interval of %s held it in %d of %d", what, k, of)
		}
	}
}

func TestUSLSaysNo(t *testing.T) {
	six := []float64{1, 2, 4, 8, 16, 32}
	for _, c := range []struct {
		why  string
		n, x []float64
		want string
	}{
		{"five levels", six[:5], six[:5], "there are 5 levels, and a fit needs 6"},
		{"six measurements of five levels", []float64{1, 2, 4, 8, 16, 16}, six, "there are 5 levels"},
		{"nothing at all", nil, nil, "there are 0 levels"},
		{"a level below the law's own unit", []float64{0.5, 2, 4, 8, 16, 32}, six, "levels of at least 1"},
		{"a throughput of nothing has no logarithm", six, []float64{0, 2, 4, 8, 16, 32}, "not positive"},
		{"not a number", six, []float64{math.NaN(), 2, 4, 8, 16, 32}, "not a finite number"},
		{"a measurement without its level", six, six[:5], "needs its level"},
	} {
		if _, err := FitUSL(c.n, c.x, Relative, 0.95); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
	l, err := FitUSL(six, []float64{1, 2, 4, 8, 16, 32}, Relative, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if l.Sigma.Value > 1e-9 || l.Kappa.Value > 1e-9 || l.Peak != nil {
		t.Errorf("a straight line has sigma %g, kappa %g, peak %v", l.Sigma.Value, l.Kappa.Value, l.Peak)
	}
	if _, err := l.At(64); err != nil {
		t.Errorf("twice the highest level: %v", err)
	}
	var far *TooFarError
	if _, err := l.At(64.1); !errors.As(err, &far) || !strings.Contains(err.Error(), "level 64.1 is above") {
		t.Errorf("past twice the highest level: %v", err)
	}
	falling, err := FitUSL([]float64{10, 20, 30, 40, 50, 60, 70}, []float64{70, 60, 52, 46, 41, 38, 35}, Relative, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if falling.Peak != nil || !strings.Contains(falling.NoPeak, "from the lowest level on") {
		t.Errorf("a throughput that only falls: peak %v, %q", falling.Peak, falling.NoPeak)
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
	l, err := FitLine(x, y, Absolute, 0.95)
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
	if l, err = FitLine(x, y, Absolute, 0.95); err != nil {
		t.Fatal(err)
	}
	near(t, "Pontius bend", l.bendT, 0.316081871345029e-14/0.486652849992036e-16, 1e-5)
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
		l, err := FitLine(x, line, Absolute, 0.95)
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
			if l, err = FitLine(x, c.y, Absolute, 0.95); err != nil {
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
	if _, err := FitLine(x[:5], x[:5], Absolute, 0.95); err == nil {
		t.Error("five levels make a law")
	}
	flat, err := FitLine(x, []float64{5, 5, 5, 5, 5, 5, 5}, Relative, 0.95)
	if err != nil || math.Abs(flat.Slope.Value) > 1e-12 || flat.Wrong != "" || flat.BendP != 1 {
		t.Errorf("a flat line without noise: %+v, %v", flat, err)
	}
	var far *TooFarError
	if _, err := flat.At(2401); !errors.As(err, &far) {
		t.Errorf("past twice the highest level: %v", err)
	}
}

// TestRelativeLine: where errors are relative the intervals hold the truth as
// often as they say, at the low end too, where they are small.
func TestRelativeLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	x := []float64{5, 10, 20, 30, 40, 50, 60}
	const rounds = 400
	covered := map[string]int{}
	width := 0.0
	for range rounds {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = (0.2 + 0.1*v) * math.Exp(0.1*rng.NormFloat64())
		}
		l, err := FitLine(x, y, Relative, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		low, err := l.At(5)
		if err != nil {
			t.Fatal(err)
		}
		width += (low.Hi - low.Lo) / low.Value / rounds
		for what, e := range map[string]Estimate{"slope": {l.Slope.Value - 0.1, l.Slope.Lo - 0.1, l.Slope.Hi - 0.1}, "low end": {low.Value - 0.7, low.Lo - 0.7, low.Hi - 0.7}} {
			if e.Lo <= 0 && 0 <= e.Hi {
				covered[what]++
			}
		}
		if l.Wrong != "" {
			covered["wrong"]++
		}
	}
	t.Logf("of %d: %v, the interval at the low end is %.0f %% wide", rounds, covered, 100*width)
	if covered["slope"] < 364 || covered["low end"] < 364 || covered["wrong"] > 12 || width > 0.6 {
		t.Errorf("of %d: %v, the interval at the low end is %.0f %% wide", rounds, covered, 100*width)
	}
}

func TestKneeAgainstItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	x := []float64{10, 10, 20, 30, 40, 50, 60, 70}
	for range 100 {
		y := make([]float64, len(x))
		for i := range x {
			y[i] = 3 + 0.1*x[i] + max(0, x[i]-45) + rng.NormFloat64()
		}
		k, err := FindKnee(x, y, Absolute, 0.95, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := newKneeSearch(x, y, Absolute)
		if want := slowKnee(x, y, s.at); math.Abs(k.At.Value-want) > 1e-9 {
			t.Errorf("the knee is at %g, by its definition at %g", k.At.Value, want)
		}
	}
}

// lawNoises are what measurements may look like: symmetric, skewed, tied, and
// of two forms, each of about unit size.
func lawNoises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"normal":    func(r *rand.Rand) float64 { return r.NormFloat64() },
		"skewed":    func(r *rand.Rand) float64 { return r.ExpFloat64() - 1 },
		"tied":      func(r *rand.Rand) float64 { return float64(r.IntN(3)) - 1 },
		"two forms": func(r *rand.Rand) float64 { return float64(r.IntN(2))*2 - 1 + 0.1*r.NormFloat64() },
	}
}

// TestKneeFalseAlarms: of 200 straight but noisy lines at most 18 may seem to
// have a knee, on few levels and many, on one decade and several, straight on
// either kind of axes.
func TestKneeFalseAlarms(t *testing.T) {
	ring.Long(t, "it draws hundreds of samples")
	t.Parallel()
	const rounds = 200
	for _, x := range [][]float64{
		{10, 20, 30, 40, 50, 60},
		{5, 10, 20, 30, 40, 50, 60},
		{10, 10, 20, 20, 30, 30, 40, 50, 60, 60},
		{1, 3, 10, 30, 100, 300, 1000},
	} {
		for name, noise := range lawNoises() {
			for _, power := range []bool{false, true} {
				if power && x[len(x)-1] <= decade*x[0] {
					continue // on such a short axis a power law is a bend like any other
				}
				rng := rand.New(rand.NewPCG(19, 20))
				alarms := 0
				for i := range rounds {
					y := make([]float64, len(x))
					for j, v := range x {
						y[j] = 1 + 3*v/x[len(x)-1]
						if power {
							y[j] = math.Pow(v, 0.7)
						}
						y[j] *= math.Exp(0.05 * noise(rng))
					}
					k, err := FindKnee(x, y, Relative, 0.95, uint64(i))
					if err != nil {
						t.Fatal(err)
					}
					if k.P <= 0.05 {
						alarms++
					}
				}
				t.Logf("%v, %s noise, power law %v: %d alarms of %d", x, name, power, alarms, rounds)
				if alarms > 18 {
					t.Errorf("%v, %s noise, power law %v: %d false alarms of %d", x, name, power, alarms, rounds)
				}
			}
		}
	}
}

// TestKneeFound: planted knees are found, and their interval holds them.
func TestKneeFound(t *testing.T) {
	t.Parallel()
	const rounds = 200
	for _, c := range []struct {
		why   string
		x     []float64
		knee  float64
		noise Noise
		curve func(v, knee float64) float64
	}{
		{"flat, then rising", []float64{5, 10, 20, 30, 40, 50, 60}, 33, Relative, func(v, c float64) float64 { return 1 + 0.1*max(0, v-c) }},
		{"six levels", []float64{10, 20, 30, 40, 50, 60}, 33, Relative, func(v, c float64) float64 { return 1 + 0.2*max(0, v-c) }},
		{"rising, then flat", []float64{10, 20, 30, 40, 50, 60, 70, 80}, 45, Absolute, func(v, c float64) float64 { return min(v, c) / 10 }},
		{"three decades, on logarithmic axes", []float64{1, 3, 10, 30, 100, 300, 1000, 3000}, 40, Relative, func(v, c float64) float64 { return math.Pow(max(v, c)/c, 2) }},
	} {
		rng := rand.New(rand.NewPCG(21, 22))
		found, covered := 0, 0
		for i := range rounds {
			y := make([]float64, len(c.x))
			for j, v := range c.x {
				e := 0.05 * rng.NormFloat64()
				y[j] = c.curve(v, c.knee)
				if c.noise == Relative {
					y[j] *= math.Exp(e)
				} else {
					y[j] += e
				}
			}
			k, err := FindKnee(c.x, y, c.noise, 0.95, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			if k.P > 0.05 {
				continue
			}
			found++
			if k.At.Lo <= c.knee && c.knee <= k.At.Hi {
				covered++
			}
		}
		t.Logf("%s: found in %d of %d, covered in %d", c.why, found, rounds, covered)
		if found < 180 || float64(covered) < 0.91*float64(found) {
			t.Errorf("%s: found in %d of %d, covered in %d", c.why, found, rounds, covered)
		}
	}
}

func TestKneeSaysNo(t *testing.T) {
	x := []float64{10, 20, 30, 40, 50, 60}
	if _, err := FindKnee(x[:5], x[:5], Relative, 0.95, 1); err == nil {
		t.Error("five levels have a knee")
	}
	for _, c := range []struct {
		why string
		y   []float64
	}{
		{"a line without noise", []float64{1, 2, 3, 4, 5, 6}},
		{"a flat line without noise", []float64{7, 7, 7, 7, 7, 7}},
		{"a line through 0", []float64{-2, -1, 0, 1, 2, 3}},
		{"a single level that is off", []float64{1, 2, 3, 4, 5, 9}},
	} {
		k, err := FindKnee(x, c.y, Relative, 0.95, 1)
		if err != nil || k.P <= 0.05 {
			t.Errorf("%s: p = %g, %v", c.why, k.P, err)
		}
	}
	k, err := FindKnee(x, []float64{1, 1.01, 0.99, 1, 2, 3}, Relative, 0.95, 1)
	if err != nil || k.P > 0.05 || k.Gradual || k.At.Lo > 40 || k.At.Hi < 40 {
		t.Errorf("a sharp knee at 40: %+v, %v", k, err)
	}
	if v := k.Value(60); math.Abs(v-3) > 0.1 {
		t.Errorf("the broken line is %g high at 60, want 3", v)
	}
	again, err := FindKnee(x, []float64{1, 1.01, 0.99, 1, 2, 3}, Relative, 0.95, 1)
	if err != nil || again != k {
		t.Errorf("the same seed finds %+v, and then %+v", k, again)
	}
	long := []float64{1, 3, 10, 30, 100, 300, 1000}
	slow, err := FindKnee(long, []float64{1, 9, 100, 900, 1e4, 9e4, 1e6}, Relative, 0.95, 1)
	if err != nil || slow.P <= 0.05 {
		t.Errorf("a parabola without noise, which is straight on logarithmic axes: p = %g, %v", slow.P, err)
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

// slowKnee is the definition: of all places, the one at which two parts leave
// the least, each found anew by least squares.
func slowKnee(x, y []float64, places []float64) float64 {
	ones := make([]float64, len(x))
	for i := range ones {
		ones[i] = 1
	}
	least, at := math.Inf(1), 0.0
	for _, c := range places {
		bend := make([]float64, len(x))
		for i := range x {
			bend[i] = max(x[i]-c, 0)
		}
		if _, left, ok := leastSquares([][]float64{ones, x, bend}, y); ok {
			if s := floats.Dot(left, left); s < least*(1-1e-9) {
				least, at = s, c
			}
		}
	}
	return at
}
