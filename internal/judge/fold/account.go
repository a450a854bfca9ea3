package fold

import (
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Account counts a step's requests and their outcome: objects on record, or a stream in windows.
type Account interface {
	// Streams reports whether the load was a stream of requests.
	Streams() bool
	// Damage returns why the latencies are unknown, or nil.
	Damage() error
	// OwnDelays returns how late the generator of a stream was.
	OwnDelays() stats.Sample
	// LoadsAt returns the load of the step at each of several moments, which are in order.
	LoadsAt(moments []record.Micros) []result.StepProgress
	// Requests counts the requests with a known outcome or given up unsent, the failed and the retried.
	Requests(s *result.Step) (asked, failed, retried int)
	// Refused counts the requests that failed by no timeout: no lack of processors explains them.
	Refused() int
	// RefusedObjects counts the objects, with own those of the step, that never came to a milestone for
	// another reason than time: they were refused, have no place, failed for good, or are gone.
	RefusedObjects(milestone string, own bool) int
	// Corrected returns a milestone's distribution with the requests that a stall held back, if any.
	Corrected(milestone string) (x stats.Sample, stalled bool)
	// OwnBound returns [stream.Stream.OwnBound] where arrivals were held back, "" elsewhere.
	OwnBound(a *result.Arrivals, goal slo.Goal) string
	// Tried returns [stream.Stream.Tried] of a stream.
	Tried() (found stream.Places, says string)

	// PlacesFailedAt returns the first failure of a place that failed in the end.
	PlacesFailedAt() record.Micros
	// StalledAt returns the end of the first stall of a stream.
	StalledAt() record.Micros
	// QuantileAt returns when so many of the step's own objects were late that the objective could no
	// longer hold, and how many were late in the end. Of n objects the quantile is the ceil(q n)-th
	// smallest latency, so it takes n - ceil(q n) + 1 of them. An objective that asks for slow objects is
	// lost once ceil(q n) of them were quick.
	QuantileAt(s slo.SLO, sample Sample) (record.Micros, int)
	// ErrorsAt returns when too many requests had failed, or were retried by an objective on that.
	ErrorsAt(s slo.SLO, asked int) record.Micros
	// HeldBackAt returns when one arrival too many was late, or the first dropped: the rate is lost.
	HeldBackAt(a *result.Arrivals) record.Micros
	// Short counts the objects that are not there, or came too late, and the unknown ones; first: when.
	Short(s slo.SLO) (short, lost int, first record.Micros)
	// Explained reports whether late news may hide that an objective held, and the least possible value.
	Explained(s slo.SLO) (least float64, explained bool)
	// Grows reports whether an open step's backlog certainly grew, whatever late or lost news there was.
	Grows(spec *result.Spec, arrivals int) bool

	// measure measures the requests and their rates.
	measure(spec *result.Spec, s *Measured)
	// done returns how many objects are there, or requests were answered in the hold.
	done(s *Measured) int
	// add takes in an event that only a stream has.
	add(body record.Body)
	// unasked reports whether a step that was cut had not asked for all.
	unasked() bool
	// addFigures adds the conditions of the load at a moment.
	addFigures(figures map[string]float64, to record.Micros, load result.StepProgress)
	// bounds returns the bounds of the step that the load reached.
	bounds(spec *result.Spec, atOnce []result.BoundShare) []result.BoundShare
	// parts returns the samples, and those of each component where there are several.
	parts(samples map[string]Sample) map[string][]Part
	// live sums up the step under way, with its own slots.
	live(own []*slot, milestone string) Live
}

type objectAccount struct{ *Facts }

type requestAccount struct {
	*Facts
	stream *stream.Stream
}

// CountObjects makes the step count objects.
func (f *Facts) CountObjects() { f.Account = objectAccount{f} }

// CountStream makes the step count the requests of a stream.
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
func (objectAccount) Corrected(string) (stats.Sample, bool)      { return stats.Sample{}, false }

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
