package api

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

// Watcher follows one resource: it lists once, watches from there, and goes on
// where it was after the watch breaks. Where the server no longer knows that
// point, it lists again. What it receives goes to its handler, on one
// goroutine, in order.
type Watcher struct {
	Client  *Client
	Clock   *record.Clock
	Name    string // of the resource, for the record
	Path    string
	Query   url.Values // selectors
	Handler Handler
	Fault   func(*record.Fault)
	// FromNow leaves out what is there already: the lists are not handed over.
	FromNow bool
	// Encoding is how its messages are written.
	Encoding *Encoding

	resourceVersion string
	Seen            atomic.Uint64 // the newest version, as a number
	current         atomic.Pointer[context.CancelCauseFunc]
}

// Handler takes in what a watch receives.
type Handler interface {
	// Changed takes one object of a watch event.
	Changed(now record.Micros, kind string, object []byte) error
	// Listed takes a whole list that was made because news may have been
	// missed, or at the start.
	Listed(now record.Micros, items func(each func(object []byte) error) error) error
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

var errCut = errors.New("the watch was silent and was cut")

// Cut ends the present connection, so that the watch is taken up anew. It is
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

// Run watches until ctx ends. It returns early only on an error that no trying
// again fixes: the right to watch was taken away.
func (w *Watcher) Run(ctx context.Context) error {
	pause := FirstPause
	var brokenAt record.Micros // 0 while the watch is whole
	var told bool              // the gap is on record
	var cause error
	var refusedAt record.Micros // 0 while the server does not say no
	for {
		resumed := func() {
			if told {
				w.Fault(&record.Fault{What: "watch of " + w.Name + " cut", From: brokenAt, To: w.Clock.Now(), Healed: true, Message: errorText(cause)})
			}
			brokenAt, told, pause, refusedAt = 0, false, FirstPause, 0
		}
		err := w.stream(ctx, resumed)
		if ctx.Err() != nil {
			return nil
		}
		if brokenAt == 0 {
			brokenAt, cause = w.Clock.Now(), err
		}
		if errors.Is(err, errGone) {
			err = w.list(ctx)
			if err == nil {
				resumed()
				continue
			}
		}
		if _, refused := errors.AsType[*RefusedError](err); refused {
			if refusedAt == 0 {
				refusedAt = w.Clock.Now()
			} else if w.Clock.Now()-refusedAt > record.MicrosOf(DenialPatience) {
				return fmt.Errorf("watch %s: %w", w.Name, err)
			}
		}
		// A server ends watches now and then, and the next one follows at
		// once: that is no gap worth telling.
		if !told && !errors.Is(err, errBroken) {
			told = true
			w.Fault(&record.Fault{What: "watch of " + w.Name + " cut", From: brokenAt, Message: errorText(err)})
		}
		if !Sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, LastPause)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// DenialPatience is how long a server may say that something is forbidden that
// it has allowed before: one that has just started knows no roles yet.
const DenialPatience = 15 * time.Second

// RefusedError is an answer that says no.
type RefusedError struct{ err error }

func (e *RefusedError) Error() string { return e.err.Error() }

func (e *RefusedError) Unwrap() error { return e.err }

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
		case eventBookmark:
			raw, err := w.Encoding.open(object)
			if err != nil {
				return err
			}
			w.passed(raw)
		default:
			raw, err := w.Encoding.open(object)
			if err != nil {
				return err
			}
			if err := w.Handler.Changed(now, kind, raw); err != nil {
				return err
			}
			w.passed(raw)
		}
	}
}

// passed remembers that the object's version was seen: from there the next
// watch goes on.
func (w *Watcher) passed(raw []byte) {
	if v := w.Encoding.Version(raw); v != "" {
		w.resourceVersion = v
		w.Seen.Store(VersionNumber(v))
	}
}

// ListPage is how many objects one answer to a list holds.
const ListPage = 1000

// list lists the resource, page by page, and remembers its version.
func (w *Watcher) list(ctx context.Context) error {
	version := ""
	if w.FromNow {
		// One object of the list is enough to learn its version.
		query := url.Values{"limit": {"1"}}
		maps.Copy(query, w.Query)
		version, _, err := w.Client.page(ctx, w.Encoding, w.Path, query, func([]byte) error { return nil })
		if err == nil {
			w.resourceVersion = version
		}
		return err
	}
	err := w.Handler.Listed(w.Clock.Now(), func(each func([]byte) error) error {
		v, err := w.Client.ListIn(ctx, w.Encoding, w.Path, w.Query, each)
		version = v
		return err
	})
	if err != nil {
		return err
	}
	w.resourceVersion = version
	w.Seen.Store(VersionNumber(version))
	return nil
}

// List hands every object of a list to each and returns the list's version.
func (c *Client) List(ctx context.Context, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	return c.ListIn(ctx, ProtobufEncoding(), path, selectors, each)
}

// ListIn is list in an encoding.
func (c *Client) ListIn(ctx context.Context, e *Encoding, path string, selectors url.Values, each func([]byte) error) (version string, err error) {
	query := url.Values{"limit": {strconv.Itoa(ListPage)}}
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
func (c *Client) page(ctx context.Context, e *Encoding, path string, query url.Values, each func([]byte) error) (version, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	request, err := c.Request(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("Accept", e.accept)
	r, err := c.Send(request, new(bytes.Buffer))
	if err != nil {
		return "", "", err
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
