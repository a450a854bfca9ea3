package sweep

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// A removal in a namespace that exists names the objects that finalizers hold, each once.
func TestObjectsThatAreHeldUpAreNamed(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		list := &corev1.PodList{}
		if strings.HasSuffix(r.URL.Path, "/pods") {
			list.Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a", DeletionTimestamp: &now, Finalizers: []string{"team.example/hold"}}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "b"}}}
		}
		kubetest.Answer(t, w, http.StatusOK, list)
	})
	run.Load.Namespace = "team"
	rm := &Remover{Run: run, holdings: create.NewHoldings(run, nil)}
	held := rm.heldUpNow(t.Context())
	if len(held) != 1 || held[0].what != "pods team/a" || held[0].why != "finalizers hold it: team.example/hold" {
		t.Errorf("held up: %+v", held)
	}
}

// terminating is a namespace that was asked to go, with conditions that hold.
func terminating(name string, conditions map[corev1.NamespaceConditionType]string) *corev1.Namespace {
	now := metav1.Now()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &now}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}}
	for kind, message := range conditions {
		ns.Status.Conditions = append(ns.Status.Conditions, corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Message: message})
	}
	return ns
}

const discoveryFailed = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.example/v1beta1: stale GroupVersion discovery: metrics.example/v1beta1"

func TestWhatHoldsUpANamespace(t *testing.T) {
	finalizers := func(list string) map[corev1.NamespaceConditionType]string {
		return map[corev1.NamespaceConditionType]string{
			corev1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: " + list, corev1.NamespaceContentRemaining: "Some resources are remaining: configmaps. has 1 resource instances",
		}
	}
	own := terminating("a", nil)
	own.Spec.Finalizers = []corev1.FinalizerName{"team.example/hold"}
	kept := terminating("a", nil)
	kept.Spec.Finalizers, kept.Finalizers = nil, []string{"team.example/keep"}
	for _, tt := range []struct {
		why      string
		ns       *corev1.Namespace
		says     string // "" for nothing
		patience time.Duration
	}{
		{"it was not asked to go", &corev1.Namespace{Status: terminating("a", finalizers("team.example/x in 1 resource instances")).Status}, "", 0},
		{"it goes", terminating("a", nil), "", 0},
		{"its pods stop", terminating("a", map[corev1.NamespaceConditionType]string{corev1.NamespaceContentRemaining: "Some resources are remaining: pods. has 3 resource instances"}), "", 0},
		{"the controller looks again", terminating("a", map[corev1.NamespaceConditionType]string{corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: a for gvr: /v1, Resource=pods"}), "", 0},
		{"an API does not answer", terminating("a", map[corev1.NamespaceConditionType]string{corev1.NamespaceDeletionDiscoveryFailure: discoveryFailed}), "an API does not answer, and until it does the controller manager removes no namespace: metrics.example/v1beta1", brokenPatience},
		{"its content is refused", terminating("a", map[corev1.NamespaceConditionType]string{corev1.NamespaceDeletionContentFailure: "Failed to delete all resource types, 1 remaining: admission webhook denied"}), "its content cannot be deleted: Failed to delete all resource types, 1 remaining: admission webhook denied", refusedPatience},
		{"a finalizer of somebody's", terminating("a", finalizers("team.example/hold in 1 resource instances")), "finalizers hold its content: team.example/hold in 1 resource instances (configmaps. has 1 resource instances)", finalizerPatience},
		{"a finalizer without a domain", terminating("a", finalizers("kubernetes.io/pvc-protection in 1 resource instances, kubedb in 2 resource instances")), "kubedb in 2", finalizerPatience},
		{"finalizers of Kubernetes and KubeVirt", terminating("a", finalizers("foregroundDeletion in 1 resource instances, batch.kubernetes.io/job-tracking in 2 resource instances, foregroundDeleteVirtualMachine in 1 resource instances")), "job-tracking", 0},
		{"a finalizer of its own", own, "its finalizers hold it: team.example/hold", finalizerPatience},
		{"one of its metadata", kept, "its finalizers hold it: team.example/keep", finalizerPatience},
	} {
		h, is := namespaceHeldUp(tt.ns)
		if is != (tt.says != "") || !strings.Contains(h.why, tt.says) || h.patience != tt.patience {
			t.Errorf("%s: %v %+v, want %q and %v", tt.why, is, h, tt.says, tt.patience)
		}
	}
	now := metav1.Now()
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"team.example/hold"}}}
	if h, is := objectHeldUp(o, "pods a/b"); !is || h.what != "pods a/b" || h.patience != finalizerPatience {
		t.Errorf("an object with a finalizer: %v %+v", is, h)
	}
}

