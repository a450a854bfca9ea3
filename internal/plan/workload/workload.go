package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/redact"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Schema names the format of a description.
const Schema = "plimsoll/workload/v1"

// File is the name of a description in its directory.
const File = "workload.yaml"

// Workload holds a description with defaults, and the files beside it.
type Workload struct {
	Schema     string      `yaml:"schema"`
	Name       string      `yaml:"name"`
	Help       string      `yaml:"help"` // one line
	TargetName string      `yaml:"target"`
	ConfigFile string      `yaml:"config"` // in kube-burner's format, if the target takes one
	Shared     []string    `yaml:"shared"` // files of SharedDir to read as if they were its own
	Axes       []Axis      `yaml:"axes"`   // the default first
	Params     []Param     `yaml:"params"` // in the order for users
	Components []Component `yaml:"components"`
	// Lab names what a private lab needs besides a control plane and nodes: "virt" for virtual machines, or "".
	Lab string `yaml:"lab"`
	// Objects says what to follow, for the target to read; nothing stands for the target's own choice.
	Objects  strictyaml.Raw `yaml:"objects"`
	Settings []Setting      `yaml:"settings"` // lists the settings of the system that parameters change
	// Goals lists the objectives of each goal, which must all hold; the first goal is the headline.
	Goals strictyaml.Ordered[[]string] `yaml:"goals"`
	// Primary names the metric that decides a comparison, such as "ContainersStarted p50".
	Primary     string        `yaml:"primary"`
	Hold        time.Duration `yaml:"hold" default:"10s" range:"0s.."`
	StepTimeout time.Duration `yaml:"stepTimeout" default:"5m" range:"0s.."`

	AsItIs   bool       `yaml:"-"` // keeps the rates, pauses and waits of the configuration
	Target   Target     `yaml:"-"`
	Followed Followed   `yaml:"-"` // holds what the target read from Objects, nil for nothing
	Beside   []Followed `yaml:"-"` // holds what a configuration's measurements follow beside the target's own kind

	positions *strictyaml.Positions
	files     fs.FS
	secrets   *redact.Secrets
}

// Target declares to workloads what a target can do.
type Target struct {
	Name              string
	Kind              record.ObjectKind
	Axes              map[string]TargetAxis
	Configured        bool   // asks for a configuration in kube-burner's format
	ConfigurationAxes []Axis // lists the axes of such a configuration as it stands; AxisJobs is one of them
	// Settings returns a new struct of the target's own settings, for target: in a plan; nil for none.
	Settings func() settings.Own `json:"-"`
	// Objects returns a new description for objects: in a workload; nil if the target chooses what to follow.
	Objects func() Followed `json:"-"`
	// Measured returns what to follow for a measurement, its objects first, or nothing.
	Measured func(measurement string) []Followed `json:"-"`
	Takes    map[string]string                   // maps flags that only some targets know to their effect here; "" for the usual one
	Renews   string                              // the word under fresh: that makes the system again for each step, "" if nothing does
	// Programs, Files and Directories list the parameters that name those: local programs, files to read, and
	// directories to write to, joined by +.
	Programs, Files, Directories []string
	Facts                        []record.Fact // lists what it records of the place of a run, without values
}

// Followed describes what a workload follows, as its target reads it into a struct with yaml tags.
type Followed interface {
	// Kind returns the kind of these things on a target with a kind of its own, base.
	Kind(base record.ObjectKind) record.ObjectKind
	// Join adds these things to a kind, beside the objects that it has.
	Join(kind record.ObjectKind) record.ObjectKind
	// Awaited returns the milestone at which they count as there, "" for things that no load makes.
	Awaited() string
	// Check adds its mistakes.
	Check(v *strictyaml.Validation, w *Workload)
}

// TargetAxis describes an axis of a target.
type TargetAxis struct {
	Loop   Loop
	Whole  bool               // makes each level begin from empty
	Stream *record.ObjectKind // describes the requests of a stream; nil if each has a record of its own
	Kind   *record.ObjectKind // describes the objects of this axis, nil for the target's
}

// Streams reports whether the axis loads a stream of requests.
func (a TargetAxis) Streams() bool { return a.Stream != nil }

// Targets finds a target by its name. For a missing one it returns an *UnknownError.
type Targets func(name string) (Target, error)

// TargetsOf finds targets in a list.
func TargetsOf(list ...Target) Targets {
	return func(name string) (Target, error) {
		return find(list, "target", name, func(t Target) string { return t.Name })
	}
}

