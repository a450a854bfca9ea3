package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// planted is a real node whose parts use what is planted.
type planted struct {
	memory, start, stand, idle float64 // of a pod in bytes, seconds and CPUs, and CPUs without any
	drift                      float64 // bytes a second
}

// ladder makes a run of steps of so many pods each, from two a second on, whose
// readings follow p. Noise is that of a reading, as a share.
func (p planted) ladder(s *script, noise float64, levels []int, changes ...func(*record.StepEvent)) {
	draw := rand.New(rand.NewPCG(1, 2))
	now, pods := 0, 0
	cpu, left := 100.0, map[int]float64{}
	read := func() {
		share := func() float64 { return 1 + noise*(2*draw.Float64()-1) }
		s.at(float64(now) + 0.01*draw.Float64()) // no reading comes on the dot
		cpu += (p.idle + p.stand*float64(pods)) * share()
		for t, used := range left { // a start is spread over two seconds
			if now-t < 2 {
				cpu += used / 2 * share()
			} else {
				delete(left, t)
			}
		}
		held := 50e6 + p.memory*float64(pods) + p.drift*float64(now)
		for _, source := range []string{"kubelet", usage.SourcePlace, usage.SourceRuntime, usage.SourceSelf} {
			s.put(&record.Reading{Source: source, Values: map[string]float64{"cpuSeconds": cpu, "rssBytes": held + noise*p.memory*draw.Float64()}})
		}
	}
	for i, level := range levels {
		now++
		s.at(float64(now))
		s.begin(float64(level), changes...)
		read()
		for round := 0; pods < level; round++ {
			for range 1 + round%3 {
				if pods == level {
					break
				}
				name := fmt.Sprintf("p%d", pods)
				s.made(name, 0)
				left[now+1] += p.start
				pods++
			}
			now++
			read()
		}
		s.put(&record.StepEvent{Phase: record.PhaseReached})
		for range 11 + i%2 {
			now++
			read()
		}
		s.end(record.EndHeld)
	}
}

func costOf(t *testing.T, r result.Result, source string) result.ObjectCost {
	t.Helper()
	if r.Overhead == nil {
		t.Fatal("nothing is told of the cost of a pod")
	}
	for _, c := range r.Overhead.Costs {
		if c.Source == source {
			return c
		}
	}
	t.Fatalf("nothing is told of %s: %+v", source, r.Overhead)
	return result.ObjectCost{}
}

func TestOverheadThatWasPlantedIsFound(t *testing.T) {
	p := planted{memory: 2e6, start: 0.2, stand: 0.004, idle: 0.1, drift: 30e3}
	within := func(what string, s result.Slope, want, by float64, from string) {
		t.Helper()
		// When a start takes what it takes is known to some seconds only, so that
		// the figure can be some per cent off.
		if s.Unknown != "" || s.From != from || math.Abs(*s.Value-want) > 0.1*want || *s.Hi-*s.Lo > by*want {
			t.Errorf("%s: %s [%s, %s] from %s (%q), want %g from %s, to %g%%", what, show(s.Value), show(s.Lo), show(s.Hi), s.From, s.Unknown, want, from, 100*by)
		}
	}
	few := newScript(t)
	p.ladder(few, 0.05, []int{20, 40, 60})
	r := few.finish(design.Sweep{})
	c := costOf(t, r, "kubelet")
	within("memory of three levels", c.Memory, p.memory, 0.3, result.FromSteps)
	within("start", c.Start, p.start, 0.5, result.FromPhases)
	within("while it stands", c.Stand, p.stand, 0.7, result.FromPhases)
	if r.Overhead.Objects != 60 || r.Overhead.Steps != 3 {
		t.Errorf("it stands on %+v", r.Overhead)
	}
	if c := costOf(t, r, usage.SourceRuntime); c.Memory.Unknown == "" || c.Start.Unknown != "" {
		t.Errorf("the memory of a runtime cannot be told, its CPU time can: %+v", c)
	}
	for _, c := range r.Overhead.Costs {
		if c.Source == usage.SourceSelf {
			t.Error("this program is told as a part of the node")
		}
	}

	many := newScript(t)
	p.ladder(many, 0.05, []int{10, 20, 30, 40, 50, 60, 70})
	c = costOf(t, many.finish(design.Sweep{}), "kubelet")
	// What grows with time counts as the pods' where the levels decide.
	if c.Memory.From != result.FromLevels || *c.Memory.Value < p.memory {
		t.Errorf("memory of seven levels: %+v", c.Memory)
	}
	within("while it stands, seven levels", c.Stand, p.stand, 0.5, result.FromPhases)
}

func TestOverheadIsUnknownOfTooLittle(t *testing.T) {
	p := planted{memory: 2e6, start: 0.2, idle: 0.1}
	s := newScript(t)
	p.ladder(s, 0, []int{10, 20})
	c := costOf(t, s.finish(design.Sweep{}), "kubelet")
	if !strings.Contains(c.Memory.Unknown, "2 steps that raised the level") || !strings.Contains(c.Start.Unknown, "4 loading and hold phases") || c.Start.Value != nil {
		t.Errorf("two steps: %+v", c)
	}
	s = newScript(t)
	s.begin(1)
	s.made("a", 0.1)
	s.put(&record.Reading{Source: "etcd", Values: map[string]float64{"cpuSeconds": 1}})
	s.end(record.EndHeld)
	if r := s.finish(design.Sweep{}); r.Overhead != nil {
		t.Errorf("without a real node: %+v", r.Overhead)
	}
}
