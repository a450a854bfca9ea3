package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/record"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// heard is a Handler that notes what it takes in.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) Changed(_ record.Micros, kind string, object []byte) error {
	m := JSONEncoding().meta(object)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf("%s %s@%s", kind, m.name, m.version))
	return nil
}

func (h *heard) Missing(_ record.Micros, gone []Identity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range gone {
		h.lines = append(h.lines, "MISSING "+o.Name)
	}
	slices.Sort(h.lines[len(h.lines)-len(gone):])
}

func (h *heard) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, ", ")
}

// trial is a watcher that a test gives its messages, and whose lists it answers.
type guardTrial struct {
	*Watcher
	heard
	mu      sync.Mutex
	version int
	list    map[string]int // the version of each object
	told    []record.Body
}

func newGuardTrial(t *testing.T) *guardTrial {
	tr := &guardTrial{list: make(map[string]int)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		type meta map[string]any
		items := []map[string]meta{}
		for name, version := range tr.list {
			items = append(items, map[string]meta{"metadata": {"name": name, "uid": "u-" + name, "resourceVersion": fmt.Sprint(version)}})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": meta{"resourceVersion": fmt.Sprint(tr.version)}, "items": items})
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	tr.Watcher = &Watcher{Client: c, Clock: record.StartClock(time.Now), Name: "things", Path: "/apis/x/v1/things", Handler: &tr.heard, Encoding: JSONEncoding(), Emit: func(b record.Body) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.told = append(tr.told, b)
	}}
	return tr
}

// is makes an object what it is by the list.
func (tr *guardTrial) is(name string, version int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.list[name], tr.version = version, max(tr.version, version)
	if version == 0 {
		delete(tr.list, name)
	}
}

// news hands the guard an event of the watch.
func (tr *guardTrial) news(kind, name string, version int) {
	raw := fmt.Appendf(nil, `{"metadata":{"name":%q,"uid":"u-%s","resourceVersion":"%d"}}`, name, name, version)
	now := tr.Clock.Now()
	m := tr.Encoding.meta(raw)
	if kind != eventBookmark {
		_ = tr.take(now, kind, m, raw)
	}
	tr.passed(now, m.version)
}

// says returns the recorded events in a line.
func (tr *guardTrial) says() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var list []string
	for _, b := range tr.told {
		switch b := b.(type) {
		case *record.Fault:
			list = append(list, fmt.Sprintf("%s healed=%t", b.What, b.Healed))
		case *record.Corrected:
			list = append(list, fmt.Sprintf("%d missed", b.Missed))
		}
	}
	return strings.Join(list, ", ")
}

func (tr *guardTrial) reconcile(t *testing.T) {
	t.Helper()
	if err := tr.Reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// News that comes twice, out of order, or after a list that had it, counts once. What a
// list shows beyond it is corrected and counted.
func TestWhatAWatchHasBroughtIsHeldAgainstAList(t *testing.T) {
	ring.Long(t, "it waits for late watches")
	t.Parallel()
	for _, tt := range []struct {
		why         string
		do          func(t *testing.T, tr *guardTrial)
		heard, told string
		waits       bool // until news counts as late
	}{
		{"each change once, in the order of versions", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.news(EventAdded, "a", 1)
			tr.news(EventModified, "a", 4)
			tr.news(EventModified, "a", 3)
			tr.news(EventDeleted, "a", 5)
			tr.news(EventModified, "a", 4)
			tr.news(EventAdded, "b", 6)
		}, "ADDED a@1, MODIFIED a@4, DELETED a@5, ADDED b@6", "", false},
		{"an end whose version is the last one's", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.news(EventDeleted, "a", 1)
		}, "ADDED a@1, DELETED a@1", "", false},
		{"a list that says the same says nothing", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.is("a", 1)
			tr.reconcile(t)
		}, "ADDED a@1", "", false},
		{"a change, an object and an end were lost, and later news came", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.news(EventAdded, "b", 2)
			tr.news(EventModified, "z", 9)
			tr.is("a", 3)
			tr.is("c", 4)
			tr.is("z", 9)
			tr.reconcile(t)
			tr.news(EventModified, "b", 2) // of one that is gone
		}, "ADDED a@1, ADDED b@2, MODIFIED z@9, +LISTED a@3, +LISTED c@4, MISSING b", "3 missed", false},
		{"what comes while the list is read was on its way", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.news(EventAdded, "b", 2)
			tr.is("a", 3)
			time.AfterFunc(100*time.Millisecond, func() {
				tr.news(EventModified, "a", 3)
				tr.news(EventDeleted, "b", 4)
			})
			tr.reconcile(t)
		}, "ADDED a@1, ADDED b@2, MODIFIED a@3, DELETED b@4", "", false},
		{"a watch that is late: what it brings after all is not told again, and nothing was missed", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.is("a", 3)
			tr.is("c", 4)
			tr.reconcile(t)
			tr.news(EventModified, "a", 3)
			tr.news(EventAdded, "c", 4)
			tr.news(EventModified, "c", 5)
		}, "ADDED a@1, +LISTED a@3, +LISTED c@4, MODIFIED c@5", "watch of things late healed=false, watch of things late healed=true", true},
		{"a watch that is late, and has lost something besides", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.is("a", 3)
			tr.is("c", 4)
			tr.reconcile(t)
			tr.news(EventAdded, "c", 4)
		}, "ADDED a@1, +LISTED a@3, +LISTED c@4", "watch of things late healed=false, watch of things late healed=true, 1 missed", true},
		{"an end that a late watch brings after all", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.is("other", 3)
			tr.is("other", 0)
			tr.reconcile(t)
			tr.news(EventModified, "a", 2)
			tr.news(EventDeleted, "a", 3)
		}, "ADDED a@1, MISSING a", "watch of things late healed=false, watch of things late healed=true", true},
		{"a bookmark shows that nothing was to come", func(t *testing.T, tr *guardTrial) {
			tr.news(EventAdded, "a", 1)
			tr.is("a", 3)
			tr.reconcile(t)
			tr.news(eventBookmark, "", 7)
		}, "ADDED a@1, +LISTED a@3", "watch of things late healed=false, watch of things late healed=true, 1 missed", true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			tr := newGuardTrial(t)
			begun := time.Now()
			tt.do(t, tr)
			// A list has no order.
			got, want := strings.Split(tr.text(), ", "), strings.Split(strings.ReplaceAll(tt.heard, "+", ""), ", ")
			if strings.Contains(tt.heard, "+") {
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) || tr.says() != tt.told {
				t.Errorf("heard %q, want %q\ntold %q, want %q", got, want, tr.says(), tt.told)
			}
			if waited := time.Since(begun) > lateAfter; waited != tt.waits {
				t.Errorf("it took %v", time.Since(begun))
			}
		})
	}
}

