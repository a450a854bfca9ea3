package kubeburner

import (
	"fmt"
	"testing"
	"time"
)

// The steps of a load that is raised are kube-burner's.
func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		why  string
		load IncrementalLoad
		want string
	}{
		{"by a size", IncrementalLoad{StartIterations: 2, TotalIterations: 9, Pattern: LoadPattern{Type: "linear", Linear: LinearPattern{StepSize: 3}}}, "[2 5 8 9]"},
		{"in so many steps at least", IncrementalLoad{StartIterations: 2, TotalIterations: 10, Pattern: LoadPattern{Type: "linear", Linear: LinearPattern{StepSize: 8, MinSteps: 4}}}, "[2 4 6 8 10]"},
		{"in more than there are", IncrementalLoad{StartIterations: 1, TotalIterations: 3, Pattern: LoadPattern{Type: "linear", Linear: LinearPattern{StepSize: 1, MinSteps: 9}}}, "[1 2 3]"},
		{"the first is all", IncrementalLoad{StartIterations: 3, TotalIterations: 3, Pattern: LoadPattern{Type: "linear", Linear: LinearPattern{StepSize: 1}}}, "[3]"},
		{"by powers", IncrementalLoad{StartIterations: 1, TotalIterations: 40, Pattern: LoadPattern{Type: "exponential", Exponential: ExponentialPattern{Base: 2}}}, "[1 5 13 29 40]"},
		{"after a warm-up", IncrementalLoad{StartIterations: 2, TotalIterations: 40, Pattern: LoadPattern{Type: "exponential", Exponential: ExponentialPattern{Base: 2, WarmupSteps: 2}}}, "[2 4 8 16 32 40]"},
		{"within a bound", IncrementalLoad{StartIterations: 1, TotalIterations: 12, Pattern: LoadPattern{Type: "exponential", Exponential: ExponentialPattern{Base: 2, MaxIncrease: 3}}}, "[1 4 7 10 12]"},
		{"by a power beyond all numbers", IncrementalLoad{StartIterations: 1, TotalIterations: 1 << 40, Pattern: LoadPattern{Type: "exponential", Exponential: ExponentialPattern{Base: 1e300}}}, "[1 1099511627776]"},
	} {
		if got := fmt.Sprint(tt.load.levels()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
	endless := IncrementalLoad{StartIterations: 1, TotalIterations: 1 << 40, Pattern: LoadPattern{Type: "linear", Linear: LinearPattern{StepSize: 1}}}
	if n := len(endless.levels()); n != mostStages+1 {
		t.Errorf("%d levels", n)
	}
}

// Each step is a job of its own, and hooks stay where the whole job has them.
func TestStages(t *testing.T) {
	hook := func(when string) Hook { return Hook{Cmd: []string{"x"}, When: when} }
	some := []Object{{}}
	c := &Config{Jobs: []Job{{Name: "idle", JobPause: time.Hour}, {Name: "a", Objects: some}, {Name: "idle, too", JobPause: time.Minute}, {Name: "b", Objects: some, JobIterations: 7, JobPause: time.Second, Hooks: []Hook{hook(BeforeJob), hook(OnEachIteration), hook(AfterJob)},
		ChurnConfig:     ChurnConfig{Cycles: 2},
		IncrementalLoad: &IncrementalLoad{StartIterations: 1, TotalIterations: 3, StepDelay: time.Minute, HealthCheckScript: "check.sh  -v", Pattern: LoadPattern{Linear: LinearPattern{StepSize: 1}}}}, {Name: "c", Hooks: []Hook{hook(BeforeJob)}}}}
	first, second, third := []*Template{}, []*Template{nil}, []*Template{nil, nil}
	templates := c.Stages([][]*Template{nil, first, nil, second, third})
	got := ""
	for i, j := range c.Jobs {
		got += fmt.Sprint(j.Name, " ", len(templates[i]), " ", j.From, "-", j.JobIterations, " ", j.JobPause, " ", j.ChurnConfig.Cycles)
		for _, h := range j.Hooks {
			if got += " " + h.When; h.When == HealthCheck {
				got += fmt.Sprint(h.Cmd)
			}
		}
		got += "\n"
	}
	if want := `a 0 0-0 1m0s 0
b 1 0-1 1m0s 0 healthCheckScript[/bin/sh check.sh -v] beforeJobExecution onEachIteration
b 1 1-2 1m0s 0 healthCheckScript[/bin/sh check.sh -v] onEachIteration
b 1 2-3 1s 2 healthCheckScript[/bin/sh check.sh -v] onEachIteration afterJobExecution
c 2 0-0 0s 0 beforeJobExecution
`; got != want {
		t.Errorf("%s", got)
	}
}

// Where no job does anything, they stay: the run says that nothing was asked for.
func TestIdleJobsAlone(t *testing.T) {
	c := &Config{Jobs: []Job{{Name: "a"}, {Name: "b"}}}
	if c.Stages(nil); len(c.Jobs) != 2 {
		t.Errorf("%+v", c.Jobs)
	}
}
