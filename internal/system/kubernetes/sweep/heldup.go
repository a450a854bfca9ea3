package sweep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// heldUp is a deleted object that does not go, with the reason.
type heldUp struct {
	what, why string
	// patience bounds the wait without progress; 0 waits as long as the removal may: the holder lets go.
	patience time.Duration
	api      bool // the reason is an API that does not answer
}

// HeldUpError says who holds up a removal.
type HeldUpError struct{ What string }

func (e *HeldUpError) Error() string { return e.What }

// Bounds of the wait for a hold-up without progress.
const (
	brokenPatience    = 10 * time.Second // an API that does not answer
	refusedPatience   = 30 * time.Second // content that cannot be deleted
	finalizerPatience = time.Minute      // an unknown finalizer
	nameAfter         = 3 * time.Second  // time before it is named
)

// namespaceHeldUp says what holds up the end of a namespace, by its conditions and finalizers.
func namespaceHeldUp(ns *corev1.Namespace) (h heldUp, is bool) {
	h.what = ns.Name
	if ns.DeletionTimestamp == nil {
		return h, false
	}
	says := make(map[corev1.NamespaceConditionType]string)
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			says[c.Type] = redact.Cut(c.Message)
		}
	}
	for _, kind := range []corev1.NamespaceConditionType{corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure} {
		if text, ok := says[kind]; ok {
			_, after, found := strings.Cut(text, "unable to retrieve the complete list of server APIs: ")
			if !found {
				after = text
			}
			h.why, h.patience, h.api = "an API does not answer, and until it does the controller manager removes no namespace: "+after, brokenPatience, true
			return h, true
		}
	}
	if text, ok := says[corev1.NamespaceDeletionContentFailure]; ok && !strings.Contains(text, "unexpected items still remain") {
		h.why, h.patience = "its content cannot be deleted: "+text, refusedPatience
		return h, true
	}
	if text, ok := says[corev1.NamespaceFinalizersRemaining]; ok && text != "" {
		_, list, _ := strings.Cut(text, "finalizers remaining: ")
		for finalizer := range strings.SplitSeq(list, ", ") {
			if name, _, _ := strings.Cut(finalizer, " in "); !lets(name) {
				h.patience = finalizerPatience
			}
		}
		h.why = "finalizers hold its content: " + list
		if content := says[corev1.NamespaceContentRemaining]; content != "" {
			h.why += " (" + strings.TrimPrefix(content, "Some resources are remaining: ") + ")"
		}
		return h, true
	}
	own := slices.Clone(ns.Finalizers)
	for _, f := range ns.Spec.Finalizers {
		own = append(own, string(f))
	}
	if !slices.Contains(own, string(corev1.FinalizerKubernetes)) && len(own) > 0 {
		h.why, h.patience = "its finalizers hold it: "+strings.Join(own, ", "), finalizerPatience
		return h, true
	}
	return h, false
}

func objectHeldUp(o *metav1.PartialObjectMetadata, what string) (h heldUp, is bool) {
	if o.DeletionTimestamp == nil || len(o.Finalizers) == 0 {
		return h, false
	}
	h.what, h.why = what, "finalizers hold it: "+strings.Join(o.Finalizers, ", ")
	if slices.ContainsFunc(o.Finalizers, func(name string) bool { return !lets(name) }) {
		h.patience = finalizerPatience
	}
	return h, true
}

// lets reports whether a finalizer's owner is known to let go, even if slowly: Kubernetes and KubeVirt.
func lets(finalizer string) bool {
	domain, _, _ := strings.Cut(finalizer, "/")
	for _, own := range []string{"kubernetes.io", "k8s.io", "kubevirt.io"} {
		if domain == own || strings.HasSuffix(domain, "."+own) {
			return true
		}
	}
	return slices.Contains([]string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "foregroundDeleteVirtualMachine"}, finalizer)
}

// holdups tracks the hold-ups of a removal.
type holdups struct {
	key   string
	since time.Duration
	told  bool
}

