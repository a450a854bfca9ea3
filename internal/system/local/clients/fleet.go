package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Client is one that a fleet gives orders to.
type Client struct {
	Name string // such as "client-0 on node-a"
	http *http.Client
}

// NewClient makes a client that is reached by dial. Its connections are kept.
func NewClient(name string, dial func(ctx context.Context) (net.Conn, error)) *Client {
	return &Client{name, &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }, MaxIdleConnsPerHost: 2,
	}}}
}

// Close ends the connections to the client.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) post(ctx context.Context, path string, body any) (io.ReadCloser, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://client"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	reply, err := c.http.Do(request)
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err // its address is made up
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if reply.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(reply.Body, 1<<10))
		reply.Body.Close()
		return nil, fmt.Errorf("%s: %s: %s", c.Name, reply.Status, strings.TrimSpace(string(said)))
	}
	return reply.Body, nil
}

func (c *Client) ask(ctx context.Context, path string, body any) (t told, err error) {
	reply, err := c.post(ctx, path, body)
	if err != nil {
		return t, err
	}
	defer reply.Close()
	if err = json.NewDecoder(reply).Decode(&t); err != nil {
		err = fmt.Errorf("%s: %w", c.Name, err)
	}
	_, _ = io.Copy(io.Discard, reply) // so that the connection is kept
	return t, err
}

// Ask has the client make one request of an order, and returns the kind of its failure, "" for none.
func (c *Client) Ask(ctx context.Context, o Order) (failed string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Schedule.Timeout+silentFor, silentError{})
	defer cancel()
	t, err := c.ask(ctx, pathAsk, o)
	return t.Failed, err
}

// Path has the client connect to a server, a name or address with a port, and returns the sizes of packets.
func (c *Client) Path(ctx context.Context, server string) (Path, error) {
	t, err := c.ask(ctx, pathLook, Order{Server: server})
	if err == nil && t.Path == nil {
		err = fmt.Errorf("%s: %s", c.Name, t.Failed)
	}
	if err != nil {
		return Path{}, err
	}
	return *t.Path, nil
}

const roundTrips = 8 // that measure how far a clock is from ours

// Offset returns the client's clock less ours, as of the shortest of several round trips, of which half is
// the largest error.
func (c *Client) Offset(ctx context.Context, now func() record.Micros) (offset, within record.Micros, err error) {
	for i := range roundTrips {
		before := now()
		t, err := c.ask(ctx, pathClock, nil)
		if err != nil {
			return 0, 0, err
		}
		after := now()
		if half := (after - before + 1) / 2; i == 0 || half < within {
			offset, within = t.Clock-(before+half), half
		}
	}
	return offset, within, nil
}

// Fleet makes streams with clients. Its fields must not change during a stream.
type Fleet struct {
	Clients []*Client
	Now     func() record.Micros
	Late    time.Duration // after the agreed moment, at which a client may begin at most

	mu       sync.Mutex
	parts    []*part
	offsets  []record.Micros
	recorded []record.Request
}

// silentError says why a client is lost that does not answer.
type silentError struct{}

func (silentError) Error() string { return fmt.Sprintf("it said nothing for %v", silentFor) }

// part holds the state of one client's part of a stream.
type part struct {
	client   *Client
	progress streams.Progress
	use, was Use                       // now, and when the part began
	readings map[string]record.Reading // the last ones by source
	notes    []string
	late     time.Duration
	moved    time.Duration // that its clock has moved by at least, against ours
	over     *over
	lost     string // why nothing more is known of it, "" while it is
}

// Agree measures the clients' clocks before a stream. It returns the clients that do not answer, and why.
func (f *Fleet) Agree(ctx context.Context) (silent map[*Client]error) {
	f.offsets, silent = make([]record.Micros, len(f.Clients)), make(map[*Client]error)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, c := range f.Clients {
		all.Go(func() {
			offset, _, err := c.Offset(ctx, f.Now)
			mu.Lock()
			defer mu.Unlock()
			if f.offsets[i] = offset; err != nil {
				silent[c] = err
			}
		})
	}
	all.Wait()
	return silent
}

