package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Plan says which faults a proxy makes. A seed draws the same for the same sequence of
// requests: whether the nth request of a rule is hit does not depend on other requests.
type Plan struct {
	Seed  uint64 `json:"seed"`
	Rules []Rule `json:"rules"`
}

// Rule is one fault, and what it is made of. Of several rules that hit the same
// request, event or connection, the first acts.
type Rule struct {
	On Match `json:"on"`
	Do Fault `json:"do"`
	// Share is the part of all that match which is hit, above 0 and at most 1; 0
	// is all.
	Share float64 `json:"share,omitempty"`
	// Nth is the only one that is hit, from 1; 0 for any.
	Nth int `json:"nth,omitempty"`
	// Most bounds how many are hit; 0 for no bound.
	Most int `json:"most,omitempty"`
	// From and Until bound when, counted from the first that matches. An Until of
	// 0 is without end.
	From  time.Duration `json:"from,omitempty"`
	Until time.Duration `json:"until,omitempty"`
}

// Match tells which requests, events of watches or connections a rule is about.
// What is "" matches any.
type Match struct {
	// Verb is the API's: create, get, list, watch, update, patch, delete, deletecollection.
	Verb string `json:"verb,omitempty"`
	// Resource names a resource, such as pods, or with its part pods/status.
	Resource string `json:"resource,omitempty"`
	// Event is the type of a watch event: ADDED, MODIFIED, DELETED, BOOKMARK.
	Event string `json:"event,omitempty"`
}

// Creates matches the creation of a resource, "" for all of them.
func Creates(resource string) Match { return Match{Verb: "create", Resource: resource} }

// Lists matches the lists of a resource, "" for all of them.
func Lists(resource string) Match { return Match{Verb: "list", Resource: resource} }

// Watches matches the watches of a resource, or their events where the fault is
// one of events; "" for all of them.
func Watches(resource string) Match { return Match{Verb: "watch", Resource: resource} }

// All matches everything.
func All() Match { return Match{} }

func (m Match) matches(s subject) bool {
	return (m.Verb == "" || m.Verb == s.verb) && (m.Resource == "" || m.Resource == s.resource) && (m.Event == "" || m.Event == s.event)
}

// subject is a request that rules match; all of a connection has empty fields.
type subject struct{ verb, resource, event string }

// Fault says what happens to a request that a rule hits.
type Fault struct {
	Kind Kind          `json:"kind"`
	Code int           `json:"code,omitempty"` // of a status
	For  time.Duration `json:"for,omitempty"`  // how long, or how late
}

// Kind is the name of a fault, as counts have it.
type Kind string

// The kinds of faults.
const (
	// To requests.
	status      Kind = "status"       // is the answer; nothing passed
	statusAfter Kind = "status after" // is the answer; the request was carried out
	resetBefore Kind = "reset before" // the connection, before the request passed
	resetAfter  Kind = "reset after"  // the connection, after the request was carried out
	slowBody    Kind = "slow body"
	stalledBody Kind = "stalled body"
	blackHole   Kind = "black hole"
	networkCut  Kind = "network cut"
	// To events of watches.
	cut       Kind = "cut"
	duplicate Kind = "duplicated event"
	swap      Kind = "swapped events"
	drop      Kind = "dropped event"
	late      Kind = "late event"
	oversized Kind = "oversized event"
	garbage   Kind = "garbage event"
	gone      Kind = "gone"
	hang      Kind = "hanging watch"
	// To connections.
	expired Kind = "expired certificate"
)

// point says where a fault acts.
type point int

const (
	atRequest point = iota
	atEvent
	atConnection
)

func (f Fault) point() point {
	switch f.Kind {
	case cut, duplicate, swap, drop, late, oversized, garbage, gone, hang:
		return atEvent
	case expired:
		return atConnection
	}
	return atRequest
}

// Status answers with a code instead of passing the request on, as the API server
// words it.
func Status(code int) Fault { return Fault{Kind: status, Code: code} }

// Busy answers 429 with a Retry-After, in whole seconds.
func Busy(retryAfter time.Duration) Fault {
	return Fault{Kind: status, Code: http.StatusTooManyRequests, For: retryAfter}
}

// StatusAfter answers with a code after the API server has carried the request
// out.
func StatusAfter(code int) Fault { return Fault{Kind: statusAfter, Code: code} }

