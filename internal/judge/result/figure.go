package result

import (
	"math"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// CompareBool puts false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Confidence is the confidence of every interval in a result.
const Confidence = 0.95

// ManyObjects returns a number of objects in words.
func ManyObjects(n int) string { return ManyOf("object", n) }

// ManyOf returns a number of things in words.
func ManyOf(one string, n int) string {
	if n != 1 {
		one += "s"
	}
	return strconv.Itoa(n) + " " + one
}

// Interval is a figure with its interval of 95%. An end without a bound is null.
type Interval struct {
	Value *float64 `json:"value"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
}

// IntervalOf returns an estimate as an Interval.
func IntervalOf(e stats.Estimate) Interval {
	return Interval{Significant(e.Value), Significant(e.Lo), Significant(e.Hi)}
}

// Significant rounds x to seven significant digits; it returns nil where x is not finite.
func Significant(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(Digits(x))
}

// Digits rounds x to seven significant digits, more than any measured figure is worth.
func Digits(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 7, 64), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0 // JSON has no such number
	}
	return v
}

// Finite rounds x to the microsecond; it returns nil where x is not finite.
func Finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return new(Round(x, 6))
}

// Round rounds x to so many digits after the point.
func Round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	if r := math.Round(x*scale) / scale; !math.IsInf(r, 0) {
		return r
	}
	return x // too large to have digits after the point
}

// DurationText writes seconds to the millisecond, or as exactly as needed to differ from the bound.
func DurationText(x float64, bound time.Duration) string {
	if math.IsInf(x, 1) {
		return "never reached"
	}
	exact := time.Duration(math.Round(x*1e6)) * time.Microsecond
	if short := exact.Round(time.Millisecond); short != bound && exact >= time.Millisecond {
		return short.String()
	}
	return exact.String()
}
