package lint

import (
	"strings"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// lookAtObject looks at an object, and at those inside of a list or a template.
func lookAtObject(out *report, v value) {
	o := &object{
		value: v, apiVersion: v.get("apiVersion").text(), kind: v.get("kind").text(),
		namespace: v.get("metadata", "namespace").text(), name: v.get("metadata", "name").text(),
	}
	if group, _, ok := strings.Cut(o.apiVersion, "/"); ok {
		o.group = group
	}
	inner := func(key string) {
		for _, item := range v.get(key).items() {
			if item.node.Kind == strictyaml.Mapping {
				lookAtObject(out, item)
			}
		}
	}
	if o.kind == "List" || strings.HasSuffix(o.kind, "List") && v.get("items").node != nil && o.kind != "AllowList" {
		inner("items")
		return
	}
	out.recognised = true
	if o.kind == "Template" && o.group == "template.openshift.io" {
		v.doc.templated = true
		inner("objects")
		return
	}
	out.objects = append(out.objects, o)
	if t := out.Kind(o.apiVersion, o.kind); t != nil {
		(&fit{out: out, doc: v.doc, what: article(o.kind), whole: !v.doc.templated}).check(v, t)
		if o.kind != "KubeletConfiguration" {
			checkNamed(out, o)
		}
	}
	checkKind(out, o)
}

// checkNamed finds objects without a name.
func checkNamed(out *report, o *object) {
	if metadata := o.get("metadata"); metadata.get("name").text() == "" && metadata.get("generateName").text() == "" {
		out.find("missing-name", o.closest("metadata", "name"), "write metadata.name", article(o.kind)+" without a name")
	}
}

// checkKind holds an object against the rules of its kind.
func checkKind(out *report, o *object) {
	spec := o.get("spec")
	switch o.kind {
	case "VirtualMachine":
		checkVirtualMachine(out, o)
	case "VirtualMachineInstance":
		checkMachine(out, o, spec)
	case "VirtualMachineInstanceReplicaSet":
		checkMachine(out, o, spec.get("template", "spec"))
	case "VirtualMachinePool":
		checkMachine(out, o, spec.get("virtualMachineTemplate", "spec", "template", "spec"))
	case "StorageProfile":
		checkCloneStrategy(out, spec)
		if e, ok := o.get("metadata").entry("namespace"); ok {
			out.find("cluster-scoped", e.keyAt(), "remove it", "a StorageProfile has no namespace", o.get("metadata").remove("namespace")...)
		}
	case "MachineConfigPool":
		checkPool(out, o)
	case "MachineConfig":
		if config := spec.get("config"); config.node != nil {
			ignitionConfig(out, config, o.get("metadata", "labels", roleLabel).text())
		}
	case "KubeletConfig":
		checkKubeletConfig(out, o)
	case "KubeletConfiguration":
		checkKubelet(out, o.value)
	case "Tuned":
		checkTuned(out, spec)
	case "ConfigMap", "Secret":
		for _, e := range append(o.get("data").entries(), o.get("stringData").entries()...) {
			t, ok := e.literal(e.key())
			if o.kind == "Secret" && strings.HasPrefix(e.path, "data") {
				t, ok = e.decoded(e.key())
			}
			if ok && strings.EqualFold(e.key(), "userdata") {
				checkUserData(out, t)
			} else if ok && utf8.ValidString(t.data) && wouldRecognise(t) {
				out.look(out, t)
			}
		}
	case "Network":
		if o.group == "config.openshift.io" || o.group == "operator.openshift.io" {
			checkClusterNetworks(out, spec)
		}
	default:
		checkPods(out, spec)
	}
}

// checkPods looks at what no API server knows of pods: the kernel's settings.
func checkPods(out *report, spec value) {
	spec.walk(func(e entry) bool {
		if e.key() != "sysctls" {
			return true
		}
		for _, s := range e.items() {
			key, val := s.get("name"), s.get("value")
			if key.text() != "" && val.text() != "" {
				key.path, val.path = s.path, s.path
				checkSetting(out, setting{key: key.text(), value: val.text(), atKey: key.at(), atValue: val.at(), scope: "pod:" + e.path})
			}
		}
		return false
	})
}
