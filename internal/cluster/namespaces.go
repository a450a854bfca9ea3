package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

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
	var ns corev1.Namespace
	if err := ns.Unmarshal(object); err != nil {
		return fmt.Errorf("decode namespace: %w", err)
	}
	s.mu.Lock()
	if kind == eventDeleted {
		delete(s.names, ns.Name)
	} else {
		s.names[ns.Name] = true
	}
	s.mu.Unlock()
	s.tell()
	return nil
}

func (s *namespaceSet) listed(_ record.Micros, items func(func([]byte) error) error) error {
	names := make(map[string]bool)
	err := items(func(object []byte) error {
		var ns corev1.Namespace
		if err := ns.Unmarshal(object); err != nil {
			return fmt.Errorf("decode namespace: %w", err)
		}
		names[ns.Name] = true
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.names = names
	s.mu.Unlock()
	s.tell()
	return nil
}

func (s *namespaceSet) tell() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// awaitGone waits until none of the namespaces is there.
func (s *namespaceSet) awaitGone(ctx context.Context, names map[string]bool) error {
	for {
		left := 0
		s.mu.Lock()
		for name := range names {
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
			return fmt.Errorf("%d namespaces are still there: %w", left, context.Cause(ctx))
		}
	}
}

// namespaceWorkers is how many namespaces are made at once.
const namespaceWorkers = 4

// makeNamespaces makes those namespaces of slots that are not there yet, and
// waits until pods can be created in them.
func (t *Target) makeNamespaces(ctx context.Context, slots []plannedSlot) error {
	jobOf := make(map[string]*kubeburner.Job)
	for _, s := range slots {
		if s.Namespace != "" && !t.spaces[s.Namespace] {
			jobOf[s.Namespace] = &t.config.Jobs[s.job]
		}
	}
	names := slices.Sorted(maps.Keys(jobOf))
	// They count as made before they are: one that is half made is removed
	// all the same.
	for _, name := range names {
		t.spaces[name] = true
	}
	return t.inParallel(ctx, len(names), namespaceWorkers, 0, func(ctx context.Context, i int) error {
		if err := t.makeNamespace(ctx, names[i], jobOf[names[i]]); err != nil {
			return fmt.Errorf("create namespace %s: %w", names[i], t.client.unreachable(err))
		}
		return nil
	})
}

// deleteNamespace deletes a namespace of the load if it is there and is this
// run's: a name alone does not say whose it is. The deletion is bound to what
// was looked at, so that nothing made since under the same name goes with it.
func (t *Target) deleteNamespace(ctx context.Context, name string) error {
	path := "/api/v1/namespaces/" + name
	var buf bytes.Buffer
	var ns corev1.Namespace
	err := t.persist(ctx, func(ctx context.Context) (reply, error) {
		ns.Reset()
		r, err := t.client.do(ctx, http.MethodGet, path, nil, "", nil, &buf)
		if err != nil || r.code >= 300 {
			return r, err
		}
		raw, err := openEnvelope(r.body)
		if err != nil {
			return r, err
		}
		return r, ns.Unmarshal(raw)
	}, http.StatusNotFound)
	if err != nil {
		return fmt.Errorf("look at namespace %s before deleting it: %w", name, err)
	}
	if ns.Labels[LabelRun] != t.load.RunID {
		return nil
	}
	options, err := json.Marshal(metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	if err != nil {
		return err
	}
	err = t.persist(ctx, func(ctx context.Context) (reply, error) {
		return t.client.do(ctx, http.MethodDelete, path, nil, "application/json", options, &buf)
	}, http.StatusNotFound, http.StatusConflict) // a conflict: it is another one by now
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// ForeignNamespaceError says that a workload would use a namespace that is not
// this run's: what is in it must not be touched.
type ForeignNamespaceError struct{ Name string }

func (e *ForeignNamespaceError) Error() string {
	return fmt.Sprintf("namespace %s exists and is not this run's", e.Name)
}

func (t *Target) makeNamespace(ctx context.Context, name string, job *kubeburner.Job) error {
	labels := kubeburner.NamespaceLabels(t.load.UUID, t.load.RunID, job.Name)
	maps.Copy(labels, job.NamespaceLabels)
	labels[LabelManagedBy], labels[LabelRun] = ManagedBy, t.load.RunID
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: job.NamespaceAnnotations}}
	_, err := t.client.typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		there, getErr := t.client.typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if there.Labels[LabelRun] != t.load.RunID {
			return &ForeignNamespaceError{name}
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return awaitServiceAccount(ctx, t.client, name)
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
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("its default service account was never made: %w", context.Cause(ctx))
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}
