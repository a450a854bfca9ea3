package tune

import (
	"strings"

	"github.com/goccy/go-yaml"
)

// meta is the metadata of a Kubernetes object, as far as emitted files have
// it.
type meta struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// manifest writes an object as YAML below lines of comment. Its types are this
// package's own, and marshal.
func manifest(object any, comment ...string) string {
	data, err := yaml.MarshalWithOptions(object, yaml.IndentSequence(false), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		panic(err) // a mistake in this package's types, which its tests marshal
	}
	return comments(comment) + strings.TrimRight(string(data), "\n") + "\n"
}

func comments(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("# " + printable(l) + "\n")
	}
	return b.String()
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
