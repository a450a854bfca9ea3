package virt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// Lab completes the specification of a private lab.
func (m *Machines) Lab(spec *lab.Spec) {
	spec.Machines = m.asked()
	if m.here && m.Workload.Lab == workload.LabVirt {
		spec.TimeScale = cmp.Or(spec.TimeScale, 1)
	}
}

// asked returns how many virtual machines the plan will certainly have at once, one for each object of an
// axis that counts objects; 0 if the plan does not say.
func (m *Machines) asked() int {
	if m.objects == nil {
		return 0
	}
	axis, err := m.Workload.Axis(m.Plan.Axis.Name)
	if err != nil || !slices.Contains([]string{observe.AxisObjects, observe.AxisAllAtOnce, observe.AxisAtOnce}, cmp.Or(axis.Means, axis.Name)) {
		return 0
	}
	return int(m.Plan.Certain())
}

// Refuse refuses a level with more machines that do IO than the lab has real guests: simulated ones do
// none.
func (m *Machines) Refuse(l lab.Spec, level system.Level, objects int, params workload.Params) error {
	if m.objects == nil || !l.HasVirt() || !described.DoesIO(m.Workload, params) || objects <= l.RealGuests {
		return nil
	}
	hint := fmt.Sprintf("give the private lab real ones, --lab-real-guests %d, or ask for fewer machines", objects)
	if !l.Private {
		hint = fmt.Sprintf("make a lab with real ones: plimsoll lab up NAME --virt --real-guests %d", objects)
	}
	return system.Mistakef(hint, "the level %g has %d machines, each of which does IO, and %d of the lab's have a real guest: what is played does no IO", level.Value, objects, l.RealGuests)
}

// Describe completes the fidelity of a run on a lab.
func (m *Machines) Describe(v lab.Spec, of *record.Fidelity) {
	if !m.here || !v.HasVirt() {
		return
	}
	of.Guests = record.Simulated
	note := "virtual machines, their disks and migrations are simulated with planted times; no guest ran"
	if v.RealGuests > 0 {
		note = fmt.Sprintf("virtual machines, their disks and migrations are simulated with planted times; the first %d to start have a real guest, which QEMU runs by emulation (TCG) as %s: its boot, its SSH server and its IO are real, to a file of this machine; a migration of it is played, and a stop of it is a loss of power", v.RealGuests, proc.Least())
	}
	of.Notes = append(of.Notes, note)
	switch {
	case v.TimeScale <= 0 || v.TimeScale == 1:
	case v.RealGuests > 0:
		of.Notes = append(of.Notes, fmt.Sprintf("what is simulated of them passes %g times as fast and what is real does not: times are shown as measured; do not scale them", v.TimeScale))
	default:
		of.TimeScale = v.TimeScale
		of.Notes = append(of.Notes, fmt.Sprintf("what is simulated of them passes %g times as fast: a measured second stands for %[1]g, and what the control plane and this program took themselves counts %[1]g times too much", v.TimeScale))
	}
}

// Readings returns the usage of the limits on machines, as a lab shows it.
func (m *Machines) Readings(l lab.Spec, c *api.Client) (list []record.Reading) {
	if !m.here || !l.HasVirt() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limitsPatience)
	defer cancel()
	raw, err := c.Typed.CoreV1().RESTClient().Get().AbsPath(protocol.VirtLimitsPath).DoRaw(ctx)
	told := make(map[string]map[string]float64)
	if err != nil || json.Unmarshal(raw, &told) != nil {
		return nil
	}
	for source, values := range told {
		list = append(list, record.Reading{Source: source, Values: values})
	}
	return list
}

// limitsPatience bounds the wait for a lab's limits.
const limitsPatience = time.Second
