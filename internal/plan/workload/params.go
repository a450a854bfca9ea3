package workload

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/redact"
	"plimsoll.dev/plimsoll/internal/text/size"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Type names a type of parameters.
type Type string

// The types of parameters.
const (
	String   Type = "string"
	Int      Type = "int"
	Number   Type = "number"   // such as 0.5
	Bool     Type = "bool"     // true or false
	Duration Type = "duration" // such as 10s; "" for none
	Dist     Type = "dist"     // a distribution of delays, see package dist; "" for none
	Size     Type = "size"     // of bytes, such as 4KiB
	Quantity Type = "quantity" // of Kubernetes, such as 100m or 2Gi; "" for none
	YAML     Type = "yaml"     // a variable of a configuration, not set unless given
)

func types() []string {
	return []string{string(String), string(Int), string(Number), string(Bool), string(Duration), string(Dist), string(Size), string(Quantity)}
}

// Param describes a parameter of a workload.
type Param struct {
	Name     string   `yaml:"name" json:"name"`
	Type     Type     `yaml:"type" json:"type"`
	Default  string   `yaml:"default" json:"default"`
	Help     string   `yaml:"help" json:"help"`                   // one line
	Values   []string `yaml:"values" json:"values,omitempty"`     // the only ones allowed; empty allows all of the type
	Min      *int     `yaml:"min" json:"min,omitempty"`           // of an int, a number or a size
	Max      *int     `yaml:"max" json:"max,omitempty"`           // likewise
	Pattern  string   `yaml:"pattern" json:"pattern,omitempty"`   // for a whole string, unless that is empty
	Several  bool     `yaml:"several" json:"several,omitempty"`   // allows more than one of the values, joined by +
	Optional bool     `yaml:"optional" json:"optional,omitempty"` // also allows the empty value
	// Secret keeps the values from records and the screen; nil goes by the parameter's name.
	Secret *bool `yaml:"secret" json:"secret,omitempty"`
	// Ask, if not "", says how users find the value of a variable that they must give.
	Ask string `yaml:"-" json:"ask,omitempty"`
}

func (p Param) hides(value string) bool {
	switch {
	case value == "" || p.Type != String && p.Type != YAML:
		return false
	case redact.IsHidden(value), redact.Message(value) != value:
		return true
	case p.Secret != nil:
		return *p.Secret
	}
	return len(p.Values) == 0 && redact.IsSecretName(p.Name)
}

// Hide returns a parameter's value for plans and records: a placeholder if it is secret, which Resolve reveals.
func (w *Workload) Hide(secrets *redact.Secrets, name, value string) (string, error) {
	p, err := w.Param(name)
	if err != nil || !p.hides(value) {
		return value, nil // Resolve reports an unknown name
	}
	w.secrets = secrets
	return secrets.Hide(w.Name+" "+name, value)
}

// quantityForm is Kubernetes' grammar of quantities without a minus sign.
var quantityForm = regexp.MustCompile(`^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$`)

// resolve checks a value and converts it for templates: to an int64, a float64, a bool, a string, or YAML data.
func (p Param) resolve(text string) (any, error) {
	if p.Optional && text == "" {
		return "", nil
	}
	parts := []string{text}
	if p.Several {
		parts = strings.Split(text, "+")
	}
	for _, part := range parts {
		if len(p.Values) > 0 && !slices.Contains(p.Values, part) {
			return nil, fmt.Errorf("%q is not one of %s", part, strings.Join(p.Values, ", "))
		}
	}
	switch p.Type {
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, p.within(float64(n), text)
	case Number:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a number", text)
		}
		return x, p.within(x, text)
	case Bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return text == "true", nil
	case Duration:
		if text == "" {
			return "", nil
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration such as 10s", text)
		}
		if d < 0 {
			return nil, fmt.Errorf("%q is negative", text)
		}
		return text, nil
	case Dist:
		d, err := dist.Parse(text)
		if err != nil {
			return nil, err
		}
		return d.String(), nil
	case Size:
		n, err := size.Parse(text, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		return text, p.within(float64(n), text)
	case Quantity:
		if text != "" && !quantityForm.MatchString(text) {
			return nil, fmt.Errorf("%q is not a quantity such as 100m or 2Gi", text)
		}
		return text, nil
	case YAML:
		var value any
		if _, err := strictyaml.Decode("", []byte(text), &value); err != nil {
			return nil, fmt.Errorf("%q is not YAML: %s", text, strictyaml.Problems(err)[0].Message)
		}
		return value, nil
	case String:
		if text != "" && p.Pattern != "" {
			whole, err := regexp.Compile(`^(?:` + p.Pattern + `)$`)
			if err != nil {
				return nil, fmt.Errorf("the pattern %q is not a regular expression: %w", p.Pattern, err)
			}
			if !whole.MatchString(text) {
				return nil, fmt.Errorf("%q does not have the form %s", text, p.Pattern)
			}
		}
		return text, nil
	}
	return nil, fmt.Errorf("there is no type %q", p.Type)
}

