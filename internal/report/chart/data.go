// Package chart prepares the data of a page's charts: distributions and courses thinned to what can be
// seen, and the table of all objects packed. It is pure.
package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/objects"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Recorded holds the parts of a run directory that charts need.
type Recorded struct {
	Result      result.Result
	Plan        *plan.Plan               // as it was run, nil where it cannot be read
	Environment *record.Environment      // nil when the run ended before it had described one
	Objects     *objects.Table           // nil without a table of the objects: then the page leaves out its charts
	Windows     map[int][]*record.Window // of the steps with a stream, by the step's ID; nil for none
	Samples     map[int][]record.Event   // of the kind's charts, likewise
}

// Data holds a page's charts. Times are in seconds since the run's start unless a name says otherwise.
type Data struct {
	Result     result.Result `json:"result"`
	Axis       string        `json:"axis"`
	Unit       string        `json:"unit"`
	Arrived    string        `json:"arrived"`
	CPUs       int           `json:"cpus"` // of the machine that this program ran on, 0 is unknown
	Milestones []string      `json:"milestones"`
	Bounds     []Bound       `json:"bounds"`
	Times      [][2]float64  `json:"times"` // the start and the end of each step
	// Curves are distributions. Distribution has, by milestone, the index of each step's own in Curves,
	// or -1: milestones that were reached at the same moments share one.
	Curves       []curve          `json:"curves"`
	Distribution map[string][]int `json:"distribution"`
	Progress     []stretch        `json:"progress"`
	Streams      []streamCourse   `json:"streams,omitempty"` // of steps whose load was a stream
	Objects      *Packed          `json:"objects"`
	Trends       []compare.Trend  `json:"trends,omitempty"`
	Grid         *Grid            `json:"grid,omitempty"`
}

// Bound is an objective on a latency, as a line in a chart.
type Bound struct {
	Goal      string  `json:"goal"`
	Text      string  `json:"text"`
	Milestone string  `json:"milestone"`
	Q         float64 `json:"q"` // 1 for all
	Seconds   float64 `json:"seconds"`
}

// curve holds points as differences from the one before: x in microseconds, y in objects.
type curve struct {
	N    int     `json:"n"` // requested objects
	X    []int64 `json:"x"`
	Y    []int64 `json:"y"`
	Took float64 `json:"took"` // the largest vertical error by thinning, as a share of N
}

// stretch counts the objects in place and there, from the start of a step to that of the next.
type stretch struct {
	Step  int   `json:"step"`
	Asked curve `json:"asked"`
	There curve `json:"there"`
}

// The bounds of the curves of one page.
const (
	allVertices      = 18_000 // of all distributions together
	allProgress      = 8_000  // of all stretches together
	fewVertices      = 40     // that any curve may have
	progressVertices = 300    // of a stretch's curve, where there are few stretches
	plateau          = 0.02   // share of a stretch without change from which on it is drawn level
)

// Of sums up a run for the charts.
func Of(in Recorded) (Data, error) {
	d := Data{
		Result: in.Result, Arrived: cmp.Or(in.Result.Arrived, in.Result.ObjectKind.There),
		Milestones: milestonesOf(in), Bounds: boundsOf(in.Result),
		Times: make([][2]float64, len(in.Result.Steps)), Curves: []curve{}, Distribution: map[string][]int{}, Progress: []stretch{},
	}
	d.Axis, d.Unit = axisOf(in)
	var origin time.Time
	if in.Environment != nil {
		origin = in.Environment.Start
	}
	d.CPUs, _ = strconv.Atoi(in.Environment.Value("host:cpus")) // 0 where it is not on record
	for i, s := range in.Result.Steps {
		d.Times[i] = [2]float64{since(origin, s.Start), since(origin, s.End)}
	}
	if in.Objects != nil && in.Windows == nil {
		d.distributions(in)
		d.progress(in)
	}
	if err := d.streams(in); err != nil {
		return d, err
	}
	var err error
	d.Objects, err = pack(in.Objects, in.Result.ObjectKind)
	return d, err
}

func since(origin time.Time, moment string) float64 {
	t, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return 0
	}
	return float64(t.Sub(origin).Round(time.Microsecond)/time.Microsecond) / 1e6
}

func axisOf(in Recorded) (axis, unit string) {
	if in.Plan != nil {
		axis = in.Plan.Axis.Name
		if in.Plan.AsRun != nil {
			unit = in.Plan.AsRun.Unit
		}
	}
	if l := in.Result.LoadLine; l != nil {
		axis, unit = cmp.Or(l.Axis, axis), cmp.Or(l.Unit, unit)
	}
	return axis, unit
}