// ResetBefore resets the client's connection before the request has passed, and
// with it whatever else is under way there.
func ResetBefore() Fault { return Fault{Kind: resetBefore} }

// ResetAfter resets the client's connection after the API server has carried the
// request out.
func ResetAfter() Fault { return Fault{Kind: resetAfter} }

// SlowBody lets an answer take that long, piece by piece.
func SlowBody(d time.Duration) Fault { return Fault{Kind: slowBody, For: d} }

// StalledBody lets half of an answer pass, and then nothing.
func StalledBody() Fault { return Fault{Kind: stalledBody} }

// BlackHole takes a request and never answers; nothing passed.
func BlackHole() Fault { return Fault{Kind: blackHole} }

// NetworkCut stops all bytes on all connections for that long. Those that come
// meanwhile are held, as the network does.
func NetworkCut(d time.Duration) Fault { return Fault{Kind: networkCut, For: d} }

// Cut breaks a watch off before the event.
func Cut() Fault { return Fault{Kind: cut} }

// Duplicate sends an event twice.
func Duplicate() Fault { return Fault{Kind: duplicate} }

// Swap sends an event after the one that follows it, or a second later if none
// does.
func Swap() Fault { return Fault{Kind: swap} }

// Drop loses an event.
func Drop() Fault { return Fault{Kind: drop} }

// Late holds an event back that long, and with it those behind it.
func Late(d time.Duration) Fault { return Fault{Kind: late, For: d} }

// Oversized sends a message that is larger than any object in an event's place.
func Oversized() Fault { return Fault{Kind: oversized} }

// Garbage sends bytes that are no event in an event's place.
func Garbage() Fault { return Fault{Kind: garbage} }

// Gone ends a watch with the event that says its version is too old (410).
func Gone() Fault { return Fault{Kind: gone} }

// Hang lets nothing pass on a watch any more, from the event on, and leaves it
// open.
func Hang() Fault { return Fault{Kind: hang} }

// ExpiredCertificate shows new connections a certificate that is no longer valid.
func ExpiredCertificate() Fault { return Fault{Kind: expired} }

// name returns the fault's name in Counts.
func (f Fault) name() string {
	switch {
	case f.Code == http.StatusTooManyRequests && f.For > 0:
		return "429 with Retry-After"
	case f.Kind == statusAfter:
		return fmt.Sprint(f.Code, " after")
	case f.Code != 0:
		return fmt.Sprint(f.Code)
	}
	return string(f.Kind)
}

func (f Fault) String() string {
	if f.For > 0 {
		return fmt.Sprintf("%s (%v)", f.name(), f.For)
	}
	return f.name()
}

func (m Match) String() string {
	of := strings.TrimSpace(strings.Join([]string{m.Verb, m.Resource, m.Event}, " "))
	if of == "" {
		return "all"
	}
	return of
}

// String returns the rule for a reader: 503 on 5% of create pods.
func (r Rule) String() string {
	text := r.Do.String() + " on "
	switch {
	case r.Nth > 0:
		text += fmt.Sprintf("number %d of ", r.Nth)
	case r.Share > 0 && r.Share < 1:
		text += fmt.Sprintf("%.3g%% of ", 100*r.Share)
	}
	text += r.On.String()
	if r.Most > 0 {
		text += fmt.Sprintf(", at most %d", r.Most)
	}
	if r.From > 0 || r.Until > 0 {
		text += fmt.Sprintf(", from %v", r.From)
	}
	if r.Until > 0 {
		text += fmt.Sprintf(" until %v", r.Until)
	}
	return text
}

// drawn is a rule and what it has drawn so far.
type drawn struct {
	Rule
	seed          uint64
	matched, made int
	first         time.Time // when it first matched
}

// hits draws whether the rule hits what matches it now.
func (d *drawn) hits(now time.Time) bool {
	if d.matched == 0 {
		d.first = now
	}
	d.matched++
	since := now.Sub(d.first)
	switch {
	case d.Nth > 0 && d.matched != d.Nth,
		d.Most > 0 && d.made >= d.Most,
		since < d.From,
		d.Until > 0 && since >= d.Until,
		d.Share > 0 && d.Share < 1 && rand.New(rand.NewPCG(d.seed, uint64(d.matched))).Float64() >= d.Share:
		return false
	}
	d.made++
	return true
}
