package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Followed follows the objects that make up a load.
type Followed interface {
	Progress() system.Progress
	// Account records why objects are not ready, by place; with failing it picks some for their logs.
	Account(failing bool) (perPlace map[string]int, picked []observe.Failing)
	Names() []string                     // lists the objects that may still exist
	Expect(n int)                        // sets the number of objects requested since the target was last empty
	AwaitGone(ctx context.Context) error // waits until the end of all objects was seen
	Noun() record.Noun                   // names the objects
	ExpectMade(n int)                    // adds objects that others make for us
	Waits() Waits                        // says whom objects await
	Forget()                             // drops all knowledge of objects, once the target is empty
}

// following follows the objects of a run and records their news.
type following struct {
	*prepared.Run
	ageing *Ageing
	noun   record.Noun
	there  string // the milestone that counts
	of     string // begins the names of the objects on record, "" for the run's main kind

	mu       sync.Mutex
	tracker  *observe.Tracker
	arrived  int          // objects that were ever ready since the target was last empty
	asked    atomic.Int64 // requested since
	leaving  atomic.Int64 // callers that await the end of all
	expected atomic.Int64 // requested objects that others make for us
	owners   []string     // actors by the index of their milestone
}

// short reports whether objects that should be ready or gone are not, though nothing moved for quiet.
func (s *following) short(quiet time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, left := s.tracker.Counts(), s.tracker.Followed()
	if (s.Clock.Now() - c.Moved).Duration() < quiet {
		return false
	}
	if s.leaving.Load() > 0 {
		return left > 0
	}
	return c.Ready < left || s.arrived < int(s.asked.Load())
}

const quiet = 3 * time.Second // time without news after which the watch is doubted

func (s *following) doubt() bool { return s.short(quiet) }

// Expect implements Followed.
func (s *following) Expect(n int) { s.asked.Store(int64(n)) }

// Waits holds the waits of objects, by the names of record.Milestone.Owner.
type Waits struct {
	Objects map[string]int           // number that awaits each actor
	Acted   map[string]record.Micros // the last visible work of each actor
	Places  map[string]int           // waiting objects by place
}

// Noun implements Followed.
func (s *following) Noun() record.Noun { return s.noun }

// ExpectMade implements Followed.
func (s *following) ExpectMade(n int) { s.expected.Add(int64(n)) }

// Waits implements Followed.
func (s *following) Waits() Waits {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, places, acted := s.tracker.Waiting()
	w := Waits{Objects: make(map[string]int), Acted: make(map[string]record.Micros), Places: places}
	for bit, owner := range s.owners {
		w.Objects[owner] += waiting[bit]
		w.Acted[owner] = max(w.Acted[owner], acted[bit])
	}
	if expected := int(s.expected.Load()); expected > 0 {
		w.Objects[observe.ControllerManager] += max(0, expected-s.tracker.Made())
		w.Acted[observe.ControllerManager] = acted[0]
	}
	return w
}

// follow records news of objects. The caller holds mu.
func (s *following) follow(at record.Micros, body record.Body) {
	if state, ok := body.(*record.State); ok {
		state.Object = s.of + state.Object
	}
	if o, ok := body.(*record.Object); ok {
		o.Object = s.of + o.Object
		switch o.Milestone {
		case observe.Created:
			s.ageing.born(at, o.Object)
		case s.there:
			s.arrived++
			s.ageing.ready(at, o.Object)
		case observe.Deleted:
			s.ageing.gone(o.Object)
		}
	}
	s.EmitAt(at, body)
}

func (s *following) Progress() system.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.tracker.Counts()
	p := system.Progress{There: c.Ready, Arrived: s.arrived, Failed: c.Failed, Unschedulable: c.Unschedulable, Moved: c.Moved, Left: s.tracker.Followed()}
	if s.tracker.Sole {
		p.Final = p.Failed
	}
	return p
}

func (s *following) Account(failing bool) (perPlace map[string]int, picked []observe.Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Unfinished(s.Clock.Now())
	perPlace = make(map[string]int)
	s.tracker.PerPlace(perPlace)
	if failing {
		picked = s.tracker.Failing(observe.BitStarted, logsPerReason, logsPerStep)
	}
	return perPlace, picked
}

func (s *following) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracker.Names()
}

func (s *following) AwaitGone(ctx context.Context) error {
	s.leaving.Add(1)
	defer s.leaving.Add(-1)
	for {
		s.mu.Lock()
		left := s.tracker.Followed()
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		if !api.Sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("still there: %s: %w", s.noun.Count(left), context.Cause(ctx))
		}
	}
}

func (s *following) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker.Forget()
	s.arrived = 0
	s.asked.Store(0)
	s.expected.Store(0)
}

// Bounds of the logs at the end of a step: they must cost a cluster in trouble almost nothing.
const (
	logsPerReason = 3
	logsPerStep   = 12
	logWorkers    = 4
	logLines      = 20
	logBytes      = 64 << 10 // of one log, as the server sends it
	logsFor       = 5 * time.Second
)

// SampleLogs records the ends of the logs of failing pods, except those that take too long.
func SampleLogs(ctx context.Context, common *prepared.Run, pods []observe.Failing) {
	ctx, cancel := context.WithTimeout(ctx, logsFor)
	defer cancel()
	logs := make([]*record.Log, len(pods))
	// An error ends the sampling if it is the same for all; each log has its own.
	_ = api.InParallel(ctx, len(pods), logWorkers, 0, func(ctx context.Context, i int) error {
		l, err := logOf(ctx, common.Client, pods[i])
		logs[i] = l
		if err != nil {
			l.Error = err.Error()
		}
		if apierrors.IsForbidden(err) {
			return err
		}
		return nil
	})
	for _, l := range logs {
		if l != nil {
			common.Emit(l)
		}
	}
}

func logOf(ctx context.Context, c *api.Client, p observe.Failing) (*record.Log, error) {
	l := &record.Log{Object: p.Name, Place: p.Place, Reason: p.Reason}
	namespace, name, _ := strings.Cut(p.Name, "/")
	pod, err := c.Typed.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return l, err
	}
	status, ok := containerToLog(pod)
	if !ok {
		return l, errors.New("no container of it has run")
	}
	l.Container = status.Name
	// After a restart, the log of the previous container shows the reason.
	l.Previous = status.RestartCount > 0 && status.State.Running != nil
	stream, err := c.Typed.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{
		Container: l.Container, Previous: l.Previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
	}).Stream(ctx)
	if err != nil {
		return l, err
	}
	defer stream.Close()
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	l.Lines = linesOf(text)
	return l, err
}

func linesOf(text []byte) []string {
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(text), "\ufffd"), "\n")
	return lines[max(len(lines)-logLines, 0):]
}

// containerToLog chooses a container that has run and is not ready, a restarting one first.
func containerToLog(pod *corev1.Pod) (corev1.ContainerStatus, bool) {
	var best corev1.ContainerStatus
	rank := 0
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			n := 0
			switch {
			case s.Ready || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && s.RestartCount == 0:
			case s.State.Waiting != nil && s.RestartCount > 0, s.State.Terminated != nil:
				n = 3
			case s.State.Running != nil && s.RestartCount > 0:
				n = 2
			case s.State.Running != nil:
				n = 1
			}
			if n > rank {
				best, rank = s, n
			}
		}
	}
	return best, rank > 0
}
