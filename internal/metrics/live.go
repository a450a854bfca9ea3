package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	walrecord "github.com/prometheus/prometheus/tsdb/record"

	"plimsoll.dev/plimsoll/internal/record"
)

// Live answers questions about a run in progress, and keeps the series that its queries need.
type Live struct {
	start  time.Time
	each   time.Duration
	engine *promql.Engine
	asked  map[string]*understood
	back   time.Duration // the longest time before a step that a query needs

	mu    sync.Mutex
	b     *builder
	heads map[chunks.HeadSeriesRef]*head
	of    map[*source]*told
	told  []*told // in the order of their first reports
	o     *own
}

// told is the state of an endpoint.
type told struct {
	labels labels.Labels
	remote bool
	series []*head // of queries, without its up and the like
	silent bool    // it has reported no series at all
	gaps   []gap
}

// gap is a time in which an endpoint could not be read, in milliseconds since 1970.
type gap struct {
	from, to int64 // to is MaxInt64 while it lasts
	why      string
}

func (e *told) open(at int64, why string) {
	if n := len(e.gaps); n == 0 || e.gaps[n-1].to != math.MaxInt64 {
		e.gaps = append(e.gaps, gap{at, math.MaxInt64, why})
	}
}

func (e *told) close(at int64) {
	if n := len(e.gaps); n > 0 && e.gaps[n-1].to == math.MaxInt64 {
		e.gaps[n-1].to = at
	}
}

// understood is a parsed query.
type understood struct {
	selectors []matchers
	hold      bool // it has [hold]
}

type matchers []*labels.Matcher

func (list matchers) match(set labels.Labels) bool {
	for _, m := range list {
		if !m.Matches(set.Get(m.Name)) {
			return false
		}
	}
	return true
}

func (a *understood) selects(set labels.Labels) bool {
	return slices.ContainsFunc(a.selectors, func(list matchers) bool { return list.match(set) })
}

// NewLive makes one for a run's start, its interval of scrapes and queries that Check finds right.
func NewLive(start time.Time, each time.Duration, queries []string) (*Live, error) {
	l := &Live{start: start, each: max(each, time.Second), engine: newEngine(), asked: make(map[string]*understood), back: lookback, heads: make(map[chunks.HeadSeriesRef]*head), of: make(map[*source]*told)}
	l.b = &builder{heads: make(map[string]*head), keeps: l.keeps}
	l.o = &own{b: l.b, start: start, counted: make(map[*head]*growth), unasked: make(map[string]bool)}
	for _, q := range queries {
		expr, uses, err := parse(q, variables{})
		if err != nil {
			return nil, err
		}
		a := &understood{hold: uses.hold}
		for s, back := range reaches(expr) {
			a.selectors = append(a.selectors, s.LabelMatchers)
			l.back = max(l.back, min(back, mostBack))
		}
		l.asked[q] = a
	}
	for _, name := range []string{Objects, Requests, Errors, InFlight} {
		l.o.unasked[name] = true
		for _, a := range l.asked {
			for _, list := range a.selectors {
				if !slices.ContainsFunc(list, func(m *labels.Matcher) bool { return m.Name == nameLabel && !m.Matches(name) }) {
					l.o.unasked[name] = false
				}
			}
		}
	}
	return l, nil
}

const mostBack = 24 * time.Hour // bound of the time that a query reaches back: nothing is known of the time before the run

func (l *Live) keeps(set labels.Labels) bool {
	for _, a := range l.asked {
		if a.selects(set) {
			return true
		}
	}
	return set.Get(nameLabel) == upName // shows the targets of a Remote
}

const upName = "up" // series that says whether an endpoint could be read

// take takes in a report of an endpoint: new series, and samples; or why there are none.
func (l *Live) take(of *source, series []walrecord.RefSeries, list []walrecord.RefSample, at int64, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of[of]
	if e == nil {
		e = &told{labels: labels.FromStrings(append([]string{"job", of.Job, "instance", of.Instance}, of.Labels...)...), remote: of.Job == remoteJob, silent: true}
		l.of[of] = e
		l.told = append(l.told, e)
	}
	for _, one := range series {
		h := l.b.series(one.Labels)
		l.heads[one.Ref] = h
		if one.Ref == of.up || one.Ref == of.took || one.Ref == of.returned {
			continue
		}
		if e.silent = false; !h.ignored() {
			e.series = append(e.series, h)
		}
	}
	for _, one := range list {
		l.heads[one.Ref].take(one.T, one.V)
	}
	if why != "" {
		e.open(at, why)
		return
	}
	e.close(at)
}

