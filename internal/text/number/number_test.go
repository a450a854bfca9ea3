package number

import (
	"math"
	"testing"
)

func TestText(t *testing.T) {
	for _, tt := range []struct {
		x      float64
		digits int
		want   string
		why    string
	}{
		{0, 3, "0", "nothing"},
		{4.44e-16, 3, "0", "what rounding leaves"},
		{2473, 3, "2473", "no power of ten"},
		{12345678.9, 4, "12345679", "all digits before the point"},
		{0.001234, 3, "0.00123", "three digits"},
		{1.5, 4, "1.5", "no zeros behind"},
		{-0.25, 2, "-0.25", "a negative number"},
		{100, 3, "100", "zeros before the point stay"},
		{math.Inf(1), 3, "+Inf", "infinite"},
	} {
		if got := Text(tt.x, tt.digits); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
	for p, want := range map[float64]string{4.44e-16: "< 0.0001", 0.0321: "= 0.032", 1: "= 1"} {
		if got := P(p); got != want {
			t.Errorf("P(%g) is %q, want %q", p, got, want)
		}
	}
}
