package tune

import (
	"encoding/base64"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// mapping is a YAML mapping: keys and values, which keep their order. What is
// empty is left out, but for truth values.
type mapping [][2]any

// compact leaves out what is empty; nil is nothing left.
func (m mapping) compact() (out mapping) {
	for _, e := range m {
		if v := reflect.ValueOf(e[1]); v.Kind() == reflect.Bool || !v.IsZero() {
			out = append(out, e)
		}
	}
	return out
}

// MarshalYAML gives the mapping to the encoder.
func (m mapping) MarshalYAML() (any, error) {
	var out yaml.MapSlice
	for _, e := range m.compact() {
		out = append(out, yaml.MapItem{Key: e[0], Value: e[1]})
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

// poolOf is a MachineConfigPool as the operator makes it, with a further
// label. MachineConfigs of other pools than worker build on worker's.
func poolOf(name string, labels map[string]string, maxUnavailable int64) mapping {
	const role = "machineconfiguration.openshift.io/role"
	selector := mapping{{"matchExpressions", []mapping{{{"key", role}, {"operator", "In"}, {"values", []string{"worker", name}}}}}}
	if name == "worker" || name == "master" {
		selector = matchLabels(role, name)
	}
	return object("machineconfiguration.openshift.io/v1", "MachineConfigPool", mapping{{"name", name}, {"labels", labels}}, mapping{
		{"machineConfigSelector", selector}, {"nodeSelector", matchLabels("node-role.kubernetes.io/"+name, "")}, {"maxUnavailable", maxUnavailable},
	})
}

func matchLabels(key, value string) mapping {
	return mapping{{"matchLabels", map[string]string{key: value}}}
}

// builtInLabel is what the machine config operator labels its own pools with.
const builtInLabel = "pools.operator.machineconfiguration.openshift.io/"

// ignitionRelease is the version of Ignition's configuration that OpenShift
// takes since 4.7. Version 2's fields filesystem and networkd are not in it.
const ignitionRelease = "3.2.0"

// machineConfigOf makes a MachineConfig that puts files on the nodes of a pool.
func machineConfigOf(name, role string, files []mapping) mapping {
	return object("machineconfiguration.openshift.io/v1", "MachineConfig", mapping{{"name", name}, {"labels", map[string]string{"machineconfiguration.openshift.io/role": role}}}, mapping{
		{"config", mapping{{"ignition", mapping{{"version", ignitionRelease}}}, {"storage", mapping{{"files", files}}}}},
	})
}

// ignite is a file as Ignition writes it, readable by all.
func ignite(path, content string) mapping {
	source := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(content))
	return mapping{{"path", path}, {"mode", 0o644}, {"overwrite", true}, {"contents", mapping{{"source", source}}}}
}
