package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"plimsoll.dev/plimsoll/internal/record"
)

// Watcher follows one resource: it lists once, watches from there, resumes after breaks, and lists again
// where the server has forgotten that point. Its handler gets each change of an object once and in order.
type Watcher struct {
	Client   *Client
	Clock    *record.Clock
	Name     string // the resource's, for the record
	Path     string
	Query    url.Values // selectors
	Handler  Handler
	Emit     func(record.Body) // records faults, delays and corrections
	Beside   bool              // says that no verdict needs its news
	FromNow  bool              // leaves out existing objects and keeps no account: lists cannot be compared
	Encoding *Encoding
	Care

	resourceVersion string
	seen            atomic.Uint64 // the newest version, as a number
	heard           atomic.Int64  // when the last message came, as record.Micros
	current         atomic.Pointer[context.CancelCauseFunc]
	standing        atomic.Int32 // one of the constants below
	account
}

// How a watch stands with the server.
const (
	untaken int32 = iota // not accepted yet
	taken                // accepted, and not denied since
	denied               // the user may not watch
	closed               // denied for good, and Run has ended: no verdict needs it
)

// gap is a time without news, until the server accepts the watch again.
type gap struct {
	since   record.Micros // 0 while the watch is whole
	cause   error         // of the gap
	told    bool          // recorded
	refused record.Micros // start of the server's denials, 0 without
}

// Handler receives the objects of a watch, and corrections by lists.
type Handler interface {
	// Changed takes one object. kind is the watch event's, or Listed.
	Changed(now record.Micros, kind string, object []byte) error
	// Missing takes objects whose end the watch did not bring: a list lacks them.
	Missing(now record.Micros, gone []Identity)
}

// Decoded returns a handler for protobuf objects of one type, called what in errors. use may keep them.
func Decoded[T any, P interface {
	*T
	Unmarshal([]byte) error
}](what string, use func(P)) func(object []byte) error {
	return func(object []byte) error {
		o := P(new(T))
		if err := o.Unmarshal(object); err != nil {
			return fmt.Errorf("decode %s: %w", what, err)
		}
		use(o)
		return nil
	}
}

var (
	errGone   = errors.New("the server no longer knows where the watch was")
	errBroken = errors.New("the watch ended")
)

// Bounds of the pause before a request or a watch is repeated.
const (
	FirstPause = 50 * time.Millisecond
	LastPause  = 2 * time.Second
)

// Cut ends the present connection of a watch that lacks news, so that Run renews it.
func (w *Watcher) Cut() {
	if cancel := w.current.Load(); cancel != nil {
		(*cancel)(errCut)
	}
}

// Start makes the first list. Run sees every later change.
func (w *Watcher) Start(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return fmt.Errorf("list %s: %w", w.Name, w.Client.Unreachable(err))
	}
	return nil
}

// Closed reports whether Run ended because the user may not watch what no verdict needs.
func (w *Watcher) Closed() bool { return w.standing.Load() == closed }

// Run watches until ctx ends, or returns a *RefusedError: the user may not watch, or no more.
func (w *Watcher) Run(ctx context.Context) error {
	pause := FirstPause
	var g gap
	resumed := func() {
		if g.told || g.refused > 0 {
			w.fault("cut", g.since, w.Clock.Now(), g.cause)
		}
		g, pause = gap{}, FirstPause
		w.standing.Store(taken)
	}
	for {
		err := w.stream(ctx, resumed)
		if ctx.Err() != nil {
			return nil
		}
		if g.since == 0 {
			g.since, g.cause = w.Clock.Now(), err
		}
		if errors.Is(err, errGone) {
			if err = w.list(once(ctx)); err == nil {
				resumed()
				continue
			}
		}
		_, refused := errors.AsType[*RefusedError](err)
		if refused && w.refuse(&g) {
			return fmt.Errorf("watch %s: %w", w.Name, err)
		}
		// Servers end watches now and then; neither the gap until the next nor a short one that no
		// verdict needs is recorded. Of the latter, a denial is recorded when it ends or is final.
		if !g.told && !errors.Is(err, errBroken) && (!w.Beside || !refused && w.Clock.Now()-g.since > record.MicrosOf(lateAfter)) {
			g.told = true
			w.fault("cut", g.since, 0, err)
		}
		if !Sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, LastPause)
	}
}

// refuse notes the server's denial, and reports whether that is final.
func (w *Watcher) refuse(g *gap) bool {
	was, now := w.standing.Swap(denied), w.Clock.Now()
	if !w.Beside || was != untaken {
		if g.refused == 0 {
			g.refused = now
		}
		if now-g.refused <= record.MicrosOf(DenialPatience) {
			return false
		}
	}
	if w.Beside {
		w.standing.Store(closed)
	}
	return true
}

// Over says that no more news is awaited: late news no longer matters.
func (w *Watcher) Over() { w.caughtUp(w.Clock.Now(), math.MaxUint64) }

// fault records a time without news; to is 0 while that lasts.
func (w *Watcher) fault(what string, from, to record.Micros, cause error) {
	f := &record.Fault{What: "watch of " + w.Name + " " + what, From: from, To: to, Healed: to != 0, Beside: w.Beside, Late: what == late}
	if cause != nil {
		f.Message = cause.Error()
	}
	w.Emit(f)
}

