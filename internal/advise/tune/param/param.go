// Package param holds a calculator's parameters with their units: a struct as package settings describes,
// with fields that are In or lists.
package param

import (
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// In is a parameter with its origin. The zero In was not given.
type In[T any] struct {
	Value T
	From  string
}

// Given returns an In with a value and its origin.
func Given[T any](value T, from string) In[T] { return In[T]{value, from} }

// Ok reports whether the parameter was given.
func (in In[T]) Ok() bool { return in.From != "" }

// Or returns the parameter, or a default with its reason.
func (in In[T]) Or(value T, why string) In[T] { return in.OrThat(In[T]{value, "default: " + why}) }

// OrThat returns the parameter, or another.
func (in In[T]) OrThat(other In[T]) In[T] {
	if in.Ok() {
		return in
	}
	return other
}

// Read takes what was read elsewhere, unless the parameter was given.
func (in *In[T]) Read(other In[T]) { *in = in.OrThat(other) }

// Recorded returns the parameter for an answer: its value, its usual unit and its origin.
func (in In[T]) Recorded() (value any, unit, from string) {
	_, unit = kindOf(in.Value)
	return Plain(in.Value), unit, in.From
}

// Type names the parameter's values in the help of its flag.
func (in In[T]) Type() string {
	word, _ := kindOf(in.Value)
	return word
}

// UnmarshalText reads a given value.
func (in *In[T]) UnmarshalText(text []byte) error { return read(string(text), &in.Value) }

// Judge refuses an invalid name: with the tag object, one that an object of Kubernetes cannot have.
func (in In[T]) Judge(tag reflect.StructTag) error {
	text, _ := any(in.Value).(string)
	switch {
	case tag.Get("object") != "" && text != "" && (len(text) > 253 || !objectName.MatchString(text)):
		return fmt.Errorf("%q: want small letters, digits, dashes and dots, a letter or digit first and last", text)
	case text != "" && !IsWord(text):
		return fmt.Errorf("%q: letters, digits and _.,:/=@%%+- only", text)
	}
	return nil
}

// Said is an In of any type.
type Said interface {
	// Recorded returns the parameter for an answer.
	Recorded() (value any, unit, from string)
}

// ReadFrom returns a value that was read, or the zero In for a zero value.
func ReadFrom[T comparable](value T, from string) (in In[T]) {
	if value != in.Value {
		in = Given(value, "read from "+from)
	}
	return in
}

// kindOf returns the name of a value's kind, and its usual unit.
func kindOf(value any) (word, unit string) {
	switch value.(type) {
	case int64:
		return "number", ""
	case float64:
		return "CPU", ""
	case Share:
		return "share", ""
	case Bytes:
		return "bytes", "B"
	case Rate:
		return "speed", "bit/s"
	case time.Duration:
		return "time", ""
	case bool:
		return "bool", ""
	case netip.Prefix:
		return "CIDR", ""
	}
	return "word", ""
}

// read reads a text by the type of the value that into points to.
func read(text string, into any) (err error) {
	switch to := into.(type) {
	case *string:
		*to = text
	case *int:
		var n int64
		n, err = ParseCount(text)
		*to = int(n)
	case *int64:
		*to, err = ParseCount(text)
	case *float64:
		*to, err = ParseCores(text)
	case *Share:
		*to, err = ParsePercent(text)
	case *Bytes:
		*to, err = ParseBytes(text)
	case *Rate:
		*to, err = ParseRate(text)
	case *time.Duration:
		*to, err = ParseDelay(text)
	case *bool:
		*to, err = strconv.ParseBool(text)
	case *netip.Prefix:
		*to, err = ParsePrefix(text)
	default:
		err = to.(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	return err
}

// ReadParts reads a text such as name=count,memory[,time] into values; parts in brackets are optional.
func ReadParts(text, form string, into ...any) error {
	needed, optional, _ := strings.Cut(form, "[")
	between := strings.FieldsFunc(needed+strings.TrimSuffix(optional, "]"), unicode.IsLetter)
	least := len(strings.FieldsFunc(needed, unicode.IsLetter))
	rest, more := text, true
	for i := 0; i <= len(between) && more; i++ {
		word := rest
		if i < len(between) {
			word, rest, more = strings.Cut(rest, between[i])
			if !more && i < least {
				return fmt.Errorf("%q: want %s", text, strings.ToUpper(form))
			}
		}
		if _, name := into[i].(*string); name && !IsWord(word) {
			return fmt.Errorf("%q is not a name: letters, digits and _.,:/=@%%+- only", word)
		}
		if err := read(word, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// Names and labels that an API server accepts (RFC 1123).
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	LabelPair  = regexp.MustCompile(`^([a-z0-9][-.a-z0-9]*[a-z0-9]/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
)

// Error reports an invalid parameter by its name, such as "osds".
type Error struct {
	Name    string
	Message string
	Hint    string
}

func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Bad returns the error of an invalid parameter.
func Bad(name, hint, format string, args ...any) error {
	return &Error{Name: name, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// Needs returns the error of a missing parameter.
func Needs(name, what, example string) error {
	return Bad(name, "for example "+example, "is needed: %s", what)
}

// The platforms that settings are computed for.
const (
	OpenShift  = "openshift"
	Kubernetes = "kubernetes"
)

// The network plug-ins of OpenShift.
const (
	OVNKubernetes = "OVNKubernetes"
	OpenShiftSDN  = "OpenShiftSDN"
)
