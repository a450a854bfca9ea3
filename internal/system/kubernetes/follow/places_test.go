package follow

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// What happens to a node that the load's pods can land on is reported once, with whether
// the run itself did it.
func TestPlacesOfALoad(t *testing.T) {
	const none, closed = "", corev1.TaintNodeUnschedulable
	node := func(name string, ready bool, cordoned bool, taint string, labels map[string]string) []byte {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
		if taint != none {
			n.Spec.Taints = []corev1.Taint{{Key: taint, Effect: corev1.TaintEffectNoSchedule}}
		}
		raw, err := n.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ours, others := map[string]string{api.LabelDrained: "run", "x": "y"}, map[string]string{api.LabelDrained: "another", "x": "y"}
	plain := map[string]string{"x": "y"}
	for _, c := range []struct {
		why     string
		changes [][]byte // the last one may be nil for a deletion
		want    []string
		down    int // nodes that are not ready in the end
	}{
		{"nothing", [][]byte{node("a", true, false, none, plain)}, nil, 0},
		{"deleted", [][]byte{nil}, []string{"a gone was deleted"}, 0},
		{"cordoned, and let go of before its taint goes", [][]byte{
			node("a", true, true, none, plain), node("a", true, true, closed, plain), node("a", true, false, closed, plain), node("a", true, false, none, plain),
		}, []string{"a closed was cordoned", "a there takes load again"}, 0},
		{"tainted", [][]byte{node("a", true, false, "upkeep", plain)}, []string{"a closed was tainted (upkeep:NoSchedule)"}, 0},
		{"another label", [][]byte{node("a", true, false, none, nil)}, []string{"a closed is not selected any more"}, 0},
		{"not ready, and tainted for it", [][]byte{
			node("a", false, false, none, plain), node("a", false, false, corev1.TaintNodeNotReady, plain), node("a", true, false, corev1.TaintNodeNotReady, plain), node("a", true, false, none, plain),
		}, []string{"a notReady is not ready", "a there takes load again"}, 0},
		{"not ready, then deleted: it is still down", [][]byte{node("a", false, false, none, plain), nil}, []string{"a notReady is not ready", "a gone was deleted"}, 1},
		{"the same, and it comes back", [][]byte{node("a", false, false, none, plain), nil, node("a", true, false, none, plain)},
			[]string{"a notReady is not ready", "a gone was deleted", "a there was added"}, 0},
		{"drained by the run", [][]byte{node("a", true, false, none, ours), node("a", true, true, none, ours), node("a", false, true, none, ours), node("a", true, false, none, plain)},
			[]string{"a closed was cordoned, meant", "a notReady is not ready, meant", "a there takes load again"}, 0},
		{"drained by another run", [][]byte{node("a", true, true, none, others)}, []string{"a closed was cordoned"}, 0},
		{"another one comes", [][]byte{node("c", true, false, none, plain)}, []string{"c there was added"}, 0},
		{"another one that is not selected", [][]byte{node("c", true, false, none, nil)}, nil, 0},
		{"one that is not selected is cordoned, and let go of before its taint goes", [][]byte{
			node("c", true, false, none, nil), node("c", true, true, closed, nil), node("c", true, false, closed, nil), node("c", true, false, none, nil),
		}, nil, 0},
	} {
		var told []string
		s := newNodeSet()
		s.run = "run"
		if err := s.Changed(1, api.EventAdded, node("a", true, false, none, plain)); err != nil {
			t.Fatal(err)
		}
		for _, n := range [][]byte{node("b", true, false, none, plain), node("shut", true, true, none, plain)} {
			if err := s.Changed(1, api.EventAdded, n); err != nil {
				t.Fatal(err)
			}
		}
		s.tell = func(_ record.Micros, body record.Body) {
			p, is := body.(*record.Place)
			switch {
			case !is:
			case p.Set != nil:
				if !reflect.DeepEqual(p.Set, []string{"a", "b"}) {
					t.Errorf("%s: declared %v", c.why, p.Set)
				}
			default:
				text := fmt.Sprintf("%s %s %s", p.Place, p.State, p.What)
				if p.Meant {
					text += ", meant"
				}
				told = append(told, text)
			}
		}
		s.Declare(1, []corev1.PodSpec{{NodeSelector: plain}})
		for _, n := range c.changes {
			kind := api.EventModified
			if n == nil {
				kind, n = api.EventDeleted, node("a", s.nodes["a"].ready, false, none, plain)
			}
			if err := s.Changed(2, kind, n); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(told, c.want) || s.CountNotReady() != c.down {
			t.Errorf("%s: told %q, want %q; %d not ready, want %d", c.why, told, c.want, s.CountNotReady(), c.down)
		}
		if len(c.changes) == 1 && c.changes[0] == nil && (s.Holds("a") || !s.Holds("b")) {
			t.Errorf("%s: holds a %t, b %t", c.why, s.Holds("a"), s.Holds("b"))
		}
	}

	// What an operator of nodes does to them is meant where the load is an upgrade.
	for _, reboots := range []bool{false, true} {
		s := newNodeSet()
		s.run, s.reboots = "run", reboots
		if err := s.Changed(1, api.EventAdded, node("a", true, false, none, plain)); err != nil {
			t.Fatal(err)
		}
		s.Declare(1, []corev1.PodSpec{{}})
		var n corev1.Node
		if err := n.Unmarshal(node("a", false, true, closed, plain)); err != nil {
			t.Fatal(err)
		}
		n.Annotations = map[string]string{annotationUpdate: "Working"}
		raw, err := n.Marshal()
		if err == nil {
			err = s.Changed(2, api.EventModified, raw)
		}
		if down := s.CountNotReady(); err != nil || s.Holds("a") != reboots || (down == 0) != reboots {
			t.Errorf("a reboot that is meant, %t: holds %t, %d down, %v", reboots, s.Holds("a"), down, err)
		}
	}

	// A node that a list does not have was deleted, whatever its watch has told.
	var gone []string
	s := newNodeSet()
	s.run = "run"
	for _, name := range []string{"a", "b"} {
		if err := s.Changed(1, api.EventAdded, node(name, true, false, none, plain)); err != nil {
			t.Fatal(err)
		}
	}
	s.Declare(1, []corev1.PodSpec{{}})
	s.tell = func(_ record.Micros, body record.Body) {
		if p, is := body.(*record.Place); is {
			gone = append(gone, p.Place+" "+p.What)
		}
	}
	s.Missing(3, []api.Identity{{Name: "a"}})
	if want := []string{"a was deleted"}; !reflect.DeepEqual(gone, want) {
		t.Errorf("by a list: %q, want %q", gone, want)
	}
}

// A pod whose creation is not answered yet does not age: a request that is tried again
// would make it a second time.
func TestWhatIsBeingCreatedDoesNotAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Ageing{Run: &prepared.Run{Clock: record.StartClock(time.Now), Load: &prepared.Workload{PodLife: time.Second, Follow: 20 * time.Second}}}
		watching, stop := context.WithCancel(t.Context())
		defer stop()
		var gone []string
		a.Begin(watching, func(_ context.Context, pod string) { gone = append(gone, pod) })
		defer a.End()
		for _, pod := range []string{"ns/open", "ns/answered"} {
			a.creating(pod)
			a.born(a.Clock.Now(), pod)
			a.ready(a.Clock.Now(), pod)
		}
		a.created("ns/answered")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Equal(gone, []string{"ns/answered"}) {
			t.Errorf("deleted after a life: %v", gone)
		}
		a.created("ns/open")
		time.Sleep(ageingInterval)
		synctest.Wait()
		if !slices.Equal(gone, []string{"ns/answered", "ns/open"}) {
			t.Errorf("deleted once it was answered: %v", gone)
		}
	})
}
