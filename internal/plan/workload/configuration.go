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

// AxisJobs is the axis of the jobs of a configuration: each level makes those up to one
// of them, whole.
const AxisJobs = "jobs"

// OfConfiguration makes a workload of a configuration in kube-burner's format, which
// is a file of a directory, for a target that takes one. Its parameters are the
// variables that its template asks for: each is YAML, and one that is not given is not
// set. What is wrong with the file's template is a *strictyaml.Error.
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
	for _, name := range slices.Compact(names) {
		w.Params = append(w.Params, Param{Name: name, Type: YAML, Help: "variable of the configuration; without a value it is not set"})
	}
	setDefaults(w)
	return w, nil
}

// notInNames matches what no workload's name has.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameOfFile is the name of the workload that a file is.
func nameOfFile(file string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(path.Base(file), path.Ext(file))), "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "config-" + name
	}
	return strings.TrimSuffix(name[:min(len(name), 40)], "-")
}

// Written is the YAML of a value of user data, on one line.
func Written(value any) (string, error) {
	if text, ok := value.(string); ok {
		return asText(text), nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

// asText is YAML that is a text, whatever it would be without quotes.
func asText(text string) string {
	var plain any
	if _, err := strictyaml.Decode("", []byte(text), &plain); err == nil && plain == text {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil { // no text is
		return text
	}
	return string(quoted)
}

// Texts are parameters as they are given by words, on a command line or in the
// environment: the variables of a configuration are texts then, as kube-burner has it.
func (w *Workload) Texts(given map[string]string) map[string]string {
	if !w.AsItIs {
		return given
	}
	texts := maps.Clone(given)
	for name, value := range texts {
		texts[name] = asText(value)
	}
	return texts
}

// kindOf finds the kinds of an object template's documents, as they are mostly written.
var kindOf = regexp.MustCompile(`(?m)^kind:\s*["']?([A-Za-z]+)`)

// Measure has a run of the configuration follow the objects that its one measurement is
// of, where that is not of the target's own and the target knows it.
func (w *Workload) Measure(c *kubeburner.Config) {
	name := c.Asks()
	if !w.AsItIs || name == "" || w.Target.Measured == nil {
		return
	}
	var kinds []string
	for i := range c.Jobs {
		for _, o := range c.Jobs[i].Objects {
			text, err := fs.ReadFile(w.files, path.Clean(o.ObjectTemplate))
			if err != nil {
				continue // it is told where the templates are compiled
			}
			for _, m := range kindOf.FindAllSubmatch(text, -1) {
				kinds = append(kinds, string(m[1]))
			}
		}
	}
	followed := w.Target.Measured(name, kinds)
	if followed == nil {
		return
	}
	w.Followed, w.measured, c.Measured = followed, name, name
	there := w.kind().There
	w.Goals = strictyaml.Ordered[[]string]{{Key: "ready", Value: []string{"all " + there, "errors <= 0%"}}}
	w.Primary = there + " p50"
}
