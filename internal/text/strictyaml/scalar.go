package strictyaml

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

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