// milestonesOf returns the milestones with latencies, in the order in which objects reach them.
func milestonesOf(in Recorded) []string {
	var order []string
	if in.Plan != nil && in.Plan.AsRun != nil {
		order = in.Plan.AsRun.Milestones
	}
	list := []string{}
	for _, s := range in.Result.Steps {
		for m := range s.Latency {
			if !slices.Contains(list, m) {
				list = append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		i, j := slices.Index(order, a), slices.Index(order, b)
		if i < 0 || j < 0 {
			i, j = -i, -j // one that the plan does not know comes last
		}
		return cmp.Or(cmp.Compare(i, j), strings.Compare(a, b))
	})
	return list
}

func boundsOf(r result.Result) []Bound {
	list := []Bound{}
	for _, g := range r.Goals {
		for _, text := range g.SLO {
			s, err := slo.Parse(text)
			if err != nil || s.Within <= 0 {
				continue
			}
			b := Bound{Goal: g.Name, Text: text, Milestone: s.Milestone, Q: 1, Seconds: s.Within.Seconds()}
			if s.Form == slo.Quantile {
				b.Q = s.Q
			}
			list = append(list, b)
		}
	}
	return list
}

func (d *Data) distributions(in Recorded) {
	zero, byStep := in.Objects.Zeroes(), in.Objects.Judged(in.Result.Steps)
	type key struct {
		step      int
		milestone string
	}
	values := make(map[key][]int64)
	same := make(map[key]key) // milestones that were reached at once need one curve
	distinct := 0
	for _, s := range in.Result.Steps {
		var before []key
		for _, m := range d.Milestones {
			l, ok := s.Latency[m]
			at := in.Objects.Micros(m)
			if !ok || at == nil || l.N == 0 {
				continue
			}
			k := key{s.ID, m}
			values[k] = objects.Latencies(byStep[int64(s.ID)], at, zero, l.N-l.Censored)
			same[k] = k
			for _, b := range before {
				if slices.Equal(values[b], values[k]) && s.Latency[b.milestone].N == l.N {
					same[k] = b
				}
			}
			if same[k] == k {
				before = append(before, k)
				distinct++
			}
		}
	}
	most := max(min(maxVertices, allVertices/max(distinct, 1)), fewVertices)
	index := make(map[key]int)
	for _, m := range d.Milestones {
		list := make([]int, len(in.Result.Steps))
		for i, s := range in.Result.Steps {
			list[i] = -1
			k, ok := same[key{s.ID, m}]
			if !ok {
				continue
			}
			at, ok := index[k]
			if !ok {
				at = len(d.Curves)
				index[k] = at
				d.Curves = append(d.Curves, distributionOf(values[k], s.Latency[m].N, most))
			}
			list[i] = at
		}
		d.Distribution[m] = list
	}
}

type change struct{ t, by int64 }

// progress fills in the numbers of requested objects and of those that were there, over time.
func (d *Data) progress(in Recorded) {
	steps := in.Result.Steps
	if len(steps) == 0 {
		return
	}
	start := make([]int64, len(steps))
	for i := range steps {
		start[i] = int64(math.Round(d.Times[i][0] * 1e6))
	}
	emptied := make(map[int64]int64) // the next time that the target was empty, by step
	next := int64(math.MaxInt64)
	for i, s := range slices.Backward(steps) {
		emptied[int64(s.ID)] = next
		if s.FromEmpty {
			next = start[i]
		}
	}
	o := in.Objects
	sent, intended, step := o.Micros("sent"), o.Micros("intended"), o.Numbers("step")
	arrived, deleted := o.Micros(d.Arrived), o.Micros(in.Result.ObjectKind.Gone)
	if sent == nil || intended == nil || step == nil || arrived == nil {
		return
	}
	var asked, there []change
	for row := range o.Rows {
		from := sent[row]
		if from < 0 {
			from = intended[row]
		}
		until, ok := emptied[step[row]]
		if from < 0 || !ok {
			continue
		}
		if deleted != nil && deleted[row] >= 0 {
			until = min(until, deleted[row])
		}
		asked = append(asked, change{from, 1})
		if until != math.MaxInt64 {
			asked = append(asked, change{max(until, from), -1})
		}
		if t := arrived[row]; t >= 0 && t < until {
			there = append(there, change{t, 1})
			if until != math.MaxInt64 {
				there = append(there, change{until, -1})
			}
		}
	}
	for _, changes := range [][]change{asked, there} {
		slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(b.by, a.by)) })
	}
	most := max(min(progressVertices, allProgress/(2*len(steps))), fewVertices)
	highest := max(height(asked), 1)
	end := int64(math.Round(d.Times[len(steps)-1][1] * 1e6))
	var countAsked, countThere int64
	for i, s := range steps {
		until := end
		if i+1 < len(steps) {
			until = start[i+1]
		}
		part := stretch{Step: s.ID}
		part.Asked, asked, countAsked = count(asked, countAsked, start[i], until, highest, most)
		part.There, there, countThere = count(there, countThere, start[i], until, highest, most)
		d.Progress = append(d.Progress, part)
	}
}

func height(changes []change) int64 {
	var now, most int64
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// count draws a count from one time to another, and returns the changes after it and the last count.
func count(changes []change, now, from, until, highest int64, most int) (curve, []change, int64) {
	var line []vertex
	for len(changes) > 0 && changes[0].t < from {
		now += changes[0].by
		changes = changes[1:]
	}
	line = append(line, vertex{float64(from), float64(now)})
	for len(changes) > 0 && changes[0].t < until {
		t := changes[0].t
		line = append(line, vertex{float64(t), float64(now)})
		for len(changes) > 0 && changes[0].t == t {
			now += changes[0].by
			changes = changes[1:]
		}
		line = append(line, vertex{float64(t), float64(now)})
	}
	line = append(line, vertex{float64(until), float64(now)})
	keep := make([]bool, len(line))
	for i := 1; i < len(line); i++ {
		if line[i].y == line[i-1].y && line[i].x-line[i-1].x > plateau*float64(until-from) {
			keep[i-1], keep[i] = true, true
		}
	}
	return thinned(line, keep, int(highest), most, false), changes, now
}

// differences returns the difference of each number from the one before it, which is shorter to write.
func differences(list []int64) []int64 {
	out := make([]int64, len(list))
	last := int64(0)
	for i, n := range list {
		out[i], last = n-last, n
	}
	return out
}
