package io

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// clientIn starts a client that does IO in a directory of its own.
func clientIn(t *testing.T, name string) *clients.Client {
	t.Helper()
	reader, writer := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	dir := t.TempDir()
	go func() {
		over <- clients.Role(time.Now, Worker(dir)).Run(ctx, []string{"-address", "127.0.0.1:0"}, writer)
	}()
	t.Cleanup(func() {
		stop()
		<-over
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Fields(line)[2]
	return clients.NewClient(name, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", at) })
}

// Two clients do the IO of one job: each has its share, and what both did adds up by component.
func TestIOOfTwoClients(t *testing.T) {
	_, err := fio.Find(t.Context(), "")
	harness.Able(t, err)
	clock := record.StartClock(time.Now)
	f := &clients.Fleet{Now: clock.Now, Late: time.Minute, Clients: []*clients.Client{clientIn(t, "a"), clientIn(t, "b")}}
	work, err := json.Marshal(fio.Job{Pattern: "randrw", ReadPercent: 50, Block: 4096, Size: 1 << 20, Engine: "psync", Depth: 1, Rate: 200})
	if err != nil {
		t.Fatal(err)
	}
	o := clients.Order{Work: work, Component: fio.Read, Schedule: streams.Schedule{Open: true, Value: 200, Hold: time.Second, Window: 250 * time.Millisecond, Timeout: 10 * time.Second}}
	if failed := f.Prepare(t.Context(), o); len(failed) > 0 {
		t.Fatal(failed)
	}
	if silent := f.Agree(t.Context()); len(silent) > 0 {
		t.Fatal(silent)
	}
	o.Schedule.Begin = clock.Now()
	done, bytes, places := make(map[string]int), make(map[string]int64), make(map[string]int)
	var spans []record.Micros
	err = f.Stream(t.Context(), o, func(w *record.Window) {
		h, err := w.Histograms[fio.Complete].Counts()
		if err != nil || int(h.TotalCount()) != w.Done || w.Sent != w.Done+w.FailedAll() || w.Intended != w.Sent+w.Dropped {
			t.Errorf("%+v: %v", w, err)
		}
		done[w.Component] += w.Done
		bytes[w.Component] += w.BytesIn + w.BytesOut
		for place, n := range w.ByPlace {
			places[place] += n
		}
		if !slices.Contains(spans, w.From) {
			spans = append(spans, w.From)
		}
	}, func(client, why string) { t.Errorf("%s: %s", client, why) })
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{fio.Read, fio.Write} {
		// A report counts bytes a little before or after the IOs.
		if done[side] == 0 || max(bytes[side]/4096-int64(done[side]), int64(done[side])-bytes[side]/4096) > 4 {
			t.Errorf("%s: %d IOs of %d bytes", side, done[side], bytes[side])
		}
	}
	if places["a"] == 0 || places["b"] == 0 || places["a"]+places["b"] != done[fio.Read]+done[fio.Write] || len(spans) != 4 || !slices.IsSorted(spans) {
		t.Errorf("by client %v, of %v in %d windows", places, done, len(spans))
	}
	if got := f.Readings(sourceThroughput, "value"); len(got) != 2 || got[0] <= 0 {
		t.Errorf("throughput %v", got)
	}
	// Work that was not prepared, and a job that fio cannot do, end with a reason.
	if err := f.Stream(t.Context(), o, func(*record.Window) {}, func(string, string) {}); err == nil || !strings.Contains(err.Error(), "no work was prepared") {
		t.Errorf("a second stream: %v", err)
	}
	o.Work = json.RawMessage(`{"Pattern": "exec"}`)
	if failed := f.Prepare(t.Context(), o); len(failed) != 2 {
		t.Errorf("a job of another pattern: %v", failed)
	}
}
