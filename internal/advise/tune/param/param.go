// Package param holds a calculator's parameters with their units: a struct as package settings describes,
// with fields that are In or lists.
package param

import (
	"encoding"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/size"
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
	Name, Message, Hint string
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

// Share is a part of a whole, 1 for all of it.
type Share float64

// Rate is a link's speed in bits per second.
type Rate float64

// String writes the speed with the largest decimal unit that leaves a number of at least 1.
func (r Rate) String() string {
	size, prefix := largest(float64(r), 1000, "kMGT")
	return Trim(float64(r)/size) + " " + prefix + "bit/s"
}

// Bytes is an amount of memory or data.
type Bytes int64

// String writes the amount with the largest binary unit that leaves at least 1, with up to two decimals.
func (b Bytes) String() string {
	size, prefix := largest(math.Abs(float64(b)), 1024, "KMGTP")
	if prefix == "" {
		return strconv.FormatInt(int64(b), 10) + " B"
	}
	return Trim(math.Round(float64(b)/size*100)/100) + " " + prefix + "iB"
}

// largest returns the largest unit that leaves an amount of at least 1, and its prefix.
func largest(amount, base float64, prefixes string) (size float64, prefix string) {
	size = 1
	for _, p := range prefixes {
		if amount < size*base {
			break
		}
		size, prefix = size*base, string(p)
	}
	return size, prefix
}

// Trim writes a number without zeros at its end.
func Trim(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Number splits a text into a leading decimal number and what follows it.
func Number(s string) (value float64, rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789.")
	value, err := strconv.ParseFloat(strings.TrimSuffix(s, rest), 64)
	return value, rest, err == nil && !math.IsInf(value, 0)
}

// ParseRate reads a link's speed: 50Gbit, 50Gb/s, 10GbE, 6.25GB/s, or a bond of equal links as 2x25GbE. A
// small b is bits, a large B without an E behind it bytes; a number without a unit is an error.
func ParseRate(text string) (Rate, error) {
	const allowed = "want a speed with a unit, such as 50Gbit, 10GbE, 2x25GbE or 6.25GB/s"
	s := strings.TrimSpace(text)
	links := 1.0
	if n, rest, ok := Number(s); ok && (strings.HasPrefix(rest, "x") || strings.HasPrefix(rest, "*")) {
		if n < 1 || n != math.Trunc(n) || n > 1024 {
			return 0, fmt.Errorf("%q: %s links make no bond: %s", text, Trim(n), allowed)
		}
		links, s = n, strings.TrimSpace(rest[1:])
	}
	value, unit, ok := Number(s)
	if !ok {
		return 0, fmt.Errorf("%q is not a speed: %s", text, allowed)
	}
	unit = strings.TrimSpace(unit)
	if unit == "" {
		return 0, fmt.Errorf("%q has no unit: %s", text, allowed)
	}
	scale, rest := prefix(unit)
	bits := 0.0
	switch rest {
	case "bit", "bits", "b", "b/s", "bps", "bit/s", "bits/s", "bE", "BE", "be":
		bits = 1
	case "B/s", "Bps", "byte/s", "bytes/s", "B":
		bits = 8
	default:
		hint := ""
		if near, ok := nearest.Word(unit, []string{"Gbit", "Mbit", "GbE", "Gb/s", "GB/s"}); ok {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return 0, fmt.Errorf("%q: unknown unit %q%s: %s", text, unit, hint, allowed)
	}
	speed := links * value * scale * bits
	if speed <= 0 || speed > 1e18 {
		return 0, fmt.Errorf("%q: a link is faster than 0 and slower than 1 Ebit/s", text)
	}
	return Rate(speed), nil
}

// prefix splits off a unit's multiplier: k M G T P decimal, Ki Mi Gi Ti Pi binary.
func prefix(unit string) (scale float64, rest string) {
	power := strings.Index("kmgtp", strings.ToLower(unit[:1])) + 1
	if power == 0 {
		return 1, unit
	}
	if len(unit) > 1 && unit[1] == 'i' && !strings.HasPrefix(unit[1:], "it") {
		return math.Pow(1024, float64(power)), unit[2:]
	}
	return math.Pow(1000, float64(power)), unit[1:]
}

// ParseBytes reads an amount as package size does.
func ParseBytes(text string) (Bytes, error) {
	n, err := size.Parse(text, 1<<60)
	return Bytes(n), err
}

// ParseCores reads an amount of CPU in cores: 500m or 1.5.
func ParseCores(text string) (float64, error) {
	value, unit, ok := Number(strings.TrimSpace(text))
	switch {
	case !ok || unit != "" && unit != "m":
		return 0, fmt.Errorf("%q is not an amount of CPU: want cores such as 1.5, or thousandths such as 500m", text)
	case value > 1e9:
		return 0, fmt.Errorf("%q: more cores than any machine has", text)
	case unit == "m":
		return value / 1000, nil
	}
	return value, nil
}

// ParseDelay reads a time above zero with a unit, such as 0.208ms, 15s or 2m.
func ParseDelay(text string) (time.Duration, error) {
	s := strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	d, err := time.ParseDuration(s)
	if err != nil {
		if _, rest, ok := Number(s); ok && rest == "" {
			return 0, fmt.Errorf("%q has no unit: write %sms or %ss, for example", text, s, s)
		}
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit (ns, us, ms, s, m, h), such as 0.208ms", text)
	}
	if d <= 0 {
		return 0, fmt.Errorf("%q: want a time above zero", text)
	}
	return d, nil
}

// ParseCount reads a whole number of at least zero, perhaps with commas between thousands.
func ParseCount(text string) (int64, error) {
	s := strings.TrimSpace(text)
	if grouping.MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a whole number of at least 0", text)
	}
	const most = 1_000_000_000
	if n > most {
		return 0, fmt.Errorf("%q: at most %s", text, Grouped(int64(most)))
	}
	return n, nil
}

var grouping = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+$`)

// ParsePercent reads a share such as 85% or 0.85, as 0.85.
func ParsePercent(text string) (Share, error) {
	value, rest, ok := Number(strings.TrimSpace(text))
	if !ok || rest != "" && rest != "%" {
		return 0, fmt.Errorf("%q is not a share: want 85%% or 0.85", text)
	}
	if rest == "%" {
		value /= 100
	} else if value > 1 {
		return 0, fmt.Errorf("%q: write %s%% or a number up to 1", text, Trim(value))
	}
	return Share(value), nil
}

// ParsePrefix reads a range of addresses in CIDR form, which must begin with the range's first address.
func ParsePrefix(text string) (netip.Prefix, error) {
	s := strings.TrimSpace(text)
	p, err := netip.ParsePrefix(s)
	if err != nil {
		if _, addr := netip.ParseAddr(s); addr == nil {
			return netip.Prefix{}, fmt.Errorf("%q has no prefix length: write %s/14, for example", text, s)
		}
		return netip.Prefix{}, fmt.Errorf("%q is not a range of addresses: want one such as 10.128.0.0/14 or fd01::/48", text)
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q: write the IPv4 range itself", text)
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q: its address is inside the range; the range is %s", text, p.Masked())
	}
	return p, nil
}

// Plain converts a parameter's value to a number or text.
func Plain(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64, float64, string, bool:
		return v
	case Rate:
		return float64(v)
	case Share:
		return float64(v)
	case Bytes:
		return int64(v)
	}
	return fmt.Sprint(v)
}

// IsWord reports whether a text needs no quotes in any shell.
func IsWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.,:/=@%+-", r))
	})
}

// Quote quotes a text for a shell.
func Quote(s string) string {
	if IsWord(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Grouped writes a whole number with a comma before every third digit.
func Grouped[T int | int64](n T) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// CeilDiv returns a / b, rounded up.
func CeilDiv(a, b int64) int64 { return (a + b - 1) / b }

// RoundUp returns the lowest multiple of step that is at least n.
func RoundUp(n, step int64) int64 { return CeilDiv(n, step) * step }

// Power returns 2^n, but at most 2^62.
func Power(n int) int64 {
	if n >= 62 {
		return 1 << 62
	}
	return 1 << max(n, 0)
}
