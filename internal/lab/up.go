package lab

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
)

// portAttempts is how often Up draws ports: another program may take one
// between the draw and its use.
const portAttempts = 5

// Up makes a laboratory and returns when it can be used: the API server
// answers, the controllers run, every simulated node is Ready. If it fails or
// ctx ends, nothing is left of it; the error tells what the component that
// failed said last. The error is a *SpecError for a laboratory that cannot be
// and an *ExistsError if there is one of that name.
func (s Store) Up(ctx context.Context, spec Spec) (*Lab, error) {
	if spec.Name == "" && spec.Private {
		var suffix [4]byte
		crand.Read(suffix[:])
		spec.Name = "private-" + hex.EncodeToString(suffix[:])
	}
	spec = spec.withDefaults()
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if spec.RealNode != nil {
		if _, err := realnode.Check(); err != nil {
			return nil, err
		}
	}
	if _, err := s.Open(spec.Name); err == nil {
		return nil, &ExistsError{spec.Name}
	} else if missing := (*NotFoundError)(nil); !errors.As(err, &missing) {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		l, err := s.up(ctx, spec)
		if err == nil {
			return l, nil
		}
		clash := strings.Contains(err.Error(), "address already in use")
		if !clash || attempt == portAttempts {
			return nil, fmt.Errorf("bring up laboratory %q: %w", spec.Name, err)
		}
	}
}

func (s Store) up(ctx context.Context, spec Spec) (_ *Lab, err error) {
	l := &Lab{store: s, dir: directory(s.dir(spec.Name))}
	l.lock, err = s.claim(l.dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil && spec.Private {
			return // its owner keeps the lock as long as it lives
		}
		if err != nil {
			err = errors.Join(err, remove(ctx, l.dir))
			if l.starter != nil {
				l.starter.close()
			}
		}
		l.lock.release()
		l.lock = nil
	}()
	if spec.Private {
		l.starter = newStarter()
	}
	if err := l.prepare(spec, time.Now()); err != nil {
		return nil, err
	}
	if spec.RealNode != nil {
		// The API server listens on this link, so it comes first.
		if err := l.record.RealNode.MakeLink(); err != nil {
			return nil, err
		}
	}
	if err := l.startAll(ctx); err != nil {
		return nil, err
	}
	l.record.Ready = true
	if err := l.dir.writeRecord(l.record); err != nil {
		return nil, err
	}
	return l, nil
}

// claim makes a laboratory's directory and locks it.
func (s Store) claim(dir directory) (*lock, error) {
	for {
		if err := os.MkdirAll(s.labs(), 0o700); err != nil {
			return nil, err
		}
		err := os.Mkdir(string(dir), 0o700)
		if errors.Is(err, fs.ErrExist) {
			return nil, &ExistsError{dir.name()}
		}
		var held *lock
		if err == nil {
			held, err = tryLock(string(dir))
		}
		if held != nil {
			return held, nil
		}
		// Another command removed the last laboratory, and the empty
		// directories with it, or a Sweep took this one for a dead one.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// prepare writes all that the components read.
func (l *Lab) prepare(spec Spec, now time.Time) error {
	var id [16]byte
	crand.Read(id[:])
	chosen, err := choosePorts(rand.IntN)
	if err != nil {
		return err
	}
	l.record = record{
		Schema:        recordSchema,
		Name:          spec.Name,
		ID:            hex.EncodeToString(id[:]),
		Created:       now,
		Private:       spec.Private,
		Owner:         os.Getpid(),
		Nodes:         spec.Nodes,
		MaxPods:       spec.MaxPods,
		NodeCPU:       spec.NodeCPU,
		NodeMemoryGiB: spec.NodeMemoryGiB,
		StartLatency:  spec.StartLatency.String(),
		Ports:         chosen,
	}
	if spec.RealNode != nil {
		if l.record.RealNode, err = l.planRealNode(spec); err != nil {
			return err
		}
	}
	if err := l.dir.writeRecord(l.record); err != nil {
		return err
	}
	for _, sub := range []string{"pki", "logs", "etcd"} {
		if err := os.Mkdir(l.dir.path(sub), 0o700); err != nil {
			return err
		}
	}
	if err := writePKI(l.dir, l.record, now); err != nil {
		return err
	}
	if l.record.RealNode != nil {
		if err := l.writeRealNode(); err != nil {
			return err
		}
	}
	return writeSchedulerConfig(l.dir)
}

// startAll starts the components, each as soon as what it needs is there: the
// clients of the API server retry with pauses that would cost seconds.
func (l *Lab) startAll(ctx context.Context) error {
	if err := l.startOne(ctx, Etcd); err != nil {
		return err
	}
	if err := l.startOne(ctx, APIServer, hookRoles, hookPriorities); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := l.setUp(ctx); err != nil {
			return err
		}
		for _, component := range []string{SimulatedNodes, RealNode} {
			if slices.Contains(l.componentNames(), component) {
				group.Go(func() error { return l.startOne(ctx, component) })
			}
		}
		return nil
	})
	group.Go(func() error {
		if err := l.waitAPIServer(ctx, hookPriorities); err != nil {
			return fmt.Errorf("wait for the API server's roles: %w", err)
		}
		for _, component := range []string{ControllerManager, Scheduler} {
			group.Go(func() error { return l.startOne(ctx, component) })
		}
		if err := l.waitServiceAccount(ctx); err != nil {
			return err
		}
		return l.waitAPIServer(ctx)
	})
	return group.Wait()
}

// startOne starts a component and waits until it works, but for the given
// hooks of the API server's.
func (l *Lab) startOne(ctx context.Context, component string, except ...string) error {
	l.store.progress("starting %s", component)
	if err := ignoreNotExist(os.Remove(l.dir.sign(component))); err != nil {
		return err
	}
	c, err := l.start(component)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		select {
		case <-c.ended:
			cancel(&endedError{component, c.state.String(), logTail(l.dir, component, 15)})
		case <-ctx.Done():
		}
	}()
	err = l.waitHealthy(ctx, component, except...)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-watcher
	if err != nil {
		return fmt.Errorf("start %s: %w", component, err)
	}
	return nil
}

// endedError is a component that ended by itself.
type endedError struct{ component, state, log string }

func (e *endedError) Error() string {
	return fmt.Sprintf("it ended by itself (%s); its log ends with\n%s", e.state, e.log)
}
