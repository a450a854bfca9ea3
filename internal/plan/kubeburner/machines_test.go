package kubeburner

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Each operation has its call, and an end that is seen of a machine before and after it.
func TestOperationsOnMachines(t *testing.T) {
	const ready, stopped = `{"conditions":[{"type":"Ready","status":"True"}]}`, `{"conditions":[{"type":"Ready","status":"False","reason":"VMINotExists"}]}`
	const paused = `{"conditions":[{"type":"Ready","status":"True"},{"type":"Paused","status":"True"}]}`
	for _, tt := range []struct {
		why, object   string
		call          string
		waits         string // its kind and labels
		before, after string // statuses
	}{
		{"a start", "{kubeVirtOp: start}", "virtualmachines/start", "VirtualMachine map[a:b]", stopped, ready},
		{"a start that pauses", "{kubeVirtOp: start, inputVars: {startPaused: true}}", "virtualmachines/start", "VirtualMachine map[a:b]", ready, paused},
		{"a stop", "{kubeVirtOp: stop}", "virtualmachines/stop", "VirtualMachine map[a:b]", ready, stopped},
		{"a restart", "{kubeVirtOp: restart}", "virtualmachines/restart", "VirtualMachine map[a:b]", stopped, ready},
		{"a pause", "{kubeVirtOp: pause}", "virtualmachineinstances/pause", "VirtualMachine map[a:b]", ready, paused},
		{"its end", "{kubeVirtOp: unpause}", "virtualmachineinstances/unpause", "VirtualMachine map[a:b]", paused, ready},
		{"its end where the condition stays", "{kubeVirtOp: unpause}", "virtualmachineinstances/unpause", "VirtualMachine map[a:b]", paused, `{"conditions":[{"type":"Paused","status":"False"}]}`},
		{"a migration is an object of the job", "{kubeVirtOp: migrate}", "virtualmachineinstancemigrations/", "VirtualMachineInstanceMigration map[kube-burner.io/job:j]", `{"phase":"Running"}`, `{"phase":"Succeeded"}`},
		{"a migration by the instance's own state", "{kubeVirtOp: migrate, waitOptions: {customStatusPaths: [{key: .migrationState.completed, value: 'true'}]}}", "virtualmachineinstancemigrations/", "VirtualMachineInstance map[a:b]", `{"migrationState":{}}`, `{"migrationState":{"completed":true}}`},
		{"a volume of an instance", "{kubeVirtOp: add-volume, inputVars: {volumeName: v}}", "virtualmachineinstances/addvolume", "VirtualMachine map[a:b]", stopped, ready},
		{"a volume of the machine", "{kubeVirtOp: remove-volume, inputVars: {volumeName: v, persist: true}}", "virtualmachines/removevolume", "VirtualMachine map[a:b]", stopped, ready},
		{"options of one's own", "{kubeVirtOp: stop, waitOptions: {labelSelector: {c: d}, customStatusPaths: [{key: .printableStatus, value: Stopped}]}}", "virtualmachines/stop", "VirtualMachine map[c:d]", ready, `{"printableStatus":"Stopped"}`},
	} {
		c, err := Parse("c.yml", []byte("jobs:\n- name: j\n  jobType: kubevirt\n  qps: 1\n  objects: ["+tt.object[:len(tt.object)-1]+", labelSelector: {a: b}}]\n"), Input{})
		if err != nil {
			t.Fatalf("%s: %v", tt.why, err)
		}
		Default(c)
		Default(c) // changes nothing
		if err := Validate(c); err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
		if refused, noted := Served(c); len(refused)+len(noted) > 0 {
			t.Errorf("%s: refused %v, noted %v", tt.why, refused, noted)
		}
		o := &c.Jobs[0].Objects[0]
		resource, subresource := o.Call()
		kind := o.WaitOptions.Kind
		if kind == "" {
			kind = o.Kind
		}
		if got := resource + "/" + subresource; got != tt.call || fmt.Sprint(kind, " ", o.WaitOptions.LabelSelector) != tt.waits || c.Jobs[0].ExecutionMode != Sequential {
			t.Errorf("%s: calls %s, waits for %s %v, %s", tt.why, got, kind, o.WaitOptions.LabelSelector, c.Jobs[0].ExecutionMode)
		}
		conditions, err := o.WaitOptions.Conditions(kind)
		if err != nil {
			t.Fatalf("%s: %v", tt.why, err)
		}
		for status, want := range map[string]bool{tt.before: false, tt.after: true} {
			var value any
			if err := json.Unmarshal([]byte(status), &value); err != nil {
				t.Fatal(err)
			}
			if unmet, err := conditions.Unmet(t.Context(), value); err != nil || (unmet == "") != want {
				t.Errorf("%s: of %s: %q, %v", tt.why, status, unmet, err)
			}
		}
	}
}