// Stream makes a stream with the clients, after Agree. It emits a window once every client has reported it
// or is lost. It calls lost for a lost client, counts the requests that this client still had to send as lost,
// and returns a *streams.UnfinishedError. It returns a *streams.VoidError if a client began too late, or its clock moved.
func (f *Fleet) Stream(ctx context.Context, o Order, emit func(*record.Window), lost func(client, why string)) error {
	merge := newMerge(o, f.Clients, emit)
	f.mu.Lock()
	f.parts = nil
	for _, c := range f.Clients {
		f.parts = append(f.parts, &part{client: c, readings: make(map[string]record.Reading)})
	}
	f.mu.Unlock()
	var all sync.WaitGroup
	var mu sync.Mutex // of the merge
	var failed error
	for i, p := range f.parts {
		mine := o
		mine.Plan.Part, mine.Plan.Parts = i, len(f.parts)
		mine.Schedule.Begin += f.offsets[i]
		all.Go(func() {
			err := f.carryOut(ctx, p, mine, f.offsets[i], func(list []*record.Window) {
				mu.Lock()
				defer mu.Unlock()
				if err := merge.add(i, list); err != nil && failed == nil {
					failed = err
				}
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.mu.Lock()
				p.lost = err.Error()
				f.mu.Unlock()
				if ctx.Err() == nil {
					lost(p.client.Name, p.lost)
				}
			}
			until := o.Schedule.End()
			if ctx.Err() != nil { // the whole load was cut
				until = min(until, f.Now())
			}
			if err := merge.end(i, until); err != nil && failed == nil {
				failed = err
			}
		})
	}
	all.Wait()
	return errors.Join(failed, f.verdict())
}

// verdict returns the error of the stream, and collects the recorded requests.
func (f *Fleet) verdict() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recorded = nil
	var lost, late, moved []string
	for i, p := range f.parts {
		switch {
		case p.lost != "":
			lost = append(lost, p.client.Name+": "+p.lost)
		case p.late > f.Late:
			late = append(late, fmt.Sprintf("%s by %v", p.client.Name, p.late.Round(time.Millisecond)))
		case p.moved > f.Late:
			moved = append(moved, fmt.Sprintf("%s by %v", p.client.Name, p.moved.Round(time.Millisecond)))
		}
		if p.over != nil {
			for _, r := range p.over.Recorded {
				r.Intended, r.Sent, r.Ended = r.Intended-f.offsets[i], r.Sent-f.offsets[i], r.Ended-f.offsets[i]
				f.recorded = append(f.recorded, r)
			}
		}
	}
	switch {
	case len(lost) > 0:
		return &streams.UnfinishedError{What: "clients were lost: " + strings.Join(lost, "; ")}
	case len(late) > 0:
		return &streams.VoidError{What: fmt.Sprintf("clients began later than %v after the agreed moment: %s", f.Late, strings.Join(late, "; "))}
	case len(moved) > 0:
		return &streams.VoidError{What: "the clocks of clients moved during the load: " + strings.Join(moved, "; ")}
	}
	return nil
}

// carryOut gives a client its order and follows it to the end, and measures again how far its clock is from ours.
// It returns an error if the client is lost.
func (f *Fleet) carryOut(ctx context.Context, p *part, o Order, offset record.Micros, windows func([]*record.Window)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silentFor, func() { cancel(silentError{}) })
	defer silent.Stop()
	cause := func(err error) error {
		if why := context.Cause(ctx); why != nil {
			return why
		}
		return err
	}
	reply, err := p.client.post(ctx, pathOrder, o)
	if err != nil {
		return cause(err)
	}
	defer reply.Close()
	for lines := json.NewDecoder(reply); ; {
		var t told
		if err := lines.Decode(&t); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("its connection ended")
			}
			return cause(err)
		}
		silent.Reset(silentFor)
		f.mu.Lock()
		if t.Progress != nil {
			p.progress = *t.Progress
		}
		if t.Use != nil {
			p.use = *t.Use
		}
		if t.Began != nil {
			p.late, p.was = (*t.Began - o.Schedule.Begin).Duration(), p.use
		}
		for _, r := range t.Readings {
			p.readings[r.Source] = r
		}
		p.notes = append(p.notes, t.Notes...)
		p.over = t.Over
		f.mu.Unlock()
		if len(t.Windows) > 0 {
			windows(t.Windows)
		}
		if t.Over != nil && t.Over.Error != "" {
			return errors.New(t.Over.Error)
		}
		if t.Over != nil {
			now, within, err := p.client.Offset(ctx, f.Now)
			p.moved = max((now-offset).Duration().Abs()-within.Duration(), 0)
			return cause(err)
		}
	}
}

