package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
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

// File is the name of the description in a workload's directory.
const File = "workload.yaml"

// Workload is a description, defaults filled in, and the files beside it.
type Workload struct {
	Schema     string      `yaml:"schema"`
	Name       string      `yaml:"name"`
	Help       string      `yaml:"help"`   // one line
	TargetName string      `yaml:"target"` // what is loaded
	ConfigFile string      `yaml:"config"` // the configuration in kube-burner's format, where the target takes one
	Shared     []string    `yaml:"shared"` // files of SharedDir that are read as if they stood beside it
	Axes       []Axis      `yaml:"axes"`   // the first is the one meant when none is named
	Params     []Param     `yaml:"params"` // in the order in which they are shown
	Components []Component `yaml:"components"`
	// Lab is what a private lab must have for it besides a control plane and
	// nodes: "virt" for virtual machines, "" for nothing.
	Lab string `yaml:"lab"`
	// Objects is what is followed, as the target reads it; nothing is what the
	// target follows by itself.
	Objects strictyaml.Raw `yaml:"objects"`
	// Settings are what parameters change of the system itself.
	Settings []Setting `yaml:"settings"`
	// Goals have load lines of their own; the first is the headline. Each is a
	// list of objectives that must all hold.
	Goals strictyaml.Ordered[[]string] `yaml:"goals"`
	// Primary is the metric that decides a comparison: a milestone with its
	// quantile, such as "ContainersStarted p50", or one that the target
	// declares.
	Primary string `yaml:"primary"`
	// Hold is how long a level is held once it is reached; default 10 s.
	Hold time.Duration `yaml:"hold" default:"10s" range:"0s.."`
	// StepTimeout is how long objects are followed after the last was asked
	// for; default 5 m.
	StepTimeout time.Duration `yaml:"stepTimeout" default:"5m" range:"0s.."`

	// AsItIs says that the configuration is all there is: its own rates, pauses and
	// waits hold.
	AsItIs bool `yaml:"-"`
	// Target is what the target of that name declares.
	Target Target `yaml:"-"`
	// Followed is what the target has read of Objects, nil for nothing.
	Followed Followed `yaml:"-"`

	positions *strictyaml.Positions
	files     fs.FS
	measured  string          // the measurement that Followed is of
	secrets   *redact.Secrets // that parameters have
}

// Target is what a workload must know of what it loads: the target declares it.
type Target struct {
	Name string
	Kind record.ObjectKind
	// Axes are those that it can be raised along.
	Axes map[string]TargetAxis
	// Configured says that a configuration in kube-burner's format tells what
	// is made.
	Configured bool
	// ConfigurationAxes are those along which such a configuration is raised as it
	// stands; AxisJobs is one of them.
	ConfigurationAxes []Axis
	// Settings are a new struct of the target's own settings, which stand under
	// target: in a plan; nil for a target without any.
	Settings func() settings.Own
	// Objects is a new description of what is followed, which stands under objects:
	// in a workload; nil for a target that says itself what is.
	Objects func() Followed
	// Measured is what is followed for a measurement of such a configuration that is
	// not of the target's own objects, of which the first is of one of these kinds; nil
	// where it is unknown.
	Measured func(measurement string, kinds []string) Followed
	// Takes are the flags of an experiment that only some targets know and that
	// this one does, each with what it does there, "" for what a plan says of it.
	Takes map[string]string
	// Renews is what a plan says under fresh: to have the system made again for
	// each step, "" where that cannot be.
	Renews string
	// Programs are the parameters by which a user names a program of this machine,
	// Files those by which one names a file that is read, Directories those by which
	// one names directories that are written to, joined by +.
	Programs, Files, Directories []string
	// Facts are what it can tell of where a run was made; their values say nothing.
	Facts []record.Fact
}

// Followed is what a workload says of the things that are followed, as its target
// reads it: a pointer to a struct with yaml tags.
type Followed interface {
	// Kind is that of these things, on a target whose own kind is base.
	Kind(base record.ObjectKind) record.ObjectKind
	// Check says what is wrong with it in a workload.
	Check(v *strictyaml.Validation, w *Workload)
}

// TargetAxis is what a target declares of an axis.
type TargetAxis struct {
	Loop Loop
	// Whole says that each level is made from empty.
	Whole bool
	// Stream is the kind of the requests of a stream; nil where each thing that
	// is asked for is a record of its own.
	Stream *record.ObjectKind
	// Kind is that of the objects of this axis, nil where it is the target's.
	Kind *record.ObjectKind
}

// Streams reports whether the load of the axis is a stream of requests.
func (a TargetAxis) Streams() bool { return a.Stream != nil }

// Targets finds a target by its name. One that is not there is an
// *UnknownError.
type Targets func(name string) (Target, error)

// TargetsOf finds targets in a list.
func TargetsOf(list ...Target) Targets {
	return func(name string) (Target, error) {
		return find(list, "target", name, func(t Target) string { return t.Name })
	}
}

// find is the item of a list that has a name. One that is not there is an
// *UnknownError.
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

// Loop is what the start of an arrival waits for.
type Loop string

