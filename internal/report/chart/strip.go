package chart

import (
	"math"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// Between returns the seconds from one moment of result.json to another, NaN where one cannot be read.
func Between(start, moment string) float64 {
	from, err := time.Parse(time.RFC3339Nano, start)
	to, toErr := time.Parse(time.RFC3339Nano, moment)
	if err != nil || toErr != nil {
		return math.NaN()
	}
	return to.Sub(from).Seconds()
}

// Strip is a step's time from left to right, with a mark for each breach. What lies along it is in percent
// of its width, so that figures are as large on a phone; heights are in pixels.
type Strip struct {
	Marks     []stripMark
	From, To  float64 // of the line of time
	Hold      float64 // the begin of the hold, 0 without one
	HoldWidth float64
	Took      float64 // in seconds
	Height    float64
}

type stripMark struct {
	N       int
	X, Y    float64
	Decided bool
}

// The strip's measures: lanes in pixels, all else in percent of its width. A mark of 20 pixels has stripRoom
// on a phone, whose strip is 320 pixels wide.
const (
	stripFrom  = 3.4
	stripTo    = 96.6
	stripRoom  = 6.8
	stripLane  = 24.0
	stripLanes = 8
)

// StripOf returns the strip of a step.
func StripOf(s result.Step) Strip {
	took := Between(s.Start, s.End)
	if !(took > 0) {
		took = 1
	}
	x := func(seconds float64) float64 { return stripFrom + (stripTo-stripFrom)*min(max(seconds/took, 0), 1) }
	p := Strip{Took: took, From: stripFrom, To: stripTo}
	if s.ReachSeconds != nil {
		p.Hold = math.Round(10*x(*s.ReachSeconds)) / 10
		p.HoldWidth = stripTo - p.Hold
	}
	var free [stripLanes]float64 // the begin of the free part of a lane
	lanes := 1
	for i, b := range s.Breaches {
		m := stripMark{N: i + 1, Decided: b.Decided, X: math.Round(100*x(Between(s.Start, b.Time))) / 100}
		if math.IsNaN(m.X) {
			m.X = stripFrom
		}
		lane := 0
		for l := range free {
			if free[l] <= m.X {
				lane = l
				break
			}
			if free[l] < free[lane] {
				lane = l
			}
		}
		free[lane] = m.X + stripRoom
		lanes = max(lanes, lane+1)
		m.Y = float64(lane)
		p.Marks = append(p.Marks, m)
	}
	for i := range p.Marks {
		p.Marks[i].Y = stripLane*(float64(lanes-1)-p.Marks[i].Y) + 14
	}
	p.Height = stripLane*float64(lanes) + 30
	return p
}

// Base returns the height of the line of time.
func (s Strip) Base() float64 { return s.Height - 24 }

// HoldText returns the place of the word over the hold.
func (s Strip) HoldText() float64 { return min(max(s.Hold, 20), 72) }

// Foot returns the height of its figures.
func (s Strip) Foot() float64 { return s.Height - 6 }
