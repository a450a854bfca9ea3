package kubeburner

import (
	"time"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Default fills in what the configuration leaves open. A zero value that the
// file itself states (jobIterations: 0) is left for Validate to judge; in a
// Config made in code every zero value is filled.
func Default(c *Config) {
	at := c.positions
	g := &c.Global
	fill(at, "global.requestTimeout", &g.RequestTimeout, 60*time.Second)
	fill(at, "global.timeout", &g.Timeout, 4*time.Hour)
	fill(at, "global.deletionStrategy", &g.DeletionStrategy, DeleteNamespaces)
	defaultMeasurements(at, "global.measurements", g.Measurements)
	for i := range c.Jobs {
		defaultJob(at, strictyaml.Index("jobs", i), &c.Jobs[i], g.Timeout)
	}
	for i := range c.MetricsEndpoints {
		defaultEndpoint(at, strictyaml.Index("metricsEndpoints", i), &c.MetricsEndpoints[i], c.UUID)
	}
}

// fill sets a value that is zero because nothing was said.
func fill[T comparable](at *strictyaml.Positions, path string, value *T, byDefault T) {
	var zero T
	if *value == zero && !at.Has(path) {
		*value = byDefault
	}
}

func defaultJob(at *strictyaml.Positions, path string, j *Job, timeout time.Duration) {
	fill(at, path+".jobType", &j.JobType, Create)
	fill(at, path+".jobIterations", &j.JobIterations, 1)
	fill(at, path+".qps", &j.QPS, 5)
	fill(at, path+".burst", &j.Burst, 10)
	fill(at, path+".namespacedIterations", &j.NamespacedIterations, true)
	fill(at, path+".iterationsPerNamespace", &j.IterationsPerNamespace, 1)
	fill(at, path+".executionMode", &j.ExecutionMode, Parallel)
	fill(at, path+".waitWhenFinished", &j.WaitWhenFinished, true)
	fill(at, path+".maxWaitTimeout", &j.MaxWaitTimeout, timeout)
	fill(at, path+".waitForDeletion", &j.WaitForDeletion, true)
	fill(at, path+".metricsClosing", &j.MetricsClosing, AfterJobPause)
	fill(at, path+".cleanup", &j.Cleanup, true)
	fill(at, path+".verifyObjects", &j.VerifyObjects, true)
	fill(at, path+".errorOnVerify", &j.ErrorOnVerify, true)
	fill(at, path+".preLoadImages", &j.PreLoadImages, true)
	fill(at, path+".preLoadPeriod", &j.PreLoadPeriod, 10*time.Minute)
	fill(at, path+".churnConfig.mode", &j.ChurnConfig.Mode, ChurnNamespaces)
	if j.JobType == Delete {
		// A delete job goes over its objects once, one after the other, and
		// waits for their deletion instead of their readiness, whatever the
		// file says.
		j.JobIterations, j.WaitWhenFinished, j.ExecutionMode = 1, false, Sequential
	}
	defaultMeasurements(at, path+".measurements", j.Measurements)
	for i := range j.Objects {
		o, path := &j.Objects[i], strictyaml.Index(path+".objects", i)
		fill(at, path+".replicas", &o.Replicas, 1)
		fill(at, path+".wait", &o.Wait, true)
		fill(at, path+".repeatEveryNIterations", &o.RepeatEveryNIterations, 1)
		fill(at, path+".churn", &o.Churn, true)
		fill(at, path+".apiVersion", &o.APIVersion, "v1")
	}
	for i := range j.Watchers {
		fill(at, strictyaml.Index(path+".watchers", i)+".replicas", &j.Watchers[i].Replicas, 1)
	}
	if l := j.IncrementalLoad; l != nil {
		fill(at, path+".incrementalLoad.pattern.linear.stepSize", &l.Pattern.Linear.StepSize, 1)
		fill(at, path+".incrementalLoad.pattern.exponential.base", &l.Pattern.Exponential.Base, 2)
	}
}

func defaultMeasurements(at *strictyaml.Positions, path string, measurements []Measurement) {
	for i := range measurements {
		m, path := &measurements[i], strictyaml.Index(path, i)
		fill(at, path+".svcTimeout", &m.SvcTimeout, 5*time.Second)
		fill(at, path+".pprofDirectory", &m.PProfDirectory, "pprof")
	}
}

func defaultEndpoint(at *strictyaml.Positions, path string, e *MetricsEndpoint, uuid string) {
	fill(at, path+".step", &e.Step, 30*time.Second)
	fill(at, path+".skipTLSVerify", &e.SkipTLSVerify, true)
	if e.Indexer.Type == LocalIndexer {
		fill(at, path+".indexer.metricsDirectory", &e.Indexer.MetricsDirectory, "collected-metrics-"+uuid)
		fill(at, path+".indexer.tarballName", &e.Indexer.TarballName, "kube-burner-metrics.tgz")
	}
}
