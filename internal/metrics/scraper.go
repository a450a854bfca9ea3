package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunks"
	walrecord "github.com/prometheus/prometheus/tsdb/record"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// DefaultMaxSeries is the default of Options.MaxSeries.
const DefaultMaxSeries = 300_000

// Options say what is scraped.
type Options struct {
	Every     time.Duration                             // an endpoint has as long to answer
	MaxSeries int                                       // of all endpoints
	Endpoints func(context.Context) ([]Endpoint, error) // called before each round
	Now       func() time.Time                          // the time on record
	Tell      func(text string)                         // warns the user, once for each kind
	Secrets   *redact.Secrets                           // never reach the record
	Live      *Live                                     // takes in all scrapes, nil for none
	Remote    *Remote                                   // is asked for its scrapes from Start on, nil for none
	Start     time.Time
}

// Scraper reads endpoints during a run.
type Scraper struct {
	Options
	path   string
	most   int64      // bytes of an answer
	rounds sync.Mutex // one at a time

	mu      sync.Mutex // of all below: answers are taken in one at a time
	log     *appender  // nil before anything was read
	sources map[string]*source
	ref     chunks.HeadSeriesRef // of the last series, but for its lowest bit
	series  int
	told    map[string]bool
	refused []string
	err     error
	buffers sync.Pool
	end     context.CancelFunc // of reading at the interval
	done    sync.WaitGroup
	soon    chan struct{}
	remote  *source
	fetched time.Time // of the Remote: the end of the last answer
	clocked bool      // of the Remote: its clock was compared

	fresh   []string // new series of the current answer, as the endpoint writes them
	set     labels.Labels
	defined []walrecord.RefSeries // of the current record, with out
	out     []walrecord.RefSample
}

type source struct {
	Endpoint
	up, took, returned chunks.HeadSeriesRef // 0 before the first scrape
	refs               map[string]int       // places of series, as the endpoint writes them
	series             []state
	round              uint32
	missed             int  // scrapes, in a row
	refused            bool // and not asked again
	asked              time.Time
	there              bool // in the latest round
}

type state struct {
	ref   chunks.HeadSeriesRef
	time  int64 // of the last sample of a Remote
	round uint32
	live  bool
	timed bool
}

const atOnce = 4 // endpoints that are read at a time

// Scrape reads endpoints once, and then at the interval, until the scraper is stopped.
func Scrape(ctx context.Context, dir record.Dir, o Options) *Scraper {
	s := newScraper(dir, o)
	s.Round(ctx)
	going, end := context.WithCancel(ctx)
	s.end = end
	s.done.Go(func() {
		tick := time.NewTicker(o.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.Round(going)
			case <-s.soon:
				s.Round(going)
			case <-going.Done():
				return
			}
		}
	})
	return s
}

// Soon starts an additional round and does not wait for it.
func (s *Scraper) Soon() {
	select {
	case s.soon <- struct{}{}:
	default: // it is about to be done
	}
}

