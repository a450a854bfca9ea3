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

// Live answers questions about a run that is under way, by what is put on record: it takes in what is
// scraped and the events of the history. It keeps the series that are asked for, as far back as is asked.
type Live struct {
	start  time.Time
	each   time.Duration
	engine *promql.Engine
	asked  map[string]*understood
	back   time.Duration // how far before a step any question goes

	mu    sync.Mutex
	b     *builder
	heads map[chunks.HeadSeriesRef]*head
	of    map[*source]*told
	told  []*told // in the order in which they were first
	o     *own
}

// told is what an endpoint has told.
type told struct {
	labels labels.Labels
	remote bool
	series []*head // of interest, but for its up and the like
	silent bool    // it has told no series, of whatever interest
	gaps   []gap
}

// gap is when an endpoint was not read that should have been, in milliseconds since
// 1970: from the time at which that was tried to that at which it was read again.
type gap struct {
	from, to int64 // to is MaxInt64 while it lasts
	why      string
}

// open notes that the endpoint cannot be read from a time on.
func (e *told) open(at int64, why string) {
	if n := len(e.gaps); n == 0 || e.gaps[n-1].to != math.MaxInt64 {
		e.gaps = append(e.gaps, gap{at, math.MaxInt64, why})
	}
}

// close notes that it was read at a time.
func (e *told) close(at int64) {
	if n := len(e.gaps); n > 0 && e.gaps[n-1].to == math.MaxInt64 {
		e.gaps[n-1].to = at
	}
}

// understood is a query as far as it is understood.
type understood struct {
	selectors []matchers
	hold      bool // it has [hold]
}

type matchers []*labels.Matcher

// match reports whether all do.
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

// NewLive makes one for a run that starts at a time, and for queries that Check finds
// right. Each is how often the run's metrics are read.
func NewLive(start time.Time, each time.Duration, queries []string) (*Live, error) {
	l := &Live{start: start, each: max(each, time.Second), engine: newEngine(), asked: make(map[string]*understood), back: lookback, heads: make(map[chunks.HeadSeriesRef]*head), of: make(map[*source]*told)}
	l.b = &builder{heads: make(map[string]*head), keeps: l.keeps}
	l.o = &own{b: l.b, start: start, counted: make(map[*head]map[int]float64), unasked: make(map[string]bool)}
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

// mostBack is how far back a question goes at most: about what was before it nothing is known.
const mostBack = 24 * time.Hour

// keeps reports whether a series is asked for.
func (l *Live) keeps(set labels.Labels) bool {
	for _, a := range l.asked {
		if a.selects(set) {
			return true
		}
	}
	return set.Get(nameLabel) == upName // which tells of the targets of a Remote
}

// upName is the series that says whether an endpoint could be read.
const upName = "up"

// take takes in what an endpoint told at a time: series that are new, and samples; or why
// it told nothing.
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

// forget lets go of what was before a time.
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

// Question is what an objective asks of a step.
type Question struct {
	Query string
	// Holds says whether a value is as it should be, and Least that less is worse.
	Holds func(float64) bool
	Least bool
	// At is when it is asked: at the end of the hold, or of a step without one.
	At time.Time
}

// Found is what a question came to.
type Found struct {
	// Series is how many came back, of which Broken are not as they should be, and NaN are no number.
	Series, Broken, NaN int
	// Of has the labels of the one that broke first, or of the worst where none did; Value is its value.
	Of    string
	Value float64
	// Since is when that series broke: the first of the moments looked at from which
	// on it was not as it should be. Zero where none broke.
	Since time.Time
	// Why says why it is unknown; "" where it is.
	Why string
}

// Ask answers a question about the step that is under way.
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

// ask asks at a time, and returns the values of the series that are not as they should be.
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

// seriesName is a series as an answer shows it, "" for one without labels.
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

// mostMoments is how many moments are looked at to find when a series broke.
const mostMoments = 60

// first finds which of the series that broke did so first, and when: from which moment
// on it was not as it should be. The moments are as far apart as scrapes are.
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

// snapshot is what is known at a time of the series that a query asks for.
type snapshot struct {
	*understood
	series      []storedSeries
	began, held time.Time
	gaps        []sourceGap
	why         string // a question cannot be answered, or ""
}

// sourceGap is a gap of an endpoint that a query depends on, from so long before the question on.
type sourceGap struct {
	name string
	back time.Duration
	gap
}

type storedSeries struct {
	labels labels.Labels
	chunks []chunks.Meta
}

// snapshot takes one of all that is known at a time.
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
	l.o.eachCount(int(now/second), fresh)
	l.o.constants(l.o.step, func(h *head, v float64, from record.Micros) { l.o.constant(fresh(h), v, from, now) })
	for key, h := range l.b.heads {
		if !s.selects(h.labels) {
			continue
		}
		var list []chunks.Meta
		for i, c := range h.chunks {
			if i == len(h.chunks)-1 { // which goes on
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

// addGaps notes the gaps of the endpoints that a selector depends on: of those that have
// told a series that it selects, and of those that it names and that have told nothing.
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

// ownSeries reports whether a selector is of the record's own figures alone.
func ownSeries(list matchers) bool {
	return slices.ContainsFunc(list, func(m *labels.Matcher) bool {
		return m.Type == labels.MatchEqual && (m.Name == nameLabel && strings.HasPrefix(m.Value, "plimsoll_") || m.Name == "job" && m.Value == "plimsoll")
	})
}

// gap says of which endpoint a question at a time cannot be answered, "" of none: of
// several the one that was missed first, and of those the first by its name.
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

// Querier implements storage.Queryable.
func (s *snapshot) Querier(mint, maxt int64) (storage.Querier, error) {
	return &liveQuerier{storage.NoopQuerier(), s, mint, maxt}, nil
}

type liveQuerier struct {
	storage.Querier // for what a query does not ask for
	*snapshot
	mint, maxt int64
}

// Select implements storage.Querier.
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

// listSet is a storage.SeriesSet of a list.
type listSet struct {
	storage.SeriesSet
	list []storage.Series
	at   int
}

// Next implements storage.SeriesSet.
func (s *listSet) Next() bool { s.at++; return s.at < len(s.list) }

// At implements storage.SeriesSet.
func (s *listSet) At() storage.Series { return s.list[s.at] }
