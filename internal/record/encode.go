package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

const notFinite = -math.MaxFloat64 // stands for a figure that is not finite until it is written as null

// Encode returns v as JSON, indented where indent is not "", with null for a figure that is not finite.
// If v is a struct with Warnings, or a pointer to one, a warning names the figure's path.
func Encode(v any, indent string) ([]byte, error) {
	data, err := marshal(v, indent)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); !ok {
		return data, err
	}
	var f finder
	whole := f.copyOf("", reflect.ValueOf(v))
	f.warn(reflect.Indirect(reflect.ValueOf(v)), reflect.Indirect(whole))
	if data, err = marshal(whole.Interface(), indent); err != nil {
		return nil, err
	}
	return withNulls(data)
}

func marshal(v any, indent string) ([]byte, error) {
	if indent == "" {
		return json.Marshal(v)
	}
	return json.MarshalIndent(v, "", indent)
}

type finder struct{ paths []string }

// copyOf returns a copy of v with notFinite for each figure that is not finite. Path is the place of v.
func (f *finder) copyOf(path string, v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			f.paths = append(f.paths, cmp.Or(path, "it"))
			return reflect.ValueOf(notFinite).Convert(v.Type())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			c := reflect.New(v.Type().Elem())
			c.Elem().Set(f.copyOf(path, v.Elem()))
			return c.Convert(v.Type())
		}
	case reflect.Interface:
		if !v.IsNil() {
			return f.copyOf(path, v.Elem())
		}
	case reflect.Slice:
		if !v.IsNil() {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			f.copyItems(path, c, v)
			return c
		}
	case reflect.Array:
		c := reflect.New(v.Type()).Elem()
		f.copyItems(path, c, v)
		return c
	case reflect.Map:
		if !v.IsNil() {
			c := reflect.MakeMap(v.Type())
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			for _, key := range keys {
				c.SetMapIndex(key, f.copyOf(join(path, fmt.Sprint(key)), v.MapIndex(key)))
			}
			return c
		}
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v) // unexported fields too
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() || name == "-" {
				continue
			}
			at := path
			if !field.Anonymous || name != "" {
				at = join(path, cmp.Or(name, field.Name))
			}
			c.Field(i).Set(f.copyOf(at, v.Field(i)))
		}
		return c
	}
	return v
}

func (f *finder) copyItems(path string, to, from reflect.Value) {
	for i := range from.Len() {
		to.Index(i).Set(f.copyOf(fmt.Sprintf("%s[%d]", path, i), from.Index(i)))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// warn puts the finding into the Warnings of the copy, and of v where they can be set.
func (f *finder) warn(v, whole reflect.Value) {
	if whole.Kind() != reflect.Struct {
		return
	}
	field := whole.FieldByName("Warnings")
	if !field.IsValid() {
		return
	}
	list, ok := field.Interface().(Warnings)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(w Warning) bool { return w.Kind == WarningNotFinite })
	list = append(list, Warning{Kind: WarningNotFinite, Text: "figures that are not finite are null: the measurements do not give them", Count: len(f.paths), Places: f.paths[:min(len(f.paths), maxPlaces)]})
	field.Set(reflect.ValueOf(list))
	if own := v.FieldByName("Warnings"); own.CanSet() {
		own.Set(field)
	}
}

func withNulls(data []byte) ([]byte, error) {
	mark, err := json.Marshal(notFinite)
	if err != nil {
		return nil, err
	}
	var out []byte
	done := int64(0)
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber()
	for {
		token, err := tokens.Token()
		if err != nil { // io.EOF: what was just encoded can be read
			return append(out, data[done:]...), nil
		}
		if n, ok := token.(json.Number); ok && string(n) == string(mark) {
			end := tokens.InputOffset()
			out = append(append(out, data[done:end-int64(len(mark))]...), "null"...)
			done = end
		}
	}
}
