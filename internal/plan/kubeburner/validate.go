package kubeburner

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Validate says what is wrong with a configuration after Default, all of it at
// once. The error is a *strictyaml.Error with file and line where the value
// came from a file. Object templates are checked by Config.Templates.
func Validate(c *Config) error {
	v := &validator{strictyaml.Validation{At: c.positions}}
	v.global(c)
	v.jobs(c.Jobs)
	v.endpoints(c.MetricsEndpoints)
	v.measurements("global.measurements", c.Global.Measurements)
	return strictyaml.Join(v.Problems)
}

type validator struct{ strictyaml.Validation }

// oneOf checks a word of a closed list.
func oneOf[T ~string](v *validator, path string, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	hint := nearest.Hint(string(value), names, "allowed: "+strings.Join(names, ", "))
	if value == "" {
		v.Add(path, hint, "is missing")
		return
	}
	v.Add(path, hint, "there is no %q here", value)
}

func atLeast[T cmp.Ordered](v *validator, path string, value, least T) {
	if value < least {
		v.Fail(path, "must be at least %v, is %v", least, value)
	}
}

func (v *validator) above0(path string, d time.Duration) {
	if d <= 0 {
		v.Fail(path, "must be above 0, is %v", d)
	}
}

func (v *validator) required(path, value string) {
	if value == "" {
		v.Fail(path, "is missing")
	}
}

func (v *validator) global(c *Config) {
	g := &c.Global
	v.above0("global.requestTimeout", g.RequestTimeout)
	v.above0("global.timeout", g.Timeout)
	oneOf(v, "global.deletionStrategy", g.DeletionStrategy, DeleteNamespaces, DeleteByResource)
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

// label is what Kubernetes calls an RFC 1123 label.
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
	oneOf(v, path+".jobType", j.JobType, Create, Delete, Read, Patch, KubeVirt)
	oneOf(v, path+".executionMode", j.ExecutionMode, Parallel, Sequential)
	oneOf(v, path+".metricsClosing", j.MetricsClosing, AfterJob, AfterJobPause, AfterMeasurements)
	atLeast(v, path+".jobIterations", j.JobIterations, 1)
	atLeast(v, path+".iterationsPerNamespace", j.IterationsPerNamespace, 1)
	atLeast(v, path+".burst", j.Burst, 1)
	if j.QPS <= 0 {
		v.Fail(path+".qps", "must be above 0, is %v", j.QPS)
	}
	v.above0(path+".maxWaitTimeout", j.MaxWaitTimeout)
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"jobIterationDelay", j.JobIterationDelay}, {"jobPause", j.JobPause},
		{"objectDelay", j.ObjectDelay}, {"preLoadPeriod", j.PreLoadPeriod},
	} {
		atLeast(v, path+"."+d.key, d.value, 0)
	}
	v.namespace(path+".namespace", j)
	for i := range j.Objects {
		v.object(strictyaml.Index(path+".objects", i), &j.Objects[i], j.JobType)
	}
	for i, w := range j.Watchers {
		path := strictyaml.Index(path+".watchers", i)
		v.required(path+".kind", w.Kind)
		v.required(path+".apiVersion", w.APIVersion)
		atLeast(v, path+".replicas", w.Replicas, 0)
	}
	for i, h := range j.Hooks {
		path := strictyaml.Index(path+".hooks", i)
		if len(h.Cmd) == 0 {
			v.Fail(path+".cmd", "is missing")
		}
		oneOf(v, path+".when", h.When, BeforeJobExecution, AfterJobExecution, OnEachIteration, BeforeChurn, AfterChurn,
			BeforeCleanup, AfterCleanup, BeforeGC, AfterGC)
	}
	v.churn(path, j)
	v.incrementalLoad(path+".incrementalLoad", j)
	v.measurements(path+".measurements", j.Measurements)
}

// namespace checks the longest name that the job makes from its namespace. An
// empty one is no mistake: objects may name their own, or need none.
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
	atLeast(v, path+".replicas", o.Replicas, 0)
	atLeast(v, path+".repeatEveryNIterations", o.RepeatEveryNIterations, 1)
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
		oneOf(v, path+".patchType", o.PatchType, "json", "merge", "strategic-merge", "apply",
			"application/json-patch+json", "application/merge-patch+json",
			"application/strategic-merge-patch+json", "application/apply-patch+yaml")
	case KubeVirt:
		oneOf(v, path+".kubeVirtOp", o.KubeVirtOp, "start", "stop", "restart", "pause", "unpause", "migrate",
			"add-volume", "remove-volume")
		if o.KubeVirtOp == "add-volume" || o.KubeVirtOp == "remove-volume" {
			if _, ok := o.InputVars["volumeName"]; !ok {
				v.Fail(path+".inputVars.volumeName", "is missing: %s needs it", o.KubeVirtOp)
			}
		}
	}
	for i, s := range o.WaitOptions.CustomStatusPaths {
		path := strictyaml.Index(path+".waitOptions.customStatusPaths", i)
		v.required(path+".key", s.Key)
		v.required(path+".value", s.Value)
	}
	atLeast(v, path+".group.pauseBeforeGC", o.Group.PauseBeforeGC, 0)
	atLeast(v, path+".group.pauseAfterGC", o.Group.PauseAfterGC, 0)
}