// Stop reads endpoints once more, unless ctx has ended. Its error is the first failure to write.
func (s *Scraper) Stop(ctx context.Context) error {
	s.end()
	s.done.Wait()
	s.Fetch(ctx, s.Round(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log != nil {
		s.err = errors.Join(s.err, s.log.close())
	}
	return s.err
}

func newScraper(dir record.Dir, o Options) *Scraper {
	s := &Scraper{Options: o, path: dir.Path(ScrapesDir), most: mostBody, sources: make(map[string]*source), told: make(map[string]bool), soon: make(chan struct{}, 1)}
	s.buffers.New = func() any { return new(bytes.Buffer) }
	return s
}

// say tells the user something of a kind, once.
func (s *Scraper) say(kind, format string, args ...any) {
	if !s.told[kind] {
		s.told[kind] = true
		s.Tell(s.Secrets.Message(fmt.Sprintf(format, args...)))
	}
}

// Round reads all endpoints once, and returns when it began the last of them.
func (s *Scraper) Round(ctx context.Context) (last time.Time) {
	s.rounds.Lock()
	defer s.rounds.Unlock()
	began := s.Now()
	if ctx.Err() != nil {
		return began
	}
	ctx, cancel := context.WithTimeout(ctx, s.Every)
	defer cancel()
	var list []Endpoint
	var err error
	if s.Endpoints != nil {
		list, err = s.Endpoints(ctx)
	}
	s.mu.Lock()
	if err != nil && ctx.Err() == nil {
		s.say("endpoints", "which metrics there are is unknown: %v", err)
	}
	for _, e := range s.sources {
		e.there = false
	}
	var ask []*source
	for _, e := range list {
		key := strings.Join(append([]string{e.Job, e.Instance}, e.Labels...), "\xff")
		known := s.sources[key]
		if known == nil {
			known = &source{refs: make(map[string]int)}
			s.sources[key] = known
		}
		known.Endpoint, known.there = e, true
		if !known.refused {
			ask = append(ask, known)
		}
	}
	for _, e := range s.sources {
		if !e.there && e.up != 0 {
			s.ended(e)
		}
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, e := range ask {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			s.scrape(ctx, e)
		})
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	last = began
	for _, e := range ask {
		if e.asked.After(last) {
			last = e.asked
		}
	}
	if len(s.refused) > 0 {
		slices.Sort(s.refused)
		s.say("refused", "this user may not read the metrics of %s: they are not on record", words(s.refused))
	}
	if took := s.Now().Sub(began); took > s.Every+s.Every/10 {
		s.say("late", "reading all metrics took %.1f s, and they were to be read each %v: some are missing", took.Seconds(), s.Every)
	}
	return last
}

func words(list []string) string {
	const most = 4
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (s *Scraper) scrape(ctx context.Context, e *source) {
	buf := s.buffers.Get().(*bytes.Buffer)
	at := s.Now()
	contentType, err := e.read(ctx, buf, s.most)
	took := s.Now().Sub(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.asked = at
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the run has ended
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("did not answer within %v", s.Every)
	}
	if errors.As(err, new(*refusedError)) && len(e.series) == 0 {
		e.refused = true
		s.refused = append(s.refused, e.name())
		return
	}
	if err == nil {
		err = s.parse(e, buf.Bytes(), contentType, at.UnixMilli())
	}
	if buf.Cap() < 8<<20 { // a larger one is an exception
		s.buffers.Put(buf)
	}
	if err != nil {
		if e.missed++; e.missed == 2 {
			s.say("missed "+e.name(), "the metrics of %s could not be read at %s: %v; what is missing is on record as missing", e.name(), at.UTC().Format(time.TimeOnly), err)
		}
		s.gone(e, at.UnixMilli(), func(*state) bool { return true })
		s.write(e, at.UnixMilli(), took, 0, s.Secrets.Message(err.Error()))
		return
	}
	e.missed = 0
	returned := len(s.out)
	s.gone(e, at.UnixMilli(), func(x *state) bool { return x.round != e.round })
	for i := range e.series {
		e.series[i].live = e.series[i].round == e.round
	}
	s.write(e, at.UnixMilli(), took, returned, "")
}

func (s *Scraper) ended(e *source) {
	at := s.Now().UnixMilli()
	if s.gone(e, at, func(*state) bool { return true }) {
		s.out = append(s.out, walrecord.RefSample{Ref: e.up, T: at, V: math.Float64frombits(value.StaleNaN)})
		s.append(e, at, "it is there no more")
	}
}

// gone marks the end of live series without times of their own, and reports whether any was live.
func (s *Scraper) gone(e *source, at int64, which func(*state) bool) (any bool) {
	for i := range e.series {
		x := &e.series[i]
		if !x.live || !which(x) {
			continue
		}
		x.live, any = false, true
		if !x.timed {
			s.out = append(s.out, walrecord.RefSample{Ref: x.ref, T: at, V: math.Float64frombits(value.StaleNaN)})
		}
	}
	return any
}

// write writes the result of a scrape, its time and its number of samples, or why there are none.
func (s *Scraper) write(e *source, at int64, took time.Duration, returned int, why string) {
	if e.up == 0 {
		named := func(name string) chunks.HeadSeriesRef {
			return s.define(append([]string{nameLabel, name, "job", e.Job, "instance", e.Instance}, e.Labels...), false)
		}
		e.up, e.took, e.returned = named(upName), named("scrape_duration_seconds"), named("scrape_samples_scraped")
	}
	s.out = append(s.out, walrecord.RefSample{Ref: e.took, T: at, V: float64(max(took.Microseconds(), 0)) / 1e6})
	up := 0.0
	if why == "" {
		up = 1
		s.out = append(s.out, walrecord.RefSample{Ref: e.returned, T: at, V: float64(returned)})
	}
	s.out = append(s.out, walrecord.RefSample{Ref: e.up, T: at, V: up})
	s.append(e, at, why)
}

func (s *Scraper) append(e *source, at int64, why string) {
	defer func() { s.defined, s.out = s.defined[:0], s.out[:0] }()
	if s.log == nil && s.err == nil {
		s.log, s.err = openScrapes(s.path)
	} else if s.err != nil {
		return
	}
	if s.err == nil {
		s.err = s.log.append(s.defined, s.out)
	}
	if s.err != nil {
		s.say("write", "metrics are not on record any more: %v", s.err)
		return
	}
	if s.Live != nil {
		s.Live.take(e, s.defined, s.out, at, why)
	}
}

// parse reads an answer into s.out, with the new series. It keeps nothing of an answer with an error.
func (s *Scraper) parse(e *source, body []byte, contentType string, now int64) (err error) {
	s.fresh = s.fresh[:0]
	defer func() {
		if r := recover(); r != nil { // the parsers of text rely on their input
			err = fmt.Errorf("what it answered cannot be read: %v", r)
		}
		if err != nil {
			for _, key := range s.fresh {
				delete(e.refs, key)
			}
			s.series -= len(s.fresh)
			s.defined, s.out = s.defined[:0], s.out[:0]
			e.series = e.series[:len(e.series)-len(s.fresh)]
		}
	}()
	p, err := textparse.New(body, contentType, nil, textparse.ParserOptions{IgnoreNativeHistograms: true, OpenMetricsSkipSTSeries: true})
	if p == nil {
		return err
	}
	e.round++
	for {
		kind, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("what it answered cannot be read: %w", err)
		}
		if kind != textparse.EntrySeries {
			continue
		}
		text, at, v := p.Series()
		place, known := e.refs[string(text)]
		if !known {
			if s.series >= s.MaxSeries {
				s.say("series", "there are more than %d series of metrics: further ones are left out (--max-series)", s.MaxSeries)
				continue
			}
			place = s.parsed(e, p, string(text), at != nil)
		}
		x := &e.series[place]
		if x.round == e.round {
			s.say("twice "+e.name(), "%s tells the series %s twice: the first one counts", e.name(), labelsText(text))
			continue
		}
		x.round = e.round
		one := walrecord.RefSample{Ref: x.ref, T: now, V: v}
		if x.timed && at != nil {
			one.T = *at
		}
		s.out = append(s.out, one)
	}
}

// labelsText returns a series as its endpoint writes it, legible.
func labelsText(text []byte) string {
	return string(bytes.ReplaceAll(text[:min(len(text), mostOfAnswer)], []byte{0xff}, []byte{' '}))
}

func (s *Scraper) parsed(e *source, p textparse.Parser, key string, timed bool) int {
	p.Labels(&s.set)
	given := append([]string{"job", e.Job, "instance", e.Instance}, e.Labels...)
	list := make([]string, 0, 16)
	s.set.Range(func(l labels.Label) {
		if i := slices.Index(given, l.Name); i >= 0 && i%2 == 0 {
			l.Name = "exported_" + l.Name // as Prometheus does
		}
		list = append(list, l.Name, s.Secrets.Message(l.Value))
	})
	return s.number(e, append(list, given...), key, timed)
}

// number gives a series its place among those of the source. The list has names and values by turns.
func (s *Scraper) number(e *source, list []string, key string, timed bool) int {
	place := len(e.series)
	e.series = append(e.series, state{ref: s.define(list, timed), timed: timed})
	e.refs[key] = place
	s.fresh = append(s.fresh, key)
	s.series++
	return place
}

func (s *Scraper) define(list []string, timed bool) chunks.HeadSeriesRef {
	s.ref += 2
	ref := s.ref
	if timed {
		ref |= timedRef
	}
	s.defined = append(s.defined, walrecord.RefSeries{Ref: ref, Labels: labelsOf(list)})
	return ref
}
