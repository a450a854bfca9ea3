package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// This file tells what a watch has brought apart from what is so. A watch that is
// silent may have nothing to tell, may be late, or may have lost something. So it
// is asked for: what was changed at a known time must come, and what a list has
// that the watch has not brought was late or lost. Both are held against the
// account of what the watch has brought, by versions: those of one resource grow,
// in the order in which a watch tells of them.

// Care is how a watch is looked after, see Watcher.Guard.
type Care struct {
	// Touch changes an object that the watch tells of, and returns the version that
	// it has then. Nil is none: the version of the resource itself is then awaited,
	// which comes with the next change of anything.
	Touch func(ctx context.Context) (version string, err error)
	// Every is how often a list is made at most, 0 for only in doubt.
	Every time.Duration
	// Doubt reports whether something does not come that should; nil is never.
	Doubt func() bool
}

// Bounds of news, and of what is done about it.
const (
	// guardInterval is how often it is looked whether a watch brings what is new.
	guardInterval = 5 * time.Second
	// lateAfter is how long news may take before its watch counts as late.
	lateAfter = 2 * time.Second
	// deadAfter is how long a watch is late before it is taken up again.
	deadAfter = 20 * time.Second
	// silentFor is how long nothing at all comes before that: a server sends
	// bookmarks about once a minute.
	silentFor = 150 * time.Second
	// doubtEvery is how often a list is made in doubt.
	doubtEvery = 3 * time.Second
	// listShare is how many times as long as a list has taken it is until the next.
	listShare = 50
	// recently is of how many objects that are gone late news is known as such.
	recently = 4096
)

// late is what is wrong with a watch that brings its news late.
const late = "late"

// Identity names an object.
type Identity struct{ Namespace, Name, UID string }

// known is an object that is there, as far as is known.
type known struct {
	Identity
	version uint64
	round   int // of the list that last had it
}

// account is what a watch has brought, and what a list has shown beyond that.
type account struct {
	listing sync.Mutex // held while a list is compared

	mu      sync.Mutex // held while the handler takes something in, too
	objects map[string]*known
	floor   uint64 // the version of the last list: what is not newer it has told of
	round   int
	// gone are the versions of objects at their end, and goneBefore those of others
	// of before, for news of them that comes late.
	gone, goneBefore map[string]uint64
	// owed are the versions of what a list has shown and the watch has yet to bring,
	// by UID, and mark the one by which it has brought all, 0 for none: it is late
	// since then.
	owed     map[string]uint64
	mark     uint64
	since    record.Micros
	cutAt    record.Micros
	listedAt record.Micros
	took     record.Micros // the last list
}

// take hands an object to the handler, unless what it says is known already.
func (w *Watcher) take(now record.Micros, kind string, m objectMeta, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.FromNow {
		return w.Handler.Changed(now, kind, raw)
	}
	if w.objects == nil {
		w.objects, w.gone = make(map[string]*known), make(map[string]uint64)
	}
	version := versionNumber(m.version)
	o := w.objects[string(m.uid)]
	if o == nil && len(m.uid) == 0 {
		o = w.objects[ObjectName(string(m.namespace), string(m.name))]
	}
	if w.stale(o, m, version) && !(kind == EventDeleted && o != nil && version == o.version) {
		delete(w.owed, string(m.uid))
		return nil
	}
	if o == nil {
		o = &known{Identity: Identity{string(m.namespace), string(m.name), string(m.uid)}, round: w.round}
		w.objects[o.key()] = o
	}
	o.version = version
	if kind == EventDeleted {
		w.bury(o)
	}
	return w.Handler.Changed(now, kind, raw)
}

// stale reports whether news of an object, nil where it is unknown, is no newer
// than what is known. A version that is no number is new.
func (w *Watcher) stale(o *known, m objectMeta, version uint64) bool {
	switch {
	case version == 0:
		return false
	case o != nil:
		return version <= o.version
	case version <= w.floor:
		return true
	}
	end := max(w.gone[string(m.uid)], w.goneBefore[string(m.uid)])
	return version <= end
}

// key is what an object is known by.
func (o *known) key() string { return cmp.Or(o.UID, ObjectName(o.Namespace, o.Name)) }

// bury notes that an object is gone.
func (w *Watcher) bury(o *known) {
	delete(w.objects, o.key())
	if len(w.gone) >= recently {
		w.gone, w.goneBefore = make(map[string]uint64), w.gone
	}
	w.gone[o.key()] = o.version
}

// difference is what a list shows that the watch has not brought.
type difference struct {
	version uint64 // of the list
	newest  uint64 // of its objects
	changed []listedObject
	bytes   int // that these have
	gone    []*known
}

