package metrics

import (
	"bytes"
	"context"
	"encoding/binary"
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

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// DefaultMaxSeries is how many series are kept of a run where nobody says it.
const DefaultMaxSeries = 300_000

// Options say what is scraped.
type Options struct {
	// Every is how often; an endpoint has as long to answer.
	Every time.Duration
	// MaxSeries is how many series are kept, of all endpoints.
	MaxSeries int
	// Endpoints are those that there are now. It is called before each round.
	Endpoints func(context.Context) ([]Endpoint, error)
	// Now is the time on record.
	Now func() time.Time
	// Tell tells the user what he must know, once for each kind of it.
	Tell func(text string)
	// Secrets are the values that never reach the file.
	Secrets *redact.Secrets
	// Live, if not nil, takes in all that is scraped.
	Live *Live
	// Remote, if not nil, is asked for what it has scraped, from Start on.
	Remote *Remote
	Start  time.Time
}

// Scraper reads endpoints while a run is made.
type Scraper struct {
	Options
	path   string
	most   int64      // bytes of an answer
	rounds sync.Mutex // one at a time

	mu      sync.Mutex // of all below: answers are taken in one at a time
	file    *appender  // nil before anything was read
	sources map[string]*source
	n       int // of sources that the file knows
	series  int
	told    map[string]bool
	refused []string
	err     error
	buffers sync.Pool
	end     context.CancelFunc // of reading at the interval
	done    sync.WaitGroup
	soon    chan struct{}
	// Of the Remote: what is known of it, until when it was asked, and whether its clock
	// was looked at.
	remote  *source
	fetched time.Time
	clocked bool
	// Of the answer that is taken in:
	payload []byte
	samples []sample
	fresh   []string
	defined []byte
	set     labels.Labels
}

// source is what is known of an endpoint.
type source struct {
	Endpoint
	id      int
	refs    map[string]int // of series, by how the endpoint writes them
	series  []state
	round   uint32
	missed  int  // scrapes, in a row
	refused bool // and not asked again
	asked   time.Time
	there   bool // in the latest round
}

// state is a series' last sample.
type state struct {
	value float64
	time  int64 // that the endpoint gave, 0 for none
	round uint32
	live  bool
	timed bool
}

type sample struct {
	ref   int
	value float64
	time  int64
}

// atOnce is how many endpoints are asked at a time.
const atOnce = 4

// Scrape reads endpoints once, and from then on at the interval, until the scraper is
// stopped.
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

// Soon lets endpoints be read now, besides at the interval, and does not wait for that.
func (s *Scraper) Soon() {
	select {
	case s.soon <- struct{}{}:
	default: // it is about to be done
	}
}

// Stop reads endpoints once more, unless ctx has ended. Its error is the first of
// writing; nothing else ends a scraper.
func (s *Scraper) Stop(ctx context.Context) error {
	s.end()
	s.done.Wait()
	s.Fetch(ctx, s.Round(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		s.err = errors.Join(s.err, s.file.close())
	}
	return s.err
}

func newScraper(dir record.Dir, o Options) *Scraper {
	s := &Scraper{Options: o, path: dir.Path(ScrapesFile), most: mostBody, sources: make(map[string]*source), told: make(map[string]bool), soon: make(chan struct{}, 1)}
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
		s.say("endpoints", "which metrics there are is not known: %v", err)
	}
	for _, e := range s.sources {
		e.there = false
	}
	var ask []*source
	for _, e := range list {
		key := strings.Join(append([]string{e.Job, e.Instance}, e.Labels...), "\xff")
		known := s.sources[key]
		if known == nil {
			known = &source{id: -1, refs: make(map[string]int)}
			s.sources[key] = known
		}
		known.Endpoint, known.there = e, true
		if !known.refused {
			ask = append(ask, known)
		}
	}
	for _, e := range s.sources {
		if !e.there && e.id >= 0 {
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

// words are the first few of a list.
func words(list []string) string {
	const most = 4
	text := ""
	for i, one := range list[:min(len(list), most)] {
		if i > 0 {
			text += ", "
		}
		text += one
	}
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// scrape reads an endpoint once.
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
		err = s.parse(e, buf.Bytes(), contentType)
	}
	if buf.Cap() < 8<<20 { // a larger one is an exception
		s.buffers.Put(buf)
	}
	s.begin(frameScrape, e, at.UnixMilli())
	s.payload = binary.AppendUvarint(s.payload, uint64(max(took.Microseconds(), 0)))
	if err != nil {
		if e.missed++; e.missed == 2 {
			s.say("missed "+e.name(), "the metrics of %s could not be read at %s: %v; what is missing is on record as missing", e.name(), at.UTC().Format(time.TimeOnly), err)
		}
		s.text(s.Secrets.Message(err.Error()))
		for i := range e.series {
			e.series[i].live = false
		}
	} else {
		e.missed = 0
		s.text("")
		s.commit(e)
	}
	s.write()
}

// begin begins a frame.
func (s *Scraper) begin(kind byte, e *source, at int64) {
	if s.file == nil && s.err == nil {
		s.file, s.err = openScrapes(s.path)
	}
	s.payload = append(s.payload[:0], kind)
	isNew := e.id < 0
	if isNew {
		e.id = s.n
		s.n++
	}
	if s.payload = binary.AppendUvarint(s.payload, uint64(e.id)); isNew {
		s.texts(append([]string{"job", e.Job, "instance", e.Instance}, e.Labels...))
	}
	s.payload = binary.AppendUvarint(s.payload, uint64(at))
}

func (s *Scraper) text(t string) {
	s.payload = binary.AppendUvarint(s.payload, uint64(len(t)))
	s.payload = append(s.payload, t...)
}

func (s *Scraper) texts(list []string) {
	s.payload = binary.AppendUvarint(s.payload, uint64(len(list)))
	for _, t := range list {
		s.text(t)
	}
}

// write writes the frame.
func (s *Scraper) write() {
	if s.err != nil {
		return
	}
	if s.err = s.file.append(s.payload); s.err != nil {
		s.say("write", "metrics are not on record any more: %v", s.err)
		return
	}
	if s.Live != nil {
		s.Live.frame(s.payload)
	}
}

// ended puts on record that an endpoint is no more.
func (s *Scraper) ended(e *source) {
	live := slices.ContainsFunc(e.series, func(x state) bool { return x.live })
	for i := range e.series {
		e.series[i].live = false
	}
	if live {
		s.begin(frameEnded, e, s.Now().UnixMilli())
		s.write()
	}
}

// parse reads an answer into s.samples, with the series that are new. Nothing is kept
// of one that is not right as a whole.
func (s *Scraper) parse(e *source, body []byte, contentType string) (err error) {
	s.samples, s.fresh, s.defined = s.samples[:0], s.fresh[:0], s.defined[:0]
	defer func() {
		if r := recover(); r != nil { // the parsers of text rely on what they are given
			err = fmt.Errorf("what it answered cannot be read: %v", r)
		}
		if err != nil {
			for _, key := range s.fresh {
				delete(e.refs, key)
			}
			s.series -= len(s.fresh)
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
		ref, known := e.refs[string(text)]
		if !known {
			if s.series >= s.MaxSeries {
				s.say("series", "there are more than %d series of metrics: further ones are left out (--max-series)", s.MaxSeries)
				continue
			}
			ref = s.define(e, p, string(text), at != nil)
		}
		one := sample{ref: ref, value: v}
		if at != nil {
			one.time = *at
		}
		x := &e.series[ref]
		if x.round == e.round {
			s.say("twice "+e.name(), "%s tells the series %s twice: the first one counts", e.name(), labelsText(text))
			continue
		}
		x.round = e.round
		s.samples = append(s.samples, one)
	}
}

// labelsText is a series as its endpoint writes it, legible.
func labelsText(text []byte) string {
	return string(bytes.ReplaceAll(text[:min(len(text), mostOfAnswer)], []byte{0xff}, []byte{' '}))
}

// define gives a new series a number.
func (s *Scraper) define(e *source, p textparse.Parser, key string, timed bool) int {
	p.Labels(&s.set)
	given := append([]string{"job", e.Job, "instance", e.Instance}, e.Labels...)
	list := make([]string, 0, 16)
	s.set.Range(func(l labels.Label) {
		if i := slices.Index(given, l.Name); i >= 0 && i%2 == 0 {
			l.Name = "exported_" + l.Name // as Prometheus does
		}
		list = append(list, l.Name, s.Secrets.Message(l.Value))
	})
	return s.number(e, list, key, timed)
}

// number gives a series with these labels, by turns names and values, a number.
func (s *Scraper) number(e *source, list []string, key string, timed bool) int {
	kind := byte(0)
	if timed {
		kind = 1
	}
	s.defined = append(s.defined, kind)
	s.defined = binary.AppendUvarint(s.defined, uint64(len(list)))
	for _, t := range list {
		s.defined = append(binary.AppendUvarint(s.defined, uint64(len(t))), t...)
	}
	ref := len(e.series)
	e.series = append(e.series, state{timed: timed})
	e.refs[key] = ref
	s.fresh = append(s.fresh, key)
	s.series++
	return ref
}

// commit writes what differs from the scrape before.
func (s *Scraper) commit(e *source) {
	s.payload = binary.AppendUvarint(s.payload, uint64(len(s.fresh)))
	s.payload = append(s.payload, s.defined...)
	s.gone(e)
	slices.SortFunc(s.samples, func(a, b sample) int { return a.ref - b.ref })
	changed := s.samples[:0]
	for _, one := range s.samples {
		x := &e.series[one.ref]
		same := x.live && math.Float64bits(x.value) == math.Float64bits(one.value)
		if !same || x.timed && x.time != one.time {
			changed = append(changed, one)
		}
	}
	s.payload = binary.AppendUvarint(s.payload, uint64(len(changed)))
	next := 0
	for _, one := range changed {
		s.value(e, one, one.ref-next)
		next = one.ref + 1
	}
}

// gone writes which series were there and are no more.
func (s *Scraper) gone(e *source) {
	var list []int
	for i := range e.series {
		if x := &e.series[i]; x.live && x.round != e.round {
			x.live = false
			list = append(list, i)
		}
	}
	s.payload = binary.AppendUvarint(s.payload, uint64(len(list)))
	last := 0
	for _, i := range list {
		s.payload = binary.AppendUvarint(s.payload, uint64(i-last))
		last = i
	}
}

// exact is up to where all whole numbers are numbers of Go's float64.
const exact = 1 << 53

// value writes a value that is so many series after the one before.
func (s *Scraper) value(e *source, one sample, gap int) {
	x := &e.series[one.ref]
	whole := func(v float64) bool { return v == math.Trunc(v) && math.Abs(v) < exact }
	// The reader has the value that the series had when it was last there. It would
	// make a zero of one that is negative.
	raw := !whole(x.value) || !whole(one.value) || one.value == 0 && math.Signbit(one.value)
	head := uint64(gap) << valueBits
	if raw {
		head |= valueRaw
	}
	if x.timed {
		head |= valueTimed
	}
	if s.payload = binary.AppendUvarint(s.payload, head); raw {
		s.payload = binary.LittleEndian.AppendUint64(s.payload, math.Float64bits(one.value))
	} else {
		s.payload = binary.AppendVarint(s.payload, int64(one.value-x.value))
	}
	if x.timed {
		s.payload = binary.AppendVarint(s.payload, one.time-x.time)
	}
	x.value, x.time, x.live = one.value, one.time, true
}
