// Package param answers: what was a calculator asked, in which units? A parameter
// is declared once: its name, what it takes, its range and default, its help, and
// where it can be read from.
package param

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// In is a parameter with where it came from. The zero In was not given.
type In[T any] struct {
	Value T
	From  string
}

// Given makes an In of a value that came from somewhere.
func Given[T any](value T, from string) In[T] { return In[T]{value, from} }

// Ok reports whether the parameter was given.
func (in In[T]) Ok() bool { return in.From != "" }

// Or is the parameter, or a default with its reason.
func (in In[T]) Or(value T, why string) In[T] { return in.OrThat(In[T]{value, "default: " + why}) }

// OrThat is the parameter, or another.
func (in In[T]) OrThat(other In[T]) In[T] {
	if in.Ok() {
		return in
	}
	return other
}

// Recorded is the parameter as an answer shows it.
func (in In[T]) Recorded() (value any, from string) { return Plain(in.Value), in.From }

// Said is an In of any value.
type Said interface {
	// recorded is what stands in an answer of it, and where it came from.
	Recorded() (value any, from string)
}

// ReadFrom is a value that was read; nothing where it is zero.
func ReadFrom[T comparable](value T, from string) (in In[T]) {
	if value != in.Value {
		in = Given(value, "read from "+from)
	}
	return in
}

// Param is a parameter of a calculator, declared once: its name, what it takes,
// its unit, range and default, its help, and where it can be read from. It is a
// flag of the command line as it is.
type Param interface {
	Name() string
	Help() string
	Type() string
	String() string
	Set(text string) error
	// settle takes what was read or the default where nothing was given, and
	// returns what is wrong.
	Settle() error
	// inputOf is it among the inputs of an answer, by its name there.
	InputOf() (name string, value any, unit, from string)
}

// Typed is a parameter of one value, or with a list of several.
type Typed[T any] struct {
	in               *In[T]
	list             *[]T
	name, kind, help string
	parse            func(string) (T, error)
	text             string // as given
	example          string // of a parameter that is needed
	unit             string
	standard         In[T]
	idle             bool // the default is for help only
	object           bool // a text that names objects of Kubernetes
	ranged           bool
	low, high        float64
}

// Name is that of the flag.
func (p *Typed[T]) Name() string { return p.name }

// Type is what the flag takes, in a word.
func (p *Typed[T]) Type() string { return p.kind }

// String is what was given.
func (p *Typed[T]) String() string { return p.text }

// Help is one line, with the default.
func (p *Typed[T]) Help() string {
	if !p.standard.Ok() {
		return p.help
	}
	text := fmt.Sprint(p.standard.Value)
	if share, ok := any(p.standard.Value).(float64); ok && p.kind == "share" {
		text = Trim(share*100) + "%"
	}
	return p.help + " (default " + text + ")"
}

// Set reads what was given.
func (p *Typed[T]) Set(text string) error {
	v, err := p.parse(text)
	switch {
	case err != nil:
		return err
	case p.list != nil:
		*p.list, p.text = append(*p.list, v), strings.TrimLeft(p.text+" "+text, " ")
	default:
		*p.in, p.text = Given(v, "flag --"+p.name), text
	}
	return nil
}

// By gives a default with its reason.
func (p *Typed[T]) By(value T, why string) *Typed[T] {
	p.standard = Given(value, "default: "+why)
	return p
}

// When takes the default only where it matters.
func (p *Typed[T]) When(matters bool) *Typed[T] {
	p.idle = !matters
	return p
}

// Read gives what was read, if it was.
func (p *Typed[T]) Read(in In[T]) *Typed[T] {
	*p.in = p.in.OrThat(in)
	return p
}

// Within bounds the value, in the smallest unit of its kind.
func (p *Typed[T]) Within(low, high float64) *Typed[T] {
	p.ranged, p.low, p.high = true, low, high
	return p
}

// Named says that objects are given the text as their name.
func (p *Typed[T]) Named() *Typed[T] {
	p.object = true
	return p
}

// Per gives the unit of the value.
func (p *Typed[T]) Per(unit string) *Typed[T] {
	p.unit = unit
	return p
}

// Needed says that there is no answer without the parameter.
func (p *Typed[T]) Needed(example string) *Typed[T] {
	p.example = example
	return p
}

// Settle takes what was read or the default where nothing was given, and returns
// what is wrong.
func (p *Typed[T]) Settle() error {
	if !p.in.Ok() && p.example != "" {
		return Needs(p.name, p.help, p.example)
	}
	if !p.idle {
		*p.in = p.in.OrThat(p.standard)
	}
	if !p.in.Ok() {
		return nil
	}
	value, bound := 0.0, func(f float64) string { return Trim(f) }
	switch v := any(p.in.Value).(type) {
	case string:
		if p.object && (len(v) > 253 || !objectName.MatchString(v)) {
			return Bad(p.name, "", "%q: want small letters, digits, dashes and dots, a letter or digit first and last", v)
		}
		return checkWord(p.name, v)
	case int64:
		value = float64(v)
	case float64:
		value = v
	case Bytes:
		value, bound = float64(v), func(f float64) string { return Bytes(f).String() }
	case Rate:
		value, bound = float64(v), func(f float64) string { return Rate(f).String() }
	case time.Duration:
		value, bound = float64(v), func(f float64) string { return time.Duration(f).String() }
	}
	if p.ranged && !(value >= p.low && value <= p.high) {
		return Bad(p.name, "", "%v: want %s to %s", p.in.Value, bound(p.low), bound(p.high))
	}
	return nil
}

