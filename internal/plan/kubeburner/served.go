package kubeburner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Served returns the settings of a defaulted configuration that the engine refuses, because the run would
// differ without them, and those that it only notes. Both are in the order of lines, with hints where
// something helps.
func Served(c *Config) (refused, noted []strictyaml.Problem) {
	u := &served{Validation: strictyaml.Validation{At: c.positions}, measured: c.measured()}
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
		u.takes(e.Endpoint != "" && len(e.Metrics) > 0, path+".metrics", "metrics are not queried")
		u.refuses(e.Endpoint != "" && len(e.Alerts) > 0, path+".alerts", "alerts are not evaluated, and a run without them could pass that should fail", "")
		u.takes(e.Indexer.Type != "" && e.Indexer.Type != "local", path+".indexer.type", "nothing is sent to an indexer: the run's directory has all that was recorded")
	}
	return u.sorted(u.Problems), u.sorted(u.noted)
}

type served struct {
	strictyaml.Validation // problems that are refused
	noted                 []strictyaml.Problem
	measured              string
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
		hint := "every run measures its pods"
		if u.measured != podLatency {
			hint = "of one kind of objects a run has the latencies, and here these are of " + u.measured
		}
		u.refuses(m.Name != u.measured, path+".name", m.Name+" is not measured", hint)
		u.takes(m.QuantilesIndexer+m.TimeseriesIndexer != "", path+".quantilesIndexer", "nothing is sent to an indexer: the run's directory has all that was recorded")
	}
}

const podLatency = "podLatency" // the measurement of a run by default

func (c *Config) measured() string { return cmp.Or(c.Measured, podLatency) }

// Asks returns the only measurement that a configuration asks for, "" if there are several or none.
func (c *Config) Asks() (name string) {
	for _, m := range c.allMeasurements() {
		if name != "" && m.Name != name {
			return ""
		}
		name = m.Name
	}
	return name
}

func (c *Config) allMeasurements() []Measurement {
	all := slices.Clone(c.Global.Measurements)
	for i := range c.Jobs {
		all = append(all, c.Jobs[i].Measurements...)
	}
	return all
}

func (u *served) job(path string, j *Job) {
	u.refuses(j.JobType == KubeVirt, path+".jobType", "no operations on machines are run", "")
	creates := j.Creates()
	u.takes(creates && j.ExecutionMode == sequential, path+".executionMode", "it is of jobs that work on objects: a create job makes its own side by side, by its qps")
	u.refuses(j.ObjectWait, path+".objectWait", "objects are not waited for one by one", "podWait waits after each iteration")
	u.refuses(len(j.Watchers) > 0, path+".watchers", "no extra watches are opened", "")
	u.refuses(len(j.Hooks) > 0, path+".hooks", "no commands are run", "")
	u.refuses(j.IncrementalLoad != nil, path+".incrementalLoad", "the load is not raised in steps", "limit and sweep raise it: --axis iterations")
	u.takes(!j.WaitWhenFinished && j.JobType != Delete, path+".waitWhenFinished", "each job is waited for")
	u.takes(creates && !j.WaitForDeletion, path+".waitForDeletion", "the removal at the end is always waited for")
	u.says(path+".metricsClosing", "nothing is queried")
	u.takes(j.MetricsAggregate, path+".metricsAggregate", "nothing is queried")
	u.takes(j.GC, path+".gc", "a run always removes what it made, once the last job has ended")
	u.takes(!j.VerifyObjects, path+".verifyObjects", "every object is accounted for")
	u.takes(!j.ErrorOnVerify, path+".errorOnVerify", "an object that is missing counts against the run")
	u.takes(j.PreLoadImages && u.At.Has(path+".preLoadImages") || u.At.Has(path+".preLoadPeriod") || len(j.PreLoadNodeLabels) > 0,
		path+".preLoadImages", "images are not pulled beforehand: a node pulls one for its first pod, and ImagesReady tells how long that took")
	u.measurements(path+".measurements", j.Measurements)
	for i := range j.Objects {
		o, path := &j.Objects[i], strictyaml.Index(path+".objects", i)
		u.refuses(len(o.WaitOptions.LabelSelector) > 0 && o.WaitOptions.Kind == "", path+".waitOptions.labelSelector", "what is waited for without a kind are the objects themselves", "")
		u.takes(!o.Churn && !j.ChurnConfig.On(), path+".churn", "nothing is deleted and created again")
		u.refuses(o.Group.GC, path+".group", "objects are not removed in groups", "")
		for _, key := range []string{"kind", "apiVersion", "labelSelector", "patchType", "kubeVirtOp"} {
			u.takes(creates && u.At.Has(path+"."+key), path+"."+key, "a create job makes what its object template says")
		}
		u.takes(!creates && o.WaitOptions.Asks(), path+".waitOptions", "a job that works on objects waits for its requests, and a delete job for their end")
	}
}

// Thresholds returns the objectives for the thresholds of the run's measurement.
func Thresholds(c *Config) (list []string) {
	for _, m := range c.allMeasurements() {
		for _, t := range m.Thresholds {
			if m.Name == c.measured() {
				list = append(list, objective(m.Name, t))
			}
		}
	}
	return slices.Compact(list)
}

func objective(of string, t Threshold) string {
	figure := map[string]string{"Avg": "mean", "Max": "max"}[t.Metric]
	figure = cmp.Or(figure, strings.ToLower(t.Metric))
	milestone := t.ConditionType
	if of == podLatency && milestone == "PodScheduled" {
		milestone = "Scheduled"
	}
	if rest, ok := strings.CutPrefix(milestone, "PodPod"); ok { // of a machine's pod
		milestone = "Pod" + rest
	}
	return fmt.Sprintf("%s %s <= %s", milestone, figure, t.Threshold)
}