// A removal that cannot end is named within seconds and ends long before its bound; one
// whose API answers again, or that goes on, does not.
func TestARemovalThatIsHeldUpEnds(t *testing.T) {
	t.Parallel()
	broken := map[corev1.NamespaceConditionType]string{corev1.NamespaceDeletionDiscoveryFailure: discoveryFailed}
	held := map[corev1.NamespaceConditionType]string{corev1.NamespaceFinalizersRemaining: "Some content in the namespace has finalizers remaining: team.example/hold in 1 resource instances"}
	const stale = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"metrics.example"},"versions":[{"version":"v1beta1","freshness":"Stale"},{"version":"v1","freshness":"Current"}]}]}`
	for _, tt := range []struct {
		why   string
		left  func(seconds int) []*corev1.Namespace
		apis  string
		ends  int    // after so many seconds at most
		wants string // "" for no error
		notes string // "" for none
	}{
		{"an API does not answer", func(int) []*corev1.Namespace {
			return []*corev1.Namespace{terminating("a", broken), terminating("b", broken)}
		}, stale, 15,
			"still there: 2 namespaces: a, b: an API does not answer, and until it does the controller manager removes no namespace: metrics.example/v1beta1: stale GroupVersion discovery: metrics.example/v1beta1 ('kubectl get apiservice v1beta1.metrics.example' shows why: no endpoints)", "note: what was asked to go does not: a, b: an API does not answer"},
		{"it answers again", func(s int) []*corev1.Namespace {
			if s > 40 {
				return nil
			}
			return []*corev1.Namespace{terminating("a", broken)}
		}, `{"kind":"APIGroupDiscoveryList"}`, 45, "", "an API does not answer"},
		{"a finalizer of somebody's", func(int) []*corev1.Namespace { return []*corev1.Namespace{terminating("a", held)} }, "{}", 65, "still there: 1 namespace: a: finalizers hold its content: team.example/hold in 1 resource instances", "team.example/hold"},
		{"they go one by one", func(s int) []*corev1.Namespace {
			var list []*corev1.Namespace
			for i := s / 10; i < 9; i++ {
				list = append(list, terminating(fmt.Sprint("n", i), held))
			}
			return list
		}, "{}", 95, "", "team.example/hold"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			seconds := 0
			run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.URL.Path == "/apis":
					w.Header().Set("Content-Type", "application/json")
					w.Write([]byte(tt.apis))
				case strings.HasSuffix(r.URL.Path, "/apiservices/v1beta1.metrics.example"):
					w.Header().Set("Content-Type", "application/json")
					w.Write([]byte(`{"status":{"conditions":[{"type":"Available","status":"False","message":"no endpoints"}]}}`))
				default:
					list := &corev1.NamespaceList{}
					for _, ns := range tt.left(seconds) {
						list.Items = append(list.Items, *ns)
					}
					kubetest.Answer(t, w, http.StatusOK, list)
				}
			})
			notes := ""
			host := system.Host{Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				seconds += 5
				return time.Unix(int64(seconds), 0)
			}, Log: func(format string, args ...any) { notes += fmt.Sprintf(format, args...) + "\n" }}
			err := awaitNamespacesGone(t.Context(), run.Client, host, "run1")
			if got := fmt.Sprint(err); (err != nil || tt.wants != "") && got != tt.wants {
				t.Errorf("%s\nwant %q", got, tt.wants)
			}
			if !strings.Contains(notes, tt.notes) || seconds > tt.ends+10 {
				t.Errorf("after %d s, want %d: %s", seconds, tt.ends, notes)
			}
		})
	}
}
