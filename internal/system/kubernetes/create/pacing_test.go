package create

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

// When requests are made follows from the configuration's rates, pauses and waits, on
// a clock that is passed in.
func TestPacing(t *testing.T) {
	job := func(j kubeburner.Job, iterations int) kubeburner.Job {
		j.JobIterations, j.Objects = iterations, []kubeburner.Object{{Replicas: 2}}
		return j
	}
	const ms = record.Micros(1000)
	for _, tt := range []struct {
		why    string
		jobs   []kubeburner.Job
		begin  int                                // the job that is made first
		ready  func(now record.Micros, n int) int // of the objects asked for
		wanted []record.Micros                    // when each request is made
	}{
		{"by the rate, one after the other", []kubeburner.Job{job(kubeburner.Job{QPS: 10, Burst: 1}, 2)}, 0, nil, []record.Micros{0, 100 * ms, 200 * ms, 300 * ms}},
		{"a burst at once", []kubeburner.Job{job(kubeburner.Job{QPS: 10, Burst: 3}, 2)}, 0, nil, []record.Micros{0, 0, 0, 100 * ms}},
		{"pauses between iterations", []kubeburner.Job{job(kubeburner.Job{QPS: 1000, Burst: 10, JobIterationDelay: time.Second}, 2)}, 0, nil, []record.Micros{0, 0, 1000 * ms, 1000 * ms}},
		{"pauses between objects", []kubeburner.Job{job(kubeburner.Job{QPS: 1000, Burst: 10, ObjectDelay: time.Second}, 1)}, 0, nil, []record.Micros{0, 1000 * ms}},
		{"an iteration that is waited for", []kubeburner.Job{job(kubeburner.Job{QPS: 1000, Burst: 10, PodWait: true}, 2)}, 0,
			func(now record.Micros, n int) int {
				if now < 700*ms {
					return 0
				}
				return n
			}, []record.Micros{0, 0, 700 * ms, 700 * ms}},
		{"groups, each of all iterations, after the one before is ready and its pause", []kubeburner.Job{{QPS: 1000, Burst: 10, WaitWhenFinished: true, PodWait: true, JobIterations: 2, Objects: []kubeburner.Object{
			{Replicas: 1, Group: kubeburner.Group{ID: 2}}, {Replicas: 1, Group: kubeburner.Group{PauseBeforeGC: time.Second}}}}}, 0,
			func(now record.Micros, n int) int {
				if now < 700*ms {
					return 0
				}
				return n
			}, []record.Micros{0, 0, 1700 * ms, 1700 * ms}},
		{"groups that are not waited for", []kubeburner.Job{{QPS: 1000, Burst: 10, JobIterations: 2, Objects: []kubeburner.Object{{Replicas: 1}, {Replicas: 1, Group: kubeburner.Group{ID: 1}}}}}, 0,
			func(record.Micros, int) int { return 0 }, []record.Micros{0, 0, 0, 0}},
		{"a pause after the job before", []kubeburner.Job{job(kubeburner.Job{QPS: 1, Burst: 1, JobPause: 3 * time.Second}, 1), job(kubeburner.Job{QPS: 1000, Burst: 9}, 1)}, 1, nil, []record.Micros{3000 * ms, 3000 * ms}},
		{"two jobs in one level", []kubeburner.Job{job(kubeburner.Job{QPS: 1000, Burst: 9, JobPause: time.Second, WaitWhenFinished: true}, 1), job(kubeburner.Job{QPS: 1000, Burst: 9}, 1)}, 0, nil, []record.Micros{0, 0, 1000 * ms, 1000 * ms}},
	} {
		r := &Rendering{config: &kubeburner.Config{Jobs: tt.jobs}}
		for j := range tt.jobs {
			var makers []*Maker
			for o := range tt.jobs[j].Objects {
				makers = append(makers, &Maker{job: &r.config.Jobs[j], jobIndex: j, index: o, stage: -1, units: 1, all: r})
			}
			r.makers = append(r.makers, makers)
		}
		p := Population{Rendering: r, Jobs: tt.begin}
		load, err := p.PlanJobs(len(tt.jobs))
		if err != nil {
			t.Fatal(err)
		}
		for i := range load.Slots { // by group, then iteration
			if i > 0 && load.Slots[i].maker.jobIndex == load.Slots[i-1].maker.jobIndex && load.Slots[i].group().ID < load.Slots[i-1].group().ID {
				t.Errorf("%s: request %d is of an earlier group", tt.why, i)
			}
		}
		now, asked := record.Micros(0), 0
		paced := p.Pacing(load.Slots, func() record.Micros { return now }, func() int {
			if tt.ready == nil {
				return asked
			}
			return tt.ready(now, asked)
		})
		for i := range load.Slots {
			for !paced.Due(i) {
				if now += ms; now > 60_000*ms {
					t.Fatalf("%s: request %d is never due", tt.why, i)
				}
			}
			if asked++; now != tt.wanted[i] {
				t.Errorf("%s: request %d was made at %v, want %v", tt.why, i, now.Duration(), tt.wanted[i].Duration())
			}
		}
	}
	if _, err := (&Population{Rendering: &Rendering{config: &kubeburner.Config{Jobs: make([]kubeburner.Job, 2)}}}).PlanJobs(3); err == nil {
		t.Error("a job that is not there was planned")
	}
}
