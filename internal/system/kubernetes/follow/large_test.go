package follow

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/test/harness"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// Objects of a megabyte each take what is kept of each, and not what they are: when
// they are listed, when a watch tells of them, and when a list shows what no watch has
// told of.
func TestLargeObjectsAreNotKept(t *testing.T) {
	ring.Long(t, "it measures memory")
	// Fewer objects show what is kept of them; what a garbage collector has not taken
	// away yet may be as much as they are.
	const size, most, bound = 1 << 20, 1000, 256 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	n := harness.New(os.Getenv).Size(60, most)
	server := &largeObjects{n: n, filler: bytes.Repeat([]byte("x"), size)}
	run, sink := kubetest.RunOn(t, server.answer)
	run.Load.Objects = &described.Objects{
		Noun:       record.Noun{One: "thing", Many: "things"},
		Resources:  []described.Resource{{Name: "thing", APIVersion: "x/v1", Kind: "Thing"}},
		Milestones: []described.ObjectMilestone{{Name: "There", When: described.When{Path: "metadata.annotations.state", Values: []string{"there"}}, Place: "metadata.annotations.place"}},
		Troubles:   []described.ObjectTrouble{{When: described.When{Path: "metadata.annotations.state", Values: []string{"late"}}, Message: "metadata.annotations.why"}},
		There:      "There",
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Thing"}, meta.RESTScopeNamespace)
	set, err := newObjectSet(run, run.Load.Objects, &Ageing{Run: run}, newNamespaceSet(), mapper, silent{})
	if err != nil {
		t.Fatal(err)
	}
	w := set.watchers()[0]
	w.Clock, w.Emit, w.Client = run.Clock, func(b record.Body) { run.Emit(b) }, run.Client
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, phase := range []struct {
		what string
		do   func() error
		open int // that are not there then
	}{
		{"a list", func() error { return w.Start(ctx) }, n},
		{"a watch", func() error {
			server.version.Add(1)
			go func() { _ = w.Run(ctx) }() // it ends with the test
			for p := set.Progress(); p.There < n && ctx.Err() == nil; p = set.Progress() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}, 0},
		{"a list of what no watch has told of", func() error {
			server.version.Add(1)
			return w.Reconcile(ctx)
		}, n},
	} {
		before := settledRSS(t)
		if err := phase.do(); err != nil {
			t.Fatal(err)
		}
		peak := peakRSS(t) - before
		kept := settledRSS(t) - before
		t.Logf("%s of %d objects of 1 MiB: at most %d MiB more, %d MiB afterwards", phase.what, n, peak>>20, kept>>20)
		if n == most && peak > bound || kept > int64(n*size/4) {
			t.Errorf("%s of %d objects of 1 MiB took %d MiB more, and %d MiB afterwards", phase.what, n, peak>>20, kept>>20)
		}
		if p := set.Progress(); p.Left != n || n-p.There != phase.open {
			t.Errorf("%s: %+v of %d", phase.what, p, n)
		}
	}
	if len(sink.Events()) < 3*n {
		t.Errorf("%d events of %d objects", len(sink.Events()), n)
	}
}

// largeObjects answers lists and a watch of objects that are all of one version: the
// watch tells of the second alone.
type largeObjects struct {
	n       int
	filler  []byte
	version atomic.Int64
}

func (s *largeObjects) write(w http.ResponseWriter, i int, version int64) {
	state := map[bool]string{false: "late", true: "there"}[version == 1]
	fmt.Fprintf(w, `{"apiVersion":"x/v1","kind":"Thing","metadata":{"name":"t-%d","namespace":"ns","uid":"uid-%[1]d","resourceVersion":"%d","annotations":{"state":%q,"why":"because %[1]d","place":"node-%d","filler":"`, i, version*10_000+int64(i)+1, state, i%10)
	_, _ = w.Write(s.filler) // the client may have had enough
	fmt.Fprint(w, `"}}}`)
}

func (s *largeObjects) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	version, query := s.version.Load(), r.URL.Query()
	if query.Get("watch") != "" {
		for i := range s.n {
			fmt.Fprint(w, `{"type":"MODIFIED","object":`)
			s.write(w, i, version)
			fmt.Fprint(w, "}\n")
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	first, _ := strconv.Atoi(query.Get("continue")) // the first page has none
	limit, _ := strconv.Atoi(query.Get("limit"))
	last, next := first+limit, ""
	if last < s.n {
		next = strconv.Itoa(last)
	}
	fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d","continue":%q},"items":[`, version*10_000+int64(s.n), next)
	for i := first; i < min(last, s.n) && r.Context().Err() == nil; i++ {
		if i > first {
			fmt.Fprint(w, ",")
		}
		s.write(w, i, version)
	}
	fmt.Fprint(w, "]}")
}

// settledRSS gives back all memory that this process can, restarts the count of its peak,
// and returns its resident memory.
func settledRSS(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Skipf("the peak of this process's memory cannot be counted anew: %v", err)
	}
	return statusOf(t, "VmRSS:")
}

func peakRSS(t *testing.T) int64 { return statusOf(t, "VmHWM:") }

func statusOf(t *testing.T, field string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), field)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// silent is a Caller where no object has a server.
type silent struct{}

func (silent) Begin(workload.Params)                           {}
func (silent) Call(context.Context, *ObjectSet, observe.Probe) {}
func (silent) Times(*described.Probe) []string                 { return nil }
func (silent) Await(context.Context)                           {}
func (silent) Figures(int) []record.Body                       { return nil }
func (silent) Forget()                                         {}
