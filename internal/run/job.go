package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// Job makes an experiment, from a valid plan to its result.
type Job struct {
	system.Request
	Provider     system.Provider
	Asked        []Asked                                      // levels of the user, who is warned of those beyond a ceiling
	FromOpen     bool                                         // the user left the first level of the search open
	StepOpen     bool                                         // the user left its step open
	Out          string                                       // the run directory, "" for one by the time and the plan's name
	Keep         func(dir record.Dir) error                   // writes further files of a new run directory, may be nil
	Steps        int                                          // of this part of the run, which then pauses; 0 is no bound
	IgnoreHealth bool                                         // loads a system that is not fit for it
	Agree        func(context.Context, *system.Consent) error // asks the user for consent
	Past         *Past                                        // the run to resume, whose directory is locked; nil for none
	Observer     Observer
	Access       metrics.Access // of the plan's Prometheus
	// Judged, if not nil, gets the result before a slow removal; err says why the run was cut, or nil.
	Judged func(dir record.Dir, result *result.Result, err error)

	surveyed  surveyed
	session   system.Session
	preferred string // this program's CPU priority
}

// Asked is a level of the user, and its flag.
type Asked struct {
	By    string // such as --from
	Level float64
}

type surveyed struct {
	findings []record.HealthFinding
	table    *record.CeilingTable
	kind     record.ObjectKind
}

// Run makes the experiment. Soft ends the load, hard everything that is slow. It returns the run
// directory, or "", and the result, or nil. A cut run has both and an error.
func (j *Job) Run(soft, hard context.Context) (dir record.Dir, result *result.Result, err error) {
	if j.session, err = j.Provider.Open(soft, j.Request); err != nil {
		return "", nil, err
	}
	defer func() {
		defer j.waitFor("letting go of the target")()
		err = errors.Join(err, j.session.Close())
	}()
	if err := j.prepare(soft); err != nil {
		return "", nil, err
	}
	x, err := j.experiment(soft)
	if err != nil {
		return "", nil, err
	}
	dir, unlock, err := j.directory()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	var undo func()
	j.preferred, undo = j.Prefer(x.Options.Open)
	defer undo()
	x.Steps = j.Steps
	telemetry.ShedStartup()
	p, err := j.part(dir, x)
	if err == nil {
		result, err = j.make(soft, hard, p, x)
	}
	if _, mistake := errors.AsType[*system.MistakeError](err); mistake && result == nil && j.Past == nil {
		err = errors.Join(err, os.RemoveAll(string(dir))) // so that the user can repeat the command with the same --out
	}
	return dir, result, err
}

func (j *Job) part(dir record.Dir, x Experiment) (*part, error) {
	if j.Past != nil {
		return resume(j.Past, record.RunEvent{ID: j.Request.Run, Command: j.Command}, x, j.Now, j.Observer)
	}
	return begin(dir, j.Request.Run, x, j.Now, j.Observer)
}

// make loads the target, judges the record, and adds the removal. Without a removal it judges at the end.
func (j *Job) make(soft, hard context.Context, p *part, x Experiment) (found *result.Result, err error) {
	runErr := p.load(soft, j.open)
	if p.left() {
		if found, _ = j.judge(p.dir, x, runErr); found != nil && j.Judged != nil { // an error is repeated at the end
			j.Judged(p.dir, found, runErr)
		}
	}
	runErr = p.close(soft, hard, runErr)
	if found == nil {
		found, err = j.judge(p.dir, x, runErr)
	} else {
		err = p.amend(found)
	}
	return found, errors.Join(runErr, err)
}

// judge returns no result if the run failed before its first step: the error says everything.
func (j *Job) judge(dir record.Dir, x Experiment, runErr error) (*result.Result, error) {
	defer j.waitFor("judging the record")()
	r, err := Replay(dir, x)
	if err != nil || runErr != nil && len(r.Steps) == 0 {
		return nil, err
	}
	return &r, nil
}

