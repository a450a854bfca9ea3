// Package keys gives JSON that an earlier version has written the keys of today. It
// imports nothing of the program, so that whatever is read can call it.
package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// fields are those of a JSON object, not read any further.
type fields map[string]json.RawMessage

// rename gives fields their names of today, in place, where they have those from
// before. It reports whether any had.
func (f fields) rename(names map[string]string) (renamed bool) {
	for was, is := range names {
		if value, ok := f[was]; ok {
			f[is] = value
			delete(f, was)
			renamed = true
		}
	}
	return renamed
}

// kindNames are what keys of a kind of objects are called that had other names.
func kindNames() map[string]string {
	return map[string]string{"anew": "freshPerStep", "courses": "charts", "atOnce": "concurrent", "by": "groupBy"}
}

// Kind is a kind of objects, as JSON, in today's form: its metrics as folds of
// what is sampled, where each named one figure of a list, and its keys.
func Kind(data []byte) ([]byte, error) {
	var kind fields
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, err
	}
	changed := kind.rename(kindNames())
	if list, ok := kind["metrics"]; ok {
		metrics, err := metricsOf(list)
		if err != nil {
			return nil, err
		}
		if metrics != nil {
			kind["metrics"], changed = metrics, true
		}
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(kind)
}

// fold is a figure of one sampled value.
type fold struct {
	Source string `json:"source"`
	Value  string `json:"value"`
	Fold   string `json:"fold"`
}

// metricsOf are metrics in today's form, nil where they are in it.
func metricsOf(list json.RawMessage) (json.RawMessage, error) {
	var metrics []fields
	if err := json.Unmarshal(list, &metrics); err != nil {
		return nil, err
	}
	changed := false
	for _, m := range metrics {
		var was struct{ Source, Figure, Value string }
		if _, ok := m["figure"]; !ok {
			continue
		}
		changed = true
		for key, to := range map[string]*string{"source": &was.Source, "figure": &was.Figure, "value": &was.Value} {
			if text, ok := m[key]; ok {
				if err := json.Unmarshal(text, to); err != nil {
					return nil, err
				}
				delete(m, key)
			}
		}
		cpu := fold{was.Source, "cpuSeconds", "difference"}
		now, ok := map[string]fold{
			"cpu": cpu, "memory": {was.Source, "memoryBytes", "most"}, "growth": {was.Source, "memoryBytes", "growth"},
			"rate": {"step", "achievedRate", "last"}, "perCPU": {"step", "done", "last"},
			"seconds": {was.Source, "seconds", "last"}, "told": {was.Source, "value", "last"}, "most": {was.Source, was.Value, "most"},
		}[was.Figure]
		if !ok {
			return nil, fmt.Errorf("no metric is made of the figure %q", was.Figure)
		}
		put := func(key string, value any) {
			m[key], _ = json.Marshal(value) // of texts alone
		}
		if put("of", now); was.Figure == "perCPU" {
			put("per", cpu)
			put("title", "requests per "+was.Source+" CPU second")
		}
	}
	if !changed {
		return nil, nil
	}
	return json.Marshal(metrics)
}

// stepNames are what keys of a step are called that had other names.
func stepNames() map[string]string {
	return map[string]string{"told": "metrics", "atOnce": "concurrent", "by": "groups"}
}

// perCPU is the metric that stood among what a process used.
const perCPU = "requestsPerCPUSecond"

// Step is a step of a result, as JSON, in today's form. What it has not to change
// is not read further: a result may have many thousands of steps.
func Step(data []byte) ([]byte, error) {
	var step fields
	if err := json.Unmarshal(data, &step); err != nil {
		return nil, err
	}
	changed := step.rename(stepNames())
	if requests, ok := step["requests"]; ok {
		var was struct{ N *int }
		if err := json.Unmarshal(requests, &was); err != nil {
			return nil, err
		}
		if was.N != nil { // before streams came
			step.rename(map[string]string{"requests": "apiRequests"})
			changed = true
		}
	}
	if bytes.Contains(step["resources"], []byte(perCPU)) {
		if err := step.movePerCPU(); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return data, nil
	}
	return json.Marshal(step)
}

// movePerCPU puts the figure perCPU of a step among its metrics.
func (f fields) movePerCPU() error {
	var resources map[string]map[string]*float64
	if err := json.Unmarshal(f["resources"], &resources); err != nil {
		return err
	}
	metrics := make(map[string]float64)
	if text, ok := f["metrics"]; ok {
		if err := json.Unmarshal(text, &metrics); err != nil {
			return err
		}
	}
	for _, use := range resources {
		if value := use[perCPU]; value != nil {
			metrics[perCPU] = *value
		}
	}
	var err error
	f["metrics"], err = json.Marshal(metrics)
	return err
}