// Event takes in an event of the history.
func (l *Live) Event(e record.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := e.Body.(*record.StepEvent); ok && s.Phase == record.PhaseStart {
		l.forget(l.o.at(e.T) - l.back.Milliseconds())
	}
	l.o.event(e)
}

func (l *Live) forget(before int64) {
	for _, h := range l.b.heads {
		n := 0
		for n < len(h.chunks)-1 && h.chunks[n].MaxTime < before {
			n++
		}
		h.chunks = slices.Delete(h.chunks, 0, n)
	}
	for _, e := range l.told {
		e.gaps = slices.DeleteFunc(e.gaps, func(g gap) bool { return g.to < before })
	}
}

// Question is the query of an objective in a step.
type Question struct {
	Query string
	Holds func(float64) bool // whether a value meets the objective
	Least bool               // less is worse
	At    time.Time          // the end of the hold, or of a step without one
}

// Found is the answer to a question.
type Found struct {
	Series, Broken, NaN int    // all, those outside of the objective, and those that are not numbers
	Of                  string // the labels of the series that broke first, or else of the worst; Value is its value
	Value               float64
	Since               time.Time // the first moment from which on that series was outside; zero where none was
	Why                 string    // why the answer is unknown, or ""
}

// Ask answers a question about the step in progress.
func (l *Live) Ask(ctx context.Context, q Question) Found {
	s := l.snapshot(q.Query, q.At)
	if s.why != "" {
		return Found{Why: s.why}
	}
	f, broken, err := l.ask(ctx, s, q, q.At)
	gap := s.gap(q.At)
	switch {
	case err != nil:
		f.Why = err.Error()
	case gap != "":
		f = Found{Why: gap}
	case f.Series == 0:
		f.Why = "no series came back"
	case f.NaN > 0 && f.Broken == 0:
		f.Why = fmt.Sprintf("%d of %d series are not numbers (NaN), as a ratio is without traffic", f.NaN, f.Series)
	case f.Broken > 0:
		l.first(ctx, s, q, &f, broken)
	}
	return f
}

// ask answers it for a time, and returns the values of the series outside of the objective.
func (l *Live) ask(ctx context.Context, s *snapshot, q Question, at time.Time) (f Found, broken map[string]float64, err error) {
	v := variables{step: at.Sub(s.began), hold: at.Sub(s.held)}
	text, _ := expand(q.Query, v)
	query, err := l.engine.NewInstantQuery(ctx, s, nil, text, at)
	if err != nil {
		return f, nil, err
	}
	defer query.Close()
	r := query.Exec(ctx)
	if r.Err != nil {
		return f, nil, r.Err
	}
	broken = make(map[string]float64)
	f.Value = math.NaN()
	take := func(of string, v float64) {
		f.Series++
		switch {
		case math.IsNaN(v):
			f.NaN++
			return
		case !q.Holds(v):
			f.Broken++
			broken[of] = v
		}
		if worse := v > f.Value; math.IsNaN(f.Value) || worse != q.Least && v != f.Value {
			f.Of, f.Value = of, v
		}
	}
	switch r := r.Value.(type) {
	case promql.Scalar:
		take("", r.V)
	case promql.Vector:
		for _, one := range r {
			if one.H != nil {
				return f, nil, fmt.Errorf("the series %s is a histogram, and no number", one.Metric)
			}
			take(seriesName(one.Metric), one.F)
		}
	}
	return f, broken, nil
}

// seriesName returns a series as an answer shows it, "" for one without labels.
func seriesName(l labels.Labels) string {
	if l.IsEmpty() {
		return ""
	}
	name := l.Get(nameLabel)
	if rest := l.DropReserved(func(n string) bool { return n == nameLabel }); name == "" || !rest.IsEmpty() {
		name += rest.String()
	}
	return name
}

