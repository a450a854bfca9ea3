package lint

import (
	"fmt"
	"slices"
	"strings"
)

// tunedProfile looks at a profile of tuned: sections of [name] and key=value, of
// which those for the plug-in sysctl are looked into.
func tunedProfile(out *report, t *text) {
	out.recognised = true
	plugin := ""
	var settings []setting // of the section
	end := func(next string) {
		if plugin == "sysctl" {
			for _, s := range settings {
				checkSetting(out, s)
			}
		}
		plugin, settings = next, nil
	}
	for n := 1; n <= len(t.lines); n++ {
		line := strings.TrimSpace(t.line(n))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if name, _, closed := strings.Cut(line[1:], "]"); line[0] == '[' && closed {
			end(name)
			continue
		}
		s, ok := assignment(t, n)
		switch s.key {
		case "type":
			plugin = s.value
		case "replace", "enabled", "priority", "devices":
		default:
			if i := commentIn(s.value); i >= 0 {
				s.value = strings.TrimSpace(s.value[:i]) // tuned cuts comments off
			}
			// ">" sets a value only if it is larger than the one there is.
			s.value = strings.Trim(strings.TrimLeft(s.value, "><= "), `"'`)
			if ok {
				settings = append(settings, s)
			}
		}
	}
	end("")
}

// checkTuned looks at the profiles of the node tuning operator.
func checkTuned(out *report, spec value) {
	var names []string
	for _, p := range spec.get("profile").items() {
		if t, ok := p.get("data").literal("tuned.conf"); ok {
			tunedProfile(out, t)
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
