package kubeburner

import (
	"math"
	"slices"
	"strings"
)

// mostStages bounds the steps of one incrementalLoad.
const mostStages = 1000

// levels returns the iterations that are there at each step, at most mostStages+1.
func (l *IncrementalLoad) levels() (list []int) {
	total := max(l.TotalIterations, l.StartIterations)
	step := max(l.Pattern.Linear.StepSize, 1)
	if least := l.Pattern.Linear.MinSteps; least > 0 && (total-l.StartIterations+step-1)/step < least {
		step = max((total-l.StartIterations+least-1)/least, 1)
	}
	e := &l.Pattern.Exponential
	for at := l.StartIterations; ; {
		list = append(list, at)
		if at >= total || len(list) > mostStages {
			return list
		}
		more := step
		if l.Pattern.Type == "exponential" {
			more = l.StartIterations
			if n := len(list) + 1; n > e.WarmupSteps { // the first step counts as one of them
				// Powers count from the first step after the warm-up.
				more = int(min(math.Pow(e.Base, float64(n-e.WarmupSteps)), float64(total))) * l.StartIterations
				if e.MaxIncrease > 0 {
					more = min(more, e.MaxIncrease)
				}
			}
		}
		at = min(at+max(more, 1), total)
	}
}

// idle reports whether a job does nothing but pause: its step would have no verdict.
func (j *Job) idle() bool { return len(j.Objects)+len(j.Hooks) == 0 }

// Stages makes a job of each step of an incrementalLoad: it has the iterations from From on, and the last one churns.
// Documents and labels know them as one job. An idle job beside others becomes a pause of the one before it. It returns the
// templates of all jobs; of has those before, or is nil.
func (c *Config) Stages(of [][]*Template) (templates [][]*Template) {
	var jobs []Job
	works := slices.ContainsFunc(c.Jobs, func(j Job) bool { return !j.idle() })
	for i, j := range c.Jobs {
		if works && j.idle() {
			if n := len(jobs); n > 0 {
				jobs[n-1].JobPause += j.JobPause
			}
			continue
		}
		add := func(j Job) {
			jobs = append(jobs, j)
			if of != nil {
				templates = append(templates, of[i])
			}
		}
		if j.IncrementalLoad == nil {
			add(j)
			continue
		}
		levels, from := j.IncrementalLoad.levels(), 0
		for i, to := range levels {
			s := j
			s.IncrementalLoad, s.From, s.JobIterations, s.Hooks = nil, from, to, nil
			last := i == len(levels)-1
			if from = to; !last {
				s.JobPause, s.ChurnConfig = j.IncrementalLoad.StepDelay, ChurnConfig{}
			}
			if script := strings.Fields(j.IncrementalLoad.HealthCheckScript); len(script) > 0 {
				s.Hooks = append(s.Hooks, Hook{Cmd: append([]string{"/bin/sh"}, script...), When: HealthCheck})
			}
			for _, h := range j.Hooks {
				first := h.When == BeforeJob || h.When == BeforeGC || h.When == AfterGC
				if h.When == OnEachIteration || first && i == 0 || !first && last {
					s.Hooks = append(s.Hooks, h)
				}
			}
			add(s)
		}
	}
	c.Jobs = jobs
	return templates
}
