package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// The bounds as they were found by another program. The first of each is Student's.
func TestSequentialBounds(t *testing.T) {
	for _, c := range []struct {
		alpha float64
		most  int
		want  []float64
	}{
		{0.05, 30, []float64{9.6, 5.69, 3.92, 3.20, 2.63, 2.25}},
		{0.05, 20, []float64{7.78, 4.91, 3.49, 2.84, 2.32}},
		{0.05, 13, []float64{6.21, 4.15, 3.02, 2.46}},
		{0.025, 30, []float64{12.1, 6.70, 4.47, 3.59, 2.96, 2.58}},
		{0.01, 30, []float64{16.5, 8.24, 5.20, 4.12, 3.39, 2.98}},
	} {
		s := Sequential{Least: 4, Most: c.most, Alpha: c.alpha}
		looks := Looks(4, c.most)
		got := s.boundsOf(c.alpha, looks, Scheduled)
		for i, want := range c.want {
			// The table is rounded to three digits.
			if math.Abs(got[i]-want) > 0.01*want {
				t.Errorf("alpha %g, at most %d: %.3g after %d, want %g", c.alpha, c.most, got[i], looks[i], want)
			}
		}
	}
}

// Where it ends between two looks: all that is left is spent when the time is over,
// and only what was due when somebody stopped it.
func TestSequentialEnds(t *testing.T) {
	s := Sequential{Least: 4, Most: 30, Alpha: 0.05}
	for _, c := range []struct {
		why  string
		end  End
		want float64
	}{
		{"the budget is spent", OutOfBudget, 2.28},
		{"Ctrl-C", Interrupted, 3.62},
	} {
		if got := last(s.boundsOf(0.05, []int{4, 6, 9, 11}, c.end)); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s after 11: %.3f, want %g", c.why, got, c.want)
		}
	}
}

func TestLooks(t *testing.T) {
	for _, c := range []struct {
		least, most int
		want        []int
	}{
		{4, 30, []int{4, 6, 9, 13, 20, 30}},
		{5, 12, []int{6, 9, 12}},
		{4, 4, []int{4}},
		{2, 3, []int{3}},
		{10, 40, []int{13, 20, 30, 40}},
	} {
		if got := Looks(c.least, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d..%d: %v, want %v", c.least, c.most, got, c.want)
		}
	}
}

// figures are blocks whose logarithms differ so.
func figures(d ...float64) (a, b []float64) {
	for _, x := range d {
		a, b = append(a, 1), append(b, math.Exp(x))
	}
	return a, b
}

func TestSequentialJudge(t *testing.T) {
	small := []float64{0.001, -0.002, 0.002, -0.001}
	far := []float64{0.30, 0.31, 0.29, 0.30, 0.32, 0.30}
	wild := slices.Repeat([]float64{0.10, 0, 0.11, 0.01, 0.055}, 4)
	s := Sequential{Least: 4, Most: 30, Alpha: 0.05, Margin: 0.05} // one, so that its bounds are computed once
	for _, c := range []struct {
		why    string
		d      []float64
		end    End
		alone  bool // the arm need not be worse, no more
		blocks int
		want   Verdict
		done   bool
	}{
		{"equal within a fifth of the margin", small, Scheduled, false, 4, Equivalent, true},
		{"far beyond it: four blocks cannot show by their signs that they are not chance", far[:4], Scheduled, false, 4, Worse, true},
		{"blocks after the look do not count", far, Scheduled, false, 4, Worse, true},
		{"about the margin: without hope", wild, Scheduled, false, 20, Undecided, true},
		{"the same, before that is tried", wild[:8], Scheduled, false, 6, Undecided, false},
		{"stopped before the first look: little is spent", []float64{0.1, 0.11, 0.12}, Interrupted, false, 3, Undecided, true},
		{"the budget is spent before the first look", far[:3], OutOfBudget, false, 3, Worse, true},
		{"faster, or equal: it is not worse", []float64{-0.05, -0.07, -0.045, -0.055, -0.04, -0.06}, Scheduled, false, 6, NotWorse, false},
		{"the same, which is enough", []float64{-0.05, -0.07, -0.045, -0.055, -0.04, -0.06}, Scheduled, true, 4, NotWorse, true},
	} {
		s.NotWorse = c.alone
		a, b := figures(c.d...)
		got, err := s.Judge(a, b, false, c.end)
		if err != nil || got.Blocks != c.blocks || got.Verdict != c.want || got.Done != c.done {
			t.Errorf("%s: %+v, %v", c.why, got, err)
		}
	}
	s.NotWorse = false
	if _, err := s.Judge([]float64{1}, []float64{2}, false, OutOfBudget); err == nil {
		t.Error("one block has an interval")
	}
	// One block in six against all others: by the signs it may be chance.
	a, b := figures(0.30, 0.31, 0.30, 0.30, 0.30, 0.30)
	if got, err := s.Judge(a[:6], b[:6], false, Scheduled); err != nil || got.Verdict != Worse {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSignFlip(t *testing.T) {
	if p := SignFlip([]float64{1, 1, 1, 1, 1, 1}); p != 2.0/64 {
		t.Errorf("all six agree: %g", p)
	}
	if p := SignFlip([]float64{1, -1}); p != 1 {
		t.Errorf("none at all: %g", p)
	}
	// Many: drawn, against the normal distribution.
	d := make([]float64, 40)
	for i := range d {
		d[i] = float64(i%4) - 1 // mean 0.5, squares' mean 1.5
	}
	z := 0.5 * 40 / math.Sqrt(1.5*40)
	if p, want := SignFlip(d), math.Erfc(z/math.Sqrt2); math.Abs(p-want) > 0.005 {
		t.Errorf("forty: %g, want about %g", p, want)
	}
}

// Fisher's own example, a lady who tastes tea, and the one of Agresti's textbook.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		x, n, y, m int
		want       float64
	}{
		{3, 4, 1, 4, 0.485714}, {4, 4, 0, 4, 0.0285714}, {1, 10, 11, 14, 0.00275946}, {0, 5, 0, 5, 1},
	} {
		if got := Fisher(c.x, c.n, c.y, c.m); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%d of %d and %d of %d: %g, want %g", c.x, c.n, c.y, c.m, got, c.want)
		}
	}
}