// DenialPatience bounds denials of what was allowed before: a restarted server has no roles yet.
const DenialPatience = 15 * time.Second

// RefusedError wraps the server's answer that the user lacks a right.
type RefusedError struct{ error }

func (e *RefusedError) Unwrap() error { return e.error }

// Refused reports whether an error says that the user lacks a right.
func Refused(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// stream watches until the watch breaks. It calls resumed when the server accepts the watch.
func (w *Watcher) stream(ctx context.Context, resumed func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.current.Store(&cancel)
	query := url.Values{"watch": {"1"}, "resourceVersion": {w.resourceVersion}, "allowWatchBookmarks": {"true"}}
	maps.Copy(query, w.Query)
	request, err := w.Client.Request(ctx, http.MethodGet, w.Path, query, "", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", w.Encoding.watch)
	response, err := w.Client.stream.Load().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		r := Reply{Code: response.StatusCode, Body: body}
		switch {
		case r.Code == http.StatusGone:
			return errGone
		case r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized:
			return &RefusedError{r.Err()}
		}
		return r.Err()
	}
	resumed()
	messages := bufio.NewReaderSize(response.Body, 64<<10)
	var buf []byte
	for {
		if buf, err = w.Encoding.read(messages, buf); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return errBroken
			}
			return err
		}
		now := w.Clock.Now()
		w.heard.Store(int64(now))
		kind, object, err := w.Encoding.event(buf)
		if err != nil {
			return err
		}
		if kind == eventError {
			err := Reply{Code: http.StatusInternalServerError, Body: bytes.Clone(object)}.Err()
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return errGone
			}
			return err
		}
		raw, err := w.Encoding.open(object)
		if err != nil {
			return err
		}
		m := w.Encoding.meta(raw)
		if kind != eventBookmark {
			if err := w.take(now, kind, m, raw); err != nil {
				return err
			}
		}
		w.passed(now, m.version)
	}
}

// passed notes a version that was seen: the next watch begins there.
func (w *Watcher) passed(now record.Micros, version []byte) {
	n := VersionNumber(version)
	if n != 0 && n < w.seen.Load() {
		return // a repetition, or out of order
	}
	if string(version) != w.resourceVersion && len(version) > 0 {
		w.resourceVersion = string(version)
		w.seen.Store(n)
		w.caughtUp(now, n)
	}
}

// Bounds of a page of a list: objects, and bytes, beyond which it is requested in smaller parts.
const (
	ListPage  = 1000
	listBytes = 16 << 20
	listParts = 8
)

var errLarge = errors.New("a page of a list is too large")

func (w *Watcher) list(ctx context.Context) error {
	of := w.listAll
	if w.FromNow {
		of = w.version
	}
	version, err := of(ctx)
	if err != nil {
		return err
	}
	w.resourceVersion = version
	w.seen.Store(VersionNumber(version))
	w.heard.Store(int64(w.Clock.Now()))
	return nil
}

// version returns the version of the resource now, by a list of one object.
func (w *Watcher) version(ctx context.Context) (string, error) {
	query := url.Values{"limit": {"1"}}
	maps.Copy(query, w.Query)
	version, _, err := w.Client.page(ctx, w.Encoding, w.Path, query, new(bytes.Buffer), 0, func([]byte) error { return nil })
	return version, err
}

// List passes every object of a list, in protobuf, to each, which must not keep it, and returns its version.
func (c *Client) List(ctx context.Context, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	return c.ListIn(ctx, ProtobufEncoding(), path, selectors, each)
}

// ListIn calls List in another encoding.
func (c *Client) ListIn(ctx context.Context, e *Encoding, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	query := maps.Clone(selectors)
	if query == nil {
		query = make(url.Values)
	}
	var buf bytes.Buffer
	for limit, most := ListPage, int64(listBytes); ; {
		query.Set("limit", strconv.Itoa(limit))
		version, next, err := c.page(ctx, e, path, query, &buf, most, each)
		switch {
		case errors.Is(err, errLarge):
			if limit = max(1, limit/listParts); limit == 1 {
				most = 0
			}
		case err != nil || next == "":
			return version, err
		default:
			query.Set("continue", next)
		}
	}
}

// page passes the objects of one page to each. The error is errLarge beyond most bytes; 0 is no bound.
func (c *Client) page(ctx context.Context, e *Encoding, path string, query url.Values, buf *bytes.Buffer, most int64, each func([]byte) error) (version, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := c.Request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Accept", e.accept)
	r, err := c.SendFor(cmp.Or(c.Patience, Patience), request, buf, most)
	if err != nil {
		return "", "", err
	}
	if most > 0 && int64(len(r.Body)) > most {
		return "", "", errLarge
	}
	if err := r.Err(); err != nil {
		if r.Code == http.StatusForbidden || r.Code == http.StatusUnauthorized {
			err = &RefusedError{err}
		}
		return "", "", err
	}
	raw, err := e.open(r.Body)
	if err != nil {
		return "", "", err
	}
	return e.list(raw, each)
}
