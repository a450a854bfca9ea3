package kubeburner

import (
	"reflect"
	"slices"
	"time"
)

// Summary returns the job as in kube-burner's documents, without objects and unset values.
func (j *Job) Summary() map[string]any {
	summary := summaryOf(reflect.ValueOf(*j))
	for _, key := range []string{"objects", "watchers", "preLoadNodeLabels", "namespaceLabels", "namespaceAnnotations"} {
		delete(summary, key)
	}
	if j.ExecutionMode != sequential {
		delete(summary, "executionMode")
	}
	if !j.ChurnConfig.On() {
		summary["churnConfig"] = map[string]any{}
	}
	summary["gc"] = j.GC
	return summary
}

func summaryOf(of reflect.Value) map[string]any {
	made := make(map[string]any)
	for f, value := range of.Fields() {
		key := f.Tag.Get("yaml")
		if f.IsExported() && (!value.IsZero() || value.Kind() == reflect.Struct) {
			made[key] = summarised(value)
		}
	}
	return made
}

func summarised(value reflect.Value) any {
	switch v := reflect.Indirect(value); {
	case v.Kind() == reflect.Struct:
		return summaryOf(v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = summaryOf(v.Index(i))
		}
		return list
	case v.Type() == reflect.TypeFor[time.Duration]():
		return v.Int()
	default:
		return v.Interface()
	}
}

// Measures returns the measurement of a job, "" if it asks for none.
func (c *Config) Measures(j *Job) string {
	if slices.ContainsFunc(slices.Concat(c.Global.Measurements, j.Measurements), func(m Measurement) bool { return m.Name == c.measured() }) {
		return c.measured()
	}
	return ""
}
