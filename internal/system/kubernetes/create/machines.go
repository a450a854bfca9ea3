package create

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// call makes the request of a kubevirt job to a machine.
func (m *Maker) call(ctx context.Context, s *Sender, a *asking, iteration int) error {
	o, t, from := &m.job.Objects[m.index], a.about, a.of
	a.contentType = "application/json"
	resource, subresource := o.Call()
	if o.KubeVirtOp == kubeburner.Migrate {
		m.migrate(a, iteration)
		return nil
	}
	a.method = http.MethodPut
	a.path = api.Collection(schema.GroupVersionResource{Group: "subresources.kubevirt.io", Version: "v1", Resource: resource}, t.namespace) + "/" + t.name + "/" + subresource
	options := make(map[string]any)
	force := o.InputVars["force"] == true
	switch {
	case o.KubeVirtOp == "start":
		if paused, given := o.InputVars["startPaused"]; given {
			options["paused"] = paused
		}
		if t.slot != "" && !s.holdings.filled(t.slot) {
			a.slot, a.units, a.grouped = t.slot, 1, s.objects == nil
			if m.all.follows(machine) {
				a.beside = []beside{{machine, t.name}}
			}
		}
		a.answered = func([]byte) { s.started(a) }
	case o.KubeVirtOp == "stop" && force:
		options["gracePeriod"] = 0
	case o.KubeVirtOp == "restart":
		if force {
			options["gracePeriodSeconds"] = 0
		}
		from.restarts(t)
	case strings.HasSuffix(o.KubeVirtOp, "-volume"):
		// Another change of the machine may overtake it.
		a.contended = true
		volume := fmt.Sprint(o.InputVars["volumeName"])
		if options["name"] = volume; o.KubeVirtOp == "add-volume" {
			if err := m.hotplug(ctx, s, options, t.namespace, volume); err != nil {
				return err
			}
		}
	}
	var err error
	a.body, err = json.Marshal(options)
	return err
}

// migrate makes the request a migration of the run.
func (m *Maker) migrate(a *asking, iteration int) {
	of := a.about
	a.begins, a.units, a.method = false, 0, http.MethodPost
	a.kind, a.name = migration, fmt.Sprintf("%s-%s-%d", of.name, m.job.Name, iteration)
	if m.all.follows(migration) {
		a.beside = []beside{{migration, a.name}}
	}
	a.path = api.Collection(schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstancemigrations"}, of.namespace)
	a.body, _ = json.Marshal(map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": a.kind, "spec": map[string]any{"vmiName": of.name},
		"metadata": map[string]any{"name": a.name, "namespace": of.namespace, "labels": m.labels(m.index, fmt.Sprint(iteration), "1")},
	})
	name := api.ObjectName(of.namespace, a.name)
	a.answered = func([]byte) {
		for _, w := range m.waits {
			w.expect(a.kind, name)
		}
	}
}

// hotplug adds the disk and the source of a volume: its DataVolume if there is one, else its claim.
func (m *Maker) hotplug(ctx context.Context, s *Sender, options map[string]any, namespace, volume string) error {
	vars := m.job.Objects[m.index].InputVars
	path := api.Collection(schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}, namespace) + "/" + volume
	r, err := s.Client.Try(ctx, http.MethodGet, path, nil, "", nil, new(bytes.Buffer))
	if err != nil {
		return fmt.Errorf("look for the volume %s/%s: %w", namespace, volume, s.Client.Unreachable(err))
	}
	source := map[string]any{"persistentVolumeClaim": map[string]any{"claimName": volume, "hotpluggable": true}}
	if r.Code < 300 {
		source = map[string]any{"dataVolume": map[string]any{"name": volume, "hotpluggable": true}}
	}
	text := func(name, otherwise string) string {
		value, _ := vars[name].(string)
		return cmp.Or(value, otherwise)
	}
	disk := map[string]any{text("diskType", "disk"): map[string]any{"bus": "scsi"}, "serial": text("serial", volume)}
	if cache := text("cache", ""); cache != "" {
		disk["cache"] = cache
	}
	options["volumeSource"], options["disk"] = source, disk
	return nil
}

// started counts the pod of a started machine, which did not count while the machine was stopped.
func (s *Sender) started(a *asking) {
	if a.units == 0 {
		return
	}
	_, further := a.slots()
	s.holdings.fill(a.about.slot, a.units, further)
	if a.grouped {
		s.followed.ExpectMade(a.units)
	}
}

// restarts notes that a machine is about to be restarted.
func (c *chosen) restarts(t target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before[t.uid] = t.ready
}