// maxDifference is how many bytes of objects are kept while the watch may still bring
// them.
const maxDifference = 16 << 20

type listedObject struct {
	raw     []byte
	version uint64
}

// compare makes a list. What the watch has not brought is handed to differs, if that
// is not nil, and is else part of the difference, which is handed to full whenever it
// is large.
func (w *Watcher) compare(ctx context.Context, differs func(m objectMeta, raw []byte) error, full func(*difference) error) (d difference, version string, err error) {
	began := w.Clock.Now()
	w.mu.Lock()
	w.round++
	round := w.round
	w.mu.Unlock()
	version, err = w.Client.ListIn(ctx, w.Encoding, w.Path, w.Query, func(raw []byte) error {
		m := w.Encoding.meta(raw)
		v := versionNumber(m.version)
		d.newest = max(d.newest, v)
		w.mu.Lock()
		o := w.objects[string(m.uid)]
		if o != nil {
			o.round = round
		}
		is := o != nil && v != 0 && v <= o.version
		w.mu.Unlock()
		switch {
		case is:
			return nil
		case differs != nil:
			return differs(m, raw)
		}
		d.changed = append(d.changed, listedObject{bytes.Clone(raw), v})
		if d.bytes += len(raw); d.bytes < maxDifference {
			return nil
		}
		err := full(&d)
		d.changed, d.bytes = nil, 0
		return err
	})
	if err != nil {
		return d, "", err
	}
	d.version = VersionNumber(version)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listedAt = w.Clock.Now()
	w.took = w.listedAt - began
	for _, o := range w.objects {
		if o.round != round && o.version <= d.version {
			d.gone = append(d.gone, o)
		}
	}
	return d, version, nil
}

// listAll makes a list at the start, or after a gap, while no watch brings news.
func (w *Watcher) listAll(ctx context.Context) (string, error) {
	w.listing.Lock()
	defer w.listing.Unlock()
	d, version, err := w.compare(ctx, func(m objectMeta, raw []byte) error { return w.take(w.Clock.Now(), Listed, m, raw) }, nil)
	if err != nil {
		return "", err
	}
	return version, w.correct(&d)
}

// Reconcile holds what the watch has brought against a list, and hands over what
// it has missed. What is on its way is waited for, for a while.
func (w *Watcher) Reconcile(ctx context.Context) error {
	if w.FromNow {
		return nil
	}
	w.listing.Lock()
	defer w.listing.Unlock()
	began := w.Clock.Now()
	d, _, err := w.compare(ctx, nil, func(d *difference) error { return w.settleWith(ctx, d, began) })
	if err != nil {
		return err
	}
	return w.settleWith(ctx, &d, began)
}

