package workload

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// AxisJobs names the axis of a configuration's jobs: each level runs all jobs up to one of them.
const AxisJobs = "jobs"

// AxisSettings names the axes along which a level is the value of a parameter of a configuration, which runs whole.
const AxisSettings = "settings"

const setsVariable = "set:" // begins the names of axes of variables

// OfConfiguration makes a workload of a configuration in kube-burner's format. The template's variables
// become parameters of type YAML. Mistakes in the template are a *strictyaml.Error.
func OfConfiguration(dir fs.FS, file string, target Target) (*Workload, error) {
	dir = bounded{dir}
	text, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, err
	}
	names, err := kubeburner.Variables(file, text)
	if err != nil {
		return nil, err
	}
	for _, template := range kubeburner.TemplateNames(text) {
		if read, err := fs.ReadFile(dir, path.Clean(template)); err == nil {
			names = append(names, kubeburner.EnvironmentOf(read)...)
		}
	}
	slices.Sort(names)
	w := &Workload{
		Schema: Schema, Name: nameOfFile(file), Help: "kube-burner's configuration " + file, ConfigFile: file, AsItIs: true,
		TargetName: target.Name, Target: target, Axes: slices.Clone(target.ConfigurationAxes),
		Goals:   strictyaml.Ordered[[]string]{{Key: "ready", Value: []string{"all " + target.Kind.There, "errors <= 0%"}}},
		Primary: target.Kind.There + " p50", Hold: time.Second, files: dir,
	}
	values, asks := kubeburner.OCP(file)
	for _, name := range slices.Compact(names) {
		p := Param{Name: name, Type: YAML, Help: "variable of the configuration; without a value it is not set", Ask: asks[name]}
		if value, ok := values[name]; ok {
			if p.Default, err = Written(value); err != nil {
				return nil, err
			}
			p.Help = "variable of the configuration, with kube-burner-ocp's value"
		}
		w.Params = append(w.Params, p)
	}
	setDefaults(w)
	return w, nil
}

// notInNames matches what workload names cannot hold.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func nameOfFile(file string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(path.Base(file), path.Ext(file))), "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "config-" + name
	}
	return strings.TrimSuffix(name[:min(len(name), 40)], "-")
}

// Written returns a value of user data as YAML on one line.
func Written(value any) (string, error) {
	if text, ok := value.(string); ok {
		return asText(text), nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// asText returns YAML for a text, in quotes if it would be something else without.
func asText(text string) string {
	var plain any
	if _, err := strictyaml.Decode("", []byte(text), &plain); err == nil && plain == text {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil { // never of a text
		return text
	}
	return string(quoted)
}

// Texts quotes parameters of the command line or environment: there a configuration's variables are texts.
func (w *Workload) Texts(given map[string]string) map[string]string {
	if !w.AsItIs {
		return given
	}
	texts := maps.Clone(given)
	for name, value := range texts {
		if !kubeburner.IsSetting(name) {
			texts[name] = asText(value)
		}
	}
	return texts
}

// Measure makes the run follow the objects of the configuration's measurements, beside its pods.
func (w *Workload) Measure(c *kubeburner.Config) {
	if !w.AsItIs || w.Target.Measured == nil {
		return
	}
	w.Beside = nil
	names := c.Measured(nil)
	objectives := []string{"all " + w.Target.Kind.There}
	for _, name := range names {
		for i, followed := range w.Target.Measured(name) {
			w.Beside = append(w.Beside, followed)
			if all := followed.Awaited(); i == 0 && all != "" { // the others follow what becomes of its objects
				objectives = append(objectives, "all "+all)
			}
		}
	}
	w.Goals = strictyaml.Ordered[[]string]{{Key: "ready", Value: append(objectives, "errors <= 0%")}}
	if len(objectives) > 1 && !slices.Contains(names, kubeburner.PodLatency) {
		w.Primary = strings.TrimPrefix(objectives[1], "all ") + " p50"
	}
}