const mostMoments = 60 // that are tried to find when a series broke

// first finds which series broke first, and when, in steps of the scrape interval.
func (l *Live) first(ctx context.Context, s *snapshot, q Question, f *Found, broken map[string]float64) {
	from := s.began
	if s.hold {
		from = s.held
	}
	each := max(l.each, q.At.Sub(from)/mostMoments)
	since := make(map[string]time.Time, len(broken))
	for of := range broken {
		since[of] = q.At
	}
	for t := q.At.Add(-each); t.After(from); t = t.Add(-each) {
		_, then, err := l.ask(ctx, s, q, t)
		if err != nil {
			break
		}
		open := false
		for of, at := range since {
			if _, broke := then[of]; broke && at.Equal(t.Add(each)) {
				since[of], open = t, true
			}
		}
		if !open {
			break
		}
	}
	for i, of := range slices.Sorted(maps.Keys(since)) {
		better := since[of].Equal(f.Since) && (broken[of] > f.Value) != q.Least
		if i == 0 || since[of].Before(f.Since) || better && broken[of] != f.Value {
			f.Since, f.Of, f.Value = since[of], of, broken[of]
		}
	}
}

type snapshot struct {
	*understood
	series      []storedSeries
	began, held time.Time
	gaps        []sourceGap
	why         string // a question cannot be answered, or ""
}

// sourceGap is a gap of an endpoint that a query depends on; the query reaches so far back.
type sourceGap struct {
	name string
	back time.Duration
	gap
}

type storedSeries struct {
	labels labels.Labels
	chunks []chunks.Meta
}

func (l *Live) snapshot(query string, at time.Time) *snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &snapshot{understood: l.asked[query]}
	switch step := l.o.step; {
	case s.understood == nil:
		s.why = "it was not asked for when the run began"
	case step == nil:
		s.why = "no step is made"
	case s.hold && !step.isToHold:
		s.why = "the level was not held"
	default:
		s.began, s.held = l.start.Add(step.from.Duration()), l.start.Add(step.reached.Duration())
	}
	if s.why != "" {
		return s
	}
	now := record.MicrosOf(at.Sub(l.start))
	all := make(map[string]*head)
	fresh := func(h *head) *head {
		if h.ignored() {
			return h
		}
		f := &head{b: new(builder), labels: h.labels, last: math.MinInt64}
		all[string(h.labels.Bytes(nil))] = f
		return f
	}
	l.o.eachCount(now, fresh)
	l.o.constants(l.o.step, func(h *head, v float64, from record.Micros) { l.o.constant(fresh(h), v, from, now) })
	for key, h := range l.b.heads {
		if !s.selects(h.labels) {
			continue
		}
		var list []chunks.Meta
		for i, c := range h.chunks {
			if i == len(h.chunks)-1 { // it goes on
				c.Chunk, _ = chunkenc.FromData(chunkenc.EncXOR, slices.Clone(c.Chunk.Bytes()))
			}
			list = append(list, c)
		}
		if f := all[key]; f != nil {
			list = append(list, f.chunks...)
		}
		if len(list) > 0 {
			s.series = append(s.series, storedSeries{h.labels, list})
		}
	}
	slices.SortFunc(s.series, func(a, b storedSeries) int { return labels.Compare(a.labels, b.labels) })
	expr, _, err := parse(query, variables{step: at.Sub(s.began), hold: at.Sub(s.held)})
	if err != nil {
		s.why = err.Error()
		return s
	}
	for selector, back := range reaches(expr) {
		s.addGaps(l.told, selector.LabelMatchers, back)
		l.addDowns(s, selector.LabelMatchers, back, at)
	}
	return s
}

