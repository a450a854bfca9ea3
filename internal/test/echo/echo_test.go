package echo

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
)

// server echoes on at most a number of connections, and closes further ones.
func server(t *testing.T, most int64) (address string, open *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	open = new(atomic.Int64)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				defer open.Add(-1)
				if open.Add(1) <= most {
					_, _ = io.Copy(conn, conn)
				}
			}()
		}
	}()
	return listener.Addr().String(), open
}

// silent is an observer that shows nothing.
type silent struct{}

func (silent) Status(engine.Status, func() fold.Live) {}
func (silent) Stepped(result.Step)                    {}
func (silent) Event(record.Event)                     {}
func (silent) Chose(design.Next, [][]design.Next)     {}

// The target of the page finds how many connections a server keeps, and closes all.
func TestTheTargetOfThePage(t *testing.T) {
	address, open := server(t, 25)
	w, err := workload.Read(os.DirFS("."), workload.TargetsOf(Provider{}.Declare()))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Workload: "echo", Params: plan.Params{"server": address}, Axis: plan.Axis{Name: "connections"}}
	session, err := Provider{}.Open(t.Context(), system.Request{Host: system.Host{Now: time.Now}, Plan: p, Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	objective, err := slo.Parse("all Echoed")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	bounds := session.Bounds()
	x := run.Experiment{
		Spec: result.Spec{Experiment: "echo", Workload: "echo", Kind: Kind(), ExperimentKind: "limit", Axis: "connections", Unit: "connections",
			Goals: []slo.Goal{{Name: "ready", SLOs: []slo.SLO{objective}}}, Milestones: Kind().Names()},
		Design:  design.Search{From: 10, Step: 10, Max: 100, Resolution: 1, Need: 2, Of: 2},
		Options: engine.Options{MaxInFlight: bounds.MaxInFlight, Stall: bounds.Stall, Timeout: 5 * time.Second, Hold: time.Millisecond, ShortHold: time.Millisecond},
	}
	if err := run.Run(t.Context(), context.Background(), dir, "echo-1", x, time.Now, silent{}, session.Target); err != nil {
		t.Fatal(err)
	}
	r, err := run.Replay(dir, x)
	if err != nil || r.LoadLine == nil || r.LoadLine.Level == nil || *r.LoadLine.Level != 25 || *r.LoadLine.LowestFailing != 26 {
		t.Errorf("%s (%s), load line %+v, %v", r.Verdict, r.Why, r.LoadLine, err)
	}
	if !strings.Contains(r.LoadLine.Binding, "NoEcho") {
		t.Errorf("bound by %q", r.LoadLine.Binding)
	}
	for left := time.After(5 * time.Second); open.Load() > 0; {
		select {
		case <-left:
			t.Fatalf("%d connections are open after the run", open.Load())
		default:
		}
	}
}

// The page shows the files as they are.
func TestThePageShowsTheFiles(t *testing.T) {
	page, err := os.ReadFile("../../../docs/target.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string // lines of all fenced blocks
	for i, block := range strings.Split(string(page), "```") {
		if i%2 == 1 && (strings.HasPrefix(block, "go\n") || strings.HasPrefix(block, "yaml\n")) {
			_, text, _ := strings.Cut(block, "\n")
			shown = append(shown, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
		}
	}
	var written []string
	for _, name := range []string{"workload.yaml", "echo.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, strings.Split(string(text), "\n")...)
	}
	full := func(line string) bool { return strings.TrimSpace(line) == "" }
	if shown, written = slices.DeleteFunc(shown, full), slices.DeleteFunc(written, full); !slices.Equal(shown, written) {
		for i := range min(len(shown), len(written)) {
			if shown[i] != written[i] {
				t.Fatalf("the page has %q, the file %q", shown[i], written[i])
			}
		}
		t.Fatalf("the page has %d lines, the files %d", len(shown), len(written))
	}
}