// The lag is that of a change that was made at a known time; a watch that does not
// bring it is late, and is not once it does.
func TestAWatchIsAskedForNews(t *testing.T) {
	t.Parallel()
	tr := newGuardTrial(t)
	tr.news(EventAdded, "a", 1)
	tr.Touch = func(context.Context) (string, error) {
		time.AfterFunc(50*time.Millisecond, func() { tr.news(EventModified, "a", 2) })
		return "2", nil
	}
	if !tr.probe(t.Context()) {
		t.Error("what came is not seen")
	}
	c, is := tr.told[0].(*record.Canary)
	if lag := (c.Seen - c.Sent).Duration(); !is || c.Of != "things" || lag < 50*time.Millisecond || lag > time.Second {
		t.Errorf("%+v", c)
	}
	tr.Touch = func(context.Context) (string, error) { return "3", nil }
	if tr.probe(t.Context()) {
		t.Error("what did not come is seen")
	}
	if tr.says() != "watch of things late healed=false" {
		t.Error(tr.says())
	}
	tr.news(EventModified, "a", 3)
	if tr.says() != "watch of things late healed=false, watch of things late healed=true" {
		t.Error(tr.says())
	}
}

// A watch without its right ends after a while. The result says so where its news decides
// a verdict, and elsewhere only that the watch closed.
func TestARightThatIsTakenAway(t *testing.T) {
	for _, tt := range []struct {
		why          string
		beside       bool
		granted      int // watches, before they are refused
		closed, told bool
	}{
		{"it never was there, for what is judged", false, 0, false, true},
		{"it was there, for what is judged", false, 1, false, true},
		{"it never was there, for what is beside", true, 0, true, false},
		{"it was there, for what is beside", true, 1, true, false},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > tt.granted {
				w.WriteHeader(http.StatusForbidden)
			}
		}))
		c, err := NewClient(&rest.Config{Host: server.URL}, "test")
		if err != nil {
			t.Fatal(err)
		}
		at, told := time.Unix(0, 0), 0
		w := &Watcher{Client: c, Name: "things", Path: "/apis/x/v1/things", Encoding: JSONEncoding(), Beside: tt.beside, Emit: func(record.Body) { told++ },
			Clock: record.StartClock(func() time.Time { at = at.Add(DenialPatience); return at })}
		err = w.Run(t.Context())
		server.Close()
		if !Refused(err) || w.Closed() != tt.closed || told > 0 != tt.told {
			t.Errorf("%s: closed %v, told %d times, %v", tt.why, w.Closed(), told, err)
		}
		if beside := tt.beside && tt.granted == 0; beside != (asked == 1) {
			t.Errorf("%s: asked %d times", tt.why, asked)
		}
	}
}
