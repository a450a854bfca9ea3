package kubeburner

import (
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Default fills in unset values, in a Config made in code all zeros. Validate judges stated zeros.
func Default(c *Config) {
	settings.Default(c, c.positions.Has)
	for i := range c.Jobs {
		j := &c.Jobs[i]
		fill(c, strictyaml.Index("jobs", i)+".maxWaitTimeout", &j.MaxWaitTimeout, c.Global.Timeout)
		if j.JobType == Delete {
			// A delete job always handles its objects once, in order, and waits for their deletion.
			j.JobIterations, j.WaitWhenFinished, j.ExecutionMode = 1, false, sequential
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