// What so many blocks detect, they find four times out of five.
func TestDetectable(t *testing.T) {
	for _, blocks := range []int{3, 5, 10, 20} {
		const sd, margin = 0.06, 0.05
		middle := math.Log1p(Detectable(sd, blocks, margin, 0.95))
		rng := rand.New(rand.NewPCG(1, uint64(blocks)))
		found, all := 0, 20_000
		for range all {
			d := make([]float64, blocks)
			for i := range d {
				d[i] = middle + sd*rng.NormFloat64()
			}
			a, b := figures(d...)
			if c, err := CompareBlocks(a, b, 0.95); err != nil || c.Judge(margin, false) == Worse {
				found++
			}
		}
		if share := float64(found) / float64(all); math.Abs(share-Power) > 0.04 {
			t.Errorf("%d blocks: %.3f found, want %g", blocks, share, Power)
		}
	}
}

// A comparison that ended early exaggerates what it found; what is named as
// unbiased is too high in one half and too low in the other.
func TestUnbiased(t *testing.T) {
	ring.Long(t, "it draws hundreds of samples")
	const sd, middle = 0.06, 0.1
	rng := rand.New(rand.NewPCG(3, 4))
	s := Sequential{Least: 4, Most: 30, Alpha: 0.05, Margin: 0.05}
	plain, unbiased, all := 0, 0, 0
	for range 300 {
		d := make([]float64, 30)
		for i := range d {
			d[i] = middle + sd*rng.NormFloat64()
		}
		a, b := figures(d...)
		got, err := s.Judge(a, b, false, Scheduled)
		if err != nil || got.Verdict != Worse {
			continue
		}
		all++
		if math.Log1p(got.Change.D) > middle {
			plain++
		}
		if math.Log1p(got.Unbiased) > middle {
			unbiased++
		}
	}
	far := func(n int) float64 { return math.Abs(float64(n)/float64(all) - 0.5) }
	if all < 280 || far(unbiased) > 0.06 || far(plain) < far(unbiased) {
		t.Errorf("of %d found worse %d are above the truth, and %d of the unbiased", all, plain, unbiased)
	}
}

// However often the mean of a growing series is looked at, its interval leaves it out
// in no more than one series in twenty.
func TestAnyTimeCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const series, length = 1000, 100
	missed := 0
	for range series {
		var x []float64
		for range length {
			x = append(x, 3+rng.NormFloat64())
			if e := AnyTime(x, 0.95); e.Lo > 3 || e.Hi < 3 {
				missed++
				break
			}
		}
	}
	if missed > 55 || missed == 0 {
		t.Errorf("the true mean was left out in %d of %d series, want at most 50, and some", missed, series)
	}
	if e := AnyTime([]float64{1, 1.1}, 0.95); !math.IsInf(e.Hi, 1) {
		t.Errorf("two figures bound their mean to %+v", e)
	}
}