func (v *validator) churn(path string, j *Job) {
	c, at := j.ChurnConfig, path+".churnConfig"
	oneOf(v, at+".mode", c.Mode, ChurnNamespaces, ChurnObjects)
	atLeast(v, at+".cycles", c.Cycles, 0)
	atLeast(v, at+".duration", c.Duration, 0)
	atLeast(v, at+".delay", c.Delay, 0)
	atLeast(v, at+".deleteDelay", c.DeleteDelay, 0)
	if c.Percent < 0 || c.Percent > 100 {
		v.Fail(at+".percent", "must be between 0 and 100, is %d", c.Percent)
	}
	if c.On() && j.JobType != Create {
		v.Fail(at, "only a create job can churn, this one is a %s job", j.JobType)
	}
}

func (v *validator) incrementalLoad(path string, j *Job) {
	l := j.IncrementalLoad
	if l == nil {
		return
	}
	atLeast(v, path+".startIterations", l.StartIterations, 1)
	if l.TotalIterations < l.StartIterations {
		v.Fail(path+".totalIterations", "must be at least startIterations, which is %d, is %d", l.StartIterations, l.TotalIterations)
	}
	atLeast(v, path+".stepDelay", l.StepDelay, 0)
	oneOf(v, path+".pattern.type", l.Pattern.Type, "linear", "exponential")
	switch l.Pattern.Type {
	case "linear":
		atLeast(v, path+".pattern.linear.minSteps", l.Pattern.Linear.MinSteps, 0)
		atLeast(v, path+".pattern.linear.stepSize", l.Pattern.Linear.StepSize, 1)
	case "exponential":
		if l.Pattern.Exponential.Base <= 1 {
			v.Fail(path+".pattern.exponential.base", "must be above 1, is %v", l.Pattern.Exponential.Base)
		}
		atLeast(v, path+".pattern.exponential.maxIncrease", l.Pattern.Exponential.MaxIncrease, 0)
		atLeast(v, path+".pattern.exponential.warmupSteps", l.Pattern.Exponential.WarmupSteps, 0)
	}
	if j.JobType != Create {
		v.Fail(path, "only a create job can be loaded in steps, this one is a %s job", j.JobType)
	}
}

func (v *validator) endpoints(endpoints []MetricsEndpoint) {
	first := map[string]int{}
	for i, e := range endpoints {
		path := strictyaml.Index("metricsEndpoints", i)
		if len(e.Metrics)+len(e.Alerts) > 0 {
			v.required(path+".endpoint", e.Endpoint)
		}
		v.above0(path+".step", e.Step)
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
	oneOf(v, path+".type", x.Type, ElasticIndexer, OpenSearchIndexer, LocalIndexer, TSDBIndexer)
	if x.Type == ElasticIndexer || x.Type == OpenSearchIndexer {
		if len(x.ESServers) == 0 {
			v.Fail(path+".esServers", "is missing")
		}
		v.required(path+".defaultIndex", x.DefaultIndex)
	}
}

// conditions lists, for the measurements whose conditions are a closed list,
// what a threshold can be about. A misspelt one would never fire.
func conditions(measurement string) []string {
	switch measurement {
	case "podLatency":
		return []string{"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersStarted", "ContainersReady", "Ready"}
	case "nodeLatency":
		return []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}
	}
	return nil
}

func (v *validator) measurements(path string, measurements []Measurement) {
	for i, m := range measurements {
		path := strictyaml.Index(path, i)
		oneOf(v, path+".name", m.Name, "podLatency", "jobLatency", "nodeLatency", "pvcLatency", "vmiLatency", "vmimLatency",
			"serviceLatency", "dataVolumeLatency", "volumeSnapshotLatency", "netpolLatency", "pprof")
		for k, t := range m.Thresholds {
			path := strictyaml.Index(path+".thresholds", k)
			if known := conditions(m.Name); known != nil {
				oneOf(v, path+".conditionType", t.ConditionType, known...)
			} else {
				v.required(path+".conditionType", t.ConditionType)
			}
			oneOf(v, path+".metric", t.Metric, "P99", "P95", "P50", "Avg", "Max")
			v.above0(path+".threshold", t.Threshold)
		}
		v.above0(path+".svcTimeout", m.SvcTimeout)
		atLeast(v, path+".pprofInterval", m.PProfInterval, 0)
		for k, t := range m.PProfTargets {
			path := strictyaml.Index(path+".pprofTargets", k)
			v.required(path+".name", t.Name)
			v.required(path+".url", t.URL)
		}
	}
}
