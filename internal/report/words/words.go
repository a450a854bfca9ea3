// Package words writes figures for people: with their unit, and as many digits as say something.
package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Rate writes a rate per second with one digit after the point, - where it is unknown.
func Rate(v *float64) string {
	return Known(v, func(x float64) string { return fmt.Sprintf("%.1f", x) })
}

// Known writes a figure with show, "-" where it is unknown.
func Known(v *float64, show func(float64) string) string {
	if v == nil {
		return "-"
	}
	return show(*v)
}

// Number writes a level as people do.
func Number(x float64) string { return number.Text(x, 10) }

// Seconds writes a duration in seconds with three significant digits and its unit.
func Seconds(x float64) string {
	switch {
	case x < 0.0005:
		return fmt.Sprintf("%.0f µs", x*1e6)
	case x < 0.01:
		return fmt.Sprintf("%.2f ms", x*1e3)
	case x < 1:
		return fmt.Sprintf("%.0f ms", x*1e3)
	case x < 10:
		return fmt.Sprintf("%.2f s", x)
	}
	return fmt.Sprintf("%.1f s", x)
}

// Sentence begins a text with a capital letter and ends it with a full stop.
func Sentence(text string) string { return Capital(strings.TrimSuffix(text, ".")) + "." }

// Capital begins a text with a capital letter.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Level writes a level, - where it is unknown.
func Level(v *float64) string { return Known(v, Number) }

// Lag writes a time in seconds, - where it is unknown.
func Lag(v *float64) string { return Known(v, Seconds) }

// Percent writes a share in percent.
func Percent(x any) string {
	v, ok := x.(float64)
	if p, is := x.(*float64); is && p != nil {
		v, ok = *p, true
	}
	if !ok {
		return "-"
	}
	return number.Text(v, 3) + "%"
}

// Bytes writes a number of bytes with its unit.
func Bytes(n int64) string {
	x, unit := float64(n), 0
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for x >= 1024 && unit < len(names)-1 {
		x, unit = x/1024, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return Short(x) + " " + names[unit]
}

// Span writes a length of time as people say it.
func Span(seconds float64) string {
	if seconds < 60 {
		return Seconds(seconds)
	}
	minutes := int(math.Round(seconds)) / 60
	if minutes < 60 {
		return fmt.Sprintf("%d min %d s", minutes, int(math.Round(seconds))%60)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// Count writes a number with its thousands apart.
func Count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Moment writes a moment of a result for people, with its zone.
func Moment(t string) string { return strings.Replace(strings.Replace(t, "T", " ", 1), "Z", " UTC", 1) }

// InUnit writes a figure with its unit. Number writes one that is not a time or a size.
func InUnit(x float64, unit string, number func(float64) string) string {
	switch unit {
	case "s":
		return Seconds(x)
	case "B", "bytes":
		return Bytes(int64(math.Round(x)))
	case "B/s":
		return Bytes(int64(x)) + "/s"
	case "%":
		return number(x) + unit
	}
	return strings.TrimSpace(number(x) + " " + unit)
}

// Short writes a number to three digits.
func Short(x float64) string {
	if a := math.Abs(x); a >= 100 && a < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return number.Text(x, 3)
}

// Quantity writes a figure of a law with its unit.
func Quantity(x float64, unit string) string {
	switch {
	case unit == "/s":
		return Short(x) + "/s"
	case x < 0 && (unit == "B" || unit == "s" && x < -0.5e-6):
		return "-" + InUnit(-x, unit, Short)
	case unit == "s":
		x = math.Abs(x)
	}
	return InUnit(x, unit, Short)
}

// Interval writes the interval of a figure in brackets.
func Interval(i result.Interval, unit string) string {
	end := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return Quantity(*v, unit)
	}
	return "[" + end(i.Lo) + ", " + end(i.Hi) + "]"
}

// WithInterval writes a figure with its interval, ? where it is unknown.
func WithInterval(i result.Interval, unit string) string {
	if i.Value == nil {
		return "?"
	}
	return Quantity(*i.Value, unit) + " " + Interval(i, unit)
}

// Figure writes a figure of a run; "never" where it was not reached.
func Figure(x *float64, unit string) string {
	if x == nil {
		return "never"
	}
	return InUnit(*x, unit, func(x float64) string {
		if x >= 10_000 && x < 1e9 { // not as a power of ten
			return fmt.Sprintf("%.0f", x)
		}
		return number.Text(x, 4)
	})
}

// Change writes a relative change in percent.
func Change(x float64) string {
	if x > 10 {
		return fmt.Sprintf("%+.0f%%", 100*x)
	}
	return fmt.Sprintf("%+.1f%%", 100*x)
}

// Ratio writes the change from one figure to another, - where one was never reached.
func Ratio(from, to *float64) string {
	if from == nil || to == nil || *from <= 0 {
		return "-"
	}
	return Change(*to / *from - 1)
}

// ChangeInterval writes the interval of a change, "" without one.
func ChangeInterval(lo, hi *float64) string {
	if lo == nil || hi == nil {
		return ""
	}
	return Change(*lo) + " to " + Change(*hi)
}

// Within writes an interval in words, "" where neither end is known.
func Within(lo, hi *float64, show func(float64) string) string {
	switch {
	case lo != nil && hi != nil:
		return show(*lo) + " to " + show(*hi)
	case lo != nil:
		return "at least " + show(*lo)
	case hi != nil:
		return "at most " + show(*hi)
	}
	return ""
}

// And joins a list as people say it.
func And(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// Counted writes a number of things.
func Counted(n int, thing string) string { return Count(n) + " " + Noun(n, thing) }

// Noun returns a word as it follows a number.
func Noun(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// PlusMinus writes a figure with half its interval, if any, both with as many digits as that leaves.
func PlusMinus(i result.Interval, unit string) string {
	if i.Value == nil {
		return "-"
	}
	value := *i.Value
	if i.Hi == nil || *i.Hi <= value {
		return Figure(&value, unit)
	}
	half := *i.Hi - value
	switch {
	case unit == "s" && value < 0.0005:
		value, half, unit = 1e6*value, 1e6*half, "µs"
	case unit == "s" && value < 1:
		value, half, unit = 1e3*value, 1e3*half, "ms"
	case unit == "B":
		value, half, unit = value/(1<<20), half/(1<<20), "MiB"
	}
	digits := min(max(1-int(math.Floor(math.Log10(half))), 0), 3)
	return strings.TrimSpace(fmt.Sprintf("%.*f ± %.*f %s", digits, value, digits, half, unit))
}

// LatencyPlusMinus does so for a latency; one that was not reached in every run has no mean.
func LatencyPlusMinus(i result.Interval) string {
	if i.Value == nil {
		return "never"
	}
	return PlusMinus(i, "s")
}

// TwoDigits writes a figure with two digits after the point.
func TwoDigits(x float64) string { return fmt.Sprintf("%.2f", x) }

// Bars draws figures that are not negative as a row of bars, two in each.
func Bars(figures []float64) string {
	const heights = "▁▂▃▄▅▆▇█"
	most := slices.Max(figures)
	var b strings.Builder
	for pair := range slices.Chunk(figures, 2) {
		at := 0
		if most > 0 {
			at = min(int(slices.Max(pair)/most*8), 7)
		}
		b.WriteRune([]rune(heights)[max(at, 0)])
	}
	return b.String()
}

// Played writes a time scaled to real time.
func Played(v *float64, scale float64) string {
	return Known(v, func(x float64) string {
		return time.Duration(x * scale * float64(time.Second)).Round(time.Second).String()
	})
}
