package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Unmarshaler is a type that reads itself: unmarshal reads the value into
// whatever fits, as often as needed, and returns an error when it does not fit.
// What the method returns becomes a problem at the value's place.
//
// A type that fills itself from one scalar implements encoding.TextUnmarshaler
// instead and gets the scalar's text as written.
type Unmarshaler interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// binder fills a Go value from nodes and collects what does not fit.
type binder struct {
	options
	file      string
	positions *Positions
	problems  []Problem
	fields    map[reflect.Type][]field
}

func (b *binder) problem(n *Node, path, found, format string, args ...any) {
	b.problems = append(b.problems, Problem{
		File: b.file, Line: n.Line, Column: n.Column, Path: path, Found: found,
		Message: fmt.Sprintf(format, args...),
	})
}

// wants reports a value of the wrong kind.
func (b *binder) wants(n *Node, path, wanted string) {
	found := n.Describe()
	b.problem(n, path, found, "wants %s, found %s", wanted, found)
	if n.Kind == Scalar && !n.Plain && wanted != "text" {
		if v := resolveText(n.Text, true); v != nil {
			if _, isText := v.(string); !isText {
				b.problems[len(b.problems)-1].Hint = "remove the quotes"
			}
		}
	}
}

// bind fills v, which can be set.
func (b *binder) bind(n *Node, v reflect.Value, path string) {
	if n.Kind == Scalar && n.resolve(false) == nil {
		return // a key without a value says nothing
	}
	if !b.positions.Has(path) {
		b.positions.set(path, b.place(n.Line, n.Column))
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		b.bind(n, v.Elem(), path)
		return
	}
	if b.bindCustom(n, v, path) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		b.bindStruct(n, v, path)
	case reflect.Map:
		b.bindMap(n, v, path)
	case reflect.Slice:
		b.bindSlice(n, v, path)
	case reflect.Interface:
		if v.NumMethod() > 0 {
			panic(fmt.Sprintf("strictyaml: %s at %q cannot be filled", v.Type(), path))
		}
		if value := b.untyped(n, path); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		b.bindScalar(n, v, path)
	}
}

// bindCustom serves the types that have rules of their own.
func (b *binder) bindCustom(n *Node, v reflect.Value, path string) bool {
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(n.Text)
		if n.Kind == Scalar && err == nil {
			v.SetInt(int64(d))
			return true
		}
		b.wants(n, path, "a duration such as 10s")
		if _, isNumber := number(n.Text); isNumber {
			b.problems[len(b.problems)-1].Hint = fmt.Sprintf("write the unit: %ss", n.Text)
		}
		return true
	}
	if !v.CanAddr() || !v.Addr().CanInterface() {
		return false
	}
	switch custom := v.Addr().Interface().(type) {
	case *Raw:
		custom.node = n
		return true
	case Unmarshaler:
		b.bindUnmarshaler(n, custom, path)
		return true
	case encoding.TextUnmarshaler:
		if n.Kind != Scalar {
			b.wants(n, path, "a single value")
			return true
		}
		if err := custom.UnmarshalText([]byte(n.Text)); err != nil {
			b.problem(n, path, n.Describe(), "%v", err)
		}
		return true
	}
	return false
}

func (b *binder) bindUnmarshaler(n *Node, custom Unmarshaler, path string) {
	err := custom.UnmarshalYAML(func(into any) error {
		target := reflect.ValueOf(into)
		if target.Kind() != reflect.Pointer || target.IsNil() {
			return fmt.Errorf("cannot read into %T: want a pointer", into)
		}
		// What fails here may be one try of several: it counts only if the
		// method returns it.
		try := &binder{options: b.options, file: b.file, positions: b.positions, fields: b.fields}
		try.bind(n, target.Elem(), path)
		if len(try.problems) > 0 {
			return &Error{Problems: try.problems}
		}
		return nil
	})
	var inner *Error
	switch {
	case err == nil:
	case errors.As(err, &inner):
		b.problems = append(b.problems, inner.Problems...)
	default:
		b.problem(n, path, n.Describe(), "%v", err)
	}
}

// field is a key that a struct can hold.
type field struct {
	name  string
	index []int
}

// structFields lists the keys of a struct in the order of its fields.
func (b *binder) structFields(t reflect.Type) []field {
	if known, ok := b.fields[t]; ok {
		return known
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && (rest == "inline" || f.Anonymous && name == "") {
			for _, in := range b.structFields(inner) {
				fields = append(fields, field{in.name, append([]int{i}, in.index...)})
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		fields = append(fields, field{name, []int{i}})
	}
	b.fields[t] = fields
	return fields
}

func (b *binder) bindStruct(n *Node, v reflect.Value, path string) {
	if n.Kind != Mapping {
		b.wants(n, path, "a mapping")
		return
	}
	fields := b.structFields(v.Type())
	for _, e := range n.Entries {
		inner := Key(path, e.Key)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.Key })
		if i < 0 {
			b.unknownKey(e, path, fields)
			continue
		}
		b.markKey(inner, e)
		b.bind(e.Value, fieldByIndex(v, fields[i].index), inner)
	}
}

// markKey places a list or a mapping at its key; a scalar is placed by bind.
func (b *binder) markKey(path string, e Entry) {
	if e.Value.Kind != Scalar && !b.positions.Has(path) {
		b.positions.set(path, b.place(e.Line, e.Column))
	}
}

// fieldByIndex does what reflect's does, and makes missing embedded structs of pointers on the way.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

func (b *binder) unknownKey(e Entry, path string, fields []field) {
	const few = 32 // keys that still read well in a hint
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	hint := ""
	if len(names) > 0 && len(names) <= few {
		hint = "allowed: " + strings.Join(names, ", ")
	}
	b.problems = append(b.problems, Problem{
		File: b.file, Line: e.Line, Column: e.Column, Path: path, Found: e.Key,
		Message: fmt.Sprintf("unknown key %q", e.Key), Hint: nearest.Hint(e.Key, names, hint),
	})
}

