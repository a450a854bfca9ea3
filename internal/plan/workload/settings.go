package workload

import (
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Setting is a setting of the system itself that a parameter changes for as long
// as a run lasts. With an empty value nothing is changed.
type Setting struct {
	Param string `yaml:"param"`
	// In are the places where it stands. The first that the system has is
	// changed; those after it repeat what it says, and are waited for.
	In []SettingPlace `yaml:"in"`
	// Late says that it is changed only once all is set up: it is what begins the
	// load.
	Late bool `yaml:"late"`
	// Clear says that it is taken away at the end, and not put back: what it was
	// before would undo what the run has begun.
	Clear bool `yaml:"clear"`
}

// SettingPlace is where in which object a setting stands.
type SettingPlace struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// NameParam is the parameter that has the object's name; where that is
	// empty, it is the name of the cluster's default storage class. Without it
	// the object is the only one of its kind.
	NameParam string `yaml:"nameParam"`
	Path      string `yaml:"path"` // such as spec.replicas
	// As, if not "", is the only key of an object that is put there, and has the
	// value: what else was there is replaced with it.
	As string `yaml:"as"`
	// Refuse, instead of a path, says what to do where there is such an object,
	// since it overwrites the others and cannot hold the setting.
	Refuse string `yaml:"refuse"`
}

// Keys are the keys on the way to the value.
func (p SettingPlace) Keys() []string { return strings.Split(p.Path, ".") }

// Value is a setting and what it is to be: an int64, a float64, a bool or a
// string.
type Value struct {
	Setting
	To any
	// Names holds the value of the NameParam of each place.
	Names []string
}

// Values are what parameters change of the system, in the order of the settings.
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
