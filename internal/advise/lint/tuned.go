package lint

import (
	"fmt"
	"slices"
	"strings"
)

// tunedProfile looks at a profile of tuned.
func (out *report) tunedProfile(t *text) {
	out.recognised = true
	for _, s := range readINI(t) {
		kind := s.name
		for _, e := range s.entries {
			if e.key == "type" {
				kind = e.value
			}
		}
		if kind != "sysctl" {
			continue
		}
		for _, e := range s.entries {
			if e.key == "type" || e.key == "replace" || e.key == "enabled" || e.key == "priority" || e.key == "devices" || !e.hasValue {
				continue
			}
			value := e.value
			if i := commentIn(value); i >= 0 {
				value = strings.TrimSpace(value[:i]) // tuned cuts comments off
			}
			// ">" sets a value only if it is larger than the one there is.
			value = strings.Trim(strings.TrimLeft(value, "><= "), `"'`)
			out.checkSetting(setting{key: e.key, value: value, scope: scopeOf(t), atKey: t.place(e.line, e.keyColumn), atValue: t.place(e.line, e.column)})
		}
	}
}

// checkTuned looks at the profiles of the node tuning operator.
func (out *report) checkTuned(spec value) {
	var names []string
	for _, p := range spec.get("profile").items() {
		if t, ok := p.get("data").literal("tuned.conf"); ok {
			out.tunedProfile(t)
		}
		names = append(names, p.get("name").text())
	}
	for _, r := range spec.get("recommend").items() {
		profile := r.get("profile")
		name := profile.text()
		if name == "" || slices.Contains(names, name) || strings.HasPrefix(name, "openshift") || hasHole(name) {
			continue
		}
		if hint := near(name, names, ""); hint != "" {
			out.find("bad-value", profile.at(), hint, fmt.Sprintf("there is no profile %s here", name))
		}
	}
}

// iniSection is a section of a file of the form [name], key=value.
type iniSection struct {
	name    string
	line    int
	entries []iniEntry
}

// iniEntry is one of its lines.
type iniEntry struct {
	key, value string
	line       int
	keyColumn  int
	column     int // of the value, or of the key when there is none
	hasValue   bool
}

// readINI reads a file of sections. Entries before the first belong to one
// without a name.
func readINI(t *text) []iniSection {
	sections := []iniSection{{}}
	for n := 1; n <= len(t.lines); n++ {
		line := t.line(n)
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		lead := len(line) - len(strings.TrimLeft(line, " \t"))
		if trimmed[0] == '[' {
			if end := strings.IndexByte(trimmed, ']'); end > 0 {
				sections = append(sections, iniSection{name: trimmed[1:end], line: n})
				continue
			}
		}
		key, value, ok := strings.Cut(trimmed, "=")
		e := iniEntry{key: strings.TrimSpace(key), value: strings.TrimSpace(value), line: n, keyColumn: lead + 1, column: lead + 1, hasValue: ok}
		if ok {
			e.column = lead + len(key) + 1 + len(value) - len(strings.TrimLeft(value, " \t")) + 1
		}
		last := &sections[len(sections)-1]
		last.entries = append(last.entries, e)
	}
	return sections
}
