package ingress

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
)

// The events, which are made in the middle of each hold.
const (
	eventNone   = "none"
	eventRoute  = "route"        // a further route is made, and removed once every client had a right answer
	eventChange = "route-change" // the route is switched to other back ends
)

// Milestones of a route, besides those of requests.
const (
	created    = "Created"    // by the API server
	programmed = "Programmed" // the first right answer to a client
	changed    = "Changed"    // the first right answer of the other back ends to a client
)

const (
	sourceChange = "change"               // of what an event took
	eventPoll    = 5 * time.Millisecond   // between two requests of a client for a route
	eventBound   = 30 * time.Second       // until every client has its right answer
	eventTimeout = 500 * time.Millisecond // of one of them
)

// times holds the times of an event until a window tells of them.
type times struct {
	sync.Mutex
	of map[string][]record.Micros // by milestone
}

func (t *times) add(milestone string, took record.Micros) {
	t.Lock()
	defer t.Unlock()
	if t.of == nil {
		t.of = make(map[string][]record.Micros)
	}
	t.of[milestone] = append(t.of[milestone], took)
}

// tell has a window tell of the times.
func (t *times) tell(w *record.Window) error {
	t.Lock()
	defer t.Unlock()
	for milestone, list := range t.of {
		counts := record.NewCounts()
		for _, took := range list {
			record.Count(counts, took)
		}
		var err error
		if w.Histograms[milestone], err = record.HistogramOf(counts); err != nil {
			return err
		}
	}
	t.of = nil
	return nil
}

// makeEvent makes the event of the step's arm, and returns what it took until every client had its right answer.
func (s *step) makeEvent(ctx context.Context) (map[string]float64, error) {
	began := s.Rec.Clock.Now()
	if s.site.event == eventChange {
		if err := s.turn(ctx, s.site, true); err != nil {
			return nil, err
		}
		return s.askAll(ctx, s.asking(s.site, markOther), changed, began)
	}
	added, name := *s.site, fmt.Sprintf("%s-added-%d", s.site.name, s.Rec.Step())
	added.host = "added." + added.host
	if err := s.makeWay(ctx, &added, name); err != nil {
		return nil, err
	}
	s.times.add(created, s.Rec.Clock.Now()-began)
	// Without the right to it the route goes with the namespace.
	defer func() { _ = s.send(ctx, http.MethodDelete, added.route().path(s.namespace, name), nil, nil) }()
	return s.askAll(ctx, s.asking(&added, markOwn), programmed, began)
}

// asking returns the order of one request whose right answer has a mark.
func (i *instance) asking(s *site, mark string) clients.Order {
	o := clients.Order{Server: s.server, Trust: s.trust, Plan: s.settings.plan(0)}
	if s.via != viaURL {
		o.Plan.Hosts[0].Requests[0].Want = []byte(s.mark + mark)
	}
	o.Schedule.Timeout = eventTimeout
	return o
}

// askAll has every client ask until it gets the right answer, and notes how long after a moment each one had it.
func (s *step) askAll(ctx context.Context, o clients.Order, milestone string, from record.Micros) (map[string]float64, error) {
	var asked, wrong atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range s.fleet.Clients {
		g.Go(func() error {
			for until := from + record.MicrosOf(eventBound); ; {
				failed, err := c.Ask(ctx, o)
				now := s.Rec.Clock.Now()
				asked.Add(1)
				switch {
				case err != nil:
					return err
				case failed == "":
					s.times.add(milestone, now-from)
					return nil
				case now > until:
					return fmt.Errorf("%s had no right answer within %v; the last request failed: %s", c.Name, eventBound, failed)
				}
				if wrong.Add(1); !api.Sleep(ctx, eventPoll) {
					return context.Cause(ctx)
				}
			}
		})
	}
	err := g.Wait()
	return map[string]float64{"seconds": (s.Rec.Clock.Now() - from).Seconds(), "asked": float64(asked.Load()), "wrong": float64(wrong.Load())}, err
}

// turn leads a site's way to the other back ends, or back to its own.
func (i *instance) turn(ctx context.Context, s *site, others bool) error {
	if s.moved == others {
		return nil
	}
	backEnds := s.name
	if others {
		backEnds = s.other()
	}
	err := i.send(ctx, http.MethodPatch, s.route().path(i.namespace, s.wayName()), map[string]any{"spec": s.spec(backEnds)}, nil)
	s.moved = others || err != nil
	return err
}

// changeMetric returns the metric of the time that an event takes.
func changeMetric() record.Metric {
	return record.Metric{Name: "change", Unit: "s", Help: "time that the event took, until every client had the right answer", Of: record.Fold{Source: sourceChange, Value: "seconds", Fold: record.FoldLast}}
}
