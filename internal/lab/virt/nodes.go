package virt

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubevirt "kubevirt.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab"
)

// kvm is the device that every machine needs.
const kvm = "devices.kubevirt.io/kvm"

// prepared is how many nodes machines can run on.
func (w *world) prepared() (n int) {
	for _, node := range w.nodes.all() {
		if node.Labels[kubevirt.NodeSchedulable] != "" {
			n++
		}
	}
	return n
}

// syncNode prepares a simulated node for machines, as virt-handler does, and
// loses it where that is planted.
func (w *world) syncNode(ctx context.Context, name string) (time.Duration, error) {
	node, ok := w.nodes.get(name)
	if !ok || node.Labels[lab.FidelityLabel] != lab.FidelitySimulated {
		return 0, nil
	}
	if node.Labels[kubevirt.NodeSchedulable] == "" {
		if w.Figures.KVMPerNode > 0 {
			devices := fmt.Appendf(nil, `{"status":{"capacity":{%q:"%d"},"allocatable":{%[1]q:"%[2]d"}}}`, kvm, w.Figures.KVMPerNode)
			if _, err := w.free.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, devices, metav1.PatchOptions{}, "status"); err != nil {
				return 0, fmt.Errorf("give devices: %w", err)
			}
		}
		label := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, kubevirt.NodeSchedulable)
		if _, err := w.free.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			return 0, fmt.Errorf("label: %w", err)
		}
	}
	return 0, nil
}

func (w *world) watchNode(vmi *kubevirt.VirtualMachineInstance) {}

func (w *world) runPools(ctx context.Context) error { return nil }
