package io

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Worker returns what does the IO of a client in a pod, below a directory: an order's work is an fio.Job, whose rate is
// that of all clients.
func Worker(dir string) clients.Worker {
	s, filled := &session{Session: local.Session{Tied: proc.NewTie()}}, make(map[string]bool)
	return func(ctx context.Context, o clients.Order, clock *record.Clock, emit func(record.Body)) (clients.Work, error) {
		var job fio.Job
		err := json.Unmarshal(o.Work, &job)
		if err == nil {
			err = job.Check()
		}
		if err != nil {
			return nil, fmt.Errorf("read the order: %w", err)
		}
		binary, err := fio.Find(ctx, "")
		if err != nil {
			return nil, err
		}
		l := inside{&load{
			settings: settings{binary: binary, job: job, depth: job.Depth, rate: job.Rate, volumes: o.Plan.Parts},
			session:  s, ground: &directories{session: s, bases: []string{dir}},
			rec: system.Recorder{Sink: sinkOf(emit), Clock: clock, Step: func() int { return 0 }},
		}}
		if err := l.prepare(ctx, []int{o.Plan.Part}, filled); err != nil {
			return nil, errors.Join(err, l.End())
		}
		return l, nil
	}
}

type sinkOf func(record.Body)

// Append implements record.Sink.
func (f sinkOf) Append(e record.Event) { f(e.Body) }

// inside is the IO of one client.
type inside struct{ *load }

// Start implements clients.Work.
func (l inside) Start(ctx context.Context, s streams.Schedule) error {
	l.every = s.Window
	return l.begin(ctx)
}

// Progress implements clients.Work.
func (l inside) Progress() streams.Progress {
	p := l.load.Progress()
	return streams.Progress{Sent: p.Sent, Done: p.There, Failed: p.Failed, InFlight: p.InFlight, Moved: p.Moved}
}

// Readings implements clients.Work: how busy fio is.
func (l inside) Readings() []record.Reading {
	return slices.DeleteFunc(l.load.Readings(), func(r record.Reading) bool { return r.Source != sourceFio })
}