// find returns the item of a list with a name. For a missing one it returns an *UnknownError.
func find[T any](list []T, what, name string, nameOf func(T) string) (T, error) {
	known := make([]string, len(list))
	for i, item := range list {
		if known[i] = nameOf(item); known[i] == name {
			return item, nil
		}
	}
	var none T
	return none, &UnknownError{What: what, Name: name, Known: known}
}

// Loop says when arrivals start.
type Loop string

// The loops.
const (
	Closed Loop = "closed" // the run reaches a level as fast as it can, and keeps it
	Open   Loop = "open"   // arrivals follow a schedule, whatever became of earlier ones
)

// Axis describes how users raise a workload.
type Axis struct {
	Name    string                       `yaml:"name"`
	Means   string                       `yaml:"means"` // names the axis of the target, "" for that of the same name
	Unit    string                       `yaml:"unit" needed:""`
	Help    string                       `yaml:"help"`
	Loop    Loop                         `yaml:"loop" default:"closed"`
	Default Range                        `yaml:"default"`
	Hold    time.Duration                `yaml:"hold"` // Hold and Goals replace those of the workload
	Goals   strictyaml.Ordered[[]string] `yaml:"goals"`
	// ObjectLife sets how long a ready object of an open axis stays; 0 if the axis makes none.
	ObjectLife time.Duration `yaml:"objectLife"`
	WarmUp     time.Duration `yaml:"warmUp"`  // sets for how long no request of a stream counts; default 5 s
	Primary    string        `yaml:"primary"` // replaces that of the workload
	Sweep      Levels        `yaml:"sweep"`   // holds the defaults of a sweep
	Sets       string        `yaml:"-"`       // names the parameter of a configuration whose value a level is, "" for none
}

// Levels holds the levels of a sweep and their repetitions; 0 stands for one.
type Levels struct {
	Levels []float64 `yaml:"levels"`
	Repeat int       `yaml:"repeat" range:"0.."`
}

// Range bounds the search for a load line, in the axis's unit.
type Range struct {
	From       float64 `yaml:"from" range:">0" needed:""`
	Step       float64 `yaml:"step" range:">0" needed:""`
	Max        float64 `yaml:"max"`
	Resolution float64 `yaml:"resolution" default:"1" range:">0"`
}

// Component names a part of the workload: the objects of one entry of the configuration.
type Component struct {
	Name   string `yaml:"name"`
	Job    int    `yaml:"job" range:"0.."`    // index of the job, from 0
	Object int    `yaml:"object" range:"0.."` // index of the object in it, from 0
}

// UnknownError says that a name is unknown, and lists those known.
type UnknownError struct {
	What  string // for example "workload"
	Name  string
	Known []string
}

// Error names the nearest known name, or all of them.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.What, e.Name)
	if near, ok := nearest.Word(e.Name, e.Known); ok {
		return text + fmt.Sprintf(", did you mean %q?", near)
	}
	if len(e.Known) == 0 {
		return text + ", there is none at all"
	}
	return text + ", there is: " + strings.Join(e.Known, ", ")
}

