package kubernetes

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// stencil makes an object of a built-in type for any iteration and replica
// without reading YAML again: the typed object once, with marks where the
// numbers go, and the places of the marks.
type stencil struct {
	object             runtime.Object
	holes              []hole
	iteration, replica string // the marks
	pool               sync.Pool
}

// hole is one string of an object that has a mark in it.
type hole struct {
	path []pathStep
	text string // with its marks
}

// pathStep leads from a value to one inside of it: a field, an item or an
// entry. Pointers are followed without a step.
type pathStep struct {
	index int    // of the field or item
	key   string // of the map entry
	entry bool
}

// newStencil finds the marks in object. It reports false if any of them is
// somewhere that it cannot fill in: the object must then be made the slow way.
func newStencil(object runtime.Object, iteration, replica string) (*stencil, bool) {
	s := &stencil{object: object, iteration: iteration, replica: replica}
	if !s.find(reflect.ValueOf(object), nil) {
		return nil, false
	}
	s.pool.New = func() any { return object.DeepCopyObject() }
	// Whatever the search has missed is in the encoded object.
	raw, err := encode(object)
	if err != nil {
		return nil, false
	}
	for _, mark := range []string{iteration, replica} {
		n := 0
		for _, h := range s.holes {
			n += strings.Count(h.text, mark)
		}
		if n != bytes.Count(raw, []byte(mark)) {
			return nil, false
		}
	}
	return s, true
}

func (s *stencil) marked(text string) bool {
	return strings.Contains(text, s.iteration) || strings.Contains(text, s.replica)
}

// find records the holes below v. It reports false where a mark is in a map
// that is not of strings.
func (s *stencil) find(v reflect.Value, path []pathStep) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || s.find(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !s.find(v.Field(i), append(path[:len(path):len(path)], pathStep{index: i})) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !s.find(v.Index(i), append(path[:len(path):len(path)], pathStep{index: i})) {
				return false
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if entry.Key().Kind() != reflect.String {
				continue
			}
			key := entry.Key().String()
			at := append(path[:len(path):len(path)], pathStep{key: key, entry: true})
			if s.marked(key) {
				return false // rare, and not worth a second way of filling in
			}
			if entry.Value().Kind() == reflect.String && s.marked(entry.Value().String()) {
				s.holes = append(s.holes, hole{path: at, text: entry.Value().String()})
			}
		}
	case reflect.String:
		if s.marked(v.String()) {
			s.holes = append(s.holes, hole{path: path, text: v.String()})
		}
	}
	return true
}

// fill gives the object for one slot to use, and takes it back.
func (s *stencil) fill(iteration, replica int, use func(runtime.Object) error) error {
	object := s.pool.Get().(runtime.Object)
	defer s.pool.Put(object)
	numbers := strings.NewReplacer(s.iteration, strconv.Itoa(iteration), s.replica, strconv.Itoa(replica))
	root := reflect.ValueOf(object)
	for _, h := range s.holes {
		set(root, h.path, numbers.Replace(h.text))
	}
	return use(object)
}

func set(v reflect.Value, path []pathStep, text string) {
	for _, step := range path {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		switch {
		case step.entry:
			v.SetMapIndex(reflect.ValueOf(step.key).Convert(v.Type().Key()), reflect.ValueOf(text).Convert(v.Type().Elem()))
			return
		case v.Kind() == reflect.Struct:
			v = v.Field(step.index)
		default:
			v = v.Index(step.index)
		}
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	v.SetString(text)
}

// encode is an object in the API's protobuf encoding.
func encode(object runtime.Object) ([]byte, error) {
	var b bytes.Buffer
	if err := protobufSerializer.Encode(object, &b); err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return b.Bytes(), nil
}
