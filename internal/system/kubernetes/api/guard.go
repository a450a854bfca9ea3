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

// This file finds out what a watch has missed. The program changes an object and awaits that change, and
// compares a list with the versions that the watch has brought, which grow in the order of its events.

// Care says how a watch is checked; see Watcher.Guard.
type Care struct {
	// Touch changes a watched object, and returns its version. Without it any next change is awaited.
	Touch func(ctx context.Context) (version string, err error)
	Every time.Duration // shortest time between lists, 0 for lists only in doubt
	Doubt func() bool   // reports whether expected news does not come; nil is never
}

const (
	guardInterval = 5 * time.Second  // time between checks for news
	lateAfter     = 2 * time.Second  // time after which news is late
	deadAfter     = 20 * time.Second // time after which a late watch is renewed
	// silentFor is the time without a message that renews a watch: bookmarks come about once a minute.
	silentFor  = 150 * time.Second
	doubtEvery = 3 * time.Second // shortest time between lists in doubt
	listShare  = 50              // shortest pause between lists, in multiples of a list's duration
	recently   = 4096            // number of removed objects whose late news is recognised
)

const late = "late" // marks a fault of a watch that brings its news late

// Identity names an object.
type Identity struct{ Namespace, Name, UID string }

// known is an object that exists, as far as the watch and the lists say.
type known struct {
	Identity
	version uint64
	round   int // the last list that had it
}

// account holds the news of a watch, and the differences that lists have shown.
type account struct {
	listing sync.Mutex // held while a list is compared

	mu      sync.Mutex // also held while the handler runs
	objects map[string]*known
	floor   uint64 // the version of the last list, which has all older news
	round   int
	// gone has the last versions of objects removed lately, goneBefore earlier ones, to recognise late news.
	gone, goneBefore map[string]uint64
	// owed has the versions, by UID, that a list has shown and the watch has yet to bring, late since
	// then. With mark, if not 0, it has brought all.
	owed     map[string]uint64
	mark     uint64
	since    record.Micros
	cutAt    record.Micros
	listedAt record.Micros
	took     record.Micros // the duration of the last list
}

// take passes an object to the handler, unless its news is old.
func (w *Watcher) take(now record.Micros, kind string, m objectMeta, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.FromNow {
		return w.Handler.Changed(now, kind, raw)
	}
	if w.objects == nil {
		w.objects, w.gone = make(map[string]*known), make(map[string]uint64)
	}
	version := VersionNumber(m.version)
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

// stale reports whether news of a known object, or nil, is not newer. News without a number is new.
func (w *Watcher) stale(o *known, m objectMeta, version uint64) bool {
	switch {
	case version == 0:
		return false
	case o != nil:
		return version <= o.version
	case version <= w.floor:
		return true
	}
	return version <= max(w.gone[string(m.uid)], w.goneBefore[string(m.uid)])
}

func (o *known) key() string { return cmp.Or(o.UID, ObjectName(o.Namespace, o.Name)) }

func (w *Watcher) bury(o *known) {
	delete(w.objects, o.key())
	if len(w.gone) >= recently {
		w.gone, w.goneBefore = make(map[string]uint64), w.gone
	}
	w.gone[o.key()] = o.version
}

// difference holds the objects of a list that the watch has not brought.
type difference struct {
	version uint64 // of the list
	newest  uint64 // of its objects
	changed []listedObject
	bytes   int // of changed
	gone    []*known
}

// maxDifference bounds the bytes of objects that are kept while the watch may still bring them.
const maxDifference = 16 << 20

type listedObject struct {
	raw     []byte
	version uint64
}

// compare passes listed objects that the watch has not brought to differs, or if nil collects them in the
// difference and passes large ones to full.
func (w *Watcher) compare(ctx context.Context, differs func(m objectMeta, raw []byte) error, full func(*difference) error) (d difference, version string, err error) {
	began := w.Clock.Now()
	w.mu.Lock()
	w.round++
	round := w.round
	w.mu.Unlock()
	version, err = w.Client.ListIn(ctx, w.Encoding, w.Path, w.Query, func(raw []byte) error {
		m := w.Encoding.meta(raw)
		v := VersionNumber(m.version)
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

// listAll makes a list at the start or after a gap, while no watch runs.
func (w *Watcher) listAll(ctx context.Context) (string, error) {
	w.listing.Lock()
	defer w.listing.Unlock()
	d, version, err := w.compare(ctx, func(m objectMeta, raw []byte) error { return w.take(w.Clock.Now(), Listed, m, raw) }, nil)
	if err != nil {
		return "", err
	}
	return version, w.correct(&d)
}

// Reconcile compares the watch's news with a list, waits for news under way, and hands over what is missing.
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

// settleWith waits for the watch to bring a difference of a list begun then, and hands over the rest.
func (w *Watcher) settleWith(ctx context.Context, d *difference, began record.Micros) error {
	from := w.Clock.Now()
	if d.version == 0 {
		from = began // a list shows the state at its beginning
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
		mark = d.version // only ends are open, and their versions are unknown
	}
	w.fallBehind(mark, began)
	return nil
}

func (w *Watcher) brought(d *difference) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepOpen(d)
	return len(d.changed)+len(d.gone) == 0
}

// keepOpen keeps the part of a difference that the watch has still not brought. The caller holds mu.
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

// await waits until is reports true, for as long as news from then may take.
func (w *Watcher) await(ctx context.Context, from record.Micros, is func() bool) bool {
	const looks = 10 * time.Millisecond
	for until := from + record.MicrosOf(lateAfter); !is(); {
		if w.Clock.Now() > until || !Sleep(ctx, looks) {
			return is()
		}
	}
	return true
}

// fallBehind notes that the watch has not brought a version in time.
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

// caughtUp notes that the watch has brought all versions up to seen.
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

// settle records how many objects the watch has not brought in time.
func (w *Watcher) settle() {
	w.mu.Lock()
	missed := len(w.owed)
	clear(w.owed)
	w.mu.Unlock()
	if missed > 0 {
		w.Emit(&record.Corrected{Watch: w.Name, Missed: missed})
	}
}

// Guard checks until ctx or the watch ends whether the watch lives, and how late and incomplete its news is.
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
		// A list is costly, and the load can make a watch late: with Touch, lists are made only in doubt.
		if since > pause && (doubt || !moving && w.Touch == nil) || regular {
			// A failure shows elsewhere as the server's trouble, and the next check follows.
			_ = w.Reconcile(ctx)
		}
	}
}

// probe checks that the watch brings news, and records the delay. It reports false where that is unknown.
func (w *Watcher) probe(ctx context.Context) (moving bool) {
	of := w.version
	switch {
	case w.Touch != nil:
		of = w.Touch
	case w.FromNow:
		return true
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

var errCut = errors.New("the watch was silent and was cut") // cause of a watch that Cut ended