func (j *Job) waitFor(what string) (end func()) {
	show, end := j.Progress()
	show(what)
	return end
}

// prepare gets consent, prepares the workload, removes leftovers and surveys the system.
func (j *Job) prepare(ctx context.Context) error {
	consent, err := j.session.Consent(ctx)
	if err != nil {
		return err
	}
	if consent != nil {
		if err := j.Agree(ctx, consent); err != nil {
			return err
		}
	}
	show, end := j.Progress()
	defer end()
	show("preparing the workload")
	if err := j.session.Prepare(ctx); err != nil {
		return err
	}
	show("looking for what earlier runs have left")
	if err := j.session.Sweep(ctx); err != nil {
		return err
	}
	show("looking at the system before the load")
	return j.survey(ctx)
}

// survey warns of problems and of levels above a ceiling; an error says that the system is not fit.
func (j *Job) survey(ctx context.Context) error {
	survey, err := j.session.Survey(ctx, false)
	if err != nil {
		return err
	}
	j.surveyed.findings, j.surveyed.kind = survey.Findings, survey.Kind
	if stopping := ceiling.Stopping(survey.Findings); len(stopping) > 0 && !j.IgnoreHealth {
		var texts []string
		hint := ""
		for _, f := range stopping {
			texts, hint = append(texts, f.What+": "+f.Text), cmp.Or(hint, f.Hint)
		}
		return &system.UnableError{Err: fmt.Errorf("the %s is not fit to be loaded: %s (see 'plimsoll check'; --ignore-health loads it anyway)", survey.Target.Kind, strings.Join(texts, "; ")), Hint: hint}
	}
	for _, f := range survey.Findings {
		j.Log("warning: %s", f.Warning())
	}
	for i := range survey.Tables {
		table := &survey.Tables[i]
		j.warnAbove(table)
		was := j.surveyed.table // the arm that comes to its ceiling first counts
		if was == nil || was.Binding() == nil || table.Binding() != nil && *table.Binding().Level < *was.Binding().Level {
			j.surveyed.table = table
		}
	}
	return nil
}

func (j *Job) warnAbove(t *record.CeilingTable) {
	b := t.Binding()
	if b == nil {
		return
	}
	var above []string
	for _, a := range j.Asked {
		if a.Level > *b.Level {
			above = append(above, fmt.Sprintf("%s %g", a.By, a.Level))
		}
	}
	if len(above) == 0 {
		return
	}
	arm, verb := "", "lies"
	if t.Arm != "" {
		arm = " of arm " + t.Arm
	}
	if len(above) > 1 {
		verb = "lie"
	}
	j.Log("warning: %s %s above %.10g %s, the ceiling%s by the %s: %s", strings.Join(above, ", "), verb, *b.Level, t.Unit, arm, b.What, b.Reason)
}

func (j *Job) experiment(ctx context.Context) (Experiment, error) {
	p, bounds := j.Plan, j.session.Bounds()
	if p.Pace.IsZero() {
		p.Pace = bounds.Pace
	}
	if p.Guards == nil {
		p.Guards = bounds.Guards
	}
	axis, err := j.Workload.Axis(p.Axis.Name)
	if err != nil {
		return Experiment{}, err
	}
	j.beginAtPrediction(axis.Unit)
	if j.Past == nil {
		p.AsRun = &plan.AsRun{
			ID: j.Request.Run, Kind: p.Kind, Command: j.Command, Version: j.Build.Version, Started: j.Now().UTC().Format(time.RFC3339),
			Unit: axis.Unit, Milestones: j.surveyed.kind.Names(), Arrived: j.surveyed.kind.There,
		}
	}
	x, err := FromPlan(p)
	if err != nil {
		return x, err
	}
	if err := x.AddWorkload(j.Workload, p.Params); err != nil {
		return x, err
	}
	x.Spec.Kind, x.Secrets = j.surveyed.kind, j.Secrets
	x.load(p, axis, j.Workload.TargetAxis(axis.Name), bounds)
	if published, ok := j.session.(system.Publisher); ok && p.Scrape.Every > 0 {
		x.Endpoints = published.Endpoints
		x.Scrape = metrics.Options{Every: time.Duration(p.Scrape.Every), MaxSeries: cmp.Or(p.MaxSeries, metrics.DefaultMaxSeries)}
	}
	if x.Guards, err = p.GuardsOf(); err != nil {
		return x, err
	}
	if x.Scrape.Remote, err = j.remote(ctx, &x); err != nil {
		return x, err
	}
	x.Readings = func() []record.Reading {
		var own []record.Reading
		if used, err := j.Used(); err == nil { // else it is unknown, and the result says null
			own = append(own, used)
		}
		return append(own, j.session.Readings()...)
	}
	return x, nil
}

