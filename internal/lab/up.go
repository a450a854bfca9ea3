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
	"path/filepath"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

// portAttempts bounds how often Up draws ports: another program may take one before its use.
const portAttempts = 5

// Up makes a lab and returns when all of it works. On failure it removes everything, and the error quotes the
// component that failed. It returns a *SpecError for an impossible lab, and an *ExistsError for a name in
// use.
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
	if spec.RealNode {
		if _, err := realnode.Check(); err != nil {
			return nil, err
		}
	}
	if spec.RealGuests > 0 {
		if err := s.needGuests(ctx); err != nil {
			return nil, err
		}
	}
	if err := spec.fitsMemory(); err != nil {
		return nil, err
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
			return nil, fmt.Errorf("bring up lab %q: %w", spec.Name, err)
		}
	}
}

func (s Store) up(ctx context.Context, spec Spec) (_ *Lab, err error) {
	l := &Lab{runner: runner{store: s, dir: directory(s.dir(spec.Name))}}
	l.lock, err = claim(l.dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil && spec.Private {
			return // its owner keeps the lock as long as it lives
		}
		if err != nil {
			err = errors.Join(err, remove(ctx, l.dir))
			if l.tie != nil {
				l.tie.Close()
			}
		}
		l.lock.release()
		l.lock = nil
	}()
	if spec.Private {
		l.tie = proc.NewTie()
	}
	if l.record, err = s.prepare(l.dir, spec, time.Now()); err != nil {
		return nil, err
	}
	if spec.RealNode {
		// The API server listens on this link, so it comes first.
		if err := l.record.RealNode.MakeLink(); err != nil {
			return nil, err
		}
	}
	if spec.ControlPlaneCPUs > 0 {
		if err := realnode.ConfineControlPlane(string(l.dir), spec.ControlPlaneCPUs); err != nil {
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

func claim(dir directory) (*lock, error) {
	for {
		if err := os.MkdirAll(filepath.Dir(string(dir)), 0o700); err != nil {
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
		// Another command may have removed the empty directories, or a Sweep this one.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// prepare writes everything that the components read.
func (s Store) prepare(dir directory, spec Spec, now time.Time) (record, error) {
	var id [16]byte
	crand.Read(id[:])
	chosen, err := choosePorts(rand.IntN)
	if err != nil {
		return record{}, err
	}
	r := record{
		Schema: recordSchema, Name: spec.Name, ID: hex.EncodeToString(id[:]), Created: now, Private: spec.Private,
		Owner: os.Getpid(), Shape: spec.Shape, Ports: chosen,
	}
	if r.RealGuests > 0 {
		found, err := qemuProgram().Find(context.Background(), "")
		if err != nil {
			return r, err
		}
		r.QEMU, r.GuestImage = found.Path, s.guestImage()
	}
	if spec.RealNode {
		if r.RealNode, err = dir.planRealNode(spec); err != nil {
			return r, err
		}
	}
	if err := dir.writeRecord(r); err != nil {
		return r, err
	}
	for _, sub := range []string{"pki", "logs", "etcd"} {
		if err := os.Mkdir(dir.path(sub), 0o700); err != nil {
			return r, err
		}
	}
	if err := writePKI(dir, r, now); err != nil {
		return r, err
	}
	if r.RealNode != nil {
		if err := s.writeRealNode(dir, r.RealNode); err != nil {
			return r, err
		}
	}
	return r, writeSchedulerConfig(dir)
}
