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
	var all map[string]map[string]any
	if _, err := strictyaml.Decode("ocp.yml", ofOCP, &all); err != nil {
		panic("kubeburner: " + err.Error())
	}
	own, known := all[strings.TrimSuffix(path.Base(file), path.Ext(file))]
	values, asks = make(map[string]any), make(map[string]string)
	if known {
		maps.Copy(values, all["*"])
		maps.Copy(values, own)
	}
	for name, value := range values {
		if ask, is := value.(map[string]any); is {
			asks[name] = ask["ask"].(string)
			delete(values, name)
		}
	}
	return values, asks
}

// timed gives variables the type of a duration where kube-burner-ocp does: its templates compare them with 0.
func timed(file string, data map[string]any) {
	values, _ := OCP(file)
	for name, value := range values {
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
