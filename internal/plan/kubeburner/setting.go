package kubeburner

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// settingName matches names of user data that set a value of the configuration, such as jobs.0.jobIterations.
var settingName = regexp.MustCompile(`^(global|jobs|metricsEndpoints)\.`)

// IsSetting reports whether a name of user data sets a value of the configuration, and is not a variable of its
// template. Of a list, last stands for the last entry, and all for each.
func IsSetting(name string) bool { return settingName.MatchString(name) }

// set puts the settings among user data into the configuration, as kube-burner's --set does.
func (c *Config) set(data map[string]any) error {
	var problems []strictyaml.Problem
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if !IsSetting(name) {
			continue
		}
		if err := c.setOne(name, data[name]); err != nil {
			problems = append(problems, strictyaml.Problem{Path: name, Message: err.Error()})
		}
	}
	return strictyaml.Join(problems)
}

func (c *Config) setOne(name string, value any) error {
	at, path := reflect.ValueOf(c).Elem(), ""
	keys := strings.Split(name, ".")
	for i, key := range keys {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		switch at.Kind() {
		case reflect.Struct:
			var known []string
			field := reflect.Value{}
			for f, of := range at.Fields() {
				if tag := f.Tag.Get("yaml"); tag == key {
					field = of
				} else if tag != "-" && tag != "" {
					known = append(known, tag)
				}
			}
			if !field.IsValid() {
				return fmt.Errorf("there is no %q here (%s)", key, nearest.OneOf(key, known))
			}
			at, path = field, strictyaml.Key(path, key)
		case reflect.Slice:
			if key == "all" {
				for n := range at.Len() {
					if err := c.setOne(strings.Join(slices.Concat(keys[:i], []string{strconv.Itoa(n)}, keys[i+1:]), "."), value); err != nil {
						return err
					}
				}
				return nil
			}
			if key == "last" {
				key = strconv.Itoa(at.Len() - 1)
			}
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= at.Len() {
				return fmt.Errorf("the configuration has %d of %s, counted from 0, and not %q", at.Len(), strings.Join(keys[:i], "."), key)
			}
			at, path = at.Index(n), strictyaml.Index(path, n)
		case reflect.Map: // the rest is one key, such as inputVars.replicas
			if at.IsNil() {
				at.Set(reflect.MakeMap(at.Type()))
			}
			entry := reflect.New(at.Type().Elem())
			if err := decodeInto(value, entry.Interface()); err != nil {
				return err
			}
			at.SetMapIndex(reflect.ValueOf(strings.Join(keys[i:], ".")), entry.Elem())
			return nil
		default:
			return fmt.Errorf("%s is a value, and has no %q", strings.Join(keys[:i], "."), key)
		}
	}
	c.positions.State(path)
	return decodeInto(value, at.Addr().Interface())
}

func decodeInto(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if _, err := strictyaml.Decode("", text, into); err != nil {
		return fmt.Errorf("%s", strictyaml.Problems(err)[0].Message)
	}
	return nil
}
