package follow

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// A user who may not read leases gets one warning, a server in trouble none.
func TestLeasesThatCannotBeRead(t *testing.T) {
	const first, second = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler", "/apis/coordination.k8s.io/v1/namespaces/openshift-kube-scheduler/leases/kube-scheduler"
	const ok, no, none, trouble = http.StatusOK, http.StatusForbidden, http.StatusNotFound, http.StatusInternalServerError
	for _, tt := range []struct {
		why           string
		first, second int  // codes of the two places where the lease may be
		renewed       bool // in the second look
		hidden        bool
		warnings      int
	}{
		{"it is there", ok, none, true, false, 0},
		{"it is in the other place", none, ok, true, false, 0},
		{"it may not be read", no, no, false, true, 1},
		{"nor in the other place", none, no, false, true, 1},
		{"there is none", none, none, false, true, 1},
		{"the server is in trouble", trouble, trouble, true, false, 0},
	} {
		looks := int64(0)
		run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
			looks++
			code := map[string]int{first: tt.first, second: tt.second}[r.URL.Path]
			kubetest.Answer(t, w, code, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Unix(looks, 0)}}})
		})
		a := newActors(run, nil, newNodeSet(), nil)
		x := a.actors[slices.IndexFunc(a.actors, func(x *actor) bool { return x.name == observe.Scheduler })]
		a.readLease(t.Context(), x)
		renewed := a.readLease(t.Context(), x)
		warnings := 0
		for _, e := range sink.Events() {
			if n, is := e.Body.(*record.Note); is && n.Warning == record.WarningNotKnown && strings.HasPrefix(n.Text, "leases of the scheduler") {
				warnings++
			}
		}
		if renewed != tt.renewed || (x.leases == nil) != tt.hidden || warnings != tt.warnings {
			t.Errorf("%s: renewed %v, hidden %v, %d warnings", tt.why, renewed, x.leases == nil, warnings)
		}
	}
}
