package kubeburner

import (
	_ "embed"
	"maps"
	"path"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

//go:embed ocp.yml
var ofOCP []byte

// OCP returns the values that kube-burner-ocp gives the variables of a configuration that has the name of one of its
// own, and for those that it has no value for how its users find one. Both are empty for other names.
func OCP(file string) (values map[string]any, asks map[string]string) {
	values, asks = ocp(file), make(map[string]string)
	for name, value := range values {
		special, is := value.(map[string]any)
		if text, has := special["text"]; has {
			values[name] = text
		} else if is {
			asks[name] = special["ask"].(string)
			delete(values, name)
		}
	}
	return values, asks
}

// ocp returns what the table has for a configuration, by variable.
func ocp(file string) map[string]any {
	var all map[string]map[string]any
	if _, err := strictyaml.Decode("ocp.yml", ofOCP, &all); err != nil {
		panic("kubeburner: " + err.Error())
	}
	values := make(map[string]any)
	if own, known := all[strings.TrimSuffix(path.Base(file), path.Ext(file))]; known {
		maps.Copy(values, all["*"])
		maps.Copy(values, own)
	}
	return values
}

// timed gives variables the type of a duration where kube-burner-ocp does: its templates compare them with 0.
func timed(file string, data map[string]any) {
	for name, value := range ocp(file) {
		of, isText := value.(string)
		given, ok := data[name].(string)
		if _, err := time.ParseDuration(of); err != nil || !isText || !ok {
			continue
		}
		if d, err := time.ParseDuration(given); err == nil {
			data[name] = d
		}
	}
}
