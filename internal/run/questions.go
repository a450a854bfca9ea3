package run

import (
	"context"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
)

// questions asks the queries of objectives and guards during the run. Nil asks nothing.
type questions struct {
	live    *metrics.Live
	start   time.Time
	clock   *record.Clock
	each    time.Duration
	asked   []slo.SLO // objectives
	guards  []slo.SLO
	scraper atomic.Pointer[metrics.Scraper] // nil where nothing is scraped
	latest  time.Time                       // the last look at the guards
	remote  bool                            // a Prometheus is asked for its samples of each step
}

// newQuestions returns nil where an experiment has no queries and asks no Prometheus.
func newQuestions(x *Experiment, clock *record.Clock) (*questions, error) {
	q := &questions{start: x.Spec.Start, clock: clock, each: max(x.Scrape.Every, time.Second), guards: x.Guards, remote: x.Scrape.Remote != nil}
	var texts []string
	seen := make(map[string]bool)
	for _, g := range x.Spec.Goals {
		for _, s := range g.SLOs {
			if s.Form == slo.Query && !seen[s.String()] {
				seen[s.String()] = true
				q.asked = append(q.asked, s)
				texts = append(texts, s.Query)
			}
		}
	}
	for _, s := range q.guards {
		texts = append(texts, s.Query)
	}
	if len(texts) == 0 && x.Scrape.Remote == nil {
		return nil, nil
	}
	var err error
	q.live, err = metrics.NewLive(q.start, q.each, texts)
	return q, err
}

func (q *questions) event(e record.Event) {
	if q == nil {
		return
	}
	q.live.Event(e)
	if s, ok := e.Body.(*record.StepEvent); ok && s.Phase == record.PhaseReached && len(q.asked) > 0 {
		if scraper := q.scraper.Load(); scraper != nil {
			scraper.Soon() // so that even a short hold has a scrape at its begin and one at its end
		}
	}
}

func (q *questions) scrapes(s *metrics.Scraper) {
	if q != nil {
		q.scraper.Store(s)
	}
}

func (q *questions) ask(o *engine.Options, recorder system.Recorder) {
	if q == nil {
		return
	}
	if len(q.guards) > 0 {
		o.Trips = q.trips
	}
	if len(q.asked) > 0 || q.remote {
		o.Held = func(ctx context.Context) { q.answer(ctx, recorder) }
	}
}

func (q *questions) now() time.Time { return q.start.Add(q.clock.Now().Duration()) }

func (q *questions) answer(ctx context.Context, recorder system.Recorder) {
	at := q.now()
	if scraper := q.scraper.Load(); scraper != nil {
		at = scraper.Round(ctx)
		scraper.Fetch(ctx, at)
	}
	for _, s := range q.asked {
		f := q.found(ctx, s, at)
		if ctx.Err() != nil {
			return // the answer was cut
		}
		a := &record.Answer{Objective: s.String(), Series: f.Series, Broken: f.Broken, NaN: f.NaN, Of: f.Of, Why: f.Why}
		if f.Series > f.NaN {
			a.Value = strconv.FormatFloat(f.Value, 'g', -1, 64)
		}
		if !f.Since.IsZero() {
			a.Since = record.MicrosOf(f.Since.Sub(q.start))
		}
		recorder.Emit(a)
	}
}

func (q *questions) found(ctx context.Context, s slo.SLO, at time.Time) metrics.Found {
	return q.live.Ask(ctx, metrics.Question{Query: s.Query, Least: s.Least(), At: at, Holds: func(v float64) bool { return s.Op.Holds(v, s.Value) }})
}

// trips asks the guards, as often as metrics are read. An unknown answer trips none.
func (q *questions) trips(ctx context.Context) (record.Guard, bool) {
	at := q.now()
	if at.Sub(q.latest) < q.each {
		return record.Guard{}, false
	}
	q.latest = at
	if scraper := q.scraper.Load(); scraper != nil {
		scraper.Fetch(ctx, at)
	}
	for _, s := range q.guards {
		f := q.found(ctx, s, at)
		if f.Why != "" || f.Broken == 0 {
			continue
		}
		message := s.String() + ": it is " + strconv.FormatFloat(f.Value, 'g', 4, 64)
		if f.Of != "" {
			message += " of " + f.Of
		}
		value := max(min(f.Value, math.MaxFloat64), -math.MaxFloat64) // finite, for the record
		return record.Guard{Name: s.String(), Value: value, Bound: s.Value, Message: message}, true
	}
	return record.Guard{}, false
}
