package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// NodeKind tells what a Node is.
type NodeKind int

// The kinds of nodes.
const (
	Scalar NodeKind = iota
	List
	Mapping
)

// Document is one document of a stream.
type Document struct {
	Root *Node
	// Problems say why Root is nil.
	Problems []Problem
	// Text is the document, with \n as the end of every line; Line is its first line in the file.
	Text []byte
	Line int
}

// Bounds of what Documents reads: what a cluster answers when it is asked for
// thousands of objects. A document costs some 150 times its size.
const (
	maxStream   = 64 << 20
	maxDocument = 8 << 20
)

// Documents answers: what stands in this file, and where? It is for those who
// look at a file without a type that it must fit. A document that cannot be
// read does not keep the others from being read; documents without content are
// left out. Of a key that stands in a mapping twice the first counts, and the
// others are the mapping's Duplicates. The problems are those of the file as a
// whole. file is used in messages only.
func Documents(file string, data []byte) ([]Document, []Problem) {
	data, problems := normalise(file, data, maxStream)
	if len(problems) > 0 {
		return nil, problems
	}
	var docs []Document
	for _, part := range splitDocuments(data) {
		if len(part.data) > maxDocument {
			docs = append(docs, Document{Problems: []Problem{{
				File: file, Line: part.before + 1, Hint: "write its objects as documents of their own, with --- between them",
				Message: fmt.Sprintf("the document has %d bytes, at most %d are read", len(part.data), maxDocument),
			}}, Line: part.before + 1})
			continue
		}
		root, problems := parsePart(file, part, kept)
		if root != nil || len(problems) > 0 {
			docs = append(docs, Document{root, problems, part.data, part.before + 1})
		}
	}
	return docs, nil
}

// Get follows keys down; it is nil where nothing stands.
func (n *Node) Get(keys ...string) *Node {
	for _, key := range keys {
		e, _ := n.Entry(key)
		n = e.Value
	}
	return n
}

// Entry returns a key of a mapping.
func (n *Node) Entry(key string) (e Entry, ok bool) {
	if n == nil {
		return e, false
	}
	i := slices.IndexFunc(n.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return e, false
	}
	return n.Entries[i], true
}

// Value returns a scalar as Kubernetes reads it: nil, bool, int64, uint64 (above int64),
// float64 or string. It returns nil for a list and a mapping.
func (n *Node) Value() any {
	if n.Kind != Scalar {
		return nil
	}
	return n.resolve(true)
}

// resolve returns an untyped scalar's value: nil, bool, int64, uint64 (above int64), float64
// (possibly infinite or NaN) or string. Text without quotes and tag follows the Go YAML readers
// of Kubernetes and its tools: 0644 is octal, 1_000 is a thousand. kubernetes adds YAML 1.1's
// words for true and false.
func (n *Node) resolve(kubernetes bool) any {
	if n.Tag == "!!str" || !n.Plain && n.Tag == "" {
		return n.Text
	}
	return resolveText(n.Text, kubernetes)
}

func resolveText(text string, kubernetes bool) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if kubernetes {
		if b, ok := wordOfTruth(text); ok {
			return b
		}
	}
	if n, ok := number(text); ok {
		return n
	}
	return text
}

// wordOfTruth knows the booleans of YAML 1.1 that YAML 1.2 reads as text.
func wordOfTruth(text string) (value, ok bool) {
	switch text {
	case "y", "Y", "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// decimal matches a number written without base prefix.
var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// number reads an int64, a uint64 above it, or a float64.
func number(text string) (any, bool) {
	if text == "" || !strings.ContainsRune("0123456789+-.", rune(text[0])) {
		return nil, false
	}
	digits := strings.ReplaceAll(text, "_", "")
	if text[0] != '.' {
		if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return i, true
		}
		if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
			return u, true
		}
	} else {
		digits = text
	}
	if decimal.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f, true
		}
	}
	return nil, false
}

// jsonValue restates a resolved scalar as Kubernetes finds it after its detour
// through JSON: a number without fraction is an integer, however written.
func jsonValue(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f)
	}
	return v
}

// jsonKey restates a key in the same way: JSON has only text keys.
func jsonKey(text string) string {
	switch v := resolveText(text, true).(type) {
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	return text
}

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