// The loops.
const (
	Closed Loop = "closed" // a level is reached as fast as it goes, and kept
	Open   Loop = "open"   // arrivals come by a schedule, whatever became of earlier ones
)

// Axis is something that a workload can be raised along.
type Axis struct {
	Name string `yaml:"name"`
	// Means is the target's axis that it is, "" for the one of its name.
	Means   string `yaml:"means"`
	Unit    string `yaml:"unit" needed:""`
	Help    string `yaml:"help"`
	Loop    Loop   `yaml:"loop" default:"closed"`
	Default Range  `yaml:"default"`
	// Hold and Goals are the axis's own, instead of the workload's.
	Hold  time.Duration                `yaml:"hold"`
	Goals strictyaml.Ordered[[]string] `yaml:"goals"`
	// ObjectLife is how long after it was ready an object of an open axis is
	// removed; 0 where none are made.
	ObjectLife time.Duration `yaml:"objectLife"`
	// WarmUp is for how long the requests of a stream are not judged; default
	// 5 s.
	WarmUp time.Duration `yaml:"warmUp"`
	// Primary is the axis's own, instead of the workload's.
	Primary string `yaml:"primary"`
	// Sweep is what a sweep makes that does not say it.
	Sweep Levels `yaml:"sweep"`
}

// Levels are those of a sweep, and how often all of them are made; 0 is once.
type Levels struct {
	Levels []float64 `yaml:"levels"`
	Repeat int       `yaml:"repeat" range:"0.."`
}

// Range is where a load line is looked for, in the axis's unit.
type Range struct {
	From       float64 `yaml:"from" range:">0" needed:""`
	Step       float64 `yaml:"step" range:">0" needed:""`
	Max        float64 `yaml:"max"`
	Resolution float64 `yaml:"resolution" default:"1" range:">0"` // how narrow the answer is
}

// Component names a part of the workload: the objects of one entry of the
// configuration.
type Component struct {
	Name   string `yaml:"name"`
	Job    int    `yaml:"job" range:"0.."`    // index of the job, from 0
	Object int    `yaml:"object" range:"0.."` // index of the object in it, from 0
}

// UnknownError says that a name is unknown, and which are.
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

// Names lists the workloads of a tree, by name: its directories that hold a
// description.
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

// Load reads the workload of that name from a tree. One that is not there is
// an *UnknownError.
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

// Read reads a workload from its directory. What is wrong with the description
// is a *strictyaml.Error; a directory without one is fs.ErrNotExist.
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
		if a.Means == "" {
			a.Means = a.Name
		}
		if a.WarmUp == 0 && w.Target.Axes[a.Means].Streams() {
			a.WarmUp = 5 * time.Second
		}
	}
}

// Axis is the axis of that name, the first for "". One that is not there is an
// *UnknownError.
func (w *Workload) Axis(name string) (Axis, error) {
	if name == "" {
		return w.Axes[0], nil
	}
	return find(w.Axes, "axis of "+w.Name, name, func(a Axis) string { return a.Name })
}

// TargetAxis is what the target declares of an axis of the workload.
func (w *Workload) TargetAxis(axis string) TargetAxis {
	if a, err := w.Axis(axis); err == nil {
		axis = a.Means
	}
	return w.Target.Axes[axis]
}

// KindOn is the kind of what is asked for along an axis.
func (w *Workload) KindOn(axis string) record.ObjectKind {
	declared := w.TargetAxis(axis)
	if kind := cmp.Or(declared.Stream, declared.Kind); kind != nil {
		return *kind
	}
	return w.kind()
}

// kind is the kind of the objects that the workload makes.
func (w *Workload) kind() record.ObjectKind {
	if w.Followed != nil {
		return w.Followed.Kind(w.Target.Kind)
	}
	return w.Target.Kind
}

// Param is the parameter of that name. One that is not there is an
// *UnknownError.
func (w *Workload) Param(name string) (Param, error) {
	return find(w.Params, "parameter of "+w.Name, name, func(p Param) string { return p.Name })
}

// ComponentOf names the component of an object: the first whose job and object
// index fit, "" for an object of none.
func (w *Workload) ComponentOf(job, object int) string {
	for _, c := range w.Components {
		if c.Job == job && c.Object == object {
			return c.Name
		}
	}
	return ""
}

// Files are the files of the workload's directory: the file system for its
// object templates.
func (w *Workload) Files() fs.FS { return w.files }

// Config is the configuration with parameters filled in, for a run with that
// UUID. The target must take one.
func (w *Workload) Config(p Params, uuid string) (*kubeburner.Config, error) {
	in := kubeburner.Input{UserData: p.Data(), UUID: uuid}
	if w.AsItIs {
		in.Env = p.All()
		maps.DeleteFunc(in.Env, func(name, _ string) bool { return p.data[name] == nil })
	}
	c, err := kubeburner.Load(w.files, w.ConfigFile, in)
	if err == nil {
		c.Measured = w.measured
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, strictyaml.Join([]strictyaml.Problem{w.positions.Problem("config", "there is no file %q beside it", w.ConfigFile)})
	}
	return c, err
}