// Progress sums up the present or last stream.
func (f *Fleet) Progress() (sum streams.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		sum.Sent, sum.Done, sum.Failed, sum.Late, sum.Dropped = sum.Sent+p.progress.Sent, sum.Done+p.progress.Done, sum.Failed+p.progress.Failed, sum.Late+p.progress.Late, sum.Dropped+p.progress.Dropped
		if p.lost == "" {
			sum.InFlight += p.progress.InFlight
		}
		sum.Moved = max(sum.Moved, p.progress.Moved)
	}
	return sum
}

// Recorded returns the single requests that each client kept of the last stream.
func (f *Fleet) Recorded() []record.Request { return f.recorded }

// Uses returns the processor time that each client used since the stream began, by the client's name.
func (f *Fleet) Uses() map[string]Use {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]Use, len(f.parts))
	for _, p := range f.parts {
		all[p.client.Name] = Use{Wanted: p.use.Wanted - p.was.Wanted, Throttled: p.use.Throttled - p.was.Throttled, Limit: p.use.Limit}
	}
	return all
}

// Readings returns the last value of a source's readings that each client has told.
func (f *Fleet) Readings(source, value string) (list []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		if v, told := p.readings[source].Values[value]; told {
			list = append(list, v)
		}
	}
	return list
}

// Notes returns what clients have noted about the last stream.
func (f *Fleet) Notes() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		for _, n := range p.notes {
			list = append(list, p.client.Name+": "+n)
		}
	}
	return list
}

// Prepare has every client prepare the work of an order, each its part of it. It returns why clients could not.
func (f *Fleet) Prepare(ctx context.Context, o Order) (failed map[*Client]error) {
	failed = make(map[*Client]error)
	var all sync.WaitGroup
	var mu sync.Mutex
	for i, c := range f.Clients {
		mine := o
		mine.Plan.Part, mine.Plan.Parts = i, len(f.Clients)
		all.Go(func() {
			t, err := c.ask(ctx, pathAsk, mine)
			if err == nil && t.Failed != "" {
				err = fmt.Errorf("%s: %s", c.Name, t.Failed)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[c] = err
			}
		})
	}
	all.Wait()
	return failed
}

// merge adds up the windows of all parts. It holds only the windows that some clients have reported and
// others have not.
type merge struct {
	schedule streams.Schedule
	clients  []*Client
	emit     func(*record.Window)
	parts    []mergePart
	open     []map[string]*merged // by component, from the first that was not emitted
	emitted  int
}

type mergePart struct {
	windows   int // that it has reported
	over      bool
	sent      int    // of the last window, by which a lost closed loop is counted
	component string // to which lost requests count
}

type merged struct {
	record.Window
	histograms map[string]*hdrhistogram.Histogram
	ownDelay   *hdrhistogram.Histogram
}

func newMerge(o Order, clients []*Client, emit func(*record.Window)) *merge {
	m := &merge{schedule: o.Schedule, clients: clients, emit: emit, parts: make([]mergePart, len(clients))}
	for i := range m.parts {
		m.parts[i].component = o.Component
	}
	return m
}

// window returns the merged window of a component, by its index from the schedule's begin.
func (m *merge) window(index int, component string) *merged {
	for len(m.open) <= index-m.emitted {
		m.open = append(m.open, make(map[string]*merged))
	}
	at := m.open[index-m.emitted]
	if at[component] == nil {
		from, to := m.span(index)
		at[component] = &merged{Window: record.Window{
			Component: component, From: from, To: to, WarmUp: from < m.schedule.Begin+record.MicrosOf(m.schedule.Warm),
		}, histograms: make(map[string]*hdrhistogram.Histogram), ownDelay: record.NewCounts()}
	}
	return at[component]
}

func (m *merge) span(index int) (from, to record.Micros) {
	length := record.MicrosOf(m.schedule.Window)
	from = m.schedule.Begin + record.Micros(index)*length
	return from, min(from+length, m.schedule.End())
}

func (m *merge) all() int {
	length := record.MicrosOf(m.schedule.Window)
	return int((m.schedule.End() - m.schedule.Begin + length - 1) / length)
}

