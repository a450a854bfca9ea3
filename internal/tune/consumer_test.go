package tune

import (
	"encoding/json"
	"strings"
	"testing"

	ignition32 "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/goccy/go-yaml"
)

// Ignition's own parser takes what MachineConfigs hold, without a complaint. It
// warns of keys that it does not know, which the operator refuses: the
// document's networkd and filesystem (V33) are two.
func TestIgnitionTakesTheMachineConfigs(t *testing.T) {
	seen := 0
	for _, a := range every(t) {
		for _, f := range a.Files {
			if !strings.Contains(f.Content, "kind: MachineConfig\n") {
				continue
			}
			seen++
			if got := ignitionSays(t, f.Content); got != "" {
				t.Errorf("%s: %s: %s", a.Tool, f.Path, got)
			}
			for _, wrong := range []struct{ from, to string }{
				{"    storage:\n", "    networkd: {}\n    storage:\n"},
				{"      - path: ", "      - filesystem: root\n        path: "},
				{"version: 3.2.0", "version: 2.2.0"},
				{"path: /", "path: "},
			} {
				changed := strings.Replace(f.Content, wrong.from, wrong.to, 1)
				if changed == f.Content {
					t.Fatalf("%s has no %q:\n%s", f.Path, wrong.from, f.Content)
				}
				if ignitionSays(t, changed) == "" {
					t.Errorf("Ignition does not mind %q", wrong.to)
				}
			}
		}
	}
	if seen < 2 {
		t.Errorf("only %d MachineConfigs were looked at: want one of kernel settings and one that drains a zone", seen)
	}
}

// ignitionSays is what Ignition has against the configuration in a
// MachineConfig; "" is nothing.
func ignitionSays(t *testing.T, manifest string) string {
	t.Helper()
	var object struct {
		Spec struct {
			Config map[string]any `yaml:"config"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	text, err := json.Marshal(object.Spec.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := ignition32.Parse(text)
	if err != nil {
		return err.Error()
	}
	return report.String()
}