func (p Param) within(x float64, text string) error {
	bound := func(n int) string {
		if p.Type == Size {
			return size.Text(int64(n))
		}
		return strconv.Itoa(n)
	}
	switch {
	case p.Min != nil && x < float64(*p.Min):
		return fmt.Errorf("must be at least %s, is %s", bound(*p.Min), text)
	case p.Max != nil && x > float64(*p.Max):
		return fmt.Errorf("must be at most %s, is %s", bound(*p.Max), text)
	}
	return nil
}

// Params holds checked values for all parameters of a workload.
type Params struct {
	data map[string]any
}

// Resolve checks the given parameters and fills in defaults. Its *strictyaml.Error has names as paths.
func (w *Workload) Resolve(given map[string]string) (Params, error) {
	var problems []strictyaml.Problem
	params := slices.Clone(w.Params)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if p, err := w.Param(name); err != nil {
			problems = append(problems, strictyaml.Problem{Path: name, Found: name, Message: err.Error()})
		} else if w.AsItIs && kubeburner.IsSetting(name) {
			params = append(params, p)
		}
	}
	resolved := Params{data: make(map[string]any, len(params))}
	for _, p := range params {
		text, ok := given[p.Name]
		if !ok && p.Ask != "" {
			problems = append(problems, strictyaml.Problem{Path: p.Name, Message: "is missing", Hint: "--set " + p.Name + "=VALUE; " + p.Ask})
			continue
		}
		if !ok && p.Type == YAML && p.Default == "" {
			continue
		}
		if !ok {
			text = p.Default
		}
		said := text
		if text, ok = w.secrets.Reveal(said); !ok {
			problems = append(problems, strictyaml.Problem{Path: p.Name, Message: redact.Masked + " is secret: a record has a hash of it and not its value", Hint: "give its value again: --set " + p.Name + "=VALUE"})
			continue
		}
		value, err := p.resolve(text)
		if err != nil && redact.IsHidden(said) {
			text, err = said, errors.New("the value, which is secret, does not have the form that it must have")
		}
		if err != nil {
			problems = append(problems, strictyaml.Problem{Path: p.Name, Found: text, Message: err.Error()})
			continue
		}
		resolved.data[p.Name] = value
	}
	if err := strictyaml.Join(problems); err != nil {
		return Params{}, err
	}
	return resolved, nil
}

// Get returns a parameter's value as written, "" if it is unknown.
func (p Params) Get(name string) string {
	if value, ok := p.data[name]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

// Int returns the value of a parameter of type int, 0 for any other.
func (p Params) Int(name string) int64 {
	n, _ := p.data[name].(int64)
	return n
}

// Number returns the value of a parameter of type number, 0 for any other.
func (p Params) Number(name string) float64 {
	x, _ := p.data[name].(float64)
	return x
}

// Flag returns the value of a parameter of type bool, false for any other.
func (p Params) Flag(name string) bool { return p.Get(name) == "true" }

// Bytes returns the value of a parameter of type size, 0 for any other.
func (p Params) Bytes(name string) int64 {
	n, _ := size.Parse(p.Get(name), math.MaxInt64) // Resolve checks its form
	return n
}

// Duration returns the value of a parameter of type duration, 0 for any other.
func (p Params) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(p.Get(name)) // Resolve checks its form
	return d
}

// All returns the values of all parameters as written, with defaults.
func (p Params) All() map[string]string {
	all := make(map[string]string, len(p.data))
	for name := range p.data {
		all[name] = p.Get(name)
	}
	return all
}

// Data returns the values for templates: int64, float64, bool or string.
func (p Params) Data() map[string]any { return maps.Clone(p.data) }

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
	// NameParam names the parameter with the object's name, if empty the default storage class; "" for just
	// one.
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
