package chart

import (
	"math"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
)

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
