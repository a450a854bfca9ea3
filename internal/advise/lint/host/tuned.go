package host

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// TunedProfile reads a profile of tuned and checks its settings of the plug-in sysctl.
func TunedProfile(out *report.Report, t *reading.Text) {
	out.Recognised = true
	plugin := ""
	var settings []report.Setting // of the section
	end := func(next string) {
		if plugin == "sysctl" {
			for _, s := range settings {
				CheckSetting(out, s)
			}
		}
		plugin, settings = next, nil
	}
	for n := 1; n <= len(t.Lines); n++ {
		line := strings.TrimSpace(t.Line(n))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if name, _, closed := strings.Cut(line[1:], "]"); line[0] == '[' && closed {
			end(name)
			continue
		}
		s, ok := assignment(t, n)
		switch s.Key {
		case "type":
			plugin = s.Value
		case "replace", "enabled", "priority", "devices":
		default:
			if i := commentIn(s.Value); i >= 0 {
				s.Value = strings.TrimSpace(s.Value[:i]) // tuned cuts comments off
			}
			// ">" only raises the present value.
			s.Value = strings.Trim(strings.TrimLeft(s.Value, "><= "), `"'`)
			if ok {
				settings = append(settings, s)
			}
		}
	}
	end("")
}

// CheckTuned reads the profiles of the node tuning operator.
func CheckTuned(out *report.Report, spec reading.Value) {
	var names []string
	for _, p := range spec.Get("profile").Items() {
		if t, ok := p.Get("data").Literal("tuned.conf"); ok {
			TunedProfile(out, t)
		}
		names = append(names, p.Get("name").Text())
	}
	for _, r := range spec.Get("recommend").Items() {
		profile := r.Get("profile")
		name := profile.Text()
		if name == "" || slices.Contains(names, name) || strings.HasPrefix(name, "openshift") || reading.HasHole(name) {
			continue
		}
		if hint := report.Near(name, names, ""); hint != "" {
			out.Find("bad-value", profile.At(), hint, fmt.Sprintf("profile %s does not exist in this file", name))
		}
	}
}
