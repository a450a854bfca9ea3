package fold

import (
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Account counts what a step asked for and what came of it: objects that are each on
// record, or a stream of requests in windows.
type Account interface {
	// Streams reports whether the load was a stream of requests.
	Streams() bool
	// Damage returns why the latencies are unknown, nil where they are.
	Damage() error
	// OwnDelays returns by how much the generator of a stream was late.
	OwnDelays() stats.Sample
	// LoadsAt returns the load of the step at each of several moments, which are in
	// order.
	LoadsAt(moments []record.Micros) []result.StepProgress
	// Requests returns how many requests the step made whose outcome is known, or gave
	// up unsent, how many of them failed, and how many were retried.
	Requests(s *result.Step) (asked, failed, retried int)
	// Refused counts the requests of the step that failed with an answer, or by the
	// connection, and not because their time was over: a lack of processors, memory or
	// IO explains the latter alone.
	Refused() int
	// RefusedObjects counts the objects that never came to a milestone for another
	// reason than time: the request was refused, no place has room, they failed for
	// good, or they are gone. With own it counts those that the step
	// asked for.
	RefusedObjects(milestone string, own bool) int
	// Corrected returns the distribution of a milestone with the requests that a stall
	// kept a closed loop from sending, and whether anything stood still.
	Corrected(milestone string) (x stats.Sample, stalled bool)
	// OwnBound is [stream.Stream.OwnBound] where arrivals were held back, "" elsewhere.
	OwnBound(a *result.Arrivals, goal slo.Goal) string
	// Tried is [stream.Stream.Tried], where the load was a stream.
	Tried() (found stream.Places, says string)

	// PlacesFailedAt returns when requests of a place that failed in the end first did.
	PlacesFailedAt() record.Micros
	// StalledAt returns when the first stall of a stream was over.
	StalledAt() record.Micros
	// QuantileAt returns when so many of the step's own objects were late that the
	// objective could no longer hold, and how many were in the end: of n objects the
	// quantile is the ceil(q n)-th smallest latency, so that it takes n - ceil(q n) + 1
	// of them. An objective that asks for slow objects is lost once ceil(q n) of them
	// were quick.
	QuantileAt(s slo.SLO, sample Sample) (record.Micros, int)
	// ErrorsAt returns when so many of the step's requests had failed, or were retried
	// by an objective on that, that their share could no longer be what it allows.
	ErrorsAt(s slo.SLO, asked int) record.Micros
	// HeldBackAt returns when so many arrivals had found no place that the rate counts
	// as not achieved: when one too many was late, or the first was dropped.
	HeldBackAt(a *result.Arrivals) record.Micros
	// Short returns how many of all objects in place are short of what is asked of
	// them, how many may be, and when the first was: whether they are there, and, of
	// the step's own, whether they were in time.
	Short(s slo.SLO) (short, lost int, first record.Micros)
	// Explained reports whether an objective that did not hold may have held after all:
	// the news that decided may have been late. It says between which two values it was.
	Explained(s slo.SLO) (least float64, explained bool)
	// Grows reports whether the backlog of an open step grew for certain: also if all
	// news was as late as possible, and each lost object was there at once.
	Grows(spec *result.Spec, arrivals int) bool

	// measure measures what was asked for, and at which rates.
	measure(spec *result.Spec, s *Measured)
	// done returns how many objects are there, or requests were answered in the hold.
	done(s *Measured) int
	// add takes in an event that only a stream has.
	add(body record.Body)
	// unasked reports whether a step that was cut had not asked for all.
	unasked() bool
	// addFigures adds the conditions of the load at a moment.
	addFigures(figures map[string]float64, to record.Micros, load result.StepProgress)
	// bounds returns the step's bounds that held over the load.
	bounds(spec *result.Spec, atOnce []result.BoundShare) []result.BoundShare
	// parts returns the samples, with those of each component where its objects are of
	// several.
	parts(samples map[string]Sample) map[string][]Part
	// live sums up the step under way, whose own slots are these.
	live(own []*slot, milestone string, there int) Live
}

// objectAccount is the account of objects.
type objectAccount struct{ *Facts }

// requestAccount is the account of a stream of requests.
type requestAccount struct {
	*Facts
	stream *stream.Stream
}

// CountObjects makes the step's account one of objects.
func (f *Facts) CountObjects() { f.Account = objectAccount{f} }

// CountStream makes the step's account one of the requests of a stream.
func (f *Facts) CountStream(s *stream.Stream) { f.Account = requestAccount{f, s} }

func (objectAccount) Streams() bool                              { return false }
func (objectAccount) Damage() error                              { return nil }
func (objectAccount) OwnDelays() (none stats.Sample)             { return none }
func (objectAccount) OwnBound(*result.Arrivals, slo.Goal) string { return "" }
func (objectAccount) Tried() (stream.Places, string)             { return stream.PlacesUnknown, "" }
func (f objectAccount) PlacesFailedAt() record.Micros            { return f.End }
func (f objectAccount) StalledAt() record.Micros                 { return f.End }
func (objectAccount) add(record.Body)                            {}
func (f objectAccount) unasked() bool                            { return f.ToAsk > f.asked }
func (objectAccount) Corrected(string) (none stats.Sample, stalled bool) {
	return none, false
}

func (requestAccount) Streams() bool                     { return true }
func (f requestAccount) Damage() error                   { return f.stream.Err }
func (f requestAccount) OwnDelays() stats.Sample         { return f.stream.OwnDelays() }
func (f requestAccount) Tried() (stream.Places, string)  { return f.stream.Tried() }
func (f requestAccount) RefusedObjects(string, bool) int { return f.Refused() }
func (requestAccount) Explained(slo.SLO) (float64, bool) { return 0, false }
func (requestAccount) Grows(*result.Spec, int) bool      { return true }
func (requestAccount) unasked() bool                     { return true }

func (f objectAccount) Requests(s *result.Step) (asked, failed, retried int) {
	r := s.APIRequests
	return r.N + f.Dropped, r.Failed + f.Dropped, r.Retried
}

func (requestAccount) Requests(s *result.Step) (asked, failed, retried int) {
	r := s.Requests
	return r.Intended - r.Lost, r.FailedAll() + r.Dropped, r.Retried
}