// Names lists the directories of a tree that hold a description.
func Names(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("list the workloads: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if _, err := fs.Stat(fsys, e.Name()+"/"+File); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// List loads all workloads of a tree, by name.
func List(fsys fs.FS, targets Targets) ([]*Workload, error) {
	names, err := Names(fsys)
	if err != nil {
		return nil, err
	}
	all := make([]*Workload, len(names))
	for i, name := range names {
		if all[i], err = Load(fsys, name, targets); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Load reads a workload by name from a tree. For a missing one it returns an *UnknownError.
func Load(fsys fs.FS, name string, targets Targets) (*Workload, error) {
	names, err := Names(fsys)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, &UnknownError{What: "workload", Name: name, Known: names}
	}
	dir, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("open the workload %s: %w", name, err)
	}
	w, err := Read(dir, targets)
	if err != nil {
		return nil, err
	}
	if len(w.Shared) > 0 {
		shared, err := fs.Sub(fsys, SharedDir)
		if err != nil {
			return nil, fmt.Errorf("open the files that %s shares: %w", name, err)
		}
		w.files = withShared{dir, shared, w.Shared}
	}
	if w.Name != name {
		return nil, strictyaml.Join([]strictyaml.Problem{w.positions.Problem("name", "must be %q, as its directory, is %q", name, w.Name)})
	}
	return w, nil
}

// Read reads a workload from its directory. It returns a *strictyaml.Error or fs.ErrNotExist.
func Read(dir fs.FS, targets Targets) (*Workload, error) {
	dir = bounded{dir}
	text, err := fs.ReadFile(dir, File)
	if err != nil {
		return nil, fmt.Errorf("read the workload: %w", err)
	}
	w := &Workload{files: dir}
	if w.positions, err = strictyaml.Decode(File, text, w); err != nil {
		return nil, err
	}
	if w.Target, err = targets(w.TargetName); err != nil {
		problem := w.positions.Problem("target", "%v", err)
		if w.TargetName == "" {
			problem = w.positions.Problem("target", "is missing: say what the workload loads")
			problem.Hint = "for example target: kubernetes"
		}
		return nil, strictyaml.Join([]strictyaml.Problem{problem})
	}
	if !w.Objects.IsZero() && w.Target.Objects != nil {
		w.Followed = w.Target.Objects()
		if err := w.Objects.Decode("objects", w.Followed, w.positions); err != nil {
			return nil, err
		}
	}
	setDefaults(w)
	if err := validate(w); err != nil {
		return nil, err
	}
	return w, nil
}

func setDefaults(w *Workload) {
	settings.Default(w, w.positions.Has)
	for i := range w.Axes {
		a := &w.Axes[i]
		a.Means = cmp.Or(a.Means, a.Name)
		if a.WarmUp == 0 && w.Target.Axes[a.Means].Streams() {
			a.WarmUp = 5 * time.Second
		}
	}
}

// Axis returns an axis by name, the first for "". For a missing one it returns an *UnknownError.
func (w *Workload) Axis(name string) (Axis, error) {
	if name == "" {
		return w.Axes[0], nil
	}
	if variable, ok := strings.CutPrefix(name, setsVariable); ok && w.AsItIs {
		a := Axis{Name: name, Means: AxisSettings, Unit: variable, Help: "value of " + variable + ", each level from empty", Loop: Closed, Default: Range{From: 1, Step: 1, Max: 100_000, Resolution: 1}, Sets: variable}
		_, err := w.Param(variable)
		return a, err
	}
	return find(w.Axes, "axis of "+w.Name, name, func(a Axis) string { return a.Name })
}

// At returns the parameters of a level: those given, and on an axis that sets one its value. Level 0 stands for the one
// where a search begins.
func (w *Workload) At(axis string, level float64, given map[string]string) map[string]string {
	a, err := w.Axis(axis)
	if err != nil || a.Sets == "" {
		return given
	}
	at := map[string]string{a.Sets: strconv.FormatFloat(cmp.Or(level, a.Default.From), 'f', -1, 64)}
	for name, value := range given {
		if name != a.Sets {
			at[name] = value
		}
	}
	return at
}

// TargetAxis returns the target's axis for an axis of the workload.
func (w *Workload) TargetAxis(axis string) TargetAxis {
	if a, err := w.Axis(axis); err == nil {
		axis = a.Means
	}
	return w.Target.Axes[axis]
}

// KindOn returns the kind of the objects along an axis.
func (w *Workload) KindOn(axis string) record.ObjectKind {
	declared := w.TargetAxis(axis)
	if kind := cmp.Or(declared.Stream, declared.Kind); kind != nil {
		return *kind
	}
	return w.kind()
}

func (w *Workload) kind() record.ObjectKind {
	kind := w.Target.Kind
	if w.Followed != nil {
		kind = w.Followed.Kind(kind)
	}
	for _, f := range w.Beside {
		kind = f.Join(kind)
	}
	return kind
}

// Param returns a parameter by name. For a missing one it returns an *UnknownError.
func (w *Workload) Param(name string) (Param, error) {
	if w.AsItIs && kubeburner.IsSetting(name) {
		return Param{Name: name, Type: YAML, Help: "setting of the configuration"}, nil
	}
	return find(w.Params, "parameter of "+w.Name, name, func(p Param) string { return p.Name })
}

// ComponentOf names the first component with an object's job and index, "" for none.
func (w *Workload) ComponentOf(job, object int) string {
	for _, c := range w.Components {
		if c.Job == job && c.Object == object {
			return c.Name
		}
	}
	return ""
}

// Files returns the workload's directory, for its object templates.
func (w *Workload) Files() fs.FS { return w.files }

// Config returns the configuration of a run with parameters filled in. The target must take one.
func (w *Workload) Config(p Params, uuid string) (*kubeburner.Config, error) {
	in := kubeburner.Input{UserData: p.Data(), UUID: uuid}
	if w.AsItIs {
		in.Env = p.All()
		maps.DeleteFunc(in.Env, func(name, _ string) bool { return p.data[name] == nil })
	}
	c, err := kubeburner.Load(w.files, w.ConfigFile, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, strictyaml.Join([]strictyaml.Problem{w.positions.Problem("config", "file %q does not exist beside it", w.ConfigFile)})
	}
	return c, err
}
