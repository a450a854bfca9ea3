package workload

import (
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/nearest"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/strictyaml"
)

var (
	// A name stands in commands, in file names and in Kubernetes names.
	nameForm = regexp.MustCompile(`^[a-z][-a-z0-9]{0,39}$`)
	// A parameter's name stands in templates: {{ .name }}.
	paramForm = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	// A metric is a quantile of a milestone.
	metricForm = regexp.MustCompile(`^(\S+) p(\d{1,2}(\.\d+)?)$`)
)

// validate says what is wrong with a description after setDefaults.
func validate(w *Workload) error {
	v := &validator{w: w}
	if w.Schema != Schema {
		v.fail("schema", "must be %q, is %q", Schema, w.Schema)
	}
	v.name("name", w.Name, nil)
	v.help("help", w.Help)
	v.config()
	v.axes()
	v.params()
	v.milestones()
	v.components()
	v.goals()
	if w.Hold < 0 {
		v.fail("hold", "must not be negative, is %v", w.Hold)
	}
	return strictyaml.Join(v.problems)
}

type validator struct {
	w        *Workload
	problems []strictyaml.Problem
}

func (v *validator) fail(path, format string, args ...any) {
	v.problems = append(v.problems, v.w.positions.Problem(path, format, args...))
}

// name checks a name, and that it was not taken by one before.
func (v *validator) name(path, name string, taken map[string]bool) {
	switch {
	case name == "":
		v.fail(path, "is missing")
	case !nameForm.MatchString(name):
		v.fail(path, "%q must consist of lower case letters, digits and '-', begin with a letter and have at most 40 characters", name)
	case taken[name]:
		v.fail(path, "the name %q is taken", name)
	}
	if taken != nil {
		taken[name] = true
	}
}

func (v *validator) help(path, help string) {
	switch {
	case strings.TrimSpace(help) == "":
		v.fail(path, "is missing")
	case strings.Contains(strings.TrimSpace(help), "\n"):
		v.fail(path, "must be one line")
	}
}

func (v *validator) config() {
	if v.w.ConfigFile == "" {
		v.fail("config", "is missing")
	} else if _, err := fs.Stat(v.w.files, v.w.ConfigFile); err != nil {
		v.fail("config", "there is no file %q beside it", v.w.ConfigFile)
	}
}

func (v *validator) axes() {
	if len(v.w.Axes) == 0 {
		v.fail("axes", "is missing: at least one is needed")
	}
	taken := map[string]bool{}
	for i, a := range v.w.Axes {
		path := strictyaml.Index("axes", i)
		v.name(path+".name", a.Name, taken)
		v.help(path+".help", a.Help)
		if a.Unit == "" {
			v.fail(path+".unit", "is missing")
		}
		if a.Loop != Closed && a.Loop != Open {
			v.fail(path+".loop", "must be %s or %s, is %q", Closed, Open, a.Loop)
		}
		r := a.Default
		for _, n := range []struct {
			key   string
			value float64
		}{{"from", r.From}, {"step", r.Step}, {"resolution", r.Resolution}} {
			if n.value <= 0 {
				v.fail(path+".default."+n.key, "must be above 0, is %v", n.value)
			}
		}
		if r.Max < r.From {
			v.fail(path+".default.max", "must be at least from, which is %v, is %v", r.From, r.Max)
		}
		if r.Resolution > 0 && math.Abs(math.Remainder(r.Step, r.Resolution)) > 1e-9*r.Step {
			v.fail(path+".default.step", "must be a multiple of the resolution, which is %v, is %v", r.Resolution, r.Step)
		}
	}
}

func (v *validator) params() {
	taken := map[string]bool{}
	for i, p := range v.w.Params {
		path := strictyaml.Index("params", i)
		switch {
		case !paramForm.MatchString(p.Name):
			v.fail(path+".name", "%q must begin with a lower case letter and consist of letters and digits", p.Name)
		case taken[p.Name]:
			v.fail(path+".name", "the name %q is taken", p.Name)
		}
		taken[p.Name] = true
		v.help(path+".help", p.Help)
		if !slices.Contains(types(), p.Type) {
			v.fail(path+".type", "there is no type %q, there is: %s", p.Type, strings.Join(typeNames(), ", "))
			continue
		}
		if p.Min != nil && p.Type != Int {
			v.fail(path+".min", "only a parameter of type int has one")
		}
		if p.Pattern != "" {
			if p.Type != String {
				v.fail(path+".pattern", "only a parameter of type string has one")
			} else if _, err := regexp.Compile(p.Pattern); err != nil {
				v.fail(path+".pattern", "is no regular expression: %v", err)
				continue
			}
		}
		if _, err := p.resolve(p.Default); err != nil {
			v.fail(path+".default", "%v", err)
		}
	}
}

func (v *validator) milestones() {
	if len(v.w.Milestones) == 0 {
		v.fail("milestones", "is missing: at least one is needed")
		return
	}
	taken := map[string]bool{}
	for i, m := range v.w.Milestones {
		if m == "" || taken[m] {
			v.fail(strictyaml.Index("milestones", i), "%q is empty or stands here a second time", m)
		}
		taken[m] = true
	}
	v.milestone("arrived", v.w.Arrived)
}

// milestone checks that objects of the workload reach a milestone.
func (v *validator) milestone(path, name string) {
	if len(v.w.Milestones) == 0 || slices.Contains(v.w.Milestones, name) {
		return
	}
	p := v.w.positions.Problem(path, "%q is none of the milestones", name)
	if near, ok := nearest.Word(name, v.w.Milestones); ok {
		p.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	v.problems = append(v.problems, p)
}

func (v *validator) components() {
	taken := map[string]bool{}
	for i, c := range v.w.Components {
		path := strictyaml.Index("components", i)
		v.name(path+".name", c.Name, taken)
		if c.Job < 0 {
			v.fail(path+".job", "must not be negative, is %d", c.Job)
		}
		if c.Object != nil && *c.Object < 0 {
			v.fail(path+".object", "must not be negative, is %d", *c.Object)
		}
		if key, _, ok := strings.Cut(c.Label, "="); c.Label != "" && (!ok || key == "") {
			v.fail(path+".label", "%q must have the form key=value", c.Label)
		}
		if c.Object == nil && c.Label == "" {
			v.fail(path, "matches everything: give it an object or a label")
		}
	}
}

func (v *validator) goals() {
	if len(v.w.Goals) == 0 {
		v.fail("goals", "is missing: at least one is needed, the headline first")
	}
	for _, g := range v.w.Goals {
		path := strictyaml.Key("goals", g.Key)
		if len(g.Value) == 0 {
			v.fail(path, "has no objectives")
		}
		for i, text := range g.Value {
			s, err := slo.Parse(text)
			if err != nil {
				v.fail(strictyaml.Index(path, i), "%v", err)
			} else if s.Milestone != "" {
				v.milestone(strictyaml.Index(path, i), s.Milestone)
			}
		}
	}
	m := metricForm.FindStringSubmatch(v.w.Primary)
	switch {
	case v.w.Primary == "":
		v.fail("primary", "is missing")
	case m == nil:
		v.fail("primary", "%q must be a milestone and a quantile, such as %q", v.w.Primary, "Ready p50")
	default:
		v.milestone("primary", m[1])
		if q, err := strconv.ParseFloat(m[2], 64); err != nil || q <= 0 || q >= 100 {
			v.fail("primary", "there is no quantile p%s", m[2])
		}
	}
}
