package settings

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Flags holds the flags of a target's settings on one command.
type Flags []*flag

type flag struct {
	Field
	text  string
	given bool
	items []strictyaml.Raw // of a list
}

// AddFlags adds the flags of the settings that take accepts.
func AddFlags(to *pflag.FlagSet, own any, take func(Field) bool) (added Flags) {
	for _, f := range Fields(own) {
		if f.Flag == "" || !take(f) {
			continue
		}
		help := f.Tag.Get("help")
		if words := f.Tag.Get("words"); words != "" {
			help += ": " + words
		}
		one := &flag{Field: f, text: f.Tag.Get("default")}
		added = append(added, one)
		if to.Var(one, f.Flag, help); one.Type() == "bool" {
			to.Lookup(f.Flag).NoOptDefVal = "true"
		}
	}
	return added
}

// Names reports whether the user gave a flag that names a system, and not just one that goes with any.
func (f Flags) Names() bool {
	return slices.ContainsFunc(f, func(one *flag) bool { return one.says() && one.Tag.Get("beside") == "" })
}

// says reports whether the user gave a value; "$UNSET" names nothing.
func (f *flag) says() bool {
	return f.given && (f.text != "" || f.typ.Kind() == reflect.Map || f.repeats())
}

// Over applies the flags to what a file says of a system. Flags that name a system discard all of it.
func (f Flags) Over(written strictyaml.Raw) strictyaml.Raw {
	if f.Names() {
		written = strictyaml.Raw{}
	}
	for _, one := range f {
		if one.says() {
			raw, _ := one.raw() // Set read it before
			written = written.With(one.Path, raw)
		}
	}
	return written
}

func (f *flag) raw() (strictyaml.Raw, error) {
	switch kind := f.typ.Kind(); {
	case readsText(f.typ) || kind == reflect.String:
		return strictyaml.Text(f.text), nil
	case kind == reflect.Map:
		values, err := ParseList(f.text)
		return strictyaml.Map(values), err
	case kind == reflect.Slice:
		return strictyaml.ListOf(f.items), nil
	}
	return strictyaml.Word(f.text), nil
}

// Set implements pflag.Value; it reads the value as a file would.
func (f *flag) Set(text string) error {
	f.text, f.given = text, true
	if f.repeats() {
		f.items = append(f.items, strictyaml.Text(text))
	} else if f.items = nil; f.typ.Kind() == reflect.Slice {
		for word := range strings.SplitSeq(text, ",") {
			f.items = append(f.items, strictyaml.Word(strings.TrimSpace(word)))
		}
	}
	raw, err := f.raw()
	if err == nil {
		err = raw.Decode("", reflect.New(f.typ).Interface(), nil)
	}
	if problems := strictyaml.Problems(err); len(problems) > 0 {
		err = errors.New(problems[0].Message)
	}
	words := strings.Split(f.Tag.Get("words"), ", ")
	if words[0] != "" && !slices.Contains(words, text) {
		err = fmt.Errorf("want %s", f.Tag.Get("words"))
		if near, ok := nearest.Word(text, words); ok {
			err = fmt.Errorf("%w (did you mean %q?)", err, near)
		}
	}
	if example := f.Tag.Get("example"); err != nil && example != "" {
		return errors.New(err.Error() + ", for example --" + f.Flag + " " + example)
	}
	return err
}

// repeats reports whether users repeat the flag to add to a list, and do not use commas.
func (f *flag) repeats() bool {
	return f.typ.Kind() == reflect.Slice && (f.typ.Elem().Kind() == reflect.String || readsText(f.typ.Elem()))
}

// Fill reads the flags into the struct that a pointer leads to, and records them as its sources.
func (f Flags) Fill(own any) error {
	err := f.Over(strictyaml.Raw{}).Decode("", own, nil)
	for _, one := range f {
		if !one.says() {
			continue
		}
		items := []reflect.Value{one.Of(own)}
		if items[0].Kind() == reflect.Slice {
			for i := range items[0].Len() {
				items = append(items, items[0].Index(i))
			}
		}
		for _, item := range items {
			if _, from := sourced(item); from.IsValid() {
				from.SetString("flag --" + one.Flag)
			}
		}
	}
	return err
}

// String implements pflag.Value.
func (f *flag) String() string { return f.text }

// Type implements pflag.Value for the help.
func (f *flag) Type() string {
	if takes := f.Tag.Get("takes"); takes != "" {
		return takes
	}
	t := f.typ
	if t.Kind() == reflect.Pointer || f.repeats() {
		t = t.Elem()
	}
	if named, ok := reflect.New(t).Interface().(interface{ Type() string }); ok {
		return named.Type()
	}
	switch t.Kind() {
	case reflect.Float64:
		return "float"
	case reflect.Struct, reflect.Map, reflect.Slice:
		return "string"
	}
	return t.Kind().String()
}

// ParseList reads "KEY=VALUE,KEY=VALUE"; "" yields an empty map.
func ParseList(text string) (map[string]string, error) {
	given := map[string]string{}
	if text == "" {
		return given, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want KEY=VALUE", one)
		}
		given[key] = value
	}
	return given, nil
}

// List writes texts as ParseList reads them.
func List(given map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		list = append(list, key+"="+given[key])
	}
	return strings.Join(list, ",")
}
