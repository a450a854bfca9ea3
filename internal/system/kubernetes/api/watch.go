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

// Watcher follows one resource: it lists once, watches from there, and goes on
// where it was after the watch breaks. Where the server no longer knows that
// point, it lists again. What it receives goes to its handler, one message after
// the other, each change of an object once and none after a newer one. Guard looks
// after it, and Reconcile holds what it has brought against a list.
type Watcher struct {
	Client  *Client
	Clock   *record.Clock
	Name    string // of the resource, for the record
	Path    string
	Query   url.Values // selectors
	Handler Handler
	// Emit puts on record what the watch tells of itself.
	Emit func(record.Body)
	// Beside says that nothing is judged by its news.
	Beside bool
	// FromNow leaves out what is there already, and keeps no account of it: there
	// is nothing that a list could be held against.
	FromNow bool
	// Encoding is how its messages are written.
	Encoding *Encoding
	Care

	resourceVersion string
	seen            atomic.Uint64 // the newest version, as a number
	heard           atomic.Int64  // when the last message came, as record.Micros
	current         atomic.Pointer[context.CancelCauseFunc]
	standing        atomic.Int32 // one of those below
	account
}

// How a watch stands with the server.
const (
	untaken int32 = iota // it was not taken up yet
	taken                // it was, and no answer has said no since
	denied               // the server says that the user may not watch
	closed               // nothing is judged by it, and Run has ended with that
)

// gap is a time without news, until the server takes up the watch again.
type gap struct {
	since   record.Micros // 0 while the watch is whole
	cause   error         // of its begin
	told    bool          // it is on record
	refused record.Micros // since when the server says no, 0 while it does not
}

// Handler takes in what a watch receives, and what a list shows beyond that.
type Handler interface {
	// Changed takes one object. The kind is that of the watch event, or Listed.
	Changed(now record.Micros, kind string, object []byte) error
	// Missing takes objects whose end no watch told of: a list did not have them.
	Missing(now record.Micros, gone []Identity)
}

// Decoded takes in objects of one type, which errors call what, in the API's
// protobuf encoding. Use may keep what it is given.
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

// Bounds of the pause before a broken watch is tried again.
const (
	FirstPause = 50 * time.Millisecond
	LastPause  = 2 * time.Second
)

// Cut ends the present connection, so that the watch is taken up again. It is
// for a watch that gives no news although there must be some.
func (w *Watcher) Cut() {
	if cancel := w.current.Load(); cancel != nil {
		(*cancel)(errCut)
	}
}

// Start makes the first list. After it, every change will be seen by run.
func (w *Watcher) Start(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return fmt.Errorf("list %s: %w", w.Name, w.Client.Unreachable(err))
	}
	return nil
}

// Closed reports whether the user may not watch the resource, or not any more, by
// which nothing is judged: Run has then ended.
func (w *Watcher) Closed() bool { return w.standing.Load() == closed }

// Run watches until ctx ends. It returns early only on an error that no trying again
// fixes, a *RefusedError: the right to watch was taken away, or was never there.
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
			if err = w.list(once(ctx)); err == nil { // each gap is told
				resumed()
				continue
			}
		}
		_, refused := errors.AsType[*RefusedError](err)
		if refused && w.refuse(&g) {
			return fmt.Errorf("watch %s: %w", w.Name, err)
		}
		// A server ends watches now and then, and the next one follows at
		// once: that is no gap worth telling. Nor is a short one of news by which
		// nothing is judged. A refusal of these is recorded when it ends, or when it is final.
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

// refuse notes that the server says no, and reports whether that is final.
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

// Over says that nothing is awaited any more: what the watch was late with is of no
// matter.
func (w *Watcher) Over() { w.caughtUp(w.Clock.Now(), math.MaxUint64) }

// fault puts on record that there was no news from a time to another, 0 for one
// that has not come.
func (w *Watcher) fault(what string, from, to record.Micros, cause error) {
	f := &record.Fault{What: "watch of " + w.Name + " " + what, From: from, To: to, Healed: to != 0, Beside: w.Beside, Late: what == late}
	if cause != nil {
		f.Message = cause.Error()
	}
	w.Emit(f)
}

// DenialPatience is how long a server may say that something is forbidden that
// it has allowed before: one that has just started knows no roles yet.
const DenialPatience = 15 * time.Second

// RefusedError is an answer that says no.
type RefusedError struct{ err error }

func (e *RefusedError) Error() string { return e.err.Error() }

func (e *RefusedError) Unwrap() error { return e.err }

// Refused reports whether an error says that the user has no right to something.
func Refused(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// stream watches until the watch breaks. It calls resumed once the server has
// taken the watch up.
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
		switch kind {
		case eventError:
			err := Reply{Code: http.StatusInternalServerError, Body: bytes.Clone(object)}.Err()
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return errGone
			}
			return err
		default:
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
}

// passed remembers that a version was seen: from there the next watch goes on.
func (w *Watcher) passed(now record.Micros, version []byte) {
	n := versionNumber(version)
	if n != 0 && n < w.seen.Load() {
		return // told again, or out of order
	}
	if string(version) != w.resourceVersion && len(version) > 0 {
		w.resourceVersion = string(version)
		w.seen.Store(n)
		w.caughtUp(now, n)
	}
}

// Bounds of one answer to a list: how many objects it holds, and, if more than one,
// how many bytes. What is larger is asked for again in smaller parts.
const (
	ListPage  = 1000
	listBytes = 16 << 20
	listParts = 8
)

// errLarge is a page that is larger than is read.
var errLarge = errors.New("a page of a list is too large")

// list lists the resource, page by page, while no watch brings news, and remembers
// its version.
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

// version is that of the resource now, by one object of its list.
func (w *Watcher) version(ctx context.Context) (string, error) {
	query := url.Values{"limit": {"1"}}
	maps.Copy(query, w.Query)
	version, _, err := w.Client.page(ctx, w.Encoding, w.Path, query, new(bytes.Buffer), 0, func([]byte) error { return nil })
	return version, err
}

// List hands every object of a list to each, which must not keep it, and returns the
// list's version.
func (c *Client) List(ctx context.Context, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	return c.ListIn(ctx, ProtobufEncoding(), path, selectors, each)
}

// ListIn is list in an encoding.
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

// page hands the objects of one page of a list to each, by way of buf. The error is
// errLarge where it has more bytes than most, 0 for no bound.
func (c *Client) page(ctx context.Context, e *Encoding, path string, query url.Values, buf *bytes.Buffer, most int64, each func([]byte) error) (version, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := c.Request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Accept", e.accept)
	r, err := c.sendFor(cmp.Or(c.Patience, Patience), request, buf, most)
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
