package chart

import (
	"math"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
)

const axisWidth = 44 // characters

// Axis is a logarithmic axis with its ticks, drawn in characters.
type Axis struct {
	lo, hi float64
	ticks  []float64
}

// AxisOf returns the axis of a trend, the same for all of its figure, to compare workloads by eye.
func AxisOf(t compare.Trend, all []compare.Trend) Axis {
	a := Axis{lo: math.Inf(1), hi: math.Inf(-1)}
	for _, other := range all {
		if other.Metric != t.Metric || other.Unit != t.Unit {
			continue
		}
		for _, x := range other.Points {
			for _, v := range []*float64{x.Low, x.Value, x.High} {
				if v != nil && *v > 0 {
					a.lo, a.hi = min(a.lo, *v), max(a.hi, *v)
				}
			}
		}
	}
	if a.lo > a.hi {
		return Axis{lo: 1, hi: 10, ticks: []float64{1, 10}}
	}
	const least = 2 // a narrower range makes mountains of chance
	if r := a.hi / a.lo; r < least {
		by := math.Sqrt(least / r)
		a.lo, a.hi = a.lo/by, a.hi*by
	}
	a.lo, a.hi = a.lo/1.08, a.hi*1.08
	for _, steps := range [][]float64{{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, {1, 1.2, 1.5, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9}} {
		a.ticks = nil
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, s := range steps {
				if v := s * math.Pow(10, e); v >= a.lo && v <= a.hi {
					a.ticks = append(a.ticks, v)
				}
			}
		}
		if len(a.ticks) >= 3 {
			break
		}
	}
	return a
}

// at returns the place of a value on the axis, from 0 to 1.
func (a Axis) at(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(max(math.Log(v/a.lo)/math.Log(a.hi/a.lo), 0), 1)
}

func column(at float64) int { return int(math.Round(at * (axisWidth - 1))) }

// Header draws the line of the ticks, each as label writes it.
func (a Axis) Header(label func(float64) string) string {
	line := []rune(strings.Repeat(" ", axisWidth))
	free := 0
	for _, v := range a.ticks {
		text := []rune(label(v))
		from := min(column(a.at(v)), axisWidth-len(text))
		if from < free {
			continue
		}
		copy(line[from:], text)
		free = from + len(text) + 1
	}
	return string(line)
}

// Row draws a line with the bar of an experiment and its figure.
func (a Axis) Row(x compare.TrendPoint) string {
	line := []rune(strings.Repeat(" ", axisWidth))
	for _, v := range a.ticks {
		line[column(a.at(v))] = '.'
	}
	if x.Low != nil && x.High != nil {
		for i := column(a.at(*x.Low)); i <= column(a.at(*x.High)); i++ {
			line[i] = '-'
		}
	}
	if x.Value != nil {
		line[column(a.at(*x.Value))] = 'o'
	}
	return string(line)
}

// Bar is a change with its interval as a small picture.
type Bar struct {
	Zero, From, To, At float64 // across the picture
	BandFrom, BandWide float64 // the margin's band
	Left, Right        bool    // the interval goes on beyond the picture
	Wide               float64 // width of the picture
}

// The bounds of the small pictures of changes.
const (
	barWide   = 150.0
	barMost   = 1.0 // the largest change at the edge of a picture
	barMargin = 4.0 // the smallest change there, in margins
)

// Widest returns the change at the edge of the pictures of metrics.
func Widest(margin float64, of []compare.Compared) float64 {
	most := barMargin * margin
	for _, m := range of {
		for _, v := range []*float64{m.Change, m.Lo, m.Hi} {
			if v != nil {
				most = max(most, math.Abs(*v))
			}
		}
	}
	return max(min(most, barMost), 2*margin)
}

// BarOf returns the picture of a metric's known change.
func BarOf(margin float64, m compare.Compared, wide float64) *Bar {
	at := func(v float64) float64 {
		return result.Round(barWide/2+max(-1, min(1, v/wide))*(barWide/2-7), 2)
	}
	b := &Bar{Zero: at(0), At: at(*m.Change), Wide: barWide, BandFrom: at(-margin), BandWide: result.Round(at(margin)-at(-margin), 2)}
	b.From, b.To = b.At, b.At
	if m.Lo != nil && m.Hi != nil {
		b.From, b.To, b.Left, b.Right = at(*m.Lo), at(*m.Hi), *m.Lo < -wide, *m.Hi > wide
	}
	return b
}
