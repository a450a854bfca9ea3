package strictyaml

import (
	"reflect"

	"github.com/goccy/go-yaml"
)

// Ordered holds a mapping whose order means something, such as goals of which
// the first is the headline. The zero value is empty.
type Ordered[V any] []Item[V]

// Item is one key of an Ordered mapping with its value.
type Item[V any] struct {
	Key   string
	Value V
}

// Get returns the value of key.
func (o Ordered[V]) Get(key string) (value V, ok bool) {
	for _, item := range o {
		if item.Key == key {
			return item.Value, true
		}
	}
	return value, false
}

// MarshalYAML writes the mapping in its order.
func (o Ordered[V]) MarshalYAML() (any, error) {
	m := make(yaml.MapSlice, len(o))
	for i, item := range o {
		m[i] = yaml.MapItem{Key: item.Key, Value: item.Value}
	}
	return m, nil
}

// orderedItem tells a binder that it fills a mapping, though the kind is a
// slice.
func (o Ordered[V]) orderedItem() reflect.Type { return reflect.TypeFor[Item[V]]() }
