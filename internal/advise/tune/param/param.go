// Package param answers: what was a calculator asked, in which units? A parameter
// is declared once: its name, what it takes, its range and default, its help, and
// where it can be read from.
package param

import (
	"cmp"
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
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

// Read takes what was read elsewhere, unless the parameter was given.
func (in *In[T]) Read(other In[T]) { *in = in.OrThat(other) }

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

// Param is a parameter of a calculator: a field of the struct that it takes, which
// is an In or a list, declared by its tags. It is a flag of the command line as it
// is. The tags are:
//
//	flag     its name
//	help     what it says
//	takes    what it takes, in a word, where its type does not tell; of a list of
//	         structs the form of a text, such as name=count,memory[,time]: the fields
//	         in their order, of which what is in brackets can be left out
//	example  a text of that form
//	words    what a text can be
//	default  what holds where nothing was given or read
//	why      the reason for the default
//	when     the case in which the default matters, one of those of Complete
//	range    its bounds, such as 1..250
//	unit     that of the value
//	needed   an example of what there is no answer without
//	object   that objects of Kubernetes are given the text as their name
type Param struct {
	tag     reflect.StructTag
	place   reflect.Value
	text    string // as given
	matters bool   // the default does
}

// completer is a struct with parameters that can be read elsewhere, which Complete
// fills in where they were not given. It tells of cases whether they are so.
type completer interface {
	Complete() (cases map[string]bool)
}

// Of are the parameters in the struct that a pointer leads to, in its order.
func Of(params any) (list []*Param) {
	var cases map[string]bool
	if c, ok := params.(completer); ok {
		cases = c.Complete()
	}
	of := reflect.ValueOf(params).Elem()
	for i := range of.NumField() {
		if tag := of.Type().Field(i).Tag; tag.Get("flag") != "" {
			when, some := tag.Lookup("when")
			list = append(list, &Param{tag: tag, place: of.Field(i), matters: !some || cases[when]})
		}
	}
	return list
}

// Name is that of the flag.
func (p *Param) Name() string { return p.tag.Get("flag") }

// Type is what the flag takes, in a word.
func (p *Param) Type() string {
	word, _ := kindOf(valueOf(p.blank()).Interface())
	return cmp.Or(p.tag.Get("takes"), word)
}

// kindOf is what a value is called as a parameter, and its usual unit.
func kindOf(value any) (word, unit string) {
	switch value.(type) {
	case int64:
		return "number", ""
	case float64:
		return "CPU", ""
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

// String is what was given.
func (p *Param) String() string { return p.text }

// Help is one line, with the default.
func (p *Param) Help() string {
	text := p.tag.Get("help")
	if words := p.tag.Get("words"); words != "" {
		text += ": " + words
	}
	if standard := p.tag.Get("default"); standard != "" {
		text += " (default " + standard + ")"
	}
	return text
}

// blank is an empty In, or an empty item of a list.
func (p *Param) blank() reflect.Value {
	t := p.place.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return reflect.New(t).Elem()
}

// valueOf is the value of an In; what is none is one itself.
func valueOf(in reflect.Value) reflect.Value {
	if _, ok := in.Interface().(Said); ok {
		return in.FieldByName("Value")
	}
	return in
}

// Set reads what was given.
func (p *Param) Set(text string) error {
	one := p.blank()
	if err := read(text, valueOf(one), p.tag); err != nil {
		return err
	}
	if one.Kind() == reflect.Struct {
		if from := one.FieldByName("From"); from.IsValid() {
			from.SetString("flag --" + p.Name())
		}
	}
	if p.place.Kind() == reflect.Slice {
		one, text = reflect.Append(p.place, one), strings.TrimLeft(p.text+" "+text, " ")
	}
	p.place.Set(one)
	p.text = text
	return nil
}

// read reads a text by the type of a value, and by the tags of its field.
func read(text string, into reflect.Value, tag reflect.StructTag) (err error) {
	var n int64
	switch to := into.Addr().Interface().(type) {
	case *string:
		*to, err = text, oneOf(text, tag.Get("words"))
	case *int:
		n, err = ParseCount(text)
		*to = int(n)
	case *int64:
		*to, err = ParseCount(text)
	case *float64:
		*to, err = readFloat(text, tag.Get("takes"))
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
	case encoding.TextUnmarshaler:
		err = to.UnmarshalText([]byte(text))
	default:
		err = readParts(text, into, tag)
	}
	return err
}

// readFloat reads what a float takes: cores, unless another word says it.
func readFloat(text, takes string) (float64, error) {
	switch takes {
	case "share":
		return ParsePercent(text)
	case "number":
		n, err := ParseCount(text)
		return float64(n), err
	case "time":
		d, err := ParseDelay(text)
		return d.Seconds(), err
	}
	return ParseCores(text)
}

// readParts reads the parts of a text into the fields of a struct.
func readParts(text string, into reflect.Value, tag reflect.StructTag) error {
	form := tag.Get("takes")
	needed, optional, _ := strings.Cut(form, "[")
	between := strings.FieldsFunc(needed+strings.TrimSuffix(optional, "]"), unicode.IsLetter)
	least := len(strings.FieldsFunc(needed, unicode.IsLetter))
	rest, more := text, true
	for i := 0; i <= len(between) && more; i++ {
		word := rest
		if i < len(between) {
			word, rest, more = strings.Cut(rest, between[i])
			if !more && i < least {
				return fmt.Errorf("%q: want %s, such as %s", text, strings.ToUpper(form), tag.Get("example"))
			}
		}
		if into.Field(i).Kind() == reflect.String && !IsWord(word) {
			return fmt.Errorf("%q is no name: letters, digits and _.,:/=@%%+- only", word)
		}
		if err := read(word, into.Field(i), into.Type().Field(i).Tag); err != nil {
			return err
		}
	}
	return nil
}

// oneOf refuses a text that is none of several words; none is any.
func oneOf(text, words string) error {
	list := strings.Split(words, ", ")
	if words == "" || slices.Contains(list, text) {
		return nil
	}
	hint := ""
	if near, ok := nearest.Word(text, list); ok {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Errorf("want %s%s", words, hint)
}

// Settle takes the default where nothing was given, and returns what is wrong.
func (p *Param) Settle() error {
	if p.place.Kind() == reflect.Slice {
		return nil
	}
	value, from := valueOf(p.place), p.place.FieldByName("From")
	if from.IsZero() {
		if example := p.tag.Get("needed"); example != "" {
			return Needs(p.Name(), p.tag.Get("help"), example)
		}
		standard := p.tag.Get("default")
		if standard == "" || !p.matters {
			return nil
		}
		value.Set(p.meant(standard))
		from.SetString("default: " + p.tag.Get("why"))
	}
	if text, ok := value.Interface().(string); ok {
		if p.tag.Get("object") != "" && (len(text) > 253 || !objectName.MatchString(text)) {
			return Bad(p.Name(), "", "%q: want small letters, digits, dashes and dots, a letter or digit first and last", text)
		}
		return checkWord(p.Name(), text)
	}
	if low, high, ok := strings.Cut(p.tag.Get("range"), ".."); ok {
		least, most := p.meant(low), p.meant(high)
		if x := number(value); !(x >= number(least) && x <= number(most)) {
			return Bad(p.Name(), "", "%v: want %v to %v", value, least, most)
		}
	}
	return nil
}

// meant is the value that a text in a tag stands for.
func (p *Param) meant(text string) reflect.Value {
	value := valueOf(p.blank())
	if err := read(text, value, p.tag); err != nil {
		panic(fmt.Sprintf("param: --%s: %v", p.Name(), err)) // a mistake that any test finds
	}
	return value
}

func number(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// InputOf is the parameter among the inputs of an answer, by its name there. Lists
// are not among them.
func (p *Param) InputOf() (name string, value any, unit, from string) {
	said, ok := p.place.Interface().(Said)
	if !ok {
		return "", nil, "", ""
	}
	first, rest, _ := strings.Cut(p.Name(), "-")
	for part := range strings.SplitSeq(rest, "-") {
		if part != "" {
			first += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	_, unit = kindOf(valueOf(p.place).Interface())
	value, from = said.Recorded()
	return first, value, cmp.Or(p.tag.Get("unit"), unit), from
}

// What an API server takes as the name of an object (RFC 1123), and as a label.
var (
	objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	LabelPair  = regexp.MustCompile(`^([a-z0-9][-.a-z0-9]*[a-z0-9]/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
)

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
