package strictyaml

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Raw is a part of a file as it is written, for a type that is known only
// later. The zero value is nothing written. It is never changed: With gives
// another.
type Raw struct{ node *Node }

// Word returns a value as a flag has it: a boolean or a number if it reads as one.
func Word(text string) Raw { return Raw{&Node{Text: text, Plain: true}} }

// Text returns a value that is text, whatever it reads as.
func Text(text string) Raw { return Raw{&Node{Text: text}} }

// Map returns a mapping of texts.
func Map(texts map[string]string) Raw {
	n := &Node{Kind: Mapping}
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		n.Entries = append(n.Entries, Entry{Key: key, Value: Text(texts[key]).node})
	}
	return Raw{n}
}

// ListOf returns a list of values.
func ListOf(items []Raw) Raw {
	n := &Node{Kind: List}
	for _, item := range items {
		n.Items = append(n.Items, item.node)
	}
	return Raw{n}
}

// IsZero reports whether nothing is written.
func (r Raw) IsZero() bool {
	return r.node == nil || r.node.Kind == Mapping && len(r.node.Entries) == 0
}

// At returns the value at a path of keys, such as "lab.nodes", or zero.
func (r Raw) At(path string) Raw {
	n := r.node.Get(strings.Split(path, ".")...)
	if n == nil || n.Kind == Scalar && n.resolve(false) == nil {
		return Raw{}
	}
	return Raw{n}
}

// Has reports whether something stands at a path of keys.
func (r Raw) Has(path string) bool { return r.At(path).node != nil }

// String returns the text of a single value, "" for a list and a mapping.
func (r Raw) String() string {
	if r.node == nil {
		return ""
	}
	return r.node.Text
}

// With returns the mapping with a value at a path of keys, in the place of what
// stands there.
func (r Raw) With(path string, value Raw) Raw {
	key, rest, deeper := strings.Cut(path, ".")
	changed := Node{Kind: Mapping}
	if r.node != nil && r.node.Kind == Mapping {
		changed = *r.node
		changed.Entries = slices.Clone(changed.Entries)
	}
	i := slices.IndexFunc(changed.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		i = len(changed.Entries)
		changed.Entries = append(changed.Entries, Entry{Key: key})
	}
	if deeper {
		value = Raw{changed.Entries[i].Value}.With(rest, value)
	}
	changed.Entries[i].Value = value.node
	return Raw{&changed}
}

// Decode reads it into a pointer as the function Decode does. Path is where it
// stands in the file whose positions these are: they are added to, and may be
// nil.
func (r Raw) Decode(path string, into any, at *Positions) error {
	if r.node == nil {
		return nil
	}
	b := &binder{file: at.File(), positions: at, fields: map[reflect.Type][]field{}}
	b.bind(r.node, reflect.ValueOf(into).Elem(), path)
	return Join(b.problems)
}

// MarshalYAML writes it.
func (r Raw) MarshalYAML() (any, error) { return r.node.plain(), nil }

// Meaning returns the value in a form that is equal for equal values, however they are
// written; "" for nothing.
func (r Raw) Meaning() string {
	if r.IsZero() {
		return ""
	}
	text, err := json.Marshal(r.node.meaning())
	if err != nil {
		panic("strictyaml: " + err.Error()) // text and numbers can be written
	}
	return string(text)
}

// plain returns a node as a writer of YAML takes it.
func (n *Node) plain() any {
	return n.value(func(entries []Entry) any {
		m := make(yaml.MapSlice, len(entries))
		for i, e := range entries {
			m[i] = yaml.MapItem{Key: e.Key, Value: e.Value.plain()}
		}
		return m
	}, (*Node).plain)
}

// meaning returns a node as JSON has it, where keys have an order and numbers one
// form.
func (n *Node) meaning() any {
	value := n.value(func(entries []Entry) any {
		m := make(map[string]any, len(entries))
		for _, e := range entries {
			m[e.Key] = e.Value.meaning()
		}
		return m
	}, (*Node).meaning)
	if v, ok := value.(float64); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
		return []any{strconv.FormatFloat(v, 'g', -1, 64)} // JSON has no such number
	}
	return value
}

// value returns a node as a Go value, whose mappings and items are made by these.
func (n *Node) value(mapping func([]Entry) any, item func(*Node) any) any {
	switch {
	case n == nil:
		return nil
	case n.Kind == List:
		items := make([]any, len(n.Items))
		for i := range n.Items {
			items[i] = item(n.Items[i])
		}
		return items
	case n.Kind == Mapping:
		return mapping(n.Entries)
	}
	return n.resolve(false)
}
