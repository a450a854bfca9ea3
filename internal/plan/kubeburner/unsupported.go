package kubeburner

import (
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Unsupported lists, in the order of their lines, the settings of a defaulted
// configuration that ask for something the engine does not do, so that a run
// can name them beforehand. A default that the file does not state is not
// listed. Hint tells what happens instead, where that is of use.
func Unsupported(c *Config) []strictyaml.Problem {
	u := &unsupported{strictyaml.Validation{At: c.positions}}
	g := &c.Global
	u.says("global.requestTimeout", "requests have no timeout of their own", "")
	u.says("global.timeout", "the run as a whole has no timeout", "it is the default of maxWaitTimeout")
	u.when(g.GC, "global.gc", "nothing is removed at the end of a run", "clean removes what a run left")
	u.when(g.GCMetrics, "global.gcMetrics", "no metrics are collected during removal", "")
	u.when(g.WaitWhenFinished, "global.waitWhenFinished", "nothing is waited for after the last job", "each job waits by its own waitWhenFinished")
	u.when(g.ClusterHealth, "global.clusterHealth", "the cluster is not checked beforehand", "")
	u.when(g.DeletionStrategy == deleteByResource, "global.deletionStrategy", "objects are removed by namespace", "")
	u.when(len(g.Measurements) > 0, "global.measurements", "measurements in this format are not made", "every run measures its pods by itself")
	for i := range c.Jobs {
		u.job(strictyaml.Index("jobs", i), &c.Jobs[i])
	}
	for i, e := range c.MetricsEndpoints {
		path := strictyaml.Index("metricsEndpoints", i)
		// Without a URL nothing is queried, and what a local indexer would write a
		// run's directory has anyway.
		u.when(e.Endpoint != "" && len(e.Metrics)+len(e.Alerts) > 0, path+".endpoint", "metrics are not queried", "")
		u.when(e.Indexer.Type != "" && e.Indexer.Type != "local", path+".indexer.type", "nothing is indexed", "the run's directory has all that was recorded")
	}
	return strictyaml.Problems(strictyaml.Join(u.Problems))
}

type unsupported struct{ strictyaml.Validation }

// when reports the setting at path if it asks for something.
func (u *unsupported) when(asks bool, path, instead, hint string) {
	if asks {
		u.Add(path, hint, "has no effect yet: %s", instead)
	}
}

// says reports the setting at path if the file states it.
func (u *unsupported) says(path, instead, hint string) {
	u.when(u.At.Has(path), path, instead, hint)
}

func (u *unsupported) job(path string, j *Job) {
	if j.JobType != Create {
		u.when(true, path+".jobType", "only create jobs are run", "")
		return
	}
	u.when(j.ExecutionMode == sequential, path+".executionMode", "objects are created side by side", "")
	u.when(!j.WaitForDeletion, path+".waitForDeletion", "a removal is always waited for", "")
	u.when(j.JobIterationDelay > 0, path+".jobIterationDelay", "iterations follow each other without a pause", "")
	u.when(j.JobPause > 0, path+".jobPause", "jobs follow each other without a pause", "")
	u.when(j.ObjectDelay > 0, path+".objectDelay", "objects follow each other without a pause", "")
	u.when(j.ObjectWait, path+".objectWait", "objects are not waited for one by one", "podWait waits after each iteration")
	u.says(path+".metricsClosing", "no metrics are collected", "")
	u.when(j.MetricsAggregate, path+".metricsAggregate", "no metrics are collected", "")
	u.when(j.GC, path+".gc", "nothing is removed at the end of a job", "clean removes what a run left")
	u.when(!j.VerifyObjects, path+".verifyObjects", "every object is accounted for", "")
	u.when(!j.ErrorOnVerify, path+".errorOnVerify", "an object that is missing counts against the run", "")
	u.when(j.PreLoadImages && u.At.Has(path+".preLoadImages"), path+".preLoadImages", "images are not pulled beforehand", "")
	u.says(path+".preLoadPeriod", "images are not pulled beforehand", "")
	u.when(len(j.PreLoadNodeLabels) > 0, path+".preLoadNodeLabels", "images are not pulled beforehand", "")
	u.when(len(j.Measurements) > 0, path+".measurements", "measurements in this format are not made", "every run measures its pods by itself")
	u.when(len(j.Watchers) > 0, path+".watchers", "no extra watches are opened", "")
	u.when(len(j.Hooks) > 0, path+".hooks", "no commands are run", "")
	u.when(j.ChurnConfig.On(), path+".churnConfig", "nothing is deleted and created again", "")
	u.when(j.IncrementalLoad != nil, path+".incrementalLoad", "the load is not raised in steps", "limit and sweep raise it")
	for i := range j.Objects {
		o, path := &j.Objects[i], strictyaml.Index(path+".objects", i)
		u.says(path+".waitOptions", "an object is ready by the meaning of its kind", "")
		u.when(!o.Churn, path+".churn", "nothing is deleted and created again", "")
		u.when(o.Group != Group{}, path+".group", "objects are not removed in groups", "")
		for _, key := range []string{"kind", "apiVersion", "labelSelector", "patchType", "kubeVirtOp"} {
			u.says(path+"."+key, "a create job makes what its object template says", "")
		}
	}
}