// addDowns notes the gaps of the targets of a Remote: where their up is 0.
func (l *Live) addDowns(s *snapshot, list matchers, back time.Duration, at time.Time) {
	of := func(set labels.Labels) [2]string { return [2]string{set.Get("job"), set.Get("instance")} }
	targets := make(map[[2]string]bool)
	for _, e := range l.told {
		if e.remote {
			for _, t := range e.series {
				if t.labels.Get(nameLabel) != upName && list.match(t.labels) {
					targets[of(t.labels)] = true
				}
			}
		}
	}
	for _, h := range l.b.heads {
		if len(targets) == 0 || h.labels.Get(nameLabel) != upName || !targets[of(h.labels)] {
			continue
		}
		it := samples(h.chunks, nil, func(m chunks.Meta) (chunkenc.Chunk, error) { return m.Chunk, nil })
		name := (&Endpoint{Job: h.labels.Get("job"), Instance: h.labels.Get("instance")}).name()
		down := gap{from: math.MaxInt64, to: math.MaxInt64, why: "its up is 0"}
		for it.Next() != chunkenc.ValNone {
			switch t, v := it.At(); {
			case v == 0 && down.from == math.MaxInt64:
				down.from = t
			case v != 0 && down.from != math.MaxInt64:
				down.to = t
				s.gaps = append(s.gaps, sourceGap{name, back, down})
				down.from, down.to = math.MaxInt64, math.MaxInt64
			}
		}
		if down.from <= at.UnixMilli() {
			s.gaps = append(s.gaps, sourceGap{name, back, down})
		}
	}
}

// addGaps notes the gaps of endpoints with a selected series, and of silent ones that the selector names.
func (s *snapshot) addGaps(all []*told, list matchers, back time.Duration) {
	for _, e := range all {
		if len(e.gaps) == 0 {
			continue
		}
		own := e.labels
		depends := slices.ContainsFunc(e.series, func(t *head) bool { return list.match(t.labels) })
		if e.silent {
			named := slices.DeleteFunc(slices.Clone(list), func(m *labels.Matcher) bool { return !own.Has(m.Name) })
			depends = len(named) > 0 && named.match(own) || e.remote && !ownSeries(list)
		}
		if !depends {
			continue
		}
		name := (&Endpoint{Job: own.Get("job"), Instance: own.Get("instance")}).name()
		for _, g := range e.gaps {
			s.gaps = append(s.gaps, sourceGap{name, back, g})
		}
	}
}

// ownSeries reports whether a selector selects the record's own figures alone.
func ownSeries(list matchers) bool {
	return slices.ContainsFunc(list, func(m *labels.Matcher) bool {
		return m.Type == labels.MatchEqual && (m.Name == nameLabel && strings.HasPrefix(m.Value, "plimsoll_") || m.Name == "job" && m.Value == "plimsoll")
	})
}

// gap names the endpoint whose gap prevents an answer at a time, the first by time and name, or "".
func (s *snapshot) gap(at time.Time) string {
	var first *sourceGap
	for i, g := range s.gaps {
		if g.from > at.UnixMilli() || g.to <= at.Add(-g.back).UnixMilli() {
			continue
		}
		if first == nil || cmp.Or(cmp.Compare(g.from, first.from), strings.Compare(g.name, first.name)) < 0 {
			first = &s.gaps[i]
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("the metrics of %s could not be read at %s: %s", first.name, time.UnixMilli(first.from).UTC().Format(time.TimeOnly), first.why)
}

func (s *snapshot) Querier(mint, maxt int64) (storage.Querier, error) {
	return &liveQuerier{storage.NoopQuerier(), s, mint, maxt}, nil
}

type liveQuerier struct {
	storage.Querier // for methods that no query calls
	*snapshot
	mint, maxt int64
}

func (q *liveQuerier) Select(_ context.Context, _ bool, hints *storage.SelectHints, list ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil {
		mint, maxt = hints.Start, hints.End
	}
	set := &listSet{SeriesSet: storage.EmptySeriesSet(), at: -1}
	for _, one := range q.series {
		if !matchers(list).match(one.labels) {
			continue
		}
		if within := overlapping(one.chunks, mint, maxt); len(within) > 0 {
			set.list = append(set.list, &storage.SeriesEntry{Lset: one.labels, SampleIteratorFn: func(reuse chunkenc.Iterator) chunkenc.Iterator {
				return samples(within, reuse, func(m chunks.Meta) (chunkenc.Chunk, error) { return m.Chunk, nil })
			}})
		}
	}
	return set
}

type listSet struct {
	storage.SeriesSet
	list []storage.Series
	at   int
}

func (s *listSet) Next() bool         { s.at++; return s.at < len(s.list) }
func (s *listSet) At() storage.Series { return s.list[s.at] }
