package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
)

// A configuration of kube-burner that is killed at an event of its record has every object in its record, or the next
// command removes it: 5 events, or with the whole matrix 50, one of each kind first.
func TestAConfigurationThatIsKilled(t *testing.T) {
	suite.Long(t, "it runs a configuration in a lab, again and again")
	t.Parallel()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	// In so many labs at once, as the names of their objects are the same.
	times, labs := 5, 1
	if os.Getenv(sizeVariable) == "whole" {
		times, labs = 50, 4
	}
	cellIn := func(lab *sharedLab, name string) *cell {
		return &cell{
			fault: fault{name: "SIGKILL of a configuration", must: resumed}, p: lab.p, lab: lab, nodes: "pair-0", out: "killed-" + name,
			load: load{args: []string{"./killed.yml", "--axis", "jobs", "--hooks"}, created: "pods", bound: 2 * time.Minute},
		}
	}
	first := newLab(t, false)
	twin := cellIn(first, "twin")
	twin.start(t)
	if twin.end(); twin.got.Code != process.ExitPass && !twin.busy() || len(twin.left(t)) > 0 {
		t.Fatalf("without a signal: exit code %d, left %q\n%s", twin.got.Code, twin.left(t), twin.said())
	}
	moments := momentsOf(record.Dir(filepath.Join(first.p.Dir, twin.out)), rand.New(rand.NewPCG(seed, 0)))
	if len(moments) < 50 {
		t.Fatalf("the record has %d events", len(moments))
	}
	for n := range labs {
		t.Run(fmt.Sprint("lab ", n), func(t *testing.T) {
			t.Parallel()
			lab, before := first, awaited{}
			if n > 0 {
				lab = newLab(t, false)
			}
			for i := n; i < times; i += labs {
				c := cellIn(lab, strconv.Itoa(i))
				c.moment = moments[i]
				c.start(t)
				before.cells++
				if !c.await() {
					before.before++
				}
				c.got, c.took = c.run.Kill(), time.Since(c.begun)
				c.accounted(t)
				left := len(c.left(t))
				if left > 0 {
					c.clean(t, nil)
				}
				t.Logf("killed when %s, after %v: %d objects were left, removed after %v", c.moment.name, c.took.Round(time.Millisecond), left, time.Since(c.begun).Round(time.Millisecond))
				if len(c.problems) > 0 {
					t.Errorf("killed when %s (seed %d): %q\n%s", c.moment.name, seed, c.problems, c.said())
				}
			}
			if before.tooMany() {
				t.Error(before)
			}
		})
	}
}

// accounted judges the record of a run that was killed, and checks that each object that was asked for has an outcome.
func (c *cell) accounted(t *testing.T) {
	c.p.Run(t, "analyze", c.out)
	c.read()
	c.counted()
	if c.result == nil {
		return
	}
	for _, s := range c.result.Steps {
		if o := s.Objects; o.Intended != o.Ready+o.NeverReady+o.Lost+o.CreateFailed+o.Dropped {
			c.problem("step %d: %+v", s.ID, o)
		}
	}
}

// momentsOf returns the moments of the events of a record in a random order, in which one event of each kind goes first.
func momentsOf(dir record.Dir, random *rand.Rand) []moment {
	seen := make(map[string]int)
	var first, rest []moment
	record.ReadHistory(dir, func(e record.Event) error {
		kind := kindOf(e)
		if kind == "" {
			return nil
		}
		seen[kind]++
		m := recorded(fmt.Sprintf("%s %d is on record", kind, seen[kind]), seen[kind], func(e record.Event) bool { return kindOf(e) == kind })
		if seen[kind] == 1 {
			first = append(first, m)
		} else {
			rest = append(rest, m)
		}
		return nil
	})
	for _, list := range [][]moment{first, rest} {
		random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
	}
	return slices.Concat(first, rest)
}

// kindOf names the kind of an event that a signal can follow, "" for others.
func kindOf(e record.Event) string {
	switch b := e.Body.(type) {
	case *record.Slot:
		return fmt.Sprintf("request for a %s of %s", cmp.Or(b.Resource, "pod"), b.Component)
	case *record.StepEvent:
		return fmt.Sprint("step ", b.Phase)
	case *record.RunEvent:
		return fmt.Sprint("run ", b.Phase)
	case *record.Object:
		return "milestone " + b.Milestone
	case *record.Release, *record.Cleanup, *record.Log:
		return string(b.Kind())
	}
	return ""
}
