package follow

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// NamespaceNoun returns the noun of namespaces.
func NamespaceNoun() record.Noun { return record.Noun{One: "namespace", Many: "namespaces"} }

// NamespaceSet follows the namespaces of a run, as the handler of their watch.
type NamespaceSet struct {
	mu      sync.Mutex
	names   map[string]bool
	changes chan struct{} // with room for one notice of a change
	leaving atomic.Int64  // callers that await the end of some
	unseen  atomic.Bool   // this user may not list or watch them
}

// Seen reports whether the user may see namespaces.
func (s *NamespaceSet) Seen() bool { return !s.unseen.Load() }

func (s *NamespaceSet) hide() {
	s.unseen.Store(true)
	s.notify()
}

func (s *NamespaceSet) doubt() bool { return s.leaving.Load() > 0 }

func newNamespaceSet() *NamespaceSet {
	return &NamespaceSet{names: make(map[string]bool), changes: make(chan struct{}, 1)}
}

// Has reports whether the run has a namespace of this name.
func (s *NamespaceSet) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[name]
}

// Changed implements api.Handler.
func (s *NamespaceSet) Changed(_ record.Micros, kind string, object []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	return api.Decoded("namespace", func(ns *corev1.Namespace) { s.names[ns.Name] = kind != api.EventDeleted })(object)
}

// Missing implements api.Handler.
func (s *NamespaceSet) Missing(_ record.Micros, gone []api.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	for _, o := range gone {
		delete(s.names, o.Name)
	}
}

func (s *NamespaceSet) notify() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// Left counts the existing ones of some namespaces, 0 where the user does not see them.
func (s *NamespaceSet) Left(names []string) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.names[name] && s.Seen() {
			left++
		}
	}
	return left
}

// AwaitGone waits until the namespaces are gone, as far as the user sees them.
func (s *NamespaceSet) AwaitGone(ctx context.Context, names []string) error {
	s.leaving.Add(1)
	defer s.leaving.Add(-1)
	for {
		left := s.Left(names)
		if left == 0 {
			return nil
		}
		select {
		case <-s.changes:
		case <-ctx.Done():
			return fmt.Errorf("still there: %s: %w", NamespaceNoun().Count(left), context.Cause(ctx))
		}
	}
}

// AwaitServiceAccount waits for the namespace's default service account: until then pods are refused.
func (a *Actors) AwaitServiceAccount(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ctx, done := a.Wait(ctx, observe.ControllerManager, NamespaceNoun(), func() int { return 1 })
	defer done()
	pause := 5 * time.Millisecond
	for {
		_, err := a.Client.Typed.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get service account default: %w", err)
		}
		if !api.Sleep(ctx, pause) {
			return fmt.Errorf("its default service account was never made: %w", context.Cause(ctx))
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}
