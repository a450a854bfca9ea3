package kubeburner

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Default fills in what the configuration leaves open. A zero value that the
// file itself states (jobIterations: 0) is left for Validate to judge; in a
// Config made in code every zero value is filled.
func Default(c *Config) {
	eachField(reflect.ValueOf(c).Elem(), "", func(path string, f reflect.StructField, value reflect.Value) {
		if text, ok := f.Tag.Lookup("default"); ok && value.IsZero() && !c.positions.Has(path) {
			setText(value, text)
		}
	})
	for i := range c.Jobs {
		j := &c.Jobs[i]
		fill(c, strictyaml.Index("jobs", i)+".maxWaitTimeout", &j.MaxWaitTimeout, c.Global.Timeout)
		if j.JobType == Delete {
			// A delete job goes over its objects once, one after the other, and
			// waits for their deletion instead of their readiness, whatever the
			// file says.
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

// fill sets a value that is zero because nothing was said.
func fill[T comparable](c *Config, path string, value *T, byDefault T) {
	var zero T
	if *value == zero && !c.positions.Has(path) {
		*value = byDefault
	}
}

// eachField visits every field of a struct and of those within it, with its path
// in the file.
func eachField(of reflect.Value, path string, visit func(path string, f reflect.StructField, value reflect.Value)) {
	for f, value := range of.Fields() {
		if !f.IsExported() {
			continue
		}
		at := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
		visit(at, f, value)
		switch t := f.Type; {
		case t.Kind() == reflect.Struct:
			eachField(value, at, visit)
		case t.Kind() == reflect.Pointer && !value.IsNil():
			eachField(value.Elem(), at, visit)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			for i := range value.Len() {
				eachField(value.Index(i), strictyaml.Index(at, i), visit)
			}
		}
	}
}

// setText sets a value to what a tag says.
func setText(value reflect.Value, text string) {
	if err := yaml.Unmarshal([]byte(text), value.Addr().Interface()); err != nil {
		panic(fmt.Sprintf("kubeburner: %q is no %s: %v", text, value.Type(), err))
	}
}
