package kubeburner

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Migrate is the operation that makes an object, and calls no subresource.
const Migrate = "migrate"

func operations() []string {
	return []string{"start", "stop", "restart", "pause", "unpause", Migrate, "add-volume", "remove-volume"}
}

// Call returns KubeVirt's resource and subresource that an operation on machines asks; Migrate makes an object of
// the resource.
func (o *Object) Call() (resource, subresource string) {
	resource, subresource = "virtualmachines", strings.ReplaceAll(o.KubeVirtOp, "-", "")
	switch {
	case o.KubeVirtOp == Migrate:
		return "virtualmachineinstancemigrations", ""
	case strings.HasSuffix(o.KubeVirtOp, "pause"), strings.HasSuffix(o.KubeVirtOp, "-volume") && o.InputVars["persist"] != true:
		resource = "virtualmachineinstances"
	}
	return resource, subresource
}

// Replaces reports whether an operation replaces or removes the pods of machines.
func (o *Object) Replaces() bool {
	return slices.Contains([]string{"stop", "restart", Migrate}, o.KubeVirtOp)
}

// ofMachines checks an entry of a kubevirt job.
func (v *validator) ofMachines(path string, o *Object) {
	v.Word(path+".kubeVirtOp", o.KubeVirtOp, operations())
	for name, words := range map[string][]string{"diskType": {"disk", "lun"}, "cache": {"none", "writethrough", "writeback"}} {
		if value, given := o.InputVars[name]; given {
			text, _ := value.(string)
			v.Word(path+".inputVars."+name, text, words)
		}
	}
	for _, name := range []string{"startPaused", "force", "persist"} {
		if value, given := o.InputVars[name]; given && value != true && value != false {
			v.Fail(path+".inputVars."+name, "must be true or false, is %v", value)
		}
	}
	if strings.HasSuffix(o.KubeVirtOp, "-volume") {
		if name, _ := o.InputVars["volumeName"].(string); name == "" {
			v.Fail(path+".inputVars.volumeName", "is missing: %s needs it", o.KubeVirtOp)
		}
	}
}

// forMachines fills in what entries of a kubevirt job work on, and what they wait for.
func (c *Config) forMachines(path string, j *Job) {
	const api = "kubevirt.io/v1"
	if !c.positions.Has(path + ".executionMode") {
		j.ExecutionMode = Sequential
	}
	for i := range j.Objects {
		o, path := &j.Objects[i], strictyaml.Index(path+".objects", i)
		if o.Kind = cmp.Or(o.Kind, "VirtualMachine"); !c.positions.Has(path + ".apiVersion") {
			o.APIVersion = api
		}
		w := &o.WaitOptions
		own := w.states()
		if instance := "VirtualMachineInstance"; o.KubeVirtOp == Migrate && (w.Kind == "" || w.Kind == instance) {
			if w.Kind, w.APIVersion = instance, api; !own {
				w.Kind, w.LabelSelector = "VirtualMachineInstanceMigration", map[string]string{LabelJob: j.Name}
			}
		}
		if len(w.LabelSelector) == 0 {
			w.LabelSelector = o.LabelSelector
		}
		if !own {
			w.CustomStatusPaths = done(o)
		}
	}
}

// done returns what an operation's end is seen by, nil for a machine that is ready.
func done(o *Object) []StatusPath {
	condition := func(name, field, value string) StatusPath {
		p := conditionPath(name)
		return StatusPath{Key: strings.TrimSuffix(p.Key, "status") + field, Value: value}
	}
	paused := condition("Paused", "status", "True")
	switch {
	case o.KubeVirtOp == "stop":
		return []StatusPath{condition("Ready", "status", "False"), condition("Ready", "reason", "VMINotExists")}
	case o.KubeVirtOp == "pause", o.KubeVirtOp == "start" && o.InputVars["startPaused"] == true:
		return []StatusPath{paused}
	case o.KubeVirtOp == "unpause":
		return []StatusPath{{Key: `[.conditions[]? | select(.type == "Paused" and .status == "True")] | length`, Value: "0"}}
	case o.KubeVirtOp == Migrate && o.WaitOptions.Kind == "VirtualMachineInstanceMigration":
		return []StatusPath{{Key: ".phase", Value: "Succeeded"}}
	}
	return nil
}
