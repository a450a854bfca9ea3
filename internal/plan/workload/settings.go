package workload

import (
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Setting names a setting of the system that a parameter changes during a run, unless its value is empty.
type Setting struct {
	Param string `yaml:"param"`
	// In lists its places. The run changes the first that exists, and waits for the later ones to follow.
	In    []SettingPlace `yaml:"in"`
	Late  bool           `yaml:"late"`  // changes it only after the setup, to begin the load
	Clear bool           `yaml:"clear"` // removes it at the end: its former value would undo what the run began
}

// SettingPlace names an object and a path in it for a setting.
type SettingPlace struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// NameParam names the parameter with the object's name, if empty the default storage class; "" for an
	// only object.
	NameParam string `yaml:"nameParam"`
	Path      string `yaml:"path"` // such as spec.replicas
	As        string `yaml:"as"`   // As, if not "", is the only key of an object that replaces the whole, with the value
	// Refuse, instead of a path, says what to do about such an object: it overrides the others.
	Refuse string `yaml:"refuse"`
}

// Keys returns the keys on the way to the value.
func (p SettingPlace) Keys() []string { return strings.Split(p.Path, ".") }

// Value holds a setting and its new value: an int64, a float64, a bool or a string.
type Value struct {
	Setting
	To    any
	Names []string // holds the value of the NameParam of each place
}

// Values returns the settings that parameters change, in order.
func (w *Workload) Values(p Params) (list []Value) {
	for _, s := range w.Settings {
		if p.Get(s.Param) == "" {
			continue
		}
		v := Value{Setting: s, To: p.data[s.Param]}
		for _, place := range s.In {
			v.Names = append(v.Names, p.Get(place.NameParam))
		}
		list = append(list, v)
	}
	return list
}

func (v *validator) settings() {
	if len(v.w.Settings) > 0 && !v.w.Target.Configured {
		v.Fail("settings", "the target %s has none that can be changed", v.w.Target.Name)
	}
	param := func(path, name string) {
		if _, err := v.w.Param(name); err != nil {
			v.Fail(path, "%v", err)
		}
	}
	for i, s := range v.w.Settings {
		path := strictyaml.Index("settings", i)
		param(path+".param", s.Param)
		if !slices.ContainsFunc(s.In, func(p SettingPlace) bool { return p.Path != "" }) {
			v.Fail(path+".in", "is missing: at least one place with a path is needed")
		}
		for j, p := range s.In {
			path := strictyaml.Index(path+".in", j)
			if p.APIVersion == "" || p.Kind == "" {
				v.Fail(path, "apiVersion and kind are needed")
			}
			if (p.Path == "") == (p.Refuse == "") || slices.Contains(p.Keys(), "") && p.Refuse == "" {
				v.Fail(path, "has either a path, such as spec.replicas, or refuse")
			}
			if p.NameParam != "" {
				param(path+".nameParam", p.NameParam)
			}
		}
	}
}
