package kubeburner

import (
	"os"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// FuzzParse asks that no configuration makes the package panic and that every
// error is a list of problems.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"small.yml", "full.yml", "supported.yml"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.ReplaceAll(string(text), "{{ .SIZE }}", "1"))
	}
	f.Add("jobs:\n- name: {{ .UUID }}\n  objects: [{}]\n  incrementalLoad: {}\n  hooks: [{}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "{{") && strings.ContainsAny(text, "0123456789") {
			return // sprig's functions can be asked for any amount of memory
		}
		c, err := Parse("c.yml", []byte(text), Input{UUID: "u"})
		if err == nil {
			Default(c)
			Served(c)
			if err = Validate(c); err == nil {
				for i := range c.Jobs {
					for s := range c.Jobs[i].Slots(0, 3) {
						if s.Replica > 10 {
							break
						}
					}
				}
				return
			}
		}
		if strictyaml.Problems(err) == nil {
			t.Errorf("%q: %v is no list of problems", text, err)
		}
	})
}
