package documents

import (
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// Objects that were there before have the server's times, later ones those of their news. What a list shows after a
// gap has neither.
func TestLive(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 25, 17, 0, 0, 0, time.UTC)
	l := NewLive("watched", start)
	tell := func(at record.Micros, object, milestone string, ago time.Duration, late bool) {
		o := &record.Object{Object: object, Slot: "of a run", Milestone: milestone, Late: late}
		if ago > 0 {
			o.Stamp = start.Add(-ago).Unix()
		}
		l.Append(record.Event{T: at, Body: o})
	}
	tell(5*ms, "ns/old", "Created", time.Minute, false)
	tell(5*ms, "ns/old", "Scheduled", 58*time.Second, false)
	tell(5*ms, "ns/old", "Initialized", 0, false)
	tell(5*ms, "ns/old", "Ready", 57*time.Second, false)
	tell(5*ms, "PersistentVolumeClaim/ns/c", "Created", time.Hour, false)
	l.Listed()
	l.Append(record.Event{T: 6 * ms, Body: &record.State{Object: "ns/old"}})
	tell(1000*ms, "ns/new", "Created", time.Second, false)
	tell(1250*ms, "ns/new", "Ready", time.Second, false)
	tell(2000*ms, "ns/late", "Created", time.Second, false)
	tell(9000*ms, "ns/late", "Ready", time.Second, true)
	made := make(map[string][]any)
	var lines []string
	for _, d := range l.Make(Configuration{UUID: "u", Jobs: []Job{{Name: "watched", Measured: []string{"podLatency", "pvcLatency"}}}}, new(record.Environment)) {
		made[d.Name()] = d.Items
		lines = append(lines, d.Lines()...)
	}
	latency := func(i int, key string) any {
		pod := made["podLatencyMeasurement-watched.json"][i].(map[string]any)
		if n, _ := pod[key].(*int64); n != nil {
			return pod["podName"].(string) + " " + time.Duration(*n*int64(time.Millisecond)).String()
		}
		return pod["podName"].(string) + " nil"
	}
	if n := len(made["podLatencyMeasurement-watched.json"]); n != 3 || len(made) != 4 {
		t.Fatalf("%d pods: %v", n, made)
	}
	for i, want := range []string{"late nil", "new 250ms", "old 3s"} {
		if got := latency(i, "podReadyLatency"); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if a, b := latency(2, "schedulingLatency"), latency(2, "initializedLatency"); a != "old 2s" || b != "old nil" {
		t.Errorf("%v, %v", a, b)
	}
	if len(lines) != 6+4 || lines[5] != "podLatencyQuantilesMeasurement Ready: P50 3000, P99 -, max -, avg - ms" {
		t.Errorf("%q", lines)
	}
}
