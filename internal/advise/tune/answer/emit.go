package answer

import (
	"encoding/base64"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Mapping is a YAML mapping that keeps the order of its keys, and leaves out empty values except booleans.
type Mapping [][2]any

// Compact leaves out empty values; nil means that none is left.
func (m Mapping) Compact() (out Mapping) {
	for _, e := range m {
		if v := reflect.ValueOf(e[1]); v.Kind() == reflect.Bool || !v.IsZero() {
			out = append(out, e)
		}
	}
	return out
}

// MarshalYAML gives the mapping to the encoder.
func (m Mapping) MarshalYAML() (any, error) {
	var out yaml.MapSlice
	for _, e := range m.Compact() {
		out = append(out, yaml.MapItem{Key: e[0], Value: e[1]})
	}
	return out, nil
}

// Object returns a Kubernetes object.
func Object(apiVersion, kind string, metadata, spec Mapping) Mapping {
	return Mapping{{"apiVersion", apiVersion}, {"kind", kind}, {"metadata", metadata}, {"spec", spec}}
}

// Manifest writes an object, or a list of objects, as YAML below a comment, if there is one.
func Manifest(object any, comment string) string {
	data, err := yaml.MarshalWithOptions(object, yaml.IndentSequence(false), yaml.UseLiteralStyleIfMultiline(true))
	if err != nil {
		panic(err) // tests of this package find it
	}
	if comment != "" {
		comment = "# " + printable(comment) + "\n"
	}
	return comment + strings.TrimRight(string(data), "\n") + "\n"
}

// Script writes commands for a shell that stops at the first failure.
func Script(what string, list []Command) string {
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

// PoolOf returns a MachineConfigPool with more labels; except worker, it also gets worker's MachineConfigs.
func PoolOf(name string, labels map[string]string, maxUnavailable int64) Mapping {
	const role = "machineconfiguration.openshift.io/role"
	selector := Mapping{{"matchExpressions", []Mapping{{{"key", role}, {"operator", "In"}, {"values", []string{"worker", name}}}}}}
	if name == "worker" || name == "master" {
		selector = MatchLabels(role, name)
	}
	return Object("machineconfiguration.openshift.io/v1", "MachineConfigPool", Mapping{{"name", name}, {"labels", labels}}, Mapping{
		{"machineConfigSelector", selector}, {"nodeSelector", MatchLabels("node-role.kubernetes.io/"+name, "")}, {"maxUnavailable", maxUnavailable},
	})
}

// MatchLabels returns a selector of one label.
func MatchLabels(key, value string) Mapping {
	return Mapping{{"matchLabels", map[string]string{key: value}}}
}

// BuiltInLabel begins the label that the machine config operator gives its own pools.
const BuiltInLabel = "pools.operator.machineconfiguration.openshift.io/"

// ignitionRelease is the version of Ignition's configuration that OpenShift accepts since 4.7.
const ignitionRelease = "3.2.0"

// MachineConfigOf returns a MachineConfig that writes files to the nodes of a pool.
func MachineConfigOf(name, role string, files []Mapping) Mapping {
	return Object("machineconfiguration.openshift.io/v1", "MachineConfig", Mapping{{"name", name}, {"labels", map[string]string{"machineconfiguration.openshift.io/role": role}}}, Mapping{
		{"config", Mapping{{"ignition", Mapping{{"version", ignitionRelease}}}, {"storage", Mapping{{"files", files}}}}},
	})
}

// Ignite returns a file for Ignition, readable by all.
func Ignite(path, content string) Mapping {
	source := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(content))
	return Mapping{{"path", path}, {"mode", 0o644}, {"overwrite", true}, {"contents", Mapping{{"source", source}}}}
}

// Write writes all files below a directory or none. Without force an existing file is an error, fs.ErrExist.
func Write(dir string, files []File, force bool) (paths []string, err error) {
	var list []writeall.File
	for _, f := range files {
		file := writeall.File{In: dir, Name: filepath.FromSlash(f.Path), Data: []byte(f.Content), Mode: 0o644}
		list, paths = append(list, file), append(paths, file.Path())
	}
	return paths, writeall.Files(list, force)
}