// InputOf is the parameter among the inputs of an answer.
func (p *Typed[T]) InputOf() (name string, value any, unit, from string) {
	first, rest, _ := strings.Cut(p.name, "-")
	for part := range strings.SplitSeq(rest, "-") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	value, from = p.in.Recorded()
	return first, value, p.unit, from
}

// A parameter of each kind.

// Int takes a whole number.
func Int(in *In[int64], name, help string) *Typed[int64] {
	return Form(in, name, "number", help, ParseCount)
}

// Share takes a share, such as 85%.
func Share(in *In[float64], name, help string) *Typed[float64] {
	return Form(in, name, "share", help, ParsePercent)
}

// Cores takes an amount of CPU.
func Cores(in *In[float64], name, help string) *Typed[float64] {
	return Form(in, name, "CPU", help, ParseCores)
}

// Size takes an amount of memory or data.
func Size(in *In[Bytes], name, help string) *Typed[Bytes] {
	return Form(in, name, "bytes", help, ParseBytes).Per("B")
}

// Speed takes the speed of a link.
func Speed(in *In[Rate], name, help string) *Typed[Rate] {
	return Form(in, name, "speed", help, ParseRate).Per("bit/s")
}

// Time takes a time.
func Time(in *In[time.Duration], name, help string) *Typed[time.Duration] {
	return Form(in, name, "time", help, ParseDelay)
}

// Bool takes a truth value.
func Bool(in *In[bool], name, help string) *Typed[bool] {
	return Form(in, name, "bool", help, strconv.ParseBool)
}

// Text takes any word; form says what it is.
func Text(in *In[string], name, form, help string) *Typed[string] {
	return Form(in, name, form, help, func(s string) (string, error) { return s, nil })
}

// Word takes one of several words.
func Word(in *In[string], name, help string, words ...string) *Typed[string] {
	return &Typed[string]{in: in, name: name, kind: "word", help: help + ": " + strings.Join(words, ", "), parse: func(s string) (string, error) {
		if slices.Contains(words, s) {
			return s, nil
		}
		hint := ""
		if near, ok := nearest.Word(s, words); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return "", fmt.Errorf("want %s%s", strings.Join(words, ", "), hint)
	}}
}

// Platform is the platform that settings are for; found is what a cluster
// was seen to be.
func Platform(in *In[string], found In[string]) *Typed[string] {
	return Word(in, "platform", "what the cluster is", OpenShift, Kubernetes).Read(found).By(OpenShift, "the documents' platform")
}

// Form is a text of a form of its own.
func Form[T any](in *In[T], name, form, help string, parse func(string) (T, error)) *Typed[T] {
	return &Typed[T]{in: in, name: name, kind: form, help: help, parse: parse}
}

// List is a parameter that may be given several times. It is not among the
// inputs of an answer.
func List[T any](list *[]T, name, kind, help string, parse func(string) (T, error)) *Typed[T] {
	return &Typed[T]{list: list, in: &In[T]{}, name: name, kind: kind, help: help, parse: parse}
}

// Parts is a list whose texts have parts, as the form says that the help
// shows: name=count,memory[,time], of which what is in brackets can be left out.
// parts are where they go, in that order.
func Parts[T any](list *[]T, name, form, help, example string, parts func(*T) []func(string) error) *Typed[T] {
	return List(list, name, form, help, func(text string) (value T, err error) {
		needed, optional, _ := strings.Cut(form, "[")
		between := strings.FieldsFunc(needed+strings.TrimSuffix(optional, "]"), unicode.IsLetter)
		least := len(strings.FieldsFunc(needed, unicode.IsLetter))
		rest, more := text, true
		for i, set := range parts(&value) {
			word := rest
			if i < len(between) {
				word, rest, more = strings.Cut(rest, between[i])
				if !more && i < least {
					return value, fmt.Errorf("%q: want %s, such as %s", text, strings.ToUpper(form), example)
				}
			}
			if err := set(word); err != nil || !more {
				return value, err
			}
		}
		return value, nil
	})
}

// Into reads a part into its place.
func Into[T any](place *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*place, err = parse(text)
		return err
	}
}

// Whole reads a count as a number of another type.
func Whole[T int | float64](text string) (T, error) {
	n, err := ParseCount(text)
	return T(n), err
}

// What an API server takes as the name of an object (RFC 1123), and as a label.
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	LabelPair  = regexp.MustCompile(`^([a-z0-9][-.a-z0-9]*[a-z0-9]/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
)

// ParseName reads the name of something.
func ParseName(text string) (string, error) {
	if !IsWord(text) {
		return "", fmt.Errorf("%q is no name: letters, digits and _.,:/=@%%+- only", text)
	}
	return text, nil
}

// Ranges is a list of ranges of addresses.
func Ranges(list *[]netip.Prefix, name, help string) *Typed[netip.Prefix] {
	return List(list, name, "CIDR", help, ParsePrefix)
}

// Error is a parameter that makes no sense. Name is the parameter's, such
// as "osds".
type Error struct {
	Name    string
	Message string
	Hint    string
}

func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Bad is the error of a parameter that makes no sense.
func Bad(name, hint, format string, args ...any) error {
	return &Error{Name: name, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// Needs is the error of a parameter that is missing.
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
