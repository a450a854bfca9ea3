package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// NamespaceNoun is what a namespace is called.
func NamespaceNoun() record.Noun { return record.Noun{One: "namespace", Many: "namespaces"} }

// NamespaceSet follows the namespaces of a run. It handles their watch.
type NamespaceSet struct {
	mu      sync.Mutex
	names   map[string]bool
	changes chan struct{} // has room for one: something changed
	leaving int           // how many wait for the end of some
	unseen  bool          // this user may not list them, or not watch them
}

// Seen reports whether the user may see namespaces.
func (s *NamespaceSet) Seen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unseen
}

func (s *NamespaceSet) hide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unseen = true
	s.notify()
}

// doubt reports whether the end of one is waited for.
func (s *NamespaceSet) doubt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving > 0
}

func newNamespaceSet() *NamespaceSet {
	return &NamespaceSet{names: make(map[string]bool), changes: make(chan struct{}, 1)}
}

// Has reports whether a namespace is one of the run's that is there.
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

// Left is how many of the namespaces are there, 0 where the user does not see them.
func (s *NamespaceSet) Left(names []string) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.names[name] && !s.unseen {
			left++
		}
	}
	return left
}

// AwaitGone waits until none of the namespaces is there, as far as the user sees them.
func (s *NamespaceSet) AwaitGone(ctx context.Context, names []string) error {
	leave := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leaving += n
	}
	leave(1)
	defer leave(-1)
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

// AwaitServiceAccount waits until the namespace has its default service
// account: pods are refused before.
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
