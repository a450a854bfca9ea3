// Package workload answers one question: what can be loaded, along which axis,
// with which parameters? A workload is data: a directory with a description
// (workload.yaml) and a configuration in kube-burner's format, into which the
// parameters go as template variables.
package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/kubeburner"
	"plimsoll.dev/plimsoll/internal/nearest"
	"plimsoll.dev/plimsoll/internal/strictyaml"
)

// Schema names the format of a description.
const Schema = "plimsoll/workload/v1"

// File is the name of the description in a workload's directory.
const File = "workload.yaml"

// Workload is a description, defaults filled in, and the files beside it.
type Workload struct {
	Schema     string      `yaml:"schema"`
	Name       string      `yaml:"name"`
	Help       string      `yaml:"help"`       // one line
	ConfigFile string      `yaml:"config"`     // the configuration in kube-burner's format
	Axes       []Axis      `yaml:"axes"`       // the first is the one meant when none is named
	Params     []Param     `yaml:"params"`     // in the order in which they are shown
	Milestones []string    `yaml:"milestones"` // in the order in which objects reach them
	Arrived    string      `yaml:"arrived"`    // the milestone at which an object counts as there; default the last
	Components []Component `yaml:"components"`
	// Goals have load lines of their own; the first is the headline. Each is a
	// list of objectives that must all hold.
	Goals strictyaml.Ordered[[]string] `yaml:"goals"`
	// Primary is the metric that decides a comparison, such as
	// "ContainersStarted p50".
	Primary string `yaml:"primary"`
	// Hold is how long a level is held once it is reached; default 10 s.
	Hold time.Duration `yaml:"hold"`

	positions *strictyaml.Positions
	files     fs.FS
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
	Name         string `yaml:"name"`
	Unit         string `yaml:"unit"`
	Help         string `yaml:"help"`
	Loop         Loop   `yaml:"loop"`         // default closed
	KeepsObjects bool   `yaml:"keepsObjects"` // raising adds the difference
	Default      Range  `yaml:"default"`
	// Hold and Goals are the axis's own, instead of the workload's.
	Hold  time.Duration                `yaml:"hold"`
	Goals strictyaml.Ordered[[]string] `yaml:"goals"`
	// ObjectLife is how long after it got there an object of an open axis is
	// removed; 0 where none are made.
	ObjectLife time.Duration `yaml:"objectLife"`
}

// Range is where a load line is looked for, in the axis's unit.
type Range struct {
	From       float64 `yaml:"from"`
	Step       float64 `yaml:"step"`
	Max        float64 `yaml:"max"`
	Resolution float64 `yaml:"resolution"` // how narrow the answer is; default 1
}

// Component names a part of the workload: the objects of one entry of the
// configuration, or those with a label.
type Component struct {
	Name   string `yaml:"name"`
	Job    int    `yaml:"job"`    // index of the job, from 0
	Object *int   `yaml:"object"` // index of the object in it, from 0; nil for any
	Label  string `yaml:"label"`  // key=value; empty for any
}

// UnknownError says that a name is not known, and which are.
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
func List(fsys fs.FS) ([]*Workload, error) {
	names, err := Names(fsys)
	if err != nil {
		return nil, err
	}
	all := make([]*Workload, len(names))
	for i, name := range names {
		if all[i], err = Load(fsys, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Load reads the workload of that name from a tree. One that is not there is
// an *UnknownError.
func Load(fsys fs.FS, name string) (*Workload, error) {
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
	w, err := Read(dir)
	if err != nil {
		return nil, err
	}
	if w.Name != name {
		return nil, strictyaml.Join([]strictyaml.Problem{w.positions.Problem("name", "must be %q, as its directory, is %q", name, w.Name)})
	}
	return w, nil
}

// Read reads a workload from its directory. What is wrong with the description
// is a *strictyaml.Error; a directory without one is fs.ErrNotExist.
func Read(dir fs.FS) (*Workload, error) {
	text, err := fs.ReadFile(dir, File)
	if err != nil {
		return nil, fmt.Errorf("read the workload: %w", err)
	}
	w, err := parse(text)
	if err != nil {
		return nil, err
	}
	w.files = dir
	setDefaults(w)
	if err := validate(w); err != nil {
		return nil, err
	}
	return w, nil
}

func parse(text []byte) (*Workload, error) {
	w := new(Workload)
	var err error
	if w.positions, err = strictyaml.Decode(File, text, w); err != nil {
		return nil, err
	}
	return w, nil
}

func setDefaults(w *Workload) {
	if w.Arrived == "" && len(w.Milestones) > 0 {
		w.Arrived = w.Milestones[len(w.Milestones)-1]
	}
	if w.Hold == 0 {
		w.Hold = 10 * time.Second
	}
	for i := range w.Axes {
		a := &w.Axes[i]
		if a.Loop == "" {
			a.Loop = Closed
		}
		if a.Default.Resolution == 0 {
			a.Default.Resolution = 1
		}
	}
}

// Axis is the axis of that name, the first for "". One that is not there is an
// *UnknownError.
func (w *Workload) Axis(name string) (Axis, error) {
	if name == "" {
		return w.Axes[0], nil
	}
	known := make([]string, len(w.Axes))
	for i, a := range w.Axes {
		if a.Name == name {
			return a, nil
		}
		known[i] = a.Name
	}
	return Axis{}, &UnknownError{What: "axis of " + w.Name, Name: name, Known: known}
}

// Param is the parameter of that name. One that is not there is an
// *UnknownError.
func (w *Workload) Param(name string) (Param, error) {
	known := make([]string, len(w.Params))
	for i, p := range w.Params {
		if p.Name == name {
			return p, nil
		}
		known[i] = p.Name
	}
	return Param{}, &UnknownError{What: "parameter of " + w.Name, Name: name, Known: known}
}

// ComponentOf names the component of an object: the first whose job and object
// index fit and, where it asks for a label, whose label the object has. It is
// "" for an object of none.
func (w *Workload) ComponentOf(job, object int, labels map[string]string) string {
	for _, c := range w.Components {
		if c.Job != job || c.Object != nil && *c.Object != object {
			continue
		}
		if key, value, ok := strings.Cut(c.Label, "="); ok && labels[key] != value {
			continue
		}
		return c.Name
	}
	return ""
}

// Files are the files of the workload's directory: the file system for its
// object templates.
func (w *Workload) Files() fs.FS { return w.files }

// Config is the configuration with parameters filled in, for a run with that
// UUID.
func (w *Workload) Config(p Params, uuid string) (*kubeburner.Config, error) {
	c, err := kubeburner.Load(w.files, w.ConfigFile, kubeburner.Input{UserData: p.Data(), UUID: uuid})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, strictyaml.Join([]strictyaml.Problem{w.positions.Problem("config", "there is no file %q beside it", w.ConfigFile)})
	}
	return c, err
}
