package tune

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

// or is the parameter, or a default with its reason.
func (in In[T]) or(value T, why string) In[T] { return in.orThat(In[T]{value, "default: " + why}) }

// orThat is the parameter, or another.
func (in In[T]) orThat(other In[T]) In[T] {
	if in.Ok() {
		return in
	}
	return other
}

// recorded is the parameter as an answer shows it.
func (in In[T]) recorded() (value any, from string) { return plain(in.Value), in.From }

// said is an In of any value.
type said interface {
	// recorded is what stands in an answer of it, and where it came from.
	recorded() (value any, from string)
}

// readFrom is a value that was read; nothing where it is zero.
func readFrom[T comparable](value T, from string) (in In[T]) {
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
	settle() error
	// inputOf is it among the inputs of an answer, by its name there.
	inputOf() (name string, value any, unit, from string)
}

// param is a parameter of one value, or with a list of several.
type param[T any] struct {
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

func (p *param[T]) Name() string   { return p.name }
func (p *param[T]) Type() string   { return p.kind }
func (p *param[T]) String() string { return p.text }

func (p *param[T]) Help() string {
	if !p.standard.Ok() {
		return p.help
	}
	text := fmt.Sprint(p.standard.Value)
	if share, ok := any(p.standard.Value).(float64); ok && p.kind == "share" {
		text = trim(share*100) + "%"
	}
	return p.help + " (default " + text + ")"
}

func (p *param[T]) Set(text string) error {
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

// by gives a default with its reason.
func (p *param[T]) by(value T, why string) *param[T] {
	p.standard = Given(value, "default: "+why)
	return p
}

// when takes the default only where it matters.
func (p *param[T]) when(matters bool) *param[T] {
	p.idle = !matters
	return p
}

// read gives what was read, if it was.
func (p *param[T]) read(in In[T]) *param[T] {
	*p.in = p.in.orThat(in)
	return p
}

// within bounds the value, in the smallest unit of its kind.
func (p *param[T]) within(low, high float64) *param[T] {
	p.ranged, p.low, p.high = true, low, high
	return p
}

// named says that objects are given the text as their name.
func (p *param[T]) named() *param[T] {
	p.object = true
	return p
}

// per gives the unit of the value.
func (p *param[T]) per(unit string) *param[T] {
	p.unit = unit
	return p
}

// needed says that there is no answer without the parameter.
func (p *param[T]) needed(example string) *param[T] {
	p.example = example
	return p
}

func (p *param[T]) settle() error {
	if !p.in.Ok() && p.example != "" {
		return needs(p.name, p.help, p.example)
	}
	if !p.idle {
		*p.in = p.in.orThat(p.standard)
	}
	if !p.in.Ok() {
		return nil
	}
	value, bound := 0.0, func(f float64) string { return trim(f) }
	switch v := any(p.in.Value).(type) {
	case string:
		if p.object && (len(v) > 253 || !objectName.MatchString(v)) {
			return badParam(p.name, "", "%q: want small letters, digits, dashes and dots, a letter or digit first and last", v)
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
		return badParam(p.name, "", "%v: want %s to %s", p.in.Value, bound(p.low), bound(p.high))
	}
	return nil
}

func (p *param[T]) inputOf() (name string, value any, unit, from string) {
	first, rest, _ := strings.Cut(p.name, "-")
	for part := range strings.SplitSeq(rest, "-") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	value, from = p.in.recorded()
	return first, value, p.unit, from
}

// A parameter of each kind.

func intParam(in *In[int64], name, help string) *param[int64] {
	return &param[int64]{in: in, name: name, kind: "number", help: help, parse: ParseCount}
}

func shareParam(in *In[float64], name, help string) *param[float64] {
	return &param[float64]{in: in, name: name, kind: "share", help: help, parse: ParsePercent}
}

func coresParam(in *In[float64], name, help string) *param[float64] {
	return &param[float64]{in: in, name: name, kind: "CPU", help: help, parse: ParseCores}
}

func bytesParam(in *In[Bytes], name, help string) *param[Bytes] {
	return &param[Bytes]{in: in, name: name, kind: "bytes", help: help, parse: ParseBytes, unit: "B"}
}

func rateParam(in *In[Rate], name, help string) *param[Rate] {
	return &param[Rate]{in: in, name: name, kind: "speed", help: help, parse: ParseRate, unit: "bit/s"}
}

func timeParam(in *In[time.Duration], name, help string) *param[time.Duration] {
	return &param[time.Duration]{in: in, name: name, kind: "time", help: help, parse: ParseDelay}
}

func boolParam(in *In[bool], name, help string) *param[bool] {
	return &param[bool]{in: in, name: name, kind: "bool", help: help, parse: strconv.ParseBool}
}

func textParam(in *In[string], name, kind, help string) *param[string] {
	return &param[string]{in: in, name: name, kind: kind, help: help, parse: func(s string) (string, error) { return s, nil }}
}

// wordParam takes one of several words.
func wordParam(in *In[string], name, help string, words ...string) *param[string] {
	return &param[string]{in: in, name: name, kind: "word", help: help + ": " + strings.Join(words, ", "), parse: func(s string) (string, error) {
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

// platformParam is the platform that settings are for; found is what a cluster
// was seen to be.
func platformParam(in *In[string], found In[string]) *param[string] {
	return wordParam(in, "platform", "what the cluster is", OpenShift, Kubernetes).read(found).by(OpenShift, "the documents' platform")
}

// formParam is a text of a form of its own.
func formParam[T any](in *In[T], name, form, help string, parse func(string) (T, error)) *param[T] {
	return &param[T]{in: in, name: name, kind: form, help: help, parse: parse}
}

// newList is a parameter that may be given several times. It is not among the
// inputs of an answer.
func newList[T any](list *[]T, name, kind, help string, parse func(string) (T, error)) *param[T] {
	return &param[T]{list: list, in: &In[T]{}, name: name, kind: kind, help: help, parse: parse}
}

// newParts is a list whose texts have parts, as the form says that the help
// shows: name=count,memory[,time], of which what is in brackets can be left out.
// parts are where they go, in that order.
func newParts[T any](list *[]T, name, form, help, example string, parts func(*T) []func(string) error) *param[T] {
	return newList(list, name, form, help, func(text string) (value T, err error) {
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

// into reads a part into its place.
func into[T any](place *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*place, err = parse(text)
		return err
	}
}

func whole[T int | float64](text string) (T, error) {
	n, err := ParseCount(text)
	return T(n), err
}

// What an API server takes as the name of an object (RFC 1123), and as a label.
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelPair  = regexp.MustCompile(`^([a-z0-9][-.a-z0-9]*[a-z0-9]/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
)

// parseName reads the name of something.
func parseName(text string) (string, error) {
	if !plainWord(text) {
		return "", fmt.Errorf("%q is no name: letters, digits and _.,:/=@%%+- only", text)
	}
	return text, nil
}

// rangeParam is a list of ranges of addresses.
func rangeParam(list *[]netip.Prefix, name, help string) *param[netip.Prefix] {
	return newList(list, name, "CIDR", help, ParsePrefix)
}

// ParamError is a parameter that makes no sense. Name is the parameter's, such
// as "osds".
type ParamError struct {
	Name    string
	Message string
	Hint    string
}

func (e *ParamError) Error() string { return e.Name + ": " + e.Message }

func badParam(name, hint, format string, args ...any) error {
	return &ParamError{Name: name, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// needs is the error of a parameter that is missing.
func needs(name, what, example string) error {
	return badParam(name, "for example "+example, "is needed: %s", what)
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
