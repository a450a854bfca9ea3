// Package objects finds objects of a cluster that will not do what their author meant. It compares them with
// their schemas, with the rules of their kinds, and with each other.
package objects

import (
	"strings"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/advise/lint/host"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// LookAtObject looks at an object, and at those inside of a list or a template.
func LookAtObject(out *report.Report, v reading.Value) {
	o := &report.Object{
		Value: v, APIVersion: v.Get("apiVersion").Text(), Kind: v.Get("kind").Text(),
		Namespace: v.Get("metadata", "namespace").Text(), Name: v.Get("metadata", "name").Text(),
	}
	if group, _, ok := strings.Cut(o.APIVersion, "/"); ok {
		o.Group = group
	}
	inner := func(key string) {
		for _, item := range v.Get(key).Items() {
			if item.Node.Kind == strictyaml.Mapping {
				LookAtObject(out, item)
			}
		}
	}
	if o.Kind == "List" || strings.HasSuffix(o.Kind, "List") && v.Get("items").Node != nil && o.Kind != "AllowList" {
		inner("items")
		return
	}
	if o.Kind == "Template" && o.Group == "template.openshift.io" {
		out.Recognised = true
		v.Doc.Templated = true
		inner("objects")
		return
	}
	out.Objects = append(out.Objects, o)
	if t := out.Kind(o.APIVersion, o.Kind); t != nil {
		(&Fit{Out: out, Doc: v.Doc, What: report.Article(o.Kind), whole: !v.Doc.Templated}).Check(v, t)
		if metadata := o.Get("metadata"); o.Kind != "KubeletConfiguration" && metadata.Get("name").Text() == "" && metadata.Get("generateName").Text() == "" {
			out.Find("missing-name", o.Closest("metadata", "name"), "write metadata.name", report.Article(o.Kind)+" without a name")
		}
	}
	builtin := out.Builtin(o.APIVersion, o.Kind)
	if builtin != nil {
		(&Fit{Out: out, Doc: v.Doc, What: report.Article(o.Kind)}).Check(v, builtin)
	}
	if !checkKind(out, o) && builtin == nil && out.Kind(o.APIVersion, o.Kind) == nil {
		out.Note("", v.EntryOrSelf("kind"), "not checked: lint does not know the fields of %s in %s", report.Article(o.Kind), o.APIVersion)
		return
	}
	out.Recognised = true
}

// checkKind applies the rules of an object's kind. It reports whether there are any.
func checkKind(out *report.Report, o *report.Object) bool {
	spec := o.Get("spec")
	switch o.Kind {
	case "VirtualMachine":
		checkVirtualMachine(out, o)
	case "VirtualMachineInstance":
		checkMachine(out, o, spec)
	case "VirtualMachineInstanceReplicaSet":
		checkMachine(out, o, spec.Get("template", "spec"))
	case "VirtualMachinePool":
		checkMachine(out, o, spec.Get("virtualMachineTemplate", "spec", "template", "spec"))
	case "StorageProfile":
		CheckCloneStrategy(out, spec)
		if e, ok := o.Get("metadata").Entry("namespace"); ok {
			out.Find("cluster-scoped", e.KeyAt(), "remove it", "a StorageProfile has no namespace", o.Get("metadata").Remove("namespace")...)
		}
	case "MachineConfigPool":
		checkPool(out, o)
	case "MachineConfig":
		if config := spec.Get("config"); config.Node != nil {
			IgnitionConfig(out, config, o.Get("metadata", "labels", roleLabel).Text())
		}
	case "KubeletConfig":
		checkKubeletConfig(out, o)
	case "KubeletConfiguration":
		CheckKubelet(out, o.Value)
	case "Tuned":
		host.CheckTuned(out, spec)
	case "ConfigMap", "Secret":
		for _, e := range append(o.Get("data").Entries(), o.Get("stringData").Entries()...) {
			t, ok := e.Literal(e.Key())
			if o.Kind == "Secret" && strings.HasPrefix(e.Path, "data") {
				t, ok = e.Decoded(e.Key())
			}
			if ok && strings.EqualFold(e.Key(), "userdata") {
				CheckUserData(out, t)
			} else if ok && utf8.ValidString(t.Data) && reading.WouldRecognise(t) {
				out.Look(out, t)
			}
		}
	case "Network":
		if o.Group == "config.openshift.io" || o.Group == "operator.openshift.io" {
			checkClusterNetworks(out, spec)
		}
	default:
		checkPods(out, spec)
		return false
	}
	return true
}

// checkPods looks at the kernel's settings in pods, which no API server knows.
func checkPods(out *report.Report, spec reading.Value) {
	spec.Walk(func(e reading.Entry) bool {
		if e.Key() != "sysctls" {
			return true
		}
		for _, s := range e.Items() {
			key, val := s.Get("name"), s.Get("value")
			if key.Text() != "" && val.Text() != "" {
				key.Path, val.Path = s.Path, s.Path
				host.CheckSetting(out, report.Setting{Key: key.Text(), Value: val.Text(), AtKey: key.At(), AtValue: val.At(), Scope: "pod:" + e.Path})
			}
		}
		return false
	})
}
