package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
)

// namespaceNoun is what a namespace is called.
func namespaceNoun() record.Noun { return record.Noun{One: "namespace", Many: "namespaces"} }

// namespaceSet follows the namespaces of a run. It handles their watch.
type namespaceSet struct {
	mu      sync.Mutex
	names   map[string]bool
	changes chan struct{} // has room for one: something changed
}

func newNamespaceSet() *namespaceSet {
	return &namespaceSet{names: make(map[string]bool), changes: make(chan struct{}, 1)}
}

func (s *namespaceSet) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}

func (s *namespaceSet) changed(_ record.Micros, kind string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return decoded("namespace", func(ns *corev1.Namespace) { s.names[ns.Name] = kind != eventDeleted })(object)
}

func (s *namespaceSet) listed(_ record.Micros, items func(func([]byte) error) error) error {
	names := make(map[string]bool)
	if err := items(decoded("namespace", func(ns *corev1.Namespace) { names[ns.Name] = true })); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	s.names = names
	return nil
}

func (s *namespaceSet) notify() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// awaitGone waits until none of the namespaces is there.
func (s *namespaceSet) awaitGone(ctx context.Context, names []string) error {
	for {
		left := 0
		s.mu.Lock()
		for _, name := range names {
			if s.names[name] {
				left++
			}
		}
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-s.changes:
		case <-ctx.Done():
			return fmt.Errorf("still there: %s: %w", namespaceNoun().Count(left), context.Cause(ctx))
		}
	}
}

// namespaceWorkers is how many namespaces are made at once.
const namespaceWorkers = 4

// holdings are what a run has made beside its pods: namespaces, and the paths
// of objects that none of them takes along.
type holdings struct {
	*shared
	mu             sync.Mutex
	spaces, strays map[string]bool
}

func newHoldings(common *shared) *holdings {
	return &holdings{shared: common, spaces: make(map[string]bool), strays: make(map[string]bool)}
}

// add notes an object that was created.
func (h *holdings) add(m *manifest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.spaces[m.namespace] {
		h.strays[m.path+"/"+m.name] = true
	}
}

func (h *holdings) list() (spaces, strays []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.spaces)), slices.Sorted(maps.Keys(h.strays))
}

func (h *holdings) count() (spaces, strays int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.spaces), len(h.strays)
}

// dropSpaces forgets namespaces that are gone.
func (h *holdings) dropSpaces(gone ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range gone {
		delete(h.spaces, name)
	}
}

// dropStray forgets an object that is gone, by its path.
func (h *holdings) dropStray(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.strays, path)
}

// makeNamespaces makes those namespaces of slots that are not there yet, and
// waits until pods can be created in them.
func (h *holdings) makeNamespaces(ctx context.Context, slots []plannedSlot) error {
	jobOf := make(map[string]*kubeburner.Job)
	h.mu.Lock()
	for _, s := range slots {
		if s.Namespace != "" && !h.spaces[s.Namespace] {
			jobOf[s.Namespace] = s.maker.job
		}
	}
	// They count as made before they are: one that is half made is removed
	// all the same.
	for name := range jobOf {
		h.spaces[name] = true
	}
	h.mu.Unlock()
	names := slices.Sorted(maps.Keys(jobOf))
	return inParallel(ctx, len(names), namespaceWorkers, 0, func(ctx context.Context, i int) error {
		if err := h.makeNamespace(ctx, names[i], jobOf[names[i]]); err != nil {
			return fmt.Errorf("create namespace %s: %w", names[i], h.client.unreachable(err))
		}
		return nil
	})
}

// makeNamespace makes a namespace. One that is not of this run is refused: what
// is in it must not be touched.
func (h *holdings) makeNamespace(ctx context.Context, name string, job *kubeburner.Job) error {
	labels := kubeburner.NamespaceLabels(h.load.UUID, h.load.RunID, job.Name)
	maps.Copy(labels, job.NamespaceLabels)
	labels[LabelManagedBy], labels[LabelRun] = ManagedBy, h.load.RunID
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: job.NamespaceAnnotations}}
	_, err := h.client.typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		there, getErr := h.client.typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if there.Labels[LabelRun] != h.load.RunID {
			return target.Mistakef("", "namespace %s exists and is not of this run", name)
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return awaitServiceAccount(ctx, h.client, name)
}

// awaitServiceAccount waits until the namespace has its default service
// account: pods are refused before.
func awaitServiceAccount(ctx context.Context, c *client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pause := 5 * time.Millisecond
	for {
		_, err := c.typed.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get service account default: %w", err)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("its default service account was never made: %w", context.Cause(ctx))
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}
