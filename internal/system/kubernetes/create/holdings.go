package create

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Holdings lists what a run made beside its pods: namespaces, and the paths of objects outside of them.
type Holdings struct {
	*prepared.Run
	actors         *follow.Actors
	mu             sync.Mutex
	spaces, strays map[string]bool
	collections    map[string]bool    // of all strays so far
	slots          map[string]filling // by name, where a configuration runs as it stands
	released       int                // objects that the run removed since the target was last empty
}

// filling holds the number of objects in a slot, and the further slots of its request, each of one object.
type filling struct {
	units   int
	further []string
}

// NewHoldings returns the holdings of a run that has made nothing yet.
func NewHoldings(common *prepared.Run, actors *follow.Actors) *Holdings {
	return &Holdings{Run: common, actors: actors, spaces: make(map[string]bool), strays: make(map[string]bool), collections: make(map[string]bool), slots: make(map[string]filling)}
}

func (h *Holdings) fill(slot string, units int, further []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[slot] = filling{units, append(h.slots[slot].further, further...)}
}

// filled reports whether the run has made the objects of a slot, and not removed them.
func (h *Holdings) filled(slot string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[slot].units > 0
}

// slotsOf returns the slots of an object that the run has made and not removed.
func (h *Holdings) slotsOf(kind string, of target) (slots []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range []string{of.slot, kind + "/" + api.ObjectName(of.namespace, of.name)} {
		if _, filled := h.slots[name]; filled {
			slots = append(slots, name)
		}
	}
	return slots
}

// release notes that the run has emptied slots, and returns them with those of the same requests. What else a
// machine has stays unless it is deleted.
func (h *Holdings) release(slots []string, deleted bool) (released []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, slot := range slots {
		released = append(released, h.empty(slot, deleted)...)
	}
	return released
}

// empty empties a slot. The caller holds mu.
func (h *Holdings) empty(slot string, deleted bool) (released []string) {
	f := h.slots[slot]
	if delete(h.slots, slot); f.units > 0 {
		h.released, released = h.released+f.units, []string{slot}
	}
	for _, name := range f.further {
		if deleted || strings.HasPrefix(name, machine+"/") {
			h.released, released = h.released+1, append(released, name)
		} else {
			h.slots[slot] = filling{0, append(h.slots[slot].further, name)}
		}
	}
	return released
}

// releaseSpace notes that the run has removed a namespace, and returns its slots.
func (h *Holdings) releaseSpace(namespace string) (slots []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for slot := range h.slots {
		if strings.Contains("/"+slot, "/"+namespace+"/") {
			slots = append(slots, h.empty(slot, true)...)
		}
	}
	return slots
}

// Released counts the objects that the run has removed since the target was last empty.
func (h *Holdings) Released() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.released
}

// Forget forgets the slots, once the target is empty.
func (h *Holdings) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.slots)
	h.released = 0
}

func (h *Holdings) add(m *manifest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spaces[m.namespace] {
		return
	}
	h.collections[m.path] = true
	if m.namespace == "" || m.namespace != h.Load.Namespace || m.kind != "Pod" { // such pods are followed, and so removed
		h.strays[m.path+"/"+m.name] = true
	}
}

// List returns the names of the namespaces and the paths of the other objects.
func (h *Holdings) List() (spaces, strays []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.spaces)), slices.Sorted(maps.Keys(h.strays))
}

// Collections returns the paths of the collections with objects outside of the run's namespaces.
func (h *Holdings) Collections() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.collections))
}

// Count counts the namespaces and the other objects.
func (h *Holdings) Count() (spaces, strays int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.spaces), len(h.strays)
}

// DropSpaces forgets removed namespaces.
func (h *Holdings) DropSpaces(gone ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range gone {
		delete(h.spaces, name)
	}
}

// DropStray forgets a removed object, by its path.
func (h *Holdings) DropStray(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.strays, path)
}

// MakeNamespaces makes the missing namespaces of slots, and waits until pods can be created in them.
func (h *Holdings) MakeNamespaces(ctx context.Context, slots []PlannedSlot) error {
	jobOf := make(map[string]*kubeburner.Job)
	h.mu.Lock()
	for _, s := range slots {
		if s.maker.spaces && s.Namespace != "" && s.Namespace != h.Load.Namespace && !h.spaces[s.Namespace] {
			jobOf[s.Namespace] = s.maker.job
		}
	}
	// They count as made from here: a half-made one must be removed too.
	for name := range jobOf {
		h.spaces[name] = true
	}
	h.mu.Unlock()
	names := slices.Sorted(maps.Keys(jobOf))
	return api.InParallel(ctx, len(names), 4, 0, func(ctx context.Context, i int) error {
		if err := h.makeNamespace(ctx, names[i], jobOf[names[i]]); err != nil {
			return fmt.Errorf("create namespace %s: %w", names[i], h.Client.Unreachable(err))
		}
		return nil
	})
}

// makeNamespace makes a namespace. It refuses one of others, whose objects must not be touched.
func (h *Holdings) makeNamespace(ctx context.Context, name string, job *kubeburner.Job) error {
	labels := kubeburner.NamespaceLabels(h.Load.UUID, h.Load.RunID, job.Name)
	maps.Copy(labels, job.NamespaceLabels)
	labels[api.LabelManagedBy], labels[api.LabelRun] = api.ManagedBy, h.Load.RunID
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: job.NamespaceAnnotations}}
	_, err := h.Client.Typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	err = api.Settle(err, h.Load.RunID, func() (metav1.Object, error) {
		return h.Client.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return system.Mistakef("--namespace "+name+" runs in it, and leaves it; or name another one in the configuration", "namespace %s exists and is not of this run", name)
	}
	if err != nil {
		return err
	}
	return h.actors.AwaitServiceAccount(ctx, name)
}
