package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"plimsoll.dev/plimsoll/internal/record"
)

// watcher follows one resource: it lists once, watches from there, and goes on
// where it was after the watch breaks. Where the server no longer knows that
// point, it lists again. What it receives goes to its handler, on one
// goroutine, in order.
type watcher struct {
	client  *client
	clock   *record.Clock
	name    string // of the resource, for the record
	path    string
	query   url.Values // selectors
	handler watchHandler
	fault   func(*record.Fault)
	// fromNow leaves out what is there already: the lists are not handed over.
	fromNow bool
	// encoding is how its messages are written.
	encoding *encoding

	resourceVersion string
	seen            atomic.Uint64 // the newest version, as a number
	current         atomic.Pointer[context.CancelCauseFunc]
}

// watchHandler takes in what a watch receives.
type watchHandler interface {
	// changed takes one object of a watch event.
	changed(now record.Micros, kind string, object []byte) error
	// listed takes a whole list that was made because news may have been
	// missed, or at the start.
	listed(now record.Micros, items func(each func(object []byte) error) error) error
}

// decoded takes in objects of one type, which errors call what, in the API's
// protobuf encoding. Use may keep what it is given.
func decoded[T any, P interface {
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
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

var errCut = errors.New("the watch was silent and was cut")

// cut ends the present connection, so that the watch is taken up anew. It is
// for a watch that gives no news although there must be some.
func (w *watcher) cut() {
	if cancel := w.current.Load(); cancel != nil {
		(*cancel)(errCut)
	}
}

// start makes the first list. After it, every change will be seen by run.
func (w *watcher) start(ctx context.Context) error {
	if err := w.list(ctx); err != nil {
		return fmt.Errorf("list %s: %w", w.name, w.client.unreachable(err))
	}
	return nil
}

// run watches until ctx ends. It returns early only on an error that no trying
// again fixes: the right to watch was taken away.
func (w *watcher) run(ctx context.Context) error {
	pause := firstPause
	var brokenAt record.Micros // 0 while the watch is whole
	var told bool              // the gap is on record
	var cause error
	var refusedAt record.Micros // 0 while the server does not say no
	for {
		resumed := func() {
			if told {
				w.fault(&record.Fault{What: "watch of " + w.name + " cut", From: brokenAt, To: w.clock.Now(), Healed: true, Message: errorText(cause)})
			}
			brokenAt, told, pause, refusedAt = 0, false, firstPause, 0
		}
		err := w.stream(ctx, resumed)
		if ctx.Err() != nil {
			return nil
		}
		if brokenAt == 0 {
			brokenAt, cause = w.clock.Now(), err
		}
		if errors.Is(err, errGone) {
			err = w.list(ctx)
			if err == nil {
				resumed()
				continue
			}
		}
		if _, refused := errors.AsType[*refusedError](err); refused {
			if refusedAt == 0 {
				refusedAt = w.clock.Now()
			} else if w.clock.Now()-refusedAt > record.MicrosOf(denialPatience) {
				return fmt.Errorf("watch %s: %w", w.name, err)
			}
		}
		// A server ends watches now and then, and the next one follows at
		// once: that is no gap worth telling.
		if !told && !errors.Is(err, errBroken) {
			told = true
			w.fault(&record.Fault{What: "watch of " + w.name + " cut", From: brokenAt, Message: errorText(err)})
		}
		if !sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, lastPause)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// denialPatience is how long a server may say that something is forbidden that
// it has allowed before: one that has just started knows no roles yet.
const denialPatience = 15 * time.Second

// refusedError is an answer that says no.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// stream watches until the watch breaks. It calls resumed once the server has
// taken the watch up.
func (w *watcher) stream(ctx context.Context, resumed func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.current.Store(&cancel)
	query := url.Values{"watch": {"1"}, "resourceVersion": {w.resourceVersion}, "allowWatchBookmarks": {"true"}}
	maps.Copy(query, w.query)
	request, err := w.client.request(ctx, http.MethodGet, w.path, query, "", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", w.encoding.watch)
	response, err := w.client.stream.Load().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		r := reply{code: response.StatusCode, body: body}
		switch {
		case r.code == http.StatusGone:
			return errGone
		case r.code == http.StatusForbidden || r.code == http.StatusUnauthorized:
			return &refusedError{r.error()}
		}
		return r.error()
	}
	resumed()
	messages := bufio.NewReaderSize(response.Body, 64<<10)
	var buf []byte
	for {
		if buf, err = w.encoding.read(messages, buf); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return errBroken
			}
			return err
		}
		now := w.clock.Now()
		kind, object, err := w.encoding.event(buf)
		if err != nil {
			return err
		}
		switch kind {
		case eventError:
			err := reply{code: http.StatusInternalServerError, body: bytes.Clone(object)}.error()
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return errGone
			}
			return err
		case eventBookmark:
			raw, err := w.encoding.open(object)
			if err != nil {
				return err
			}
			w.passed(raw)
		default:
			raw, err := w.encoding.open(object)
			if err != nil {
				return err
			}
			if err := w.handler.changed(now, kind, raw); err != nil {
				return err
			}
			w.passed(raw)
		}
	}
}

// passed remembers that the object's version was seen: from there the next
// watch goes on.
func (w *watcher) passed(raw []byte) {
	if v := w.encoding.version(raw); v != "" {
		w.resourceVersion = v
		w.seen.Store(versionNumber(v))
	}
}

// listPage is how many objects one answer to a list holds.
const listPage = 1000

// list lists the resource, page by page, and remembers its version.
func (w *watcher) list(ctx context.Context) error {
	version := ""
	if w.fromNow {
		// One object of the list is enough to learn its version.
		query := url.Values{"limit": {"1"}}
		maps.Copy(query, w.query)
		version, _, err := w.client.page(ctx, w.encoding, w.path, query, func([]byte) error { return nil })
		if err == nil {
			w.resourceVersion = version
		}
		return err
	}
	err := w.handler.listed(w.clock.Now(), func(each func([]byte) error) error {
		v, err := w.client.listIn(ctx, w.encoding, w.path, w.query, each)
		version = v
		return err
	})
	if err != nil {
		return err
	}
	w.resourceVersion = version
	w.seen.Store(versionNumber(version))
	return nil
}

// list hands every object of a list to each and returns the list's version.
func (c *client) list(ctx context.Context, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	return c.listIn(ctx, protobufEncoding(), path, selectors, each)
}

// listIn is list in an encoding.
func (c *client) listIn(ctx context.Context, e *encoding, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	query := url.Values{"limit": {strconv.Itoa(listPage)}}
	maps.Copy(query, selectors)
	for {
		version, next, err := c.page(ctx, e, path, query, each)
		if err != nil || next == "" {
			return version, err
		}
		query.Set("continue", next)
	}
}

// page hands the objects of one page of a list to each.
func (c *client) page(ctx context.Context, e *encoding, path string, query url.Values, each func([]byte) error) (version, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := c.request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Accept", e.accept)
	r, err := c.send(request, new(bytes.Buffer))
	if err != nil {
		return "", "", err
	}
	if err := r.error(); err != nil {
		if r.code == http.StatusForbidden || r.code == http.StatusUnauthorized {
			err = &refusedError{err}
		}
		return "", "", err
	}
	raw, err := e.open(r.body)
	if err != nil {
		return "", "", err
	}
	return e.list(raw, each)
}
