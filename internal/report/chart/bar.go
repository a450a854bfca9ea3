package chart

import (
	"math"

	"plimsoll.dev/plimsoll/internal/judge/compare"
)

// Bar is a change with its interval as a small picture.
type Bar struct {
	Zero, From, To, At float64 // across the picture
	BandFrom, BandWide float64 // the margin's band
	Left, Right        bool    // the interval goes on beyond the picture
	Wide               float64 // how wide the picture is
}

// Bounds of the small pictures of changes.
const (
	barWide   = 150.0
	barMost   = 1.0 // the change at the edge of a picture is not more than this
	barMargin = 4.0 // and not less than so many margins
)

// Widest is the change that lies at the edge of the pictures of metrics.
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

// BarOf is the picture of a metric's change, where that is known.
func BarOf(margin float64, m compare.Compared, wide float64) *Bar {
	at := func(v float64) float64 {
		return round(barWide/2 + max(-1, min(1, v/wide))*(barWide/2-7))
	}
	b := &Bar{Zero: at(0), At: at(*m.Change), Wide: barWide, BandFrom: at(-margin), BandWide: round(at(margin) - at(-margin))}
	b.From, b.To = b.At, b.At
	if m.Lo != nil && m.Hi != nil {
		b.From, b.To, b.Left, b.Right = at(*m.Lo), at(*m.Hi), *m.Lo < -wide, *m.Hi > wide
	}
	return b
}

// round is x to two digits after the point.
func round(x float64) float64 { return math.Round(100*x) / 100 }