func (j *Job) remote(ctx context.Context, x *Experiment) (*metrics.Remote, error) {
	p := j.Plan.Prometheus
	if p == nil {
		return nil, nil
	}
	address, access := p.URL, j.Access
	if address == plan.OpenShift {
		of, ok := j.session.(system.Monitored)
		if !ok {
			return nil, system.Mistakef("give the address of one", "the target has no Prometheus of its own, as --prometheus %s says", plan.OpenShift)
		}
		var err error
		if address, access, err = of.Prometheus(ctx, access); err != nil {
			return nil, &system.UnableError{Err: fmt.Errorf("find the cluster's Prometheus: %w", err), Hint: "--prometheus takes its address, too"}
		}
		j.Log("note: the cluster's metrics are asked of %s", address)
	}
	for name, secret := range map[string]string{"token": access.Token, "password": access.Password} {
		if _, err := j.Secrets.Hide("prometheus "+name, secret); secret != "" && err != nil {
			return nil, err
		}
	}
	transport, err := access.Transport()
	if err != nil {
		return nil, system.Mistakef("", "--prometheus-ca: %w", err)
	}
	var queries []string
	for _, g := range x.Spec.Goals {
		for _, s := range g.SLOs {
			if s.Form == slo.Query {
				queries = append(queries, s.Query)
			}
		}
	}
	for _, s := range x.Guards {
		queries = append(queries, s.Query)
	}
	match := p.Match
	if len(match) == 0 {
		match = []string{"process_cpu_seconds_total", "process_resident_memory_bytes"}
	}
	x.Scrape.Every, x.Scrape.MaxSeries = cmp.Or(x.Scrape.Every, plan.DefaultScrape), cmp.Or(j.Plan.MaxSeries, metrics.DefaultMaxSeries)
	return &metrics.Remote{URL: address, Transport: transport, Selectors: slices.Concat([]string{"up"}, match, metrics.SelectorsOf(queries))}, nil
}

// beginAtPrediction lets a search without a first level begin at a quarter of the predicted line.
func (j *Job) beginAtPrediction(unit string) {
	s, t := j.Plan.Axis.Search, j.surveyed.table
	if !j.FromOpen || j.Past != nil || s == nil || t == nil || t.Binding() == nil {
		return
	}
	predicted := *t.Binding().Level
	from := math.Floor(min(predicted, s.Max)/4/s.Resolution) * s.Resolution
	if !(from > 0) {
		from = s.Resolution
	}
	s.From = min(from, s.Max)
	if j.StepOpen {
		s.Step = max(min(s.Step, s.From), s.Resolution)
	}
	of := fmt.Sprintf("a quarter of the predicted %.10g (%s)", predicted, t.Binding().What)
	if predicted > s.Max {
		of = fmt.Sprintf("a quarter of the highest level allowed; %.10g are predicted (%s)", predicted, t.Binding().What)
	}
	j.Log("the search starts at %.10g %s, %s; --from starts elsewhere", s.From, unit, of)
}

