package verdict

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
)

// What bound is the wait that grew, not the one that is always the longest.
func TestTheWaitThatGrew(t *testing.T) {
	wait := func(whose, from, to string, mean float64) result.Wait {
		return result.Wait{For: whose, From: from, To: to, Mean: mean}
	}
	normal := &Judged{Measured: fold.Measured{Step: result.Step{ID: 1, Bottleneck: &result.Bottleneck{Waits: []result.Wait{
		wait("nodes", "Scheduled", "Ready", 2), wait("API server", "request", "Created", 0.01), wait("scheduler", "Created", "Scheduled", 0.001),
	}}}}}
	lag := &result.WatchLag{P50: new(0.02)}
	for _, tt := range []struct {
		why    string
		waits  []result.Wait
		normal *Judged
		want   string
	}{
		{"it is 85% of all waiting, and always was", []result.Wait{wait("nodes", "Scheduled", "Ready", 2.1), wait("API server", "request", "Created", 0.3)}, normal,
			"the wait for the API server (request to Created) grew from 10ms to 300ms on average beside step 1"},
		{"a tenth more is no more than by chance", []result.Wait{wait("nodes", "Scheduled", "Ready", 2.2)}, normal, "no wait grew beside step 1"},
		{"twenty times as long, and yet only the lag of the news", []result.Wait{wait("scheduler", "Created", "Scheduled", 0.021)}, normal, "no wait grew beside step 1"},
		{"a way that none went before", []result.Wait{wait("nodes", "request", "ImagesReady", 1)}, normal, "the wait for the nodes (request to ImagesReady) grew from 0s to 1s on average beside step 1"},
		{"nothing is normal", []result.Wait{wait("nodes", "Scheduled", "Ready", 9)}, nil, ""},
	} {
		n := &result.Bottleneck{Waits: tt.waits, CPUs: 2, CPUBusy: new(51.0), CPUBy: []result.CPUShare{{Source: "etcd", Percent: 30}}}
		want := strings.TrimPrefix(tt.want+"; the 2 CPUs were 51% busy, etcd 30%", "; ")
		if got := growthOf(n, tt.normal, lag); got != want {
			t.Errorf("%s:\n%s\nwant %s", tt.why, got, want)
		}
	}
}

// Where the limits are known and none was used up, the sentence says so and names no wait.
// A closed loop says what its objects waited for longest, and from when on.
func TestLimitsAndTheLongestWait(t *testing.T) {
	waits := []result.Wait{{For: "nodes", From: "Scheduled", To: "Ready", Mean: 2, Share: 85}}
	free := &result.Bottleneck{Waits: waits, Bounds: []result.BoundShare{{What: "the threads", Share: 0.2}}}
	if got := growthOf(free, &Judged{}, nil); got != "nothing that is watched was used up" {
		t.Errorf("%q", got)
	}
	const longest = "the longest wait was for the nodes (Scheduled to Ready: 2s on average, 85% of all waiting)"
	slowed := &result.Bottleneck{Waits: waits, Slowdown: &result.Slowdown{}}
	for _, tt := range []struct {
		why  string
		of   *result.Bottleneck
		want string
	}{
		{"nothing is known", nil, ""},
		{"nothing waited", &result.Bottleneck{}, ""},
		{"they waited", free, longest},
		{"they waited longer from some moment on", slowed, longest + "; " + slowed.Slowdown.String()},
	} {
		if got := longestOf(tt.of); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
