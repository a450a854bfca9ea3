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
// numbers go, and the places of the marks in copies of it.
type stencil struct {
	iteration, replica string // the marks
	copies             sync.Pool
}

// markedCopy is a copy of an object, and the strings of it that have a mark.
type markedCopy struct {
	object runtime.Object
	holes  []hole
}

// hole is one string of an object that has a mark in it.
type hole struct {
	text string // with its marks
	set  func(text string)
}

// newStencil finds the marks in object. It reports false if any of them is
// somewhere that it cannot fill in: the object must then be made the slow way.
func newStencil(object runtime.Object, iteration, replica string) (*stencil, bool) {
	s := &stencil{iteration: iteration, replica: replica}
	first := &markedCopy{object: object}
	if !s.find(reflect.ValueOf(object), first) {
		return nil, false
	}
	s.copies.New = func() any {
		c := &markedCopy{object: object.DeepCopyObject()}
		s.find(reflect.ValueOf(c.object), c)
		return c
	}
	// Whatever the search has missed is in the encoded object.
	raw, err := encode(object)
	if err != nil {
		return nil, false
	}
	for _, mark := range []string{iteration, replica} {
		n := 0
		for _, h := range first.holes {
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
func (s *stencil) find(v reflect.Value, c *markedCopy) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || s.find(v.Elem(), c)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !s.find(v.Field(i), c) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !s.find(v.Index(i), c) {
				return false
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			key, value := entry.Key(), entry.Value()
			if key.Kind() != reflect.String {
				continue
			}
			if s.marked(key.String()) {
				return false // rare, and not worth a second way of filling in
			}
			if value.Kind() == reflect.String && s.marked(value.String()) {
				set := func(text string) { v.SetMapIndex(key, reflect.ValueOf(text).Convert(v.Type().Elem())) }
				c.holes = append(c.holes, hole{value.String(), set})
			}
		}
	case reflect.String:
		if s.marked(v.String()) {
			c.holes = append(c.holes, hole{v.String(), v.SetString})
		}
	}
	return true
}

// fill gives the object for one slot to use, and takes it back.
func (s *stencil) fill(iteration, replica int, use func(runtime.Object) error) error {
	c := s.copies.Get().(*markedCopy)
	defer s.copies.Put(c)
	numbers := strings.NewReplacer(s.iteration, strconv.Itoa(iteration), s.replica, strconv.Itoa(replica))
	for _, h := range c.holes {
		h.set(numbers.Replace(h.text))
	}
	return use(c.object)
}

// encode is an object in the API's protobuf encoding.
func encode(object runtime.Object) ([]byte, error) {
	var b bytes.Buffer
	if err := protobufSerializer.Encode(object, &b); err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return b.Bytes(), nil
}
