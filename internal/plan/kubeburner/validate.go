package kubeburner

import (
	"regexp"

	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Validate checks a configuration after Default, without templates, and returns a *strictyaml.Error.
func Validate(c *Config) error {
	v := &validator{settings.NewCheck(c, c.positions)}
	v.Problems = settings.Validate(c, "", c.positions)
	v.global(c)
	v.jobs(c.Jobs)
	v.endpoints(c.MetricsEndpoints)
	v.measurements("global.measurements", c.Global.Measurements)
	return strictyaml.Join(v.Problems)
}

type validator struct{ *settings.Check }

func (v *validator) required(path, value string) {
	if value == "" {
		v.Fail(path, "is missing")
	}
}

func (v *validator) global(c *Config) {
	g := &c.Global
	for i, name := range g.FunctionTemplates {
		v.required(strictyaml.Index("global.functionTemplates", i), name)
	}
	if len(c.Jobs) == 0 && len(c.MetricsEndpoints) == 0 && len(g.Measurements) == 0 {
		v.Add("jobs", "list at least one job", "the configuration asks for nothing")
	}
	for i, j := range c.Jobs {
		if g.WaitWhenFinished && j.GC {
			v.Fail(strictyaml.Index("jobs", i)+".gc", "a job cannot remove its objects (gc) while global.waitWhenFinished waits for them after all jobs")
		}
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

const longestLabel = 63

func (v *validator) name(path, what, name string) {
	switch {
	case name == "":
		v.Fail(path, "is missing")
	case !label.MatchString(name):
		v.Fail(path, "%s %q must consist of lower case letters, digits and '-', and begin and end with a letter or digit", what, name)
	case len(name) > longestLabel:
		v.Fail(path, "%s %q has %d characters, at most %d are allowed", what, name, len(name), longestLabel)
	}
}

func (v *validator) jobs(jobs []Job) {
	first := map[string]int{}
	for i := range jobs {
		path := strictyaml.Index("jobs", i)
		if name := jobs[i].Name; name != "" {
			if at, taken := first[name]; taken {
				v.Fail(path+".name", "the name %q is taken by jobs[%d]", name, at)
			} else {
				first[name] = i
			}
		}
		v.job(path, &jobs[i])
	}
}

func (v *validator) job(path string, j *Job) {
	v.name(path+".name", "the job name", j.Name)
	v.namespace(path+".namespace", j)
	for i := range j.Objects {
		v.object(strictyaml.Index(path+".objects", i), &j.Objects[i], j.JobType)
	}
	v.churn(path, j)
	v.incrementalLoad(path+".incrementalLoad", j)
	v.measurements(path+".measurements", j.Measurements)
}

// namespace checks the longest namespace that the job makes, if it has any.
func (v *validator) namespace(path string, j *Job) {
	if j.Namespace == "" {
		return
	}
	name := j.Namespace
	if j.IterationsPerNamespace > 0 && j.JobIterations > 0 {
		name = j.NamespaceOf(j.JobIterations - 1)
	}
	v.name(path, "the namespace", name)
}

func (v *validator) object(path string, o *Object, jobType JobType) {
	if w := &o.WaitOptions; w.states() || w.Kind != "" {
		if _, err := w.Conditions(w.Kind); err != nil {
			v.Fail(path+".waitOptions", "%v", err)
		}
	}
	if jobType == Create || jobType == Patch {
		v.required(path+".objectTemplate", o.ObjectTemplate)
	}
	if jobType == Delete || jobType == Read || jobType == Patch {
		v.required(path+".kind", o.Kind)
	}
	if jobType != Create && len(o.LabelSelector) == 0 {
		v.Add(path+".labelSelector", "for example {kube-burner.io/job: NAME}",
			"is missing: without it the job would take every object of the kind")
	}
	switch jobType {
	case Patch:
		v.Word(path+".patchType", o.PatchType, []string{"json", "merge", "strategic-merge", "apply",
			"application/json-patch+json", "application/merge-patch+json",
			"application/strategic-merge-patch+json", "application/apply-patch+yaml"})
	case KubeVirt:
		v.ofMachines(path, o)
	}
}

func (v *validator) churn(path string, j *Job) {
	c, at := j.ChurnConfig, path+".churnConfig"
	if c.Percent < 0 || c.Percent > 100 {
		v.Fail(at+".percent", "must be between 0 and 100, is %d", c.Percent)
	}
	if c.On() && c.Percent == 0 {
		v.Fail(at+".percent", "must be between 1 and 100, the share of what churns in each cycle, is 0")
	}
	if c.On() && !j.Creates() {
		v.Fail(at, "only a create job can churn, this one is a %s job", j.JobType)
	}
}

func (v *validator) incrementalLoad(path string, j *Job) {
	l := j.IncrementalLoad
	if l == nil {
		return
	}
	if l.TotalIterations < l.StartIterations {
		v.Fail(path+".totalIterations", "must be at least startIterations, which is %d, is %d", l.StartIterations, l.TotalIterations)
	}
	if !j.Creates() {
		v.Fail(path, "only a create job can be loaded in steps, this one is a %s job", j.JobType)
	}
	if l.StartIterations > 0 && len(l.levels()) > mostStages {
		v.Fail(path+".pattern", "makes more than %d steps", mostStages)
	}
}

func (v *validator) endpoints(endpoints []MetricsEndpoint) {
	first := map[string]int{}
	for i, e := range endpoints {
		path := strictyaml.Index("metricsEndpoints", i)
		if e.Token != "" && e.Username != "" {
			v.Fail(path+".token", "a token and a user name exclude each other")
		}
		if e.Alias != "" {
			if at, taken := first[e.Alias]; taken {
				v.Fail(path+".alias", "the alias %q is taken by metricsEndpoints[%d]", e.Alias, at)
			}
			first[e.Alias] = i
		}
		if e.Indexer.Type != "" || v.At.Has(path+".indexer") {
			v.indexer(path+".indexer", e.Indexer)
		}
	}
}

func (v *validator) indexer(path string, x Indexer) {
	v.Word(path+".type", x.Type, []string{"elastic", "opensearch", "local", "tsdb"})
	if x.Type == "elastic" || x.Type == "opensearch" {
		if len(x.ESServers) == 0 {
			v.Fail(path+".esServers", "is missing")
		}
		v.required(path+".defaultIndex", x.DefaultIndex)
	}
}

func (v *validator) measurements(path string, measurements []Measurement) {
	for i, m := range measurements {
		for k, t := range m.Thresholds {
			path := strictyaml.Index(strictyaml.Index(path, i)+".thresholds", k) + ".conditionType"
			if known := conditions(m.Name); known != nil {
				v.Word(path, t.ConditionType, known)
			} else {
				v.required(path, t.ConditionType)
			}
		}
	}
}

// Default fills in unset values, in a Config made in code all zeros. Validate judges stated zeros.
func Default(c *Config) {
	settings.Default(c, c.positions.Has)
	for i := range c.Jobs {
		j := &c.Jobs[i]
		fill(c, strictyaml.Index("jobs", i)+".maxWaitTimeout", &j.MaxWaitTimeout, c.Global.Timeout)
		switch j.JobType {
		case Delete: // always handles its objects once, in order, and waits for their deletion
			j.JobIterations, j.WaitWhenFinished, j.ExecutionMode = 1, false, Sequential
		case Read:
			j.ExecutionMode = Sequential
		case KubeVirt:
			c.forMachines(strictyaml.Index("jobs", i), j)
		}
	}
	for i := range c.MetricsEndpoints {
		if x := &c.MetricsEndpoints[i].Indexer; x.Type == "local" {
			path := strictyaml.Index("metricsEndpoints", i) + ".indexer"
			fill(c, path+".metricsDirectory", &x.MetricsDirectory, "collected-metrics-"+c.UUID)
			fill(c, path+".tarballName", &x.TarballName, "kube-burner-metrics.tgz")
		}
	}
}

// fill sets a zero value that the file does not state.
func fill[T comparable](c *Config, path string, value *T, byDefault T) {
	var zero T
	if *value == zero && !c.positions.Has(path) {
		*value = byDefault
	}
}

// Served returns the settings of a defaulted configuration that the engine refuses, because the run would
// differ without them, and those that it only notes. Both are in the order of lines, with hints where
// something helps.
func Served(c *Config) (refused, noted []strictyaml.Problem) {
	u := &served{Validation: strictyaml.Validation{At: c.positions}}
	g := &c.Global
	u.says("global.requestTimeout", "a request is tried again until the cluster has not answered for a minute")
	u.says("global.timeout", "it is the default of maxWaitTimeout, and does not end the run")
	u.takes(g.GC, "global.gc", "a run always removes what it made")
	u.takes(g.GCMetrics, "global.gcMetrics", "nothing is measured during the removal")
	u.takes(g.WaitWhenFinished, "global.waitWhenFinished", "each job is waited for")
	u.takes(g.ClusterHealth, "global.clusterHealth", "a cluster that is not fit to be loaded is always refused")
	u.takes(g.DeletionStrategy == deleteByResource, "global.deletionStrategy", "objects are removed in the order that is fastest")
	u.measurements("global.measurements", g.Measurements)
	for i := range c.Jobs {
		u.job(strictyaml.Index("jobs", i), &c.Jobs[i])
	}
	for i, e := range c.MetricsEndpoints {
		path := strictyaml.Index("metricsEndpoints", i)
		u.takes(e.Endpoint != "" && len(e.Metrics)+len(e.Alerts) > 0, path+".endpoint", "it is asked only if --allow names it, too; else the record answers")
		u.takes(e.Indexer.Type != "" && e.Indexer.Type != "local", path+".indexer.type", "nothing is sent to an indexer: the run's directory has all that was recorded")
	}
	return u.sorted(u.Problems), u.sorted(u.noted)
}

type served struct {
	strictyaml.Validation // problems that are refused
	noted                 []strictyaml.Problem
}

func (u *served) sorted(list []strictyaml.Problem) []strictyaml.Problem {
	return strictyaml.Problems(strictyaml.Join(list))
}

// refuses reports the setting at path if it asks for something.
func (u *served) refuses(asks bool, path, instead, hint string) {
	if asks {
		u.Add(path, hint, "is not served yet: %s", instead)
	}
}

// takes notes the setting at path if it asks for something.
func (u *served) takes(asks bool, path, instead string) {
	if asks {
		u.noted = append(u.noted, u.At.Problem(path, "%s", instead))
	}
}

// says notes the setting at path if the file states it.
func (u *served) says(path, instead string) { u.takes(u.At.Has(path), path, instead) }

func (u *served) measurements(path string, list []Measurement) {
	for i, m := range list {
		path := strictyaml.Index(path, i)
		_, measured := MeasureOf(m.Name)
		if m.Name == pprof {
			u.pprof(path, &list[i])
			continue
		}
		u.refuses(!measured, path+".name", "it is kube-burner-ocp's own", "take it out of the measurements")
		u.refuses(m.Name == nodeLatency && len(m.Thresholds) > 0, path+".thresholds", "nodes are there before the load, and its verdict does not depend on them", "")
		for k, t := range m.Thresholds {
			u.takes(t.ConditionType == lost, strictyaml.Index(path+".thresholds", k)+".conditionType", "a claim that is lost is never bound, and the run fails")
		}
		u.takes(m.QuantilesIndexer+m.TimeseriesIndexer != "", path+".quantilesIndexer", "nothing is sent to an indexer: the run's directory has all that was recorded")
	}
}

func (u *served) job(path string, j *Job) {
	creates := j.Creates()
	u.takes(j.idle(), path, "it has no objects: nothing is left of it but its pause")
	u.takes(creates && j.ExecutionMode == Sequential, path+".executionMode", "it is of jobs that work on objects: a create job makes its own side by side, by its qps")
	u.takes(!creates && !j.idle() && !u.At.Has(path+".qps"), path, "it states no qps, and makes 5 requests a second")
	u.takes(j.ObjectWait && (creates || j.ExecutionMode != Sequential), path+".objectWait", "it is of jobs that work on objects in the mode sequential")
	u.takes(!j.WaitWhenFinished && j.JobType != Delete, path+".waitWhenFinished", "each job is waited for")
	u.takes(creates && !j.WaitForDeletion, path+".waitForDeletion", "the removal at the end is always waited for")
	u.takes(j.MetricsAggregate, path+".metricsAggregate", "each job has metrics of its own")
	u.takes(j.GC, path+".gc", "a run always removes what it made, once the last job has ended")
	u.takes(!j.VerifyObjects, path+".verifyObjects", "every object is accounted for")
	u.takes(!j.ErrorOnVerify, path+".errorOnVerify", "an object that is missing counts against the run")
	u.measurements(path+".measurements", j.Measurements)
	for i := range j.Objects {
		o, path := &j.Objects[i], strictyaml.Index(path+".objects", i)
		u.takes(!o.Churn && !j.ChurnConfig.On(), path+".churn", "nothing is deleted and created again")
		for _, key := range []string{"kind", "apiVersion", "labelSelector", "patchType", "kubeVirtOp"} {
			u.takes(creates && u.At.Has(path+"."+key), path+"."+key, "a create job makes what its object template says")
		}
		u.takes(j.JobType == Delete && o.WaitOptions.Asks(), path+".waitOptions", "a delete job waits for the end of its objects")
	}
}
