// Package number writes numbers for people: with a few significant digits, and never as a
// power of ten.
package number

import (
	"math"
	"strconv"
	"strings"
)

// noise bounds what sums of figures leave of 0 by rounding.
const noise = 1e-9

// Text writes a number with so many significant digits, and all digits before the point.
func Text(x float64, digits int) string {
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		return strconv.FormatFloat(x, 'g', -1, 64)
	case math.Abs(x) < noise:
		return "0"
	}
	decimals := max(digits-1-int(math.Floor(math.Log10(math.Abs(x)))), 0)
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// P writes the p-value of a test with its sign: "= 0.032", or "< 0.0001".
func P(p float64) string {
	if p < 0.0001 {
		return "< 0.0001"
	}
	return "= " + Text(p, 2)
}