// look tells the user once of a removal's hold-ups; a *HeldUpError says that waiting does not help.
func (h *holdups) look(ctx context.Context, c *api.Client, at time.Duration, left int, held []heldUp, tell func(format string, args ...any)) error {
	by := make(map[string][]string)
	var patience time.Duration
	broken := false
	for _, one := range held {
		by[one.why] = append(by[one.why], one.what)
		if one.patience > 0 && (patience == 0 || one.patience < patience) {
			patience, broken = one.patience, one.api
		}
	}
	var texts []string
	for _, why := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, ceiling.Some(by[why])+": "+why)
	}
	text := strings.Join(texts, "; ")
	if key := fmt.Sprint(left, text); key != h.key {
		*h = holdups{key: key, since: at}
	}
	waited := at - h.since
	if len(held) > 0 && !h.told && waited >= nameAfter {
		h.told = true
		tell("note: what was asked to go does not: %s", text)
	}
	if patience == 0 || waited < patience {
		return nil
	}
	if broken {
		apis, err := c.BrokenAPIs(ctx)
		if err == nil && len(apis) == 0 && waited < backedOff {
			return nil // it answers again, but the controller manager has not looked
		}
		for _, b := range apis {
			text += fmt.Sprintf(" ('kubectl get apiservice %s' shows why%s)", b.Service, strings.TrimSuffix(": "+b.Cause, ": "))
		}
	}
	return &HeldUpError{text}
}

// heldUpNow lists the hold-ups of the run's removal.
func (rm *Remover) heldUpNow(ctx context.Context) (held []heldUp) {
	add := func(h heldUp, is bool) {
		if is {
			held = append(held, h)
		}
	}
	selector := api.LabelRun + "=" + rm.Load.RunID
	if rm.Load.Namespace == "" {
		list, err := rm.Client.Typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsForbidden(err) {
			list = new(corev1.NamespaceList)
			for _, name := range rm.allNamespaces()[:min(namedEach, len(rm.allNamespaces()))] {
				if ns, err := rm.Client.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err == nil {
					list.Items = append(list.Items, *ns)
				}
			}
		} else if err != nil {
			return nil // the removal reports it
		}
		for i := range list.Items {
			add(namespaceHeldUp(&list.Items[i]))
		}
	}
	if len(held) > 0 {
		return held
	}
	collections := append(rm.holdings.Collections(), rm.Load.In("pods"))
	slices.Sort(collections)
	for _, collection := range slices.Compact(collections) {
		path, name := collection[:strings.LastIndexByte(collection, '/')], collection[strings.LastIndexByte(collection, '/')+1:]
		_ = straysOf(ctx, rm.Client, lookPatience, path, "", metav1.APIResource{Name: name}, selector, func(o *metav1.PartialObjectMetadata, _ string) {
			add(objectHeldUp(o, name+" "+api.ObjectName(o.Namespace, o.Name)))
		})
	}
	return held
}

const (
	namedEach    = 10 // namespaces to get where they may not be listed
	lookInterval = time.Second
	lookPatience = 5 * time.Second
)

// endHeldUp ends a removal in vain: until done, it checks hold-ups whenever there is no progress.
func (rm *Remover) endHeldUp(ctx context.Context) (held context.Context, done func()) {
	held, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var h holdups
		var stays, next time.Duration
		last := -1
		for api.Sleep(held, lookInterval) {
			at := rm.Clock.Now().Duration()
			spaces, strays := rm.holdings.Count()
			left := len(rm.followed.Names()) + spaces + strays + rm.namespaces.Left(rm.allNamespaces())
			if left != last {
				last, stays = left, at
			}
			if at-stays < nameAfter || at < next {
				continue
			}
			next = at + nameAfter
			if err := h.look(held, rm.Client, at, left, rm.heldUpNow(held), rm.tell); err != nil && held.Err() == nil {
				end(err)
				return
			}
		}
	}()
	return held, func() { end(nil); <-ended }
}
