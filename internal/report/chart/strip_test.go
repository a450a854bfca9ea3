package chart

import (
	"fmt"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// No two numbers of a strip lie on each other, as long as there are lanes.
func TestStripsKeepNumbersApart(t *testing.T) {
	s := result.Step{Start: "2030-01-02T03:04:05.000000Z", End: "2030-01-02T03:04:15.000000Z", ReachSeconds: new(5.0)}
	for i := range 15 {
		s.Breaches = append(s.Breaches, result.Breach{Time: fmt.Sprintf("2030-01-02T03:04:%09.6fZ", 5+float64(i/3*3)/2), Decided: i%2 == 0})
	}
	const phone = 320 // pixels of a strip there
	p := StripOf(s)
	for i, a := range p.Marks {
		if a.X < stripFrom || a.X > stripTo || a.Y < 0 || a.Y > p.Base() {
			t.Errorf("mark %d lies outside: %+v", i, a)
		}
		for _, b := range p.Marks[:i] {
			if dx, dy := (a.X-b.X)*phone/100, a.Y-b.Y; dx*dx+dy*dy < 20*20 {
				t.Errorf("marks %d and %d lie on each other: %+v %+v", b.N, a.N, b, a)
			}
		}
	}
	if p.Hold != 50 || p.HoldWidth < 46.59 || p.HoldWidth > 46.61 {
		t.Errorf("the hold lies from %v, %v wide", p.Hold, p.HoldWidth)
	}
	if broken := StripOf(result.Step{Start: "x", Breaches: []result.Breach{{Time: "y"}}}); len(broken.Marks) != 1 || broken.Marks[0].X != stripFrom {
		t.Errorf("times that cannot be read: %+v", broken)
	}
}
