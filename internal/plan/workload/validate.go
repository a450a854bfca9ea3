package workload

import (
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

var (
	// Commands, file names and Kubernetes names hold a name.
	nameForm  = regexp.MustCompile(`^[a-z][-a-z0-9]{0,39}$`)
	paramForm = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`) // Templates hold a parameter's name: {{ .name }}
)

func validate(w *Workload) error {
	v := &validator{strictyaml.Validation{At: w.positions, Problems: settings.Validate(w, "", w.positions)}, w}
	if w.Schema != Schema {
		v.Fail("schema", "must be %q, is %q", Schema, w.Schema)
	}
	CheckName(&v.Validation, "name", w.Name, nil)
	v.help("help", w.Help)
	v.config()
	v.axes()
	v.params()
	taken := map[string]bool{}
	for i, c := range w.Components {
		CheckName(&v.Validation, strictyaml.Index("components", i)+".name", c.Name, taken)
	}
	// Axes may all have goals of their own.
	if len(w.Goals) == 0 && slices.ContainsFunc(w.Axes, func(a Axis) bool { return len(a.Goals) == 0 }) {
		v.Fail("goals", "is missing: at least one is needed, the headline first")
	}
	if w.Lab != "" && (w.Lab != LabVirt || w.Target.Renews == "") {
		v.Fail("lab", "must be %s, on a target that has labs, is %q", LabVirt, w.Lab)
	}
	switch {
	case w.Followed != nil:
		w.Followed.Check(&v.Validation, w)
	case !w.Objects.IsZero():
		v.Fail("objects", "the target %s says itself what is followed", w.Target.Name)
	}
	v.settings()
	v.goals("goals", w.Goals, w.kind())
	if w.Primary != "" || slices.ContainsFunc(w.Axes, func(a Axis) bool { return a.Primary == "" }) {
		v.primary("primary", w.Primary, w.kind())
	}
	return strictyaml.Join(v.Problems)
}

// LabVirt is a lab with virtual machines.
const LabVirt = "virt"

type validator struct {
	strictyaml.Validation
	w *Workload
}

// CheckName checks a name, and that no earlier one took it.
func CheckName(v *strictyaml.Validation, path, name string, taken map[string]bool) {
	switch {
	case name == "":
		v.Fail(path, "is missing")
	case !nameForm.MatchString(name):
		v.Fail(path, "%q must consist of lower case letters, digits and '-', begin with a letter and have at most 40 characters", name)
	case taken[name]:
		v.Fail(path, "the name %q is taken", name)
	}
	if taken != nil {
		taken[name] = true
	}
}

func (v *validator) help(path, help string) {
	switch {
	case strings.TrimSpace(help) == "":
		v.Fail(path, "is missing")
	case strings.Contains(strings.TrimSpace(help), "\n"):
		v.Fail(path, "must be one line")
	}
}

func (v *validator) config() {
	if !v.w.Target.Configured {
		if v.w.ConfigFile != "" {
			v.Fail("config", "the target %s takes none", v.w.Target.Name)
		}
		return
	}
	if v.w.ConfigFile == "" {
		v.Fail("config", "is missing")
	} else if _, err := fs.Stat(v.w.files, v.w.ConfigFile); err != nil {
		v.Fail("config", "file %q does not exist beside it", v.w.ConfigFile)
	}
}

func (v *validator) axes() {
	if len(v.w.Axes) == 0 {
		v.Fail("axes", "is missing: at least one is needed")
	}
	taken := map[string]bool{}
	for i, a := range v.w.Axes {
		path := strictyaml.Index("axes", i)
		CheckName(&v.Validation, path+".name", a.Name, taken)
		v.help(path+".help", a.Help)
		declared, known := v.w.Target.Axes[a.Means]
		switch {
		case !known:
			key := path + ".means"
			if a.Means == a.Name {
				key = path + ".name"
			}
			v.Add(key, nearest.OneOf(a.Means, slices.Sorted(maps.Keys(v.w.Target.Axes))), "the target %s has no axis %q", v.w.Target.Name, a.Means)
		case a.Loop != declared.Loop:
			v.Fail(path+".loop", "must be %s, is %q", declared.Loop, a.Loop)
		}
		kind := v.w.KindOn(a.Name)
		if declared.Streams() && len(a.Goals) == 0 {
			v.Fail(path+".goals", "is missing: those of the workload are of other things than %s", kind.Object.Many)
		} else if !declared.Streams() && a.WarmUp != 0 {
			v.Fail(path+".warmUp", "only an axis of streams has one")
		}
		v.goals(path+".goals", a.Goals, kind)
		if a.Primary != "" || declared.Streams() {
			v.primary(path+".primary", a.Primary, kind)
		}
		r := a.Default
		for i, level := range a.Sweep.Levels {
			if level <= 0 {
				v.Fail(strictyaml.Index(path+".sweep.levels", i), "must be above 0, is %v", level)
			}
		}
		if r.Max < r.From {
			v.Fail(path+".default.max", "must be at least from, which is %v, is %v", r.From, r.Max)
		}
		if r.Resolution > 0 && math.Abs(math.Remainder(r.Step, r.Resolution)) > 1e-9*r.Step {
			v.Fail(path+".default.step", "must be a multiple of the resolution, which is %v, is %v", r.Resolution, r.Step)
		}
	}
}

func (v *validator) params() {
	taken := map[string]bool{}
	for i, p := range v.w.Params {
		path := strictyaml.Index("params", i)
		switch {
		case !paramForm.MatchString(p.Name):
			v.Fail(path+".name", "%q must begin with a lower case letter and consist of letters and digits", p.Name)
		case taken[p.Name]:
			v.Fail(path+".name", "the name %q is taken", p.Name)
		}
		taken[p.Name] = true
		v.help(path+".help", p.Help)
		if !slices.Contains(types(), string(p.Type)) {
			v.Fail(path+".type", "there is no type %q, there is: %s", p.Type, strings.Join(types(), ", "))
			continue
		}
		for key, bound := range map[string]*int{".min": p.Min, ".max": p.Max} {
			if bound != nil && !slices.Contains([]Type{Int, Number, Size}, p.Type) {
				v.Fail(path+key, "only a parameter of type int, number or size has one")
			}
		}
		if p.Several && (p.Type != String || len(p.Values) == 0) {
			v.Fail(path+".several", "only a parameter of type string with values has it")
		}
		if p.Secret != nil && *p.Secret && (p.Type != String || p.Default != "") {
			v.Fail(path+".secret", "only a parameter of type string without a default is secret")
		}
		if p.Pattern != "" {
			if p.Type != String {
				v.Fail(path+".pattern", "only a parameter of type string has one")
			} else if _, err := regexp.Compile(p.Pattern); err != nil {
				v.Fail(path+".pattern", "is not a regular expression: %v", err)
				continue
			}
		}
		if p.Default != "" && slices.Contains(slices.Concat(v.w.Target.Programs, v.w.Target.Files, v.w.Target.Directories), p.Name) {
			v.Fail(path+".default", "must be empty: which program, file or directory it is says who runs the workload")
		}
		if _, err := p.resolve(p.Default); err != nil {
			v.Fail(path+".default", "%v", err)
		}
	}
}

func (v *validator) milestone(path, name string, kind record.ObjectKind) {
	if names := kind.Names(); !slices.Contains(names, name) {
		v.Add(path, nearest.OneOf(name, names), "%q is not one of the milestones", name)
	}
}

func (v *validator) goals(path string, goals strictyaml.Ordered[[]string], kind record.ObjectKind) {
	for _, g := range goals {
		path := strictyaml.Key(path, g.Key)
		if len(g.Value) == 0 {
			v.Fail(path, "has no objectives")
		}
		for i, text := range g.Value {
			s, err := slo.Parse(text)
			if err != nil {
				v.Fail(strictyaml.Index(path, i), "%v", err)
			} else if s.Milestone != "" {
				v.milestone(strictyaml.Index(path, i), s.Milestone, kind)
			} else if s.Form == slo.Failed && s.Places != kind.Place.Many {
				v.Fail(strictyaml.Index(path, i), "objective %q: there are no %s", text, s.Places)
			}
		}
	}
}

func (v *validator) primary(path, metric string, kind record.ObjectKind) {
	switch f, err := slo.ParseFigure(metric); {
	case metric == "":
		v.Fail(path, "is missing")
	case kind.Metric(metric) != nil:
	case err != nil:
		v.Fail(path, "%v, such as %q", err, kind.There+" p50")
	default:
		v.milestone(path, f.Milestone, kind)
	}
}