func (b *binder) bindMap(n *Node, v reflect.Value, path string) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("strictyaml: %s at %q cannot be filled: keys are text", t, path))
	}
	if n.Kind != Mapping {
		b.wants(n, path, "a mapping")
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(t, len(n.Entries)))
	}
	seen := make(map[string]bool, len(n.Entries))
	for _, e := range n.Entries {
		key := e.Key
		if b.kubernetes && e.plainKey && t.Elem().Kind() == reflect.Interface {
			// Two keys that differ as written may be the same in JSON.
			if key = jsonKey(key); seen[key] {
				b.problems = append(b.problems, Problem{
					File: b.file, Line: e.Line, Column: e.Column, Path: path, Found: e.Key,
					Message: fmt.Sprintf("the key %s stands here a second time: it is read as %q", e.Key, key),
				})
				continue
			}
		}
		seen[key] = true
		inner := Key(path, key)
		b.markKey(inner, e)
		value := reflect.New(t.Elem()).Elem()
		b.bind(e.Value, value, inner)
		v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), value)
	}
}

func (b *binder) bindSlice(n *Node, v reflect.Value, path string) {
	if o, ok := v.Interface().(interface{ orderedItem() reflect.Type }); ok {
		b.bindOrdered(n, v, o.orderedItem(), path)
		return
	}
	if n.Kind != List {
		b.wants(n, path, "a list")
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		b.bind(item, items.Index(i), Index(path, i))
	}
	v.Set(items)
}

func (b *binder) bindOrdered(n *Node, v reflect.Value, item reflect.Type, path string) {
	if n.Kind != Mapping {
		b.wants(n, path, "a mapping")
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Entries), len(n.Entries))
	for i, e := range n.Entries {
		inner := Key(path, e.Key)
		b.markKey(inner, e)
		filled := reflect.New(item).Elem()
		filled.FieldByName("Key").SetString(e.Key)
		b.bind(e.Value, filled.FieldByName("Value"), inner)
		items.Index(i).Set(filled)
	}
	v.Set(items)
}

// untyped returns the value of a place that takes anything: nil, bool, int64,
// float64, string, []any or map[string]any.
func (b *binder) untyped(n *Node, path string) any {
	switch n.Kind {
	case List:
		var items []any
		b.bindSlice(n, reflect.ValueOf(&items).Elem(), path)
		return items
	case Mapping:
		var m map[string]any
		b.bindMap(n, reflect.ValueOf(&m).Elem(), path)
		return m
	}
	v := n.resolve(b.kubernetes)
	if !tagHolds(n.Tag, v) {
		b.problem(n, path, n.Describe(), "the tag %s does not fit %q", n.Tag, n.Text)
		return nil
	}
	if n.Tag == "!!float" {
		if i, ok := v.(int64); ok {
			v = float64(i)
		}
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		b.problem(n, path, n.Text, "%s is not a number that can be used here", n.Text)
		return nil
	}
	if u, ok := v.(uint64); ok {
		v = float64(u)
	}
	if b.kubernetes {
		v = jsonValue(v)
	}
	return v
}

// tagHolds reports whether a resolved scalar is what its tag promises.
func tagHolds(tag string, v any) bool {
	switch v.(type) {
	case nil:
		return tag == "" || tag == "!!null"
	case bool:
		return tag == "" || tag == "!!bool"
	case int64, uint64:
		return tag == "" || tag == "!!int" || tag == "!!float"
	case float64:
		return tag == "" || tag == "!!float"
	}
	return tag == "" || tag == "!!str"
}

func (b *binder) bindScalar(n *Node, v reflect.Value, path string) {
	wanted := scalarName(v)
	if n.Kind != Scalar || !setScalar(n, v) {
		b.wants(n, path, wanted)
	}
}

// setScalar fills v from a scalar, and reports whether it can hold it.
func setScalar(n *Node, v reflect.Value) bool {
	value := n.resolve(false)
	switch {
	case v.Kind() == reflect.String:
		// The text as written loses nothing: 1.10 stays "1.10".
		v.SetString(n.Text)
		return true
	case v.Kind() == reflect.Bool:
		truth, ok := value.(bool)
		if !ok && n.Plain {
			truth, ok = wordOfTruth(n.Text)
		}
		if ok {
			v.SetBool(truth)
		}
		return ok
	case v.CanFloat():
		f, ok := asFloat(value)
		if ok = ok && !v.OverflowFloat(f); ok {
			v.SetFloat(f)
		}
		return ok
	case v.CanInt():
		i, ok := asInt(value)
		if ok = ok && !v.OverflowInt(i); ok {
			v.SetInt(i)
		}
		return ok
	}
	u, ok := value.(uint64)
	if !ok {
		var i int64
		i, ok = asInt(value)
		u, ok = uint64(i), ok && i >= 0
	}
	if ok = ok && !v.OverflowUint(u); ok {
		v.SetUint(u)
	}
	return ok
}

// asInt accepts a float64 that is whole, such as 1e3: nothing is lost.
func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return 0, false
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return 0, false
}

// scalarName names what a scalar of this type can be, for messages.
func scalarName(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.String:
		return "text"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanFloat():
		return "a number"
	case v.CanInt() && v.Type().Bits() < 64:
		return fmt.Sprintf("a whole number of %d bits", v.Type().Bits())
	case v.CanInt():
		return "a whole number"
	case v.CanUint():
		return "a whole number that is not negative"
	}
	panic(fmt.Sprintf("strictyaml: a %s cannot be filled", v.Type()))
}