// directory makes the run directory with the plan, and locks it. A resumed run has its own.
func (j *Job) directory() (dir record.Dir, unlock func(), err error) {
	if j.Past != nil {
		// A report of the run so far would look like one of the whole.
		if err := os.Remove(j.Past.dir.Path(record.ReportFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", nil, fmt.Errorf("remove the report of the run so far: %w", err)
		}
		return j.Past.dir, func() {}, nil
	}
	dir, err = NewDir(j.Out, j.Plan.Name, j.Now())
	if errors.Is(err, os.ErrExist) {
		return "", nil, system.Mistakef("give another --out", "%w", err)
	}
	if err != nil {
		return "", nil, err
	}
	lock, err := dir.Lock()
	if err != nil {
		return "", nil, err
	}
	text, err := j.Plan.Marshal()
	if err == nil {
		err = dir.WriteFile(record.ExperimentFile, text)
	}
	if err == nil && j.Keep != nil {
		err = j.Keep(dir)
	}
	if err != nil {
		lock.Close()
		return "", nil, err
	}
	return dir, func() { lock.Close() }, nil
}

const longestName = 200 // bound of a name in a run directory: file systems allow 255 bytes, with the time before it

// NewDir makes the directory of a run that begins now: out, or one by the time and the run's name.
func NewDir(out, name string, now time.Time) (record.Dir, error) {
	if out != "" {
		return record.CreateDir(out)
	}
	name = strings.Map(func(c rune) rune {
		if c == '/' || c == filepath.Separator || c == ' ' {
			return '-'
		}
		return c
	}, name)
	name = strings.ToValidUTF8(name[:min(len(name), longestName)], "")
	dir, err := record.NewDir(filepath.Join(record.RunsDir, now.UTC().Format("20060102-150405")+"-"+name))
	if err != nil {
		err = &system.UnableError{Err: err, Hint: "--out DIR leaves the record elsewhere"}
	}
	return dir, err
}

type opener func(context.Context, system.Recorder) (system.Instance, error)

func (j *Job) open(ctx context.Context, rec system.Recorder) (system.Instance, error) {
	instance, err := j.session.Target(ctx, rec)
	if err != nil {
		return nil, err
	}
	return &target{instance, j, rec}, nil
}

// target is the session's, with the facts of this machine and the findings before any load.
type target struct {
	system.Instance // nil where it could not be made again
	job             *Job
	rec             system.Recorder
}

func (t *target) Describe(ctx context.Context) (record.Environment, error) {
	env, err := t.Instance.Describe(ctx)
	host := telemetry.Host()
	host.Sharing, host.Priority = "priority", t.job.preferred
	env.Facts = record.OnRecord(append(host.Facts(env.Elsewhere), env.Facts...))
	env.Program = &t.job.Build
	env.Findings, env.Ceilings = t.job.surveyed.findings, t.job.surveyed.table
	return env, err
}

// Reset renews the system if the plan says so.
func (t *target) Reset(ctx context.Context) error {
	if !t.job.Plan.Renews() {
		return t.Instance.Reset(ctx)
	}
	err := t.Close(ctx)
	t.Instance = nil
	if err != nil {
		return err
	}
	if err := t.job.session.Renew(ctx); err != nil {
		return fmt.Errorf("recreate the lab: %w", err)
	}
	t.Instance, err = t.job.session.Target(ctx, t.rec)
	return err
}

func (t *target) Progress() system.Progress {
	if t.Instance == nil {
		return system.Progress{}
	}
	return t.Instance.Progress()
}

const removalShown = 5 * time.Second // between two reports of a removal

func (t *target) Close(done context.Context) error {
	if t.Instance == nil {
		return nil
	}
	show, end := t.job.Request.Progress()
	defer end()
	show("removing what the run has made")
	var shower sync.WaitGroup
	defer shower.Wait() // else it could show a removal that is over
	removing, over := context.WithCancel(context.Background())
	defer over()
	shower.Go(func() {
		every(removing, removalShown, func() {
			if left := t.Progress().Left; left > 0 {
				show(fmt.Sprintf("removing what the run has made, %d left", left))
			}
		})
	})
	return t.Instance.Close(done)
}

// every calls do at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}
