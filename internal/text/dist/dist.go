// Package dist answers one question: how long is a planted delay? It holds
// the three shapes of delay that a lab can plant, each as an inverse
// cumulative distribution, so that whoever draws brings the randomness and a
// drawn delay can be recomputed from what was recorded.
package dist

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Shape names the shape of a distribution.
type Shape string

// The shapes that can be planted.
const (
	Constant  Shape = "constant"  // every delay is A
	Uniform   Shape = "uniform"   // evenly between A and B
	Lognormal Shape = "lognormal" // median A, 99th percentile B
)

// Dist is a distribution of delays. The zero value is a constant delay of 0.
type Dist struct {
	Shape Shape
	A, B  time.Duration
}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// Grammar is the syntax that Parse accepts, for help and error texts.
const Grammar = "constant:D | uniform:LO,HI | lognormal:P50,P99"

// Parse reads a distribution as written on the command line, for example
// "uniform:500ms,1.5s". The empty string is a constant delay of 0.
func Parse(s string) (Dist, error) {
	if s == "" {
		return Dist{}, nil
	}
	kind, rest, ok := strings.Cut(s, ":")
	if !ok {
		return Dist{}, fmt.Errorf("delay %q has no shape: want %s", s, Grammar)
	}
	parts := strings.Split(rest, ",")
	d := Dist{Shape: Shape(kind)}
	want := 2
	switch d.Shape {
	case Constant:
		want = 1
	case Uniform, Lognormal:
	default:
		return Dist{}, fmt.Errorf("delay %q has the unknown shape %q: want %s", s, kind, Grammar)
	}
	if len(parts) != want {
		return Dist{}, fmt.Errorf("delay %q has %d durations where %s takes %d: want %s", s, len(parts), kind, want, Grammar)
	}
	for i, p := range parts {
		v, err := time.ParseDuration(strings.TrimSpace(p))
		if err != nil {
			return Dist{}, fmt.Errorf("delay %q: %q is not a duration such as 250ms or 1.5s", s, p)
		}
		if v < 0 {
			return Dist{}, fmt.Errorf("delay %q: %q is negative", s, p)
		}
		if i == 0 {
			d.A = v
		} else {
			d.B = v
		}
	}
	if want == 2 && d.B < d.A {
		return Dist{}, fmt.Errorf("delay %q: the second duration is below the first", s)
	}
	if d.Shape == Lognormal && d.A == 0 {
		return Dist{}, fmt.Errorf("delay %q: a lognormal median must be above 0", s)
	}
	return d, nil
}

// String writes the distribution as Parse reads it. The zero value is "".
func (d Dist) String() string {
	switch d.Shape {
	case Constant:
		return fmt.Sprintf("%s:%s", d.Shape, d.A)
	case Uniform, Lognormal:
		return fmt.Sprintf("%s:%s,%s", d.Shape, d.A, d.B)
	}
	return ""
}

// UnmarshalText reads what Parse does.
func (d *Dist) UnmarshalText(text []byte) (err error) {
	*d, err = Parse(string(text))
	return err
}

// MarshalText writes what UnmarshalText reads.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// IsZero reports whether every delay is 0.
func (d Dist) IsZero() bool { return d.A == 0 && d.B == 0 }

// At returns the delay at quantile u, 0 <= u < 1: the inverse cumulative
// distribution. Given u uniform on [0, 1) the result has this distribution.
func (d Dist) At(u float64) time.Duration {
	switch d.Shape {
	case Uniform:
		return d.A + time.Duration(u*float64(d.B-d.A))
	case Lognormal:
		mu := math.Log(float64(d.A))
		sigma := (math.Log(float64(d.B)) - mu) / z99
		// The open interval keeps the delay finite at either end.
		u = math.Min(math.Max(u, 1e-12), 1-1e-12)
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		return time.Duration(math.Exp(mu + sigma*z))
	default:
		return d.A
	}
}
