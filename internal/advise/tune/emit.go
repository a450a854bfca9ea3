package tune

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// mapping is a YAML mapping, whose entries keep their order. What is empty is
// left out, but for truth values.
type mapping []entry

type entry struct {
	key   string
	value any
}

// compact leaves out what is empty; nil is nothing left.
func (m mapping) compact() (out mapping) {
	for _, e := range m {
		if v := reflect.ValueOf(e.value); v.Kind() == reflect.Bool || !v.IsZero() {
			out = append(out, e)
		}
	}
	return out
}

// MarshalYAML gives the mapping to the encoder.
func (m mapping) MarshalYAML() (any, error) {
	var out yaml.MapSlice
	for _, e := range m.compact() {
		out = append(out, yaml.MapItem{Key: e.key, Value: e.value})
	}
	return out, nil
}

// object is a Kubernetes object.
func object(apiVersion, kind string, metadata, spec mapping) mapping {
	return mapping{{"apiVersion", apiVersion}, {"kind", kind}, {"metadata", metadata}, {"spec", spec}}
}

// manifest writes an object, or a list of them, as YAML below a line of comment,
// if there is one.
func manifest(object any, comment string) string {
	data, err := yaml.MarshalWithOptions(object, yaml.IndentSequence(false), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		panic(err) // a mistake in this package, which its tests find
	}
	if comment != "" {
		comment = "# " + printable(comment) + "\n"
	}
	return comment + strings.TrimRight(string(data), "\n") + "\n"
}

// script writes commands for a shell that stops at the first failure.
func script(what string, list []Command) string {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# " + printable(what) + "\nset -eu\n")
	for _, c := range list {
		if c.Why != "" {
			b.WriteString("# " + printable(c.Why) + "\n")
		}
		b.WriteString(c.Line + "\n")
	}
	return b.String()
}

// plainWord reports whether a text means itself to every shell.
func plainWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.,:/=@%+-", r))
	})
}

// word quotes a text for a shell.
func word(s string) string {
	if plainWord(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// checkWord refuses names that no cluster or host gives to anything.
func checkWord(name, value string) error {
	if value != "" && !plainWord(value) {
		return badParam(name, "", "%q: letters, digits and _.,:/=@%%+- only", value)
	}
	return nil
}