// add adds a part's next windows, of all its components.
func (m *merge) add(part int, list []*record.Window) error {
	p, name := &m.parts[part], m.clients[part].Name
	if p.windows >= m.all() {
		return fmt.Errorf("%s: more windows than the schedule has", name)
	}
	p.sent, p.component = 0, list[0].Component
	for _, w := range list {
		if err := m.window(p.windows, w.Component).add(name, w); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.sent += w.Sent
	}
	p.windows++
	return m.flush()
}

// add adds a window of a client.
func (to *merged) add(client string, w *record.Window) error {
	sum(&to.Window, w)
	addTo(&to.ByPlace, client, w.Done)
	addTo(&to.FailedByPlace, client, w.FailedAll())
	for name, h := range w.Histograms {
		if to.histograms[name] == nil {
			to.histograms[name] = record.NewCounts()
		}
		if err := into(to.histograms[name], h); err != nil {
			return err
		}
	}
	return into(to.ownDelay, w.OwnDelay)
}

func into(to *hdrhistogram.Histogram, h record.Histogram) error {
	counts, err := h.Counts()
	if err == nil {
		to.Merge(counts)
	}
	return err
}

// sum adds the counts of a window.
func sum(to, w *record.Window) {
	to.Intended, to.Sent, to.Done, to.Late, to.Dropped = to.Intended+w.Intended, to.Sent+w.Sent, to.Done+w.Done, to.Late+w.Late, to.Dropped+w.Dropped
	to.Lost, to.Retried, to.Answered, to.AnsweredBytes = to.Lost+w.Lost, to.Retried+w.Retried, to.Answered+w.Answered, to.AnsweredBytes+w.AnsweredBytes
	to.InFlight, to.Backlog, to.BytesIn, to.BytesOut = to.InFlight+w.InFlight, to.Backlog+w.Backlog, to.BytesIn+w.BytesIn, to.BytesOut+w.BytesOut
	for kind, n := range w.Failed {
		addTo(&to.Failed, kind, n)
	}
}

func addTo(counts *map[string]int, kind string, n int) {
	if n == 0 {
		return
	}
	if *counts == nil {
		*counts = make(map[string]int)
	}
	(*counts)[kind] += n
}

// end marks a part as over. Its requests until then that it has not reported are lost. In a closed loop these are
// as many as in its last window, and at least one for each of its clients.
func (m *merge) end(part int, until record.Micros) error {
	p := &m.parts[part]
	for ; p.windows < m.all(); p.windows++ {
		if from, _ := m.span(p.windows); from >= until {
			break
		}
		w := m.window(p.windows, p.component)
		n := max(p.sent, m.share(part, int(m.schedule.Value)))
		if m.schedule.Open {
			n = m.due(part, w.From, min(w.To, until))
		}
		w.Intended, w.Sent, w.Lost = w.Intended+n, w.Sent+n, w.Lost+n
	}
	p.over = true
	return m.flush()
}

// share returns how many of so many requests, or clients of a closed loop, are the part's.
func (m *merge) share(part, all int) int { return max(all-part+len(m.parts)-1, 0) / len(m.parts) }

// due counts the part's requests that a schedule has between two times, of random arrivals on average.
func (m *merge) due(part int, from, to record.Micros) int {
	before := func(t record.Micros) int {
		return m.share(part, int(m.schedule.Value*(t-m.schedule.Begin).Seconds()+1e-9))
	}
	return before(to) - before(from)
}

// flush emits the windows that every part has reported, or no longer will.
func (m *merge) flush() error {
	for len(m.open) > 0 && !slices.ContainsFunc(m.parts, func(p mergePart) bool { return !p.over && p.windows <= m.emitted }) {
		at := m.open[0]
		m.open, m.emitted = m.open[1:], m.emitted+1
		for _, component := range slices.Sorted(maps.Keys(at)) {
			w := at[component]
			w.Histograms = make(map[string]record.Histogram, len(w.histograms))
			var err error
			for _, name := range slices.Sorted(maps.Keys(w.histograms)) {
				if w.Histograms[name], err = record.HistogramOf(w.histograms[name]); err != nil {
					return err
				}
			}
			if w.OwnDelay, err = record.HistogramOf(w.ownDelay); err != nil {
				return err
			}
			m.emit(&w.Window)
		}
	}
	return nil
}