// settleWith waits for the watch to bring a difference, of a list that has begun
// then, and hands over what it does not. The difference may be part of one: its list
// then has no version yet.
func (w *Watcher) settleWith(ctx context.Context, d *difference, began record.Micros) error {
	from := w.Clock.Now()
	if d.version == 0 {
		from = began // all parts of a list are as of its beginning
	}
	came := w.await(ctx, from, func() bool {
		seen := w.seen.Load()
		return d.version > 0 && seen >= d.version || seen >= d.newest && w.brought(d)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	w.keepOpen(d)
	if w.owed == nil {
		w.owed = make(map[string]uint64)
	}
	n := len(d.changed) + len(d.gone)
	for _, c := range d.changed {
		w.owed[string(w.Encoding.meta(c.raw).uid)] = c.version
	}
	for _, o := range d.gone {
		w.owed[o.key()] = d.version
	}
	w.mu.Unlock()
	if err := w.correct(d); err != nil || n == 0 {
		return err
	}
	if came {
		w.settle()
		return nil
	}
	mark := d.newest
	if mark <= w.seen.Load() {
		mark = d.version // all that is open are ends, whose versions nobody knows
	}
	w.fallBehind(mark, began)
	return nil
}

// brought reports whether the watch has brought what a list has shown.
func (w *Watcher) brought(d *difference) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepOpen(d)
	return len(d.changed)+len(d.gone) == 0
}

// keepOpen keeps of a difference what the watch has still not brought. It is called
// with mu held.
func (w *Watcher) keepOpen(d *difference) {
	changed, gone := d.changed[:0], d.gone[:0]
	for _, c := range d.changed {
		m := w.Encoding.meta(c.raw)
		if o := w.objects[string(m.uid)]; o == nil && max(w.gone[string(m.uid)], w.goneBefore[string(m.uid)]) < c.version || o != nil && o.version < c.version {
			changed = append(changed, c)
		}
	}
	for _, o := range d.gone {
		if w.objects[o.key()] == o && o.version <= d.version {
			gone = append(gone, o)
		}
	}
	d.changed, d.gone = changed, gone
}

// correct hands over what a list has shown.
func (w *Watcher) correct(d *difference) error {
	now := w.Clock.Now()
	for _, c := range d.changed {
		if err := w.take(now, Listed, w.Encoding.meta(c.raw), c.raw); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	gone := make([]Identity, len(d.gone))
	for i, o := range d.gone {
		o.version = max(o.version, d.version)
		w.bury(o)
		gone[i] = o.Identity
	}
	if len(gone) > 0 {
		w.Handler.Missing(now, gone)
	}
	w.floor = max(w.floor, d.version)
	return nil
}

// await waits until something is so, as long as news may take that is so old.
func (w *Watcher) await(ctx context.Context, from record.Micros, is func() bool) bool {
	const looks = 10 * time.Millisecond
	for until := from + record.MicrosOf(lateAfter); !is(); {
		if w.Clock.Now() > until || !Sleep(ctx, looks) {
			return is()
		}
	}
	return true
}

// fallBehind notes that the watch is late: it was to have brought a version.
func (w *Watcher) fallBehind(mark uint64, since record.Micros) {
	w.mu.Lock()
	was := w.mark != 0
	w.mark = max(w.mark, mark)
	if !was {
		w.since, w.cutAt = since, since
	}
	w.mu.Unlock()
	if !was {
		w.fault(late, since, 0, nil)
	}
	w.caughtUp(w.Clock.Now(), w.seen.Load())
}

// caughtUp notes that the watch has brought all up to a version.
func (w *Watcher) caughtUp(now record.Micros, seen uint64) {
	w.mu.Lock()
	since, over := w.since, w.mark != 0 && seen >= w.mark
	if over {
		w.mark = 0
	}
	w.mu.Unlock()
	if over {
		w.fault(late, since, now, nil)
		w.settle()
	}
}

// settle tells how much the watch has not brought by the time at which it had to.
func (w *Watcher) settle() {
	w.mu.Lock()
	missed := len(w.owed)
	clear(w.owed)
	w.mu.Unlock()
	if missed > 0 {
		w.Emit(&record.Corrected{Watch: w.Name, Missed: missed})
	}
}

// Guard looks after the watch until ctx ends, or the watch is closed: whether it brings what is new, and
// how late; what it has missed; and whether it is alive at all.
func (w *Watcher) Guard(ctx context.Context) {
	for Sleep(ctx, guardInterval) && !w.Closed() {
		if w.Beside && w.standing.Load() == denied {
			continue
		}
		moving := w.probe(ctx)
		now := w.Clock.Now()
		w.mu.Lock()
		since, pause := now-w.listedAt, max(record.MicrosOf(doubtEvery), listShare*w.took)
		dead := w.mark != 0 && now-w.cutAt > record.MicrosOf(deadAfter) || now-record.Micros(w.heard.Load()) > record.MicrosOf(silentFor)
		if dead {
			w.cutAt = now
			w.heard.Store(int64(now))
		}
		w.mu.Unlock()
		if dead {
			w.Cut()
		}
		doubt := w.Doubt != nil && w.Doubt()
		regular := w.Every > 0 && since > max(pause, record.MicrosOf(w.Every))
		// A list costs the server much, and the load alone can make a watch late: where a
		// change of ours shows how late, there is a list only for what is in doubt.
		if since > pause && (doubt || !moving && w.Touch == nil) || regular {
			// Its failure is the server's trouble, which shows elsewhere, and the next
			// look follows.
			_ = w.Reconcile(ctx)
		}
	}
}

// probe looks whether the watch brings what is new now, and tells how late it does.
// It reports false where that is unknown.
func (w *Watcher) probe(ctx context.Context) (moving bool) {
	of := w.version
	switch {
	case w.Touch != nil:
		of = w.Touch
	case w.FromNow:
		return true // and its bookmarks tell
	}
	sent := w.Clock.Now()
	version, err := of(ctx)
	replied := w.Clock.Now()
	mark := VersionNumber(version)
	if err != nil || mark == 0 {
		return false
	}
	came := w.await(ctx, w.Clock.Now(), func() bool { return w.seen.Load() >= mark })
	switch {
	case came:
		w.Emit(&record.Canary{Sent: sent, Replied: replied, Seen: max(w.Clock.Now(), replied), Of: w.Name, Beside: w.Beside})
	case ctx.Err() == nil && w.Touch != nil:
		w.fallBehind(mark, sent)
	}
	return came
}

// errCut is why a watch is taken up again.
var errCut = errors.New("the watch was silent and was cut")
