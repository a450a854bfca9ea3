package usage

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// What programs beside the run took counts where something waited, and the run's own
// use does not.
func TestNeighbours(t *testing.T) {
	type values = map[string]float64
	// Of ten seconds: what each source used in them.
	for _, c := range []struct {
		why  string
		used map[string]values // at the end; all began with nothing
		held values            // of the machine, all along
		want string
	}{
		{"others took all that was left", map[string]values{"machine": {"cpuSeconds": 19.8}, "server": {"cpuSeconds": 1.8}}, nil, "processors 90"},
		{"they took a third", map[string]values{"machine": {"cpuSeconds": 19.8}, "server": {"cpuSeconds": 13.2}}, nil, ""},
		{"the run took all itself", map[string]values{"machine": {"cpuSeconds": 20}, "server": {"cpuSeconds": 20}}, nil, ""},
		{"its parts count once", map[string]values{"machine": {"cpuSeconds": 20}, "server": {"cpuSeconds": 10}, "server/thread-1": {"cpuSeconds": 10}}, nil, "processors 50"},
		{"they took half, and the rest was idle", map[string]values{"machine": {"cpuSeconds": 11}, "server": {"cpuSeconds": 1}}, nil, ""},
		{"interrupts are nobody's", map[string]values{"machine": {"cpuSeconds": 20, "interruptSeconds": 8}, "server": {"cpuSeconds": 12}}, nil, ""},
		{"the target is one of the others", map[string]values{"machine": {"cpuSeconds": 20}, "plimsoll": {"cpuSeconds": 1}}, values{"targetUnread": 1}, ""},
		{"a part was kept to one processor, which others took", map[string]values{
			"machine": {"cpuSeconds": 11}, "server": {"cpuSeconds": 1}, "processors/server": {"cpus": 1, "busySeconds": 10, "ownSeconds": 1},
		}, nil, "processors of server 90"},
		{"it waited, and nothing was idle for it", map[string]values{
			"machine": {"cpuSeconds": 8}, "server": {"cpuSeconds": 1}, "processors/server": {"cpus": 1, "busySeconds": 6, "ownSeconds": 1, "waitSeconds": 4},
		}, nil, "processors of server 50"},
		{"its own threads waited for each other", map[string]values{
			"machine": {"cpuSeconds": 12}, "server": {"cpuSeconds": 8}, "processors/server": {"cpus": 1, "busySeconds": 10, "ownSeconds": 8, "waitSeconds": 30},
		}, nil, ""},
		{"others hold the memory, which is short", map[string]values{"machine": {"cpuSeconds": 2, "memoryPressureSeconds": 2}, "server": {"rssBytes": 200}}, values{"memoryBytes": 1000, "memoryUsedBytes": 950}, "memory 75"},
		{"the run holds it", map[string]values{"machine": {"cpuSeconds": 2, "memoryPressureSeconds": 2}, "server": {"rssBytes": 700}}, values{"memoryBytes": 1000, "memoryUsedBytes": 950}, ""},
		{"nothing waits for it", map[string]values{"machine": {"cpuSeconds": 2, "memoryPressureSeconds": 0.5}, "server": {"rssBytes": 200}}, values{"memoryBytes": 1000, "memoryUsedBytes": 950}, ""},
		{"the kernel does not tell who waits", map[string]values{"machine": {"cpuSeconds": 2}, "server": {"rssBytes": 200}}, values{"memoryBytes": 1000, "memoryUsedBytes": 950}, ""},
		{"others write", map[string]values{"machine": {"cpuSeconds": 2, "ioPressureSeconds": 5, "ioBytes": 1000}, "server": {"ioBytes": 100}}, nil, "IO 60"},
		{"a journal is written besides", map[string]values{"machine": {"cpuSeconds": 2, "ioPressureSeconds": 5, "ioBytes": 1000}, "server": {"ioBytes": 250}}, nil, ""},
		{"what a part of the target wrote is unknown", map[string]values{"machine": {"cpuSeconds": 2, "ioPressureSeconds": 5, "ioBytes": 1000}, "server": {"ioBytes": 1}, "pods": {"cpuSeconds": 1}}, nil, ""},
	} {
		s := NewReadings(nil)
		for tenth := range 11 {
			for source, used := range c.used {
				r := &record.Reading{Source: source, Values: values{"cpuSeconds": 0, "rssBytes": used["rssBytes"]}}
				if source == SourceMachine {
					r.Values = values{"cpus": 2}
					for name, v := range c.held {
						r.Values[name] = v
					}
				} else if strings.HasPrefix(source, SourceProcessors) {
					r.Values = values{}
				}
				for name, v := range used {
					if name != "rssBytes" && name != "cpus" {
						v *= float64(tenth) / 10
					}
					r.Values[name] = v
				}
				s.Add(record.Micros(tenth)*1e6, r)
			}
		}
		var got []string
		for _, n := range s.NeighboursIn(0, 10e6) {
			text := n.What
			if n.Of != "" {
				text += " of " + n.Of
			}
			got = append(got, fmt.Sprintf("%s %g", text, n.Others))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", c.why, text, c.want)
		}
	}
}
