// Package settings describes what users can set in a plan, a target or a calculator, by keys and by flags. A
// struct declares it, and this package makes its flags and their help, reads it from files, fills in defaults,
// checks it and writes it.
//
// A field has a key (the tag yaml). Further tags are:
//
//	flag     its flag; of an inner struct the prefix of the flags of its fields
//	help     what the flag does
//	default  the value if the user gives none
//	unit     what a number counts, such as "number of processors"
//	range    its bounds, "0..64", or "0.." for no upper one, or ">0"
//	example  a value, for settings without default
//	beside   its flag goes with any system that a file names
//	takes    the form of the flag's value, if its type does not tell
//	words    the allowed values; of a value with a source, those of its flag
//	needed   the user must give it, as "" or an example in this tag shows
//	when     the case in which its default matters, one of those of Cases
//	why      the reason for its default, for a value with a source
//
// The zero value of a field without a default stands for nothing given, unless the field is a struct of a
// value and its source, From. Fields without a key are no settings.
package settings

import (
	"cmp"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Own is a target's own settings: a pointer to a struct with the tags above.
type Own interface {
	// System names the system under load, as in "node-density on a private lab".
	System() string
	// Named returns the flags that name the same system to another command; nil if the run makes it for itself.
	Named() []string
}

// completer fills in defaults that follow from other fields. Given reports whether the user set a key.
type completer interface {
	Complete(given func(key string) bool)
}

// checker judges more than the bounds of its fields.
type checker interface{ Check(c *Check) }

// Field describes one setting.
type Field struct {
	Path string // its key with those above it: lab.nodes
	Flag string // without dashes
	Tag  reflect.StructTag

	typ   reflect.Type
	index []int
}

// Fields lists the settings in a struct, or in a pointer to one, in order.
func Fields(of any) []Field {
	t := reflect.TypeOf(of)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return fieldsOf(t, Field{})
}

func fieldsOf(t reflect.Type, in Field) (list []Field) {
	for i := range t.NumField() {
		field := t.Field(i)
		key := keyOf(field)
		if key == "" {
			continue
		}
		f := Field{in.Path + key, in.Flag + field.Tag.Get("flag"), field.Tag, field.Type, append(in.index[:len(in.index):len(in.index)], i)}
		if inner, ok := group(field); ok {
			f.Path += "."
			list = append(list, fieldsOf(inner, f)...)
			continue
		}
		list = append(list, f)
	}
	return list
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(key, "-")
}

// group returns the struct of further settings that a field holds, itself or behind a pointer.
func group(f reflect.StructField) (reflect.Type, bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, keyOf(f) != "" && holds(t)
}

func holds(t reflect.Type) bool { return t.Kind() == reflect.Struct && !readsText(t) }

func readsText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Of returns the value of the field, invalid if a pointer on the way is nil.
func (f Field) Of(own any) reflect.Value {
	v := reflect.ValueOf(own).Elem()
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// visit calls each for a struct and then for those in it and in its lists, with the prefix of their paths.
func visit(v reflect.Value, path string, each func(one any, path string)) {
	each(v.Addr().Interface(), path)
	for i := range v.NumField() {
		inner, field := reflect.Indirect(v.Field(i)), v.Type().Field(i)
		key := keyOf(field)
		if _, ok := group(field); ok && inner.IsValid() {
			visit(inner, path+key+".", each)
		} else if key != "" && field.Type.Kind() == reflect.Slice && holds(field.Type.Elem()) {
			for n := range inner.Len() {
				visit(inner.Index(n), strictyaml.Index(path+key, n)+".", each)
			}
		}
	}
}

// Read reads settings into a pointer to a struct, at a path of a file, and fills in defaults. The error is a
// *strictyaml.Error.
func Read(written strictyaml.Raw, into any, in string, at *strictyaml.Positions) error {
	if err := written.Decode(in, into, at); err != nil {
		return err
	}
	visit(reflect.ValueOf(into).Elem(), "", func(one any, path string) {
		given := func(key string) bool { return written.Has(path + key) }
		fill(one, given)
		if c, ok := one.(completer); ok {
			c.Complete(given)
		}
	})
	return nil
}

// Default fills in the defaults of a struct behind a pointer, except for given paths.
func Default(own any, given func(path string) bool) {
	visit(reflect.ValueOf(own).Elem(), "", func(one any, path string) {
		fill(one, func(key string) bool { return given(path + key) })
	})
}

func fill(one any, given func(key string) bool) {
	var cases map[string]bool
	if c, ok := one.(interface{ Cases() map[string]bool }); ok {
		cases = c.Cases()
	}
	for _, f := range Fields(one) {
		text, ok := f.Tag.Lookup("default")
		when, some := f.Tag.Lookup("when")
		if !ok || some && !cases[when] || len(f.index) > 1 || !isOpen(f.Of(one)) || given(f.Path) {
			continue
		}
		v := f.Of(one)
		f.read(text, v)
		if _, from := sourced(v); from.IsValid() {
			from.SetString("default: " + f.Tag.Get("why"))
		}
	}
}

func (f Field) read(text string, into reflect.Value) {
	if err := strictyaml.Word(text).Decode("", into.Addr().Interface(), nil); err != nil {
		panic(fmt.Sprintf("settings: %s: %v", f.Path, err)) // any test finds it
	}
}

// sourced returns the value of a setting, and the source if it has one.
func sourced(v reflect.Value) (value, from reflect.Value) {
	if v.Kind() == reflect.Struct {
		if from = v.FieldByName("From"); from.IsValid() {
			return v.FieldByName("Value"), from
		}
	}
	return v, reflect.Value{}
}

func isOpen(v reflect.Value) bool {
	value, from := sourced(v)
	return from.IsValid() && from.IsZero() || !from.IsValid() && value.IsZero()
}

// ReadTexts reads texts by key, as of flags, into a pointer to a struct, with defaults, and judges bounds.
// The error is a *strictyaml.Error.
func ReadTexts(texts map[string]string, into any) error {
	var written strictyaml.Raw
	for key, text := range texts {
		written = written.With(key, strictyaml.Word(text))
	}
	if err := Read(written, into, "", nil); err != nil {
		return err
	}
	return strictyaml.Join(Ranges(into))
}

// Write writes down the settings that were given or are not zero.
func Write(own any, given strictyaml.Raw) (written strictyaml.Raw) {
	for _, f := range Fields(own) {
		if v := f.Of(own); v.IsValid() && (!v.IsZero() || given.Has(f.Path)) {
			written = written.With(f.Path, rawOf(v))
		}
	}
	return written
}

// Differing lists settings other than their defaults as "key: value", except for some keys.
func Differing(own any, but ...string) (told []string) {
	for _, f := range Fields(own) {
		v := f.Of(own)
		if slices.Contains(but, f.Path) || !v.IsValid() || v.IsZero() {
			continue
		}
		text := rawOf(v).Meaning()
		if plain := rawOf(v).String(); plain != "" {
			text = plain
		}
		if text != f.Tag.Get("default") {
			told = append(told, f.Path+": "+text)
		}
	}
	return told
}

func rawOf(v reflect.Value) strictyaml.Raw {
	switch value := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, _ := value.MarshalText() // it was read before
		return strictyaml.Text(string(text))
	case string:
		return strictyaml.Text(value)
	case map[string]string:
		return strictyaml.Map(value)
	case float64:
		return strictyaml.Word(strconv.FormatFloat(value, 'g', -1, 64))
	default:
		return strictyaml.Word(fmt.Sprint(value))
	}
}

// FlagOf returns the flag of the setting at a path, with dashes and, in a mapping, the name there; "" for none.
func FlagOf(own any, path string) string {
	for _, f := range Fields(own) {
		rest, within := strings.CutPrefix(path, f.Path)
		name, _, _ := strings.Cut(rest, "[")
		switch {
		case f.Flag == "" || !within:
		case name == "":
			return "--" + f.Flag
		case name[0] == '.':
			return "--" + f.Flag + " " + name[1:]
		}
	}
	return ""
}

// Check collects mistakes in settings, in words for a file or for flags.
type Check struct {
	strictyaml.Validation
	own   any
	in    string // the path of the settings in the file
	path  string // of the struct under judgement
	flags bool   // the settings come from flags
}

// Problem adds a problem with the value of a key.
func (c *Check) Problem(key, hint, format string, args ...any) {
	c.Add(strings.TrimSuffix(c.in+c.path+key, "."), hint, format, args...)
}

// Key returns a key in the user's terms: itself, its flag, or the first flags below it.
func (c *Check) Key(key string) string {
	if flag := FlagOf(c.own, c.path+key); c.flags && flag != "" {
		return flag
	}
	var below []string
	for _, f := range Fields(c.own) {
		if c.flags && f.Flag != "" && strings.HasPrefix(f.Path, c.path+key+".") {
			below = append(below, "--"+f.Flag)
		}
	}
	if len(below) > 0 {
		return strings.Join(below[:min(len(below), 2)], ", ") + " ..."
	}
	return key[strings.LastIndexByte(key, '.')+1:]
}

// Set returns how the user gives a key a value; it takes the value of a list as "[1, 2]".
func (c *Check) Set(key, value string) string {
	switch {
	case !c.flags:
		return c.Key(key) + ": " + value
	case value == "true":
		return c.Key(key)
	}
	return c.Key(key) + " " + strings.NewReplacer("[", "", "]", "", ", ", ",").Replace(value)
}

// FromFlags reports whether the settings come from flags.
func (c *Check) FromFlags() bool { return c.flags }

// NewCheck returns a check of a struct with positions; positions without a file stand for flags.
func NewCheck(own any, at *strictyaml.Positions) *Check {
	return &Check{Validation: strictyaml.Validation{At: at}, own: own, flags: at != nil && at.File() == ""}
}

// Validate judges settings after Read, at a path of a file; positions without a file stand for flags.
func Validate(own any, in string, at *strictyaml.Positions) []strictyaml.Problem {
	c := &Check{strictyaml.Validation{At: at}, own, in + ".", "", at.File() == ""}
	if in == "" {
		c.in = ""
	}
	visit(reflect.ValueOf(own).Elem(), "", func(one any, path string) {
		c.path = path
		c.ranges(one)
		if judged, ok := one.(checker); ok {
			judged.Check(c)
		}
	})
	return c.Problems
}

// Ranges judges only the bounds of settings, in the words of a file.
func Ranges(own any) []strictyaml.Problem {
	c := &Check{own: own}
	c.ranges(own)
	return c.Problems
}

func (c *Check) ranges(one any) {
	for _, f := range Fields(one) {
		if len(f.index) > 1 {
			continue
		}
		v := f.Of(one)
		value, from := sourced(v)
		if judged, ok := v.Addr().Interface().(interface{ Judge(reflect.StructTag) error }); ok {
			if err := judged.Judge(f.Tag); err != nil {
				c.Problem(f.Path, "", "%v", err)
			}
		}
		example, needed := f.Tag.Lookup("needed")
		bounds, ranged := f.Tag.Lookup("range")
		words := strings.Split(f.Tag.Get("words"), ", ")
		switch open := isOpen(v); {
		case open && needed && example != "":
			c.Problem(f.Path, "for example "+example, "is needed: %s", f.Tag.Get("help"))
		case open && needed && !c.At.Has(c.in+c.path+f.Path):
			c.Problem(f.Path, "", "is missing")
		case words[0] != "" && !from.IsValid():
			c.Word(f.Path, v.String(), words)
		case ranged && (needed || !open || !from.IsValid() && f.Tag.Get("default") != ""):
			c.within(f, value, bounds)
		}
	}
}

// Word refuses a value outside of the allowed words.
func (c *Check) Word(key, value string, words []string) {
	message := "is missing"
	if value != "" {
		message = fmt.Sprintf("there is no %q here", value)
	}
	if !slices.Contains(words, value) {
		c.Problem(key, nearest.Hint(value, words, "allowed: "+strings.Join(words, ", ")), "%s", message)
	}
}

// within refuses a number beyond its bounds: 1..64, 1.. or, above 0, >0.
func (c *Check) within(f Field, v reflect.Value, bounds string) {
	low, high, _ := strings.Cut(bounds, "..")
	least, above := strings.CutPrefix(low, ">")
	x, bound := number(v), f.bound(least)
	if (x > bound || x == bound && !above) && (high == "" || x <= f.bound(high)) && !math.IsInf(x, 0) {
		return
	}
	want, hint, found := "at least "+least, "", rawOf(v).String()
	switch {
	case above:
		want = "above " + least
	case high != "":
		want = least + " to " + high
	}
	unit := f.Tag.Get("unit")
	if example := cmp.Or(f.Tag.Get("example"), f.Tag.Get("default")); example != "" && unit != "" {
		hint = "for example " + c.Set(f.Path, example)
	}
	switch {
	case unit == "":
		c.Problem(f.Path, hint, "must be %s, is %s", want, found)
	case above:
		c.Problem(f.Path, hint, "%s is not a %s: want a number %s", found, unit, want)
	default:
		c.Problem(f.Path, hint, "%s is not a %s: want %s", found, unit, want)
	}
}

func (f Field) bound(text string) float64 {
	v := reflect.New(f.typ).Elem()
	f.read(text, v)
	value, _ := sourced(v)
	return number(value)
}

func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}
